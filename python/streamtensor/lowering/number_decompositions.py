"""Decomposes ops that torch-mlir lowers to other numbers than PyTorch's: NaN among comparisons,
whole numbers that go through floats, and half types.
"""

import math
import struct

import torch

from . import bit_views, recurrences

_aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)
# Exact in a half type, or rounded once already.
_EXACT_IN_HALVES = """
    abs neg relu sign floor ceil round trunc where clone alias _to_copy maximum minimum clamp
    clamp_min clamp_max eq ne lt le gt ge isnan isinf fill masked_fill logical_not logical_and
    logical_or logical_xor copysign hardtanh detach lift_fresh_copy nan_to_num
""".split()
# Reductions and other ops of several elements that PyTorch computes in f32 and rounds once.
_WIDE = """
    sum mean std var std_mean var_mean norm linalg_vector_norm logsumexp cumsum cumprod
    logcumsumexp avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    adaptive_avg_pool1d _softmax _log_softmax native_layer_norm native_group_norm
    _native_batch_norm_legit_no_training native_batch_norm mse_loss l1_loss smooth_l1_loss
    huber_loss dist _cdist_forward upsample_bilinear2d upsample_bicubic2d upsample_linear1d
    upsample_trilinear3d _upsample_bilinear2d_aa nansum trace softplus glu rms_norm hardswish
    log_sigmoid_forward
""".split()

# Ops that round a number to the half type first, as PyTorch does; others take it in f32.
_ROUNDING_NUMBERS = (_aten.add, _aten.sub, _aten.rsub, _aten.remainder, _aten.fmod, _aten.pow)


def table() -> dict:
    rows = {
        **bit_views.table(),
        _aten.clamp.default: _clamp,
        _aten.clamp.Tensor: _clamp,
        _aten.clamp_min.default: lambda x, low: _clamp(x, low, None),
        _aten.clamp_min.Tensor: lambda x, low: _clamp(x, low, None),
        _aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
        _aten.clamp_max.Tensor: lambda x, high: _clamp(x, None, high),
        _aten.hardtanh.default: lambda x, low=-1.0, high=1.0: _clamp(x, low, high),
        _aten.relu6.default: lambda x: _clamp(x, 0.0, 6.0),
        _aten.hardsigmoid.default: lambda x: _clamp(x + 3, 0.0, 6.0) / 6,
        _aten.hardswish.default: lambda x: x * _clamp(x + 3, 0.0, 6.0) / 6,
        _aten.maximum.default: _maximum,
        _aten.minimum.default: _minimum,
        _aten.isfinite.default: _is_finite,
        _aten.isclose.default: _is_close,
        _aten.isposinf.default: lambda x: x == math.inf,
        _aten.isneginf.default: lambda x: x == -math.inf,
        _aten.nan_to_num.default: _nan_to_num,
        _aten.neg.default: _neg,
        _aten.abs.default: _abs,
        _aten.floor_divide.default: _floor_divide,
        _aten.floor_divide.Scalar: _floor_divide,
        _aten.div.Tensor_mode: _div_mode,
        _aten.div.Scalar_mode: _div_mode,
        _aten.fmod.Tensor: _fmod,
        _aten.fmod.Scalar: _fmod,
        _aten.remainder.Tensor: _remainder,
        _aten.remainder.Scalar: _remainder,
        _aten.remainder.Scalar_Tensor: _remainder,
        _aten.trunc.default: _trunc,
        _aten.prod.default: _product_of_all,
        _aten.prod.dim_int: _product,
        _aten.pow.Tensor_Scalar: _pow,
        _aten.pow.Tensor_Tensor: _pow,
        _aten.pow.Scalar: _pow,
        _aten._to_copy.default: _to_copy,
        _aten.gcd.default: _gcd,
        _aten.lcm.default: _lcm,
        **_shifts(),
        **{op: _compared_as_half(op) for op in _comparisons()},
    }
    return rows


def _shifts():
    rows = {}
    for names, shift in (
        (("__lshift__", "bitwise_left_shift"), torch.bitwise_left_shift),
        (("__rshift__", "bitwise_right_shift"), torch.bitwise_right_shift),
    ):

        def of_tensors(x, y, shift=shift):
            return shift(*_promoted(x, y)[1:])

        dunder, function = (getattr(_aten, name) for name in names)
        overloads = dunder.Tensor, dunder.Scalar, function.Tensor_Scalar, function.Scalar_Tensor
        rows |= dict.fromkeys(overloads, of_tensors)
    return rows


def _comparisons():
    return [getattr(_aten, name).Scalar for name in ("eq", "ne", "lt", "le", "gt", "ge")]


