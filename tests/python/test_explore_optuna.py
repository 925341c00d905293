"""streamtensor explore: Optuna over the choices, workers that die, a Dask cluster, a storage of
something else.
"""

import io
import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch

import streamtensor

pytest.importorskip("optuna")

from streamtensor import cli, core
from streamtensor.errors import Error  # noqa: E402
from streamtensor.exploration import design_trials, explore_report, journal_lock
from streamtensor.exploration import explore as exploration

TREE = Path(__file__).parents[2]
MODEL = TREE / "examples" / "perceptron.mlir"
WORDS = ["explore", str(MODEL), "--platform", "u55c", "--workers", "2"]


@pytest.fixture(autouse=True)
def built(core_built):
    pass


def trials_of(folder: Path) -> list:
    task = design_trials.Task(MODEL.read_text(), "u55c", None)
    return design_trials.finished(design_trials.open_study(folder, task, True))


def test_trials_front_and_page(tmp_path, capsys):
    folder = tmp_path / "e"
    assert cli.main([*WORDS, "--trials", "12", "-o", str(folder)]) == 0
    table = capsys.readouterr().out.splitlines()
    trials = trials_of(folder)
    complete = [trial for trial in trials if trial.values]
    assert len(trials) == 12 and len(complete) >= 6
    assert trials[0].params["parallelism-search"] == "joint" and len(table) >= 2
    page = (folder / "report.html").read_text()
    assert (
        page.count("<svg") >= 2
        and "Pareto front" in page
        and "History" in page
        and "://" not in page
    )
    study = design_trials.open_study(
        folder, design_trials.Task(MODEL.read_text(), "u55c", None), True
    )
    best = design_trials.pareto_front(study)
    for trial in best:
        assert not any(
            all(a <= b for a, b in zip(other.values, trial.values)) and other.values != trial.values
            for other in complete
        )
        assert abs(trial.user_attrs["cycles"] / trial.user_attrs["simulated"] - 1) < 0.05
    assert explore_report.page(study) == page


def test_an_exploration_goes_on(tmp_path, capsys):
    folder = tmp_path / "e"
    assert cli.main([*WORDS, "--trials", "3", "-o", str(folder)]) == 0
    assert cli.main([*WORDS, "--trials", "5", "-o", str(folder)]) == 1
    assert "--resume continues" in capsys.readouterr().err
    assert cli.main([*WORDS, "--trials", "5", "--resume", "-o", str(folder)]) == 0
    assert len(trials_of(folder)) == 5


def test_a_storage_of_something_else_is_refused(tmp_path, capsys):
    folder = tmp_path / "e"
    assert cli.main([*WORDS, "--trials", "1", "-o", str(folder)]) == 0
    other = [
        "explore",
        str(TREE / "tests" / "models" / "mlp.mlir"),
        "--platform",
        "u55c",
        "--resume",
        "-o",
        str(folder),
    ]
    assert cli.main(other) == 1
    assert "its model is" in capsys.readouterr().err
    assert cli.main([*WORDS, "--resume", "--max-dsp", "50%", "-o", str(folder)]) == 1
    assert "its constraint is ''" in capsys.readouterr().err
    broken = tmp_path / "broken"
    broken.mkdir()
    for text in ("no journal\n", "no journal", "{}\n", "[]\n", '{"op_code": 0}\n'):
        (broken / design_trials.STORAGE).write_text(text)
        assert cli.main([*WORDS, "--resume", "-o", str(broken)]) == 1
        assert "not the study of an exploration" in capsys.readouterr().err
        assert (broken / design_trials.STORAGE).read_text() == text


def test_a_lock_of_a_run_that_was_killed_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*WORDS, "--trials", "1", "-o", "e"]) == 0
    lock = tmp_path / "e" / f"{design_trials.STORAGE}.lock"
    lock.symlink_to(f"e/{design_trials.STORAGE}")  # leads nowhere from where it stands
    begun = time.monotonic()
    assert cli.main([*WORDS, "--trials", "2", "--resume", "-o", "e"]) == 0
    assert time.monotonic() - begun < 25 and not lock.is_symlink()


