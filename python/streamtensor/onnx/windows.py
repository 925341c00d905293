"""ONNX's operators over windows: convolutions, pools and their borders."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .node import Node, operator


@dataclass(frozen=True)
class Window:
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    low: list[int]  # padding in front
    high: list[int]  # padding behind

    @property
    def reach(self) -> list[int]:
        """Elements from the first that is read to the last."""
        return [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel)]

    @property
    def is_even(self) -> bool:
        return self.low == self.high


_MOST = 2**16  # of a kernel, a border or a step


def _list(node: Node, name: str, dims: int, default: int, least: int = 1) -> list[int]:
    found = node.integers(name, [default] * dims)
    if len(found) != dims or not all(least <= each <= _MOST for each in found):
        raise node.refuse(f"has {name}={found}", f"{dims} numbers from {least} to {_MOST}")
    return found


def window_of(node: Node, extents: list[int], kernel: list[int]) -> Window:
    """The window of a convolution or a pool over these extents."""
    dims = len(extents)
    own = _list(node, "kernel_shape", dims, 0, 0) if node.has("kernel_shape") else kernel
    if kernel and own != kernel:
        raise node.refuse(f"has kernel_shape={own} for weights of {kernel}", "that of the weights")
    if len(own) != dims or min(own, default=1) < 1 or math.prod(own) > _MOST**2:
        raise node.refuse(f"has kernel_shape={own} for {dims} dims", "a number for each")
    stride, dilation = _list(node, "strides", dims, 1), _list(node, "dilations", dims, 1)
    pads = _list(node, "pads", 2 * dims, 0, 0)
    auto = node.choice("auto_pad", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "NOTSET")
    if auto != "NOTSET" and any(pads):
        raise node.refuse(f"has auto_pad={auto} and pads={pads}", "one of them")
    if auto.startswith("SAME"):
        ends = []
        for size, k, s, d in zip(extents, own, stride, dilation):
            ends.append(max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0))
        less, more = [each // 2 for each in ends], [-(-each // 2) for each in ends]
        low, high = (less, more) if auto == "SAME_UPPER" else (more, less)
    else:
        low, high = pads[:dims], pads[dims:]
    return Window(own, stride, dilation, low, high)


def padded(x: torch.Tensor, low: list[int], high: list[int], value: float = 0) -> torch.Tensor:
    """The last dims with a border; a negative width cuts off."""
    ends = [each for pair in zip(low[::-1], high[::-1]) for each in pair]
    return F.pad(x, ends, value=value) if any(ends) else x


def check_images(node: Node, x: torch.Tensor) -> int:
    """The number of the dims behind batch and channels."""
    dims = x.ndim - 2
    if not 1 <= dims <= 3:
        raise node.refuse(f"takes a tensor of {x.ndim} dims", "batch, channels and 1 to 3 dims")
    return dims


@operator("Conv")
def _convolution(node, x, weight, bias=None):
    dims = check_images(node, x)
    groups = check_groups(node, x, weight)
    window = window_of(node, list(x.shape[2:]), list(weight.shape[2:]))
    convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    padding = window.low
    if not window.is_even:
        x, padding = padded(x, window.low, window.high), [0] * dims
    return convolve(x, weight, bias, window.stride, padding, window.dilation, groups)


def check_groups(node: Node, x, weight) -> int:
    groups = node.integer("group", 1)
    if groups < 1 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise node.refuse(
            f"has weights of {list(weight.shape)} and group={groups} for {x.shape[1]} channels",
            "channels of a group in dim 1 of the weights",
        )
    return groups


@operator("ConvTranspose")
def _transposed(node, x, weight, bias=None):
    dims = check_images(node, x)
    groups = node.integer("group", 1)
    extra = _list(node, "output_padding", dims, 0, 0)
    wanted = node.integers("output_shape")
    window = _transposed_window(node, x, weight, extra, wanted)
    convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
    reach = [max(s, d) for s, d in zip(window.stride, window.dilation)]
    if window.is_even and min(window.low) >= 0 and all(a < b for a, b in zip(extra, reach)):
        args = window.stride, window.low, extra, groups, window.dilation
        return convolve(x, weight, bias, *args)
    found = convolve(x, weight, None, window.stride, 0, 0, groups, window.dilation)
    ends = [e - each for e, each in zip(extra, window.high)]
    found = padded(found, [-each for each in window.low], ends)
    return found if bias is None else found + bias.reshape(-1, *[1] * dims)


def _transposed_window(node: Node, x, weight, extra, wanted) -> Window:
    dims, kernel = x.ndim - 2, list(weight.shape[2:])
    if node.has("kernel_shape") and node.integers("kernel_shape") != kernel:
        raise node.refuse(f"has kernel_shape={node.integers('kernel_shape')}", f"{kernel}")
    stride, dilation = _list(node, "strides", dims, 1), _list(node, "dilations", dims, 1)
    pads = _list(node, "pads", 2 * dims, 0, 0)
    auto = node.choice("auto_pad", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "NOTSET")
    if auto != "NOTSET" and any(pads):
        raise node.refuse(f"has auto_pad={auto} and pads={pads}", "one of them")
    if wanted is None and auto.startswith("SAME"):
        wanted = [size * s for size, s in zip(x.shape[2:], stride)]
    if wanted is None:
        return Window(kernel, stride, dilation, pads[:dims], pads[dims:])
    wanted = wanted[-dims:]
    low, high = [], []
    for size, k, s, d, e, out in zip(x.shape[2:], kernel, stride, dilation, extra, wanted):
        total = s * (size - 1) + e + d * (k - 1) + 1 - out
        first = total // 2 if auto == "SAME_UPPER" else total - total // 2
        low.append(first)
        high.append(total - first)
    return Window(kernel, stride, dilation, low, high)


# --- pools ---


def pool_window(node: Node, x) -> tuple[Window, list[int]]:
    """The window, its padding behind long enough for the last place; and how much of that padding
    is the operator's own.
    """
    if node.integers("kernel_shape") is None:
        raise node.refuse("has no kernel_shape", "a number for each dim")
    window = window_of(node, list(x.shape[2:]), [])
    ceil = node.choice("ceil_mode", (0, 1), 0)
    high = []
    for at, size in enumerate(x.shape[2:]):
        low, own, s = window.low[at], window.high[at], window.stride[at]
        room = size + low + own - window.reach[at]
        if room < 0:
            raise node.refuse(
                f"has windows of {window.kernel} on {list(x.shape[2:])}", "smaller ones"
            )
        places = (-(-room // s) if ceil else room // s) + 1
        if ceil and (places - 1) * s >= size + low:
            places -= 1
        high.append(max((places - 1) * s + window.reach[at] - size - low, own if not ceil else 0))
    return Window(window.kernel, window.stride, window.dilation, window.low, high), window.high


@operator("MaxPool")
def _max_pool(node, x):
    dims = check_images(node, x)
    node.choice("storage_order", (0, 1), 0)
    if node.has_output(1):
        raise node.refuse("gives the places of the largest, too", "one result")
    window, _ = pool_window(node, x)
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    padding = window.low
    floats = x.dtype.is_floating_point
    if not floats:
        return torch.ops.streamtensor.integer_max_pool(
            x, window.kernel, window.stride, window.low, window.high, window.dilation
        )
    if not window.is_even or any(p > k // 2 for p, k in zip(padding, window.kernel)):
        x, padding = padded(x, window.low, window.high, -math.inf), [0] * dims
    return pool(x, window.kernel, window.stride, padding, window.dilation)


@operator("AveragePool")
def _average_pool(node, x):
    dims = check_images(node, x)
    counted = node.choice("count_include_pad", (0, 1), 0)
    window, own = pool_window(node, x)
    border = any(window.low) or any(window.high)
    if any(each > 1 for each in window.dilation):
        return _dilated_average(node, x, window, own, counted)
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[dims - 1]
    fits = all(p <= k // 2 for p, k in zip(window.low, window.kernel))
    if not border or (window.is_even and window.high == own and fits):
        return pool(x, window.kernel, window.stride, window.low, False, bool(counted))
    wide = padded(x, window.low, window.high)
    factor = node.derive("factor", lambda: _factors(list(x.shape[2:]), window, own, counted))
    return pool(wide, window.kernel, window.stride) * factor.to(x.dtype)


def _factors(extents: list[int], window: Window, own: list[int], counted: int) -> torch.Tensor:
    """What averages over whole windows are multiplied by, so that they count what they should."""
    found = torch.ones(())
    for at, size in enumerate(extents):
        low, high = (window.low[at], own[at]) if counted else (0, 0)
        first = window.low[at] - low
        length = window.low[at] + size + window.high[at]
        inside = torch.zeros(length, dtype=torch.float64)
        inside[first : first + low + size + high] = 1
        taps = inside.unfold(0, window.reach[at], window.stride[at])[:, :: window.dilation[at]]
        found = found.unsqueeze(-1) * (window.kernel[at] / taps.sum(1))
    return found.float()


def _dilated_average(node: Node, x, window: Window, own: list[int], counted: int):
    channels, dims = x.shape[1], x.ndim - 2
    weight = node.derive(
        "mean", lambda: torch.full([channels, 1, *window.kernel], 1 / math.prod(window.kernel))
    )
    factor = node.derive("factor", lambda: _factors(list(x.shape[2:]), window, own, counted))
    convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    wide = padded(x, window.low, window.high)
    found = convolve(wide, weight.to(x.dtype), None, window.stride, 0, window.dilation, channels)
    return found * factor.to(x.dtype)


@operator("GlobalAveragePool")
def _global_average(node, x):
    return x.mean(list(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool")
def _global_max(node, x):
    return x.amax(list(range(2, x.ndim)), keepdim=True)
