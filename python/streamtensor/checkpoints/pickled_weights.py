"""Weights in files of `torch.save`, pytorch_model.bin and its shards, of which only tensors are
read: torch's own reader of weights calls no function that a file names.

torchao's tensors are objects of classes of its own. Here classes of the same names that do nothing
hold their parts, which are given as its safetensors files have them.
"""

import contextlib
import json
import warnings
from pathlib import Path

import torch

from ..errors import Error

_ACCEPTED = "accepted are a dictionary of tensors as torch.save writes it, and safetensors"
_OF_TORCHAO = "torchao."


class Pickles:
    """The tensors of such files, which are mapped into memory."""

    def __init__(self, files: list[Path]):
        self._tensors, self._said = {}, {}
        for path in files:
            for name, value in _loaded(path).items():
                self._add(path, name, value)

    def _add(self, path: Path, name: str, value) -> None:
        if not isinstance(value, torch.Tensor):
            return  # a number or a text beside the weights
        kind = type(value)
        if not kind.__module__.startswith(_OF_TORCHAO):
            self._tensors[name] = value.detach()
            return
        base, _, end = name.rpartition(".")
        parts = {part: each for part, each in vars(value).items() if torch.is_tensor(each)}
        if not parts or end != "weight":
            raise Error(f"{path}: '{name}' is torchao's {kind.__name__} without parts", _ACCEPTED)
        self._tensors |= {f"{base}._weight_{part}": each for part, each in parts.items()}
        self._said[name] = json.dumps({"_type": kind.__name__, "_data": {"shape": [*value.shape]}})

    def shapes(self) -> dict[str, list[int]]:
        return {name: [*value.shape] for name, value in self._tensors.items()}

    def metadata(self) -> dict[str, str]:
        """What torchao's tensors are."""
        return self._said

    def read(self, key: str) -> torch.Tensor:
        return self._tensors[key]


def _loaded(path: Path) -> dict:
    known = torch.serialization.safe_globals(_stand_ins(path))
    try:
        with known, warnings.catch_warnings(action="ignore"):
            try:
                found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except RuntimeError:  # a file of PyTorch before 1.6 cannot be mapped
                found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise Error(f"{path}: not a file of weights that can be read", _ACCEPTED) from error
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise Error(f"{path}: holds {type(found).__name__}, no tensors by name", _ACCEPTED)
    return found


def _stand_ins(path: Path) -> list:
    """Classes for torchao's, with their names; any other that is not torch's own is an error."""
    named = []
    with contextlib.suppress(Exception):  # what it cannot list, the reader refuses by itself
        named = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    others = [name for name in named if not name.startswith(_OF_TORCHAO)]
    if others:
        raise Error(f"{path}: holds objects of '{others[0]}', which could do anything", _ACCEPTED)
    return [(_stand_in(name), name) for name in named]


def _stand_in(name: str) -> type:
    module, _, title = name.rpartition(".")
    base = torch.Tensor if title.endswith("Tensor") else _Object
    entries = dict(__module__=module)
    if base is torch.Tensor:
        entries["__torch_dispatch__"] = classmethod(_refuse)
    return type(title, (base,), entries)


class _Object:
    """How torchao would quantize activations: of no use here."""

    def __new__(cls, *_, **__):
        return object.__new__(cls)

    def __init__(self, *_, **__):
        pass


def _refuse(cls, function, *_):
    raise Error(f"torchao's {cls.__name__} is no tensor that {function} takes")
