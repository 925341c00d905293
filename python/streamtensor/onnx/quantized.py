"""ONNX's quantized operators: what lies between integers and real numbers, and the integer
operators of `integer_operators` with onnxruntime's arithmetic.

    y = quantize(conv(dequantize(x), dequantize(w)))
      ->  sums = integer_convolution(x, w);  y = requantize_channels(sums, bias, multiplier, zero)

An integer q stands for (q - zero) * scale. Operators of the domain `integer` are those that
`onnx_fusion` makes of a graph's quantized parts.
"""

import math
from dataclasses import dataclass

import numpy
import torch
import torch.nn.functional as F

from ..lowering import integer_operators
from . import file as onnx_file
from . import windows as onnx_windows
from .node import OPERATORS, Node, operator

_ours = torch.ops.streamtensor
_LIMIT = 2**30  # of the sum of products
_BYTES = (torch.int8, torch.uint8)


@dataclass(frozen=True)
class Format:
    """How integers stand for numbers."""

    scale: numpy.float32
    zero: int
    dtype: torch.dtype

    @property
    def unsigned(self) -> bool:
        return self.dtype == torch.uint8

    @property
    def limits(self) -> tuple[int, int, bool]:
        return (0, 255, True) if self.unsigned else (-128, 127, False)

    def bounded(self, bounds: list[float] | None) -> tuple[int, int, bool]:
        """The limits of integers of numbers within bounds."""
        if not bounds:
            return self.limits
        least, most, _ = self.limits
        ends = numpy.rint(numpy.array(bounds, numpy.float32) / self.scale) + self.zero
        low, high = numpy.clip(ends, least, most)
        return int(low), int(high), self.unsigned

    def quantized(self, x):
        return _ours.quantize(x, float(self.scale), *self.limits, self.zero)

    def real(self, x):
        return _ours.dequantize(x, float(self.scale), self.zero)


def _scale(node: Node, place: int) -> numpy.ndarray:
    found = numpy.array(node.numbers(place, "scale"), numpy.float32).reshape(-1)
    wrong = found[~(numpy.isfinite(found) & (found > 0))]
    if len(wrong):
        raise node.refuse(f"has a scale of {wrong[0]:g}", "positive and finite ones")
    return found


def _zeros(node: Node, place: int) -> list[int]:
    return node.numbers(place, "zero point") if place in node.constants else [0]


def format_of(node: Node, scale: int, zero: int, dtype: torch.dtype) -> Format:
    """The format that a node says at these places, of one scale."""
    found = _scale(node, scale)
    if found.size != 1 or len(_zeros(node, zero)) != 1:
        raise node.refuse(f"has {found.size} scales for a tensor", "one, and one zero point")
    if zero in node.constants and node.constants[zero].dtype != dtype:
        says = node.constants[zero].dtype
        raise node.refuse(f"has a zero point of {says} for integers of {dtype}", f"{dtype}")
    if dtype not in _BYTES:
        raise node.refuse(f"has integers of {dtype}", "int8 or uint8")
    return Format(found[0], _zeros(node, zero)[0], dtype)


def _given(node: Node, place: int) -> torch.dtype:
    """The type of a result's integers: that of its zero point."""
    return node.constants[place].dtype if place in node.constants else torch.uint8


# --- between integers and real numbers ---


@operator("QuantizeLinear", "com.microsoft:QuantizeLinear")
def _quantize(node, x, scale, zero=None):
    axis = node.integer("axis", 1)
    node.integer("saturate", 1)
    node.integer("precision", 0)
    number = node.integer("output_dtype", 0)
    dtype = onnx_file.dtype_of(number, node.label) if number else None
    dtype = (dtype or torch.uint8) if zero is None else zero.dtype
    if node.integer("block_size", 0):
        raise node.refuse("has block_size", "one scale for a tensor or a channel")
    if dtype not in _BYTES:
        raise node.refuse(f"gives integers of {dtype}", "int8 or uint8")
    if 1 in node.constants and _scale(node, 1).size == 1 and (zero is None or 2 in node.constants):
        return format_of(node, 1, 2, dtype).quantized(x.float())
    scale, zero = (_along(node, each, x, axis) for each in (scale, zero))
    found = torch.round(x / scale) + (0 if zero is None else zero.to(torch.int32))
    return found.clamp(*(0, 255) if dtype == torch.uint8 else (-128, 127)).to(dtype)


