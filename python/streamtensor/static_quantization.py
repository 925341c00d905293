"""Static post-training quantization of networks to integers of 8 bits: `quant="int8"`.

    y = relu(conv(x))  ->  sums = integer_convolution(x_q, w_q, bias)    (32 bits)
                           y_q = requantize_channels(sums, s_x * s_w / s_y, 0, 255)

Weights are signed with one scale for each output channel, activations have one scale for a tensor,
found on calibration inputs: unsigned where no number is negative, behind a ReLU, else signed.
Batch norms are folded into weights. Convolutions and linear layers, and what lies between them and
has a form in integers, are computed as onnxruntime computes them; every other operator takes and
gives f32. The module's inputs and results stay what they were.

What `quantized` returns is the same arithmetic in PyTorch, and what a design is compiled from.
"""

import copy
import math
import operator
from dataclasses import dataclass

import torch

from . import activation_ranges, calibration_inputs, integer_operators
from .errors import Error

_aten = torch.ops.aten
_ours = torch.ops.streamtensor


@dataclass(frozen=True)
class IntegerScheme:
    """A parsed scheme, "int8" with its settings."""

    range: str = "max"  # how the range of activations is found
    weight: int = 8  # bits of the weights

    @classmethod
    def parse(cls, text: str) -> "IntegerScheme":
        found = {}
        choices = {
            "range": {each: each for each in activation_ranges.METHODS},
            "weight": {"i8": 8, "i4": 4},
        }
        for option in text.split(",")[1:]:
            key, _, value = option.partition("=")
            if value not in choices.get(key, ()):
                accepted = "; ".join(f"{each}={'|'.join(of)}" for each, of in choices.items())
                raise Error(
                    f"--quant '{text}': cannot read '{option}'",
                    f"accepted after int8 are {accepted}",
                )
            found[key] = choices[key][value]
        return cls(**found)


def is_integer_scheme(quant: str | None) -> bool:
    return quant is not None and quant.partition(",")[0] == "int8"


@dataclass(frozen=True)
class _Contraction:
    """A convolution or a linear layer, which has no window."""

    x: torch.fx.Node
    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str  # of the weight
    stride: list[int]
    low: list[int]
    high: list[int]
    dilation: list[int]
    groups: int = 1


_CONVOLUTIONS = {
    op: dims
    for dims, packet in enumerate((_aten.conv1d, _aten.conv2d, _aten.conv3d), 1)
    for op in (packet.default, packet.padding)
}
_BOUNDS = {
    _aten.relu.default: lambda args: (0.0, math.inf),
    _aten.relu6.default: lambda args: (0.0, 6.0),
    _aten.hardtanh.default: lambda args: (*args[1:], *(-1.0, 1.0)[len(args) - 1 :]),
    _aten.clamp.default: lambda args: tuple(
        default if given is None else given
        for given, default in zip((*args[1:], None, None), (-math.inf, math.inf))
    ),
    _aten.clamp_min.default: lambda args: (args[1], math.inf),
}
_NEVER_NEGATIVE = {
    _aten.sigmoid.default,
    _aten.hardsigmoid.default,
    _aten.softmax.int,
    _aten.abs.default,
    _aten.exp.default,
}
_MOVES = {
    _aten.view.default,
    _aten.reshape.default,
    _aten.flatten.using_ints,
    _aten.unflatten.int,
    _aten.permute.default,
    _aten.transpose.int,
    _aten.squeeze.default,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.unsqueeze.default,
    _aten.slice.Tensor,
    _aten.select.int,
    _aten.clone.default,
    _aten.contiguous.default,
    _aten.alias.default,
    _aten.expand.default,
    _aten.pixel_shuffle.default,
    _aten.pixel_unshuffle.default,
    _aten.channel_shuffle.default,
}
_DROPOUTS = {_aten.dropout.default, _aten.feature_dropout.default}
_NORMS = {_aten._native_batch_norm_legit_no_training.default}


def quantized(module, example_inputs, calibration, quant: str = "int8") -> torch.fx.GraphModule:
    """The module in integer arithmetic, as a module of the same inputs and results.

    calibration: batches of inputs, each as `module` takes them, or a file or folder of them.
    """
    scheme = IntegerScheme.parse(quant)
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    exact = _exported(module, inputs)
    batches = calibration_inputs.read(calibration, inputs)
    _fold_norms(exact)
    return _Quantizer(exact, scheme).run(batches)


def _exported(module, inputs) -> torch.fx.GraphModule:
    """The module as a graph of its operators, with nothing written in place."""
    from . import graph

    return graph.exported_graph(module, inputs)


