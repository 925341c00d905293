"""The Python API: exports a module with example inputs to MLIR and compiles it to a design."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import torch

from . import core, graph
from .design import Design
from .errors import Error
from .weights import write


class Exported(NamedTuple):
    """The compiler's input for a module."""

    text: str  # linalg-on-tensors MLIR, the weights as arguments of @main
    weights: dict[str, torch.Tensor]  # those arguments by name, in their order


def export(
    module: torch.nn.Module, example_inputs, names=None, attributes: bool = True
) -> Exported:
    """Exports `module(*example_inputs)`. Inputs are called `names`, or arg0, arg1, ... where it is
    None.
    """
    lowered, tensors = _lower(module, example_inputs, names, attributes)
    return Exported(lowered.text, tensors)


def compile(
    module: torch.nn.Module,
    example_inputs,
    platform: str = "u55c",
    output=None,
    names=None,
    quant: str | None = None,
) -> Design:
    """Compiles `module(*example_inputs)` into the folder `output`.

    output: None for a temporary folder, removed when the design is closed. quant: as for `stc
    compile --quant`.
    """
    lowered, tensors = _lower(module, example_inputs, names, True)
    return build(lowered, tensors, platform, output, quant)


def build(
    lowered: graph.Lowered,
    tensors: dict[str, torch.Tensor],
    platform: str,
    output=None,
    quant: str | None = None,
) -> Design:
    """Compiles a lowered module; `tensors` holds the values of its weights."""
    keep = tempfile.TemporaryDirectory(prefix="streamtensor-") if output is None else None
    folder = Path(keep.name) / "design" if keep else Path(output)
    try:
        with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
            mlir, weights = Path(work) / "model.mlir", Path(work) / "weights.safetensors"
            mlir.write_text(lowered.text)
            write(weights, tensors, tensors, tensors.__getitem__)
            source = core.Source(mlir, lowered.origin)
            core.compile_design([source], weights, (platform, quant), folder)
        return Design(folder, lowered.inputs, lowered.results, keep=keep)
    except BaseException:
        if keep:
            keep.cleanup()
        raise


def _lower(
    module, example_inputs, names, attributes
) -> tuple[graph.Lowered, dict[str, torch.Tensor]]:
    inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    flat = torch.utils._pytree.tree_leaves(list(inputs))
    if not all(isinstance(value, torch.Tensor) for value in flat):
        raise Error(
            "an example input is not a tensor",
            "accepted are tensors, or lists and tuples of tensors",
        )
    names = [f"arg{i}" for i in range(len(flat))] if names is None else list(names)
    if len(names) != len(flat) or len(set(names)) != len(names):
        raise Error(
            f"{len(names)} names for {len(flat)} input tensors",
            "accepted is one distinct name for each tensor",
        )
    tensors = graph.named_tensors(module)
    ports = [graph.Port(name, "input") for name in names]
    lowered = graph.lower(module, inputs, ports, tensors, attributes=attributes)
    return lowered, {name: tensors[name] for name in lowered.weights}
