"""Compiles convolutional networks in int8 and simulates an image, and further ones of a launch.

    cnn.py [NETWORK ...]     prints rows (default: of all networks)
    cnn.py --write           writes bench/results/cnn.md

Weights are random, scales those of random images: they do not change a cycle. The networks are
those that HIDA (ASPLOS 2024) compiles for one die of a VU9P at 200 MHz with 8-bit numbers; its
cycles are those between images. Here they are compiled for the U55C, and for that die.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path

import torch
from common import ROOT, print_rows, script_arguments, stc
from torch import nn

import streamtensor
from streamtensor.checkpoints.weights import write

RESULTS = ROOT / "bench" / "results" / "cnn.md"
IMAGES = (4, 6)  # a launch, and another one: their difference is that of further images
HEAD = [
    "# Convolutional networks",
    "",
    "int8, static scales; simulated cycles with the board's memory, from a launch of one image to",
    "its last result with all weights read in between, and a further image of a launch of many:",
    "half the difference of launches of four and of six. `bench/cnn.py --write` makes the table.",
    "HIDA: cycles between images at 200 MHz. Seconds of the compiler depend on what runs beside.",
    "",
    "| network | board | one image | a further one | images/s | DSP | LUT k | compile s | HIDA |",
    "|---|---|---|---|---|---|---|---|---|",
]


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, made: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(channels, made, 3, stride, 1)
        self.second = nn.Conv2d(made, made, 3, 1, 1)
        direct = stride == 1 and channels == made
        self.shortcut = nn.Identity() if direct else nn.Conv2d(channels, made, 1, stride)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def _layers(channels: int, *made, kernel: int = 3, stride: int = 1, padding: int = 1) -> list:
    """Convolutions with a ReLU behind each; 0: a maximum pool."""
    found = []
    for each in made:
        if not each:
            found.append(nn.MaxPool2d(2, 2))
            continue
        found += [nn.Conv2d(channels, each, kernel, stride, padding), nn.ReLU()]
        channels = each
    return found


def _head(*widths: int) -> list:
    found = []
    for wide, narrow in zip(widths, widths[1:]):
        found += [nn.Linear(wide, narrow), nn.ReLU()]
    return [nn.Flatten(), *found[:-1]]


def resnet18(stem: list | None = None) -> nn.Module:
    stem = stem or [*_layers(3, 64, kernel=7, stride=2, padding=3), nn.MaxPool2d(3, 2, 1)]
    blocks, channels = [], 64
    for made in (64, 128, 256, 512):
        blocks += [Block(channels, made, 1 if made == 64 else 2), Block(made, made, 1)]
        channels = made
    return nn.Sequential(*stem, *blocks, Mean(), nn.Linear(512, 1000))


def resnet18_hida() -> nn.Module:
    stem = _layers(3, 64, kernel=7, padding=3)
    return resnet18([*stem, nn.MaxPool2d(2, 2), nn.MaxPool2d(3, 2, 1)])


def mobilenet() -> nn.Module:
    found, channels = _layers(3, 32, stride=2), 32
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5]
    for made, stride in [*steps, (1024, 2), (1024, 1)]:
        deep = nn.Conv2d(channels, channels, 3, stride, 1, groups=channels)
        found += [deep, nn.ReLU(), *_layers(channels, made, kernel=1, padding=0)]
        channels = made
    return nn.Sequential(*found, Mean(), nn.Linear(1024, 1000))


def zfnet() -> nn.Module:
    pool = nn.MaxPool2d(3, 2)
    first = _layers(3, 96, kernel=7, stride=2)
    second = _layers(96, 256, kernel=5, stride=2)
    rest = _layers(256, 384, 384, 256)
    return nn.Sequential(*first, pool, *second, pool, *rest, pool, *_head(6400, 4096, 4096, 1000))


def vgg16_thin() -> nn.Module:
    made = [32, 32, 0, 64, 64, 0, 128, 128, 128, 0, *[256] * 3, 0, *[512] * 3, 0]
    return nn.Sequential(*_layers(3, *made), *_head(512 * 49, 2048, 2048, 1000))


def vgg16() -> nn.Module:
    made = [64, 64, 0, 128, 128, 0, *[256] * 3, 0, *[512] * 3, 0, *[512] * 3, 0]
    return nn.Sequential(*_layers(3, *made), *_head(512 * 49, 4096, 4096, 1000))


def yolo() -> nn.Module:
    """Its weights are normal, as trained ones nearly are: sums of 122,880 of them fit 32 bits."""
    made = [16, 0, 32, 0, 64, 0, 128, 0, 256, 0, 512, 0, 512, 1024, 1024]
    found = nn.Sequential(*_layers(3, *made), *_head(1024 * 120, 256, 4096, 1470))
    for weight in found.parameters():
        if weight.ndim > 1:
            nn.init.kaiming_normal_(weight)
    return found


def mlp() -> nn.Module:
    return nn.Sequential(*_head(784, 1024, 1024, 1024, 10))


def lenet() -> nn.Module:
    first, second = _layers(1, 6, kernel=5, padding=2), _layers(6, 16, kernel=5, padding=0)
    pool = nn.MaxPool2d(2)
    return nn.Sequential(*first, pool, *second, pool, *_head(400, 120, 84, 10))


# the network, an image, and HIDA's DSPs and cycles between images
NETWORKS = {
    "ResNet-18": (resnet18, (3, 224, 224), 667, None),
    "ResNet-18 of HIDA": (resnet18_hida, (3, 224, 224), 667, 4_410_000),
    "MobileNetV1": (mobilenet, (3, 224, 224), 518, 1_460_000),
    "ZFNet": (zfnet, (3, 224, 224), 639, 2_210_000),
    "VGG-16, half as wide": (vgg16_thin, (3, 224, 224), 1118, 4_140_000),
    "VGG-16": (vgg16, (3, 224, 224), 1118, None),
    "YOLO": (yolo, (3, 384, 1280), 904, 5_930_000),
    "MLP": (mlp, (1, 28, 28), 164, 213_000),
    "LeNet": (lenet, (1, 28, 28), 209, None),
}


def _exported(network, image, folder: Path) -> None:
    """Writes the network of one image, and its weights."""
    example = (torch.randn((1, *image)),)
    quantized = streamtensor.quantized(network, example[0], [example])
    found = streamtensor.export(quantized, example, names=["image"])
    (folder / "network.mlir").write_text(found.text)
    weights = found.weights
    write(folder / "network.safetensors", weights, weights, weights.__getitem__)


def _compiled(folder: Path, options: list[str]) -> tuple[dict, dict, float]:
    """What a launch takes, resources, and seconds of the compiler."""
    design, begin = folder / "design", time.monotonic()
    given = ["--weights", folder / "network.safetensors", *options]
    stc("compile", folder / "network.mlir", "-o", design, *given)
    seconds = time.monotonic() - begin
    simulated = json.loads(stc("simulate", design, "--json", "--max-iterations", "16G"))
    report = json.loads((design / "report.json").read_text())
    shutil.rmtree(design)
    return simulated, report["resources"], seconds


def _row(name: str, board: str, folder: Path, options: list[str], published) -> str:
    cycles, resources, seconds, clock = [], {}, 0.0, 0.0
    for images in (1, *IMAGES):
        try:
            simulated, taken, took = _compiled(folder, [*options, "--images", str(images)])
        except RuntimeError as error:
            return f"| {name} | {board} | refused: {str(error).splitlines()[0]} |||||||"
        cycles.append(simulated["cycles"])
        if images == 1:
            resources, seconds, clock = taken, took, simulated["clock_mhz"]
    further = (cycles[2] - cycles[1]) / (IMAGES[1] - IMAGES[0])
    return (
        f"| {name} | {board} | {cycles[0]:,} | {further:,.0f} | {clock * 1e6 / further:,.0f} | "
        f"{resources['dsp']:,} | {resources['lut'] / 1e3:.0f} | {seconds:.1f} | "
        f"{f'{published:,}' if published else '–'} |"
    )


def rows(name: str):
    make, image, dsp, published = NETWORKS[name]
    torch.manual_seed(0)
    network = make().eval().requires_grad_(False)
    small = "xc7z020" if name == "LeNet" else "vu9p"
    options = ["--platform", small, "--kernel-dsp", str(dsp)]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        _exported(network, image, folder)
        yield _row(name, "u55c", folder, ["--platform", "u55c"], published)
        yield _row(name, f"{small}, {dsp} DSP", folder, options, published)


def main() -> None:
    given = script_arguments(__doc__, ("--write",))
    names = [each for each in given if not each.startswith("-")] or list(NETWORKS)
    found = (row for name in names for row in rows(name))
    print_rows(HEAD, found, RESULTS if "--write" in given else None)


if __name__ == "__main__":
    main()
