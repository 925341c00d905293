"""Decomposes gcd and lcm into a loop of shifts and differences (Stein), which needs no divider."""

import torch

from . import recurrences

_aten = torch.ops.aten


def table() -> dict:
    return {_aten.gcd.default: _gcd, _aten.lcm.default: _lcm}


def _step(one, a, b, twos):
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


recurrences.define("gcd", _step, 3, "one a b twos")


def _gcd(x, y):
    """One of the numbers is 0 when all bits are taken."""
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
