"""Folds constants of an exported graph: computes every value that depends on no input.

The attention masks and positions of a Hugging Face model that is called as `model(ids)` are such
values.
"""

import torch

from . import gather_rewrites
from .narrow_integers import called

# values that depend on the extents of an argument alone, with the number that fills them
_FILLED = {
    torch.ops.aten.zeros_like.default: lambda node: 0,
    torch.ops.aten.ones_like.default: lambda node: 1,
    torch.ops.aten.full_like.default: lambda node: node.args[1],
}
MAX_FOLDED_BYTES = 1 << 24  # maximum bytes of one folded value
# a value of more elements is not folded if it has so many times those that it is made of, as a mask
# of two counters: computing it takes less than reading it
EXPANDED_LEAST, EXPANSION = 1 << 16, 16
_READABLE = {
    torch.bfloat16: torch.float32,  # torch-mlir needs an extra package to read it
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
}
_EMPTY = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.empty_permuted.default,
    torch.ops.aten.new_empty.default,
}


def fold_constants(program: torch.export.ExportedProgram) -> None:
    """Replaces every value that depends on no argument by a constant, in place."""
    graph, module = program.graph_module.graph, program.graph_module
    values = _lifted(program)
    for node in list(graph.nodes):
        if _can_fold(node, values):
            values[node] = _evaluate(node, values)
    gather_rewrites.rewrite(graph, values)
    of_nothing = _made_of_nothing(values)
    for node, value in values.items():
        users = [
            user
            for user in node.users
            if user not in values
            and (user.op == "call_function" or node in of_nothing or _is_filled_bytes(value))
        ]
        if node.op == "call_function" and users and isinstance(value, torch.Tensor):
            for (
                user
            ) in users:  # one node per user: the importer reads the node of an attribute once
                user.replace_input_with(node, _constant(graph, module, node, value))
    graph.eliminate_dead_code()


def _made_of_nothing(values: dict) -> set:
    """Those that tensors without elements go into: a design has no such tensors."""
    found = set()
    for node in values:
        if _has_no_elements(node) or any(each in found for each in node.all_input_nodes):
            found.add(node)
    return found


def _lifted(program) -> dict:
    """The placeholders of constants, and of tensors without elements, with their values."""
    kind = torch.export.graph_signature.InputKind.CONSTANT_TENSOR
    specs = {
        spec.arg.name: spec.target
        for spec in program.graph_signature.input_specs
        if spec.kind == kind
    }
    held = {
        node: program.constants[specs[node.name]]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in specs
    }
    empty = {
        node: _empty_like(node)
        for node in program.graph.nodes
        if node.op == "placeholder" and _has_no_elements(node)
    }
    return empty | {
        node: value
        for node, value in held.items()
        if isinstance(value, torch.Tensor) and not value.is_meta
    }


def _has_no_elements(node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.numel() == 0


def _empty_like(node) -> torch.Tensor:
    value = node.meta["val"]
    return torch.empty(value.shape, dtype=value.dtype)


def _can_fold(node, values: dict) -> bool:
    if node.op != "call_function" or "loop" in node.meta:
        return False
    if _has_no_elements(node):
        return True
    filled = node.target in _FILLED and not isinstance(_FILLED[node.target](node), torch.fx.Node)
    if not filled and any(argument not in values for argument in node.all_input_nodes):
        return False
    found = [
        value
        for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))
        if isinstance(value, torch.Tensor)
    ]
    if any(value.numel() * value.element_size() > MAX_FOLDED_BYTES for value in found):
        return False
    if not filled and _expands(node, found, values):
        return False
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.target.__name__ == "getitem"
    return (
        not node.target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in node.target.tags
    )


def _expands(node, found: list[torch.Tensor], values: dict) -> bool:
    made_of = sum(values[argument].numel() for argument in node.all_input_nodes)
    return any(
        value.numel() > max(EXPANDED_LEAST, EXPANSION * made_of) for value in found
    ) and bool(made_of)