def _along(node: Node, value, x, axis: int):
    """A value of each channel, in the dims of x."""
    if value is None or value.numel() == 1:
        return value if value is None else value.reshape(())
    axis = node.axis(axis, x.ndim)
    if value.ndim != 1 or value.numel() != x.shape[axis]:
        raise node.refuse(
            f"has {list(value.shape)} scales or zero points for {x.shape[axis]} channels",
            "one for each, or one",
        )
    return value.reshape([-1 if at == axis else 1 for at in range(x.ndim)])


@operator("DequantizeLinear", "com.microsoft:DequantizeLinear")
def _dequantize(node, x, scale, zero=None):
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    node.integer("output_dtype", 0)
    if 1 in node.constants:
        _scale(node, 1)
    known = scale.numel() == 1 and 1 in node.constants and (zero is None or 2 in node.constants)
    if known and x.dtype in _BYTES and 0 not in node.constants:
        return format_of(node, 1, 2, x.dtype).real(x)
    if block:
        scale, zero = (_of_blocks(node, each, x, axis, block) for each in (scale, zero))
    else:
        scale, zero = (_along(node, each, x, axis) for each in (scale, zero))
    whole = x.to(torch.int32)
    return (whole if zero is None else whole - zero.to(torch.int32)).to(scale.dtype) * scale


