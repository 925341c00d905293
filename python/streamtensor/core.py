"""The compiled core: where `stc` and libstreamtensor.so are, and running `stc`."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from .errors import Error

LIBRARY, COMPILER = "libstreamtensor.so", "stc"
_PLACES = (".", "bin", "lib")  # in a core's folder: a build tree is flat, an installed core is not


class CompileError(Error):
    """`stc` refused; its own messages, which name the place, are `text`."""

    def __init__(self, text: str):
        super().__init__(text.strip())
        self.text = text


def folders() -> list[Path]:
    """Where the core may be, first choice first."""
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


def compile_design(
    mlir: Path,
    weights: Path | None,
    platform: str,
    output: Path,
    stage: Callable[[str], None] = lambda _: None,
    quant: str | None = None,
    origin: Callable[[int], str | None] = lambda _: None,
    second: Path | None = None,
    second_origin: Callable[[int], str | None] = lambda _: None,
) -> None:
    """Runs `stc compile`; `stage` is told the name of each stage as it begins.

    origin: which of PyTorch's ops a line of `mlir` comes from; a refusal of that line names it.
    second: another phase of the same model.
    """
    command = [
        find_file(COMPILER),
        "compile",
        mlir,
        "--platform",
        platform,
        "-o",
        output,
        "--progress",
    ]
    if weights:
        command += ["--weights", weights]
    if quant:
        command += ["--quant", quant]
    if second:
        command += ["--second-phase", second]
    messages = []
    with subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            for line in process.stderr:
                word, _, name = line.rstrip("\n").partition(" ")
                stage(name) if word == "stage" else messages.append(line)
        except BaseException:
            process.terminate()  # it removes what it has written
            raise
    if process.returncode:
        text = "".join(messages) or f"stc: error: it ended with status {process.returncode}\n"
        text = _name_torch_op(text, mlir, origin)
        raise CompileError(_name_torch_op(text, second, second_origin) if second else text)


def _name_torch_op(text: str, mlir: Path, origin: Callable[[int], str | None]) -> str:
    found = re.search(re.escape(str(mlir)) + r":(\d+)", text)
    operation = found and origin(int(found[1]))
    if not operation:
        return text
    first, *rest = text.replace(str(mlir), mlir.name).splitlines(keepends=True)
    return "".join([first, f"note: it comes from PyTorch's {operation}\n", *rest])


def simulate(
    design: Path,
    phase: str | None = None,
    extents: dict[str, int] | None = None,
    tokens: int | None = None,
) -> dict:
    """What `stc simulate --json` says of a design: its cycles, where they go. extents: of run time;
    otherwise their most. tokens: of the launch.
    """
    chosen = (
        (["--phase", phase] if phase else [])
        + ([f"--tokens={tokens}"] if tokens else [])
        + [f"--extent={name}={value}" for name, value in (extents or {}).items()]
    )
    return run_json("simulate", str(design), *chosen)


def run_json(*words: str):
    """What `stc` answers a command as JSON."""
    done = subprocess.run(
        [str(find_file(COMPILER)), *words, "--json"], capture_output=True, text=True
    )
    if done.returncode:
        raise CompileError(done.stderr or f"stc: error: it ended with status {done.returncode}\n")
    return json.loads(done.stdout)
