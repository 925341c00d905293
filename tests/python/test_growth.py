"""What stays cheap as sizes grow: ports of large operands and results, prefix sums,
compile time."""

import json
import math
import sys

import pytest
import torch
from conftest import ROOT, stc
from torch import nn
from torch.nn import functional

import streamtensor

sys.path.insert(0, str(ROOT / "bench"))
import growth  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def _before(x, *, above):
    at = torch.arange(x.shape[-1])
    seen = at.unsqueeze(1) > at if above else at < at.unsqueeze(1)
    return torch.where(seen, x.unsqueeze(-2), torch.zeros(())).sum(-1)


def _prefixes(x, rows, tall, numbers):
    return (
        x.cumsum(0),
        rows.cumsum(1),
        tall.cumsum(0) * 2 + tall,
        numbers.cumsum(0),
        (1 + x[:523] / 100).cumprod(0),
        rows.cummax(1)[0],
        _before(x[:900], above=True),
        _before(rows, above=False),
        x.view(1, 1000, 1).expand(1, 1000, 3).cumsum(1),
        torch.softmax(rows @ rows.mT @ rows / 99, 1).cumsum(1),
    )


def _design(module, inputs, folder, platform="u55c"):
    source = folder / "module.mlir"
    source.write_text(streamtensor.export(module, inputs).text)
    done = stc("compile", source, "--platform", platform, "-o", folder / "design")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "design" / "report.json").read_text())


def test_prefix_sums_are_those_of_pytorch(core_built):
    torch.manual_seed(1)
    inputs = (
        torch.randn(1000),
        torch.randn(6, 640),
        torch.randn(600, 48),
        torch.randint(-1000, 1000, (521,)),
    )
    expected = _prefixes(*(each.double() if each.is_floating_point() else each for each in inputs))
    with streamtensor.compile(Function(_prefixes), inputs) as design:
        found = design(*inputs)
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        assert torch.allclose(got.double(), wanted.double(), rtol=1e-5, atol=2e-5)


def test_small_results_leave_all_ports_to_what_is_read(core_built):
    """A word of 512 numbers, wider than a FIFO may be; the results share an adapter."""
    inputs = (torch.randn(64, 512),)
    with streamtensor.compile(Function(lambda x: x.sum(1)), inputs) as design:
        assert torch.allclose(design(*inputs), inputs[0].sum(1), atol=1e-4)


@pytest.mark.parametrize("dims", [(0, 1), 0, 1])
def test_sums_are_read_by_all_channels(dims, core_built, tmp_path):
    """A channel brings 44 bytes a cycle; the latencies of memory and adders come on top."""
    report = _design(Function(lambda x: x.sum(dims)), (torch.zeros(512, 512),), tmp_path)
    assert report["ports"] == 32
    assert report["cycles"]["simulated"] < 512 * 512 * 4 / (32 * 44) + 400


def test_ports_bring_the_columns_of_gathered_rows(core_built):
    """Four words a row: without them it takes as many times as long."""
    inputs = (torch.randn(512, 64), torch.randint(0, 512, (1024,)))
    with streamtensor.compile(Function(lambda x, at: x[at]), inputs) as design:
        assert design.report.cycles < 2.2 * 1024
        assert torch.equal(design(*inputs), inputs[0][inputs[1]])


def test_a_prefix_sum_is_no_square(core_built, tmp_path):
    """2^26 numbers, whose masked sum would have 2^52 terms."""
    report = _design(Function(lambda x: x.cumsum(0)), (torch.zeros(1 << 26),), tmp_path)
    assert report["cycles"]["model"] < 400_000


@pytest.mark.parametrize(
    "reduce, shape", [("cumsum", (1 << 14,)), ("cumprod", (1 << 14,)), ("cumsum", (16, 1024))]
)
def test_prefixes_take_linear_time(reduce, shape, core_built, tmp_path):
    inputs = (torch.zeros(shape),)
    report = _design(Function(lambda x: getattr(x, reduce)(-1)), inputs, tmp_path)
    """Of 128 numbers a cycle, behind the latency of the memory and of the adders."""
    assert report["cycles"]["simulated"] < (1 << 14) / 16


def test_a_scan_takes_half_of_what_memory_brings(core_built, tmp_path):
    """Words of 256 numbers, wider than a FIFO, come through half of the ports."""
    report = _design(Function(lambda x: x.cumsum(0)), (torch.zeros(1 << 18),), tmp_path)
    assert report["cycles"]["simulated"] < (1 << 18) / 110


