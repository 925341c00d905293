"""Decomposes ops of an exported graph into ops that torch-mlir lowers well.

A deep model repeats a few dozen operations in every layer. PyTorch would trace the whole graph
again to decompose it. Here each distinct operation is traced once, all of them in one small
program, and the result replaces every equal operation. Two operations are equal if op, constants,
and shape, strides, type, device and requires_grad of all tensors are equal.
"""

import math
import operator

import torch
from torch.utils import _pytree

from . import (
    elementwise_decompositions,
    number_decompositions,
    operator_decompositions,
    recurrences,
    sort_scatter_decompositions,
    spatial_decompositions,
    special_functions,
)
from .narrow_integers import called

_ASSERTIONS = {torch.ops.aten._assert_tensor_metadata.default, torch.ops.aten._assert_async.msg}


def table() -> dict:
    """The decompositions of torch-mlir, and those for ops that torch-mlir leaves without a
    lowering.
    """
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    found = {
        **get_decomposition_table(),
        **operator_decompositions.table(),
        **elementwise_decompositions.table(),
        **number_decompositions.table(),
        **spatial_decompositions.table(),
        **special_functions.table(),
        **sort_scatter_decompositions.table(),
        **recurrences.table(),
        torch.ops.aten.cumsum.default: _cumsum,
        torch.ops.aten.gelu.default: _gelu,
        torch.ops.aten.constant_pad_nd.default: _pad,
        torch.ops.aten.as_strided.default: _as_strided,
        torch.ops.aten.rms_norm.default: _rms_norm,
    }
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):  # once transformers is imported
        found[torch.ops.transformers.grouped_mm_fallback.default] = _grouped_products
    return number_decompositions.rounded_once(found)


def _grouped_products(x, weights, ends):
    """Rows of x, sorted by group, times the matrix of each row's group: only these are read."""
    rows = torch.arange(x.shape[0], device=x.device)
    group = (rows.unsqueeze(1) >= ends).sum(1)
    found = torch.bmm(x.unsqueeze(1), weights[group.clamp(max=len(weights) - 1)]).squeeze(1)
    return torch.where((group < len(weights)).unsqueeze(1), found, torch.zeros_like(found))


def run(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Equivalent to program.run_decompositions(table()), without assertions; changes `program`."""
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in _ASSERTIONS:
            graph.erase_node(node)
    _keep_comparisons_with_itself(graph)
    _give_numbers_a_dim(graph)
    calls = {
        node: _key(node)
        for node in graph.nodes
        if node.op == "call_function" and node.target is not operator.getitem
    }
    parts = _trace_parts(dict(zip(calls.values(), calls))) if None not in calls.values() else None
    if parts is None:
        return program.run_decompositions(table())
    for node, key in calls.items():
        _replace(graph, node, parts[key])
    results = _pytree.tree_leaves(list(graph.output_node().args))
    for result, spec in zip(results, program.graph_signature.output_specs):
        if isinstance(result, torch.fx.Node):
            spec.arg.name = result.name
    return program


def _keep_comparisons_with_itself(graph) -> None:
    """a == a as not (a != a): torch-mlir takes the former for true, NaN or not."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.aten.eq.Tensor:
            if node.args[0] is node.args[1]:
                with graph.inserting_before(node):
                    apart = graph.call_function(torch.ops.aten.ne.Tensor, node.args)
                    found = graph.call_function(torch.ops.aten.logical_not.default, (apart,))
                for each in (apart, found):
                    each.meta = dict(node.meta)
                node.replace_all_uses_with(found)
                graph.erase_node(node)


def _give_numbers_a_dim(graph) -> None:
    """An op along a dim takes a tensor without dims as one of a single element."""
    for node in list(graph.nodes):
        if not _is_along_a_dim_of_none(node):
            continue
        with graph.inserting_before(node):
            args = torch.fx.node.map_arg(
                node.args,
                lambda each, node=node: each if each.meta["val"].ndim else _shaped(each, [1], node),
            )
            fresh = called(graph, node.target, args, node.kwargs, node)
        if isinstance(node.meta["val"], torch.Tensor):
            _replace_by_shaped(graph, node, fresh)
            continue
        for user in list(node.users):
            with graph.inserting_before(user):
                part = called(graph, operator.getitem, (fresh, user.args[1]), {}, node)
            _replace_by_shaped(graph, user, part)
        graph.erase_node(node)


def _is_along_a_dim_of_none(node) -> bool:
    target = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload):
        return False
    first = node.args[0] if node.args else None
    value = first.meta.get("val") if isinstance(first, torch.fx.Node) else None
    return (
        isinstance(value, torch.Tensor)
        and not value.ndim
        and not target._schema.is_mutable
        and any(each.name == "dim" for each in target._schema.arguments)
    )


