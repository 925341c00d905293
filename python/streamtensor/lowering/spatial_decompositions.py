"""Decomposes ops on images and sequences into simpler ones: resizing, transposed and grouped
convolutions, adaptive pools, shifts.

A decomposition costs as much as the op: no multiplication by inserted zeros, and two
multiplications per element for linear upsampling by an integer factor.
"""

import itertools
import math
from typing import NamedTuple

import torch
from torch._decomp import get_decompositions

from .gather_rewrites import first_true

_aten = torch.ops.aten
# of grid_sample
_ZEROS, _BORDER = 0, 1
_LINEAR = 0


def table() -> dict:
    rows = {
        _aten.roll.default: _roll,
        _aten.grid_sampler_3d.default: _grid_sampler_3d,
        _aten.convolution.default: _convolution,
        _aten.im2col.default: _im2col,
        _aten.col2im.default: _col2im,
        _aten.avg_pool2d_backward.default: _average_backward,
        _aten._adaptive_avg_pool2d_backward.default: _adaptive_average_backward,
        _aten.max_pool2d_with_indices_backward.default: _largest_backward,
    }
    rows |= {
        op: _linear(dims)
        for dims, op in enumerate(
            (
                _aten.upsample_linear1d.vec,
                _aten.upsample_bilinear2d.vec,
                _aten.upsample_trilinear3d.vec,
            ),
            1,
        )
    }
    rows[_aten.upsample_bicubic2d.vec] = _bicubic
    rows |= {
        op.vec: _antialiased(op.default)
        for op in (_aten._upsample_bilinear2d_aa, _aten._upsample_bicubic2d_aa)
    }
    nearest = [
        getattr(_aten, f"{kind}{dims}d")
        for kind in ("upsample_nearest", "_upsample_nearest_exact")
        for dims in (1, 2, 3)
    ]
    rows |= get_decompositions([op.vec for op in nearest])
    averages = (
        _aten.adaptive_avg_pool1d,
        _aten.adaptive_avg_pool2d,
        _aten._adaptive_avg_pool2d,
        _aten.adaptive_avg_pool3d,
        _aten._adaptive_avg_pool3d,
    )
    windows = (
        (2, _aten.max_pool2d_with_indices),
        (3, _aten.max_pool3d_with_indices),
        (2, _aten.avg_pool2d),
        (3, _aten.avg_pool3d),
    )
    rows |= {op.default: _batched(dims, op.default) for dims, op in windows}
    largest = (_aten.adaptive_max_pool1d, _aten.adaptive_max_pool2d, _aten.adaptive_max_pool3d)
    return (
        rows
        | {op.default: _adaptive_average for op in averages}
        | {op.default: _adaptive_largest for op in largest}
    )


def _batched(dims, pool):
    """The pool of a single image, as that of a batch of one."""

    def pooled(x, *arguments, **options):
        if x.ndim != dims + 1:
            return NotImplemented
        found = pool(x.unsqueeze(0), *arguments, **options)
        return (
            found.squeeze(0)
            if isinstance(found, torch.Tensor)
            else tuple(each.squeeze(0) for each in found)
        )

    return pooled


