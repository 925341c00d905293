"""How a design is called, kept beside it in call.json, so that another process calls it alike."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from torch.utils import _pytree

from . import folder_file
from .call_form import HOLE, Arguments, Empty, Number, Results
from .errors import Error
from .lowering.graph import ELEMENTS, Port, Signature

FILE, BUFFERS = "call.json", "buffers.safetensors"
_NUMBERS = {kind.__name__: kind for kind in (bool, int, float, complex)}
_PLAIN = (bool, int, float, str, type(None))


class Call(NamedTuple):
    """How a module is called that became a design."""

    arguments: Arguments
    results: Results
    # inputs and buffers that the module writes: the result that holds the new value
    written: dict[str, str]


class Saved(NamedTuple):
    phases: dict[str, tuple[list[Signature], list[Signature]]]  # inputs and results, by name
    call: Call | None
    buffers: dict[str, torch.Tensor]


def save(folder: Path, saved: Saved) -> None:
    found = {
        "phases": {
            name: [[_signature_data(each) for each in side] for side in sides]
            for name, sides in saved.phases.items()
        },
        "call": _call_data(saved.call),
    }
    (folder / FILE).write_text(json.dumps({**found, "hash": _hash(found)}) + "\n")
    if saved.buffers:
        from .checkpoints.weights import write

        write(folder / BUFFERS, saved.buffers, saved.buffers, saved.buffers.__getitem__)


def load(folder: Path) -> Saved:
    """How the design in the folder is called; of one that `stc compile` made: tensors in the order
    of its manifest.
    """
    manifest = _manifest(folder)
    with folder_file.reading(folder / "manifest.json"):
        shapes = _shapes(manifest)
        phases = {each.get("name", ""): each for each in manifest.get("phases", [manifest])}
        sides = {name: _sides(each) for name, each in phases.items()}
    if not (folder / FILE).is_file():
        return Saved(sides, None, {})
    with folder_file.reading(folder / FILE):
        found = folder_file.read(folder / FILE)
        if found.pop("hash", None) != _hash(found):
            raise ValueError("it was changed, or another version wrote it")
        sides = {
            name: (_signatures(takes, shapes), _signatures(gives, shapes))
            for name, (takes, gives) in found["phases"].items()
        }
        call = _call(found["call"])
        if not sides:
            raise ValueError("no phase")
        _check_results(call, next(iter(sides.values()))[1])
    return Saved(sides, call, _buffers(folder / BUFFERS))


def _check_results(call: Call | None, gives: list[Signature]) -> None:
    """A call has as many results as the design gives, and its trees have a leaf at each end."""
    if call and any(len(each.leaves) != each.structure.num_leaves for each in call[:2]):
        raise ValueError("a call with other leaves than its trees have")
    given = sum(signature.port.role == "output" for signature in gives)
    if call and call.results.tensors + len(call.written) != given:
        raise ValueError(f"a call without the {given} results of the design")


def _hash(found: dict) -> str:
    return hashlib.blake2b(json.dumps(found).encode(), digest_size=32).hexdigest()


def _buffers(path: Path) -> dict[str, torch.Tensor]:
    if not path.is_file():
        return {}
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise Error(f"{path}: not the file that was written here: {error}") from None


def _manifest(folder: Path) -> dict:
    accepted = "accepted is the folder that `compile` wrote"
    if not folder.is_dir():
        raise Error(f"{folder}: there is no such folder", accepted)
    try:
        manifest = folder_file.read(folder / "manifest.json")
        manifest["design"], manifest["files"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise Error(f"{folder}: not a design", accepted) from None
    return manifest


def _sides(phase: dict) -> tuple[list[Signature], list[Signature]]:
    def of(item: dict) -> Signature:
        kind = ELEMENTS[item["dtype"]]
        port = folder_file.typed(Port(item["name"], item["role"]))
        return folder_file.typed(Signature(port, tuple(item["shape"]), kind, kind))

    inputs = [of(item) for item in phase["inputs"] if item["role"] != "weight"]
    return inputs, [of(item) for item in phase["outputs"]]


def _signature_data(signature: Signature) -> dict:
    return {
        "port": asdict(signature.port),
        "shape": signature.shape,
        "dtype": str(signature.dtype).removeprefix("torch."),
        "stored": str(signature.stored).removeprefix("torch."),
    }


def _shapes(manifest: dict) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs and results as the design has them; states differ by phase."""
    phases = manifest.get("phases", [manifest])
    items = [*phases[0]["inputs"], *phases[0]["outputs"]] if len(phases) == 1 else []
    return {
        item["name"]: tuple(item["shape"]) for item in items if item["role"] in ("input", "output")
    }


def _signatures(side: list[dict], shapes: dict[str, tuple[int, ...]]) -> list[Signature]:
    return [_signature(each, shapes) for each in side]


def _signature(data: dict, shapes: dict[str, tuple[int, ...]]) -> Signature:
    dims = data["port"].get("dims")
    port = Port(**{**data["port"], "dims": None if dims is None else tuple(dims)})
    kinds = (getattr(torch, data[name]) for name in ("dtype", "stored"))
    shape = shapes.get(port.name, tuple(data["shape"]))
    return folder_file.typed(Signature(folder_file.typed(port), shape, *kinds))


def _call_data(call: Call | None) -> dict | None:
    """None: there is none, or one with values or types of the user's own, which a file cannot
    hold.
    """
    if call is None:
        return None
    try:
        return {
            "arguments": _tree_data(call.arguments),
            "results": _tree_data(call.results),
            "written": call.written,
        }
    except (NotImplementedError, TypeError, ValueError):
        return None


def _tree_data(tree: Arguments | Results) -> dict:
    leaves = [_leaf_data(leaf) for leaf in tree.leaves]
    return {"leaves": leaves, "structure": _pytree.treespec_dumps(tree.structure)}


def _leaf_data(leaf) -> dict:
    if leaf is HOLE:
        return {}
    if isinstance(leaf, Number):
        return {"number": leaf.type.__name__}
    if isinstance(leaf, Empty):
        return {"empty": leaf.shape, "dtype": str(leaf.dtype).removeprefix("torch.")}
    if not isinstance(leaf, _PLAIN):
        raise TypeError(type(leaf).__name__)
    return {"value": leaf}


def _leaf(data: dict):
    if "number" in data:
        return Number(_NUMBERS[data["number"]])
    if "empty" in data:
        return Empty(tuple(data["empty"]), getattr(torch, data["dtype"]))
    return data.get("value") if "value" in data else HOLE


def _call(data: dict | None) -> Call | None:
    if data is None:
        return None
    arguments, results = (
        (
            tuple(_leaf(leaf) for leaf in data[name]["leaves"]),
            _pytree.treespec_loads(data[name]["structure"]),
        )
        for name in ("arguments", "results")
    )
    return Call(Arguments(*arguments), Results(*results), data["written"])
