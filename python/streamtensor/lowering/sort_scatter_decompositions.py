"""Decomposes sorting, searching, scans and scatters into comparisons: each element with each, or
with 0, 1, …

The rank of an element is the number of elements in front of it; sorting selects the element of each
rank. All loops are static, as a stream design needs, and the comparisons of an element run in
parallel where there is room.

Many numbers are sorted by a network of stages, each of which compares elements at a fixed distance.
A stage is a kernel, and all of them work at once, each behind the one before it.
"""

import math

import torch

from ..errors import Error
from .gather_rewrites import first_true, flat_index, nonnegative_index, select_masked

_aten = torch.ops.aten
MAX_SORTED = 1024  # maximum number of elements that are compared with each other
_BITS = 32  # of a number in a code; the lower ones hold its index
_LOWEST, _PAD = -(1 << 31), (1 << 63) - 1


def table() -> dict:
    return {op: _beside_first(decomposed) for op, decomposed in _table().items()}


def _beside_first(decomposed):
    """Makes the numbers 0, 1, … on the device of the first argument."""

    def run(x, *arguments, **options):
        with x.device:
            return decomposed(x, *arguments, **options)

    return run


def _table() -> dict:
    return {
        _aten.argmax.default: _argmax,
        _aten.argmin.default: _argmin,
        _aten.max.dim: _max,
        _aten.min.dim: _min,
        _aten.sort.default: _sort,
        _aten.sort.stable: lambda x, *, stable=None, dim=-1, descending=False: _sort(
            x, dim, descending
        ),
        _aten.topk.default: _topk,
        _aten.kthvalue.default: _kthvalue,
        _aten.median.dim: _median,
        _aten.median.default: lambda x: _median(x.flatten())[0],
        _aten.nanmedian.dim: lambda x, dim, keepdim=False: _median(x, dim, keepdim, True),
        _aten.nanmedian.default: lambda x: _median(x.flatten(), skips_nan=True)[0],
        _aten.searchsorted.Tensor: _searchsorted,
        _aten.searchsorted.Scalar: lambda limits, x, **options: _searchsorted(
            limits, torch.full((), x), **options
        ),
        _aten.bucketize.Tensor: lambda x, limits, **options: _searchsorted(limits, x, **options),
        _aten.cumprod.default: _cumprod,
        _aten.cummax.default: _cummax,
        _aten.cummin.default: _cummin,
        _aten.logcumsumexp.default: _logcumsumexp,
        _aten.scatter.src: _scattered,
        _aten.scatter.value: _scatter_value,
        _aten.scatter_add.default: _scatter_add,
        _aten.index_add.default: _index_add,
        _aten.index_copy.default: _index_copy,
        _aten.slice_scatter.default: _slice_scatter,
        _aten.index_put.default: _index_put,
        _aten._unsafe_index_put.default: _index_put,
    }


def _extreme_value(x, dim, keepdim, reduce):
    """The reduced value along a dim, and its first index."""
    moved = x.movedim(dim, -1)
    values = reduce(moved, -1)
    # where one is NaN, so is the extreme value, which then equals none
    places = first_true(_among(moved, moved == values.unsqueeze(-1)))
    return (values.unsqueeze(dim), places.unsqueeze(dim)) if keepdim else (values, places)


def _among(x, mask):
    """`mask`, and the NaN of x."""
    return mask | (x != x) if x.dtype.is_floating_point else mask


def _max(x, dim, keepdim=False):
    return _extreme_value(x, dim, keepdim, torch.amax)


def _min(x, dim, keepdim=False):
    return _extreme_value(x, dim, keepdim, torch.amin)


def _argmax(x, dim=None, keepdim=False):
    return _place(x, dim, keepdim, torch.amax)


def _argmin(x, dim=None, keepdim=False):
    return _place(x, dim, keepdim, torch.amin)


