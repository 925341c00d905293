"""What happens to a graph before it is lowered: what depends on no input is folded, some ops are
written as others.
"""

import pytest
import torch
from torch import nn

import streamtensor
from streamtensor.lowering import constant_folding, decompose, graph


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def folded(function, x):
    program = decompose.run(torch.export.export(Of(function), (x,)))
    constant_folding.fold_constants(program)
    program.graph_module.recompile()
    return program


def targets(program) -> set[str]:
    return {str(node.target) for node in program.graph.nodes if node.op == "call_function"}


def causal(x):
    at = torch.arange(x.shape[-1])
    seen = (torch.cumsum(torch.ones_like(at), 0) - 1).unsqueeze(0) <= at.unsqueeze(1)
    return x.unsqueeze(-2).masked_fill(~seen, 0.0)


def test_a_mask_is_worked_out():
    program = folded(causal, torch.randn(2, 5))
    assert not targets(program) & {
        "aten.arange.start_step",
        "aten.le.Tensor",
        "aten.cumsum.default",
        "aten.bitwise_not.default",
    }


@pytest.mark.parametrize(
    "function",
    [
        causal,
        lambda x: torch.cumsum(x, 1),
        lambda x: torch.cumsum(x, 0),
        lambda x: torch.cumsum(x > 0, 1).float(),
        lambda x: torch.log1p(x.abs() * 1e-4),
        lambda x: nn.functional.softplus(x * 3),
        lambda x: nn.functional.gelu(x * 3, approximate="tanh"),
        lambda x: x[:, [-2, -1]] + x[:, [0, 2]],
        lambda x: x[[3, 0, 0]],
        lambda x: torch.tril(
            x.to(torch.bfloat16) * torch.tensor([1, 2, 3, 4, 0.3], dtype=torch.bfloat16)
        ).float(),
        lambda x: x.flip(0) + x.flip(0, 1),
        lambda x: (
            torch.arange(1, 2001)
            .to(torch.bfloat16)
            .reshape(4, 500)
            .add(x[:, :1].to(torch.bfloat16))
            .sum(1)
            .float()
        ),
        lambda x: (
            torch.linalg.vector_norm(x.half() * 500, dim=1).float()
            + (x.half() * 30000).mean(1).float()
        ),
        lambda x: nn.functional.rms_norm((x - x[:1]) * 500, (5,)),
        lambda x: nn.functional.rms_norm(x.half() * 500, (5,), x[0].half(), 1e-5).float(),
        lambda x: nn.functional.group_norm(x.reshape(1, 4, 5), 2, x[:, 0] + 1, x[:, 1]),
        lambda x: (
            x * nn.functional.pad(x, (1, -1)) + nn.functional.pad(x, (-2, 2, 1, -1), value=0.5)
        ),
        lambda x: nn.functional.conv_transpose2d(
            x.reshape(1, 1, 4, 5), x[:3, :2].reshape(1, 1, 3, 2)
        ),
        lambda x: x * torch.full((4, 5), 2.0) + torch.zeros(5),
        lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]) * torch.arange(5),
    ],
)
def test_the_design_gives_what_pytorch_gives(core_built, function):
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    with streamtensor.compile(Of(function), (x,)) as design:
        torch.testing.assert_close(design(x), function(x), rtol=1e-5, atol=1e-7)


def test_random_numbers_are_not_folded():
    assert any(
        "rand" in name for name in targets(folded(lambda x: x + torch.rand(3), torch.zeros(3)))
    )


def test_what_only_the_extents_of_an_input_say_is_folded():
    """torch-mlir takes `where` of a filled tensor's comparison for its first choice."""
    x = torch.randn(2, 5)
    zeros = folded(lambda x: torch.where(torch.zeros_like(x[:1, :1]) != 0, -1.0, x), x)
    assert not {name for name in targets(zeros) if "like" in name or "ne." in name}
    lowered = graph.lower(
        Of(lambda x: torch.where(torch.zeros_like(x[:1, :1]) != 0, -1.0, x)),
        (x,),
        [graph.Port("x", "input")],
        {},
    )
    assert "%arg0" in lowered.text.split("return")[0].split("{", 1)[1]
