"""`stc simulate`: its text and JSON, that `stc compile` uses it, and what it refuses."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import stc

from streamtensor import core

MODEL = Path(__file__).resolve().parents[2] / "examples" / "perceptron.mlir"


@pytest.fixture(scope="module")
def design(tmp_path_factory, core_built) -> Path:
    folder = tmp_path_factory.mktemp("simulate") / "design"
    done = stc("compile", MODEL, "--platform", "u55c", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def listed(folder: Path, name: str, text: str) -> None:
    """Writes a file and its hash into the manifest."""
    (folder / name).write_text(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = hashlib.blake2b(text.encode(), digest_size=32).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def result_of(*arguments) -> dict:
    done = stc("simulate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_json_agrees_with_the_report(design):
    result, report = result_of(design), json.loads((design / "report.json").read_text())
    assert report["cycles"]["simulated"] == result["cycles"] >= report["cycles"]["lower_bound"]
    assert report["cycles"]["first_output"] == result["first_output"]
    assert report["latency_ms"] == result["latency_ms"]
    assert report["deadlock"] is result["deadlock"] is False
    assert f"{result['cycles']} cycles" in (design / "report.txt").read_text()


def test_every_cycle_of_a_process_is_accounted_for(design):
    result = result_of(design)
    for process in result["processes"]:
        assert (
            process["busy"] + process["input"] + process["output"] + process["memory"]
            == process["end"]
        )
        assert process["busy"] > 0 and process["ended"]
    assert max(process["end"] for process in result["processes"]) == result["cycles"]
    assert all(1 <= channel["peak_occupancy"] <= channel["depth"] for channel in result["channels"])


def test_text_begins_with_the_answer(design):
    done, result = stc("simulate", design), result_of(design)
    assert done.stderr == ""
    assert done.stdout.splitlines()[2].startswith(f"one launch      {result['cycles']} cycles")


def test_a_dump_takes_the_same_cycles(design, tmp_path):
    dump = tmp_path / "dump.mlir"
    shutil.copy(design / "design.mlir", dump)
    assert result_of(dump, "--platform", "u55c")["cycles"] == result_of(design)["cycles"]
    assert stc("simulate", design, "--json").stdout == stc("simulate", design, "--json").stdout


@pytest.mark.parametrize(
    "damage, message",
    [
        (
            lambda folder: (folder / "design.mlir").write_text("//"),
            "design.mlir: error: is not the file that manifest.json lists",
        ),
        (
            lambda folder: (folder / "manifest.json").unlink(),
            "manifest.json: error: cannot be read",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text('{"design": 9}'),
            "is a design of version 9",
        ),
        (
            lambda folder: (folder / "manifest.json").write_text("{}"),
            "its manifest.json is not that of a design",
        ),
        (lambda folder: (folder / "design.mlir").unlink(), "design.mlir: error: cannot be read"),
        (
            lambda folder: (folder / "report.json").write_text("{}"),
            "report.json: error: is not the file that manifest.json lists",
        ),
        (
            lambda folder: listed(folder, "report.json", "{}"),
            "names no platform in its report.json",
        ),
    ],
)
def test_a_damaged_design_is_refused(design, tmp_path, damage, message):
    folder = tmp_path / "design"
    shutil.copytree(design, folder)
    damage(folder)
    done = stc("simulate", folder, "--json")
    assert done.returncode == 1 and message in done.stderr and done.stdout == ""


def test_other_levels_and_too_many_iterations_are_refused(design):
    done = stc("simulate", MODEL, "--platform", "u55c")
    assert done.returncode == 1 and "which has no cycles" in done.stderr
    done = stc("simulate", design, "--max-iterations", "10")
    assert done.returncode == 1 and re.search(
        r": 1 launch of \d+ iterations are more than the limit of 10\nnote: --max-iterations "
        r"COUNT raises the limit",
        done.stderr,
    )


@pytest.mark.parametrize(
    "old, new, message",
    [
        (r"(\{value = )8( : index\})", r"\g<1>-8\2", "a loop of -8 iterations"),
        (r"(stream.pipeline = )1 ", r"\g<1>0 ", "stream.pipeline is not positive"),
        (r"(stream.channel = )1 ", r"\g<1>99 ", "is on memory channel 99"),
        (r'(stream.style = ")(?:stp|flp)', r"\1now", "stream.style is 'now'"),
        (
            r'"func.call"\(([^)]*)\) \{callee = @(\w+)\} : \(([^)]*)\) -> \(\)\n',
            r"\g<0>\g<0>",
            "is started 2 times",
        ),
        (r'"stream.push"\(', '"stream.pusch"(', "stream.pusch"),
    ],
)
def test_a_design_made_inconsistent_by_hand_is_refused(design, tmp_path, old, new, message):
    """Even where the manifest has the changed file's hash."""
    folder = tmp_path / "design"
    shutil.copytree(design, folder)
    text, count = re.subn(old, new, (folder / "design.mlir").read_text(), count=1)
    assert count == 1
    listed(folder, "design.mlir", text)
    done = stc("simulate", folder, "--json")
    assert done.returncode == 1 and message in done.stderr and done.stdout == "", done.stderr


