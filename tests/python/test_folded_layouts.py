"""A network whose layers move channels: groups, a shuffle, a concatenation, a transposed
convolution. All are stages of the pipeline, channels last, and the numbers stay those of PyTorch.
"""

import torch
from torch import nn

import streamtensor
from streamtensor import core


class Decoder(nn.Module):
    """A level of a U-Net, whose inner layers are grouped and shuffled."""

    def __init__(self):
        super().__init__()
        self.wide, self.grouped = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1, groups=2)
        self.point, self.up = nn.Conv2d(8, 8, 1), nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x):
        wide = torch.relu(self.wide(x))
        left, right = torch.relu(self.grouped(wide)).chunk(2, 1)
        deep = torch.cat([left, torch.relu(self.point(right))], 1)
        up = self.up(torch.channel_shuffle(deep, 2))
        return self.last(torch.cat([wide, up], 1))


def test_layers_that_move_channels_are_stages(core_built, tmp_path):
    """The slowest layer moves 16 channels of 324 pixels: three images take less than two and a half
    times as many cycles.
    """
    torch.manual_seed(0)
    network, image = Decoder().eval(), torch.randn(1, 3, 16, 16)
    exact = streamtensor.quantized(network, image, [image])
    with streamtensor.compile(
        network, image, quant="int8", calibration=[image], output=tmp_path / "design", images=3
    ) as design:
        several = torch.randn(3, 3, 16, 16)
        assert torch.equal(design(several), torch.cat([exact(each[None]) for each in several]))
    images = core.run_json("simulate", str(tmp_path / "design"))["images"]
    assert images["latency_cycles"] < 1.75 * 16 * 18 * 18
    assert 3 * images["interval_cycles"] < 2.5 * 16 * 18 * 18


class Inception(nn.Module):
    """Parts of other sizes side by side, which a convolution and a maximum take."""

    def __init__(self):
        super().__init__()
        self.point, self.near = nn.Conv2d(4, 8, 1), nn.Conv2d(4, 16, 3, padding=1)
        self.behind, self.beside = nn.Conv2d(24, 4, 1), nn.Conv2d(24, 4, 1)

    def forward(self, x):
        both = torch.cat([torch.relu(self.point(x)), torch.relu(self.near(x))], 1)
        return self.behind(both) + self.beside(nn.functional.max_pool2d(both, 3, 1, 1))


def test_a_concatenation_passes_several_channels(core_built, tmp_path):
    """Images of a batch are not taken for channels of a part, so that one need not wait for the
    others. A channel at a time would take 24 cycles for each of 256 pixels, the maximum nine of a
    word at least 9.
    """
    torch.manual_seed(0)
    network, image = Inception().eval(), torch.randn(1, 4, 16, 16)
    exact = streamtensor.quantized(network, image, [image])
    with streamtensor.compile(
        network, image, quant="int8", calibration=[image], output=tmp_path / "design", images=4
    ) as design:
        several = torch.randn(4, 4, 16, 16)
        assert torch.equal(design(several), torch.cat([exact(each[None]) for each in several]))
    images = core.run_json("simulate", str(tmp_path / "design"))["images"]
    assert images["latency_cycles"] < 10 * 256
    assert images["interval_cycles"] < 7 * 256


def test_dense_layers_read_weights_through_several_ports(core_built, tmp_path):
    """A port brings 64 weights in a cycle at most. The convolution sends words that neither divide
    those of the layer behind it nor are divided by them.
    """
    torch.manual_seed(0)
    wide = nn.Conv2d(3, 12, 3, padding=1)
    network = nn.Sequential(wide, nn.ReLU(), nn.Flatten(), nn.Linear(12 * 64, 1024)).eval()
    image = torch.randn(1, 3, 8, 8)
    exact = streamtensor.quantized(network, image, [image])
    with streamtensor.compile(
        network, image, quant="int8", calibration=[image], output=tmp_path / "design"
    ) as design:
        other = torch.randn(1, 3, 8, 8)
        assert torch.equal(design(other), exact(other))
    launch = core.run_json("simulate", str(tmp_path / "design"))
    assert launch["cycles"] < 0.75 * 12 * 64 * 1024 / 64
