"""Which operators of an exported graph have a form in integers, and what they compute.

Contractions are convolutions and linear layers whose weights are known. Averages and maxima over
windows, sums and products of two values, bounds (a ReLU), and moves of elements lie between them.
"""

import math
import operator
from dataclasses import dataclass, replace

import torch

aten = torch.ops.aten


@dataclass(frozen=True)
class Window:
    """Places that a result reads, one number for each dim; none for a linear layer."""

    stride: list[int]
    low: list[int]  # padding in front
    high: list[int]  # padding behind
    dilation: list[int]


@dataclass(frozen=True)
class Contraction:
    x: torch.fx.Node
    weight: torch.Tensor
    bias: torch.Tensor | None
    name: str  # of the layer
    window: Window
    groups: int = 1
    # of a transposed convolution: the padding of its result behind
    output_padding: list[int] | None = None

    @property
    def channels(self) -> int:
        """Channels of the result."""
        return (
            self.weight.shape[0]
            if self.output_padding is None
            else (self.weight.shape[1] * self.groups)
        )

    def by_channel(self) -> torch.Tensor:
        """The weight, result channels first."""
        if self.output_padding is None:
            return self.weight
        parts = self.weight.unflatten(0, (self.groups, -1)).transpose(1, 2)
        return parts.flatten(0, 1)

    def with_weight(self, by_channel: torch.Tensor) -> torch.Tensor:
        """The inverse of `by_channel`."""
        if self.output_padding is None:
            return by_channel
        return by_channel.unflatten(0, (self.groups, -1)).transpose(1, 2).flatten(0, 1)


_CONVOLUTIONS = {
    op: dims
    for dims, packet in enumerate((aten.conv1d, aten.conv2d, aten.conv3d), 1)
    for op in (packet.default, packet.padding)
}
_TRANSPOSED = {
    aten.conv_transpose1d.default: 1,
    aten.conv_transpose2d.input: 2,
    aten.conv_transpose3d.input: 3,
}
_BOUNDS = {
    aten.relu.default: (0.0, math.inf),
    aten.relu6.default: (0.0, 6.0),
    aten.hardtanh.default: (-1.0, 1.0),
    aten.clamp.default: (-math.inf, math.inf),
    aten.clamp_min.default: (0.0, math.inf),
}
NEVER_NEGATIVE = {
    aten.sigmoid.default,
    aten.hardsigmoid.default,
    aten.softmax.int,
    aten.abs.default,
    aten.exp.default,
}
_MOVES = {
    getattr(aten, name)
    for name in (
        "view reshape flatten unflatten permute transpose squeeze unsqueeze slice select clone "
        "contiguous alias expand pixel_shuffle pixel_unshuffle channel_shuffle dropout"
    ).split()
}
_MAX_POOLS = {aten.max_pool1d.default: 1, aten.max_pool2d.default: 2, aten.max_pool3d.default: 3}
_AVERAGE_POOLS = {
    aten.avg_pool1d.default: 1,
    aten.avg_pool2d.default: 2,
    aten.avg_pool3d.default: 3,
}
_WHOLE_AVERAGES = {
    aten.adaptive_avg_pool1d.default,
    aten.adaptive_avg_pool2d.default,
    aten.adaptive_avg_pool3d.default,
}


def shape_of(node) -> list[int]:
    return list(node.meta["val"].shape)


def is_real(node) -> bool:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def attribute(module, node):
    """The value of a parameter or a buffer; None for other nodes."""
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    return operator.attrgetter(node.target)(module).detach()


