"""Operators that are decomposed here or read as slices, against PyTorch: the rows of a theme are
one design.
"""

import re

import pytest
import torch
from test_constant_folding import Of
from torch import nn

import streamtensor
from streamtensor.lowering import gather_rewrites, sort_scatter_decompositions

F = nn.functional
IMAGE, MATRIX, SIGNAL = (1, 2, 4, 6), (4, 6), (1, 2, 6)
NUMBERS = torch.tensor([[1, 0, 2], [3, -1, 1], [0, 5, 2], [4, 4, 4]])
PLACES = torch.tensor([[1, 0, 2], [3, 5, 1], [0, 5, 2], [4, 3, 1]])
MIXED = [13, 2, 17, 0, 9, 5, 19, 11, 3, 14, 7, 1, 18, 12, 6, 16, 4, 10, 8, 15]
TIES = torch.tensor([[1.0, 3, 1, 0, 2, 2, 0, 1], [0, 0, 0, 0, 1, 1, -1, 0]])


class Each(nn.Module):
    """The rows' functions, each of its own inputs."""

    def __init__(self, rows):
        super().__init__()
        self.functions = nn.ModuleList(
            row[0] if isinstance(row[0], nn.Module) else Call(row[0]) for row in rows
        )
        self.counts = [len(row) - 1 for row in rows]

    def forward(self, *inputs):
        results = []
        for function, count in zip(self.functions, self.counts):
            results.append(function(*inputs[:count]))
            inputs = inputs[count:]
        return tuple(results)


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def rotated(x):
    """Pairs of numbers turned by angles, as decoders turn their queries."""
    turns = torch.polar(torch.ones(4, 3), torch.arange(12.0).reshape(4, 3)).to(x.device)
    return torch.view_as_real(torch.view_as_complex(x.reshape(4, 3, 2)) * turns).flatten(1)


class Filter(nn.Module):
    """Products with a complex parameter and a bias, which are constants of the design."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3, dtype=torch.complex64)

    def forward(self, x):
        return torch.fft.irfft(self.layer(torch.fft.rfft(x)), n=5)


def filtered(x):
    spectrum = torch.fft.rfft(x) * (0.5 - 2j)
    return torch.fft.irfft(spectrum / (spectrum.conj() + 3), n=6)


class Chosen(nn.Module):
    """Elements under masks of a buffer, of a constant and of counters."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.constant = (torch.tensor([0, 2, 0, 1, 0, 0]) > 0,)

    def forward(self, x):
        above = torch.ones(4, 6).triu(1).bool()
        written = x.clone()
        written[self.mask] = x[:3] * 2
        written[:, self.constant[0]] = 1.0
        return (
            written,
            x[self.mask],
            x[~self.mask, 1],
            x[:, self.constant[0]],
            (x + 1)[above],
            x.masked_select(above.logical_not()),
            above.nonzero(),
            x[self.mask & ~self.mask],
        )


MASK = torch.tensor([True, False, True, True])


def written_mask(x):
    MASK[:2].logical_not_()
    return x[MASK]


def aligned(scores, labels, steps, lengths):
    found = F.ctc_loss(scores.log_softmax(-1), labels, steps, lengths, reduction="none")
    return found, F.ctc_loss(scores.log_softmax(-1), labels, (5, 4), (3, 1), zero_infinity=True)


