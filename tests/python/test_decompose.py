"""An operation that occurs often is decomposed once, and all of them come out as if PyTorch had
traced the whole graph.
"""

import pytest
import torch
from test_constant_folding import Of
from torch import nn

import streamtensor
from streamtensor import workflow
from streamtensor.language import models
from streamtensor.lowering import decompose


@pytest.fixture
def traced(monkeypatch):
    """How many operations were traced, graph by graph."""
    counts, parts = [], decompose._trace_parts
    monkeypatch.setattr(
        decompose, "_trace_parts", lambda nodes: counts.append(len(nodes)) or parts(nodes)
    )
    return counts


def whole(program):
    return program.run_decompositions(decompose.table())


def attention(x):
    q, k = torch.split(torch.cat([x, x.mT.contiguous().mT], -1), [5, 5], -1)
    return nn.functional.scaled_dot_product_attention(q, k, k) + q @ k.mT @ k


@pytest.mark.parametrize(
    "function, is_alone",
    [
        (lambda x: x * x + x * x.flip(0), True),
        (lambda x: torch.where(x > 0, x * 1, x * 1.0), True),
        (lambda x: x.to(torch.float32).contiguous() + torch.arange(5), True),
        (lambda x: x.transpose(0, 1).reshape(6, 10) + x.reshape(10, 6).mT, True),
        (lambda x: (x.double() / 3).float() + x.half(), True),
        (lambda x: torch.stack(torch.unbind(x)) + torch.cat(x.chunk(2, 1), 1), True),
        (lambda x: nn.functional.layer_norm(nn.functional.layer_norm(x, (5,)), (3, 5)), True),
        (lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), False),
        (lambda x: (x[:, 0], x, x.max(1).values, x.max(1)[0]), True),
        (attention, True),
        (lambda x: (x + 0).add_(1)[:, :2], False),
    ],
)
def test_it_is_what_pytorch_makes_of_the_whole(monkeypatch, traced, function, is_alone):
    x = torch.randn(4, 3, 5)
    ours = streamtensor.export(Of(function), (x,)).text
    assert bool(traced) == is_alone
    monkeypatch.setattr(decompose, "run", whole)
    assert ours == streamtensor.export(Of(function), (x,)).text


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 5))

    def forward(self, x):
        return self.weight @ x.mT


def test_a_product_with_a_parameter_is_what_pytorch_makes_of_the_whole(monkeypatch, traced):
    x = torch.randn(4, 3, 5)
    ours = streamtensor.export(Product(), (x,)).text
    monkeypatch.setattr(decompose, "run", whole)
    assert traced and ours == streamtensor.export(Product(), (x,)).text


def test_a_model_is_what_pytorch_makes_of_the_whole(monkeypatch, traced):
    model = models.load("examples/tiny-gpt2")
    shape = workflow.step_shape(model, "prefill", 32, 4)
    ours = model.lower(shape).text
    assert traced
    monkeypatch.setattr(decompose, "run", whole)
    assert ours == model.lower(shape).text


def test_layers_that_are_alike_are_traced_once(traced):
    for depth in (2, 5):
        streamtensor.export(
            nn.Sequential(
                *(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(depth))
            ).eval(),
            (torch.randn(1, 4, 8),),
        )
    assert traced[0] == traced[1] > 10
