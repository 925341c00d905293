"""Modules that PyTorch's quantizers wrote (`convert_pt2e`): operators on real numbers between
integers, as `quantized_decomposed` has them, become the operators of `integer_operators`.

    quantize(relu(conv(dequantize(x), dequantize(w), bias)))
      ->  sums = integer_convolution(x, w);  requantize_channels(sums, bias, multiplier, zero)
    conv(dequantize(x), dequantize(w), bias)  ->  dequantize_channels(sums, …) + bias
    quantize(move(dequantize(x)))             ->  move(x), if formats are equal

A bias is rounded to 32 bits, in steps of a product, in front of another rounding to 8 bits only.
What has no such form is computed in f32, as the module says.
"""

import math
from dataclasses import dataclass

import torch

from ..lowering import graph, integer_operators
from . import integer_forms
from .integer_forms import aten, attribute, bounds, shape_of

_ours = torch.ops.streamtensor
_LIMIT = 2**30  # of a sum of products, and of a bias
_NAMESPACE = "quantized_decomposed"


@dataclass(frozen=True)
class _Format:
    """How bytes stand for numbers: (q - zero) * scale, q within limits."""

    scale: float
    zero: int
    low: int
    high: int
    dtype: torch.dtype

    @property
    def unsigned(self) -> bool:
        return self.dtype == torch.uint8


@dataclass(frozen=True)
class _Weight:
    """Integers of 8 bits, result channels first, with a scale for each channel."""

    q: torch.Tensor
    scale: torch.Tensor


def applied(module, inputs: tuple):
    """The module with integer operators; itself if it has no such integers."""
    if not any(map(_is_decomposed, _nodes(module))):
        return module
    made = graph.exported_graph(module, inputs)
    _Rewriter(made).run()
    return made


def _nodes(module):
    for part in module.modules() if isinstance(module, torch.nn.Module) else ():
        if isinstance(part, torch.fx.GraphModule):
            yield from part.graph.nodes


def _is_decomposed(node, name: str = "") -> bool:
    target = getattr(node.target, "overloadpacket", None)
    return str(target).startswith(f"{_NAMESPACE}.{name}")