def _shaped(node, shape, like):
    return called(node.graph, torch.ops.aten.reshape.default, (node, list(shape)), {}, like)


def _replace_by_shaped(graph, node, fresh) -> None:
    with graph.inserting_before(node):
        found = _shaped(fresh, node.meta["val"].shape, node)
    node.replace_all_uses_with(found)
    graph.erase_node(node)


def _key(node):
    """A key that is equal for operations with equal decompositions; None: not decomposable
    alone.
    """
    values = _pytree.tree_leaves(
        [node.meta.get("val"), *(argument.meta.get("val") for argument in node.all_input_nodes)]
    )
    if (
        not isinstance(node.target, torch._ops.OpOverload)
        or node.target._schema.is_mutable
        or not all(isinstance(value, torch.Tensor) for value in values)
    ):
        return None
    leaves, structure = _pytree.tree_flatten((node.args, node.kwargs))
    return node.target, structure, tuple(map(_described, leaves))


def _described(leaf) -> str:
    if not isinstance(leaf, torch.fx.Node):
        return repr(leaf)
    return " ".join(
        f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device} {value.requires_grad}"
        for value in _pytree.tree_leaves(leaf.meta["val"])
    )


class _BatchedOps(torch.nn.Module):
    """All operations side by side, each on tensors of its own."""

    def __init__(self, nodes):
        super().__init__()
        self._nodes = nodes

    def forward(self, tensors: list):
        return [
            _pytree.tree_leaves(_apply(node, iter(own))) for node, own in zip(self._nodes, tensors)
        ]


def _apply(node, tensors):
    leaves, structure = _pytree.tree_flatten((node.args, node.kwargs))
    args, kwargs = _pytree.tree_unflatten(
        [next(tensors) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves], structure
    )
    return node.target(*args, **kwargs)


def _operands(node) -> list:
    """Operands in the order of the arguments, with repetitions."""
    return [
        leaf
        for leaf in _pytree.tree_leaves((node.args, node.kwargs))
        if isinstance(leaf, torch.fx.Node)
    ]


def _fresh_tensor(value):
    """A new tensor of that shape and type, because tracing identifies tensors by identity."""
    with value.fake_mode:
        return torch.empty_strided(
            value.shape,
            value.stride(),
            dtype=value.dtype,
            device=value.device,
            requires_grad=value.requires_grad,
        )


def _trace_parts(nodes: dict) -> dict | None:
    """The decomposition of each key: placeholders, nodes in order, results. None: one of
    them has constants beside the graph, or writes.
    """
    tensors = [
        [_fresh_tensor(operand.meta["val"]) for operand in _operands(node)]
        for node in nodes.values()
    ]
    program = torch.export.export(_BatchedOps(list(nodes.values())), (tensors,)).run_decompositions(
        table()
    )
    if program.graph_signature.user_inputs_to_mutate:
        return None
    inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
    results = _pytree.tree_leaves(list(program.graph.output_node().args))
    if len(inputs) != sum(map(len, tensors)) or any(
        node.op == "get_attr" for node in program.graph.nodes
    ):
        return None
    places, inputs, results = (
        {node: at for at, node in enumerate(program.graph.nodes)},
        iter(inputs),
        iter(results),
    )
    parts = {}
    for (key, node), own in zip(nodes.items(), tensors):
        placeholders = [next(inputs) for _ in own]
        made = [next(results) for _ in _pytree.tree_leaves(node.meta["val"])]
        parts[key] = (
            placeholders,
            sorted(_nodes_between(made, set(placeholders)), key=places.__getitem__),
            made,
        )
    return parts


