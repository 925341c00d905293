"""Networks quantized to integers of 8 bits: their accuracy, their arithmetic against onnxruntime's
formulas, designs against the reference in PyTorch, and what is refused.
"""

import gzip
import importlib.util
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import streamtensor
from streamtensor import integer_operators

F, ours = nn.functional, torch.ops.streamtensor


def _normed(*arguments, act=nn.ReLU, **options):
    convolution = nn.Conv2d(*arguments, bias=False, **options)
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), act())


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = _normed(1, 16, 3, padding=1)
        self.first = _normed(16, 16, 3, padding=1)
        self.second = _normed(16, 16, 3, padding=1, act=nn.Identity)
        self.short = _normed(16, 32, 1, stride=2, act=nn.Identity)
        self.third = _normed(16, 32, 3, stride=2, padding=1, act=nn.Identity)
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(self.second(self.first(x)) + x)
        x = F.relu(self.third(x) + self.short(x), inplace=True)
        return self.last(x.mean((2, 3)))


class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [_normed(1, 16, 3, padding=1)]
        for inputs, outputs, stride in ((16, 32, 2), (32, 32, 1), (32, 64, 2)):
            layers.append(
                _normed(inputs, inputs, 3, stride=stride, padding=1, groups=inputs, act=nn.ReLU6)
            )
            layers.append(_normed(inputs, outputs, 1, act=nn.ReLU6))
        self.layers, self.last = nn.Sequential(*layers), nn.Linear(64, 10)

    def forward(self, x):
        return self.last(F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


class Digits:
    """scikit-learn's handwritten digits, 8x8, and networks that have learnt two thirds of them."""

    def __init__(self):
        folder = Path(importlib.util.find_spec("sklearn").origin).parent
        with gzip.open(folder / "datasets/data/digits.csv.gz", "rt") as file:
            rows = numpy.loadtxt(file, delimiter=",", dtype=numpy.float32)
        order = numpy.random.default_rng(0).permutation(len(rows))
        images = torch.from_numpy(rows[order, :64]).reshape(-1, 1, 8, 8) / 16
        labels = torch.from_numpy(rows[order, 64]).long()
        third = len(rows) // 3
        self.held, self.held_labels = images[:third], labels[:third]
        self.seen, self.seen_labels = images[third:], labels[third:]
        self._trained = {}

    def trained(self, kind: type) -> nn.Module:
        if kind not in self._trained:
            torch.manual_seed(0)
            net = kind()
            optimizer = torch.optim.Adam(net.parameters(), 0.01)
            for _ in range(8):
                order = torch.randperm(len(self.seen))
                for part in order.split(64):
                    optimizer.zero_grad()
                    F.cross_entropy(net(self.seen[part]), self.seen_labels[part]).backward()
                    optimizer.step()
            self._trained[kind] = net.eval().requires_grad_(False)
        return self._trained[kind]

    def share(self, net) -> float:
        return 100 * float((net(self.held).argmax(1) == self.held_labels).float().mean())


@pytest.fixture(scope="module")
def digits():
    return Digits()


@pytest.mark.parametrize("kind", [Residual, Depthwise])
def test_int8_keeps_the_accuracy(digits, kind):
    net = digits.trained(kind)
    exact = digits.share(net)
    assert exact > 94
    for method in ("max", "percentile", "mse"):
        found = streamtensor.quantized(net, digits.held, digits.seen, f"int8,range={method}")
        assert digits.share(found) >= exact - 1, method


def test_a_design_equals_the_reference(digits):
    net, image = digits.trained(Residual), digits.held[:1]
    reference = streamtensor.quantized(net, (image,), digits.seen[:32])
    with streamtensor.compile(
        net, (image,), quant="int8", calibration=digits.seen[:32], names=["image"]
    ) as design:
        for at in range(4):
            assert torch.equal(
                design(digits.held[at : at + 1]), reference(digits.held[at : at + 1])
            )