def rounded_once(found: dict) -> dict:
    """`found` with the ops that PyTorch computes in f32 for half types, whose result it rounds."""
    rows = dict(found)
    for name in dir(_aten):
        packet = getattr(_aten, name)
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            if name in _EXACT_IN_HALVES and overload != "decimals":
                continue
            if overload != "out" and (
                name in _WIDE or torch.Tag.pointwise in op.tags and not op._schema.is_mutable
            ):
                rows[op] = _widened(op, found.get(op))
    return rows


def _widened(op, otherwise):
    def wide(*args, **options):
        kind = _half_of(args, options)
        if kind is None or not _must_widen(op, args, options):
            return otherwise(*args, **options) if otherwise else NotImplemented
        if op.overloadpacket in _ROUNDING_NUMBERS:
            args, options = torch.utils._pytree.tree_map_only(
                float, lambda number: _rounded(number, kind), (args, options)
            )
        return torch.utils._pytree.tree_map_only(
            torch.Tensor,
            lambda value: value.to(kind) if value.dtype == torch.float32 else value,
            op(
                *torch.utils._pytree.tree_map_only(
                    torch.Tensor,
                    lambda value: value.float() if value.dtype == kind else value,
                    args,
                ),
                **options,
            ),
        )

    return wide


def _half_of(args, options):
    """The half type of all float tensors; None: others are among them, or a result type is asked
    for.
    """
    if options.get("dtype") is not None or options.get("out_dtype") is not None:
        return None
    kinds = {
        value.dtype
        for value in torch.utils._pytree.tree_leaves(args)
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    }
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if kind in HALVES else None


def _must_widen(op, args, options) -> bool:
    """Sums and differences, and products and quotients of two tensors, are rounded once as they
    are; the square in a third power is rounded, too.
    """
    if op.overloadpacket in (_aten.add, _aten.sub, _aten.rsub):
        return len(args) > 2 or "alpha" in options
    if op == _aten.pow.Tensor_Scalar and args[1] == 3:
        return False
    simple = op in (_aten.mul.Tensor, _aten.div.Tensor)
    return not (simple and all(isinstance(each, torch.Tensor) for each in args))


def _compared_as_half(op):
    """A number that a half is compared with is rounded to it."""

    def compare(x, number):
        rounded = _rounded(number, x.dtype) if x.dtype in HALVES else number
        return NotImplemented if rounded == number or number != number else op(x, rounded)

    return compare


def _rounded(number, kind) -> float:
    """The nearest number of a half type, by way of f32 as in PyTorch."""
    if abs(number) > torch.finfo(torch.float32).max:
        return number
    if kind == torch.float16:
        near = struct.unpack("f", struct.pack("f", number))[0]
        return math.copysign(math.inf, near) if abs(near) >= 65520 else _half(near)
    (bits,) = struct.unpack("I", struct.pack("f", number))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


def _half(number: float) -> float:
    return struct.unpack("e", struct.pack("e", number))[0]


def _number(value, kind):
    """A number or a tensor as a tensor of that type."""
    return value.to(kind) if isinstance(value, torch.Tensor) else torch.full((), value, dtype=kind)


def _promoted(x, y):
    kind = torch.result_type(x, y)
    return kind, _number(x, kind), _number(y, kind)


def _in_wider_integers(function, x, y, **options):
    """u8 by way of i32: torch-mlir takes the bits for signed ones."""
    return function(x.to(torch.int32), y.to(torch.int32), **options).to(torch.uint8)


def _clamp(x, low=None, high=None):
    """A comparison with NaN is false, so that NaN stays."""
    kind = x.dtype
    for bound in (low, high):
        kind = kind if bound is None else torch.result_type(torch.empty((), dtype=kind), bound)
    if not kind.is_floating_point:
        return NotImplemented
    x = x.to(kind)
    if any(bound != bound for bound in (low, high) if isinstance(bound, float)):
        return torch.full_like(x, math.nan)
    x = x if low is None else _limited(x, low, torch.lt)
    return x if high is None else _limited(x, high, torch.gt)


def _limited(x, bound, beyond):
    if isinstance(bound, torch.Tensor):
        bound = bound.to(x.dtype)
        return torch.where(beyond(x, bound) | (bound != bound), bound, x)
    return torch.where(beyond(x, bound), bound, x)


def _maximum(x, y):
    kind, x, y = _promoted(x, y)
    return torch.where((x > y) | (x != x), x, y) if kind.is_floating_point else NotImplemented


def _minimum(x, y):
    kind, x, y = _promoted(x, y)
    return torch.where((x < y) | (x != x), x, y) if kind.is_floating_point else NotImplemented


