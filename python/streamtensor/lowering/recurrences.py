"""Recurrent networks as loops over time: nn.LSTM, nn.GRU and nn.RNN of any layers and directions.

The product of all steps' inputs with their weights is one matrix product before the loop. What is
left of a step is an operator of this file's library until the graph is lowered, and then a loop:

    %rows, %h = scf.for %t = 0 to 160 iter_args(rows, h) { h = step(x[t], h, w); rows[t] = h }
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

_aten = torch.ops.aten
library = torch.library.Library("streamtensor", "DEF")


def _lstm(x, h, c, w, projection=None):
    kept, forgotten, cell, shown = (F.linear(h, w) + x).chunk(4, -1)
    c = forgotten.sigmoid() * c + kept.sigmoid() * cell.tanh()
    h = shown.sigmoid() * c.tanh()
    return (h if projection is None else F.linear(h, projection)), c


def _gru(x, h, w, bias=None):
    reset, update, new = F.linear(h, w, bias).chunk(3, -1)
    own_reset, own_update, own_new = x.chunk(3, -1)
    update = (update + own_update).sigmoid()
    new = (own_new + new * (reset + own_reset).sigmoid()).tanh()
    return ((h - new) * update + new,)


def _tanh(x, h, w):
    return (torch.tanh(F.linear(h, w) + x),)


def _relu(x, h, w):
    return (torch.relu(F.linear(h, w) + x),)


# by name: what a step computes of a row of the inputs, of the states and of the weights: the new
# states, of which the first is the row of the result; the number of states; and the operands
_STEPS = {}


def _run(name: str, rows, *rest):
    """All steps one after the other."""
    step, count, _ = _STEPS[name]
    states, weights, found = rest[:count], rest[count:], []
    for row in rows:
        states = step(row, *states, *weights)
        found.append(states[0])
    return torch.stack(found), *states


def _shapes(name: str, rows, *rest):
    states = rest[: _STEPS[name][1]]
    return rows.new_empty([rows.shape[0], *states[0].shape]), *map(torch.empty_like, states)


def define(name: str, step, count: int, operands: str) -> None:
    """An operator of the library: `count` states, which stand behind the rows."""
    _STEPS[name] = step, count, operands
    taken = ", ".join(f"Tensor {each}" for each in operands.split())
    library.define(f"{name}({taken}) -> ({', '.join(['Tensor'] * (count + 1))})")
    library.impl(name, lambda *tensors: _run(name, *tensors), "CompositeExplicitAutograd")
    torch.library.register_fake(
        f"streamtensor::{name}", lambda *tensors: _shapes(name, *tensors), lib=library
    )


define("lstm", _lstm, 2, "x h c w")
define("projected_lstm", _lstm, 2, "x h c w projection")
define("gru", _gru, 1, "x h w bias")
define("unbiased_gru", _gru, 1, "x h w")
define("rnn_tanh", _tanh, 1, "x h w")
define("rnn_relu", _relu, 1, "x h w")


def _layers(operator, input, states, params, per_layer, bidirectional, batch_first):
    """All layers and directions: `operator` takes a layer's inputs, states and parameters."""
    rows = input.transpose(0, 1) if batch_first else input
    directions = 2 if bidirectional else 1
    finals = []
    for first in range(0, len(params) // per_layer, directions):
        found = []
        for at in range(first, first + directions):
            own = params[at * per_layer : (at + 1) * per_layer]
            reverse = at > first
            made, *last = operator(rows, [state[at] for state in states], own, reverse)
            found.append(made.flip(0) if reverse else made)
            finals.append(last)
        rows = torch.cat(found, -1) if bidirectional else found[0]
    rows = rows.transpose(0, 1) if batch_first else rows
    return rows, *(torch.stack(each) for each in zip(*finals))


def _inputs(rows, weight, biases, reverse: bool):
    """The gates' sums over the inputs of all steps, in the order of the steps."""
    sums = F.linear(rows, weight, biases[0] if biases else None)
    for bias in biases[1:]:
        sums = sums + bias
    return sums.flip(0) if reverse else sums


def _one_lstm(rows, states, params, reverse, biased):
    own, weight, *rest = params
    biases, projection = rest[: 2 * biased], rest[2 * biased :]
    operator = library_operator("projected_lstm" if projection else "lstm")
    return operator(_inputs(rows, own, biases, reverse), *states, weight, *projection)


def _one_gru(rows, states, params, reverse, biased):
    own, weight, *biases = params
    operator = library_operator("gru" if biased else "unbiased_gru")
    return operator(_inputs(rows, own, biases[:1], reverse), *states, weight, *biases[1:])


def _one_rnn(kind: str):
    def one(rows, states, params, reverse, biased):
        own, weight, *biases = params
        return library_operator(kind)(_inputs(rows, own, biases, reverse), *states, weight)

    return one


def library_operator(name: str):
    return getattr(torch.ops.streamtensor, name).default


def _decomposition(one, per_layer: int, several: bool):
    """Of an operator with its arguments; several: it takes its states as a list."""

    def decompose(
        input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    ):
        if train and dropout:
            return NotImplemented
        states = list(hx) if several else [hx]
        count = per_layer + 2 * has_biases
        count += several and states[0].shape[-1] != states[1].shape[-1]
        return _layers(
            lambda *layer: one(*layer, has_biases),
            input,
            states,
            params,
            count,
            bidirectional,
            batch_first,
        )

    return decompose


def table() -> dict:
    return {
        _aten.lstm.input: _decomposition(_one_lstm, 2, True),
        _aten.gru.input: _decomposition(_one_gru, 2, False),
        _aten.rnn_tanh.input: _decomposition(_one_rnn("rnn_tanh"), 2, False),
        _aten.rnn_relu.input: _decomposition(_one_rnn("rnn_relu"), 2, False),
    }


@dataclass(frozen=True)
class Loop:
    """What a node computes whose operands are rows, states and weights, and whose results are
    those that it collects of all steps, then the last states.
    """

    rows: int
    states: int
    collected: tuple[int, ...]  # of a step's results, which begin with the new states
    step: torch.fx.Graph | None = None  # None: an operator of this file


class _Step(torch.nn.Module):
    """A step of an operator of the library."""

    def __init__(self, name: str):
        super().__init__()
        self._step = _STEPS[name][0]

    def forward(self, tensors: list):
        return list(self._step(*tensors))


def loop_of(node) -> Loop | None:
    """The loop that a node of the graph is; None: it is none."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "streamtensor":
        return None
    own = Loop(1, _STEPS[target._opname][1], (0,)) if target._opname in _STEPS else None
    return node.meta.get("loop") or own


def step_key(node):
    """Equal for nodes with equal steps."""
    shapes = tuple((tuple(each.shape), each.dtype) for each in _step_operands(node))
    return node.meta.get("loop") or node.target, shapes


def step_program(node) -> torch.export.ExportedProgram:
    """What a step of an operator of the library computes."""
    return torch.export.export(_Step(node.target._opname), (_step_operands(node),))


def _step_operands(node) -> list[torch.Tensor]:
    """Tensors like those that a step takes."""
    rows = loop_of(node).rows
    values = [each.meta["val"] for each in node.args]
    return [
        torch.empty(value.shape[at < rows :], dtype=value.dtype, device="meta")
        for at, value in enumerate(values)
    ]


def _type(value: torch.Tensor, elements: dict, steps: int | None = None) -> str:
    shape = value.shape if steps is None else (steps, *value.shape)
    return f"tensor<{'x'.join([*map(str, shape), elements[value.dtype]])}>"


def _place(value: torch.Tensor) -> str:
    """The row of a tensor at the loop's counter."""
    zeros, ones = ", 0" * value.ndim, ", 1" * value.ndim
    return f"[%t{zeros}] [1{''.join(f', {extent}' for extent in value.shape)}] [1{ones}]"


def loop_text(node, name: str, step: str, elements: dict) -> str:
    """The function of all steps, which calls that of one."""
    loop, values = loop_of(node), _step_operands(node)
    steps, rows, states = node.args[0].meta["val"].shape[0], loop.rows, loop.states
    made = {at: each[0] for at, each in zip(loop.collected, node.meta["val"])}
    extra = [made[at] for at in sorted(made) if at >= states]
    kinds = [_type(value, elements) for value in values]
    stacks = [_type(made[at], elements, steps) for at in loop.collected]
    carried = [*kinds[rows : rows + states], *stacks]
    gives = [*kinds[rows : rows + states], *(_type(value, elements) for value in extra)]
    inner = [f"%s{at}" for at in range(states)]
    collects = [f"%rows{at}" for at in range(len(stacks))]
    nones = [f"%none{at}" for at in range(len(stacks))]
    firsts = [f"%a{at}" for at in range(rows, rows + states)]
    weights = [f"%a{at}" for at in range(rows + states, len(values))]
    found = [f"%new#{at}" if len(gives) > 1 else "%new" for at in range(len(gives))]
    places = {at: at for at in range(states)}
    places.update({at: states + k for k, at in enumerate(x for x in sorted(made) if x >= states)})
    lines = [
        "    %begin = arith.constant 0 : index",
        f"    %end = arith.constant {steps} : index",
        "    %one = arith.constant 1 : index",
        *(f"    {none} = tensor.empty() : {stack}" for none, stack in zip(nones, stacks)),
        f"    %all:{len(carried)} = scf.for %t = %begin to %end step %one iter_args("
        + ", ".join(f"{a} = {b}" for a, b in zip([*inner, *collects], [*firsts, *nones]))
        + f") -> ({', '.join(carried)}) {{",
        *(
            f"      %x{at} = tensor.extract_slice %a{at}{_place(values[at])} : "
            f"{_type(values[at], elements, steps)} to {kinds[at]}"
            for at in range(rows)
        ),
        f"      %new{f':{len(gives)}' if len(gives) > 1 else ''} = func.call @{step}("
        + ", ".join([*(f"%x{at}" for at in range(rows)), *inner, *weights])
        + f") : ({', '.join(kinds)}) -> ({', '.join(gives)})",
        *(
            f"      %next{k} = tensor.insert_slice {found[places[at]]} into "
            f"{collects[k]}{_place(made[at])} : {gives[places[at]]} into {stacks[k]}"
            for k, at in enumerate(loop.collected)
        ),
        "      scf.yield "
        + ", ".join([*found[:states], *(f"%next{k}" for k in range(len(stacks)))])
        + f" : {', '.join(carried)}",
        "    }",
        "    return "
        + ", ".join(f"%all#{at}" for at in [*range(states, len(carried)), *range(states)])
        + f" : {', '.join([*stacks, *carried[:states]])}",
    ]
    takes = [
        f"%a{at}: {_type(value, elements, steps if at < rows else None)}"
        for at, value in enumerate(values)
    ]
    gives = ", ".join([*stacks, *carried[:states]])
    head = f"  func.func private @{name}({', '.join(takes)}) -> ({gives}) {{"
    return "\n".join([head, *lines, "  }"])