ROWS = {
    "known to PyTorch": [
        (Chosen(), MATRIX),
        (
            aligned,
            (5, 2, 4),
            torch.tensor([[1, 2, 2], [3, 1, 0]]),
            torch.tensor([5, 4]),
            torch.tensor([2, 2]),
        ),
        (lambda x, y: F.gaussian_nll_loss(x, y, y.abs(), full=True), MATRIX, MATRIX),
        (
            torch.gcd,
            torch.tensor([12, -18, 0, 7, 2**30, 0], dtype=torch.int32),
            torch.tensor([18, 27, -5, 0, 2**20, 0], dtype=torch.int32),
        ),
        (
            lambda x, at: [
                F.grid_sample(x, at, mode, padding, align_corners=align)
                for mode, padding, align in (
                    ("bilinear", "zeros", False),
                    ("bilinear", "reflection", True),
                    ("nearest", "border", False),
                )
            ],
            (1, 2, 3, 2, 4),
            (1, 2, 2, 1, 3),
        ),
    ],
    "labels": [
        (
            lambda x, labels: [
                F.multilabel_margin_loss(x, labels, reduction=each)
                for each in ("none", "mean", "sum")
            ],
            MATRIX,
            torch.tensor(
                [[3, 0, -1, 1, 2, 5], [-1, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]
                + [[2, 2, 1, -1, 0, 0]]
            ),
        ),
    ],
    "complex": [
        (rotated, MATRIX),
        (filtered, MATRIX),
        (Filter(), MATRIX),
        (lambda x: torch.fft.fft2(x).real, MATRIX),
        (lambda x: torch.stft(x, 4, return_complex=True, center=False).abs(), (2, 10)),
    ],
    "resized": [
        (lambda x: F.interpolate(x, scale_factor=2), IMAGE),
        (lambda x: F.interpolate(x, scale_factor=1.5), IMAGE),
        (lambda x: F.interpolate(x, size=(7, 4), mode="nearest-exact"), IMAGE),
        (lambda x: F.interpolate(x, scale_factor=3), (1, 2, 2, 3, 2)),
        (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE),
        (lambda x: F.interpolate(x, scale_factor=(3, 2.5), mode="bilinear"), IMAGE),
        (
            lambda x: F.interpolate(
                x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True
            ),
            IMAGE,
        ),
        (lambda x: F.interpolate(x, size=(7, 3), mode="bilinear", align_corners=True), IMAGE),
        (lambda x: F.interpolate(x, size=9, mode="linear"), SIGNAL),
        (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), IMAGE),
        (lambda x: F.interpolate(x, size=(2, 4), mode="bilinear", antialias=True), IMAGE),
        (nn.UpsamplingBilinear2d(scale_factor=2), IMAGE),
    ],
    "pools of one image": [
        (lambda x: F.max_pool1d(x, 2, dilation=2), MATRIX),
        (lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 4, 6)),
        (lambda x: F.max_pool3d(x, 2), (1, 2, 4, 4)),
        (lambda x: F.avg_pool1d(x, 2), MATRIX),
        (lambda x: F.avg_pool3d(x, 2), (1, 2, 4, 4)),
    ],
    "transposed": [
        (nn.ConvTranspose1d(2, 3, 3, stride=3, output_padding=2), SIGNAL),
        (nn.ConvTranspose1d(2, 3, 4, padding=1), SIGNAL),
        (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), IMAGE),
        (nn.ConvTranspose2d(2, 4, 2, stride=2, groups=2, bias=False), IMAGE),
        (nn.ConvTranspose2d(2, 2, 4, stride=(2, 1), padding=1, groups=2), IMAGE),
        (nn.ConvTranspose2d(2, 3, 3, stride=(2, 3), dilation=2, padding=3), IMAGE),
        (nn.ConvTranspose3d(2, 1, 2, stride=2), (1, 2, 2, 2, 3)),
        (nn.Conv3d(2, 4, 2, groups=2, dilation=2, padding=1), (1, 2, 4, 3, 3)),
        (nn.Fold((4, 5), 2), (1, 8, 12)),
        (nn.Unfold(3, padding=1, stride=2), IMAGE),
    ],
    "laid out": [
        (lambda x: x.roll((1, -2), (0, 1)), MATRIX),
        (lambda x: x.roll(9), MATRIX),
        (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), IMAGE),
        (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), IMAGE),
        (lambda x: F.pad(x, (1, 2, 1, 0, 1, 1), mode="circular"), (1, 1, 2, 3, 2)),
        (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), IMAGE),
        (nn.Conv1d(2, 3, 3, padding=1, padding_mode="reflect"), SIGNAL),
        (lambda x: x.as_strided((3, 2), (5, 3), 1), MATRIX),
        (lambda *x: torch.cat(x, 1), *[(2, 1 + at) for at in range(40)]),
        (
            lambda x: torch.cat(
                [x[:, at : at + 1] for at in (3, 1, 4, 1, 5, 0, 2, 2, 4, 0, 1, 3, 5)] * 3, 1
            ),
            MATRIX,
        ),
        (lambda *x: sum(x), *[(4, 1), (1, 4)] * 20),
    ],
    "pooled": [
        (nn.AdaptiveAvgPool2d((3, 4)), IMAGE),
        (nn.AdaptiveAvgPool1d(9), SIGNAL),
        (nn.AdaptiveMaxPool2d((3, 2), return_indices=True), IMAGE),
        (nn.AdaptiveMaxPool1d(4), SIGNAL),
        (nn.MaxPool2d(2, return_indices=True), IMAGE),
        (nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), IMAGE),
        (nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), IMAGE),
    ],
    "gathered": [
        (lambda x: x[:, [4, 0, 0, 2]] + (x * 2)[:, [3, 1, -1, 0]], MATRIX),
        (lambda x: (x * 2)[[3, 0, 1], [4, 0, -2]], MATRIX),
        (lambda x: (x + 1)[:, MIXED], (2, 20)),
        (lambda x: x[[2, 0], :, [1, 3]], (3, 2, 4)),
        (lambda x, at: (x > 0)[:, at], MATRIX, torch.tensor([1, 0, -2])),
        (lambda x, at: (x * 2)[at], (6, 3), NUMBERS),
        (lambda x, at: x.index_select(1, at), MATRIX, torch.tensor([0, 5, 2])),
        (lambda x, at: x[at][:, None, 1::2].flip(2), (6, 5), NUMBERS),
        (lambda x: x.repeat_interleave(torch.tensor([1, 0, 3, 2]), 0), MATRIX),
        (lambda x: torch.repeat_interleave(x, torch.arange(3)), (3,)),
        (
            lambda x, row, column: x[row, column],
            MATRIX,
            torch.tensor([2, 0, 3]),
            torch.tensor([5, 0, -1]),
        ),
        (lambda x, at: x.gather(1, at), MATRIX, PLACES),
        (lambda x, at: F.nll_loss(x.log_softmax(1), at), MATRIX, torch.tensor([0, 5, 5, 3])),
        (lambda x, at, values: x.scatter(1, at, values), MATRIX, PLACES, (4, 3)),
        (lambda x, at: x.scatter(1, at, 2.0), MATRIX, PLACES),
        (lambda x, at, values: x.scatter_add(1, at, values), (5, 6), PLACES, (4, 3)),
        (lambda x, values: x.index_add(0, torch.tensor([0, 2, 0]), values), MATRIX, (3, 6)),
        (
            lambda x, values: torch.index_put(
                x, [torch.tensor([1, 0]), torch.tensor([2, 2])], values
            ),
            (2, 3, 2),
            (2, 2),
        ),
        (lambda x: torch.slice_scatter(x, x[:, :3], 1, 0, 6, 2), MATRIX),
    ],
    "ordered": [
        (lambda x: (*x.topk(3), *x.topk(2, 0, largest=False)), MATRIX),
        (lambda x: x.topk(3)[0], TIES),
        (lambda x: x.sort(-1, descending=True)[0], MATRIX),
        (lambda x: x.sort(stable=True), TIES),
        (lambda x: x.argsort(0), MATRIX),
        (lambda x: x.median(1), MATRIX),
        (lambda x: x.kthvalue(2, 0, keepdim=True), MATRIX),
        (lambda x: (x.amin(1), x.amax()), NUMBERS),
        (lambda x: (x.argmax(1), x.argmin(), x.argmax(0, keepdim=True)), TIES),
        (lambda x: (*x.max(1), *x.min(0, keepdim=True)), TIES),
        (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0, 2.0]), right=True), TIES),
        (lambda limits, x: torch.searchsorted(limits.cumsum(1), x), TIES.abs(), (2, 3)),
        (
            lambda limits, x: [
                torch.searchsorted(limits, each, right=right)
                for right in (False, True)
                for each in (x, x[1], 2.0)
            ],
            torch.tensor([1.0, 2, 2, 3]),
            torch.tensor([2.0, torch.nan, torch.inf, -torch.inf]),
        ),
        (lambda x: x.cumprod(1), MATRIX),
        (lambda x: (*x.cummax(1), *x.cummin(0)), TIES),
        (lambda x: x.logcumsumexp(1), MATRIX),
    ],
    "elementary": [
        (
            lambda x: torch.stack(
                [
                    torch.expm1(x),
                    torch.exp2(x),
                    torch.tan(x),
                    torch.sinh(x),
                    torch.cosh(x),
                    torch.asinh(x),
                ]
            ),
            MATRIX,
        ),
        (
            lambda x: torch.stack(
                [
                    torch.log2(x.abs()),
                    torch.log10(x.abs()),
                    torch.acosh(1 + x.abs()),
                    torch.atanh(x / 8),
                    torch.erfc(x),
                ]
            ),
            MATRIX,
        ),
        (
            lambda x, y: torch.stack(
                [x.remainder(y), x.fmod(y), x % 0.3, torch.fmod(x, -0.3), torch.logaddexp(x, y)]
            ),
            MATRIX,
            MATRIX,
        ),
        (
            lambda x, y: torch.stack(
                [
                    torch.atan(x),
                    torch.asin(x / 8),
                    torch.acos(x / 8),
                    torch.atan2(x, y),
                    torch.hypot(x, y),
                    x.copysign(y),
                    x.copysign(-2.0),
                ]
            ),
            MATRIX,
            MATRIX,
        ),
        (lambda x, y: torch.cat([torch.cdist(x, y), torch.cdist(x, y, p=1)]), MATRIX, (3, 6)),
        (nn.CELU(), MATRIX),
    ],
}


