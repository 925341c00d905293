"""How a design is called, kept beside it in call.json, so that another process calls it alike."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from torch.utils import _pytree

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
    (folder / FILE).write_text(json.dumps(found) + "\n")
    if saved.buffers:
        from .checkpoints.weights import write

        write(folder / BUFFERS, saved.buffers, saved.buffers, saved.buffers.__getitem__)


def load(folder: Path) -> Saved:
    """How the design in the folder is called; of one that `stc compile` made: tensors in the order
    of its manifest.
    """
    manifest = _manifest(folder)
    if not (folder / FILE).is_file():
        phases = {each.get("name", ""): each for each in manifest.get("phases", [manifest])}
        return Saved({name: _sides(each) for name, each in phases.items()}, None, {})
    found = json.loads((folder / FILE).read_text())
    shapes = _shapes(manifest)
    phases = {
        name: tuple([_signature(each, shapes) for each in side] for side in sides)
        for name, sides in found["phases"].items()
    }
    buffers = {}
    if (folder / BUFFERS).is_file():
        from safetensors.torch import load_file

        buffers = load_file(folder / BUFFERS)
    return Saved(phases, _call(found["call"]), buffers)


def _manifest(folder: Path) -> dict:
    accepted = "accepted is the folder that `compile` wrote"
    if not folder.is_dir():
        raise Error(f"{folder}: there is no such folder", accepted)
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["design"], manifest["files"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Error(f"{folder}: not a design", accepted) from None
    return manifest


def _sides(phase: dict) -> tuple[list[Signature], list[Signature]]:
    def of(item: dict) -> Signature:
        kind = ELEMENTS[item["dtype"]]
        return Signature(Port(item["name"], item["role"]), tuple(item["shape"]), kind, kind)

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


def _signature(data: dict, shapes: dict[str, tuple[int, ...]]) -> Signature:
    port = Port(**data["port"])
    if port.dims is not None:
        port = Port(**{**data["port"], "dims": tuple(port.dims)})
    kinds = (getattr(torch, data[name]) for name in ("dtype", "stored"))
    shape = shapes.get(port.name, tuple(data["shape"]))
    return Signature(port, shape, *kinds)


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
