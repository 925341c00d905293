"""Finds the compiled core (`stc` and libstreamtensor.so) and runs `stc`."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .errors import Error

# what is said about operations of MLIR, not of PyTorch
_OF_MLIR = re.compile(r"\b(arith|math|tensor|linalg|tm_tensor|scf|cf)\.\w+|[Dd]ialect|custom op")
PATIENCE = 0.7  # seconds in which the compiler ends when it is asked to
LIBRARY, COMPILER = "libstreamtensor.so", "stc"
# subfolders of a core: a build folder is flat, an installed core is not
_PLACES = (".", "bin", "lib")


class CompileError(Error):
    """`stc` rejected its input; `text` holds its messages with source locations."""

    def __init__(self, text: str):
        super().__init__(text.strip())
        self.text = text


def folders() -> list[Path]:
    """The folders that may hold the core, in order of preference."""
    package = Path(__file__).resolve().parent
    chosen = os.environ.get("STREAMTENSOR_CORE")
    return ([Path(chosen)] if chosen else []) + [package / "_core", package.parent.parent / "build"]


def find_file(file: str) -> Path:
    for folder in folders():
        for place in _PLACES:
            if (folder / place / file).is_file():
                return folder / place / file
    raise Error(
        f"{file} was not found",
        "looked in " + ", ".join(map(str, folders())),
        "build it with make, or name its folder in STREAMTENSOR_CORE",
    )


class Source(NamedTuple):
    """An MLIR file, and the PyTorch op that a line of it comes from, for error messages."""

    mlir: Path
    origin: Callable[[int], str | None] = lambda _: None
    in_torch: bool = True  # False: the user's own file, whose lines messages name


def compile_design(
    sources: list[Source],
    weights: Path | None,
    words: list[str],
    output: Path,
    stage: Callable[[str], None] = lambda _: None,
) -> None:
    """Runs `stc compile`; `stage` is called with the name of each stage as it begins.

    sources: one phase, or two of the same model. words: options, as on the command line.
    """
    command = [find_file(COMPILER), "compile", sources[0].mlir, *words, "-o", output]
    command += ["--progress"]
    if weights:
        command += ["--weights", weights]
    for source in sources[1:]:
        command += ["--second-phase", source.mlir]
    messages = []
    with subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            for line in process.stderr or ():
                word, _, name = line.rstrip("\n").partition(" ")
                stage(name) if word == "stage" else messages.append(line)
        except BaseException:
            _end(process, output)
            raise
    if process.returncode:
        text = "".join(messages) or f"stc: error: it ended with status {process.returncode}\n"
        for source in sources:
            text = text if not source.in_torch else _in_terms_of_torch(text, source)
        raise CompileError(text)


def _end(process: subprocess.Popen, output: Path) -> None:
    """Asks the compiler to end, which removes its partial output; if it is in the midst of a long
    step, ends it and removes that.
    """
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        for partial in output.absolute().parent.glob(f".{output.name}.*"):
            shutil.rmtree(partial, ignore_errors=True)


def _in_terms_of_torch(text: str, source: Source) -> str:
    """Names PyTorch's operations and the user's lines where the compiler names places in the MLIR
    text, which the user has not seen.
    """
    place = re.compile(re.escape(str(source.mlir)) + r":(\d+):\d+: error: (.*)")
    told, is_of_mlir = [], False
    for line in text.splitlines(keepends=True):
        found = place.match(line)
        if found:
            operation = source.origin(int(found[1]))
            is_of_mlir = bool(_OF_MLIR.search(found[2]))
            line = _told(found[2], is_of_mlir, operation)
        elif is_of_mlir and line.startswith("note: "):
            continue
        told += [line] if line not in told else []
    return "".join(told)


def _told(message: str, is_of_mlir: bool, operation: str | None) -> str:
    if not is_of_mlir:
        return f"error: {message}\n" + (f"note: in PyTorch's {operation}\n" if operation else "")
    of = f"PyTorch's {operation}" if operation else "one of the module's operators"
    return (
        f"error: no design can be made of {of}\n"
        "note: other operators that give the same may be accepted: docs/models.md\n"
    )


def simulate(
    design: Path,
    phase: str | None = None,
    extents: dict[str, int] | None = None,
    tokens: int | None = None,
) -> dict:
    """The result of `stc simulate --json`.

    extents: run-time extents (default: their maximum). tokens: tokens per launch.
    """
    chosen = (
        (["--phase", phase] if phase else [])
        + ([f"--tokens={tokens}"] if tokens else [])
        + [f"--extent={name}={value}" for name, value in (extents or {}).items()]
    )
    return run_json("simulate", str(design), *chosen)


def run_json(*words: str):
    """Runs an `stc` command and returns its JSON output."""
    done = subprocess.run(
        [str(find_file(COMPILER)), *words, "--json"], capture_output=True, text=True
    )
    if done.returncode:
        raise CompileError(done.stderr or f"stc: error: it ended with status {done.returncode}\n")
    return json.loads(done.stdout)
