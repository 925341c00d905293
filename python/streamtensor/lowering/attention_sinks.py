"""Rewrites a softmax over scores and a sink, whose own share is dropped, without their concat.

softmax(cat([scores, sink], -1), -1)[..., :keys]   ->   exp(scores - m) / (sum of exp(… - m))
"""

import torch

from .narrow_integers import called

_aten = torch.ops.aten
_MAXIMA = {_aten.max.dim, _aten.amax.default}


def rewrite(graph) -> None:
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is not _aten.softmax.int:
            continue
        dim = node.args[1] % max(node.meta["val"].dim(), 1)
        joined = _without_shift(node.args[0], dim)
        parts = _parts(joined, dim)
        kept = [user for user in node.users if parts and _is_first_part(user, parts[0], dim)]
        if kept and len(kept) == len(node.users):
            with graph.inserting_before(node):
                shares = _shares(graph, node, parts, dim)
            for user in kept:
                user.replace_all_uses_with(shares)
            for each in (*kept, node):
                graph.erase_node(each)


def _without_shift(node, dim: int):
    """What the largest number is subtracted from, which a softmax does not see."""
    if node.op != "call_function" or node.target is not _aten.sub.Tensor:
        return node
    source, largest = node.args[:2]
    if not isinstance(largest, torch.fx.Node) or node.kwargs:
        return node
    found = largest.args[0] if str(largest.target).endswith("getitem>") else largest
    same = found.op == "call_function" and found.target in _MAXIMA and found.args[0] is source
    return source if same and largest.meta["val"].shape[dim] == 1 else node


def _parts(node, dim: int):
    if node.op != "call_function" or node.target is not _aten.cat.default:
        return None
    along = (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()
    return node.args[0] if len(node.args[0]) == 2 and along == dim else None


def _is_first_part(user, first, dim: int) -> bool:
    return (
        user.target is _aten.slice.Tensor
        and user.args[1] % first.meta["val"].dim() == dim
        and user.args[2] in (0, None)
        and user.meta["val"].shape == first.meta["val"].shape
    )


def _shares(graph, node, parts, dim: int):
    def call(target, *args, **kwargs):
        return called(graph, target, args, kwargs, node)

    dtype = node.meta["val"].dtype
    parts = [call(_aten._to_copy.default, part, dtype=dtype) for part in parts]
    largest = call(
        _aten.maximum.default, *(call(_aten.amax.default, x, [dim], True) for x in parts)
    )
    powers = [call(_aten.exp.default, call(_aten.sub.Tensor, x, largest)) for x in parts]
    sums = [call(_aten.sum.dim_IntList, x, [dim], True) for x in powers]
    return call(_aten.div.Tensor, powers[0], call(_aten.add.Tensor, *sums))