def _roll(x, shifts, dims=()):
    if not dims:
        return _roll(x.flatten(), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims):
        first = -shift % x.shape[dim] if x.shape[dim] else 0
        if first:
            x = torch.cat(
                [x.narrow(dim, first, x.shape[dim] - first), x.narrow(dim, 0, first)], dim
            )
    return x


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    dims = len(stride)
    if transposed:
        return _transposed(
            x,
            weight,
            bias,
            *(
                list(each) * (dims // len(each))
                for each in (stride, padding, dilation, output_padding)
            ),
            groups,
        )
    if dims == 3 and groups == x.shape[1] > 1:
        return _depthwise(x, weight, bias, stride, padding, dilation, groups)
    return NotImplemented


def _depthwise(x, weight, bias, stride, padding, dilation, groups):
    """A 3D convolution as one 2D convolution for each index of the kernel's first dim."""
    x = torch.nn.functional.pad(x, (0, 0, 0, 0, padding[0], padding[0]))
    depth = (x.shape[2] - dilation[0] * (weight.shape[2] - 1) - 1) // stride[0] + 1
    total = 0 if bias is None else bias[:, None, None, None]
    for at in range(weight.shape[2]):
        images = (
            x[:, :, at * dilation[0] :][:, :, : (depth - 1) * stride[0] + 1 : stride[0]]
            .transpose(1, 2)
            .flatten(0, 1)
        )
        part = torch.conv2d(
            images, weight[:, :, at], None, stride[1:], padding[1:], dilation[1:], groups
        )
        total = total + part.unflatten(0, (-1, depth)).transpose(1, 2)
    return total


class TransposedParts(NamedTuple):
    """A transposed convolution as a convolution of stride 1."""

    weight: torch.Tensor  # a channel for each remainder of the result's index by the stride
    border: list[int]
    steps: list[int]  # its dilation


def _transposed(x, weight, bias, stride, padding, dilation, output_padding, groups):
    """A convolution with one channel per remainder of the result index by the stride, whose results
    are then interleaved.

    Element q s + r of the result is the sum over t of x[q - t] weight[t s + r].
    """
    size = [
        (extent - 1) * s - 2 * p + d * (k - 1) + o + 1
        for extent, s, p, d, k, o in zip(
            x.shape[2:], stride, padding, dilation, weight.shape[2:], output_padding
        )
    ]
    parts, ones = transposed_parts(weight, stride, dilation, groups), [1] * len(stride)
    zeros = [0] * len(stride)
    y = _aten.convolution(
        x, parts.weight, None, ones, parts.border, parts.steps, False, zeros, groups
    )
    y = interleaved(y, weight.shape[1] * groups, stride, padding, size)
    return y if bias is None else y + bias.reshape(-1, *ones)


def transposed_parts(weight, stride, dilation, groups) -> TransposedParts:
    dims, channels = len(stride), weight.shape[1]
    weight = _spread(weight, stride, dilation)
    steps = [d if s == 1 else 1 for s, d in zip(stride, dilation)]
    taps = [extent // s for extent, s in zip(weight.shape[2:], stride)]
    parts = weight.reshape(
        groups, -1, channels, *(each for pair in zip(taps, stride) for each in pair)
    )
    parts = parts.permute(0, 2, *range(4, 3 + 2 * dims, 2), 1, *range(3, 3 + 2 * dims, 2)).flatten(
        0, 1 + dims
    )
    border = [d * (t - 1) for d, t in zip(steps, taps)]
    return TransposedParts(parts.flip([*range(2, 2 + dims)]), border, steps)


def interleaved(y, channels: int, stride, padding, size):
    """The remainders' channels side by side, and of that the places behind the padding."""
    dims = len(stride)
    y = y.unflatten(1, (channels, *stride)).permute(
        0, 1, *(each for dim in range(dims) for each in (2 + dims + dim, 2 + dim))
    )
    for dim in range(dims):
        y = y.flatten(2 + dim, 3 + dim)
    ends = [
        width
        for p, extent, out in zip(padding, size, y.shape[2:])
        for width in (-p, p + extent - out)
    ]
    if not any(ends):
        return y
    return _aten.constant_pad_nd(
        y, [ends[2 * dim + side] for dim in reversed(range(dims)) for side in (0, 1)], 0
    )


def _spread(weight, stride, dilation):
    """The weight with zeros for the dilation, padded to a multiple of the stride."""
    for dim, (s, d) in enumerate(zip(stride, dilation), 2):
        if s == 1:
            continue
        if d > 1:
            apart = torch.nn.functional.pad(
                weight.unsqueeze(dim + 1), [0, 0] * (weight.ndim - dim - 1) + [0, d - 1]
            )
            weight = apart.flatten(dim, dim + 1).narrow(dim, 0, d * (weight.shape[dim] - 1) + 1)
        weight = torch.nn.functional.pad(
            weight, [0, 0] * (weight.ndim - dim - 1) + [0, -weight.shape[dim] % s]
        )
    return weight


def _sizes(x, output_size, scale_factors) -> list[int]:
    return (
        list(output_size)
        if output_size is not None
        else [math.floor(extent * factor) for extent, factor in zip(x.shape[2:], scale_factors)]
    )


def _resampled(x, sizes, factors, matrix, is_linear):
    """Resizes dim by dim, the last one first.

    matrix(identity, size, factor): the op applied to unit vectors.
    """
    for dim in reversed(range(2, x.ndim)):
        extent, size, factor = x.shape[dim], sizes[dim - 2], factors[dim - 2]
        moved = x.movedim(dim, -1)
        if is_linear and extent < size == extent * (factor or size / extent) and size % extent == 0:
            moved = _upsampled_linear(moved, size // extent)
        elif size != extent or factor not in (None, 1):
            moved = moved @ matrix(
                torch.eye(extent, dtype=torch.float32).unsqueeze(0), size, factor
            ).squeeze(0).to(x.dtype)
        x = moved.movedim(-1, dim)
    return x


def _upsampled_linear(x, factor: int):
    """Linear interpolation: element j is at (j + 1/2) / factor - 1/2, clamped at the ends."""
    extent, middle = x.shape[-1], factor // 2
    wide = torch.cat([x[..., :1], x, x[..., -1:]], -1).unsqueeze(-1)
    share = (torch.arange(factor, dtype=torch.float32) + (0.5 if factor % 2 == 0 else 1)) / factor
    low, high = wide[..., :-1, :], wide[..., 1:, :]
    return (low + (high - low) * share.to(x.dtype)).flatten(-2).narrow(-1, middle, extent * factor)


def _linear(dims):
    def resize(x, output_size, align_corners, scale_factors=None):
        one = torch._decomp.decompositions.upsample_linear1d
        return _resampled(
            x,
            _sizes(x, output_size, scale_factors),
            scale_factors or [None] * dims,
            lambda unit, size, factor: one(unit, [size], align_corners, factor),
            not align_corners,
        )

    return resize


def _bicubic(x, output_size, align_corners, scale_factors=None):
    one = torch._decomp.decompositions.upsample_bicubic2d_default
    return _resampled(
        x,
        _sizes(x, output_size, scale_factors),
        scale_factors or [None] * 2,
        lambda unit, size, factor: one(
            unit.unsqueeze(-1), [size, 1], align_corners, factor, None
        ).squeeze(-1),
        False,
    )


def _antialiased(one):
    """Unit vectors are two columns wide: for images of one column PyTorch uses the first row for
    all.
    """

    def resize(x, output_size, align_corners, scale_factors=None):
        return _resampled(
            x,
            _sizes(x, output_size, scale_factors),
            scale_factors or [None] * 2,
            lambda unit, size, factor: one(
                unit.unsqueeze(-1).repeat(1, 1, 1, 2), [size, 2], align_corners, factor, None
            )[..., 0],
            False,
        )

    return resize


def _bins(extent: int, count: int):
    """The mask of the input elements of each of `count` results."""
    at, place = torch.arange(count).unsqueeze(-1), torch.arange(extent)
    return (place >= at * extent // count) & (place < ((at + 1) * extent + count - 1) // count)


def _pooled(x, sizes, reduce, rest):
    """Pools dim by dim; reduce(elements, mask) reduces the last dim."""
    sizes = sizes if isinstance(sizes, (list, tuple)) else [sizes]
    for dim, count in enumerate(sizes, x.ndim - len(sizes)):
        moved = x.movedim(dim, -1)
        if moved.shape[-1] % count == 0:
            parts, mask = moved.unflatten(-1, (count, -1)), None
        else:
            parts, mask = moved.unsqueeze(-2), _bins(moved.shape[-1], count)
            parts = torch.where(mask, parts, torch.full((), rest, dtype=x.dtype))
        x = reduce(parts, mask).movedim(-1, dim)
    return x


def _adaptive_average(x, output_size):
    return _pooled(
        x,
        output_size,
        lambda parts, mask: (
            parts.mean(-1) if mask is None else parts.sum(-1) / mask.sum(-1).to(parts.dtype)
        ),
        0,
    )


def _adaptive_largest(x, output_size):
    """Maxima, and the first index of each in its image."""
    dims = len(output_size)
    values = _pooled(x, output_size, lambda parts, _: parts.amax(-1), -math.inf)
    mask = torch.ones((), dtype=torch.bool)
    for dim, count in enumerate(output_size):
        inside = _bins(x.shape[dim - dims], count)
        shape = [1] * (2 * dims)
        shape[dim], shape[dims + dim] = count, x.shape[dim - dims]
        mask = mask & inside.reshape(shape)
    images = x.reshape(*x.shape[:-dims], *[1] * dims, *x.shape[-dims:])
    equal = (mask & (images == values.reshape(*values.shape, *[1] * dims))).flatten(-dims)
    return values, first_true(equal)


def _shared_out(gradient, shares):
    """Each result gives its gradient by shares: for each dim a matrix [results, elements]."""
    for dim, share in enumerate(shares, gradient.ndim - len(shares)):
        gradient = (gradient.movedim(dim, -1) @ share.to(gradient.dtype)).movedim(-1, dim)
    return gradient


def _adaptive_average_backward(gradient, x):
    bins = [_bins(extent, count) for extent, count in zip(x.shape[-2:], gradient.shape[-2:])]
    return _shared_out(gradient, [mask / mask.sum(-1, keepdim=True) for mask in bins])


def _average_backward(
    gradient, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """A window beyond the padding counts the elements before its end only."""
    shares = []
    for at in (0, 1):
        extent, count = x.shape[at - 2], gradient.shape[at - 2]
        size, border = (list(each) * (2 // len(each)) for each in (kernel_size, padding))
        step = (list(stride) * (2 // len(stride)) if stride else size)[at]
        first = (torch.arange(count) * step - border[at]).unsqueeze(-1)
        inside = (torch.arange(extent) >= first) & (torch.arange(extent) < first + size[at])
        counted = inside.sum(-1, keepdim=True)
        if count_include_pad:
            counted = (first + size[at]).clamp(max=extent + border[at]) - first
        shares.append(inside.float() if divisor_override else inside / counted)
    return _shared_out(gradient, shares) / (divisor_override or 1)


def _largest_backward(gradient, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """The windows of which an element is the largest give it their gradients."""
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), gradient.flatten(-2)).reshape(x.shape)


def _windows(extent: int, kernel: int, dilation: int, padding: int, stride: int) -> int:
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _im2col(x, kernel_size, dilation, padding, stride):
    """The elements of each window: for each kernel position a slice of the padded images."""
    rows, columns = (
        _windows(x.shape[at - 2], kernel_size[at], dilation[at], padding[at], stride[at])
        for at in (0, 1)
    )
    wide = torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    parts = [
        wide[..., i * dilation[0] :, j * dilation[1] :][
            ...,
            : (rows - 1) * stride[0] + 1 : stride[0],
            : (columns - 1) * stride[1] + 1 : stride[1],
        ]
        for i in range(kernel_size[0])
        for j in range(kernel_size[1])
    ]
    return torch.stack(parts, -3).flatten(-4, -3).flatten(-2)


def _col2im(x, output_size, kernel_size, dilation, padding, stride):
    """The sum of one strided image per kernel position: a transposed convolution with one-hot
    weights.
    """
    places = math.prod(kernel_size)
    rows, columns = (
        _windows(output_size[at], kernel_size[at], dilation[at], padding[at], stride[at])
        for at in (0, 1)
    )
    channels = x.shape[-2] // places
    images = x.reshape(-1, places, rows, columns)
    weight = torch.eye(places, dtype=x.dtype).reshape(places, 1, *kernel_size)
    least = [
        (count - 1) * s - 2 * p + d * (k - 1) + 1
        for count, s, p, d, k in zip((rows, columns), stride, padding, dilation, kernel_size)
    ]
    found = _transposed(
        images,
        weight,
        None,
        list(stride),
        list(padding),
        list(dilation),
        [size - extent for size, extent in zip(output_size, least)],
        1,
    )
    return found.reshape(*x.shape[:-2], channels, *output_size)


def _grid_sampler_3d(x, grid, mode: int, padding: int, align_corners: bool):
    """Sums of the eight elements around each place, by their distances, or the nearest one."""
    sizes = x.shape[2:]
    places = [
        _place(grid[..., 2 - dim], size, padding, align_corners) for dim, size in enumerate(sizes)
    ]
    if mode != _LINEAR:
        return _elements(x, [torch.round(each) for each in places])
    low = [torch.floor(each) for each in places]
    total = None
    for corner in itertools.product((0, 1), repeat=3):
        shares = [
            place - first if side else first + 1 - place
            for side, place, first in zip(corner, places, low)
        ]
        share = (shares[2] * shares[1] * shares[0]).unsqueeze(1)
        found = _elements(x, [first + side for side, first in zip(corner, low)])
        total = found * share if total is None else total + found * share
    return total


def _place(coordinate, size: int, padding: int, align_corners: bool):
    """From -1 to 1, to the index of an element, inside unless zeros are around."""
    factor = (size - 1) / 2 if align_corners else size / 2
    place = coordinate * factor + (size - 1) / 2
    if padding == _ZEROS:
        return place
    if padding != _BORDER:
        place = _reflected(place, *((0, size - 1) if align_corners else (-0.5, size - 0.5)))
    place = torch.where(place > 0, place, 0.0)  # NaN, too
    return torch.clamp(place, max=size - 1)


def _reflected(place, low: float, high: float):
    if low == high:
        return torch.zeros_like(place)
    apart, span = torch.abs(place - low), high - low
    turns = torch.floor(apart / span)
    rest = torch.fmod(apart, span)
    is_even = torch.fmod(turns, 2.0) == 0
    return torch.where(is_even, rest + low, high - rest)


def _elements(x, places):
    """x[n, c, places], 0 outside: [N, C, ...]."""
    sizes, shape = x.shape[2:], places[0].shape
    inside, index = None, 0
    for place, size in zip(places, sizes):
        within = (place >= 0) & (place < size)
        inside = within if inside is None else inside & within
        index = index * size + torch.where(within, place, 0.0).to(torch.int64)
    index = torch.where(inside, index, 0).reshape(shape[0], 1, -1)
    flat = x.flatten(2)
    found = torch.gather(flat, 2, index.expand(-1, x.shape[1], -1))
    found = found.reshape(*x.shape[:2], *shape[1:])
    return torch.where(inside.unsqueeze(1), found, torch.zeros((), dtype=x.dtype))
