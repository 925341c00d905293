"""Properties of values: every dtype with every op on edge values gives PyTorch's results, many ops
a design.
"""

import pytest
import torch
from torch import inf, nan, nn

import streamtensor

F = nn.functional
ULPS = 4
TINY = torch.finfo(torch.float32).tiny


class Many(nn.Module):
    """The functions side by side, of the same inputs."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        return tuple(function(*inputs) for function in self.functions)


def _differences(found, expected, ulps):
    if (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"{found.dtype} {tuple(found.shape)}, not {expected.dtype} {tuple(expected.shape)}"
    wrong = found != expected
    if expected.dtype.is_floating_point:
        step = ulps * torch.finfo(expected.dtype).eps
        f, e = found.double(), expected.double()
        near = (f - e).abs() <= step * e.abs()
        flushed = (f.abs() <= TINY) & (e.abs() <= TINY)
        wrong &= ~((f.isnan() & e.isnan()) | ((near | flushed) & e.isfinite()))
    if wrong.any():
        at = wrong.flatten().nonzero().flatten()[:5]
        f, e = (each.flatten()[at].tolist() for each in (found, expected))
        return f"at {at.tolist()}: {f}, not {e}"
    return ""


def _check(rows, inputs, ulps=ULPS):
    """`rows`: functions by name. Returns how many numbers were compared."""
    module = Many(list(rows.values())).eval()
    with torch.no_grad():
        expected = module(*[value.clone() for value in inputs])
    with streamtensor.compile(module, inputs) as design:
        found = iter(torch.utils._pytree.tree_leaves(design(*inputs)))
    said, count = [], 0
    for name, wanted in zip(rows, expected):
        for number, each in enumerate(torch.utils._pytree.tree_leaves(wanted)):
            text = _differences(next(found), each, ulps)
            said += [f"{name}[{number}] {text}"] if text else []
            count += each.numel()
    assert not said, "\n".join(said)
    return count


def _edges(kind):
    """Edge values, and seeded ones around them; two tensors in different orders."""
    torch.manual_seed(7)
    edges = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.7, 7.0, 0.3,
             100.0, -100.0, 16777217.0, 3e38, -3e38, 1e-30, 1e20, 0.99999994, 64.0]  # fmt: skip
    a = torch.cat([torch.tensor(edges), torch.randn(14) * 10 ** torch.randn(14)])
    b = torch.cat([a[1:25:2], a[:25:2], torch.randn(14)])
    a, b = a.to(kind), b.to(kind)
    return (
        (a, b) if kind == torch.float32 else (a[a.abs().float() != inf], b[a.abs().float() != inf])
    )


def _unary(functions, owner=torch):
    return {name: lambda a, b, name=name: getattr(owner, name)(a) for name in functions.split()}


COMPARED = {
    "clamp": lambda a, b: (a.clamp(-1, 1), a.clamp(min=0), a.clamp(max=0.1), a.clamp(nan, 1)),
    "clamp by tensors": lambda a, b: (torch.clamp(a, b, b + 1), a.clamp(max=b)),
    "limits": lambda a, b: (F.hardtanh(a, -2, 0.5), F.relu6(a), F.threshold(a, 0.5, 2.0)),
    "maximum": lambda a, b: (torch.maximum(a, b), torch.minimum(a, b)),
    "fmax": lambda a, b: (torch.fmax(a, b), torch.fmin(a, b)),
    "with itself": lambda a, b: (a == a, a != a, a < a, a <= a, (a + 1) == (a + 1)),
    "comparisons": lambda a, b: (a == b, a < b, a > 0.3, a >= 1, a != 0, a <= b),
    "close": lambda a, b: (torch.isclose(a, a + 0), torch.isclose(a, b, 0.3, 1.0, equal_nan=True)),
    "classes": lambda a, b: (a.isnan(), a.isinf(), a.isfinite(), a.isposinf(), a.isneginf()),
    "nan_to_num": lambda a, b: (torch.nan_to_num(a), torch.nan_to_num(a, 1.0, 2.0, -3.0)),
    "logic": lambda a, b: (a.bool(), a.logical_not(), torch.logical_and(a, b), a.any(), a.all()),
    "chosen": lambda a, b: (torch.where(a > 0, a, b), a.masked_fill(a != a, 2.0)),
    "extremes": lambda a, b: (a.max(), a.amin(), a[3:].max(), a.max(0), a[3:].min(0)),
    "places": lambda a, b: (a.argmax(), a.argmin(), a[3:].argmax(), a[8:].argmin()),
    "running": lambda a, b: (a[1:9].cummax(0), a[3:9].cummin(0)),
    "median": lambda a, b: (a.median(0), a[3:18].median(0), a.kthvalue(3), a.kthvalue(a.numel())),
    "without NaN": lambda a, b: (a.nanmedian(0), (a[:4] * 0 / 0).nanmedian(), a.nansum()),
}
SORTED = {
    "sort": lambda a, b: (a[:12].sort(stable=True), b[:12].sort(descending=True, stable=True)),
    "topk": lambda a, b: (a.topk(3)[0], a.topk(3, largest=False)[0]),
}
ROUNDED = {
    "whole": lambda a, b: (a.floor(), a.ceil(), a.round(), a.trunc(), a.frac(), a.sign()),
    "remainder": lambda a, b: (
        # PyTorch's vectors give NaN for quotients that are beyond the significand
        torch.remainder(a, b),
        torch.remainder(a.clamp(-1e4, 1e4), 0.7),
        a % 7,
    ),
    "fmod": lambda a, b: (torch.fmod(a, b), torch.fmod(a, -7)),
    "floor division": lambda a, b: (a // b, a // 0.7, torch.div(a, b, rounding_mode="trunc")),
    "signs of zeros": lambda a, b: [1 / f(a) for f in (torch.trunc, torch.ceil, torch.round)],
    "signs": lambda a, b: torch.signbit(a),
    "decimals": lambda a, b: a.round(decimals=1),
    "integers": lambda a, b: (a.int(), a.long(), a.clamp(-99, 99).to(torch.int8)),
    "copysign": lambda a, b: torch.copysign(a, torch.where(b != b, 1.0, b)),
}
ACTIVATIONS = {
    **_unary("relu leaky_relu elu selu celu softplus silu logsigmoid softsign hardswish "
             "hardsigmoid hardshrink softshrink mish", F),
    "near zero": lambda a, b: [f(a.clamp(-64, 64) * 2**-14) for f in (F.elu, F.selu, F.celu)],
    # On some processors PyTorch doubles the argument before it halves the result.
    "gelu": lambda a, b: F.gelu(a.clamp(-1, torch.finfo(a.dtype).max / 2)),
}  # fmt: skip
FUNCTIONS = {
    **_unary("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh asin acos atan asinh "
             "acosh atanh erf erfc sigmoid reciprocal abs neg square"),
    "hyperbolic": lambda a, b: (torch.sinh(a.clamp(-88, 88)), torch.cosh(a.clamp(-88, 88))),
    "of two": lambda a, b: (torch.atan2(a, b), torch.hypot(a, b), torch.xlogy(a, b)),
    "logaddexp": lambda a, b: (torch.logaddexp(a, b), torch.logaddexp2(a, b)),
    "powers": lambda a, b: (a**2, a**3, a**-1, a**0.5, a**-2, a**1.7, 2.0**a, a.abs() ** b),
}  # fmt: skip


def test_f32():
    inputs = _edges(torch.float32)
    assert _check({**COMPARED, **SORTED}, inputs) > 800
    bits = {
        "bits": lambda a, b: (
            torch.frexp(a),
            torch.nextafter(torch.where(a == 0, 1.0, a), b.flip(0)),
        )
    }
    assert _check({**ROUNDED, **ACTIVATIONS, **bits}, inputs) > 800
    assert _check(FUNCTIONS, inputs) > 800


def test_special_functions():
    """Against PyTorch's in f64: its own in f32 are further off."""
    torch.manual_seed(2)
    x = torch.cat([torch.tensor([0.5, 1.0, 1.0000001, 2.0, 0.99999994, 2.9999998, 8.0, 1e-4]),
                   torch.rand(24) * 12, -torch.rand(8) * 6 - 0.05])  # fmt: skip
    chances = torch.cat([torch.tensor([0.0, 1.0, 1e-30, 1e-7, 0.5, 0.9999999]), torch.rand(34)])
    special = torch.special
    rows = {
        "gamma": lambda x, p: (x.abs().lgamma(), torch.polygamma(1, x), torch.polygamma(4, x)),
        "digamma": lambda x, p: torch.digamma(x.abs() + 2),
        "errors": lambda x, p: (special.erfcx(x), special.ndtri(p), special.log_ndtr(-x.abs())),
        "bessel": lambda x, p: (special.modified_bessel_i1(x), special.spherical_bessel_j0(p)),
        "families": lambda x, p: [
            getattr(special, name)(p - 8, degree)
            for degree in (-1, 0, 4)
            for name in ("chebyshev_polynomial_t", "hermite_polynomial_h", "laguerre_polynomial_l")
        ],
    }
    module = Many(list(rows.values()))
    expected = torch.utils._pytree.tree_leaves(module(x.double(), chances.double()))
    with streamtensor.compile(module, (x, chances)) as design:
        found = torch.utils._pytree.tree_leaves(design(x, chances))
    said = [_differences(f, e.float(), ULPS) for f, e in zip(found, expected, strict=True)]
    assert not any(said), "\n".join(said)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_halves(kind):
    """Every op is rounded once, from f32: a unit at most from PyTorch's, which rounds alike."""
    a, b = _edges(kind)
    rows = {
        "numbers": lambda a, b: (a + 0.1, a * 1.7, a - 0.3, a / 3.3, 0.1 - a, 1 / a, a < 0.1),
        "scaled": lambda a, b: torch.add(a, b, alpha=0.3),
        "limits of the type": lambda a, b: torch.nan_to_num(a / 0),
        "composed": lambda a, b: (
            torch.addcmul(a, a, b, value=0.3), torch.lerp(a, b, 0.3), torch.addcdiv(a, b, b + 3)),
        **COMPARED,
        **ROUNDED,
        **ACTIVATIONS,
        **{name: row for name, row in FUNCTIONS.items() if name != "erf"},
    }  # fmt: skip
    assert _check(rows, (a, b), 1) > 2000


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_sums_of_halves(kind):
    torch.manual_seed(3)
    x = ((torch.rand(4, 512) + 0.5) * (1 if kind == torch.bfloat16 else 500)).to(kind)
    rows = {
        "means": lambda x: (x.mean(), x.mean(1), x.sum(1) / 64, x.var(1) / 64, x.std(1), x.norm()),
        "of rows": lambda x: ((x / 500).logsumexp(1), (x / 99).softmax(1), F.layer_norm(x, (512,))),
        "running": lambda x: (x / 64).cumsum(1)[:, -8:],
        "pooled": lambda x: (F.avg_pool1d(x[None], 128), F.adaptive_avg_pool1d(x[None], 2)),
        "products": lambda x: (x[:, :64] / 64) @ (x[:, :64] / 64).T,
    }
    assert _check(rows, (x,), 2) > 2000


