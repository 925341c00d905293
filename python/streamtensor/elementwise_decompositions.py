"""Decomposes elementwise functions into those that the compiler has: exp, log, sin, cos, tanh, erf,
sqrt, floor and arithmetic.
"""

import math

import torch

_aten = torch.ops.aten


def table() -> dict:
    rows = {
        _aten.expm1: _expm1,
        _aten.exp2: lambda x: torch.pow(2.0, x),
        _aten.log2: lambda x: torch.log(x) * (1 / math.log(2)),
        _aten.log10: lambda x: torch.log(x) * (1 / math.log(10)),
        _aten.logaddexp: _logaddexp,
        _aten.tan: lambda x: torch.sin(x) / torch.cos(x),
        _aten.sinh: _sinh,
        _aten.cosh: _cosh,
        _aten.asinh: _asinh,
        _aten.acosh: lambda x: torch.log(x + torch.sqrt(x * x - 1)),
        _aten.atanh: lambda x: 0.5 * torch.log1p(2 * x / (1 - x)),
        _aten.erfc: lambda x: 1 - torch.erf(x),
        _aten._cdist_forward: _cdist,
    }
    found = {op.default: _of_reals(function) for op, function in rows.items()}
    found |= {op: _of_reals(_remainder) for op in (_aten.remainder.Tensor, _aten.remainder.Scalar)}
    found |= {
        op: _in_f32(function)
        for op, function in (
            (_aten.atan.default, _atan),
            (_aten.asin.default, _asin),
            (_aten.acos.default, _acos),
            (_aten.atan2.default, _atan2),
            (_aten.hypot.default, _hypot),
            (_aten.copysign.Tensor, _copysign),
            (_aten.copysign.Scalar, _copysign),
        )
    }
    return found | {op: _of_reals(_fmod) for op in (_aten.fmod.Tensor, _aten.fmod.Scalar)}


def _of_reals(function):
    return lambda x, *args: function(x, *args) if x.dtype.is_floating_point else NotImplemented


def _in_f32(function):
    """Computes half types and integers in f32, as PyTorch does."""

    def wide(x, *others):
        kind = torch.result_type(x, *others) if others else x.dtype
        kind = kind if kind.is_floating_point else torch.get_default_dtype()
        inner = torch.promote_types(kind, torch.float32)
        return function(
            *(each.to(inner) if isinstance(each, torch.Tensor) else each for each in (x, *others))
        ).to(kind)

    return wide


def _expm1(x):
    """exp(x) - 1, corrected for the rounding of u = exp(x): (u - 1) / log(u) is expm1(x) / x."""
    u = torch.exp(x)
    small = torch.where(u == 1, x, (u - 1) * (x / torch.log(u)))
    return torch.where(torch.abs(x) < 0.5, small, u - 1)


def _sinh(x):
    u = torch.expm1(torch.abs(x))
    return torch.where(x < 0, -1.0, 1.0) * 0.5 * (u + u / (u + 1))


def _cosh(x):
    u = torch.exp(torch.abs(x))
    return 0.5 * (u + 1 / u)


def _asinh(x):
    size = torch.abs(x)
    return torch.where(x < 0, -1.0, 1.0) * torch.log1p(
        size + size * size / (1 + torch.sqrt(1 + size * size))
    )


def _logaddexp(x, y):
    return torch.where(
        x == y, x + math.log(2), torch.maximum(x, y) + torch.log1p(torch.exp(-torch.abs(x - y)))
    )


def _remainder(x, divisor):
    """The remainder with the sign of the divisor, corrected for the rounding of the quotient."""
    left = x - torch.floor(x / divisor) * divisor
    left = torch.where(left * divisor < 0, left + divisor, left)
    return torch.where(torch.abs(left) >= abs(divisor), left - divisor, left)


def _fmod(x, divisor):
    return torch.where(x < 0, -1.0, 1.0) * _remainder(torch.abs(x), abs(divisor))


def _polynomial(x, *factors):
    found = factors[0]
    for factor in factors[1:]:
        found = found * x + factor
    return found


def _atan(x):
    """A polynomial up to tan(pi / 8), as in Cephes; larger arguments relative to pi / 4 or pi /
    2.
    """
    size, sign = torch.abs(x), torch.where(x < 0, -1.0, 1.0)
    turned, far = size > math.tan(math.pi / 8), size > math.tan(3 * math.pi / 8)
    above = torch.where(far, -sign, torch.where(turned, sign * (size - 1), x))
    below = torch.where(far, size, torch.where(turned, size + 1, 1.0))
    t = above / below
    z = t * t
    rest = t * (
        1
        + z
        * _polynomial(z, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
    )
    return torch.where(turned, sign * torch.where(far, math.pi / 2, math.pi / 4) + rest, rest)


def _atan2(y, x):
    across, along = torch.abs(y), torch.abs(x)
    angle = _atan(_part(across, along))
    angle = torch.where(across > along, math.pi / 2 - angle, angle)
    angle = torch.where(_is_negative(x), math.pi - angle, angle)
    return torch.where(_is_negative(y), -angle, angle)


def _hypot(x, y):
    x, y = torch.abs(x), torch.abs(y)
    part = _part(x, y)
    return torch.maximum(x, y) * torch.sqrt(1 + part * part)


def _part(x, y):
    """The smaller size divided by the larger: 0 for zeros, 1 for infinities."""
    small, large = torch.minimum(x, y), torch.maximum(x, y)
    return torch.where(small == large, torch.where(large == 0, 0.0, 1.0), small / large)


def _asin(x):
    large, angle = _short_asin(x)
    return torch.where(large, torch.where(x < 0, -1.0, 1.0) * (math.pi / 2 - 2 * angle), angle)


def _acos(x):
    large, angle = _short_asin(x)
    return torch.where(
        large, torch.where(x < 0, math.pi - 2 * angle, 2 * angle), math.pi / 2 - angle
    )


def _short_asin(x):
    """(whether |x| > 1/2, an arc sine by the polynomial of Cephes).

    For |x| > 1/2 the arc sine is that of sqrt((1 - |x|) / 2), half the angle that remains to pi /
    2.
    """
    size = torch.abs(x)
    large = size > 0.5
    t = torch.where(large, torch.sqrt(0.5 * (1 - size)), x)
    z = t * t
    return large, t + t * z * _polynomial(
        z, 4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1
    )


def _copysign(x, y):
    size = torch.abs(x)
    return (
        torch.where(_is_negative(y), -size, size)
        if isinstance(y, torch.Tensor)
        else math.copysign(1, y) * size
    )


def _is_negative(x):
    """The sign of a zero is that of its reciprocal."""
    return torch.where(x == 0, 1 / x, x) < 0


def _cdist(x, y, p, compute_mode):
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
