"""Finds the steps of a loop over time in an exported graph, which has unrolled it, and makes a loop
of them again (recurrences.py).

Before: h1 = step(x[0], h0, w);  h2 = step(x[1], h1, w);  ...;  y = stack([h1, h2, ...])
After:  y, h = loop(x, h0, w)

Steps are found by structure only: nodes with equal operations at a constant distance, each of whose
operands is a result of the same step, of the step before, the same for all steps, or the next row
of one tensor. A loop carries something and takes rows, so equal layers are none.
"""

import operator
from dataclasses import dataclass, field

import torch

from . import recurrences
from .narrow_integers import called

_aten = torch.ops.aten
_ROWS = {_aten.select.int, _aten.slice.Tensor}
_VIEWS = {
    *_ROWS,
    _aten.permute.default,
    _aten.transpose.int,
    _aten.t.default,
    _aten.view.default,
    _aten.unsqueeze.default,
    _aten.squeeze.dims,
}
_LEAST = 3  # steps of a loop
_LONGEST = 256  # nodes of a step
_CANDIDATES = 8


def roll(program: torch.export.ExportedProgram) -> None:
    """Rolls all loops of the program, in place."""
    graph = program.graph
    while steps := _find(graph):
        _replace(graph, steps)
        graph.eliminate_dead_code()
    results = torch.utils._pytree.tree_leaves(list(graph.output_node().args))
    for result, spec in zip(results, program.graph_signature.output_specs):
        if isinstance(result, torch.fx.Node):
            spec.arg.name = result.name


@dataclass
class _Steps:
    """Steps of `period` nodes each, and how the operands of the first relate to the others."""

    nodes: list  # of all steps
    period: int
    count: int
    order: dict  # of all nodes of the graph
    outside: set  # arguments and their views
    rows: list = field(default_factory=list)  # (tensor, dim, first, distance)
    states: list = field(default_factory=list)  # (position, the value before the first step)
    weights: list = field(default_factory=list)
    # by operand of the first step: ("inside", position), ("rows" | "states" | "weights", number)
    edges: dict = field(default_factory=dict)

    def at(self, step: int, position: int):
        return self.nodes[step * self.period + position]

    def is_early(self, node) -> bool:
        """Is the value there before the first step?"""
        return node in self.outside or self.order[node] < self.order[self.nodes[0]]


def _row(node):
    """(tensor, dim, index) of a node that is a row of a tensor, else None."""
    if node.target is operator.getitem and node.args[0].target is _aten.unbind.int:
        base, dim = (*node.args[0].args, 0)[:2]
        return base, dim % base.meta["val"].ndim, node.args[1]
    if node.target not in _ROWS or not isinstance(node.args[0], torch.fx.Node):
        return None
    base = node.args[0]
    dim, index = (*node.args[1:3], 0, 0)[:2]
    extent = base.meta["val"].shape[dim]
    dim %= base.meta["val"].ndim
    if node.target is _aten.slice.Tensor and node.meta["val"].shape[dim] != 1:
        return None
    return base, dim, (index or 0) % extent


def _equal_views_once(graph) -> None:
    """Equal views of one tensor become one node, at the first."""
    seen = {}
    for node in list(graph.nodes):
        if node.target in _VIEWS:
            first = seen.setdefault((node.target, node.args, tuple(node.kwargs.items())), node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)


def _sequence(graph) -> tuple[list, set]:
    """The nodes of which steps consist: neither views of arguments nor rows of which a tensor has
    several; and the arguments and their views.
    """
    rows, outside = {}, set()
    for node in graph.nodes:
        if found := _row(node):
            rows.setdefault((found[0], found[1], node.target), set()).add(found[2])
    sequence = []
    for node in graph.nodes:
        row = _row(node) if node.op == "call_function" else None
        taken = row and len(rows[row[0], row[1], node.target]) >= _LEAST
        view = node.target in _VIEWS and all(each in outside for each in node.all_input_nodes)
        if node.op in ("placeholder", "get_attr") or view:
            outside.add(node)
        elif node.op == "call_function" and not taken and node.target is not _aten.unbind.int:
            sequence.append(node)
    return sequence, outside