def test_launches(design):
    one, three = result_of(design), result_of(design, "--launches", "3")
    assert (
        three["launches"] == 3
        and three["steady_state_cycles"] == one["cycles"]
        and three["cycles"] == 3 * one["cycles"]
    )
    overlapping = result_of(design, "--launches", "3", "--overlap-launches")
    assert (
        one["cycles"] < overlapping["cycles"] < three["cycles"]
        and overlapping["steady_state_cycles"] < one["cycles"]
    )
    assert "steady state" in stc("simulate", design, "--launches", "3").stdout


def test_what_happens_over_time(design):
    result = result_of(design, "--samples", "64")
    width = result["sample_cycles"]
    assert width * 64 >= result["cycles"]
    for port in result["ports"]:
        assert sum(port["bytes_over_time"]) == port["bytes"] > 0
    for channel in result["channels"]:
        assert max(channel["occupancy"]) in (
            channel["peak_occupancy"],
            channel["peak_occupancy"] - 1,
        )
    for process in result["processes"]:
        assert sum(process["input_over_time"]) == process["input"]
    assert stc("simulate", design, "--samples", "1000000").returncode == 1


def test_the_critical_path_covers_the_launch(design):
    result = result_of(design)
    path = result["critical_path"]
    assert path[0]["begin"] == 0 and path[-1]["end"] == result["cycles"]
    assert all(before["end"] == after["begin"] for before, after in zip(path, path[1:]))
    assert (
        0.95 * result["cycles"]
        <= sum(process["critical_path_cycles"] for process in result["processes"])
        <= result["cycles"]
    )


def test_traces(design, tmp_path):
    # a point a cycle
    assert (
        stc("simulate", design, "--samples", "10000", "--trace", tmp_path / "t.json").returncode
        == 0
    )
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    result = result_of(design)
    rows = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    busy = {name: 0 for name in rows.values()}
    for event in events:
        if event["ph"] == "X" and event["name"] == "busy":
            busy[rows[event["tid"]]] += event["args"]["cycles"]
    assert busy == {process["name"]: process["busy"] for process in result["processes"]}
    assert {event["name"] for event in events if event["ph"] == "C"} >= {
        channel["name"] for channel in result["channels"]
    }
    assert stc("simulate", design, "--trace", tmp_path / "t.vcd").returncode == 0
    text = (tmp_path / "t.vcd").read_text()
    assert text.startswith("$comment") and "$enddefinitions $end\n#0\n" in text
    done = stc("simulate", design, "--trace", tmp_path / "t.txt")
    assert done.returncode == 1 and "FILE.vcd" in done.stderr and not (tmp_path / "t.txt").exists()


def test_other_depths(design):
    result = result_of(design)
    name = max(result["channels"], key=lambda channel: channel["peak_occupancy"])["name"]
    assert result_of(design, "--channel-depth", f"{name}=0")["cycles"] <= result["cycles"]
    done = stc("simulate", design, "--channel-depth", "nobody=3")
    assert done.returncode == 1 and "there is no channel 'nobody'" in done.stderr


LONG = """
func.func @main(%x: tensor<256x256xf32> {stream.name = "x"}, %w: tensor<256x256xf32> {stream.name \
= "w", stream.role = "weight"}) -> (tensor<256x256xf32> {stream.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<256x256xf32>, tensor<256x256xf32>) outs(%filled : \
tensor<256x256xf32>) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
"""