def _evaluate(node, values: dict):
    if _has_no_elements(node):
        return _empty_like(node)
    if node.target in _FILLED and node.args[0] not in values:
        like = node.meta["val"]
        return torch.full(like.shape, _FILLED[node.target](node), dtype=like.dtype)
    arguments = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    options = {
        name: torch.device("cpu") if name == "device" else value
        for name, value in arguments[1].items()
    }
    with torch.no_grad():
        value = node.target(*arguments[0], **options)
    return value.zero_() if node.target in _EMPTY else value  # deterministic text


def _step(value: torch.Tensor) -> int | None:
    """The difference of neighbors if the value is a vector of evenly spaced integers, else None."""
    if (
        value.dtype not in (torch.int64, torch.int32)
        or value.numel() < 2
        or max(value.shape) != value.numel()
    ):
        return None
    numbers = value.flatten()
    step = int(numbers[1] - numbers[0])
    return step if step and bool((numbers[1:] - numbers[:-1] == step).all()) else None


def _arange_node(graph, node, value: torch.Tensor, step: int):
    """An arange node for evenly spaced integers, so that they need no memory."""
    first, count = int(value.flatten()[0]), value.numel()
    fresh = graph.call_function(
        torch.ops.aten.arange.start_step,
        (first, first + count * step, step),
        {"dtype": value.dtype, "device": torch.device("cpu"), "pin_memory": False},
    )
    fresh.meta = {"val": node.meta["val"].reshape(-1)}
    for dim in (dim for dim, extent in enumerate(value.shape) if extent == 1):
        with graph.inserting_after(fresh):
            wide = graph.call_function(torch.ops.aten.unsqueeze.default, (fresh, dim))
        wide.meta = {"val": fresh.meta["val"].unsqueeze(dim)}
        fresh = wide
    return fresh


def _is_filled(value: torch.Tensor) -> bool:
    return value.numel() > 0 and bool((value == value.flatten()[0]).all())


def _is_filled_bytes(value) -> bool:
    is_bytes = isinstance(value, torch.Tensor) and value.dtype == torch.uint8
    return is_bytes and value.ndim > 0 and _is_filled(value)


def _full_node(graph, node, value: torch.Tensor):
    """A node of equal elements. torch-mlir does not cast such a constant to unsigned bytes: these
    are computed from counters.
    """
    number, shape = value.flatten()[0].item(), list(value.shape)
    options = {"dtype": value.dtype, "device": torch.device("cpu"), "pin_memory": False}
    if node.meta["val"].dtype != torch.uint8:
        return graph.call_function(torch.ops.aten.full.default, (shape, number), options)
    fresh = called(graph, torch.ops.aten.arange.start_step, (0, value.numel(), 1), options, node)
    for target, argument in (
        (torch.ops.aten.mul.Scalar, 0),
        (torch.ops.aten.add.Scalar, number),
        (torch.ops.aten.reshape.default, shape),
    ):
        with graph.inserting_after(fresh):
            fresh = called(graph, target, (fresh, argument), {}, node)
    return fresh


def _constant(graph, module, node, value: torch.Tensor):
    """A node with that value: `full` if all elements are equal, `arange` if evenly spaced, else a
    tensor attribute. Types that torch-mlir cannot read as constants are cast from others.
    """
    dtype = value.dtype
    value = value.to(_READABLE.get(dtype, dtype))
    with graph.inserting_after(node):
        step = _step(value)
        if value.ndim and _is_filled(value):
            fresh = _full_node(graph, node, value)
        elif step:
            fresh = _arange_node(graph, node, value, step)
        else:
            name = f"_folded_{node.name}"
            module.register_buffer(name, value.contiguous(), persistent=False)
            fresh = graph.get_attr(name)
    if value.dtype != dtype:
        fresh.meta = {"val": node.meta["val"].to(value.dtype)}
        with graph.inserting_after(fresh):
            fresh = graph.call_function(torch.ops.aten._to_copy.default, (fresh,), {"dtype": dtype})
    fresh.meta = dict(node.meta)
    return fresh
