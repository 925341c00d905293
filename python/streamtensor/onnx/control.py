"""What an ONNX graph decides while it is read: constants, shapes, branches and loops.

`If` on a constant becomes its branch, a loop of a known number of rounds so many copies of its
body. A branch that is chosen by what is computed is computed with the other one, and `where`
chooses.
"""

import torch

from .node import OPERATORS

CONTROL = {}
_MOST_ROUNDS = 4096


def _control(name: str):
    def register(function):
        CONTROL[name] = function
        return function

    return register


@_control("Constant")
def _constant(builder, node, values, scope):
    kinds = {
        "value_float": (node.real, torch.float32),
        "value_int": (node.integer, torch.int64),
        "value_floats": (node.reals, torch.float32),
        "value_ints": (node.integers, torch.int64),
    }
    for name, (read, dtype) in kinds.items():
        if node.has(name):
            return [builder.constant(torch.tensor(read(name), dtype=dtype))]
    found = node.tensor("value")
    if found is None:
        raise node.refuse("has no value", "a dense tensor or numbers")
    return [builder.constant(found)]


@_control("Shape")
def _shape(builder, node, values, scope):
    first, last = node.integer("start", 0), node.integer("end")
    return [
        builder.constant(torch.tensor(list(values[0].fake.shape)[first:last], dtype=torch.int64))
    ]


@_control("Size")
def _size(builder, node, values, scope):
    return [builder.constant(torch.tensor(values[0].fake.numel()))]


@_control("If")
def _if(builder, node, values, scope):
    graphs = node.graph("then_branch"), node.graph("else_branch")
    if 0 in node.constants:
        chosen = graphs[0] if node.number(0, "condition") else graphs[1]
        return builder.run(chosen, dict(scope))
    then, other = (builder.run(graph, dict(scope)) for graph in graphs)
    pairs = list(zip(then, other))
    if any(a.fake.shape != b.fake.shape or a.fake.dtype != b.fake.dtype for a, b in pairs):
        raise node.refuse(
            "chooses by what it computes between results of different shapes",
            "a condition that is a constant",
        )
    return [
        builder.call(OPERATORS["Where"], node, [values[0], a, b])[0] if a is not b else a
        for a, b in pairs
    ]


@_control("Loop")
def _loop(builder, node, values, scope):
    body = node.graph("body")
    count, condition = (*values, None, None)[:2]
    states = list(values[2:])
    if count is None or count.known is None:
        raise node.refuse("has a number of rounds that it computes", "a constant one")
    rounds = node.number(0, "rounds")
    if not 0 <= rounds <= _MOST_ROUNDS:
        raise node.refuse(f"has {rounds} rounds", f"0 to {_MOST_ROUNDS}")
    goes_on = condition is None or _known(node, condition)
    if len(body.inputs) != 2 + len(states):
        raise node.refuse(
            f"has a body of {len(body.inputs)} inputs for {len(states)} states",
            f"{2 + len(states)} inputs",
        )
    rows = [[] for _ in body.outputs[1 + len(states) :]]
    for at in range(rounds):
        if not goes_on:
            break
        entry = [torch.tensor(at), torch.tensor(True)]
        given = [*map(builder.constant, entry), *states]
        own = dict(scope) | {each.name: value for each, value in zip(body.inputs, given)}
        ended, *made = builder.run(body, own)
        goes_on = _known(node, ended)
        states, found = made[: len(states)], made[len(states) :]
        for row, value in zip(rows, found):
            row.append(value)
    return states + [_stacked(builder, node, row) for row in rows]


def _known(node, condition) -> bool:
    if condition.known is None:
        raise node.refuse("ends by what it computes", "a condition that is a constant")
    return bool(condition.known.reshape(-1).tolist()[0])


def _stacked(builder, node, row: list):
    if not row:
        raise node.refuse("gives rows of no round", "one round or more")
    return builder.call(lambda node, *values: torch.stack(values), node, row)[0]
