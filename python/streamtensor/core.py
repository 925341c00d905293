"""Finds the compiled core (`stc` and libstreamtensor.so) and runs `stc`."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .errors import Error

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


def compile_design(
    sources: list[Source],
    weights: Path | None,
    target: tuple[str, str | None],
    output: Path,
    stage: Callable[[str], None] = lambda _: None,
) -> None:
    """Runs `stc compile`; `stage` is called with the name of each stage as it begins.

    sources: one phase, or two of the same model. target: platform and quantization scheme.
    """
    platform, quant = target
    command = [find_file(COMPILER), "compile", sources[0].mlir, "--platform", platform]
    command += ["-o", output, "--progress"]
    if weights:
        command += ["--weights", weights]
    if quant:
        command += ["--quant", quant]
    for source in sources[1:]:
        command += ["--second-phase", source.mlir]
    messages = []
    with subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            for line in process.stderr:
                word, _, name = line.rstrip("\n").partition(" ")
                stage(name) if word == "stage" else messages.append(line)
        except BaseException:
            process.terminate()  # it removes its partial output
            raise
    if process.returncode:
        text = "".join(messages) or f"stc: error: it ended with status {process.returncode}\n"
        for source in sources:
            text = _name_torch_op(text, source)
        raise CompileError(text)


def _name_torch_op(text: str, source: Source) -> str:
    found = re.search(re.escape(str(source.mlir)) + r":(\d+)", text)
    operation = found and source.origin(int(found[1]))
    if not operation:
        return text
    first, *rest = text.replace(str(source.mlir), source.mlir.name).splitlines(keepends=True)
    return "".join([first, f"note: it comes from PyTorch's {operation}\n", *rest])


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
