"""Networks quantized to integers of 8 bits: their accuracy, their arithmetic against onnxruntime's
formulas, designs against the reference in PyTorch, and what is refused.
"""

import gzip
import importlib.util
import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import streamtensor
from streamtensor import cli, core
from streamtensor.errors import Error
from streamtensor.lowering import integer_operators

F, ours = nn.functional, torch.ops.streamtensor


def _normed(*arguments, act=nn.ReLU, **options):
    convolution = nn.Conv2d(*arguments, bias=False, **options)
    return nn.Sequential(convolution, nn.BatchNorm2d(convolution.out_channels), act())


class Residual(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        wide = 2 * width
        self.stem = _normed(1, width, 3, padding=1)
        self.first = _normed(width, width, 3, padding=1)
        self.second = _normed(width, width, 3, padding=1, act=nn.Identity)
        self.short = _normed(width, wide, 1, stride=2, act=nn.Identity)
        self.third = _normed(width, wide, 3, stride=2, padding=1, act=nn.Identity)
        self.last = nn.Linear(wide, 10)

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
            threads = torch.get_num_threads()
            torch.set_num_threads(1)  # the networks are too small for more
            self._trained[kind] = self._train(kind())
            torch.set_num_threads(threads)
        return self._trained[kind]

    def _train(self, net: nn.Module) -> nn.Module:
        optimizer = torch.optim.Adam(net.parameters(), 0.01)
        for _ in range(8):
            for part in torch.randperm(len(self.seen)).split(64):
                optimizer.zero_grad()
                F.cross_entropy(net(self.seen[part]), self.seen_labels[part]).backward()
                optimizer.step()
        return net.eval().requires_grad_(False)

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


def test_a_design_equals_the_reference(digits, tmp_path):
    """The emitted C++, and the evaluator of the last level."""
    torch.manual_seed(1)
    net, image = Residual(4).eval().requires_grad_(False), digits.held[:1]
    reference = streamtensor.quantized(net, (image,), digits.seen[:32])
    with streamtensor.compile(
        net, (image,), quant="int8", calibration=digits.seen[:32], output=tmp_path / "d"
    ) as design:
        for at in range(4):
            assert torch.equal(
                design(digits.held[at : at + 1]), reference(digits.held[at : at + 1])
            )
    beside = core.find_file(core.COMPILER).parent / "unit" / "compare_design"
    done = subprocess.run([beside, tmp_path / "d"], capture_output=True, text=True)
    assert done.stdout.endswith(": the same\n"), done.stdout + done.stderr[-2000:]


class Every(nn.Module):
    """Operators that have forms in integers, and some between them that have none."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 3, padding="same", dilation=2)
        self.grouped = nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=4)
        self.depthwise = nn.Conv2d(12, 24, (1, 3), padding=(0, 1), groups=12)
        # of the image with its border, a window leaves out a row and a column
        self.squeeze, self.excite = nn.Conv2d(24, 4, 2, 2, 1), nn.Conv2d(4, 24, 1)
        self.up = nn.ConvTranspose2d(24, 8, 3, 2, 1, 1, groups=2)
        self.norm = nn.BatchNorm2d(8)
        self.rows = nn.Linear(20, 6)
        self.curve = nn.Conv1d(6, 3, 3, padding=1)

    def forward(self, x):
        wide = F.relu(F.max_pool2d(self.stem(x), 3, 1, 1))
        x = self.depthwise(F.hardtanh(self.grouped(wide), -0.5, 0.75))
        gate = F.hardsigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))
        x = F.relu6(self.norm(self.up(x * gate)))
        first, second = torch.cat((x, wide), 1).chunk(2, 1)
        x = torch.cat(
            (first + second, F.interpolate(F.avg_pool2d(x, 2), scale_factor=2), second), 1
        )
        x = F.max_pool2d(F.pad(x[:, :20], (1, 0)), 2, ceil_mode=True)
        x = F.hardswish(self.rows(x.permute(0, 2, 3, 1))).flatten(1, 2).transpose(1, 2)
        return self.curve(x), gate


class Both(nn.Module):
    def __init__(self, *nets):
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, x):
        return [each for net in self.nets for each in net(x)]


ALWAYS = "quantize center dequantize dequantize_channels integer_convolution integer_product"
ALWAYS += " integer_max_pool integer_window_sums"


def test_every_form_in_a_design():
    torch.manual_seed(3)
    net = Every().eval().requires_grad_(False)
    net.norm.running_mean.normal_(0, 0.1)
    net.norm.running_var.uniform_(0.5, 2)
    inputs = [torch.randn(1, 2, 6, 8) for _ in range(4)]
    references = []
    for scheme, own in (
        ("int8", "requantize requantize_channels integer_add"),
        ("int8,multiplier=i18", "shift shift_channels shift_sum"),
    ):
        found = streamtensor.quantized(net, inputs[0], [(x,) for x in inputs], scheme)
        used = [getattr(node.target, "_opname", "") for node in found.graph.nodes]
        library = {name for name in used if hasattr(ours, name)}
        assert library == set(f"{ALWAYS} {own}".split())
        references.append(found)
    both = Both(*references)
    with streamtensor.compile(both, inputs[0]) as design:
        for x in inputs:
            for found, expected, exact in zip(design(x), both(x), 2 * net(x), strict=True):
                assert torch.equal(found, expected)
                assert (expected - exact).norm() <= 0.03 * exact.norm()


def test_integer_multipliers_are_seldom_off():
    """By one, and the seldomer the more bits they have."""
    torch.manual_seed(0)
    sums = torch.randint(-(2**19), 2**19, (1, 64, 64, 64), dtype=torch.int32)
    scales = torch.rand(64) * 2e-4 + 1e-4
    bias = torch.zeros(64, dtype=torch.int32)
    exact = ours.requantize_channels(sums, bias, scales, -128, 127, False)
    rates = []
    for bits, most in ((16, 1e-3), (18, 2e-4)):
        factors, shift = integer_operators.shifted_factors(scales, bits)
        assert 2 ** (bits - 2) <= int(factors.max()) < 2 ** (bits - 1)
        found = ours.shift_channels(sums, bias, factors, shift, -128, 127, False)
        apart = (found.int() - exact.int()).abs()
        assert apart.max() == 1
        rates.append(float(apart.float().mean()))
        assert rates[-1] <= most
    assert 0 < rates[1] < rates[0] / 2


def test_sums_are_rounded_once():
    """onnxruntime's addition: x * r + f32(y * q) in f32 without a rounding between."""
    generator = numpy.random.default_rng(0)
    x, y = (torch.from_numpy(each.ravel()) for each in numpy.mgrid[-128:128, 0:256])
    x, y = x.to(torch.int8), y.to(torch.uint8)
    twice = 0
    for ratios in generator.uniform(0.01, 3, (16, 2)).astype(numpy.float32):
        by, other = map(float, ratios)
        found = ours.integer_add(x, y, by, other, -128, 127, False)
        term = (y.float() * other).double()
        once = (x.double() * by + term).float()
        assert torch.equal(found, once.round().clamp(-128, 127).to(torch.int8))
        plain = (x.float() * by + y.float() * other).round().clamp(-128, 127)
        twice += int((plain != found).sum())
    assert twice > 0


def test_weights_of_four_bits(digits):
    net = digits.trained(Residual)
    found = streamtensor.quantized(net, digits.held, digits.seen, "int8,weight=i4")
    weights = [value for name, value in found.named_buffers() if name.endswith("weight")]
    assert max(int(each.abs().max()) for each in weights) == 7
    assert digits.share(found) >= digits.share(net) - 5


def _read(tmp_path, name: str, **arrays):
    numpy.savez(tmp_path / name, **arrays)
    return tmp_path / name


def test_calibration_from_files(tmp_path):
    net, image = nn.Conv2d(1, 2, 3).eval(), torch.randn(1, 1, 8, 8)
    images = torch.randn(6, 1, 8, 8)
    numpy.save(tmp_path / "all.npy", images.numpy())
    (tmp_path / "apart").mkdir()
    for at, each in enumerate(images):
        numpy.save(tmp_path / "apart" / f"{at}.npy", each.double().numpy())
    packed = _read(tmp_path, "all.npz", images=images.numpy())
    expected = streamtensor.quantized(net, image, images)(image)
    for place in (tmp_path / "all.npy", tmp_path / "apart", str(packed)):
        assert torch.equal(streamtensor.quantized(net, image, place)(image), expected), place


IMAGE = torch.zeros(1, 1, 8, 8)
WRONG = {
    "nothing": (None, "int8 needs calibration inputs"),
    "empty": ([], "there are no calibration inputs"),
    "no rows": (torch.zeros(0, 1, 8, 8), "there are no calibration inputs"),
    "NaN": ([IMAGE, IMAGE / 0], "calibration input 1 has NaN in it"),
    "infinity": ([(IMAGE + 1) / 0], "calibration input 0 has an infinity in it"),
    "size": (torch.zeros(4, 1, 8, 9), "calibration input is 4x1x8x9 of float32"),
    "type": ([IMAGE.int()], "calibration input 0 is 1x1x8x8 of int32"),
    "array": ([IMAGE.numpy()], "calibration input 0 is of type ndarray, not a tensor"),
    "two": ([(IMAGE, IMAGE)], "calibration input 0 has 2 tensors, the module takes 1"),
    "number": (3, "calibration inputs are of type int"),
    "path": ("nowhere.npy", "nowhere.npy: there is no such file or folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calibration_is_told(name):
    given, message = WRONG[name]
    with pytest.raises(Error) as error:
        streamtensor.compile(nn.Conv2d(1, 2, 3), IMAGE, quant="int8", calibration=given)
    assert error.value.message == message
    assert error.value.notes[0].startswith(("accepted", "--calibration"))


def test_wrong_files_are_told(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "cut.npz").write_bytes(b"PK\3\4")
    (tmp_path / "none").mkdir()
    for name, message in (
        ("text.npy", "not an array"),
        ("cut.npz", "not"),
        ("none", "no calibration inputs in this folder"),
    ):
        with pytest.raises(Error, match=message) as error:
            streamtensor.quantized(nn.Conv2d(1, 2, 3), IMAGE, tmp_path / name)
        assert str(error.value).startswith(str(tmp_path / name))


def test_what_int8_does_not_take():
    with pytest.raises(Error, match="int8 finds no layer to quantize"):
        streamtensor.quantized(nn.ReLU(), IMAGE, IMAGE)
    with pytest.raises(Error, match="'1' is in training mode"):
        streamtensor.quantized(_normed(1, 2, 3), IMAGE, IMAGE)
    with pytest.raises(Error, match="cannot read 'range=most'"):
        streamtensor.quantized(nn.Conv2d(1, 2, 3), IMAGE, IMAGE, "int8,range=most")
    with pytest.raises(Error, match="calibration has no effect with quant='w8a8'"):
        streamtensor.compile(nn.Conv2d(1, 2, 3), IMAGE, quant="w8a8", calibration=IMAGE)


MODULE_FILE = """
import torch
from torch import nn

def net():
    layers = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
    return nn.Sequential(*layers).eval(), {"image": torch.zeros(1, 1, 8, 8)}

def half():
    return net()[0]
"""


def test_a_module_of_a_file_on_the_command_line(core_built, tmp_path, capfd):
    file, images, folder = tmp_path / "nets.py", tmp_path / "images.npy", tmp_path / "design"
    file.write_text(MODULE_FILE)
    numpy.save(images, torch.randn(4, 1, 8, 8).numpy())

    def run(name: str, *options) -> int:
        words = "compile", f"{file}:{name}", "--platform", "u55c", "-o", folder, *options
        return cli.main(list(map(str, words)))

    assert run("net", "--quant", "int8", "--calibration", images) == 0
    text = (folder / "manifest.json").read_text()
    assert '"image"' in text and '"0.multiplier"' in text
    for name, options, message in (
        ("net", ("--quant", "int8"), "int8 needs calibration inputs"),
        ("net", ("--argmax",), "--argmax has no effect with"),
        ("net", ("--quant", "int8,range=x"), "cannot read 'range=x'"),
        ("ten", (), "there is no function or module 'ten'"),
        ("half", (), "half gives no example inputs"),
    ):
        assert run(name, *options) == 1
        assert message in capfd.readouterr().err, message