def _place(x, dim, keepdim, reduce):
    if dim is not None:
        return _extreme_value(x, dim, keepdim, reduce)[1]
    found = _extreme_value(x.flatten(), 0, False, reduce)[1]
    return found.reshape([1] * x.ndim) if keepdim else found


def _ranks(x, is_descending: bool):
    """Ranks along the last dim; equal elements keep their order, NaN counts as the largest."""
    count = x.shape[-1]
    if count > MAX_SORTED:
        raise Error(
            f"the module sorts {count} numbers",
            f"accepted are up to {MAX_SORTED} along the dim, or more of at most 32 bits by sort() "
            "and topk(); max() and argmax() take any number",
        )
    one, other = x.unsqueeze(-1), x.unsqueeze(-2)
    place = torch.arange(count)
    before, equal = other > one if is_descending else other < one, other == one
    if x.dtype.is_floating_point:
        is_nan = x != x
        first, second = is_nan.unsqueeze(-2), is_nan.unsqueeze(-1)
        before = before | (first & ~second if is_descending else second & ~first)
        equal = equal | (first & second)
    return (before | (equal & (place < place.unsqueeze(-1)))).sum(-1)


def _select_ranks(x, ranks, wanted):
    """The elements of the last dim with the wanted ranks, and their indices."""
    mask = ranks.unsqueeze(-2) == wanted.unsqueeze(-1)
    place = torch.arange(x.shape[-1])
    return select_masked(x.unsqueeze(-2), mask), select_masked(place, mask)


def _has_code(dtype) -> bool:
    """Has the type an order of 32 bits?"""
    return dtype.itemsize <= 4 and not dtype.is_complex


def _network_sorted(x, wanted: int, is_descending: bool):
    """The first `wanted` elements of the sorted last dim, and their indices.

    Equal elements keep their order, NaN counts as the largest.
    """
    codes = _codes(x, is_descending)
    width = _power_from(wanted)
    missing = _power_from(x.shape[-1]) - x.shape[-1]
    if missing:
        codes = torch.cat((codes, torch.full((*x.shape[:-1], missing), _PAD)), -1)
    found = _first(_sorted(codes.unflatten(-1, (-1, width))))[..., :wanted]
    return _numbers(found, x.dtype, is_descending), found & ((1 << _BITS) - 1)


def _power_from(count: int) -> int:
    return 1 << math.ceil(math.log2(count)) if count > 1 else 1


def _reordered(bits):
    """Bits of a float as an integer in the order of the numbers, and the other way round."""
    return torch.where(bits < 0, _LOWEST - bits, bits)


def _codes(x, is_descending: bool):
    if x.dtype.is_floating_point:
        numbers = _reordered(x.float().view(torch.int32))
        numbers = torch.where(x != x, torch.full((), -_LOWEST - 1, dtype=torch.int32), numbers)
    else:
        numbers = x.to(torch.int32)
    numbers = -1 - numbers if is_descending else numbers
    return numbers.to(torch.int64) * (1 << _BITS) + torch.arange(x.shape[-1])


def _numbers(codes, dtype, is_descending: bool):
    numbers = (codes >> _BITS).to(torch.int32)
    numbers = -1 - numbers if is_descending else numbers
    if dtype.is_floating_point:
        numbers = _reordered(numbers).view(torch.float32)
    return numbers.to(dtype)


