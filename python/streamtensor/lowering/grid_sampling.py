"""Decomposes grid_sample of volumes: each result is a sum of the eight elements around its place,
by their distances, or the nearest one.
"""

import itertools

import torch

_ZEROS, _BORDER = 0, 1
_LINEAR = 0


def table() -> dict:
    return {torch.ops.aten.grid_sampler_3d.default: _grid_sampler_3d}


def _grid_sampler_3d(x, grid, mode: int, padding: int, align_corners: bool):
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
