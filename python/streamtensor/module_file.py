"""Modules that a Python file makes: FILE.py:NAME on the command line, a module or a function.

The function returns the module and its example inputs, by name where they are a dictionary; or the
module alone, whose inputs are then told by --input:

    def lenet():
        return LeNet().eval(), {"image": torch.zeros(1, 1, 28, 28)}
"""

import importlib.util
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from .errors import Error
from .lowering.graph import ELEMENTS
from .options import nearest

_ACCEPTED = (
    "accepted is FILE.py:NAME: a module, or a function whose result is a module or (module, inputs)"
)
_INPUT_ACCEPTED = "accepted is a shape as 1x3x224x224, with a type as 1x128:i64, or FILE.npy"


@dataclass(frozen=True)
class ModuleFile:
    module: torch.nn.Module
    inputs: tuple
    names: list[str] | None  # of the inputs
    results: tuple[str, ...] = ()  # names of the first results


def is_module_file(text: str) -> bool:
    return text.partition(":")[0].endswith(".py")


def load(text: str, seed: int, given: Sequence[str] = ()) -> ModuleFile:
    """seed: of random weights and inputs. given: example inputs, as `example` reads them."""
    path, _, name = text.partition(":")
    if not Path(path).is_file():
        raise Error(f"{path}: there is no such file", _ACCEPTED)
    torch.manual_seed(seed)
    space = _run(Path(path))
    found = getattr(space, name or "-", None)
    if not callable(found):
        known = [each for each, value in vars(space).items() if callable(value)]
        near = f"the nearest is {nearest(name, known)}; " if name and known else ""
        raise Error(f"{path}: there is no function or module '{name}'", near + _ACCEPTED)
    if not isinstance(found, torch.nn.Module):
        torch.manual_seed(seed)
        found = found()
    if isinstance(found, torch.nn.Module):
        found = (found.eval(), None)
    if not isinstance(found, tuple) or len(found) != 2:
        raise Error(f"{text} returns {type(found).__name__}, not two values", _ACCEPTED)
    module, inputs = found
    if given:
        pairs = [example(each) for each in given]
        names = [name for name, _ in pairs]
        return ModuleFile(module, tuple(value for _, value in pairs), names if all(names) else None)
    if inputs is None:
        raise Error(
            f"{text} gives no example inputs",
            "--input 1x3x224x224, one for each; or a function that returns (module, inputs)",
        )
    if isinstance(inputs, dict):
        return ModuleFile(module, tuple(inputs.values()), list(inputs))
    return ModuleFile(
        module, tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), None
    )


def example(text: str) -> tuple[str, torch.Tensor]:
    """[NAME=]1x3x224x224[:f32], or [NAME=]FILE.npy: the name, "" for none, and an input."""
    name, _, value = text.rpartition("=")
    if value.endswith(".npy"):
        return name, _array(value)
    shape, _, kind = value.partition(":")
    if not re.fullmatch(r"[0-9]+(x[0-9]+)*", shape) or (kind or "f32") not in ELEMENTS:
        raise Error(f"--input '{text}' is no input", _INPUT_ACCEPTED)
    extents, dtype = [int(each) for each in shape.split("x")], ELEMENTS[kind or "f32"]
    if dtype.is_floating_point:
        return name, torch.randn(extents).to(dtype)
    return name, torch.zeros(extents, dtype=dtype)


def _array(path: str) -> torch.Tensor:
    import numpy

    try:
        return torch.from_numpy(numpy.load(path, allow_pickle=False))
    except OSError as error:
        raise Error(f"{path}: {error.strerror or error}", _INPUT_ACCEPTED) from None
    except (ValueError, TypeError):
        raise Error(f"{path}: not an array of numbers", _INPUT_ACCEPTED) from None


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
