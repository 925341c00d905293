"""Recurrent networks: time is a rolled loop with states, whether PyTorch's modules or a loop in
Python say so.
"""

import json
import re

import pytest
import torch
from torch import nn

import streamtensor
from streamtensor.lowering import graph

TOLERANCE = 1e-5


class Called(nn.Module):
    """A recurrent module with the states given and returned."""

    def __init__(self, module, states=True):
        super().__init__()
        self.module, self.states = module, states

    def forward(self, x, *states):
        given = (tuple(states) if len(states) > 1 else states[0],) if states else ()
        found = self.module(x, *given)
        return found if self.states else found[0]


class Cells(nn.Module):
    """Two layers of cells in a loop in Python, the second of which is written by hand."""

    def __init__(self):
        super().__init__()
        self.first = nn.LSTMCell(6, 8)
        self.own, self.past = nn.Linear(8, 5), nn.Linear(5, 5)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 8)
        past, found = x.new_ones(x.shape[0], 5), []
        for step in range(x.shape[1]):
            h, c = self.first(x[:, step], (h, c))
            past = torch.sigmoid(self.own(h)) * torch.tanh(self.past(past))
            found.append(past)
        return torch.stack(found, 1), c


class Gru(nn.Module):
    """From the last step to the first, as the backward direction goes."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 8)

    def forward(self, x, h):
        found = []
        for row in x.flip(0):
            h = self.cell(row, h)
            found.append(h)
        return torch.cat(found[::-1], 1)


CASES = {
    "lstm": (lambda: Called(nn.LSTM(6, 8, 2)), [(5, 2, 6)]),
    "lstm, both ways, states": (
        lambda: Called(nn.LSTM(6, 8, bidirectional=True, batch_first=True)),
        [(1, 7, 6), (2, 1, 8), (2, 1, 8)],
    ),
    "projected lstm": (
        lambda: Called(nn.LSTM(6, 8, 2, proj_size=3, bidirectional=True)),
        [(5, 1, 6)],
    ),
    "unbatched gru": (lambda: Called(nn.GRU(6, 8, 2, bidirectional=True)), [(9, 6)]),
    "gru without bias, states": (
        lambda: Called(nn.GRU(6, 8, bias=False, batch_first=True)),
        [(2, 3, 6), (1, 2, 8)],
    ),
    "rnn": (
        lambda: nn.Sequential(
            Called(nn.RNN(6, 8, 2), False),
            nn.Linear(8, 4),
            Called(nn.RNN(4, 5, nonlinearity="relu", bias=False, bidirectional=True), False),
        ),
        [(11, 1, 6)],
    ),
    "one step": (lambda: Called(nn.LSTM(6, 8)), [(1, 1, 6)]),
    "last row only": (
        lambda: nn.Sequential(
            Called(nn.GRU(6, 8, batch_first=True), False), Last(), nn.Linear(8, 3)
        ),
        [(1, 6, 6)],
    ),
    "cells": (Cells, [(2, 5, 6)]),
    "gru cell": (Gru, [(4, 2, 6), (2, 8)]),
}


class Last(nn.Module):
    def forward(self, x):
        return x[:, -1]


def _near(found, expected):
    pairs = zip(*map(torch.utils._pytree.tree_leaves, (found, expected)), strict=True)
    for own, wanted in pairs:
        assert own.shape == wanted.shape
        assert (own - wanted).abs().max() <= TOLERANCE * wanted.abs().max()


@pytest.mark.parametrize("name", CASES)
def test_values_are_pytorchs(name):
    torch.manual_seed(11)
    make, shapes = CASES[name]
    module, inputs = make().eval(), [torch.randn(shape) for shape in shapes]
    with torch.no_grad():
        expected = module(*inputs)
    with streamtensor.compile(module, inputs) as design:
        _near(design(*inputs), expected)


def _lowered(module, shape) -> str:
    port = graph.Port("x", "input")
    weights = dict(module.named_parameters())
    return graph.lower(module.eval(), [torch.zeros(shape)], [port], weights).text


@pytest.mark.parametrize("cell", [False, True])
def test_steps_are_lowered_once(cell):
    """The text says the number of steps, and is else the same."""
    texts = [
        _lowered(Cells() if cell else Called(nn.LSTM(6, 8, 2)), (1, n, 6) if cell else (n, 1, 6))
        for n in (20, 44)
    ]
    loops = [text.count("scf.for") for text in texts]
    assert loops == ([1, 1] if cell else [2, 2])
    short, long = (re.sub(r"\b(20|44|160|352|220|484)(x?)\b", r"N\2", text) for text in texts)
    assert len(short.splitlines()) == len(long.splitlines())


def test_resources_do_not_depend_on_the_length():
    used = []
    for steps in (16, 64):
        torch.manual_seed(3)
        module = Called(nn.LSTM(16, 16, batch_first=True), False).eval()
        with streamtensor.compile(module, [torch.randn(1, steps, 16)]) as design:
            report = json.loads((design.folder / "report.json").read_text())
            used.append(report["resources"])
    assert used[0]["dsp"] == used[1]["dsp"]
    assert abs(used[0]["lut"] - used[1]["lut"]) <= used[0]["lut"] / 50
