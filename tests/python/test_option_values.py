"""Options of the search and the limits change times and resources, never numbers: small modules
with random options on random boards, against PyTorch and the simulator.
"""

import random

import pytest
import torch
from torch import nn

import streamtensor
from streamtensor import options
from streamtensor.errors import Error

MANY = pytest.param(60, marks=pytest.mark.long)
BOARDS = ("u55c", "u280", "vu9p", "xc7z020")
TOLERANCE = {"fp32": 2e-4, "int8": 0.15, "w8a8": 0.15, "w4a8": 0.6}
LIMITS = {"on-chip-memory": ("8K", "20K", "60K", "1M"), "clock": (50, 83, 100)}
SHARES = ("max-dsp", "max-lut", "max-bram", "max-uram")
# not of the search: they are files, or change what a launch takes
OTHERS = {"fix-kernel", "trial", "target-ms", "max-iterations"}


class Residual(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.head = nn.Linear(channels * 16, 10)

    def forward(self, image):
        image = self.first(image).relu()
        image = image + self.second(image).relu()
        return self.head(nn.functional.max_pool2d(self.depthwise(image), 2).flatten(1))


class Products(nn.Module):
    def forward(self, a, b, c):
        return (a @ b) @ c + a.sum(-1, keepdim=True)


class Rows(nn.Module):
    def forward(self, rows, places):
        values, found = rows.topk(3, -1)
        return rows.softmax(-1), rows.cumsum(0), rows.argmax(1), values, rows.gather(1, places)


def _modules():
    torch.manual_seed(0)
    number, widths = torch.randn, (20, 33, 17, 9)
    chain = [nn.Sequential(nn.Linear(*pair), nn.GELU()) for pair in zip(widths, widths[1:])]
    encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return {
        "residual": (Residual(), (number(1, 3, 8, 8),)),
        "products": (Products(), (number(14, 22), number(22, 19), number(19, 7))),
        "rows": (Rows(), (number(9, 37), torch.randint(0, 37, (9, 4)))),
        "chain": (nn.Sequential(*chain), (number(5, 20),)),
        "encoder": (encoder, (number(1, 6, 16),)),
        "recurrent": (nn.LSTM(8, 12, batch_first=True), (number(1, 7, 8),)),
    }


def _values(option: options.Option) -> tuple:
    if option.name in LIMITS:
        return LIMITS[option.name]
    if option.name in SHARES:
        return ("40%", "70%")
    return option.words or (1, 2, 3, 5, 8, 20, 60, 200, 1000)


def _drawn(choice: random.Random) -> dict:
    """Three options of the search and the limits, each with one of its values."""
    table = [
        option
        for option in options.table().values()
        if option.group in ("search", "limits") or option.name == "clock"
        if option.name not in OTHERS
    ]
    found = choice.sample(sorted(table, key=lambda each: each.name), 3)
    return {each.name.replace("-", "_"): choice.choice(_values(each)) for each in found}


def _flat(results) -> list[torch.Tensor]:
    if isinstance(results, torch.Tensor):
        return [results]
    return [each for part in results for each in _flat(part)]


@pytest.mark.parametrize("count", [3, MANY])
def test_options_leave_numbers_as_they_are(count, core_built):
    choice, modules, ran = random.Random(count), _modules(), 0
    for _ in range(count):
        name = choice.choice(sorted(modules))
        module, inputs = modules[name]
        quant = choice.choice(["fp32", *TOLERANCE]) if name in ("residual", "chain") else "fp32"
        given = {**_drawn(choice), "platform": choice.choice(BOARDS), "quant": quant}
        calibration = [inputs] if quant == "int8" else None
        try:
            design = streamtensor.compile(module.eval(), inputs, calibration=calibration, **given)
        except Error:
            continue
        with design, torch.no_grad():
            for ours, theirs in zip(_flat(design(*inputs)), _flat(module(*inputs)), strict=True):
                error = (ours.double() - theirs.double()).abs().max()
                assert error <= TOLERANCE[quant] * theirs.abs().max(), (name, given)
            assert not design.simulate()["deadlock"], (name, given)
        ran += 1
    assert ran >= count // 2
