"""Networks for images by name, as torchvision defines them: its own where it is installed, else
those written here, whose tensors have torchvision's names and shapes.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from ..errors import Error
from ..module_file import ModuleFile

_SIDE = 224


def _convolution(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


class _Residual(nn.Module):
    """Convolutions of these kernels beside a shortcut; the second of three, or the first of two,
    has the stride.
    """

    def __init__(self, inputs: int, width: int, outputs: int, stride: int, kernels: tuple):
        super().__init__()
        widths = [inputs, *[width] * (len(kernels) - 1), outputs]
        self._count, strided = len(kernels), len(kernels) - 2
        for i, kernel in enumerate(kernels):
            step = stride if i == strided else 1
            made = _convolution(widths[i], widths[i + 1], kernel, step)
            self.add_module(f"conv{i + 1}", made)
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(widths[i + 1]))
        self.downsample = None
        if stride > 1 or inputs != outputs:
            made = _convolution(inputs, outputs, 1, stride)
            self.downsample = nn.Sequential(made, nn.BatchNorm2d(outputs))

    def forward(self, x):
        short = x if self.downsample is None else self.downsample(x)
        for i in range(1, self._count + 1):
            x = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x))
            x = torch.relu(x) if i < self._count else torch.relu(x + short)
        return x


class _ResNet(nn.Module):
    def __init__(self, depths: tuple, kernels: tuple = (3, 3)):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs, grown = 64, 4 if len(kernels) == 3 else 1
        for group, depth in enumerate(depths):
            width, blocks = 64 << group, []
            for block in range(depth):
                stride = 2 if group and not block else 1
                blocks.append(_Residual(inputs, width, width * grown, stride, kernels))
                inputs = width * grown
            self.add_module(f"layer{group + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class _VGG(nn.Module):
    def __init__(self, widths: tuple):
        super().__init__()
        features, inputs = [], 3
        for width in widths:
            if not width:
                features.append(nn.MaxPool2d(2))
                continue
            features += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()]
            inputs = width
        self.features = nn.Sequential(*features)
        first, second, last = (
            nn.Linear(512 * 49, 4096),
            nn.Linear(4096, 4096),
            nn.Linear(4096, 1000),
        )
        self.classifier = nn.Sequential(
            first, nn.ReLU(), nn.Dropout(), second, nn.ReLU(), nn.Dropout(), last
        )

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def _normed(*arguments) -> nn.Sequential:
    made = _convolution(*arguments)
    return nn.Sequential(made, nn.BatchNorm2d(made.out_channels), nn.ReLU6())


class _Inverted(nn.Module):
    """A narrow block with a wide depthwise convolution inside."""

    def __init__(self, inputs: int, outputs: int, stride: int, expanded: int):
        super().__init__()
        wide = inputs * expanded
        layers = [_normed(inputs, wide, 1)] if expanded > 1 else []
        layers += [_normed(wide, wide, 3, stride, wide), _convolution(wide, outputs, 1)]
        self.conv = nn.Sequential(*layers, nn.BatchNorm2d(outputs))
        self._adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self._adds else self.conv(x)


class _MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        features, inputs = [_normed(3, 32, 3, 2)], 32
        steps = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
        for expanded, outputs, depth, stride in (*steps, (6, 160, 3, 2), (6, 320, 1, 1)):
            for block in range(depth):
                features.append(_Inverted(inputs, outputs, 1 if block else stride, expanded))
                inputs = outputs
        self.features = nn.Sequential(*features, _normed(inputs, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(1280, 1000))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


_VGG16 = (64, 64, 0, 128, 128, 0, *[256] * 3, 0, *[512] * 3, 0, *[512] * 3, 0)
_OWN: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: _ResNet((2, 2, 2, 2)),
    "resnet34": lambda: _ResNet((3, 4, 6, 3)),
    "resnet50": lambda: _ResNet((3, 4, 6, 3), (1, 3, 1)),
    "vgg16": lambda: _VGG(_VGG16),
    "mobilenet_v2": _MobileNetV2,
}


def _torchvision():
    if importlib.util.find_spec("torchvision") is None:
        return None
    from torchvision import models

    return models


def is_image_model(name: str) -> bool:
    """A name of ours or torchvision's, and of no file or folder."""
    theirs = _torchvision()
    known = name in _OWN or (theirs is not None and name in theirs.list_models(theirs))
    return known and not Path(name).exists()


def known_names() -> list[str]:
    """Those of every installation; torchvision, where it is there, has more."""
    return list(_OWN)


def build(name: str) -> nn.Module:
    theirs = _torchvision()
    return theirs.get_model(name, weights=None) if theirs else _OWN[name]()


def load(name: str, seed: int, weights: Path | None, note=lambda _: None) -> ModuleFile:
    """The network for one image. seed: of random weights; note: is told of these."""
    torch.manual_seed(seed)
    module = build(name).eval()
    if _torchvision() is None:
        note(f"torchvision is not installed: {name} as streamtensor has it")
    if weights is None:
        note(f"random weights for {name} (seed {seed}); --weights FILE names others")
    else:
        _fill(module, weights)
    return ModuleFile(module, (torch.zeros(1, 3, _SIDE, _SIDE),), ["image"], ("classes",))


def _read(path: Path) -> dict[str, torch.Tensor]:
    accepted = "accepted is a state_dict as .safetensors, or as torch.save writes it"
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        raise Error(f"{path}: not a file of weights: {error}".splitlines()[0], accepted) from None
    if not isinstance(found, dict):
        raise Error(f"{path}: {type(found).__name__}, not a state_dict", accepted)
    return found


def _fill(module: nn.Module, path: Path) -> None:
    found, wanted = _read(path), module.state_dict()
    for name, value in wanted.items():
        if name.endswith("num_batches_tracked"):
            continue
        if name not in found:
            raise Error(f"{path}: the weight '{name}' is missing", "accepted are torchvision's")
        if found[name].shape != value.shape:
            shapes = ("x".join(map(str, each.shape)) for each in (found[name], value))
            raise Error(
                f"{path}: the weight '{name}' is {next(shapes)}", f"accepted is {next(shapes)}"
            )
    module.load_state_dict({**wanted, **{name: found[name] for name in wanted if name in found}})
