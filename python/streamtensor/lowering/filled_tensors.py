"""Rewrites tensors that are made empty and then filled part by part as concats of these parts.

x = a.new_empty(2, 6); x[:, :4].copy_(b); x[:, 4:].copy_(c)   ->   x = cat([b, c], 1)
"""

import torch

from .narrow_integers import called

_aten = torch.ops.aten
_EMPTY = {
    _aten.new_empty.default,
    _aten.empty.memory_format,
    _aten.empty_like.default,
    _aten.new_zeros.default,
    _aten.zeros.default,
    _aten.zeros_like.default,
}


def rewrite(graph) -> None:
    """Only parts that fill all of a tensor before it is read are rewritten. Empty copies go."""
    for node in list(graph.nodes):
        if node.target is _aten.copy_.default and node.meta["val"].numel() == 0:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in _EMPTY and len(node.users) > 1:
            parts = _parts(node, _places(graph))
            if parts:
                _concat(graph, node, parts)


def _places(graph) -> dict:
    return {node: place for place, node in enumerate(graph.nodes)}


def _parts(node, places: dict) -> list | None:
    """The writes (dim, view, copy) that fill the tensor, in the order of its parts; None: there are
    others, or it is read before they are done.
    """
    views = [user for user in node.users if _is_write(user)]
    done = max((places[copy] for view in views for copy in view.users), default=0)
    if not views or any(places[user] < done for user in node.users if user not in views):
        return None
    shape = node.meta["val"].shape
    dims = {dim for view in views for dim in range(len(shape)) if _narrows(view, dim)}
    if len(dims) != 1:
        return None
    (dim,) = dims
    found = sorted(((_start(view), view) for view in views), key=lambda part: part[0])
    at = 0
    for start, view in found:
        if start != at:
            return None
        at += view.meta["val"].shape[dim]
    return [(dim, view, next(iter(view.users))) for _, view in found] if at == shape[dim] else None


def _is_write(view) -> bool:
    copies = list(view.users)
    return (
        view.target is _aten.slice.Tensor
        and (view.args[4:] or (1,)) == (1,)
        and len(copies) == 1
        and copies[0].target is _aten.copy_.default
        and copies[0].args[0] is view
        and not copies[0].users
    )


def _narrows(view, dim: int) -> bool:
    return view.meta["val"].shape[dim] != view.args[0].meta["val"].shape[dim]


def _start(view) -> int:
    extent = view.args[0].meta["val"].shape[view.args[1]] if len(view.args) > 1 else 0
    start = (view.args[2] if len(view.args) > 2 else 0) or 0
    return start + extent if start < 0 else start


def _concat(graph, node, parts: list) -> None:
    values = []
    for _, view, copy in parts:
        like, source = view.meta["val"], copy.args[1]
        with graph.inserting_before(copy):  # what is written later does not count
            value = called(graph, _aten._to_copy.default, (source,), {"dtype": like.dtype}, view)
            values.append(called(graph, _aten.expand.default, (value, list(like.shape)), {}, view))
    last = max((copy for _, _, copy in parts), key=_places(graph).__getitem__)
    with graph.inserting_before(last):
        whole = called(graph, _aten.cat.default, (values, parts[0][0]), {}, node)
    for _, view, copy in parts:
        graph.erase_node(copy)
        graph.erase_node(view)
    node.replace_all_uses_with(whole)
    graph.erase_node(node)
