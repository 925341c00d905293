"""Rewrites torch.cond: both branches are computed, and the condition selects between their
results.
"""

import operator

import torch
from torch.utils import _pytree

from .narrow_integers import called

_aten = torch.ops.aten


def inline(program: torch.export.ExportedProgram) -> None:
    """Rewrites the program in place, branches within branches too."""
    graph = program.graph
    while node := next((each for each in graph.nodes if _is_branch(each)), None):
        _inline(program.graph_module, graph, node)
    graph.eliminate_dead_code()
    program.graph_module.delete_all_unused_submodules()


def _is_branch(node) -> bool:
    return node.op == "call_function" and node.target is torch.ops.higher_order.cond


def _inline(module, graph, node) -> None:
    condition, *branches, operands = node.args
    with graph.inserting_before(node):
        results = [_copied(module, graph, each.target, operands) for each in branches]
        if isinstance(condition, torch.fx.Node):
            if condition.meta["val"].ndim:
                condition = called(graph, _aten.reshape.default, (condition, []), {}, condition)
            chosen = [
                called(graph, _aten.where.self, (condition, *pair), {}, condition)
                for pair in zip(*results)
            ]
        else:
            chosen = results[0 if condition else 1]
    for user in list(node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(chosen[user.args[1]])
        graph.erase_node(user)
    graph.erase_node(node)


def _copied(module, graph, name: str, operands) -> list:
    """The operations of a branch in place; returns its results."""
    branch = getattr(module, name)
    places = [each for each in branch.graph.nodes if each.op == "placeholder"]
    stands = dict(zip(places, operands))
    for each in branch.graph.nodes:
        if each.op == "get_attr":
            own = f"{name}_{each.target}".replace(".", "_")
            setattr(module, own, getattr(branch, each.target))
            stands[each] = graph.get_attr(own)
            stands[each].meta = dict(each.meta)
        elif each.op == "call_function":
            stands[each] = graph.node_copy(each, stands.__getitem__)
    return [stands[each] for each in _pytree.tree_leaves(list(branch.graph.output_node().args))]
