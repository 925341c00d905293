"""Discrete Fourier transforms as products with matrices of cosines and sines.

A complex value is a pair of real tensors; None stands for an imaginary part of zeros. A long
transform becomes two shorter ones with a product between them (Cooley and Tukey).
"""

import math

import torch

from ..errors import Error

_LARGEST_MATRIX = 64  # longer transforms are split where their length has factors
_LONGEST = 2048  # the longest transform whose length has no factors


def transform(re, im, dim: int, inverse: bool):
    """The sums over that dim of x[j] exp(-2 pi i j k / n), or with the other sign: the pair."""
    re, im = (each if each is None else each.movedim(dim, -1) for each in (re, im))
    found = _transform_last(re, im, 1 if inverse else -1)
    return tuple(each.movedim(-1, dim) for each in found)


def _transform_last(re, im, sign: int):
    count = re.shape[-1]
    first = _factor(count)
    if first == 1:
        return _times(re, im, _roots(_outer(count, count), count, sign, re.dtype), torch.matmul)
    second = count // first
    parts = [each if each is None else _split(each, first, second) for each in (re, im)]
    re, im = _transform_last(*parts, sign)  # [second, first], by the index of the result
    turned = _roots(_outer(second, first), count, sign, re.dtype)
    re, im = _times(re, im, turned, torch.mul)
    re, im = _transform_last(re.mT, im.mT, sign)
    return re.mT.flatten(-2), im.mT.flatten(-2)


def _split(x, first: int, second: int):
    return x.unflatten(-1, (first, second)).mT


def _factor(count: int) -> int:
    """The divisor next to the square root, for lengths that are split; else 1."""
    if count <= _LARGEST_MATRIX:
        return 1
    found = next(each for each in range(math.isqrt(count), 0, -1) if count % each == 0)
    if found == 1 and count > _LONGEST:
        raise Error(
            f"a Fourier transform has {count} points, which is a prime",
            f"accepted are lengths with factors, and primes up to {_LONGEST}",
        )
    return found


def _outer(rows: int, columns: int):
    return torch.arange(rows).unsqueeze(-1) * torch.arange(columns)


def _roots(power, count: int, sign: int, kind):
    angle = (power % count).double() * (2 * math.pi / count)
    return angle.cos().to(kind), (sign * angle.sin()).to(kind)


def _times(re, im, other, product):
    cosine, sine = other
    if im is None:
        return product(re, cosine), product(re, sine)
    return (
        product(re, cosine) - product(im, sine),
        product(re, sine) + product(im, cosine),
    )


def resized(x, dim: int, count: int):
    """The first `count` along the dim, with zeros behind."""
    if x is None or x.shape[dim] == count:
        return x
    if x.shape[dim] > count:
        return x.narrow(dim, 0, count)
    ends = [0, 0] * (x.ndim - 1 - dim % x.ndim) + [0, count - x.shape[dim]]
    return torch.nn.functional.pad(x, ends)


def from_half(re, im, dim: int, count: int):
    """The real inverse transform of the first half of a spectrum, without a factor."""
    half = count // 2 + 1
    re, im = (resized(each, dim, half) for each in (re, im))
    if count <= _LARGEST_MATRIX:
        return _from_half_directly(re, im, dim, count)
    im = torch.zeros_like(re) if im is None else im
    others = count - half
    re = torch.cat([re, re.narrow(dim, 1, others).flip(dim)], dim)
    im = torch.cat([im, -im.narrow(dim, 1, others).flip(dim)], dim)
    return transform(re, im, dim, True)[0]


def _from_half_directly(re, im, dim: int, count: int):
    """All but the first, and of an even length the middle, stand for two of the spectrum."""
    half = re.shape[dim]
    place = torch.arange(half)
    twice = torch.where((place == 0) | (2 * place == count), 1.0, 2.0).to(re.dtype)
    roots = _roots(_outer(half, count), count, -1, re.dtype)
    cosine, sine = (twice.unsqueeze(-1) * each for each in roots)
    found = re.movedim(dim, -1) @ cosine
    found = found if im is None else found + im.movedim(dim, -1) @ sine
    return found.movedim(-1, dim)


def factor(mode, count: int, inverse: bool) -> float:
    """What PyTorch multiplies a transform with; modes by name, or by number as ATen has them."""
    mode = {0: "forward" if inverse else "backward", 1: "ortho", 2: "backward" if inverse else
            "forward"}.get(mode, mode) or "backward"  # fmt: skip
    if mode == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (mode == "backward") == inverse else 1.0
