"""Signals to `streamtensor` at random times, kills among them: a result or one message, and nothing
is left; what a killed process had to leave is gone after the next start.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
from conftest import ROOT, slow_compiler, stc

from streamtensor import output_folder
from streamtensor.work_folder import WorkFolder, _lock

KILLS = int(os.environ.get("KILLS", 300))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
MODULE = """import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
"""


def _usual_signals() -> None:
    for each in SIGNALS[:3]:
        signal.signal(each, signal.SIG_DFL if each != signal.SIGINT else signal.default_int_handler)


def _interrupted(words, seconds: float, number: int, folder: Path) -> tuple[int, str]:
    """Exit status and messages of a command that gets a signal after some seconds."""
    environment = {"TMPDIR": str(folder / "tmp"), "XDG_CACHE_HOME": str(folder / "cache")}
    with subprocess.Popen(
        [sys.executable, "-m", "streamtensor", *map(str, words)],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_usual_signals,
    ) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(number)
        said = child.communicate(timeout=120)[1]
    return child.returncode, said


def _left(folder: Path) -> list[Path]:
    """Folders of processes that ended."""
    hidden = [each for name in ("work", "tmp") for each in (folder / name).iterdir()]
    return [each for each in hidden if each.name.startswith((".", "streamtensor"))]


def _commands(folder: Path, design: Path) -> list[tuple]:
    work, tiny = folder / "work", ROOT / "examples/tiny-gpt2"
    (folder / "m.py").write_text(MODULE)
    on = ("--platform", "u55c")
    return [
        ("compile", f"{folder}/m.py:net", "--input", "2x8", *on, "-o", work / "out"),
        ("compile", ROOT / "examples/perceptron.mlir", *on, "-o", work / "mlir"),
        ("export", tiny, "--context", "16", "-o", work / "export"),
        ("generate", tiny, *on, "--prompt-ids", "1,2", "--max-new-tokens", "2"),
        ("simulate", design),
        ("explore", ROOT / "examples/perceptron.mlir", *on, "--trials", "2", "-o", work / "state"),
    ]


@pytest.mark.long
def test_many_signals_to_the_python_command(tmp_path, core_built):
    choice, killed = random.Random(2), []
    for each in ("work", "tmp", "cache"):
        (tmp_path / each).mkdir()
    commands = _commands(tmp_path, tmp_path / "work/mlir")
    assert _interrupted(commands[1], 600, signal.SIGTERM, tmp_path)[0] == 0
    for _ in range(KILLS):
        command, number = choice.choice(commands), choice.choice(SIGNALS)
        shutil.rmtree(tmp_path / "work/state", ignore_errors=True)
        status, said = _interrupted(command, 10 * choice.random(), number, tmp_path)
        if status == -signal.SIGKILL:
            killed += _left(tmp_path)
            continue
        # a signal that comes before or behind the command ends Python as signals do
        assert status in (0, 1, 130, -number) and said.count("error:") <= 1, (command, said)
        assert status not in (1, 130) or "error:" in said or "KeyboardInterrupt" in said, said
        assert set(_left(tmp_path)) <= set(killed), (command, number, said)
        assert {each.name for each in (tmp_path / "work").iterdir() if each.name[0] != "."} <= {
            "out", "mlir", "export", "state",
        }  # fmt: skip
    shutil.rmtree(tmp_path / "work/state", ignore_errors=True)
    for folder in _left(tmp_path):
        os.utime(folder, (1, 1))
    for command in commands:
        assert _interrupted(command, 600, signal.SIGTERM, tmp_path)[0] == 0, command
    assert not _left(tmp_path)
    for name in ("out", "mlir"):
        assert stc("simulate", tmp_path / "work" / name).returncode == 0


@pytest.mark.parametrize("can", [True, False])
def test_a_folder_is_replaced_in_one_step_where_the_system_can(tmp_path, monkeypatch, can):
    renamed = []
    monkeypatch.setattr(Path, "rename", lambda path, to: renamed.append(os.rename(path, to)))
    if not can:
        monkeypatch.setattr(output_folder, "_exchange", lambda left, right: False)
    for text in ("old", "new"):
        with output_folder.folder(tmp_path / "d", {"f"}) as fresh:
            (fresh / "f").write_text(text)
        assert (tmp_path / "d/f").read_text() == text
    assert len(renamed) == (1 if can else 3) and len(list(tmp_path.iterdir())) == 1


INTERRUPTED = """
import os, signal
from streamtensor.interruption import signals_as_interrupt
from streamtensor.work_folder import WorkFolder
place = {{"__name__": "{place}", "os": os, "signal": signal}}
exec("def call(): os.kill(os.getpid(), signal.SIGTERM)", place)
try:
    with WorkFolder(), signals_as_interrupt():
        place["call"]()
except KeyboardInterrupt:
    print("raised")
"""


@pytest.mark.parametrize(
    "place, ends", [("torch._ops", (130, "", 1)), ("streamtensor.api", (0, "raised\n", 0))]
)
def test_no_exception_comes_into_a_library_that_calls_python(tmp_path, place, ends):
    words = [sys.executable, "-c", INTERRUPTED.format(place=place)]
    done = subprocess.run(
        words,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=_usual_signals,
    )
    assert (done.returncode, done.stdout, done.stderr.count("error: interrupted")) == ends, done
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_swept(tmp_path):
    """What is held, what is young and what has another name stays."""
    names = ["p.lefttttt", "p.heldhold", "p.youngone", "p.longer-name"]
    left, held, young, other = (tmp_path / name for name in names)
    for folder in (left, held, young, other):
        (folder / "new").mkdir(parents=True)
        if folder != young:
            os.utime(folder, (1, 1))
    holder = _lock(held)
    with WorkFolder("p.", tmp_path) as work:
        os.utime(work, (1, 1))
        with WorkFolder("p.", tmp_path):
            assert Path(work).is_dir()
    os.close(holder)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(names[1:])


def test_a_command_of_the_compiler_ends_with_python(tmp_path, core_built):
    """The compiler is told of a signal that Python alone gets."""
    slow = slow_compiler(tmp_path, f"echo $PPID >{tmp_path}/begun")
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %e = tensor.empty() : tensor<4xf32>\n"
        "  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
        "  return %y : tensor<4xf32>\n}\n"
    )
    made = stc("compile", tmp_path / "m.mlir", "--platform", "u55c", "-o", tmp_path / "out")
    assert made.returncode == 0, made.stderr
    names = json.loads((tmp_path / "out/manifest.json").read_text())
    taken, given = (names[side][0]["name"] for side in ("inputs", "outputs"))
    numpy.save(tmp_path / "x.npy", numpy.ones(4, numpy.float32))
    environment = {"CXX": str(slow), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with subprocess.Popen(
        [sys.executable, "-m", "streamtensor", "run", tmp_path / "out"]
        + ["--in", f"{taken}={tmp_path}/x.npy", "--out", f"{given}={tmp_path}/y.npy"],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_usual_signals,
    ) as child:
        while child.poll() is None and not (tmp_path / "begun").exists():
            time.sleep(0.01)
        child.send_signal(signal.SIGTERM)
        said = child.communicate(timeout=30)[1]
    assert child.returncode == 1 and said == "stc: error: interrupted\n", said
