"""Integers that a module returns as f64: the design gives them as integers, since it computes f64
as f32, and its caller converts them.
"""

import torch

from .narrow_integers import CONVERSIONS

# of an integer that is returned as f64, its type in the design, by its name in MLIR
STORED = {"i64": torch.int64, "i32": torch.int32}
_VIEWS = {
    torch.ops.aten.view.default,
    torch.ops.aten.permute.default,
    torch.ops.aten.expand.default,
    torch.ops.aten.unsqueeze.default,
    torch.ops.aten.squeeze.dims,
    torch.ops.aten.slice.Tensor,
    torch.ops.aten.select.int,
    torch.ops.aten.clone.default,
}


def keep(program) -> list[torch.dtype]:
    """Takes the conversions to f64 off the program's results; returns the types that the results
    had.
    """
    output = program.graph.output_node()
    nodes = output.args[0]
    types = [node.meta["val"].dtype for node in nodes]
    with program.graph.inserting_before(output):
        output.args = (tuple(_unconverted(node) or node for node in nodes),)
    for node, spec in zip(output.args[0], program.graph_signature.output_specs):
        spec.arg = type(spec.arg)(name=node.name)
    program.graph.eliminate_dead_code()
    return types


def _unconverted(node):
    """The same numbers as integers, if the node converts integers to f64; else None."""
    if node.meta["val"].dtype != torch.float64 or not node.args:
        return None
    source = node.args[0]
    if node.target in CONVERSIONS:
        return source if source.meta["val"].dtype in STORED.values() else None
    inner = _unconverted(source) if node.target in _VIEWS else None
    if inner is None:
        return None
    moved = node.graph.node_copy(node, lambda each: inner if each is source else each)
    moved.meta["val"] = node.meta["val"].to(inner.meta["val"].dtype)
    moved.meta.pop("tensor_meta", None)  # says the same of the type f64
    return moved