def _is_finite(x):
    return torch.abs(x) < math.inf if x.dtype.is_floating_point else x == x


def _is_close(x, y, rtol=1e-05, atol=1e-08, equal_nan=False):
    equal = (x == y) | ((x != x) & (y != y)) if equal_nan else x == y
    if not rtol and not atol:
        return equal
    if not x.dtype.is_floating_point:
        x, y = x.to(torch.get_default_dtype()), y.to(torch.get_default_dtype())
    apart = torch.abs(x - y)
    return equal | (torch.isfinite(apart) & (apart <= atol + torch.abs(rtol * y)))


def _nan_to_num(x, nan=None, posinf=None, neginf=None):
    if not x.dtype.is_floating_point:
        return x.clone()
    limits = torch.finfo(x.dtype)
    x = torch.where(x == math.inf, limits.max if posinf is None else posinf, x)
    x = torch.where(x == -math.inf, limits.min if neginf is None else neginf, x)
    return torch.where(x != x, 0.0 if nan is None else nan, x)


def _neg(x):
    return NotImplemented if x.dtype.is_floating_point else _number(0, x.dtype) - x


def _abs(x):
    return x.clone() if x.dtype == torch.uint8 else NotImplemented


def _floor_divide(x, y):
    if isinstance(x, torch.Tensor) and x.dtype in HALVES and not isinstance(y, torch.Tensor):
        return _floor_divide(x.float(), y).to(x.dtype)  # a number is not rounded first
    kind, x, y = _promoted(x, y)
    if kind == torch.uint8:
        return _in_wider_integers(_floor_divide, x, y)
    if kind.is_floating_point:
        return _floor_divide_reals(x, y)
    quotient = _truncated(x, y)
    rest = x - quotient * y
    zero = _number(0, kind)
    return quotient - ((rest != zero) & ((rest < zero) ^ (y < zero))).to(kind)


def _truncated(x, y):
    return torch.div(x, y, rounding_mode="trunc")


def _floor_divide_reals(x, y):
    """As PyTorch: the quotient of what the remainder leaves, which is nearly whole."""
    rest = torch.fmod(x, y)
    found = (x - rest) / y
    found = torch.where((rest != 0) & ((y < 0) ^ (rest < 0)), found - 1, found)
    whole = torch.floor(found)
    whole = torch.where(found - whole > 0.5, whole + 1, whole)
    return torch.where(y == 0, x / y, torch.where(found != 0, whole, x / y * 0.0))


def _div_mode(x, y, *, rounding_mode=None):
    if rounding_mode is None:
        return x / y
    if rounding_mode == "floor":
        return torch.floor_divide(x, y)
    kind, wide_x, wide_y = _promoted(x, y)
    if kind.is_floating_point:
        return torch.trunc(wide_x / wide_y)
    if kind == torch.uint8:
        return _in_wider_integers(_truncated, wide_x, wide_y)
    as_it_is = isinstance(y, torch.Tensor) and x.dtype == y.dtype == kind
    return NotImplemented if as_it_is else _truncated(wide_x, wide_y)


def _trunc(x):
    return torch.where(x < 0, torch.ceil(x), torch.floor(x))


_ROUNDED_FACTORS = 63  # of more, PyTorch's order is the processor's


def _product_of_all(x, *, dtype=None):
    return _product(x.flatten(), 0, dtype=dtype)


def _product(x, dim, keepdim=False, *, dtype=None):
    """Of halves each product is rounded, as in PyTorch; many are multiplied in f32."""
    if x.dtype not in HALVES or dtype not in (None, x.dtype):
        return NotImplemented
    if not 0 < x.shape[dim] <= _ROUNDED_FACTORS:
        return torch.prod(x.float(), dim, keepdim).to(x.dtype)
    factors = x.split(1, dim)
    found = factors[0]
    for each in factors[1:]:
        found = found * each
    return found if keepdim else found.squeeze(dim)


def _fmod(x, y):
    kind, x, y = _promoted(x, y)
    if kind == torch.uint8:
        return _in_wider_integers(_fmod, x, y)
    if not kind.is_floating_point:
        return x - _truncated(x, y) * y
    rest = torch.remainder(torch.abs(x), torch.abs(y))
    return torch.where(x < 0, -rest, rest)


def _remainder(x, y):
    if all(isinstance(each, torch.Tensor) for each in (x, y)) and x.dtype == y.dtype != torch.uint8:
        return NotImplemented
    kind, x, y = _promoted(x, y)
    return (
        _in_wider_integers(torch.remainder, x, y) if kind == torch.uint8 else torch.remainder(x, y)
    )