def _nodes_between(results: list, placeholders: set) -> set:
    """The nodes that compute the results from the placeholders."""
    found, left = set(), list(results)
    while left:
        node = left.pop()
        if node not in found and node not in placeholders:
            found.add(node)
            left += node.all_input_nodes
    return found


def _replace(graph, node, part) -> None:
    placeholders, inner, made = part
    stands = dict(zip(placeholders, _operands(node)))
    with graph.inserting_before(node):
        for each in inner:
            stands[each] = graph.node_copy(each, stands.__getitem__)
            stands[each].meta["stack_trace"] = node.meta.get("stack_trace")
    if isinstance(node.meta["val"], torch.Tensor):
        node.replace_all_uses_with(stands[made[0]])
    else:
        for user in list(node.users):
            user.replace_all_uses_with(stands[made[user.args[1]]])
            graph.erase_node(user)
    graph.erase_node(node)


def _gelu(x, *, approximate="none"):
    """The tanh form with all digits of sqrt(2 / pi): the lowering of torch-mlir uses 0.797724, a
    relative error of 2e-4.
    """
    if approximate == "none":
        return NotImplemented
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def _rms_norm(x, normalized_shape, weight=None, eps=None):
    """As PyTorch computes it: half types in f32, and a default epsilon. torch-mlir does neither."""
    wide = x if x.dtype == torch.float64 else x.float()
    mean = (wide * wide).mean(list(range(-len(normalized_shape), 0)), keepdim=True)
    found = wide * torch.rsqrt(mean + (torch.finfo(wide.dtype).eps if eps is None else eps))
    return (found if weight is None else found * weight).to(x.dtype)


def _as_strided(x, size, stride, storage_offset=None):
    """A reshape if the strides are contiguous, as PyTorch writes GroupNorm; else a gather with
    constant indices.
    """
    if not x.is_contiguous():
        return NotImplemented
    rows = [math.prod(size[dim + 1 :]) for dim in range(len(size))]
    if not storage_offset and math.prod(size) == x.numel() and list(stride) == rows:
        return x.reshape(size)
    places = torch.full((), storage_offset or 0)
    for extent, step in zip(size, stride):
        places = places.unsqueeze(-1) + torch.arange(extent) * step
    return x.flatten()[places]


def _pad(x, pad, value=0):
    """Applies negative padding as a slice first: MLIR treats a pad that keeps the shape, (1, -1),
    as a no-op.
    """
    if min(pad, default=0) >= 0:
        return NotImplemented
    shape = [extent + sum(pad[2 * (x.ndim - 1 - dim) :][:2]) for dim, extent in enumerate(x.shape)]
    for at, (low, high) in enumerate(zip(pad[::2], pad[1::2])):
        dim = x.ndim - 1 - at
        left = x.shape[dim] + min(low, 0) + min(high, 0)
        if left < 1:
            return x.new_full(shape, value)
        x = x.narrow(dim, max(-low, 0), left)
    return torch.ops.aten.constant_pad_nd(x, [max(width, 0) for width in pad], value)


def _cumsum(x, dim, *, dtype=None):
    """As a masked sum, because a scan is not a loop nest."""
    if x.ndim == 0:
        return x.to(dtype) if dtype else x.clone()
    dim %= x.ndim
    x = x.to(dtype or (x.dtype if x.dtype.is_floating_point else torch.int64))
    moved = x.movedim(dim, -1).unsqueeze(-2)
    at = torch.arange(x.shape[dim], device=x.device)
    seen = at.unsqueeze(0) <= at.unsqueeze(1)
    return (
        torch.where(seen, moved, torch.zeros((), dtype=x.dtype, device=x.device))
        .sum(-1, dtype=x.dtype)
        .movedim(-1, dim)
    )
