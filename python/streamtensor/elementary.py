"""Functions of a number as those that the compiler has: exp, log, sin, cos, tanh, erf, sqrt, floor and arithmetic."""
import math

import torch

_aten = torch.ops.aten


def table() -> dict:
    rows = {_aten.expm1: _expm1, _aten.exp2: lambda x: torch.pow(2.0, x),
            _aten.log2: lambda x: torch.log(x) * (1 / math.log(2)), _aten.log10: lambda x: torch.log(x) * (1 / math.log(10)), _aten.logaddexp: _logaddexp,
            _aten.tan: lambda x: torch.sin(x) / torch.cos(x), _aten.sinh: _sinh, _aten.cosh: _cosh,
            _aten.asinh: _asinh, _aten.acosh: lambda x: torch.log(x + torch.sqrt(x * x - 1)), _aten.atanh: lambda x: 0.5 * torch.log1p(2 * x / (1 - x)),
            _aten.erfc: lambda x: 1 - torch.erf(x), _aten._cdist_forward: _cdist}
    found = {op.default: _of_reals(function) for op, function in rows.items()}
    found |= {op: _of_reals(_remainder) for op in (_aten.remainder.Tensor, _aten.remainder.Scalar)}
    return found | {op: _of_reals(_fmod) for op in (_aten.fmod.Tensor, _aten.fmod.Scalar)}


def _of_reals(function):
    return lambda x, *args: function(x, *args) if x.dtype.is_floating_point else NotImplemented


def _expm1(x):
    """exp(x) - 1, corrected by what the exponential was rounded by: u - 1 is to log(u) as expm1(x) is to x."""
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
    return torch.where(x < 0, -1.0, 1.0) * torch.log1p(size + size * size / (1 + torch.sqrt(1 + size * size)))


def _logaddexp(x, y):
    return torch.where(x == y, x + math.log(2), torch.maximum(x, y) + torch.log1p(torch.exp(-torch.abs(x - y))))


def _remainder(x, divisor):
    """With the sign of the divisor, and less than it although the quotient is rounded."""
    left = x - torch.floor(x / divisor) * divisor
    left = torch.where(left * divisor < 0, left + divisor, left)
    return torch.where(torch.abs(left) >= abs(divisor), left - divisor, left)


def _fmod(x, divisor):
    return torch.where(x < 0, -1.0, 1.0) * _remainder(torch.abs(x), abs(divisor))


def _cdist(x, y, p, compute_mode):
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