def _exchanged(codes, width: int, mirrored: bool):
    """Of each two elements of `width`, half of it apart, or as far from both ends if `mirrored`,
    the lesser one comes first."""
    pairs = codes.reshape(*codes.shape[:-1], -1, 2, width // 2)
    other = pairs.flip(-2, -1) if mirrored else pairs.flip(-2)
    is_first = torch.arange(2).unsqueeze(-1) == 0
    chosen = torch.where(is_first, torch.minimum(pairs, other), torch.maximum(pairs, other))
    return chosen.reshape(codes.shape)


def _merged(codes, width: int):
    """Sorts parts of `width`, each of whose halves holds no number that belongs into the other, as
    two sorted halves that were exchanged do."""
    while width > 1:
        codes = _exchanged(codes, width, False)
        width //= 2
    return codes


def _sorted(codes):
    width = 2
    while width <= codes.shape[-1]:
        codes = _merged(_exchanged(codes, width, True), width // 2)
        width *= 2
    return codes


def _first(rows):
    """The least ones of all sorted rows, as many as a row has: of two rows the lesser of each pair
    from both ends are the least ones."""
    while rows.shape[-2] > 1:
        pairs = rows.unflatten(-2, (-1, 2))
        kept = torch.minimum(pairs.select(-2, 0), pairs.select(-2, 1).flip(-1))
        rows = _merged(kept, rows.shape[-1])
    return rows.squeeze(-2)


def _select_first(x, dim, is_descending, wanted: int):
    if x.shape[dim] > MAX_SORTED and wanted and _has_code(x.dtype):
        values, places = _network_sorted(x.movedim(dim, -1), wanted, is_descending)
        return values.movedim(-1, dim), places.movedim(-1, dim)
    return _select_sorted(x, dim, is_descending, torch.arange(wanted))


def _select_sorted(x, dim, is_descending, wanted):
    moved = x.movedim(dim, -1)
    values, places = _select_ranks(moved, _ranks(moved, is_descending), wanted)
    return values.movedim(-1, dim), places.movedim(-1, dim)


def _sort(x, dim=-1, descending=False):
    return _select_first(x, dim, descending, x.shape[dim])


def _topk(x, k, dim=-1, largest=True, sorted=True):
    return _select_first(x, dim, largest, k)


def _kthvalue(x, k, dim=-1, keepdim=False):
    values, places = _select_sorted(x, dim, False, torch.full((1,), k - 1))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _median(x, dim=0, keepdim=False, skips_nan=False):
    """The lower one of two; the first NaN where there is one, or nothing else."""
    place = (x.shape[dim] + 1) // 2
    if not x.dtype.is_floating_point:
        return _kthvalue(x, place, dim, keepdim)
    numbers = (~(x != x)).sum(dim, keepdim=True).movedim(dim, -1)
    if skips_nan:
        wanted = torch.clamp((numbers + 1) // 2 - 1, min=0)
    else:
        wanted = torch.where(numbers < x.shape[dim], numbers, place - 1)
    values, places = _select_sorted(x, dim, False, wanted)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _searchsorted(limits, x, *, out_int32=False, right=False, side=None, sorter=None):
    """The number of limits below each element; all are below NaN."""
    if sorter is not None:
        return NotImplemented
    one, other = limits if limits.ndim == 1 else limits.unsqueeze(-2), x.unsqueeze(-1)
    above = one > other if right or side == "right" else one >= other
    return (~above).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _prefix_mask(x, dim, rest):
    """Row i of the last two dims: elements up to i, then `rest`; and the mask of the former."""
    moved = x.movedim(dim, -1).unsqueeze(-2)
    place = torch.arange(x.shape[dim])
    seen = place <= place.unsqueeze(-1)
    return torch.where(seen, moved, torch.full((), rest, dtype=x.dtype)), seen


def _cumprod(x, dim, *, dtype=None):
    x = x.to(dtype or (x.dtype if x.dtype.is_floating_point else torch.int64))
    return _prefix_mask(x, dim, 1)[0].prod(-1, dtype=x.dtype).movedim(-1, dim)


def _logcumsumexp(x, dim):
    return _prefix_mask(x, dim, -math.inf)[0].logsumexp(-1).movedim(-1, dim)


def _running_extreme(x, dim, reduce, rest):
    """The index is the last one of equal elements, as in PyTorch."""
    numbers, seen = _prefix_mask(x, dim, rest)
    values = reduce(numbers, -1)
    places = torch.where(
        seen & _among(numbers, numbers == values.unsqueeze(-1)),
        torch.arange(x.shape[dim]),
        torch.zeros((), dtype=torch.int64),
    ).amax(-1)
    return values.movedim(-1, dim), places.movedim(-1, dim)


def _cummax(x, dim):
    return _running_extreme(
        x, dim, torch.amax, -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    )


def _cummin(x, dim):
    return _running_extreme(
        x, dim, torch.amin, math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).max
    )


def _scatter_by_mask(x, index, source, adds: bool):
    """Scatters `source` into x at `index`, both along the last dim.

    For several sources of one place, the last one wins, or with `adds` they are added to x.
    """
    places, turn = torch.arange(x.shape[-1]).unsqueeze(-1), torch.arange(index.shape[-1])
    hits = nonnegative_index(index, x.shape[-1]).unsqueeze(-2) == places
    if adds:
        return x + torch.where(hits, source.unsqueeze(-2), torch.zeros((), dtype=x.dtype)).sum(
            -1, dtype=x.dtype
        )
    last = torch.where(hits, turn, torch.full((), -1)).amax(-1)
    return torch.where(
        last >= 0, select_masked(source.unsqueeze(-2), last.unsqueeze(-1) == turn), x
    )


def _scattered(x, dim, index, source, adds=False):
    dim %= x.ndim
    for other, extent in enumerate(index.shape):
        if other != dim and extent < x.shape[other]:
            rest = x.narrow(other, extent, x.shape[other] - extent)
            return torch.cat(
                [_scattered(x.narrow(other, 0, extent), dim, index, source, adds), rest], other
            )
    source = source[tuple(map(slice, index.shape))]
    return _scatter_by_mask(
        x.movedim(dim, -1), index.movedim(dim, -1), source.movedim(dim, -1), adds
    ).movedim(-1, dim)


def _scatter_value(x, dim, index, value):
    return _scattered(x, dim, index, torch.full((), value, dtype=x.dtype).expand(index.shape))


def _scatter_add(x, dim, index, source):
    return _scattered(x, dim, index, source, True)


def _index_add(x, dim, index, source, *, alpha=1):
    return _scatter_by_mask(
        x.movedim(dim, -1), index, (source * alpha).movedim(dim, -1), True
    ).movedim(-1, dim)


def _index_copy(x, dim, index, source):
    return _scatter_by_mask(x.movedim(dim, -1), index, source.movedim(dim, -1), False).movedim(
        -1, dim
    )


def _slice_scatter(x, source, dim=0, start=None, end=None, step=1):
    """With a step of 2 or more; contiguous slices need no comparisons."""
    if step == 1:
        return NotImplemented
    return _index_copy(x, dim, torch.arange(x.shape[dim])[slice(start, end, step)], source)


def _index_put(x, indices, values, accumulate=False):
    """A mask selects between x and one value; indices of adjacent dims are flattened."""
    found = {dim: index for dim, index in enumerate(indices) if index is not None}
    first, count = min(found), len(found)
    if found[first].dtype == torch.bool:
        mask = found[first].reshape(
            *found[first].shape, *[1] * (x.ndim - first - found[first].ndim)
        )
        return (
            torch.where(mask, values, x)
            if count == 1 and values.numel() == 1 and not accumulate
            else NotImplemented
        )
    if list(found) != list(range(first, first + count)):
        return NotImplemented
    index = flat_index(x.shape[first : first + count], *found.values())
    source = values.expand(*x.shape[:first], *index.shape, *x.shape[first + count :]).reshape(
        *x.shape[:first], -1, *x.shape[first + count :]
    )
    flat = x.flatten(first, first + count - 1)
    return (
        _scatter_by_mask(
            flat.movedim(first, -1), index.flatten(), source.movedim(first, -1), accumulate
        )
        .movedim(-1, first)
        .reshape(x.shape)
    )