def test_ctrl_c_prints_what_is_known(tmp_path, core_built):
    (tmp_path / "long.mlir").write_text(LONG)
    assert (
        stc(
            "compile",
            tmp_path / "long.mlir",
            "--platform",
            "u55c",
            "--to",
            "hardware",
            "-o",
            tmp_path / "hardware.mlir",
        ).returncode
        == 0
    )
    command = [
        core.find_file(core.COMPILER),
        "simulate",
        tmp_path / "hardware.mlir",
        "--launches",
        "1000",
        "--max-iterations",
        "1000G",
        "--progress",
    ]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while running.stderr.read(1) not in ("%", ""):  # it tells how far it is
        pass
    running.send_signal(signal.SIGINT)
    out, messages = running.communicate(timeout=60)
    assert running.returncode == 1 and "interrupted after" in messages, messages
    assert "then stopped" in out and "busiest processes" in out


# --- the emitted C++ on the CPU

SHIM = """#include "hls_stream.h"
#include <cstdio>
#include <cstdlib>
static const char *cut_name;
static unsigned long cut_depth;
static void cut(st::channel &channel) { if (channel.name == cut_name) channel.depth = cut_depth; }
"""
RUN = """
		const char *error = st_region_error();
		std::string line = error ? error : "ended";
		std::puts(line.substr(0, line.find('\\n')).c_str());
		for (unsigned long j = 0; j < st_region_fifos(); j++) {
			const char *name;
			unsigned long depth, most;
			st_region_fifo(j, &name, &depth, &most);
			if (most > depth)
				std::printf("%s held %lu of %lu\\n", name, most, depth);
		}
	}
}
"""


def program_of(folder: Path, out: Path) -> Path:
    """The emitted C++ with a main: NAME DEPTH … runs it once for each pair, on zeros, with that
    channel's depth changed.
    """
    text = next((folder / "hls").glob("*.cpp")).read_text()
    text = re.sub(
        r'^\t(hls::stream(?:_of_blocks)?<.*> (\w+)(?:\(".*"\)| ST_NAMED\(".*"\));)$',
        r"\t\1 cut(\2);",
        text,
        flags=re.M,
    )
    top, parameters = re.search(r'extern "C" void (\w+)\((.*)\)\n', text).groups()
    words = dict(re.findall(r"m_axi port=(\w+) .*?depth=(\d+)", text))
    ports = [
        re.fullmatch(r"(?:const )?(\w+) \*(\w+)", parameter).groups()
        for parameter in parameters.split(", ")
    ]
    main = "int main(int count, char **arguments)\n{\n"
    main += "".join(
        f"\t{kind} *{name} = static_cast<{kind} *>(std::calloc({words[name]}, sizeof({kind})));\n"
        for kind, name in ports
    )
    main += (
        "\tfor (int i = 1; i + 1 < count; i += 2) {\n\t\tcut_name = arguments[i];\n\t\tcut_depth "
        "= std::strtoul(arguments[i + 1], nullptr, 10);\n"
    )
    main += f"\t\t{top}({', '.join(name for _, name in ports)});"
    (out / "main.cpp").write_text(SHIM + text + main + RUN)
    command = [
        "g++",
        "-O0",
        "-w",
        "-std=c++17",
        "-I",
        folder / "hls" / "csim",
        "-I",
        folder / "hls",
        "main.cpp",
        "-o",
        "program",
    ]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "program"


def test_a_depth_that_is_too_small_gives_the_same_report_as_in_the_simulator(tmp_path, core_built):
    """Frozen pipelines hold words back where the C++, an iteration after the other, does not: the
    simulator may find a deadlock that it does not, never the reverse.
    """
    folder = tmp_path / "design"
    model = Path(__file__).resolve().parents[1] / "models" / "layers.mlir"
    assert stc("compile", model, "--platform", "u55c", "-o", folder).returncode == 0
    names = [channel["name"] for channel in result_of(folder)["channels"] if channel["depth"] > 1][
        :60:3
    ]
    program = program_of(folder, tmp_path)
    told = subprocess.run(
        [program, "none", "1", *(part for name in names for part in (name, "1"))],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.splitlines()
    # no line says that a FIFO held more than its depth
    assert len(told) == 1 + len(names) and told[0] == "ended"
    same = 0
    for name, line in zip(names, told[1:]):
        deadlock = json.loads(
            stc("simulate", folder, "--json", "--channel-depth", f"{name}=1").stdout
        )["deadlock"]
        assert line == "ended" or line == f"deadlock: {deadlock}"
        same += line != "ended"
    assert same > 0
