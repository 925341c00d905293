"""The Python API: any module with example inputs -> MLIR text and weights -> a design."""
from typing import NamedTuple

import torch

from . import graph
from .errors import Error


class Exported(NamedTuple):
    """What the compiler needs of a module."""
    text: str                          # linalg-on-tensors MLIR, the weights as arguments of @main
    weights: dict[str, torch.Tensor]   # those arguments by name, in their order


def export(module: torch.nn.Module, example_inputs, names=None, attributes: bool = True) -> Exported:
    """Exports `module(*example_inputs)`. Inputs are called `names`, or arg0, arg1, ... where it is None."""
    inputs = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    flat = torch.utils._pytree.tree_leaves(list(inputs))
    if not all(isinstance(value, torch.Tensor) for value in flat):
        raise Error("an example input is not a tensor", "accepted are tensors, or lists and tuples of tensors")
    names = [f"arg{i}" for i in range(len(flat))] if names is None else list(names)
    if len(names) != len(flat) or len(set(names)) != len(names):
        raise Error(f"{len(names)} names for {len(flat)} input tensors", "accepted is one distinct name for each tensor")
    tensors = graph.named_tensors(module)
    text, used = graph.lower(module, inputs, [graph.Port(name, "input") for name in names], tensors,
                             attributes=attributes)
    return Exported(text, {name: tensors[name] for name in used})