class _Rewriter:
    def __init__(self, module: torch.fx.GraphModule):
        self._module, self._graph, self._made = module, module.graph, 0

    def run(self) -> None:
        for node in list(self._graph.nodes):
            if node.op != "call_function":
                continue
            if node.target is aten.linear.default or integer_forms.is_convolution(node):
                self._contraction(node)
            elif _is_decomposed(node, "quantize_per_tensor"):
                self._moved(node)
        self._graph.eliminate_dead_code()
        self._module.recompile()

    # --- what nodes say ---

    def _format(self, node) -> _Format | None:
        """Of a quantize or a dequantize of bytes with one known scale."""
        if len(node.args) != 6 or node.kwargs:
            return None
        scale, zero, low, high, dtype = node.args[1:]
        for value in (scale, zero):
            if isinstance(value, torch.fx.Node) and attribute(self._module, value) is None:
                return None
        scale, zero = (
            attribute(self._module, each).item() if isinstance(each, torch.fx.Node) else each
            for each in (scale, zero)
        )
        if dtype not in (torch.int8, torch.uint8):
            return None
        return _Format(float(torch.tensor(scale, dtype=torch.float32)), zero, low, high, dtype)

    def _bytes(self, node) -> tuple | None:
        """The integers that a real value is made of, and their format."""
        if not isinstance(node, torch.fx.Node) or not _is_decomposed(node, "dequantize_per_tensor"):
            return None
        found = self._format(node)
        return (node.args[0], found) if found else None

    def _weight(self, node) -> _Weight | None:
        """Signed integers around 0."""
        if not isinstance(node, torch.fx.Node) or not _is_decomposed(node, "dequantize_per_"):
            return None
        q = attribute(self._module, node.args[0])
        if q is None or q.dtype != torch.int8 or node.kwargs:
            return None
        if _is_decomposed(node, "dequantize_per_tensor"):
            found = self._format(node)
            one = found and not found.zero
            return _Weight(q, torch.full([len(q)], found.scale)) if one else None
        scale, zero = (attribute(self._module, each) for each in node.args[1:3])
        plain = zero is None and node.args[2] is None or zero is not None and not zero.any()
        if scale is None or not plain or node.args[3] != 0:
            return None
        return _Weight(q, scale.float())

    def _only_reader(self, node):
        return next(iter(node.users)) if len(node.users) == 1 else None

    # --- what becomes of them ---

    def _attach(self, value: torch.Tensor):
        name = f"integers_{self._made}"
        self._made += 1
        self._module.register_buffer(name, value)
        return self._graph.get_attr(name)

    def _call(self, op, *args):
        return self._graph.call_function(op.default, args)

    def _contraction(self, node) -> None:
        steps, source = _moves(node.args[0])
        x, weight = self._bytes(source), self._weight(node.args[1])
        of_bias = node.args[2] if len(node.args) > 2 else None
        bias = attribute(self._module, of_bias)
        if not x or not weight or (bias is None and of_bias is not None) or node.kwargs:
            return
        rank, products = weight.q.ndim, weight.q[0].numel() * 255 * 128
        window = integer_forms.window_of(node, weight.q.shape[2:])
        if products > _LIMIT or (rank > 2 and len(shape_of(node)) != rank):
            return
        x, form = x
        scale = torch.tensor(form.scale) * weight.scale
        with self._graph.inserting_before(node):
            for step in reversed(steps):
                x = self._step(step, x)
            if rank == 2 and len(shape_of(node)) != 2:
                x = self._reshape(x, [-1, weight.q.shape[1]])
            center = integer_operators.CENTER if form.unsigned else 0
            groups = node.args[6] if rank > 2 and len(node.args) > 6 else 1
            places = window.stride, window.low, window.high, window.dilation
            sums = self._call(
                _ours.integer_convolution,
                self._call(_ours.center, x) if form.unsigned else x,
                self._attach(weight.q),
                *places,
                groups,
                form.zero - center,
            )
            lost = (center - form.zero) * weight.q.flatten(1).sum(1, dtype=torch.int32)
        if not self._requantize(node, sums, lost, scale, bias):
            self._real(node, sums, lost, scale, bias)

    def _reshape(self, node, shape: list[int]):
        return self._graph.call_function(aten.reshape.default, (node, shape))

    def _real(self, node, sums, lost, scale, bias) -> None:
        """Sums as real numbers."""
        with self._graph.inserting_before(node):
            made = self._call(
                _ours.dequantize_channels, sums, self._attach(lost), self._attach(scale)
            )
            if bias is not None:
                ones = [1] * (len(shape_of(node)) - 2) if node.target != aten.linear.default else []
                args = (made, self._attach(bias.reshape(-1, *ones)))
                made = self._graph.call_function(aten.add.Tensor, args)
            if node.target is aten.linear.default and len(shape_of(node)) != 2:
                made = self._reshape(made, shape_of(node))
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)

    def _requantize(self, node, sums, lost, scale, bias) -> bool:
        """Sums as the bytes of what is behind a ReLU and moves; False: no bytes are there."""
        steps, last = [], node
        limits = [-math.inf, math.inf]
        while (reader := self._only_reader(last)) is not None:
            found = bounds(reader)
            if found:
                limits = [min(max(each, found[0]), found[1]) for each in limits]
            elif integer_forms.largest(reader) or integer_forms.keeps_values(reader):
                steps.append(reader)
            else:
                break
            last = reader
        form = self._format(reader) if reader and _is_decomposed(reader, "quantize_per_t") else None
        whole = torch.zeros(len(scale)) if bias is None else torch.round(bias / scale)
        if not form or not bool((whole.abs() < _LIMIT).all()):
            return False
        low, high = (_bounded(form, each) for each in limits)
        with self._graph.inserting_before(reader):
            made = self._call(
                _ours.requantize_channels,
                sums,
                self._attach(whole.to(torch.int32) + lost),
                self._attach(scale / torch.tensor(form.scale)),
                low,
                high,
                form.unsigned,
                form.zero,
            )
            if node.target is aten.linear.default and len(shape_of(node)) != 2:
                made = self._reshape(made, shape_of(node))
            for step in steps:
                made = self._step(step, made)
        reader.replace_all_uses_with(made)
        return True

    def _step(self, node, made):
        """A maximum or a move of integers."""
        if found := integer_forms.largest(node):
            kernel, window = found
            places = window.stride, window.low, window.high, window.dilation
            return self._call(_ours.integer_max_pool, made, kernel, *places)
        return self._graph.call_function(node.target, (made, *node.args[1:]), dict(node.kwargs))

    def _moved(self, node) -> None:
        """A quantize of moved bytes of the same format."""
        steps, source = _moves(node.args[0])
        found = self._bytes(source)
        if not steps or not found or found[1] != self._format(node):
            return
        made = found[0]
        with self._graph.inserting_before(node):
            for step in reversed(steps):
                made = self._step(step, made)
        node.replace_all_uses_with(made)


def _moves(node) -> tuple[list, torch.fx.Node]:
    """The moves and maxima that end with this node, the last one first, and what they take."""
    steps = []
    while integer_forms.largest(node) or integer_forms.keeps_values(node):
        steps.append(node)
        node = node.args[0]
    return steps, node


def _bounded(form: _Format, number: float) -> int:
    """The integer of a bound."""
    if math.isinf(number):
        return form.low if number < 0 else form.high
    whole = int(torch.round(torch.tensor(number) * (1 / form.scale))) + form.zero
    return min(max(whole, form.low), form.high)
