"""Decomposes elementwise functions into those that the compiler has."""

import math

import torch

_aten = torch.ops.aten


# Functions that the compiler has for floats.
_OF_REALS = (
    _aten.log1p,
    _aten.expm1,
    _aten.log2,
    _aten.log10,
    _aten.tan,
    _aten.sinh,
    _aten.cosh,
    _aten.asin,
    _aten.acos,
    _aten.atan,
    _aten.asinh,
    _aten.acosh,
    _aten.atanh,
    _aten.atan2,
)


def table() -> dict:
    found = {op.default: promoted(op.default) for op in _OF_REALS}
    found |= {
        op: promoted(None, function)
        for op, function in (
            (_aten.exp2.default, lambda x: torch.pow(2.0, x)),
            (_aten.logaddexp.default, _logaddexp),
            (_aten.logaddexp2.default, _logaddexp2),
            (_aten.erfc.default, _erfc),
            (_aten.hypot.default, _hypot),
            (_aten.copysign.Tensor, _copysign),
            (_aten.copysign.Scalar, _copysign),
        )
    }
    return found | {
        _aten.elu.default: _elu,
        _aten._cdist_forward.default: _cdist,
        _aten.dist.default: lambda x, y, p=2: torch.linalg.vector_norm(x - y, p),
        _aten._neg_view.default: torch.neg,
        _aten.fft_fftshift.default: lambda x, dim=None: _rolled(x, dim, 0),
        _aten.fft_ifftshift.default: lambda x, dim=None: _rolled(x, dim, 1),
        _aten.all.dims: _of_each_dim(torch.all),
        _aten.any.dims: _of_each_dim(torch.any),
    }


def promoted(op, function=None):
    """Integers are computed in f32, as PyTorch does; floats by `function`, or by the compiler."""

    def wide(*args):
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        kind = torch.result_type(*args) if len(args) > 1 else tensors[0].dtype
        kind = kind if kind.is_floating_point else torch.get_default_dtype()
        if function is None and all(each.dtype == kind for each in tensors):
            return NotImplemented
        args = [each.to(kind) if isinstance(each, torch.Tensor) else each for each in args]
        return (function or op)(*args)

    return wide


def _logaddexp(x, y):
    return torch.where(
        x == y, x + math.log(2), torch.maximum(x, y) + torch.log1p(torch.exp(-torch.abs(x - y)))
    )


def _logaddexp2(x, y):
    lower = torch.log1p(torch.pow(2.0, -torch.abs(x - y))) / math.log(2)
    return torch.where(x == y, x + 1, torch.maximum(x, y) + lower)


def _elu(x, alpha=1, scale=1, input_scale=1):
    below = torch.expm1(x if input_scale == 1 else x * input_scale)
    factor = alpha * scale
    below = below if factor == 1 else below * factor
    return torch.where(x > 0, x if scale == 1 else x * scale, below)


def _hypot(x, y):
    x, y = torch.abs(x), torch.abs(y)
    part = _part(x, y)
    found = torch.maximum(x, y) * torch.sqrt(1 + part * part)
    return torch.where((x == math.inf) | (y == math.inf), math.inf, found)


# exp(x^2) * erfc(x) * (1 + 2 * x) by powers of (x - 2) / (x + 2), highest first, for 0.45 <= x
# <= 10.3, to 7e-9
_ERFC_FACTORS = (
    -0.000274895899,
    -0.00124166371,
    0.00118608359,
    0.00864260193,
    -0.00801634734,
    -0.0542077199,
    0.16404982,
    -0.166031062,
    -0.092763794,
    1.27697839,
)


def _erfc(x):
    """From 1/2 on exp(-x^2) times a polynomial; the head of x, in bf16, has an exact square."""
    size = torch.abs(x)
    size = torch.where(size < 11, size, 11.0)
    head = size.to(torch.bfloat16).to(x.dtype)
    place = (size - 2) / (size + 2)
    factor = torch.full_like(x, _ERFC_FACTORS[0])
    for each in _ERFC_FACTORS[1:]:
        factor = factor * place + each
    tail = torch.exp(-head * head) * torch.exp(-(size - head) * (size + head))
    tail = tail * (factor / (1 + 2 * size))
    tail = torch.where(x < 0, 2 - tail, tail)
    return torch.where(torch.abs(x) >= 0.5, tail, 1 - torch.erf(x))


def _part(x, y):
    """The smaller size divided by the larger: 0 for zeros, 1 for infinities."""
    small, large = torch.minimum(x, y), torch.maximum(x, y)
    return torch.where(small == large, torch.where(large == 0, 0.0, 1.0), small / large)


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


def _rolled(x, dim, up: int):
    dims = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
    return torch.roll(x, [(x.shape[each] + up) // 2 for each in dims], dims)


def _of_each_dim(reduce):
    def reduced(x, dim=None, keepdim=False):
        found = x != 0
        for each in sorted((each % x.ndim for each in dim or range(x.ndim)), reverse=True):
            found = reduce(found, each, keepdim)
        return found

    return reduced


def _cdist(x, y, p, compute_mode):
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
