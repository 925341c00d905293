"""Rewrites operations on integers of 8 and 16 bits to 32 bits and back: torch-mlir ends the process
on some of them, and reads unsigned ones as signed.

    mul(x: int8, 2)  ->  _to_copy(mul(_to_copy(x, int32), 2), int8)

The bits are the same, because wrapping to fewer bits commutes with sums and products, and no other
operation leaves 32 bits.

Integers that a module returns as f64 stay integers: a design computes f64 as f32, and its caller
converts them.
"""

import operator

import torch
from torch.utils import _pytree

_aten = torch.ops.aten
_NARROW = (torch.int8, torch.uint8, torch.int16)
_WIDE = torch.int32
_MOVING = {  # ops that only move elements, or convert them
    getattr(_aten, name)
    for name in (
        "_to_copy to type_as view reshape _unsafe_view alias clone lift_fresh_copy lift_fresh "
        "detach detach_ contiguous permute transpose t expand expand_as slice select narrow "
        "unsqueeze squeeze flatten unflatten cat stack split split_with_sizes chunk unbind "
        "movedim swapaxes unfold view_as repeat"
    ).split()
}
CONVERSIONS = {_aten._to_copy.default, torch.ops.prims.convert_element_type.default}
_JOINING = {_aten.cat, _aten.stack}
_COMPOSED = {_aten.scatter_reduce, _aten.index_reduce}  # the mean divides a sum that has wrapped
_GATHERS = {_aten.index, _aten.index_select, _aten.embedding}
_OF_BOOLS = {  # ops on bools that torch-mlir has for numbers only
    getattr(_aten, name)
    for name in (
        "bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ add mul maximum minimum max min "
        "amax amin sort topk prod cumsum flip lt le gt ge"
    ).split()
}
# of an integer that is returned as f64, its type in the design, by its name in MLIR
STORED = {"i64": torch.int64, "i32": torch.int32}
_VIEWS = {
    _aten.view.default,
    _aten.permute.default,
    _aten.expand.default,
    _aten.unsqueeze.default,
    _aten.squeeze.dims,
    _aten.slice.Tensor,
    _aten.select.int,
    _aten.clone.default,
}
_WITH_NUMBERS = ("Scalar", "Scalar_Tensor")


def widen(graph: torch.fx.Graph) -> None:
    """Rewrites the operations of the graph, in place."""
    widened = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            if node.target in CONVERSIONS:
                _convert_by_steps(graph, node)
            elif node.target.overloadpacket in _JOINING:
                _join_one_type(graph, node)
            elif _is_narrow(node):
                _widen(graph, node, widened)


def _tensors(node) -> list[torch.Tensor]:
    leaves = _pytree.tree_leaves(
        [node.meta.get("val"), *(each.meta.get("val") for each in node.all_input_nodes)]
    )
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def _is_narrow(node) -> bool:
    packet, types = node.target.overloadpacket, {each.dtype for each in _tensors(node)}
    if node.target._schema.is_mutable or node.target.namespace != "aten":
        return False
    if packet in _MOVING or packet in _COMPOSED:
        return False
    if types & set(_NARROW):
        return node.all_input_nodes != [] and not _reads_memory(node)
    return types == {torch.bool} and (
        packet in _OF_BOOLS
        and (
            not packet.__name__.startswith(("bitwise", "__"))
            or node.target._overloadname in _WITH_NUMBERS
        )
    )


def _reads_memory(node) -> bool:
    """Rows are gathered from memory as they are stored."""
    return node.target.overloadpacket in _GATHERS and node.args[0].op == "placeholder"


def called(graph, target, args: tuple, kwargs: dict, like):
    """A new node at the graph's current place, with the value that `target` gives."""
    node = graph.call_function(target, args, kwargs)
    values, named = torch.fx.node.map_arg((args, kwargs), lambda each: each.meta["val"])
    with like.meta["val"].fake_mode if isinstance(like.meta["val"], torch.Tensor) else _mode(like):
        node.meta["val"] = target(*values, **named)
    node.meta["stack_trace"] = like.meta.get("stack_trace")
    return node


def _mode(node):
    return _tensors(node)[0].fake_mode


def _cast(graph, node, dtype, like):
    return called(graph, _aten._to_copy.default, (node,), {"dtype": dtype}, like)