@pytest.mark.parametrize("theme", ROWS)
def test_a_design_gives_what_pytorch_gives(core_built, theme):
    torch.manual_seed(0)
    module = Each(ROWS[theme]).eval().requires_grad_(False)
    inputs = [
        torch.randn(given) if isinstance(given, tuple) else given
        for row in ROWS[theme]
        for given in row[1:]
    ]
    with streamtensor.compile(module, tuple(inputs)) as design:
        found = design(*inputs)
    leaves = torch.utils._pytree.tree_leaves
    for got, wanted in zip(leaves(found), leaves(module(*inputs)), strict=True):
        torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-6)


ANGLES = {
    "atan": (
        torch.atan,
        torch.tensor([[0.0, 1e-30, 1e-4, 0.3, 0.41, 0.42, 1.0, 2.41, 2.42, 50.0, 1e20, torch.inf]]),
    ),
    "asin": (
        torch.asin,
        torch.tensor([[0.0, 1e-30, 1e-4, 0.2, 0.49, 0.5, 0.51, 0.9, 0.999999, 1.0, 1.5, 0.7]]),
    ),
    "acos": (
        torch.acos,
        torch.tensor([[0.0, 1e-30, 1e-4, 0.2, 0.49, 0.5, 0.51, 0.9, 0.999999, 1.0, 1.5, 0.7]]),
    ),
    "atan2": (torch.atan2, torch.tensor([[0.0, 1e-30, 0.1, 1.0, 2.0, 1e20, torch.inf]])),
    "hypot": (torch.hypot, torch.tensor([[0.0, 1e-30, 0.1, 1.0, 2.0, 1e20, torch.inf]])),
    "copysign": (torch.copysign, torch.tensor([[0.0, 1e-30, 0.1, 1.0, 2.0, 1e20, torch.inf]])),
}