def contraction(module, node) -> Contraction | None:
    """What the node computes, if it is a contraction with a weight that is known."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function" or not is_real(node):
        return None
    transposed = node.target in _TRANSPOSED
    dims = {aten.linear.default: 0, **_CONVOLUTIONS, **_TRANSPOSED}.get(node.target)
    if dims is None or node.kwargs:
        return None
    x, of_weight, of_bias, stride, padding, *rest = (*node.args, *(None,) * 9)[:9]
    weight, bias = attribute(module, of_weight), attribute(module, of_bias)
    if weight is None or (bias is None and of_bias is not None) or weight.ndim != dims + 2:
        return None
    extra, groups, dilation = rest[:3] if transposed else (None, rest[1], rest[0])
    window = _window(weight.shape[2:], stride, padding, dilation)
    name = of_weight.target.removesuffix("weight").removesuffix(".") or "layer"
    found = Contraction(x, weight, bias, name, window, groups or 1)
    return replace(found, output_padding=_several(extra, dims, 0)) if transposed else found


def _several(value, dims: int, default: int) -> list[int]:
    """A number for each dim."""
    value = [default] if value is None else [value] if isinstance(value, int) else list(value)
    return value * (dims // len(value)) if dims else []


def _window(kernel, stride, padding, dilation) -> Window:
    dims = len(kernel)
    stride, dilation = _several(stride, dims, 1), _several(dilation, dims, 1)
    if padding == "same":
        whole = [d * (k - 1) for d, k in zip(dilation, kernel)]
        low = [each // 2 for each in whole]
        return Window(stride, low, [a - b for a, b in zip(whole, low)], dilation)
    ends = _several(None if padding == "valid" else padding, dims, 0)
    return Window(stride, ends, ends, dilation)


def is_convolution(node) -> bool:
    return node.target in _CONVOLUTIONS


def window_of(node, kernel) -> Window:
    """Of a convolution, or of a linear layer."""
    stride, padding, dilation = (*node.args[3:6], None, None, None)[:3]
    return _window(kernel, stride, padding, dilation)


def bounds(node) -> tuple[float, float] | None:
    """The least and the largest number of a ReLU or another bound; None for other operators."""
    if node.op != "call_function" or node.target not in _BOUNDS or node.kwargs:
        return None
    given = (*node.args[1:], None, None)
    return tuple(
        default if each is None else float(each)
        for each, default in zip(given, _BOUNDS[node.target])
    )


def operands(node) -> list:
    return (
        list(node.args[0])
        if is_concatenation(node)
        else [each for each in node.args if isinstance(each, torch.fx.Node)]
    )


def is_concatenation(node) -> bool:
    return node.target is aten.cat.default and all(map(is_real, node.args[0]))


def is_sum(node) -> bool:
    """An addition of two values of one shape."""
    return _is_of_two(node, aten.add.Tensor) and len({tuple(shape_of(x)) for x in node.args}) == 1


def is_product(node) -> bool:
    return _is_of_two(node, aten.mul.Tensor)


def _is_of_two(node, op) -> bool:
    return (
        node.target is op
        and len(node.args) == 2
        and not node.kwargs
        and all(is_real(each) and each.op != "get_attr" for each in node.args)
    )


def is_move(node) -> bool:
    """Whether the node only moves elements of its first operand, or pads with zeros."""
    if node.op != "call_function" or not node.args or not is_real(node.args[0]):
        return False
    if node.target in (aten.constant_pad_nd.default, aten.pad.default):
        fill = node.args[3:] if node.target is aten.pad.default else node.args[2:]
        return node.args[2:3] in ((), ("constant",), (0,), (0.0,)) and not any(fill)
    packet = getattr(node.target, "overloadpacket", None)
    if packet is aten.dropout and node.args[2:] != (False,):
        return False
    return packet in _MOVES and is_real(node) and repetition(node) is None


def keeps_values(node) -> bool:
    """Whether the node only moves elements of its first operand."""
    return is_move(node) and node.target not in (aten.pad.default, aten.constant_pad_nd.default)


def repetition(node) -> list[int] | None:
    """How often each of the last dims is repeated by an upsampling to the nearest."""
    if not str(node.target).startswith("aten.upsample_nearest") or not is_real(node.args[0]):
        return None
    sizes, extents = shape_of(node.args[0])[2:], shape_of(node)[2:]
    whole = not any(extent % size for extent, size in zip(extents, sizes))
    return [extent // size for extent, size in zip(extents, sizes)] if whole else None


@dataclass(frozen=True)
class Average:
    kernel: list[int]
    window: Window
    divisor: int


def average(node) -> Average | None:
    """Of windows that lie in the image, or count its border."""
    if node.op != "call_function" or not node.args or not is_real(node.args[0]) or node.kwargs:
        return None
    shape = shape_of(node.args[0])
    extents = shape[2:]
    zeros, ones = [0] * len(extents), [1] * len(extents)
    whole = node.target in _WHOLE_AVERAGES and shape_of(node)[2:] == ones and is_batched(node)
    if node.target is aten.mean.dim and len(shape) in (3, 4, 5) and node.args[1]:
        whole = sorted(each % len(shape) for each in node.args[1]) == list(range(2, len(shape)))
    if whole:
        return Average(extents, Window(extents, zeros, zeros, ones), math.prod(extents))
    dims = _AVERAGE_POOLS.get(node.target)
    if dims is None or len(extents) != dims:
        return None
    kernel, stride, padding, ceil, counts, divisor = (
        *node.args[1:],
        *([], [0], False, True, None)[len(node.args) - 2 :],
    )
    kernel, padding = _several(kernel, dims, 1), _several(padding, dims, 0)
    if ceil or (any(padding) and not counts):
        return None
    window = Window(_several(stride or kernel, dims, 1), padding, padding, ones)
    return Average(kernel, window, divisor or math.prod(kernel))


def is_batched(node) -> bool:
    """Whether images have a dim of the batch and one of channels."""
    dims = int(str(node.target).partition("d.")[0][-1])
    return len(shape_of(node.args[0])) == dims + 2


def largest(node) -> tuple[list[int], Window] | None:
    """Kernel and window of a maximum."""
    dims = _MAX_POOLS.get(node.target)
    if dims is None or node.kwargs or not is_batched(node) or not is_real(node.args[0]):
        return None
    stride, padding, dilation = (*node.args[2:5], *(None,) * 3)[:3]
    kernel = _several(node.args[1], dims, 1)
    window = _window(kernel, stride or kernel, padding, dilation)
    # windows that begin in the image may end behind its border
    high = [
        max((out - 1) * s + d * (k - 1) + 1 - size - low, 0)
        for out, s, d, k, size, low in zip(
            shape_of(node)[2:],
            window.stride,
            window.dilation,
            kernel,
            shape_of(node.args[0])[2:],
            window.low,
        )
    ]
    return kernel, replace(window, high=high)