def _shape(node) -> list[int]:
    return list(node.meta["val"].shape)


def _is_real(node) -> bool:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _attribute(module, node):
    """The value of a parameter or a buffer; None for other nodes."""
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    return operator.attrgetter(node.target)(module)


def _fold_norms(module: torch.fx.GraphModule) -> None:
    """Folds batch norms into the contractions in front of them."""
    graph = module.graph
    for node in list(graph.nodes):
        source = node.args[0] if node.target in _NORMS else None
        if source is None or _contraction(module, source) is None or len(source.users) > 1:
            continue
        norm = [_attribute(module, each) for each in node.args[1:5]]
        if any(given is None and each is not None for given, each in zip(norm, node.args[1:5])):
            continue
        layer = _contraction(module, source)
        scale, shift, mean, variance = (None if each is None else each.double() for each in norm)
        factor = torch.rsqrt(variance + node.args[6])
        factor = factor if scale is None else factor * scale
        bias = -mean if layer.bias is None else layer.bias.double() - mean
        bias = bias * factor if shift is None else bias * factor + shift
        weight = layer.weight.double() * factor.reshape(-1, *[1] * (layer.weight.ndim - 1))
        _set_parameters(module, source, layer, weight.float(), bias.float())
        for user in list(node.users):
            user.replace_all_uses_with(source)
            graph.erase_node(user)
        graph.erase_node(node)


def _set_parameters(module, node, layer: _Contraction, weight, bias) -> None:
    """Gives a contraction a weight and a bias of its own."""
    graph, made = module.graph, []
    for part, value in (("weight", weight), ("bias", bias)):
        name = f"{layer.name.rpartition('.')[0]}.folded_{part}".lstrip(".")
        at, place = 0, name
        while place in dict(module.named_buffers()):
            at += 1
            place = f"{name}_{at}"
        torch.fx.graph_module._assign_attr(value, module, place)
        with graph.inserting_before(node):
            made.append(graph.get_attr(place))
        made[-1].meta["val"] = value
    node.args = (node.args[0], *made, *node.args[3:])