@pytest.mark.parametrize("name", ANGLES)
def test_angles_and_signs_are_exact(core_built, name):
    """Both signs of all sizes, of zeros and infinities too; of two operands each with each."""
    function, sizes = ANGLES[name]
    values = torch.cat([sizes, -sizes], 1)
    pairs = [values.T.repeat(1, values.numel()).contiguous(), values.repeat(values.numel(), 1)]
    inputs = pairs if function in (torch.atan2, torch.hypot, torch.copysign) else [values]
    with streamtensor.compile(Call(function), tuple(inputs)) as design:
        found = design(*inputs)
    wanted = function(*inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0, equal_nan=True)
    assert torch.equal(
        torch.signbit(found) & ~found.isnan(), torch.signbit(wanted) & ~wanted.isnan()
    )


@pytest.mark.parametrize(
    "function, inputs",
    [
        (torch.arctan, [NUMBERS]),
        (torch.atan2, [NUMBERS, torch.linspace(-2, 2, 12).reshape(4, 3)]),
        (lambda x: torch.copysign(x, -0.0), [NUMBERS]),
        (torch.hypot, [torch.randn(4, 3).half(), torch.randn(3)]),
        (torch.asin, [torch.linspace(-1, 1, 12).bfloat16()]),
    ],
)
def test_angles_of_other_types_are_of_pytorchs(function, inputs, core_built):
    with streamtensor.compile(Call(function), tuple(inputs)) as design:
        found = design(*inputs)
    torch.testing.assert_close(found, function(*inputs), rtol=None, atol=None)