def _signature(node):
    leaves = torch.utils._pytree.tree_leaves((node.args, node.kwargs))
    value = node.meta.get("val")
    kind = (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else repr(value)
    return (
        node.target,
        kind,
        *("" if isinstance(each, torch.fx.Node) else repr(each) for each in leaves),
    )


def _longest_run(kinds: list[int], period: int) -> tuple[int, int]:
    """(start, length) of the longest run of nodes that equal those a period later."""
    best, start = (0, 0), None
    for at in range(len(kinds) - period + 1):
        equal = at + period < len(kinds) and kinds[at] == kinds[at + period]
        if equal and start is None:
            start = at
        if not equal and start is not None:
            best = max(best, (start, at - start + period), key=lambda run: run[1])
            start = None
    return best


def _find(graph) -> _Steps | None:
    if sum(_row(node) is not None for node in graph.nodes) < _LEAST:
        return None
    _equal_views_once(graph)
    sequence, outside = _sequence(graph)
    order = {node: at for at, node in enumerate(graph.nodes)}
    numbers = {}
    kinds = [numbers.setdefault(_signature(node), len(numbers)) for node in sequence]
    runs = []
    for period in range(1, min(len(kinds) // _LEAST, _LONGEST) + 1):
        start, length = _longest_run(kinds, period)
        if length >= _LEAST * period:
            runs.append((length // period * period, -period, start, length))
    for _, period, start, length in sorted(runs, reverse=True)[:_CANDIDATES]:
        for count in range(length // -period, max(length // -period - 3, _LEAST - 1), -1):
            run = sequence[start : start + length]
            found = _best_start(run, -period, count, order, outside)
            if found:
                return found
    return None


def _best_start(run: list, period: int, count: int, order: dict, outside: set) -> _Steps | None:
    """The steps, of all places of the run where they could start, that carry least."""
    best = None
    for first in range(len(run) - count * period + 1):
        nodes = run[first : first + count * period]
        steps = _classified(_Steps(nodes, period, count, order, outside))
        if steps and (best is None or len(steps.states) < len(best.states)):
            best = steps
    return best


def _classified(steps: _Steps) -> _Steps | None:
    places = {node: at for at, node in enumerate(steps.nodes)}
    for position in range(steps.period):
        operands = [_leaves(steps.at(step, position)) for step in range(steps.count)]
        for number, values in enumerate(zip(*operands)):
            if isinstance(values[0], torch.fx.Node):
                edge = _edge(steps, places, values)
                if edge is None:
                    return None
                steps.edges[position, number] = edge
    if not steps.states or not steps.rows or _read_between(steps, places):
        return None
    return steps


def _read_between(steps: _Steps, places: dict) -> bool:
    """Does something read a step's value before the last step has ended?"""
    end = steps.order[steps.nodes[-1]]
    return any(
        user not in places and steps.order[user] < end
        for node in steps.nodes
        for user in node.users
    )


def _leaves(node) -> list:
    return torch.utils._pytree.tree_leaves((node.args, node.kwargs))


def _edge(steps: _Steps, places: dict, values: tuple):
    """How operands that correspond in all steps relate; None: not at all."""
    period, count = steps.period, steps.count
    inside = places.get(values[0])
    if inside is not None and inside < period:
        same = all(places.get(each) == k * period + inside for k, each in enumerate(values))
        return ("inside", inside) if same else None
    second = places.get(values[1])
    if second is not None and second < period and steps.is_early(values[0]):
        last = all(places.get(values[k]) == (k - 1) * period + second for k in range(1, count))
        alike = _alike(values[0], values[1])
        return ("states", _number(steps.states, (second, values[0]))) if last and alike else None
    if all(each is values[0] for each in values) and steps.is_early(values[0]):
        return "weights", _number(steps.weights, values[0])
    return _row_edge(steps, values)


def _row_edge(steps: _Steps, values: tuple):
    rows = [_row(each) for each in values]
    if (
        None in rows
        or not steps.is_early(rows[0][0])
        or len({(*row[:2], each.target) for row, each in zip(rows, values)}) > 1
    ):
        return None
    base, dim, first = rows[0]
    distance = rows[1][2] - first
    if not distance or any(row[2] != first + k * distance for k, row in enumerate(rows)):
        return None
    kept = values[0].target is _aten.slice.Tensor
    return "rows", _number(steps.rows, (base, dim, first, distance, kept))


def _alike(left, right) -> bool:
    left, right = left.meta["val"], right.meta["val"]
    return (
        isinstance(left, torch.Tensor)
        and isinstance(right, torch.Tensor)
        and (left.shape, left.dtype) == (right.shape, right.dtype)
    )


def _number(found: list, item) -> int:
    if item not in found:
        found.append(item)
    return found.index(item)


def _stack(graph, row, count: int):
    """A tensor with the rows in the order of the steps, the steps first."""
    base, dim, first, distance, _ = row
    dims = [dim, *(each for each in range(base.meta["val"].ndim) if each != dim)]
    found = base
    if distance < 0:
        found = called(graph, _aten.flip.default, (found, [dim]), {}, base)
        first = base.meta["val"].shape[dim] - 1 - first
    extent, step = base.meta["val"].shape[dim], abs(distance)
    if first or step > 1 or extent != count:
        end = first + (count - 1) * step + 1
        found = called(graph, _aten.slice.Tensor, (found, dim, first, end, step), {}, base)
    if dims != sorted(dims):
        found = called(graph, _aten.permute.default, (found, dims), {}, base)
    return found


def _products(graph, steps: _Steps, stacks: list) -> dict:
    """The products of rows with weights, by position, for all steps at once."""
    found = {}
    for position in range(steps.period):
        node = steps.at(0, position)
        factor = {_aten.mm.default: 0, _aten.addmm.default: 1}.get(node.target)
        kind, number = steps.edges.get((position, factor), ("", 0))
        others = [
            edge[0]
            for (place, at), edge in steps.edges.items()
            if place == position and at != factor
        ]
        if kind != "rows" or set(others) != {"weights"} or steps.rows[number][-1]:
            continue
        args, stack = list(node.args), stacks[number]
        count, batch, width = stack.meta["val"].shape
        contiguous = {"memory_format": torch.contiguous_format}
        stack = called(graph, _aten.clone.default, (stack,), contiguous, node)
        args[factor] = called(graph, _aten.view.default, (stack, [count * batch, width]), {}, node)
        every = called(graph, node.target, tuple(args), dict(node.kwargs), node)
        shape = [count, batch, node.meta["val"].shape[-1]]
        found[position] = called(graph, _aten.view.default, (every, shape), {}, node)
    return found


def _step_graph(steps: _Steps, results: list[int], products: dict) -> torch.fx.Graph:
    """The first step as a graph of its own: rows, products, states and weights to the results."""
    graph, stands = torch.fx.Graph(), {}
    for number, (base, dim, *_, kept) in enumerate(steps.rows):
        value = base.meta["val"].select(dim, 0)
        stands["rows", number] = _placeholder(graph, f"x{number}", value, base)
        if kept:
            row = stands["rows", number]
            stands["rows", number] = called(graph, _aten.unsqueeze.default, (row, dim), {}, base)
    for position in products:
        node = steps.at(0, position)
        stands["inside", position] = _placeholder(graph, f"p{position}", node.meta["val"], node)
    for number, (_, first) in enumerate(steps.states):
        stands["states", number] = _placeholder(graph, f"s{number}", first.meta["val"], first)
    for number, weight in enumerate(steps.weights):
        stands["weights", number] = _placeholder(graph, f"w{number}", weight.meta["val"], weight)
    for position in range(steps.period):
        if position in products:
            continue
        node = steps.at(0, position)
        leaves, structure = torch.utils._pytree.tree_flatten((node.args, node.kwargs))
        leaves = [
            stands[steps.edges[position, at]] if isinstance(each, torch.fx.Node) else each
            for at, each in enumerate(leaves)
        ]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, structure)
        stands["inside", position] = graph.call_function(node.target, args, kwargs)
        stands["inside", position].meta = dict(node.meta)
    graph.output(tuple(stands["inside", position] for position in results))
    return graph


def _placeholder(graph, name: str, value, like):
    node = graph.placeholder(name)
    node.meta = {"val": value, "stack_trace": like.meta.get("stack_trace")}
    return node


def _read_after(steps: _Steps) -> list[int]:
    """Positions whose values something outside the steps reads, other than as a last state."""
    own = set(steps.nodes)
    carried = {position for position, _ in steps.states}
    return [
        position
        for position in range(steps.period)
        if any(
            user not in own and not (step == steps.count - 1 and position in carried)
            for step in range(steps.count)
            for user in steps.at(step, position).users
        )
    ]


def _operator(operands: int, results: int):
    """An operator of the library that takes and gives so many tensors."""
    name = f"steps_{operands}_{results}"
    if not hasattr(torch.ops.streamtensor, name):
        taken = ", ".join(f"Tensor a{at}" for at in range(operands))
        recurrences.library.define(f"{name}({taken}) -> ({', '.join(['Tensor'] * results)})")
    return getattr(torch.ops.streamtensor, name).default


def _replace(graph, steps: _Steps) -> None:
    states = [position for position, _ in steps.states]
    read = _read_after(steps)
    extra = [position for position in dict.fromkeys(read) if position not in states]
    results = [*states, *extra]
    last = steps.nodes[-1]
    with graph.inserting_before(last):
        rows = [_stack(graph, row, steps.count) for row in steps.rows]
        products = _products(graph, steps, rows)
        rows += products.values()
        loop = recurrences.Loop(
            len(rows),
            len(states),
            tuple(results.index(position) for position in read),
            _step_graph(steps, results, products),
        )
        operands = [*rows, *(first for _, first in steps.states), *steps.weights]
        node = graph.call_function(
            _operator(len(operands), len(read) + len(states)), tuple(operands)
        )
        values = [_rows_of(steps, position) for position in read]
        values += [first.meta["val"] for _, first in steps.states]
        single = len(values) == 1
        node.meta = {
            "val": values[0] if single else tuple(values),
            "loop": loop,
            "stack_trace": last.meta.get("stack_trace"),
        }
        made = [node] if single else [_item(graph, node, *each) for each in enumerate(values)]
        _give(graph, steps, dict(zip(read, made)), dict(zip(states, made[len(read) :])))


def _rows_of(steps: _Steps, position: int):
    value = steps.at(0, position).meta["val"]
    return value.new_empty([steps.count, *value.shape])


def _item(graph, node, at: int, value):
    item = graph.call_function(operator.getitem, (node, at))
    item.meta = {"val": value, "stack_trace": node.meta["stack_trace"]}
    return item


def _give(graph, steps: _Steps, stacks: dict, lasts: dict) -> None:
    """Gives what reads a step's value the row of the stack, or the last state."""
    own = set(steps.nodes)
    for position, stack in stacks.items():
        _join(graph, [steps.at(step, position) for step in range(steps.count)], stack)
    for step in range(steps.count):
        for position in {*stacks, *lasts}:
            node = steps.at(step, position)
            users = [user for user in node.users if user not in own]
            if not users:
                continue
            final = step == steps.count - 1 and position in lasts
            value = (
                lasts[position]
                if final
                else called(graph, _aten.select.int, (stacks[position], 0, step), {}, node)
            )
            for user in users:
                user.replace_input_with(node, value)


def _join(graph, values: list, stack) -> None:
    """Replaces a concatenation of all steps' values, in order, by the stack."""
    for user in list(values[0].users):
        stacked = user.target is _aten.unsqueeze.default
        for join in list(user.users) if stacked else [user]:
            whole = _joined(join, values, user if stacked else None)
            if whole is None:
                continue
            dim, reverse = whole
            found = called(graph, _aten.flip.default, (stack, [0]), {}, join) if reverse else stack
            places = [*range(1, stack.meta["val"].ndim)]
            places.insert(dim, 0)
            if places != sorted(places):
                found = called(graph, _aten.permute.default, (found, places), {}, join)
            shape = list(join.meta["val"].shape)
            if list(found.meta["val"].shape) != shape:
                flat = {"memory_format": torch.contiguous_format}
                found = called(graph, _aten.clone.default, (found,), flat, join)
                found = called(graph, _aten.view.default, (found, shape), {}, join)
            join.replace_all_uses_with(found)
            graph.erase_node(join)


def _joined(join, values: list, view):
    """(dim, reverse) if the node joins all values along a dim; else None."""
    if join.target not in (_aten.cat.default, _aten.stack.default):
        return None
    parts = list(join.args[0])
    dim = join.args[1] if len(join.args) > 1 else 0
    dim %= join.meta["val"].ndim
    if view is not None:
        if join.target is not _aten.cat.default or any(
            part.target is not _aten.unsqueeze.default
            or part.args[1] % part.meta["val"].ndim != dim
            for part in parts
        ):
            return None
        parts = [part.args[0] for part in parts]
    if parts == values:
        return dim, False
    return (dim, True) if parts == values[::-1] else None
