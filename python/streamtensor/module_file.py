"""Modules that a Python file makes: FILE.py:FUNCTION on the command line.

The function returns the module and its example inputs, by name where they are a dictionary:

    def lenet():
        return LeNet().eval(), {"image": torch.zeros(1, 1, 28, 28)}
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from .errors import Error

_ACCEPTED = "accepted is FILE.py:FUNCTION, whose result is (module, inputs)"


@dataclass(frozen=True)
class ModuleFile:
    module: torch.nn.Module
    inputs: tuple
    names: list[str] | None  # of the inputs
    results: tuple[str, ...] = ()  # names of the first results


def is_module_file(text: str) -> bool:
    return text.partition(":")[0].endswith(".py")


def load(text: str, seed: int) -> ModuleFile:
    """seed: of random weights."""
    path, _, name = text.partition(":")
    if not Path(path).is_file():
        raise Error(f"{path}: there is no such file", _ACCEPTED)
    function = getattr(_run(Path(path)), name or "-", None)
    if not callable(function):
        raise Error(f"{path}: there is no function '{name}'", _ACCEPTED)
    torch.manual_seed(seed)
    found = function()
    if not isinstance(found, tuple) or len(found) != 2:
        raise Error(f"{text} returns {type(found).__name__}, not two values", _ACCEPTED)
    module, inputs = found
    if isinstance(inputs, dict):
        return ModuleFile(module, tuple(inputs.values()), list(inputs))
    return ModuleFile(
        module, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), None
    )


def _run(path: Path):
    """The file as a module that can import its neighbours."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem], before = made, sys.modules.get(path.stem)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(made)
    except SyntaxError as error:
        raise Error(f"{path}:{error.lineno}: {error.msg}", "accepted is a Python file") from None
    finally:
        sys.path.pop(0)
        if before is not None:
            sys.modules[path.stem] = before
    return made
