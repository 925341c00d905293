"""Trained networks out of packages, as designs on inputs made here: the first net of a face
detector, and a voice detector that is called for one window after the other.
"""

import importlib.util
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import streamtensor


def package_file(package: str, name: str) -> Path:
    return Path(importlib.util.find_spec(package).origin).parent / name


class FaceProposals(nn.Module):
    """P-Net: for each place of an image the shift of a box and how likely it holds a face."""

    def __init__(self):
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
        self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x):
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), torch.softmax(self.conv4_1(x), 1)


class VoiceWindow(nn.Module):
    """Silero VAD at 16 kHz: how likely a window of 576 samples has speech, and the cell's state."""

    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, x, h, c):
        x = nn.functional.pad(x, (0, 64), "reflect").unsqueeze(1)
        x = self.stft_conv(x)
        x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = conv(x).relu()
        h, c = self.lstm_cell(x.squeeze(-1), (h, c))
        return self.final_conv(h.unsqueeze(-1).relu()).sigmoid().mean((1, 2)), h, c


def picture(size: int) -> torch.Tensor:
    """A drawn face on a plain ground: an oval, two eyes and a mouth; from -1 to 1."""
    y, x = torch.meshgrid(*2 * (torch.linspace(-1, 1, size),), indexing="ij")

    def oval(at_x, at_y, width, height):
        return (((x - at_x) / width) ** 2 + ((y - at_y) / height) ** 2 < 1).float()

    face, hair = oval(0, 0.05, 0.5, 0.7), oval(0, -0.2, 0.6, 0.75)
    dark = oval(-0.2, -0.1, 0.09, 0.05) + oval(0.2, -0.1, 0.09, 0.05) + oval(0, 0.4, 0.2, 0.05)
    tone = torch.tensor([0.9, 0.7, 0.6])[:, None, None]
    ground = torch.tensor([0.3, 0.5, 0.7])[:, None, None].expand(3, size, size)
    drawn = ground * (1 - hair) + 0.15 * hair * (1 - face) + tone * face * (1 - dark)
    return (2 * drawn - 1)[None]


def sound(windows: int) -> torch.Tensor:
    """Silence and noise, then a vowel: pulses of a voice through two resonances."""
    generator = torch.Generator().manual_seed(0)
    count = 512 * windows + 64
    noise = 0.003 * torch.randn(count, generator=generator)
    time = torch.arange(count) / 16000
    pitch = 120 + 20 * torch.sin(2 * math.pi * 3 * time)
    phase = torch.cumsum(pitch / 16000, 0) * 2 * math.pi
    voice = sum(
        math.exp(-(((120 * k - formant) / 250) ** 2)) * torch.sin(k * phase)
        for formant in (700, 1200)
        for k in range(1, 30)
    )
    return noise + 0.1 * voice * (time > 256 * windows / 16000)


@pytest.mark.parametrize("quant, error, unsure", [(None, 1e-5, 0), ("w8a8", 0.06, 0.2)])
def test_faces_are_found(quant, error, unsure):
    """unsure: likelihoods of PyTorch that are so near to a half may fall on the other side."""
    net = FaceProposals().eval().requires_grad_(False)
    net.load_state_dict(torch.load(package_file("facenet_pytorch", "data/pnet.pt")))
    image = picture(24)
    boxes, faces = net(image)
    with streamtensor.compile(net, (image,), quant=quant) as design:
        found_boxes, found_faces = design(image)
    sure = (faces[:, 1] - 0.5).abs() > unsure
    assert torch.equal(found_faces.argmax(1)[sure], faces.argmax(1)[sure])
    assert faces[0, 1].max() > 0.9 and sure.float().mean() > 0.8
    assert (found_boxes - boxes).norm() <= error * boxes.norm()


@pytest.mark.parametrize(
    "quant, error", [(None, 1e-5), pytest.param("w8a8", 0.12, marks=pytest.mark.long)]
)
def test_speech_is_heard(quant, error):
    net = VoiceWindow().eval().requires_grad_(False)
    weights = package_file("silero_vad", "data/silero_vad_16k.safetensors")
    net.load_state_dict(load_file(weights))
    text = sound(12)
    windows = [text[None, 512 * i : 512 * i + 576] for i in range(12)]
    zeros = torch.zeros(1, 128)
    heard, states, found_states, found = [], (zeros, zeros), (zeros, zeros), []
    with streamtensor.compile(net, (windows[0], zeros, zeros), quant=quant) as design:
        for window in windows:
            said, *states = net(window, *states)
            heard.append(said.item())
            said, *found_states = design(window, *found_states)
            found.append(said.item())
    assert [each > 0.5 for each in heard] == [each > 0.5 for each in found]
    assert max(heard) > 0.5 > min(heard)
    assert max(abs(each - other) for each, other in zip(heard, found)) <= error