def _whole(kind):
    torch.manual_seed(5)
    limits, bits = torch.iinfo(kind), torch.iinfo(kind).bits
    edges = [0, 1, 2, 3, 7, 8, 100, limits.max, limits.max - 1, limits.min, limits.min + 1]
    near = [(1 << at) + step for at in (8, 15, 24, 31, 40, 53) if at < bits - 1 for step in (-1, 1)]
    a = [value for value in [*edges, *near, *[-value for value in near + edges[:7]]]
         if limits.min <= value <= limits.max]  # fmt: skip
    a = torch.tensor(a, dtype=kind)
    b = torch.tensor([3, -2, 7, 1, 5, -3, 100, 2], dtype=torch.int64).to(kind).repeat(9)[: len(a)]
    return a, b, (torch.arange(len(a)) * 3 % (bits + 2)).to(kind)


WHOLE = {
    "signs": lambda a, b, n: (a.abs(), -a, a.sign()),
    "quotients": lambda a, b, n: (a // b, a % b, torch.fmod(a, b), a / b),
    "by numbers": lambda a, b, n: (a // 7, a % 7, torch.fmod(a, 7), a / 7, a + 7, a * 7, 7 - a),
    "numbers first": lambda a, b, n: (torch.remainder(17, b), 2 >> n.clamp(0, 6), 17 // b),
    "shifted": lambda a, b, n: (torch.bitwise_left_shift(a, 3), torch.bitwise_right_shift(a, 3)),
    "modes": lambda a, b, n: [torch.div(a, b, rounding_mode=m) for m in ("floor", "trunc")],
    "powers": lambda a, b, n: (a**2, a**3, a**0, a**5, 2**n, 3**n, a[:8] ** n[:8]),
    "compared": lambda a, b, n: (a < b, a == b, torch.maximum(a, b), torch.minimum(a, b)),
    "limited": lambda a, b, n: (a.clamp(1, 5), a.clamp(min=2), a.amax(), a.amin(), a.argmax()),
    "bits": lambda a, b, n: (a & b, a | b, a ^ b, ~a, a << n.clamp(0, 6), a >> n.clamp(0, 6)),
    "converted": lambda a, b, n: (a.float(), a.half(), a.bfloat16(), a.bool()),
    "narrowed": lambda a, b, n: (a.to(torch.int8), a.to(torch.int16), a.int(), a.long()),
    "summed": lambda a, b, n: (a.sum(), a.cumsum(0), a.prod(), b.cumprod(0)),
    "in i32": lambda a, b, n: (a.cumsum(0, dtype=torch.int32), b.cumprod(0, dtype=torch.int32)),
    "with fractions": lambda a, b, n: (a * 0.5, a + 0.1, a < 0.5, a.clamp(0.5, 2.5)),
    "sorted": lambda a, b, n: a[:12].sort(stable=True),
    "averaged": lambda a, b, n: a[:3].scatter_reduce(0, n.long() % 3, a, "mean"),
    "filled": lambda a, b, n: (torch.ones_like(a), torch.where(a > 2, a, torch.zeros_like(a))),
}


@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_whole_numbers(kind):
    """Exact in every width."""
    assert _check(WHOLE, _whole(kind), 0) > 1000


@pytest.mark.parametrize("kind", [torch.int16, torch.int8, torch.uint8])
def test_narrow_whole_numbers(kind):
    """Without Python numbers, and the least by -1, which C++ leaves open."""
    a, b, n = _whole(kind)
    names = ("signs", "quotients", "modes", "compared", "converted", "narrowed", "summed",
             "numbers first", "shifted", "in i32", "averaged", "filled")  # fmt: skip
    rows = {name: WHOLE[name] for name in names}
    if kind == torch.uint8:
        b = b.clamp(min=1)
    assert _check(rows, (a, b, n), 0) > 250


def test_truths():
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    rows = {
        "compared": lambda a, b: (a < b, a <= b, a > b, a >= b, a == b, a < 1, a >= 0.5),
        "of numbers": lambda a, b: (a * b, a + b, a | b, a ^ b, ~a, a.sum(), a.long() - b.long()),
        "of dims": lambda a, b: [
            each.reshape(1, 2, 2).all((0, 2), keepdim=keep)
            for each in (a, b)
            for keep in (False, True)
        ],
    }
    assert _check(rows, (a, b), 0) > 50


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_each_product_of_halves_is_rounded(kind):
    """Products of 63 numbers at most, to the last bit; near 0 and beyond the largest, too."""
    torch.manual_seed(3)
    a, b = (torch.rand(3, 20) + 0.5).to(kind), torch.tensor([[1e-4, 1e-4, 1e4, 1e4]]).to(kind)
    rows = {
        "of all": lambda a, b: (a.prod(), b.prod(), b.flip(1).prod()),
        "of rows": lambda a, b: (a.prod(1), a.prod(0, keepdim=True), b.prod(1)),
    }
    assert _check(rows, (a, b), 0) > 25


def test_branches_in_branches():
    def inner(a):
        return torch.cond(a[0] > 0, lambda a: a + 1, lambda a: a - 1, (a,))

    rows = {"nested": lambda a: torch.cond(a.sum() > 0, inner, lambda a: a * 2, (a,))}
    for numbers in ([0.5, 2.0], [-0.5, 2.0], [-0.5, -2.0]):
        assert _check(rows, (torch.tensor(numbers),), 0) == 2


class Forces(torch.nn.Module):
    """Gradients of a network's output, row by row, by its input."""

    def __init__(self):
        super().__init__()
        self.energy = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )

    def forward(self, x):
        return torch.vmap(torch.func.grad(lambda row: self.energy(row).sum()))(x)


def test_transformed_functions():
    func, forces = torch.func, Forces()
    rows = {
        "rows": lambda x: torch.vmap(lambda v: v.softmax(0) * x[0])(x),
        "columns": lambda x: torch.vmap(torch.vmap(torch.tanh), in_dims=1, out_dims=1)(x),
        "gradient": lambda x: func.grad(lambda v: (v**3).sum())(x) + x,
        "products": lambda x: (func.jvp(torch.sin, (x,), (x,))[1], func.vjp(torch.sin, x)[1](x)[0]),
        "jacobian": lambda x: func.jacrev(lambda v: v.cos() * v.sum())(x[0]),
        "second": lambda x: func.hessian(lambda v: (v**4).sum())(x[1]),
    }
    x = torch.rand(4, 3)
    assert _check(rows, (x,), 4) == 6 * 12 - 12 + 18
    with streamtensor.compile(forces, (x,)) as design:
        torch.testing.assert_close(design(2 * x), forces(2 * x).detach())


def test_subnormal_numbers_are_kept():
    """On the CPU; functions and products with powers of two give 0."""
    x = torch.tensor([1e-40, -1e-40, 5e-39, TINY, 1e-45, 1e-38])
    rows = {
        "arithmetic": lambda x: (x + x, x - TINY, x * 3, x / 3, x / x, -x, x.abs()),
        "order": lambda x: (x > 0, x == 0, x.max(), x.argmax(), x.clamp(min=0), x.sign(), x.relu()),
        "sums": lambda x: x[:4].sum(),
        "moved": lambda x: (x.half(), x.flip(0), torch.where(x > 0, x, 0.0)),
        "halves": lambda x: ((x * 1e33).half() * 0.1, (x * 1e33).half() + 6e-8),
    }
    module = Many(list(rows.values()))
    with streamtensor.compile(module, (x,)) as design:
        found = torch.utils._pytree.tree_leaves(design(x))
    pairs = zip(found, torch.utils._pytree.tree_leaves(module(x)), strict=True)
    wrong = [pair for pair in pairs if not torch.equal(*pair)]
    assert not wrong, wrong
