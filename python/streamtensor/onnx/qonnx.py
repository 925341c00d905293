"""QONNX's `Quant`, as Brevitas and FINN write it: real numbers that are multiples of a scale.

y = (round(clamp(x / scale + zero)) - zero) * scale
"""

import torch

from .node import operator

_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
_ROUNDINGS = {
    "ROUND": torch.round,
    "HALF_EVEN": torch.round,
    "CEIL": torch.ceil,
    "FLOOR": torch.floor,
    "UP": lambda x: torch.sign(x) * torch.ceil(torch.abs(x)),
    "DOWN": torch.trunc,
    "HALF_UP": lambda x: torch.sign(x) * torch.floor(torch.abs(x) + 0.5),
    "HALF_DOWN": lambda x: torch.sign(x) * torch.ceil(torch.abs(x) - 0.5),
}


@operator(*(f"{domain}:{name}" for domain in _DOMAINS for name in ("Quant", "IntQuant")))
def _quantize(node, x, scale, zero, bits):
    mode = node.text("rounding_mode", "ROUND").upper()
    signed = node.choice("signed", (0, 1), 1)
    narrow = node.choice("narrow", (0, 1), 0)
    width = node.number(3, "bit width")
    if mode not in _ROUNDINGS:
        raise node.refuse(f"has rounding_mode={mode!r}", " or ".join(_ROUNDINGS))
    if width != int(width) or not 1 <= width <= 32:
        raise node.refuse(f"has {width:g} bits", "1 to 32")
    if 1 in node.constants and not all(
        0 < each < float("inf") for each in node.numbers(1, "scale")
    ):
        raise node.refuse("has a scale that is not positive and finite", "positive ones")
    torch.broadcast_shapes(scale.shape, x.shape)
    whole = x / scale + zero
    if width == 1 and signed:
        one = torch.ones((), dtype=whole.dtype)
        whole = torch.where(whole >= 0, one, -one)
    else:
        low, high = _bounds(int(width), bool(signed), bool(narrow))
        whole = _ROUNDINGS[mode](torch.clamp(whole, low, high))
    return (whole - zero) * scale


def _bounds(width: int, signed: bool, narrow: bool) -> tuple[int, int]:
    if signed:
        return narrow - 2 ** (width - 1), 2 ** (width - 1) - 1
    return 0, 2**width - 1 - narrow