def _contraction(module, node) -> _Contraction | None:
    """What the node computes, if it is a contraction with a weight that is known."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return None
    dims = 0 if node.target is _aten.linear.default else _CONVOLUTIONS.get(node.target)
    weight = None if dims is None else _attribute(module, node.args[1])
    rest = (*node.args[2:], *(None,) * 7)
    if weight is None or not _is_real(node) or node.kwargs:
        return None
    bias = None if rest[0] is None else _attribute(module, rest[0])
    if rest[0] is not None and bias is None:
        return None
    window = _window(weight.shape[2:], dims, *rest[1:4])
    return _Contraction(
        node.args[0], weight.detach(), None if bias is None else bias.detach(),
        node.args[1].target, *window, rest[4] or 1,
    )


def _window(kernel, dims: int, stride, padding, dilation):
    """Stride, padding in front and behind, and dilation, one for each dim."""

    def several(value, default: int) -> list[int]:
        value = [default] if value is None else [value] if isinstance(value, int) else list(value)
        return value * (dims // len(value)) if dims else []

    dilation = several(dilation, 1)
    if padding == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, kernel)]
        low = [each // 2 for each in whole]
        return several(stride, 1), low, [a - b for a, b in zip(whole, low)], dilation
    ends = several(None if padding == "valid" else padding, 0)
    return several(stride, 1), ends, ends, dilation


def _is_pointwise(node, op) -> bool:
    """An addition or a multiplication of two tensors of activations."""
    return node.target is op and not node.kwargs and all(map(_is_real, node.args[:2]))


def _mean(node) -> tuple | None:
    """Kernel, stride, padding and divisor of an average over windows of the last dims."""
    if not node.args or not _is_real(node.args[0]):
        return None
    shape = _shape(node.args[0])
    if node.target in (_aten.adaptive_avg_pool1d.default, _aten.adaptive_avg_pool2d.default):
        extents = shape[-len(node.args[1]) :]
        whole = all(each == 1 for each in node.args[1]) and len(shape) == len(extents) + 2
        return (extents, extents, [0] * len(extents), math.prod(extents)) if whole else None
    if node.target is _aten.mean.dim and not node.kwargs and len(shape) in (3, 4):
        dims = sorted(each % len(shape) for each in node.args[1])
        whole = dims == list(range(2, len(shape)))
        return (shape[2:], shape[2:], [0] * len(dims), math.prod(shape[2:])) if whole else None
    if node.target is _aten.avg_pool2d.default and len(shape) == 4:
        kernel, stride, padding, ceil, counts, divisor = (
            *node.args[1:], *([], [0, 0], False, True, None)[len(node.args) - 2 :],
        )
        if ceil or (any(padding) and not counts):
            return None
        return kernel, stride or kernel, padding, divisor or math.prod(kernel)
    return None


def _max_window(node) -> tuple | None:
    """Kernel, stride, padding in front and behind, and dilation of the largest in windows."""
    names = {_aten.max_pool1d.default: 1, _aten.max_pool2d.default: 2, _aten.max_pool3d.default: 3}
    dims = names.get(node.target)
    if dims is None or node.kwargs or len(_shape(node.args[0])) != dims + 2:
        return None
    rest = (*node.args[1:], *(None,) * 5)
    kernel = list(rest[0]) * (dims // len(rest[0]))
    stride, low, _, dilation = _window(kernel, dims, rest[1] or kernel, rest[2], rest[3])
    sizes, extents = _shape(node.args[0])[2:], _shape(node)[2:]
    high = [
        (out - 1) * s + d * (k - 1) + 1 - size - a
        for out, s, d, k, size, a in zip(extents, stride, dilation, kernel, sizes, low)
    ]
    # windows may begin in front of what a border behind would have to take away
    return (kernel, stride, low, high, dilation) if min(high) >= 0 else (
        kernel, stride, low, [max(each, 0) for each in high], dilation,
    )


def _scale(largest: float, top: int) -> float:
    """In f32; 1 for a tensor of zeros."""
    return float(torch.tensor(largest) / top) or 1.0


def _f32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


class _Quantizer:
    """Rewrites a graph of operators on real numbers."""

    def __init__(self, module: torch.fx.GraphModule, scheme: IntegerScheme):
        self.module, self.scheme = module, scheme
        self.nodes = list(module.graph.nodes)
        self.layers = {
            node: layer
            for node in self.nodes
            if (layer := _contraction(module, node)) and _fits(layer)
        }
        self.bounded = self._bounded()
        self.wanted = self._wanted()
        self.sources = self._sources()

    # --- which values are integers ---

    def _has_integer_form(self, node) -> bool:
        if node.op != "call_function" or not _is_real(node):
            return False
        return (
            node in self.layers
            or self._is_sum_or_product(node)
            or _mean(node) is not None
            or _max_window(node) is not None
            or self._is_move(node)
        )

    def _is_sum_or_product(self, node) -> bool:
        if any(_attribute(self.module, each) is not None for each in node.args):
            return False
        if _is_pointwise(node, _aten.add.Tensor):
            return len(node.args) == 2 and _shape(node.args[0]) == _shape(node.args[1])
        return _is_pointwise(node, _aten.mul.Tensor)

    def _is_move(self, node) -> bool:
        if node.target is _aten.cat.default:
            return all(map(_is_real, node.args[0]))
        if node.target in (_aten.constant_pad_nd.default, _aten.pad.default):
            plain = node.target is not _aten.pad.default or node.args[2:3] in ((), ("constant",))
            return plain and not any(node.args[3 if node.target is _aten.pad.default else 2 :])
        return node.target in _MOVES and bool(node.args) and _is_real(node.args[0])

    def _bounded(self) -> dict:
        """Operators whose only reader is a ReLU or the like, with that reader."""
        found = {}
        for node in self.nodes:
            reader = next(iter(node.users), None)
            if (
                len(node.users) == 1
                and reader.target in _BOUNDS
                and (node in self.layers or self._is_sum_or_product(node) or _mean(node))
            ):
                found[node] = reader
        return found

    def _operands(self, node) -> list:
        if node.target is _aten.cat.default:
            return list(node.args[0])
        return node.args[:2] if self._is_sum_or_product(node) else node.args[:1]

    def _wanted(self) -> set:
        """Values that are read as integers."""
        found = set()
        for node in reversed(self.nodes):
            value = self.bounded.get(node, node)
            if node in self.layers or (self._has_integer_form(node) and value in found):
                found.update(self._operands(node))
        return found

    def _takes_scale(self, node) -> bool:
        """Whether the result's scale is that of the operand."""
        return _max_window(node) is not None or (
            self._is_move(node) and node.target is not _aten.cat.default
        )

    def _sources(self) -> dict:
        """Values that are read by a concatenation only and take its scale."""
        found = {}
        for node in reversed(self.nodes):
            if node not in self.wanted or not (
                node.target is _aten.cat.default or (self._takes_scale(node) and node in found)
            ):
                continue
            for operand in self._operands(node):
                if len(operand.users) == 1:
                    found[operand] = found.get(node, node)
        return found

    def _origin(self, node):
        """The value whose range gives the scale of this one."""
        if node in self.sources:
            return self._origin(self.sources[node])
        if self._has_integer_form(node) and self._takes_scale(node):
            return self._origin(node.args[0])
        return node

    def _is_unsigned(self, node) -> bool:
        """Whether no number can be negative."""
        if node.target in _BOUNDS:
            return _BOUNDS[node.target](node.args)[0] >= 0
        if node.op == "call_function" and self._has_integer_form(node):
            return node not in self.layers and all(map(self._is_unsigned, self._operands(node)))
        return node.target in _NEVER_NEGATIVE

    # --- the new graph ---

    def run(self, batches) -> torch.fx.GraphModule:
        origins = {self._origin(node) for node in self.wanted}
        self.unsigned = {node: self._is_unsigned(node) for node in origins}
        tops = {node: 255 if self.unsigned[node] else 127 for node in origins}
        tops = {node: tops[node] for node in self.nodes if node in tops}
        found = activation_ranges.largest(self.module, tops, batches, self.scheme.range)
        self.scales = {node: _scale(found[node], top) for node, top in tops.items()}
        self.graph, self.attributes = torch.fx.Graph(), {}
        self.graph.set_codegen(copy.deepcopy(self.module.graph._codegen))
        self.reals, self.integers, self.sums = {}, {}, {}
        for node in self.nodes:
            self._rewrite(node)
        self.graph.eliminate_dead_code()
        made = torch.fx.GraphModule(self.attributes, self.graph)
        return made.eval().requires_grad_(False)

    def _rewrite(self, node) -> None:
        value = self.bounded.get(node, node)
        if node.op == "output":
            self.graph.node_copy(node, self._real)
        elif node in self.layers:
            self._rewrite_layer(node)
        elif node.target in _BOUNDS and self.bounded.get(node.args[0]) is node and (
            node in self.wanted or node.args[0] in self.sums
        ) and node in self.wanted:
            return
        elif value in self.wanted and self._has_integer_form(node):
            self._rewrite_integers(node, value)
        elif node.op == "get_attr":
            attribute = _attribute(self.module, node)
            self.attributes[node.target] = attribute
            self.reals[node] = self.graph.node_copy(node)
        else:
            self.reals[node] = self.graph.node_copy(node, self._real)

    def _call(self, op, *args):
        return self.graph.call_function(op.default, args)

    def _attach(self, name: str, value: torch.Tensor):
        at, place = 0, name
        while place in self.attributes and not torch.equal(self.attributes[place], value):
            at += 1
            place = f"{name}_{at}"
        self.attributes[place] = value
        return self.graph.get_attr(place)

    def _format(self, node) -> tuple[float, bool]:
        """The scale of a value's integers, and whether they are unsigned."""
        origin = self._origin(node)
        return self.scales[origin], self.unsigned[origin]

    def _limits(self, node) -> tuple[int, int, bool]:
        """The bounds of a value's integers, and whether they are unsigned."""
        scale, unsigned = self._format(node)
        low, high = (0, 255) if unsigned else (-128, 127)
        if node.target in _BOUNDS:
            bounds = [
                each if math.isinf(each) else round(each / scale)
                for each in _BOUNDS[node.target](node.args)
            ]
            low, high = int(max(low, bounds[0])), int(min(high, bounds[1]))
        return low, high, unsigned

    def _real(self, node):
        """The value in f32."""
        if node not in self.reals:
            if node in self.integers or node in self.wanted:
                scale = self._format(node)[0]
                self.reals[node] = self._call(_ours.dequantize, self._integer(node), scale)
            else:
                sums, scales, name = self.sums[node]
                scales = self._attach(f"{name}.scale", scales)
                self.reals[node] = self._call(_ours.dequantize_channels, sums, scales)
        return self.reals[node]

    def _integer(self, node):
        """The value in its integers."""
        if node not in self.integers:
            scale = self._format(node)[0]
            made = self._call(_ours.quantize, self._real(node), scale, *self._limits(node))
            self.integers[node] = made
        return self.integers[node]

    def _rewrite_layer(self, node) -> None:
        layer, value = self.layers[node], self.bounded.get(node, node)
        x, (x_scale, unsigned) = self._integer(layer.x), self._format(layer.x)
        weight, bias, scales = _round_layer(layer, x_scale, self.scheme.weight)
        name = layer.name.removesuffix("weight").rstrip(".").replace(".folded_", ".") or "layer"
        name = name.removesuffix(".")
        parts = (self._attach(f"{name}.weight", weight), self._attach(f"{name}.bias", bias))
        shape = _shape(node)
        if not layer.stride and len(shape) != 2:
            x = self.graph.call_function(_aten.reshape.default, (x, [-1, shape[-1 :] and _shape(layer.x)[-1]]))
        window = layer.stride, layer.low, layer.high, layer.dilation, layer.groups
        sums = self._call(_ours.integer_convolution, x, *parts, *window)
        if value in self.wanted:
            multiplier = scales / torch.tensor(self._format(value)[0])
            by = self._attach(f"{name}.multiplier", multiplier)
            made = self._call(_ours.requantize_channels, sums, by, *self._limits(value))
            self.integers[value] = self._shaped(made, node)
        else:
            made = self._attach(f"{name}.scale", scales)
            made = self._call(_ours.dequantize_channels, sums, made)
            self.reals[node] = self._shaped(made, node)

    def _shaped(self, made, node):
        """The rows of a linear layer in the dims that it had."""
        layer, shape = self.layers[node], _shape(node)
        if layer.stride or len(shape) == 2:
            return made
        return self.graph.call_function(_aten.reshape.default, (made, shape))

    def _rewrite_integers(self, node, value) -> None:
        if self._is_sum_or_product(node):
            made = self._sum_or_product(node, value)
        elif mean := _mean(node):
            made = self._averages(node, value, mean)
        elif window := _max_window(node):
            made = self._call(_ours.integer_max_pool, self._integer(node.args[0]), *window)
        elif node.target is _aten.cat.default:
            parts = [self._rescaled(each, value) for each in node.args[0]]
            made = self.graph.call_function(node.target, (parts, *node.args[1:]))
        else:
            args = (self._integer(node.args[0]), *node.args[1:])
            made = self.graph.call_function(node.target, args, dict(node.kwargs))
        self.integers[value] = made

    def _rescaled(self, operand, value):
        """The integers of an operand in the scale of the value."""
        if self._format(operand) == self._format(value):
            return self._integer(operand)
        real = self._call(_ours.dequantize, self._integer(operand), self._format(operand)[0])
        return self._call(_ours.quantize, real, self._format(value)[0], *self._limits(value))

    def _sum_or_product(self, node, value):
        x, y = node.args[:2]
        limits, scale = self._limits(value), torch.tensor(self._format(value)[0])
        scales = [torch.tensor(self._format(each)[0]) for each in (x, y)]
        operands = self._integer(x), self._integer(y)
        if node.target is _aten.mul.Tensor:
            multiplier = float(scales[0] * scales[1] / scale)
            return self._call(_ours.integer_multiply, *operands, multiplier, *limits)
        ratios = [float(each / scale) for each in scales]
        if integer_operators.fits_fixed_point(*ratios):
            return self._call(_ours.integer_add, *operands, *ratios, *limits)
        real = self.graph.call_function(node.target, (self._real(x), self._real(y)))
        return self._call(_ours.quantize, real, float(scale), *limits)

    def _averages(self, node, value, mean):
        kernel, stride, padding, divisor = mean
        x, scale = node.args[0], torch.tensor(self._format(node.args[0])[0])
        window = list(kernel), list(stride), list(padding), list(padding)
        sums = self._call(_ours.integer_window_sums, self._integer(x), *window)
        multiplier = float(scale / (torch.tensor(self._format(value)[0]) * divisor))
        made = self._call(_ours.requantize, sums, multiplier, *self._limits(value))
        if len(_shape(node)) != len(_shape(x)):
            made = self.graph.call_function(_aten.reshape.default, (made, _shape(node)))
        return made


def _fits(layer: _Contraction) -> bool:
    """Whether sums fit 32 bits, whatever the image."""
    terms = math.prod(layer.weight.shape[1:])
    return terms * 255 * 127 < 2**30 and len(layer.weight.shape[2:]) == len(layer.stride)


def _round_layer(layer: _Contraction, x_scale: float, bits: int):
    """Weight, bias, and the scale of the sums of each channel."""
    top = 2 ** (bits - 1) - 1
    weight = layer.weight.flatten(1)
    bias = torch.zeros(len(weight)) if layer.bias is None else layer.bias.float()
    x_scale = torch.tensor(x_scale)
    # so large that the bias fits 31 bits
    least = bias.abs() / (x_scale * 2**30)
    scale = torch.maximum(weight.abs().amax(1) / top, least)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    q = torch.round(weight / scale.unsqueeze(1)).clamp(-top, top).to(torch.int8)
    sums = x_scale * scale
    return q.reshape(layer.weight.shape), torch.round(bias / sums).to(torch.int32), sums