@pytest.mark.parametrize(
    "function, dtype",
    [
        (lambda x: x.topk(5), torch.float32),
        pytest.param(
            lambda x: x.sort(stable=True, descending=True), torch.int32, marks=pytest.mark.long
        ),
        pytest.param(lambda x: x.topk(1, largest=False), torch.bfloat16, marks=pytest.mark.long),
    ],
)
def test_many_numbers_are_sorted_by_a_network(function, dtype, core_built):
    x = (30 * torch.randn(2, sort_scatter_decompositions.MAX_SORTED + 60)).round().to(dtype)
    if dtype.is_floating_point:
        x[0, 7], x[1, :3] = torch.nan, torch.tensor([-0.0, torch.inf, -torch.inf])
    with streamtensor.compile(Call(function), (x,)) as design:
        values, places = design(x)
    expected = function(x).values
    torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(x.gather(1, places), expected, rtol=0, atol=0, equal_nan=True)
    assert all(row.unique().numel() == row.numel() for row in places)


@pytest.mark.parametrize(
    "function, shape, message, note",
    [
        (
            lambda x: x.kthvalue(7),
            (sort_scatter_decompositions.MAX_SORTED + 1,),
            "the module sorts 1025 numbers",
            "up to 1024 along the dim",
        ),
        (lambda x: x.median(1), (2, 50257), "the module sorts 50257 numbers", "argmax"),
        (torch.fft.rfft, MATRIX, "the module gives complex numbers", "view_as_real"),
        (
            lambda x: x[torch.rand(4) > 0.5],
            MATRIX,
            "aten.index.Tensor gives as many numbers as its inputs' values say",
            "shapes that are known",
        ),
        (
            written_mask,
            MATRIX,
            "aten.index.Tensor gives as many numbers as its inputs' values say",
            "shapes that are known",
        ),
        (
            lambda x: x[torch.zeros(4).fill_(1).bool()],
            MATRIX,
            "aten.index.Tensor gives as many numbers as its inputs' values say",
            "shapes that are known",
        ),
        (
            lambda x: x.nonzero(),
            MATRIX,
            "aten.nonzero.default gives as many numbers as its inputs' values say",
            "shapes that are known",
        ),
    ],
)
def test_what_is_refused(function, shape, message, note):
    with pytest.raises(streamtensor.Error, match=re.escape(message)) as raised:
        streamtensor.export(Of(function), torch.zeros(shape))
    assert note in raised.value.notes[0]


@pytest.mark.parametrize(
    "at, slices",
    [
        ([0, 0, 1, 1, 2, 2], 1),  # each number twice
        ([0, 0, 1, 2, 2, 3, 4, 4, 5], 2),  # by 1.5
        ([2, 1, 0, 1, 2, 3, 2, 1], 3),  # reflected
        ([0, 0, 0, 1, 2, 3, 3], 3),  # replicated
        ([3, 1, 4, 1, 5], 3),
    ],
)
def test_known_numbers_are_few_slices(at, slices):
    x = torch.arange(12).reshape(2, 6)
    assert gather_rewrites._slices_of(at) == slices
    assert torch.equal(gather_rewrites._sliced(x, 1, at), x[:, at])


def test_a_text_does_not_depend_on_what_was_in_memory():
    class Padded(nn.Module):
        def forward(self, x):
            return torch.empty(4, 6).fill_(2.0) + F.pad(x, (1, 1), mode="circular")

    texts = {streamtensor.export(Padded(), torch.zeros(4, 4)).text for _ in range(2)}
    assert len(texts) == 1 and "dense_resource" not in texts.pop()
