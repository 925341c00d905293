"""Rewrites a graph of operators on real numbers to one on integers, where values have scales."""

import itertools
import math

import torch

from ..lowering import integer_operators, layer_names, spatial_decompositions
from . import integer_forms
from .integer_forms import aten, attribute, bounds, shape_of
from .integer_values import IntegerValues

_ours = torch.ops.streamtensor
_BIAS_LIMIT = 2**30


class Rewriter:
    """scales: those of the origins of integers. bits: of the weights, and of the factors of sums,
    None for f32.
    """

    def __init__(self, values: IntegerValues, scales: dict, bits: tuple[int, int | None]):
        self._values, self._scales = values, scales
        self._weight_bits, self._factor_bits = bits
        self._unsigned = {node: values.is_unsigned(node) for node in scales}
        self._graph, self._attributes = torch.fx.Graph(), {}
        self._reals, self._integers = {}, {}

    def run(self) -> torch.fx.GraphModule:
        self._graph.set_codegen(self._values.module.graph._codegen)
        for node in self._values.nodes:
            last = next(iter(reversed(self._graph.nodes)), None)
            self._rewrite(node)
            made = itertools.takewhile(lambda each: each is not last, reversed(self._graph.nodes))
            if path := layer_names.of(node):
                layer_names.assign(made, path)
        self._graph.eliminate_dead_code()
        used = {node.target for node in self._graph.nodes if node.op == "get_attr"}
        kept = {name: value for name, value in self._attributes.items() if name in used}
        return torch.fx.GraphModule(kept, self._graph).eval().requires_grad_(False)

    def _rewrite(self, node) -> None:
        value = self._values.value_of(node)
        if node in self._values.layers:
            self._rewrite_layer(node, value)
        elif value in self._values.wanted and self._values.has_integer_form(node):
            self._integers[value] = self._rewritten(node, value)
        elif self._values.averages_integers(node):
            self._reals[node] = self._average(node, None)
        elif node.op == "get_attr":
            return
        elif not (node in self._integers and self._values.is_bound(node)):
            self._reals[node] = self._graph.node_copy(node, self._real)

    def _call(self, op, *args):
        return self._graph.call_function(op.default, args)

    def _reshape(self, made, shape: list[int]):
        return self._graph.call_function(aten.reshape.default, (made, shape))

    def _attach(self, name: str, value: torch.Tensor):
        """A node of the value as an attribute of that name, or one like it."""
        place, at = name, 0
        while place in self._attributes and not _are_equal(self._attributes[place], value):
            at += 1
            place = f"{name}_{at}"
        self._attributes[place] = value
        return self._graph.get_attr(place)

    # --- values ---

    def _format(self, node) -> tuple[float, bool]:
        """The scale of a value's integers, and whether they are unsigned."""
        origin = self._values.origin(node)
        return self._scales[origin], self._unsigned[origin]

    def _limits(self, node) -> tuple[int, int, bool]:
        """The bounds of a value's integers, and whether they are unsigned."""
        scale, unsigned = self._format(node)
        low, high = (0, 255) if unsigned else (-128, 127)
        for at, each in enumerate(bounds(node) or ()):
            if not math.isinf(each):
                whole = min(max(round(each / scale), low), high)
                low, high = (whole, high) if at == 0 else (low, whole)
        return low, high, unsigned

    def _real(self, node):
        """The value in f32, or what else it is."""
        if node not in self._reals:
            if node.op == "get_attr":
                self._reals[node] = self._attach(node.target, attribute(self._values.module, node))
            else:
                scale = self._format(node)[0]
                self._reals[node] = self._call(_ours.dequantize, self._integers[node], scale)
        return self._reals[node]

    def _integer(self, node):
        """The value in its integers."""
        if node not in self._integers:
            scale = self._format(node)[0]
            made = self._call(_ours.quantize, self._real(node), scale, *self._limits(node))
            self._integers[node] = made
        return self._integers[node]

    def _rescaled(self, operand, value):
        """The integers of an operand in the scale of the value."""
        if self._format(operand) == self._format(value):
            return self._integer(operand)
        real = self._call(_ours.dequantize, self._integer(operand), self._format(operand)[0])
        return self._call(_ours.quantize, real, self._format(value)[0], *self._limits(value))

    # --- contractions ---

    def _rewrite_layer(self, node, value) -> None:
        layer = self._values.layers[node]
        weight, bias, scales = _round(layer, self._format(layer.x)[0], self._weight_bits)
        made, bias = self._sums(node, layer, weight, bias)
        sums = made, self._attach(f"{layer.name}.bias", bias)
        if value in self._values.wanted:
            made = self._requantized_channels(sums, scales, layer.name, value)
            self._integers[value] = self._in_shape(made, node)
        else:
            by = self._attach(f"{layer.name}.scale", scales)
            made = self._call(_ours.dequantize_channels, *sums, by)
            self._reals[node] = self._in_shape(made, node)

    def _sums(self, node, layer, weight, bias):
        """The sums, and the bias that is left to add."""
        x, window = self._integer(layer.x), layer.window
        if not window.stride:
            x = x if len(shape_of(layer.x)) == 2 else self._reshape(x, [-1, weight.shape[1]])
        elif len(shape_of(layer.x)) < weight.ndim:
            x = self._graph.call_function(aten.unsqueeze.default, (x, 0))
        if layer.output_padding is not None:
            return self._transposed_sums(node, x, layer, weight), bias
        border = 0
        if self._format(layer.x)[1]:
            x, border = self._call(_ours.center, x), -integer_operators.CENTER
            bias = bias - border * weight.flatten(1).sum(1, dtype=torch.int32)
        weight = self._attach(f"{layer.name}.weight", weight)
        places = window.stride, window.low, window.high, window.dilation
        made = self._call(_ours.integer_convolution, x, weight, *places, layer.groups, border)
        return made, bias

    def _transposed_sums(self, node, x, layer, weight):
        """As one convolution for each remainder of a place by the stride."""
        window, channels = layer.window, len(weight)
        parts = spatial_decompositions.transposed_parts(
            layer.with_weight(weight), window.stride, window.dilation, layer.groups
        )
        ones = [1] * len(parts.steps)
        places = ones, parts.border, parts.border, parts.steps
        weight = self._attach(f"{layer.name}.weight", parts.weight.contiguous())
        sums = self._call(_ours.integer_convolution, x, weight, *places, layer.groups, 0)
        extents = shape_of(node)[-len(ones) :]
        args = (sums, channels, window.stride, window.low, extents)
        return self._graph.call_function(spatial_decompositions.interleaved, args)

    def _in_shape(self, made, node):
        """Rows of a linear layer, or a single image, in the dims that they had."""
        rank = max(len(self._values.layers[node].window.stride) + 2, 2)
        return made if len(shape_of(node)) == rank else self._reshape(made, shape_of(node))

    # --- what lies between ---

    def _rewritten(self, node, value):
        if integer_forms.is_sum(node):
            return self._sum(node, value)
        if integer_forms.is_product(node):
            return self._product(node, value)
        if integer_forms.average(node):
            return self._average(node, value)
        if found := integer_forms.largest(node):
            kernel, window = found
            places = window.stride, window.low, window.high, window.dilation
            return self._call(_ours.integer_max_pool, self._integer(node.args[0]), kernel, *places)
        if integer_forms.is_concatenation(node):
            parts = [self._rescaled(each, value) for each in node.args[0]]
            return self._graph.call_function(node.target, (parts, *node.args[1:]))
        if factors := integer_forms.repetition(node):
            return self._repeated(node, factors)
        args = (self._integer(node.args[0]), *node.args[1:])
        return self._graph.call_function(node.target, args, dict(node.kwargs))

    def _scale_of(self, node) -> torch.Tensor:
        return torch.tensor(self._format(node)[0])

    def _sum(self, node, value):
        x, y = node.args
        scale = self._scale_of(value)
        ratios = [float(self._scale_of(each) / scale) for each in (x, y)]
        if self._factor_bits:
            factors = torch.tensor(ratios)
            factors, shift = integer_operators.shifted_factors(factors, self._factor_bits)
            operands = self._integer(x), self._integer(y), *factors.tolist(), shift
            return self._call(_ours.shift_sum, *operands, *self._limits(value))
        if integer_operators.fits_fixed_point(*ratios):
            operands = self._integer(x), self._integer(y)
            return self._call(_ours.integer_add, *operands, *ratios, *self._limits(value))
        real = self._graph.call_function(node.target, (self._real(x), self._real(y)))
        return self._call(_ours.quantize, real, float(scale), *self._limits(value))

    def _product(self, node, value):
        made = self._call(_ours.integer_product, *map(self._integer, node.args))
        scales = self._scale_of(node.args[0]) * self._scale_of(node.args[1])
        return self._requantized(made, scales / self._scale_of(value), value)

    def _requantized(self, sums, multiplier: torch.Tensor, value):
        """The value's integers of sums in 32 bits."""
        limits = self._limits(value)
        if not self._factor_bits:
            return self._call(_ours.requantize, sums, float(multiplier), *limits)
        factor, shift = integer_operators.shifted_factors(multiplier, self._factor_bits)
        return self._call(_ours.shift, sums, int(factor), shift, *limits)

    def _requantized_channels(self, sums: tuple, scales: torch.Tensor, name: str, value):
        """sums: and biases."""
        limits, by = self._limits(value), scales / self._scale_of(value)
        if not self._factor_bits:
            by = self._attach(f"{name}.multiplier", by)
            return self._call(_ours.requantize_channels, *sums, by, *limits)
        factors, shift = integer_operators.shifted_factors(by, self._factor_bits)
        factors = self._attach(f"{name}.factor", factors)
        return self._call(_ours.shift_channels, *sums, factors, shift, *limits)

    def _average(self, node, value):
        """The value's integers; None: f32."""
        x, mean = node.args[0], integer_forms.average(node)
        window = mean.window
        places = mean.kernel, window.stride, window.low, window.high
        sums = self._call(_ours.integer_window_sums, self._integer(x), *places)
        if value is None:
            made = self._call(_ours.dequantize, sums, float(self._scale_of(x) / mean.divisor))
        else:
            by = self._scale_of(x) / (self._scale_of(value) * mean.divisor)
            made = self._requantized(sums, by, value)
        same = len(shape_of(node)) == len(shape_of(x))
        return made if same else self._reshape(made, shape_of(node))

    def _repeated(self, node, factors: list[int]):
        """Each element several times along each of the last dims."""
        made, shape = self._integer(node.args[0]), shape_of(node.args[0])
        ones = [each for extent in shape[2:] for each in (extent, 1)]
        every = [each for extent, factor in zip(shape[2:], factors) for each in (extent, factor)]
        made = self._reshape(made, [*shape[:2], *ones])
        made = self._graph.call_function(aten.expand.default, (made, [*shape[:2], *every]))
        return self._reshape(made, shape_of(node))


def _are_equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left is right or (left.dtype == right.dtype and torch.equal(left, right))


def _round(layer, x_scale: float, bits: int):
    """Weight, result channels first, bias, and the scale of each channel's sums."""
    top, whole = 2 ** (bits - 1) - 1, layer.by_channel()
    weight, x_scale = whole.flatten(1), torch.tensor(x_scale)
    bias = torch.zeros(len(weight)) if layer.bias is None else layer.bias
    least = bias.abs() / (x_scale * _BIAS_LIMIT)  # so large that the bias fits
    scale = torch.maximum(weight.abs().amax(1) / top, least)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    q = torch.round(weight / scale.unsqueeze(1)).clamp(-top, top).to(torch.int8)
    sums = x_scale * scale
    return q.reshape(whole.shape), torch.round(bias / sums).to(torch.int32), sums