def _pow(x, y):
    kind = torch.result_type(x, y)
    if kind in HALVES and isinstance(y, (int, float)) and y == 3:
        return x * x * x
    if kind.is_floating_point:
        whole = [v for v in (x, y) if isinstance(v, torch.Tensor) and v.dtype != kind]
        return (
            NotImplemented
            if not whole
            else torch.pow(*(v.to(kind) if isinstance(v, torch.Tensor) else v for v in (x, y)))
        )
    if kind == torch.uint8:
        return torch.pow(
            *(v.to(torch.int32) if isinstance(v, torch.Tensor) else v for v in (x, y))
        ).to(kind)
    if not isinstance(y, torch.Tensor):
        return _whole_power(x.to(kind), y)
    if not isinstance(x, torch.Tensor):
        return _power_of_number(x, y.to(kind))
    return _power_by_squares(x.to(kind), y.to(kind))


def _whole_power(x, exponent: int):
    found = None
    while exponent:
        if exponent & 1:
            found = x if found is None else found * x
        exponent >>= 1
        x = x * x if exponent else x
    return torch.ones_like(x) if found is None else found.clone()


def _power_by_squares(x, exponent):
    """By the bits of the exponent, in integers that wrap."""
    one, zero = _number(1, x.dtype), _number(0, x.dtype)
    found = torch.ones_like(x)
    square = x
    for bit in range(torch.iinfo(x.dtype).bits - 1):
        is_set = (exponent & _number(1 << bit, x.dtype)) != zero
        found = torch.where(is_set, found * square, found)
        square = square * square
    odd = (exponent & one) != zero
    below = torch.where(x == one, one, torch.where(x == -one, torch.where(odd, -one, one), zero))
    return torch.where(exponent < zero, below, found)


def _power_of_number(base: int, exponent):
    kind = exponent.dtype
    bits = torch.iinfo(kind).bits
    zero, one = _number(0, kind), _number(1, kind)
    found, square = torch.ones_like(exponent), base
    for bit in range(bits - 1):
        wrapped = (square + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if wrapped == 1:
            break
        if wrapped == 0:
            found = torch.where(exponent >= _number(1 << bit, kind), zero, found)
            break
        is_set = (exponent & _number(1 << bit, kind)) != zero
        found = found * torch.where(is_set, _number(wrapped, kind), one)
        square = wrapped * wrapped
    if base in (1, -1):
        return found
    return torch.where(exponent < zero, zero, found)


def _to_copy(x, *, dtype=None, **options):
    """Floats to integers as processors do: beyond the range, and for NaN, the least integer; the
    narrow types by way of i32.
    """
    if dtype is None or dtype.is_floating_point or not x.dtype.is_floating_point:
        return NotImplemented
    if dtype == torch.bool or dtype.is_complex:
        return NotImplemented
    if torch.iinfo(dtype).bits < 32:
        return x.to(torch.int32).to(dtype)
    wide = x if x.dtype == torch.float64 else x.float()
    within = torch.where(wide < 2.0 ** (torch.iinfo(dtype).bits - 1), wide, -math.inf)
    return torch.ops.prims.convert_element_type(within, dtype)


def _divisor_step(one, a, b, twos):
    """Takes a bit from one of the numbers at least."""
    a_is_odd, b_is_odd = (a & 1) != 0, (b & 1) != 0
    both, apart = a_is_odd & b_is_odd, a - b
    is_larger = apart >= 0
    half_a = torch.where(both & is_larger, apart, a) >> 1
    half_b = torch.where(both & ~is_larger, -apart, b) >> 1
    return (
        torch.where(both & is_larger | ~a_is_odd, half_a, a),
        torch.where(both & ~is_larger | ~b_is_odd, half_b, b),
        torch.where(a_is_odd | b_is_odd, twos, twos + one),
    )


recurrences.define("gcd", _divisor_step, 3, "one a b twos")


def _gcd(x, y):
    """Stein's loop, which needs no divider: one of the numbers is 0 when all bits are taken."""
    kind = torch.result_type(x, y)
    a, b = torch.broadcast_tensors(*(torch.abs(each.to(kind)) for each in (x, y)))
    steps = torch.ones((2 * torch.iinfo(kind).bits - 2, 1), dtype=kind)
    rows = [each.reshape(-1) for each in (a, b, torch.zeros_like(a))]
    _, a, b, twos = recurrences.library_operator("gcd")(steps, *rows)
    return ((a | b) << twos).reshape(torch.broadcast_shapes(x.shape, y.shape))


def _lcm(x, y):
    kind = torch.result_type(x, y)
    x, y = x.to(kind), y.to(kind)
    divisor = torch.gcd(x, y)
    part = torch.div(x, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc")
    return torch.abs(part * y)
