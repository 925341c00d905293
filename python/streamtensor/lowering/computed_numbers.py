"""Rewrites numbers that a module reads from its tensors, x.item(), to tensors without dims."""

import contextlib
import math
import operator

import torch
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree

from ..errors import Error
from .narrow_integers import called

_aten = torch.ops.aten
_READS = {_aten.item.default, _aten._local_scalar_dense.default}
_CHECKS = {
    _aten._assert_scalar.default,
    _aten.sym_constrain_range.default,
    _aten.sym_constrain_range_for_size.default,
}
_HALVES = (torch.float16, torch.bfloat16)
_FUNCTIONS = {  # of Python's numbers
    operator.add: _aten.add.Tensor,
    operator.sub: _aten.sub.Tensor,
    operator.mul: _aten.mul.Tensor,
    operator.truediv: _aten.div.Tensor,
    operator.floordiv: _aten.floor_divide.default,
    operator.mod: _aten.remainder.Tensor,
    operator.pow: _aten.pow.Tensor_Tensor,
    operator.neg: _aten.neg.default,
    operator.lt: _aten.lt.Tensor,
    operator.le: _aten.le.Tensor,
    operator.gt: _aten.gt.Tensor,
    operator.ge: _aten.ge.Tensor,
    operator.eq: _aten.eq.Tensor,
    operator.ne: _aten.ne.Tensor,
    operator.and_: _aten.logical_and.default,
    operator.or_: _aten.logical_or.default,
    abs: _aten.abs.default,
    math.sqrt: _aten.sqrt.default,
    math.floor: _aten.floor.default,
    math.ceil: _aten.ceil.default,
    torch.sym_max: _aten.maximum.default,
    torch.sym_min: _aten.minimum.default,
    torch.sym_not: _aten.logical_not.default,
    torch._sym_sqrt: _aten.sqrt.default,
}
_PLACED = {_aten.select.int, _aten.select_copy.int}
_PYTHON = {torch.SymFloat: float, torch.SymInt: int, torch.SymBool: bool}
_CASTS = {torch.sym_float: torch.float32, torch.sym_int: torch.int64}


def rewrite(program: torch.export.ExportedProgram) -> dict[int, type]:
    """Rewrites the program in place; returns the types of the results that are such numbers, by
    place.
    """
    tensors, graph = {}, program.graph
    kinds = {
        place: type(node.meta["val"])
        for place, node in enumerate(graph.output_node().args[0])
        if isinstance(node, torch.fx.Node) and not isinstance(node.meta["val"], torch.Tensor)
    }
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        with graph.inserting_before(node):
            found = _tensor_for(graph, node, tensors)
        if found is None:
            if node.target not in _CHECKS and any(each in tensors for each in node.all_input_nodes):
                raise Error(
                    f"{node.target} takes a number that the module computes",
                    "accepted is arithmetic with it; or leave item() away: tensors do the same",
                )
            continue
        if isinstance(node.meta.get("val"), torch.Tensor):
            node.replace_all_uses_with(found)
        else:
            tensors[node] = found
    for node in reversed(list(graph.nodes)):
        if node in tensors:
            node.replace_all_uses_with(tensors[node])
            graph.erase_node(node)
        elif node.target in _CHECKS or _is_replaced(node, tensors):
            graph.erase_node(node)
    for place in kinds:
        name = graph.output_node().args[0][place].name
        program.graph_signature.output_specs[place].arg = TensorArgument(name)
    return {place: _PYTHON[kind] for place, kind in kinds.items()}


def _is_replaced(node, tensors) -> bool:
    return (
        node.op == "call_function"
        and not node.users
        and any(each in tensors for each in node.all_input_nodes)
    )


def _tensor_for(graph, node, tensors: dict):
    if node.target in _READS:
        return _read(graph, node)
    if node.target in _CHECKS or not any(each in tensors for each in node.all_input_nodes):
        return None
    args, kwargs = torch.fx.node.map_arg(
        (node.args, node.kwargs), lambda each: tensors.get(each, each)
    )
    if node.target in _CASTS:
        return called(graph, _aten._to_copy.default, args, {"dtype": _CASTS[node.target]}, args[0])
    if node.target in _FUNCTIONS:
        like = next(each for each in args if isinstance(each, torch.fx.Node))
        numbers = [
            each
            if isinstance(each, torch.fx.Node)
            else called(graph, _aten.full.default, ([], each), {}, like)
            for each in args
        ]
        return called(graph, _FUNCTIONS[node.target], tuple(numbers), {}, like)
    if node.target in _PLACED and isinstance(args[-1], torch.fx.Node):
        return _selected(graph, *args)
    if node.target is _aten.arange.start and isinstance(node.meta["val"].shape[0], int):
        return _counted(graph, node, args[0])
    return _with_tensors(graph, node, args, kwargs)


def _selected(graph, source, dim: int, number):
    """The part of a tensor at a number, which counts from the end where it is negative."""
    extent = source.meta["val"].shape[dim]
    place = called(graph, _aten.remainder.Scalar, (number, extent), {}, source)
    place = called(graph, _aten.reshape.default, (place, [1]), {}, source)
    found = called(graph, _aten.index_select.default, (source, dim, place), {}, source)
    return called(graph, _aten.squeeze.dim, (found, dim), {}, source)


def _counted(graph, node, first):
    """So many numbers from a first one on."""
    value, like = node.meta["val"], node.args[0]
    kind = {"dtype": value.dtype, "device": value.device}
    numbers = called(graph, _aten.arange.default, (value.shape[0],), kind, like)
    found = called(graph, _aten.add.Tensor, (numbers, first), {}, like)
    return called(graph, _aten._to_copy.default, (found,), {"dtype": value.dtype}, like)


def _read(graph, node):
    """A copy, since the tensor may be written later."""
    found, value = node.args[0], node.args[0].meta["val"]
    if value.dtype in _HALVES:
        found = called(graph, _aten._to_copy.default, (found,), {"dtype": torch.float32}, found)
    else:
        found = called(graph, _aten.clone.default, (found,), {}, found)
    return called(graph, _aten.reshape.default, (found, []), {}, found) if value.ndim else found


def _with_tensors(graph, node, args, kwargs):
    """The overload of the op that takes a tensor in the number's place; None: there is none."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    like = next(
        each for each in _pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.fx.Node)
    )
    if node.target is _aten.full.default:
        dtype = node.meta["val"].dtype
        number = called(graph, _aten._to_copy.default, (args[1],), {"dtype": dtype}, like)
        return called(graph, _aten.expand.default, (number, args[0]), {}, like)
    if node.target is _aten.scalar_tensor.default:
        return called(
            graph, _aten._to_copy.default, args[:1], {"dtype": node.meta["val"].dtype}, like
        )
    packet = node.target.overloadpacket
    for overload in (node.target, *(getattr(packet, name) for name in packet.overloads())):
        if _takes(overload._schema, args, kwargs):
            with contextlib.suppress(Exception):  # how PyTorch says that it takes other arguments
                return called(graph, overload, args, kwargs, like)
    return None


def _takes(schema, args, kwargs) -> bool:
    types = {each.name: each.type.__str__() for each in schema.arguments}
    given = {**dict(zip(types, args)), **kwargs}
    return (
        len(args) <= len(types)
        and set(given) <= set(types)
        and all(
            "Tensor" in types[name]
            for name, value in given.items()
            if isinstance(value, torch.fx.Node)
        )
    )
