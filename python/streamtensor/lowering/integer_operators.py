"""The operators of networks quantized to integers: what they compute in PyTorch, exactly and in the
arithmetic of onnxruntime's integer kernels. `integer_text` has them in MLIR.

Contractions sum products of 8-bit integers in 32 bits. `requantize_channels` adds the bias of the
channel, multiplies by its multiplier in f32, rounds half to even, and saturates at two bounds.
Unsigned integers are uint8, signed ones int8. `center` subtracts 128 of unsigned ones, since two
products of signed bytes share a DSP; what the sums then lack is added to the bias. `shift_channels`
is the cheaper form: an integer factor, and a shift that all channels share.
"""

import math

import torch

from .recurrences import library

CENTER = 128  # of unsigned bytes


def _define(name: str, schema: str, compute, shape) -> None:
    library.define(f"{name}({schema}")
    library.impl(name, compute, "CompositeExplicitAutograd")
    torch.library.register_fake(f"streamtensor::{name}", shape, lib=library)


def _exact(x: torch.Tensor) -> torch.Tensor:
    return x.double()  # sums of products of bytes stay far below 2^53


def _integer_type(unsigned: bool) -> torch.dtype:
    return torch.uint8 if unsigned else torch.int8


def _per_channel(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Values of channels, of dim 1."""
    return values.reshape(-1, *[1] * (like.ndim - 2))


def _saturated(value: torch.Tensor, low: int, high: int, unsigned: bool, zero=0) -> torch.Tensor:
    return (torch.round(value) + zero).clamp(low, high).to(_integer_type(unsigned))


def _padded(x: torch.Tensor, low: list[int], high: list[int], value: int = 0) -> torch.Tensor:
    ends = [width for pair in zip(reversed(low), reversed(high)) for width in pair]
    return torch.nn.functional.pad(x, ends, value=value) if any(ends) else x


def _extent(size: int, kernel: int, stride: int, ends: int, dilation: int) -> int:
    return (size + ends - dilation * (kernel - 1) - 1) // stride + 1


def _window_extents(x, kernel, stride, low, high, dilation) -> list[int]:
    ends = [a + b for a, b in zip(low, high)]
    return [_extent(*each) for each in zip(x.shape[2:], kernel, stride, ends, dilation)]


def _convolve(x, weight, stride, low, high, dilation, groups, border):
    dims = len(stride)
    padded, exact = _padded(_exact(x), low, high, border), _exact(weight)
    if dims == 0:
        found = torch.nn.functional.linear(padded, exact)
    else:
        convolve = getattr(torch.nn.functional, f"conv{dims}d")
        found = convolve(padded, exact, None, stride, 0, dilation, groups)
    return found.to(torch.int32)


def _convolved_shape(x, weight, stride, low, high, dilation, groups, border):
    extents = _window_extents(x, weight.shape[2:], stride, low, high, dilation)
    return x.new_empty([x.shape[0], weight.shape[0], *extents], dtype=torch.int32)


def _add(x, y, x_ratio, y_ratio, low, high, unsigned, offset=0.0):
    return _saturated(_fused_sum(x, y, x_ratio, y_ratio, offset), low, high, unsigned)


def _scaled(sums, bias, scale):
    return (sums + _per_channel(bias, sums)).float() * _per_channel(scale, sums)


def _fused_sum(x, y, x_ratio, y_ratio, offset):
    """x * x_ratio + f32(y * y_ratio + offset), each rounded once."""
    shift, whole, other, added = fixed_point(x_ratio, y_ratio, offset)
    inner = (y.long() * other + added).float()
    return (x.long() * whole + inner.long()).float() * 2.0**-shift


def fixed_point(*numbers: float) -> tuple[int, ...]:
    """The bits behind the point with which these numbers, and sums of products with them that are
    rounded to f32, are whole; and the numbers with these.
    """
    shift = 24 - min(math.frexp(each)[1] for each in numbers if each)
    return shift, *(int(each * 2.0**shift) for each in numbers)


def fits_fixed_point(*numbers: float) -> bool:
    """Whether sums of products with these numbers fit 64 bits."""
    exponents = [math.frexp(each)[1] for each in numbers if each]
    return max(exponents) - min(exponents) < 24


def _product_shape(x, y, *zeros):
    return x.new_empty(torch.broadcast_shapes(x.shape, y.shape), dtype=torch.int32)


def _shifted(value: torch.Tensor, shift: int, low: int, high: int, unsigned: bool) -> torch.Tensor:
    """A quotient by a power of two, rounded half up, of 64-bit integers."""
    whole = (value + (1 << shift >> 1)) >> shift
    return whole.clamp(low, high).to(_integer_type(unsigned))


def shifted_factors(factors: torch.Tensor, bits: int) -> tuple[torch.Tensor, int]:
    """Integers of so many bits with a common shift that stand for positive numbers."""
    largest = float(factors.max())
    shift = min(max(bits - 1 - math.frexp(largest)[1], 0), 62)
    whole = torch.round(factors.double() * 2.0**shift).clamp(0, 2 ** (bits - 1) - 1)
    return whole.to(torch.int32), shift


def _window_sums(x, kernel, stride, low, high):
    dims = len(kernel)
    pool = getattr(torch.nn.functional, f"avg_pool{dims}d")
    padded = _padded(_exact(x), low, high)
    if dims == 1:
        return (pool(padded, kernel, stride) * kernel[0]).round().to(torch.int32)
    return pool(padded, kernel, stride, divisor_override=1).to(torch.int32)


def _largest(x, kernel, stride, low, high, dilation):
    padded = _padded(_exact(x), low, high, least(x.dtype))
    pool = getattr(torch.nn.functional, f"max_pool{len(kernel)}d")
    return pool(padded, kernel, stride, 0, dilation).to(x.dtype)


def least(dtype: torch.dtype) -> int:
    return torch.iinfo(dtype).min


def _quantize(x, scale, *rest):
    return _saturated(x / torch.tensor(scale), *rest)


def _like_integers(x, *rest):
    unsigned = next(each for each in rest if isinstance(each, bool))
    return torch.empty_like(x, dtype=_integer_type(unsigned))


_define(
    "integer_convolution",
    "Tensor x, Tensor weight, int[] stride, int[] low, int[] high, int[] dilation, "
    "int groups, int border) -> Tensor",
    _convolve,
    _convolved_shape,
)
_define(
    "center",
    "Tensor x) -> Tensor",
    lambda x: (x.int() - CENTER).to(torch.int8),
    lambda x: torch.empty_like(x, dtype=torch.int8),
)
_define(
    "requantize_channels",
    "Tensor sums, Tensor bias, Tensor multiplier, int low, int high, bool unsigned, "
    "int zero=0) -> Tensor",
    lambda sums, bias, multiplier, *rest: _saturated(_scaled(sums, bias, multiplier), *rest),
    _like_integers,
)
_define(
    "requantize",
    "Tensor sums, float multiplier, int low, int high, bool unsigned, int zero=0) -> Tensor",
    lambda sums, multiplier, *rest: _saturated(sums.float() * multiplier, *rest),
    _like_integers,
)
_define(
    "integer_add",
    "Tensor x, Tensor y, float x_ratio, float y_ratio, int low, int high, bool unsigned, "
    "float offset=0.0) -> Tensor",
    _add,
    _like_integers,
)
_define(
    "integer_product",
    "Tensor x, Tensor y, int x_zero=0, int y_zero=0) -> Tensor",
    lambda x, y, x_zero=0, y_zero=0: (x.int() - x_zero) * (y.int() - y_zero),
    _product_shape,
)
_define(
    "shift_channels",
    "Tensor sums, Tensor bias, Tensor factor, int shift, int low, int high, bool unsigned)"
    " -> Tensor",
    lambda sums, bias, factor, *rest: _shifted(
        (sums + _per_channel(bias, sums)).long() * _per_channel(factor, sums), *rest
    ),
    _like_integers,
)
_define(
    "shift",
    "Tensor sums, int factor, int shift, int low, int high, bool unsigned) -> Tensor",
    lambda sums, factor, *rest: _shifted(sums.long() * factor, *rest),
    _like_integers,
)
_define(
    "shift_sum",
    "Tensor x, Tensor y, int x_factor, int y_factor, int shift, int low, int high, bool unsigned)"
    " -> Tensor",
    lambda x, y, by, other, *rest: _shifted(x.long() * by + y.long() * other, *rest),
    _like_integers,
)
_define(
    "integer_window_sums",
    "Tensor x, int[] kernel, int[] stride, int[] low, int[] high) -> Tensor",
    _window_sums,
    lambda x, kernel, stride, low, high: x.new_empty(
        [*x.shape[:2], *_window_extents(x, kernel, stride, low, high, [1] * len(kernel))],
        dtype=torch.int32,
    ),
)
_define(
    "integer_max_pool",
    "Tensor x, int[] kernel, int[] stride, int[] low, int[] high, int[] dilation) -> Tensor",
    _largest,
    lambda x, *window: x.new_empty([*x.shape[:2], *_window_extents(x, *window)]),
)
_define(
    "quantize",
    "Tensor x, float scale, int low, int high, bool unsigned, int zero=0) -> Tensor",
    _quantize,
    _like_integers,
)
_define(
    "dequantize",
    "Tensor x, float scale, int zero=0) -> Tensor",
    lambda x, scale, zero=0: (x.int() - zero).float() * scale,
    lambda x, scale, zero=0: torch.empty_like(x, dtype=torch.float32),
)
_define(
    "dequantize_channels",
    "Tensor sums, Tensor bias, Tensor scale) -> Tensor",
    _scaled,
    lambda sums, bias, scale: torch.empty_like(sums, dtype=torch.float32),
)