def locked(folder: Path) -> Path:
    """An exploration with the lock of a run that does not write."""
    assert cli.main([*WORDS, "--trials", "1", "-o", str(folder)]) == 0
    journal = folder / design_trials.STORAGE
    lock = journal.with_name(f"{journal.name}.lock")
    lock.symlink_to(journal)
    return lock


def test_a_lock_that_is_waited_for_is_told(tmp_path, monkeypatch, capsys):
    lock = locked(tmp_path / "e")
    capsys.readouterr()
    monkeypatch.setattr(journal_lock, "NOTICE_SECONDS", 0.2)
    released = threading.Timer(1, lock.unlink)
    released.start()
    assert cli.main([*WORDS, "--trials", "1", "--resume", "-o", str(tmp_path / "e")]) == 0
    released.join()
    said = capsys.readouterr()
    assert (
        said.err.count(f"streamtensor: waiting for {lock}, the lock of another exploration") == 1
        and str(lock) not in said.out
    )
    assert "is removed" not in said.err and not lock.is_symlink()


def test_a_lock_behind_which_nothing_is_written_is_removed_and_told(tmp_path, monkeypatch, capsys):
    lock = locked(tmp_path / "e")
    capsys.readouterr()
    monkeypatch.setattr(journal_lock, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(journal_lock, "STALE_SECONDS", 1)
    assert cli.main([*WORDS, "--trials", "2", "--resume", "-o", str(tmp_path / "e")]) == 0
    said = capsys.readouterr().err
    assert (
        f"waiting for {lock}" in said and f"{lock} is removed: nothing was written for 1 s" in said
    )
    assert not lock.is_symlink() and len(trials_of(tmp_path / "e")) == 2


def test_a_lock_that_another_run_took_away_is_named(tmp_path):
    journal = tmp_path / design_trials.STORAGE
    journal.touch()
    lock = journal_lock.JournalLock(journal)
    assert lock.acquire()
    (tmp_path / f"{design_trials.STORAGE}.lock").unlink()
    with pytest.raises(
        Error, match=f"{design_trials.STORAGE}.lock was removed while this exploration wrote"
    ):
        lock.release()


def test_a_record_that_was_cut_short_is_left_out(tmp_path):
    folder = tmp_path / "e"
    assert cli.main([*WORDS, "--trials", "2", "-o", str(folder)]) == 0
    journal = folder / design_trials.STORAGE
    journal.write_bytes(journal.read_bytes()[:-37])
    assert cli.main([*WORDS, "--trials", "4", "--resume", "-o", str(folder)]) == 0
    assert len(trials_of(folder)) == 4


def test_no_design_at_all_is_told(tmp_path, capsys):
    assert cli.main([*WORDS, "--trials", "2", "--max-dsp", "1", "-o", str(tmp_path / "e")]) == 1
    assert (
        "none of 2 trials gives a design; the one with default settings fails with: "
        "--max-dsp 1 cannot be met" in capsys.readouterr().err
    )


def test_a_fixed_kernel_and_a_target_hold_in_all_trials(tmp_path, capsys):
    """Designs take no longer than wished and have fewer DSP slices than without; what no kernel is
    called is told, and so are other wishes than the folder's.
    """
    wished = ["--fix-kernel", "k0:lanes=32", "--target-ms", "0.06"]
    assert cli.main([*WORDS, "--trials", "2", "-o", str(tmp_path / "free")]) == 0
    assert cli.main([*WORDS, "--trials", "2", *wished, "-o", str(tmp_path / "e")]) == 0
    study = design_trials.open_study(
        tmp_path / "e", design_trials.Task(MODEL.read_text(), "u55c", None, wished), True
    )
    free = design_trials.open_study(
        tmp_path / "free", design_trials.Task(MODEL.read_text(), "u55c", None), True
    )
    assert len(design_trials.finished(study)) == 2 and all(
        trial.values[0] <= 0.06 for trial in design_trials.pareto_front(study)
    )
    assert design_trials.finished(study)[0].values[1] < design_trials.finished(free)[0].values[1]
    capsys.readouterr()
    assert (
        cli.main([*WORDS, "--resume", "--fix-kernel", "k0:lanes=4", "-o", str(tmp_path / "e")]) == 1
    )
    assert (
        "its constraint is '--fix-kernel k0:lanes=32 --target-ms 0.06', not '--fix-kernel "
        "k0:lanes=4'" in capsys.readouterr().err
    )
    assert (
        cli.main(
            [*WORDS, "--trials", "1", "--fix-kernel", "k77:lanes=2", "-o", str(tmp_path / "f")]
        )
        == 1
    )
    assert (
        "--fix-kernel names 'k77', which is no kernel of the design\nnote: the nearest is k0"
        in capsys.readouterr().err
        and not (tmp_path / "f").exists()
    )


def wrap_compiler(folder: Path, line: str, monkeypatch) -> None:
    """The compiler is now a script in `folder` that runs a line of shell first."""
    real, script = core.find_file(core.COMPILER), folder / core.COMPILER
    folder.mkdir()
    script.write_text(f'#!/bin/sh\n{line}\nexec {real} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("STREAMTENSOR_CORE", str(folder))


def test_a_point_whose_compiler_dies_is_tried_again(tmp_path, monkeypatch):
    folder = tmp_path / "core"
    wrap_compiler(
        folder,
        f'if [ "$1" = compile ] && mkdir {folder}/died 2>/dev/null; then kill -9 $$; fi',
        monkeypatch,
    )
    assert cli.main([*WORDS, "--trials", "3", "-o", str(tmp_path / "e")]) == 0
    assert (folder / "died").is_dir()
    trials = trials_of(tmp_path / "e")
    assert len(trials) == 3 and sum("died" in trial.user_attrs for trial in trials) == 1


def test_only_what_is_not_the_compilers_own_is_asked_for(tmp_path):
    space = [
        {"name": "kernel-lanes", "default": 1024, "candidates": [1024]},
        {"name": "parallelism-search", "default": "joint", "candidates": ["joint"]},
        {"name": "clock", "default": 300, "candidates": [250, 300]},
    ]

    class Asked:
        workers, points = 1, []

        def submit(self, task, point):
            self.points.append(point)
            return Future()

        def next_done(self, futures):
            futures[0].set_result({"rejected": "none"})
            return futures[0]

    task = design_trials.Task(MODEL.read_text(), "u55c", None)
    study = design_trials.open_study(tmp_path / "e", task, False)
    design_trials.explore(study, task, space, Asked(), 6, lambda count: None)
    assert (
        Asked.points[0] == {}
        and {"clock": 250} in Asked.points
        and all(point in ({}, {"clock": 250}) for point in Asked.points)
    )


def test_a_point_that_always_dies_is_told(tmp_path, monkeypatch, capsys):
    wrap_compiler(tmp_path / "core", '[ "$1" != compile ] || kill -9 $$', monkeypatch)
    assert cli.main([*WORDS, "--trials", "3", "-o", str(tmp_path / "e")]) == 1
    assert f"failed {design_trials.ATTEMPTS} times" in capsys.readouterr().err


def start(*words: str) -> subprocess.Popen:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(TREE / "python"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        ),
    }
    return subprocess.Popen(
        [sys.executable, "-m", *words],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_two_dask_workers_one_of_which_dies(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    file, running = tmp_path / "scheduler.json", []
    try:
        running.append(
            start(
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(file),
            )
        )
        limit = time.monotonic() + 60
        while (
            not (file.exists() and file.read_text().strip().endswith("}"))
            and time.monotonic() < limit
        ):
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        for _ in range(2):
            running.append(
                start(
                    "distributed.cli.dask_worker",
                    address,
                    "--no-nanny",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--local-directory",
                    str(tmp_path),
                )
            )
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        counted, told = [], design_trials.LiveTable.done

        def done(live, count):
            counted.append(count)
            if count == 2:
                running[1].kill()
            told(live, count)

        monkeypatch.setattr(design_trials.LiveTable, "done", done)
        assert (
            cli.main(
                [
                    "explore",
                    str(MODEL),
                    "--platform",
                    "u55c",
                    "--scheduler",
                    address,
                    "--trials",
                    "8",
                    "-o",
                    str(tmp_path / "e"),
                ]
            )
            == 0
        )
        assert counted[-1] == 8 and len(trials_of(tmp_path / "e")) == 8 and running[1].wait(10) < 0
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()


def test_no_scheduler_is_told_and_nothing_left(tmp_path, capsys):
    distributed = pytest.importorskip("distributed")
    client = distributed.Client
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distributed, "Client", lambda address, timeout: client(address, timeout=0.5))
        assert (
            cli.main(
                [
                    "explore",
                    str(MODEL),
                    "--platform",
                    "u55c",
                    "--scheduler",
                    "tcp://127.0.0.1:1",
                    "--trials",
                    "2",
                    "-o",
                    str(tmp_path / "e"),
                ]
            )
            == 1
        )
        assert (
            cli.main(
                [
                    "explore",
                    str(MODEL),
                    "--platform",
                    "u55c",
                    "--scheduler",
                    "nonsense",
                    "--trials",
                    "2",
                    "-o",
                    str(tmp_path / "e"),
                ]
            )
            == 1
        )
    assert (
        capsys.readouterr().err.count("no Dask scheduler answers") == 2
        and not (tmp_path / "e").exists()
    )


def test_the_choices_are_the_compilers():
    help_text = subprocess.run(
        [core.find_file(core.COMPILER), "compile", "--help-expert"], capture_output=True, text=True
    ).stdout
    for choice in design_trials.search_space("u55c"):
        assert (
            re.search(rf"--{choice['name']}\b", help_text)
            and choice["default"] in choice["candidates"]
        )
    space = {each["name"]: each for each in design_trials.search_space("u55c", "--max-dsp", "1660")}
    usual = space["kernel-dsp"]["default"]  # no kernel has more DSPs than the design
    assert space["kernel-dsp"]["candidates"] == [415, 830, 1660, usual]


def test_from_python_in_the_state_of_the_command(tmp_path, capsys):
    """A data frame of trials, a design of the best one, and the command goes on with them."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    value, folder = torch.randn(4, 16), tmp_path / "e"
    asked = dict(platform="u55c", storage=folder, workers=2, max_dsp="50%")
    found = streamtensor.explore(module, (value,), budget=3, **asked)
    table = found.table()
    rows = table if isinstance(table, list) else table.to_dict("records")
    assert [row["trial"] for row in rows] == [0, 1, 2] and any(
        row["pareto_optimal"] for row in rows
    )
    assert found.best.figures["latency_ms"] == min(row["latency_ms"] for row in rows)
    assert f"{found.best.number}: latency_ms" in repr(found) and found.report.is_file()
    with found.best.compile() as design:
        assert design.report.latency_ms == found.best.figures["latency_ms"]
        assert (design(value) - module(value)).abs().max() < 1e-5
    again = ["--platform", "u55c", "--max-dsp", "50%", "--trials", "4", "--resume"]
    assert cli.main(["explore", str(folder / "model.mlir"), *again, "-o", str(folder)]) == 0
    capsys.readouterr()
    more = streamtensor.explore(module, (value,), budget=4, **asked)
    assert [each.row() for each in more.trials[:3]] == [each.row() for each in found.trials]
    assert len(more.trials) == 4


def test_objectives_decide_what_is_best():
    trials = [
        exploration.Trial(i, dict(zip(exploration.FIGURES, figures)), 1, 1, {}, None, None)
        for i, figures in enumerate([(1.0, 9, 5, 5.0), (2.0, 3, 5, 4.0), (3.0, 4, 5, 1.0)])
    ]
    refused = exploration.Trial(3, {}, None, None, {}, "too large", None)

    def front(*objectives):
        found = exploration.Exploration((*trials, refused), objectives, None)
        return [trial.number for trial in found.front]

    assert front("latency_ms", "dsps") == [0, 1]
    assert front("launch_mj") == [2] and front("dsps", "launch_mj") == [1, 2]
    for strange in ("latency_ms", ["speed"], []):
        with pytest.raises(Error, match="^objectives: ") as error:
            streamtensor.explore(torch.nn.ReLU(), (torch.ones(1),), objectives=strange)
        assert error.value.notes[0].startswith("accepted is a list of latency_ms, dsps")


def test_a_terminal_gets_a_live_table(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert cli.main([*WORDS, "--trials", "1", "-o", str(tmp_path / "e")]) == 0
    task = design_trials.Task(MODEL.read_text(), "u55c", None)
    study = design_trials.open_study(tmp_path / "e", task, True)
    with design_trials.LiveTable(study, 1, Terminal()) as table:
        table.done(1)
    assert "1 of 1 trials" in table._stream.getvalue()