@pytest.mark.long
def test_a_scan_of_wide_words_is_that_of_pytorch(core_built):
    torch.manual_seed(0)
    x = torch.randn(1 << 14)
    with streamtensor.compile(Function(lambda x: x.cumsum(0)), (x,), platform="u55c") as design:
        found = design(x)
    assert torch.allclose(found.double(), x.double().cumsum(0), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("platform", ["u55c", "vu9p"])
def test_results_come_through_several_ports(platform, core_built):
    """Words of a power of two elements, others, and of bytes."""

    def function(x, y):
        return torch.relu(x), x.t().contiguous(), y * 2, x + x.flip(0), torch.softmax(x, 1)

    torch.manual_seed(0)
    inputs = torch.randn(192, 448), torch.randint(-50, 50, (640, 384), dtype=torch.int8)
    with streamtensor.compile(Function(function), inputs, platform=platform) as design:
        found = design(*inputs)
        ports = json.loads((design.folder / "report.json").read_text())["ports"]
    for got, wanted in zip(found, function(*inputs), strict=True):
        assert got.dtype == wanted.dtype and torch.allclose(got, wanted, rtol=1e-5, atol=1e-7)
    assert ports <= 32


@pytest.mark.parametrize(
    "function, operands, tensors, together",
    [
        (torch.relu, 1, 2, 128),
        (torch.add, 2, 3, 64),
        (lambda x, y: x + y[0], 2, 0, 100),
        (lambda x: x.t().contiguous(), 1, 2, 128),
        (torch.argmax, 1, 0, 128),
    ],
)
def test_one_operator_uses_the_memory_of_the_card(
    function, operands, tensors, together, core_built, tmp_path
):
    """A port brings at most 16 numbers a cycle, 11 on average; sixteen ports of a tensor 176.
    tensors: as large as the inputs, which memory reads or writes once; 0: not looked at."""
    inputs = tuple(torch.zeros(512, 512) for _ in range(operands))
    report = _design(Function(function), inputs, tmp_path)
    assert report["cycles"]["simulated"] < 512 * 512 / together
    if tensors:
        assert report["bounds"]["memory_ms"] == pytest.approx(
            tensors * 4 * 512 * 512 / (32 * 14.375e6 * 0.92), rel=1e-3
        )


def _pools(x, tall, rows):
    return (
        functional.max_pool2d(x, 2),
        functional.avg_pool2d(torch.sin(x), (3, 2)),
        functional.avg_pool2d(tall, 4) * 3,
        functional.max_pool2d(x, (2, 1), (2, 1)).sum(1),
        rows.view(3, 40, 8).prod(-1),
    )


def test_pools_take_words_of_several_windows(core_built, tmp_path):
    """Of rows that make one word and several, which wait for the rows of their windows."""
    torch.manual_seed(0)
    image = torch.zeros(64, 64, 64)
    inputs = torch.randn(2, 3, 18, 64), torch.randn(1, 2, 20, 68), torch.randn(3, 320)
    with streamtensor.compile(Function(_pools), inputs, platform="u55c") as design:
        found = design(*inputs)
    for got, wanted in zip(found, _pools(*inputs), strict=True):
        assert torch.allclose(got, wanted, rtol=1e-5, atol=1e-6)
    report = _design(Function(lambda x: functional.avg_pool2d(x, 2)), (image,), tmp_path)
    assert report["cycles"]["simulated"] < image.numel() / 32


def _normed(x, row):
    return functional.layer_norm(x, x.shape[1:]) + row


def test_kernels_that_share_a_load_have_its_ports(core_built):
    """Mean, variance and result read the same rows, which half of the ports bring; the row shares
    an adapter with another port."""
    torch.manual_seed(0)
    inputs = torch.randn(128, 2048), torch.randn(2048)
    with streamtensor.compile(Function(_normed), inputs, platform="u55c") as design:
        found = design(*inputs)
        report = json.loads((design.folder / "report.json").read_text())
    assert torch.allclose(found, _normed(*inputs), rtol=1e-4, atol=1e-4)
    assert report["ports"] == 32 and report["cycles"]["simulated"] < 128 * 2048 / 100


def test_compile_time_grows_with_the_layers(core_built, tmp_path):
    """Four times as many layers take at most eight times as long; a quadratic pass: sixteen. The
    FIFO sizes that are tried differ from network to network: they have a bound a layer.
    """
    modules = {
        row["size"]: growth.measure(tmp_path / row["file"])
        for row in growth.export(tmp_path, ["layers"], (16, 64))["layers"]
    }
    seconds, peak = (
        growth.exponent(list(modules), [each[key] for each in modules.values()])
        for key in ("seconds", "peak")
    )
    assert seconds < 1.5 and peak < 1.5
    for layers, each in modules.items():
        assert each["steps"].pop("size_fifos") < 1_000_000 * layers
    _check_steps(*(each["steps"] for each in modules.values()))


# Each move of the placement looks at all items, up to a limit; trials are rated behind
# bind_storage.
MORE_THAN_LINEAR = {"floorplan": 16, "bind_storage": math.inf}


def _check_steps(fewer, more):
    """Counted work of each stage that takes a part worth looking at: some four times as much. It is
    the same each time, so that a quadratic pass is seen on a busy machine, too."""
    assert sum(more.values()) < 8 * sum(fewer.values())
    for name, steps in more.items():
        if steps > sum(more.values()) / 1000:
            assert steps < MORE_THAN_LINEAR.get(name, 6) * fewer[name], name


def _over_all(x):
    return torch.softmax(x, 0), functional.layer_norm(x, x.shape)


def test_a_tensor_that_cannot_wait_on_chip_is_read_again(core_built):
    """Maximum, sum and quotients of a softmax, mean, variance and result of a norm: each reads the
    tensor anew, since the memory on chip holds a fraction of it."""
    torch.manual_seed(0)
    x = torch.randn(1 << 14)
    options = {"on_chip_memory": "64K"}
    with streamtensor.compile(Function(_over_all), (x,), platform="u55c", **options) as design:
        found = design(x)
        report = json.loads((design.folder / "report.json").read_text())
    for got, wanted in zip(found, _over_all(x), strict=True):
        assert torch.allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert report["fifos"]["needed_bytes"] < 64 << 10
