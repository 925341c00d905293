"""`stc simulate`: its text and JSON, that `stc compile` uses it, and what it refuses."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from streamtensor import core

MODEL = Path(__file__).resolve().parents[2] / "examples" / "perceptron.mlir"


def stc(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([core.find(core.COMPILER), *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def design(tmp_path_factory, core_built) -> Path:
    folder = tmp_path_factory.mktemp("simulate") / "design"
    done = stc("compile", MODEL, "--platform", "u55c", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def result_of(*arguments) -> dict:
    done = stc("simulate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_json_agrees_with_the_report(design):
    result, report = result_of(design), json.loads((design / "report.json").read_text())
    assert report["cycles"]["simulated"] == result["cycles"] >= report["cycles"]["least"]
    assert report["cycles"]["first_output"] == result["first_output"]
    assert report["latency_ms"] == result["latency_ms"]
    assert report["deadlock"] is result["deadlock"] is False
    assert f"{result['cycles']} cycles" in (design / "report.txt").read_text()


def test_every_cycle_of_a_process_is_accounted_for(design):
    result = result_of(design)
    for process in result["processes"]:
        assert process["busy"] + process["input"] + process["output"] + process["memory"] == process["end"]
        assert process["busy"] > 0 and process["ended"]
    assert max(process["end"] for process in result["processes"]) == result["cycles"]
    assert all(1 <= channel["most"] <= channel["depth"] for channel in result["channels"])


def test_text_begins_with_the_answer(design):
    done, result = stc("simulate", design), result_of(design)
    assert done.stderr == ""
    assert done.stdout.splitlines()[2].startswith(f"one launch      {result['cycles']} cycles")


def test_a_dump_takes_the_same_cycles(design, tmp_path):
    dump = tmp_path / "dump.mlir"
    shutil.copy(design / "design.mlir", dump)
    assert result_of(dump, "--platform", "u55c")["cycles"] == result_of(design)["cycles"]
    assert stc("simulate", design, "--json").stdout == stc("simulate", design, "--json").stdout


@pytest.mark.parametrize("damage, message", [
    (lambda folder: (folder / "design.mlir").write_text("//"), "design.mlir: error: is not the file that manifest.json lists"),
    (lambda folder: (folder / "manifest.json").unlink(), "manifest.json: error: cannot be read"),
    (lambda folder: (folder / "manifest.json").write_text('{"design": 9}'), "is a design of version 9"),
    (lambda folder: (folder / "design.mlir").unlink(), "design.mlir: error: cannot be read"),
])
def test_a_damaged_design_is_refused(design, tmp_path, damage, message):
    folder = tmp_path / "design"
    shutil.copytree(design, folder)
    damage(folder)
    done = stc("simulate", folder, "--json")
    assert done.returncode == 1 and message in done.stderr and done.stdout == ""


def test_other_levels_and_too_many_iterations_are_refused(design):
    done = stc("simulate", MODEL, "--platform", "u55c")
    assert done.returncode == 1 and "which has no cycles" in done.stderr
    done = stc("simulate", design, "--events", "10")
    assert done.returncode == 1 and "--events COUNT raises the limit" in done.stderr