def _of_blocks(node: Node, value, x, axis: int, block: int):
    if value is None:
        return None
    axis = node.axis(axis, x.ndim)
    wanted = [-(-e // block) if at == axis else e for at, e in enumerate(x.shape)]
    if list(value.shape) != wanted:
        raise node.refuse(f"has scales or zero points of {list(value.shape)}", f"{wanted}")
    return value.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


@operator("DynamicQuantizeLinear")
def _quantize_dynamically(node, x):
    zero = torch.zeros((), dtype=x.dtype)
    low, high = torch.minimum(x.amin(), zero), torch.maximum(x.amax(), zero)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    point = torch.round((0 - low / scale).clamp(0, 255))
    found = torch.round(x / scale) + point
    return found.clamp(0, 255).to(torch.uint8), scale, point.to(torch.uint8)


# --- contractions ---


@dataclass(frozen=True)
class _Contraction:
    """x, weight and result at these places of a node's inputs, each with scale and zero point."""

    x: int = 0
    weight: int = 3
    result: int = 6
    bias: int = 8


def _input_bytes(node: Node, x) -> torch.dtype:
    if x.dtype not in _BYTES:
        raise node.refuse(f"takes integers of {x.dtype}", "int8 or uint8")
    return x.dtype


class _Weight:
    """A constant weight less its zero point, result channels first. Where that does not fit 8 bits,
    a number for each channel is taken off, and that times the sum of x is added again.
    """

    def __init__(self, node: Node, make):
        self._node, self._make = node, make

    def whole(self) -> torch.Tensor:
        """In 32 bits."""
        return self._make()

    def is_exact(self) -> bool:
        """Whether sums of products fit 32 bits."""
        return self.whole()[0].numel() * 255 * 255 < _LIMIT

    def beyond(self) -> torch.Tensor:
        weight = self.whole().flatten(1)
        least, most = weight.amin(1), weight.amax(1)
        return (most - 127).clamp(min=0) - (-128 - least).clamp(min=0)

    def bytes(self) -> torch.Tensor:
        weight = self.whole()
        return (weight - self.beyond().reshape(-1, *[1] * (weight.ndim - 1))).to(torch.int8)

    def sums(self, x, places: tuple, groups: int, border: int):
        node = self._node
        weight = node.derive("weight", self.bytes)
        sums = _ours.integer_convolution(x, weight, *places, groups, border)
        if not node.once("moved", lambda: bool(self.beyond().any())):
            return sums
        ones = node.derive("ones", lambda: torch.ones([groups, *weight.shape[1:]]).to(torch.int8))
        whole = _ours.integer_convolution(x, ones, *places, groups, border)
        by = node.derive("beyond", self.beyond).reshape(-1, *[1] * (sums.ndim - 2))
        return sums + whole.repeat_interleave(len(weight) // groups, 1) * by


class _Integers:
    """The constants of a contraction. by_channel: makes the weight have result channels first."""

    def __init__(self, node: Node, x, places: _Contraction, by_channel):
        self._node, self._places, self._by_channel = node, places, by_channel
        self.x = format_of(node, places.x + 1, places.x + 2, _input_bytes(node, x))
        kind = _given(node, places.result + 1)
        self.made = format_of(node, places.result, places.result + 1, kind)
        self.scale = _scale(node, places.weight + 1)
        self._own = _Weight(node, self.weight)
        self.is_exact = self._own.is_exact

    def sums(self, x, places: tuple, groups: int):
        return self._own.sums(self.centered(x), places, groups, self.border)

    @property
    def border(self) -> int:
        """What stands for 0 in x, centered."""
        return self.x.zero - (integer_operators.CENTER if self.x.unsigned else 0)

    def weight(self) -> torch.Tensor:
        """Less the zero point, in 32 bits."""
        node, at = self._node, self._places.weight
        whole = self._by_channel(node.known(at, "weight").to(torch.int32))
        zero = torch.tensor(_zeros(node, at + 2), dtype=torch.int32)
        for count, name in ((self.scale.size, "scales"), (zero.numel(), "zero points")):
            if count not in (1, len(whole)):
                raise node.refuse(f"has {count} {name} for {len(whole)} channels", "one each")
        return whole - zero.reshape(-1, *[1] * (whole.ndim - 1))

    def bias(self) -> torch.Tensor:
        """What is added to sums of products with x as it is."""
        node, weight = self._node, self.weight()
        own = torch.zeros(len(weight), dtype=torch.int32)
        if self._places.bias in node.constants:
            own = node.known(self._places.bias, "bias").reshape(-1).to(torch.int32)
        if own.numel() != len(weight):
            raise node.refuse(f"has {own.numel()} biases for {len(weight)} channels", "one each")
        return own - self.border * weight.flatten(1).sum(1, dtype=torch.int32)

    def multiplier(self) -> torch.Tensor:
        by = (self.x.scale * self.scale) / self.made.scale
        return torch.from_numpy(by).expand(len(self.weight()))

    def requantized(self, sums, bounds):
        node = self._node
        bias = node.derive("bias", self.bias)
        by = node.derive("multiplier", self.multiplier)
        limits = self.made.bounded(bounds)
        return _ours.requantize_channels(sums, bias, by, *limits, self.made.zero)

    def centered(self, x):
        return _ours.center(x) if self.x.unsigned else x


def _real_weight(node: Node, integers: _Integers, back) -> torch.Tensor:
    """The weight in f32, where integers of 8 bits do not hold it."""

    def make():
        weight = integers.weight().float()
        return back(weight * torch.from_numpy(integers.scale).reshape(-1, *[1] * (weight.ndim - 1)))

    return node.derive("real_weight", make)


def _real_bias(node: Node, integers: _Integers) -> torch.Tensor | None:
    if 8 not in node.constants:
        return None

    def make():
        sums = torch.from_numpy(integers.x.scale * integers.scale)
        return node.constants[8].reshape(-1).float() * sums

    return node.derive("real_bias", make)


@operator("QLinearConv", "integer:Conv")
def _convolution(node, x, *rest):
    dims = onnx_windows.check_images(node, x)
    bounds = node.reals("bounds") if node.domain else None
    integers = node.once("integers", lambda: _Integers(node, x, _Contraction(), lambda w: w))
    weight = node.known(3, "weight")
    groups = onnx_windows.check_groups(node, x, weight)
    window = onnx_windows.window_of(node, list(x.shape[2:]), list(weight.shape[2:]))
    if not node.once("exact", integers.is_exact):
        real = onnx_windows.padded(integers.x.real(x), window.low, window.high)
        convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
        args = _real_weight(node, integers, lambda w: w), _real_bias(node, integers)
        found = convolve(real, *args, window.stride, 0, window.dilation, groups)
        return integers.made.quantized(found.clamp(*bounds) if bounds else found)
    places = window.stride, window.low, window.high, window.dilation
    return integers.requantized(integers.sums(x, places, groups), bounds)


@operator("QLinearMatMul", "integer:MatMul", "integer:Gemm")
def _product(node, x, *rest):
    turned = node.integer("transB", 0) if node.domain else 0
    bounds = node.reals("bounds") if node.domain else None
    by_channel = (lambda w: w) if turned else (lambda w: w.t().contiguous())
    if 3 not in node.constants or node.constants[3].ndim != 2 or x.ndim < 2:
        return _product_of_two(node, x, rest[2], bounds)
    integers = node.once("integers", lambda: _Integers(node, x, _Contraction(), by_channel))
    if not node.once("exact", integers.is_exact):
        args = _real_weight(node, integers, lambda w: w), _real_bias(node, integers)
        found = F.linear(integers.x.real(x), *args)
        return integers.made.quantized(found.clamp(*bounds) if bounds else found)
    sums = integers.sums(x.reshape(-1, x.shape[-1]), ([], [], [], []), 1)
    return integers.requantized(sums, bounds).reshape([*x.shape[:-1], sums.shape[1]])


def _product_of_two(node: Node, x, y, bounds):
    """Of matrices that are both computed: sums in f32, which are exact up to 2^24."""
    formats = [format_of(node, at + 1, at + 2, each.dtype) for at, each in ((0, x), (3, y))]
    made = format_of(node, 6, 7, _given(node, 7))
    if x.shape[-1] * 255 * 255 >= 2**24 or node.op == "Gemm":
        found = torch.matmul(*(each.real(value) for each, value in zip(formats, (x, y))))
        return made.quantized(found.clamp(*bounds) if bounds else found)
    whole = [value.float() - each.zero for each, value in zip(formats, (x, y))]
    sums = torch.matmul(*whole)
    by = float((formats[0].scale * formats[1].scale) / made.scale)
    found = torch.round(sums * by) + made.zero
    return found.clamp(*made.bounded(bounds)[:2]).to(made.dtype)


@operator("com.microsoft:QGemm")
def _general_product(
    node, x, x_scale, x_zero, y, y_scale, y_zero, bias=None, scale=None, zero=None
):
    if node.integer("transA", 0) or node.real("alpha", 1.0) != 1.0 or scale is None:
        raise node.refuse("has transA, alpha or a result in f32", "none of them")
    turned = node.integer("transB", 0)
    places = _Contraction(0, 3, 7, 6)
    by_channel = (lambda w: w) if turned else (lambda w: w.t().contiguous())
    integers = node.once("integers", lambda: _Integers(node, x, places, by_channel))
    if not node.once("exact", integers.is_exact):
        raise node.refuse("adds up more products than 32 bits hold", "2^14 of them")
    return integers.requantized(integers.sums(x, ([], [], [], []), 1), None)


@operator("ConvInteger")
def _integer_convolution(node, x, weight, x_zero=None, w_zero=None):
    """Sums of products with x as it is, and the zero point times the sum of weights over x."""
    onnx_windows.check_images(node, x)
    groups = onnx_windows.check_groups(node, x, weight)
    window = onnx_windows.window_of(node, list(x.shape[2:]), list(weight.shape[2:]))
    places = window.stride, window.low, window.high, window.dilation
    own = _Weight(node, lambda: _whole_weight(node, w_zero))
    if not node.once("exact", own.is_exact):
        raise node.refuse("adds up more products than 32 bits hold", "2^14 of them")
    unsigned, shape = _input_bytes(node, x) == torch.uint8, list(x.shape[1:])

    def over_ones():
        ones = torch.ones([1, *shape], dtype=torch.int8)
        return _ours.integer_convolution(ones, own.whole(), *places, groups, 0)

    point = 0 if x_zero is None else x_zero.to(torch.int32)
    center = integer_operators.CENTER if unsigned else 0
    sums = own.sums(_ours.center(x) if unsigned else x, places, groups, 0)
    return sums + node.derive("over_ones", over_ones) * (center - point)


def _whole_weight(node: Node, zero) -> torch.Tensor:
    """A constant weight less its zero point, in 32 bits."""
    moved = node.known(1, "weight").to(torch.int32)
    if zero is None:
        return moved
    lost = node.known(3, "zero point of weights").to(torch.int32)
    return moved - lost.reshape(-1, *[1] * (moved.ndim - 1))


@operator("MatMulInteger")
def _integer_product(node, x, y, x_zero=None, y_zero=None):
    x, y = x.to(torch.int32), y.to(torch.int32)
    if x_zero is not None:
        x = x - x_zero.to(torch.int32).reshape([-1, 1] if x_zero.numel() > 1 else [])
    if y_zero is not None:
        y = y - y_zero.to(torch.int32)
    return torch.matmul(x, y)


# --- of two values, and of windows ---


@operator("com.microsoft:QLinearAdd", "integer:Add")
def _sum(node, x, x_scale, x_zero, y, y_scale, y_zero, scale, zero=None):
    bounds = node.reals("bounds") if node.domain == "integer" else None
    x_format = format_of(node, 1, 2, x.dtype)
    y_format, made = format_of(node, 4, 5, y.dtype), format_of(node, 6, 7, _given(node, 7))
    x, y = torch.broadcast_tensors(x, y)
    ratios = [each.scale / made.scale for each in (x_format, y_format)]
    offset = _offset(ratios, (x_format.zero, y_format.zero), made.zero)
    limits, numbers = made.bounded(bounds), [*map(float, ratios)]
    if integer_operators.fits_fixed_point(*numbers, offset):
        return _ours.integer_add(y, x, *numbers[::-1], *limits, offset)
    found = x_format.real(x) + y_format.real(y)
    return made.quantized(found.clamp(*bounds) if bounds else found)


def _offset(ratios: list, zeros: tuple[int, int], zero: int) -> float:
    """What is added to the sum of scaled integers, rounded as onnxruntime rounds it."""
    inner = ratios[1] * numpy.float32(zeros[1])
    both = numpy.float32(float(ratios[0]) * zeros[0] + float(inner))
    return float(numpy.float32(zero) - both)


@operator("com.microsoft:QLinearMul", "integer:Mul")
def _product_of_values(node, x, x_scale, x_zero, y, y_scale, y_zero, scale, zero=None):
    bounds = node.reals("bounds") if node.domain == "integer" else None
    x_format = format_of(node, 1, 2, x.dtype)
    y_format, made = format_of(node, 4, 5, y.dtype), format_of(node, 6, 7, _given(node, 7))
    by = float((x_format.scale * y_format.scale) / made.scale)
    products = _ours.integer_product(x, y, x_format.zero, y_format.zero)
    return _ours.requantize(products, by, *made.bounded(bounds), made.zero)


@operator("com.microsoft:QLinearGlobalAveragePool", "integer:GlobalAveragePool")
def _average(node, x, x_scale, x_zero, scale, zero=None):
    if node.domain != "integer" and node.choice("channels_last", (0, 1), 0):
        raise node.refuse("has channels_last=1", "channels_last=0")
    bounds = node.reals("bounds") if node.domain == "integer" else None
    own, made = format_of(node, 1, 2, x.dtype), format_of(node, 3, 4, _given(node, 4))
    extents = list(x.shape[2:])
    count, zeros = math.prod(extents), [0] * len(extents)
    sums = _ours.integer_window_sums(x, extents, extents, zeros, zeros)
    bias = node.derive("bias", lambda: torch.full([x.shape[1]], -count * own.zero).int())
    by = node.derive(
        "multiplier",
        lambda: torch.full([x.shape[1]], float(own.scale / (made.scale * numpy.float32(count)))),
    )
    return _ours.requantize_channels(sums, bias, by, *made.bounded(bounds), made.zero)


def _through_real(name: str):
    """An operator on integers that is computed in f32."""

    def run(node, x, x_scale, x_zero, scale, zero=None):
        own, made = format_of(node, 1, 2, x.dtype), format_of(node, 3, 4, _given(node, 4))
        return made.quantized(OPERATORS[name](node, own.real(x)))

    return run


for _name in ("Sigmoid", "LeakyRelu", "AveragePool"):
    operator(f"com.microsoft:QLinear{_name}")(_through_real(_name))


@operator("com.microsoft:QLinearSoftmax")
def _softmax(node, x, x_scale, x_zero, scale, zero=None):
    own, made = format_of(node, 1, 2, x.dtype), format_of(node, 3, 4, _given(node, 4))
    opset, axis = node.integer("opset", 13), node.axis(node.integer("axis", -1), x.ndim)
    if opset < 13 and axis != x.ndim - 1:
        raise node.refuse(f"has axis={axis} of opset {opset}", "the last axis, or opset 13")
    # onnxruntime multiplies by the reciprocal of the scale, as a whole number
    by = math.floor(numpy.float32(1) / made.scale)
    found = torch.round(F.softmax(own.real(x), axis) * by) + made.zero
    return found.clamp(*made.limits[:2]).to(made.dtype)


@operator("com.microsoft:QLinearConcat")
def _concat(node, scale, zero, *parts):
    axis, made = node.integer("axis"), format_of(node, 0, 1, zero.dtype)
    found = []
    for at in range(0, len(parts), 3):
        own = format_of(node, at + 3, at + 4, parts[at].dtype)
        same = own.dtype == made.dtype and own.zero == made.zero and own.scale == made.scale
        found.append(parts[at] if same else made.quantized(own.real(parts[at])))
    return torch.cat(found, node.axis(axis, parts[0].ndim))
