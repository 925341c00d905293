"""Random convolutions with every scheme of quantization against an integer reference, bit for bit:
the input itself, and behind an operator.
"""

import random
import re

import pytest
import torch
from torch import nn

import streamtensor
from streamtensor.quantization import rounding_note

GROUP = 128


def _groups(x):
    """[... K] as pieces of at most GROUP along the last dim."""
    return x.split(min(GROUP, x.shape[-1]), -1)


def _reference(x, convolution, top):
    weight = convolution.weight.flatten(1)
    columns = nn.functional.unfold(
        x, convolution.kernel_size, padding=convolution.padding, stride=convolution.stride
    )[0].T
    found = torch.zeros(len(columns), len(weight))
    for part, rows in zip(_groups(columns), _groups(weight)):
        scale = part.abs().amax(1, keepdim=True) * torch.tensor(1 / 127)
        scale = torch.where(scale == 0, 1.0, scale)
        q = torch.round(part * (1 / scale)).clamp(-127, 127)
        by = (rows.abs().amax(1, keepdim=True) / top).half().float()
        w = torch.round(rows / by).clamp(-top, top)
        found += (q.double() @ w.double().T).float() * (scale * by.T)
    return (found + convolution.bias).T


class Many(nn.Module):
    def __init__(self, convolutions):
        super().__init__()
        self.convolutions = nn.ModuleList(convolutions)

    def forward(self, *inputs):
        return tuple(
            convolution(torch.relu(x) if at % 2 else x)
            for at, (convolution, x) in enumerate(zip(self.convolutions, inputs))
        )


def _random_convolution(choose):
    kernel = choose.choice([(1, 2), (2, 2), (4, 4), (1, 4), (1, 8), (3, 3), (2, 4)])
    elements = choose.choice([96, 256, 512])
    channels = max(1, elements // (kernel[0] * kernel[1]))
    stride = choose.choice([1, 2])
    extent = [size + stride * choose.randint(0, 2) for size in kernel]
    return nn.Conv2d(channels, choose.choice([8, 16]), kernel, stride), (1, channels, *extent)


@pytest.mark.parametrize(("scheme", "top"), [("w8a8", 127), ("w4a8", 7)])
def test_random_convolutions(scheme, top):
    torch.manual_seed(top)
    choose = random.Random(top)
    cases = [_random_convolution(choose) for _ in range(8)]
    module = Many([convolution for convolution, _ in cases]).eval()
    inputs = [torch.randn(shape) for _, shape in cases]
    with streamtensor.compile(module, inputs, quant=scheme) as design, torch.no_grad():
        for at, found in enumerate(design(*inputs)):
            x = torch.relu(inputs[at]) if at % 2 else inputs[at]
            expected = _reference(x, cases[at][0], top).reshape(found.shape)
            assert torch.equal(found, expected), cases[at][0]


def test_what_four_bits_cost_convolutions_is_told(core_built):
    """Measured on the example inputs: within a tenth of what the design shows."""
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)
    module, image = nn.Sequential(*layers).eval(), torch.randn(1, 3, 8, 8)
    with pytest.warns(UserWarning, match="weights of 2 convolutions") as told:
        design = streamtensor.compile(module, (image,), quant="w4a8")
    share = float(re.search(r"by ([\d.]+) %", str(told[0].message))[1]) / 100
    with design, torch.no_grad():
        exact = module(image)
        found = (design(image) - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert 0.9 * found < share < 1.1 * found
    assert rounding_note.rounding_note(module, (image,), "w8a8") is None
    assert rounding_note.rounding_note(module, (image,), "w4a8,0=w8a8,2=fp32") is None