def _with_constant(graph, operation, node, number: int):
    constant = called(
        graph, _aten.full.default, ([], number), {"dtype": node.meta["val"].dtype}, node
    )
    return called(graph, operation, (node, constant), {}, node)


def _convert_by_steps(graph, node) -> None:
    """Real numbers become narrow integers by way of wide ones, of which the low bits are taken, as
    PyTorch does. torch-mlir would make one conversion of two that are not kept apart.
    """
    source, dtype = node.args[0], (*node.args[1:], node.kwargs.get("dtype"))[0]
    is_real = source.meta["val"].dtype.is_floating_point
    given = source.meta["val"].dtype
    is_made = is_real or (source.target in CONVERSIONS and given != torch.bool)
    if dtype not in _NARROW or not is_made:
        return
    kept = given if given in _NARROW and given.itemsize < dtype.itemsize else dtype
    bits = torch.iinfo(kept).bits
    with graph.inserting_before(node):
        wide = _cast(graph, source, _WIDE, node) if is_real or given in _NARROW else source
        low = _with_constant(graph, _aten.bitwise_and.Tensor, wide, (1 << bits) - 1)
        if kept.is_signed:
            sign = 1 << (bits - 1)
            low = _with_constant(graph, _aten.bitwise_xor.Tensor, low, sign)
            low = _with_constant(graph, _aten.sub.Tensor, low, sign)
        node.replace_input_with(source, low)


def _join_one_type(graph, node) -> None:
    """Converts what is joined, since torch-mlir reads unsigned parts of another type as signed;
    parts without elements are left out.
    """
    dtype = node.meta["val"].dtype
    filled = [part for part in node.args[0] if part.meta["val"].numel()]
    if node.target.overloadpacket is _aten.cat and filled:
        node.args = (filled, *node.args[1:])
    with graph.inserting_before(node):
        for part in dict.fromkeys(node.args[0]):
            if part.meta["val"].dtype != dtype:
                node.replace_input_with(part, _cast(graph, part, dtype, node))


def _widen(graph, node, widened: dict) -> None:
    kinds = (*_NARROW, torch.bool) if node.target.overloadpacket in _OF_BOOLS else _NARROW

    def wide(leaf):
        if isinstance(leaf, torch.dtype):
            return _WIDE if leaf in _NARROW else leaf
        if not isinstance(leaf, torch.fx.Node) or leaf.meta["val"].dtype not in kinds:
            return leaf
        if leaf not in widened:
            with graph.inserting_after(leaf):
                widened[leaf] = _cast(graph, leaf, _WIDE, leaf)
        return widened[leaf]

    args, kwargs = _wrapped_numbers(node)
    leaves, structure = _pytree.tree_flatten((args, kwargs))
    args, kwargs = _pytree.tree_unflatten([wide(leaf) for leaf in leaves], structure)
    with graph.inserting_before(node):
        fresh = called(graph, node.target, args, kwargs, node)
    if isinstance(node.meta["val"], torch.Tensor):
        _replace(graph, node, fresh)
        return
    for user in list(node.users):
        with graph.inserting_before(user):
            part = called(graph, operator.getitem, (fresh, user.args[1]), {}, node)
        _replace(graph, user, part)
    graph.erase_node(node)


def _wrapped_numbers(node) -> tuple[tuple, dict]:
    """The arguments, with the numbers among the operands as PyTorch converts them to their type."""
    types = {each.meta["val"].dtype for each in node.all_input_nodes}
    dtype = next(iter(types)) if len(types) == 1 else None
    if dtype not in _NARROW:
        return node.args, node.kwargs
    operands = {
        each.name
        for each in node.target._schema.arguments
        if str(each.type) in ("number", "Tensor") and each.name != "alpha"
    }

    def wrapped(name, value):
        if name not in operands or type(value) is not int:
            return value
        return torch.tensor(value).to(dtype).item()

    names = [each.name for each in node.target._schema.arguments]
    return (
        tuple(map(wrapped, names, node.args)),
        {name: wrapped(name, value) for name, value in node.kwargs.items()},
    )


def _replace(graph, node, fresh) -> None:
    dtype = node.meta["val"].dtype
    if fresh.meta["val"].dtype != dtype:
        with graph.inserting_before(node):
            fresh = _cast(graph, fresh, dtype, node)
    node.replace_all_uses_with(fresh)
    graph.erase_node(node)


def keep_results(program) -> list[torch.dtype]:
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
