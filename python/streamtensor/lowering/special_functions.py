"""Decomposes special functions: error functions, gamma functions, Bessel functions, and families of
polynomials.
"""

import math

import torch

from .elementwise_decompositions import promoted

_aten = torch.ops.aten


def table() -> dict:
    functions = {
        _aten.i0.default: _i0,
        _aten.special_i0e.default: _i0e,
        _aten.special_i1.default: _i1,
        _aten.special_i1e.default: _i1e,
        _aten.special_modified_bessel_i0.default: _i0,
        _aten.special_modified_bessel_i1.default: _i1,
        _aten.special_spherical_bessel_j0.default: _spherical_bessel,
        _aten.erfinv.default: _erfinv,
        _aten.special_erfcx.default: _erfcx,
        _aten.special_ndtri.default: _ndtri,
        _aten.special_log_ndtr.default: _log_ndtr,
        _aten.lgamma.default: _lgamma,
        _aten.digamma.default: _digamma,
    }
    found = {op: promoted(None, function) for op, function in functions.items()}
    found[_aten.polygamma.default] = lambda n, x: promoted(None, lambda x: _polygamma(n, x))(x)
    for name, member in _FAMILIES.items():
        packet = getattr(_aten, f"special_{name}")
        found[packet.n_scalar] = _of_degree(*member)
    return found


# exp(-x) * I0(x) * sqrt(1 + x), and exp(-x) * I1(x) / x * (1 + x) ** 1.5, by powers of
# (x - 4) / (x + 4), highest first, for x >= 0
_I0_FACTORS = (
    0.00280880509,
    0.000436716571,
    -0.0167911561,
    -0.00389549564,
    0.0447802267,
    0.0154874005,
    -0.0710191265,
    -0.0371494264,
    0.0757285455,
    0.0637483642,
    -0.0622314801,
    -0.0871722419,
    0.0536933517,
    0.112457778,
    -0.115233609,
    -0.0438678953,
    0.166981221,
    -0.185499596,
    0.157883996,
    -0.135074464,
    0.462870367,
)
_I1_FACTORS = (
    -0.00303528758,
    -0.00107599452,
    0.0176677538,
    0.00768173243,
    -0.0453183919,
    -0.0253691444,
    0.0672954872,
    0.052398718,
    -0.0632686629,
    -0.078962911,
    0.0379520163,
    0.0996674756,
    -0.0169087949,
    -0.124107958,
    0.0456630758,
    0.129205566,
    -0.165506172,
    0.0577182869,
    0.0753063299,
    -0.167684631,
    0.499623785,
)


def _scaled_bessel(size, factors):
    place = torch.where(size == math.inf, 1.0, (size - 4) / (size + 4))
    return _polynomial(place, *factors) / torch.sqrt(1 + size)


def _i0e(x):
    return _scaled_bessel(torch.abs(x), _I0_FACTORS)


def _i0(x):
    return torch.exp(torch.abs(x)) * _i0e(x)


def _i1e(x):
    size = torch.abs(x)
    part = torch.where(size == math.inf, 1.0, x / (1 + size))
    return _scaled_bessel(size, _I1_FACTORS) * part


def _i1(x):
    return torch.exp(torch.abs(x)) * _i1e(x)


def _spherical_bessel(x):
    found = torch.where(x == 0, 1.0, torch.sin(x) / x)
    return torch.where(torch.abs(x) == math.inf, 0.0, found)


def _polynomial(x, *factors):
    found = factors[0]
    for factor in factors[1:]:
        found = found * x + factor
    return found


def _erfinv(x):
    """Giles' polynomials."""
    w = -torch.log((1 - x) * (1 + x))
    near = w - 2.5
    far = torch.sqrt(torch.maximum(w, torch.full((), 5.0, dtype=x.dtype))) - 3
    found = x * torch.where(
        w < 5,
        _polynomial(
            near,
            2.81022636e-08,
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ),
        _polynomial(
            far,
            -0.000200214257,
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ),
    )
    infinite = torch.where(x > 0, math.inf, -math.inf)
    found = torch.where(torch.abs(x) == 1, infinite, found)
    return torch.where(torch.abs(x) > 1, math.nan, found)


# exp(x^2) * erfc(x) * (1 + 2 * x) by powers of (x - 2) / (x + 2), highest first, for x >= 0
_ERFCX_FACTORS = (
    4.43987784e-6,
    -5.49083084e-7,
    -3.54705182e-5,
    -1.83346929e-5,
    0.000149511856,
    0.000218930569,
    -0.00045345802,
    -0.0014622709,
    0.00127109095,
    0.00872397791,
    -0.00803398245,
    -0.0542201617,
    0.164051278,
    -0.16603039,
    -0.0927638266,
    1.27697838,
)


def _erfcx(x):
    """The head of x, in bf16, has an exact square."""
    size = torch.abs(x)
    place = torch.where(size == math.inf, 1.0, (size - 2) / (size + 2))
    found = _polynomial(place, *_ERFCX_FACTORS) / (1 + 2 * size)
    size = torch.where(size < 11, size, 11.0)
    head = size.to(torch.bfloat16).to(x.dtype)
    square = torch.exp(head * head) * torch.exp((size - head) * (size + head))
    return torch.where(x < 0, 2 * square - found, found)


def _log_ndtr(x):
    place = -math.sqrt(0.5) * x
    tail = torch.log(0.5 * _erfcx(place)) - 0.5 * x * x
    return torch.where(x < -1, tail, torch.log1p(-0.5 * torch.erfc(-place)))


# of p = exp(-z^2 / 2) by powers of log(z) - 1.625, highest first, for 2 <= z <= 13.3
_NDTRI_FACTORS = (
    1.11284559e-5,
    0.000118933255,
    0.00107343656,
    0.00702037733,
    0.0415734234,
    0.214432739,
    0.850968184,
    2.45573984,
    5.41154012,
    4.56393803,
)


def _ndtri(p):
    """Far from 1/2 by the distance to 0 or 1, which is exact."""
    small = torch.minimum(p, 1 - p)
    far = _polynomial(0.5 * torch.log(-2 * torch.log(small)) - 1.625, *_NDTRI_FACTORS)
    far = torch.where(p < 0.5, -far, far)
    found = torch.where(small < 0.13, far, math.sqrt(2) * _erfinv(2 * p - 1))
    infinite = torch.where(p == 0, -math.inf, math.inf)
    return torch.where((p == 0) | (p == 1), infinite, found)


# lgamma(x) / ((x - 1) * (x - 2)) by powers of x - 2, highest first, for 1 <= x <= 3
_LGAMMA_FACTORS = (
    -2.301277182e-6,
    4.848753397e-6,
    -1.042381329e-6,
    2.337783287e-6,
    -2.024429644e-5,
    4.358498803e-5,
    -8.182445119e-5,
    0.0001798884008,
    -0.0004060405523,
    0.0009160753653,
    -0.002108088443,
    0.0049985523,
    -0.01238419423,
    0.03296500489,
    -0.1003173017,
    0.4227843351,
)


def _lgamma_of_size(size):
    """Below 8 shifted to between 1 and 3, where the zeros are factors; Stirling's series from 8."""
    rest, product = size, torch.ones((), dtype=size.dtype)
    for _ in range(5):
        large = rest >= 3
        rest = torch.where(large, rest - 1, rest)
        product = torch.where(large, product * rest, product)
    below = size < 1
    place = torch.where(below, size - 1, rest - 2)
    near = place * torch.where(below, size, rest - 1) * _polynomial(place, *_LGAMMA_FACTORS)
    shift = torch.log(torch.where(below, size, product))
    near = near + torch.where(below, -shift, shift)
    r = 1 / size
    series = r * _polynomial(r * r, 1 / 1260, -1 / 360, 1 / 12)
    far = (size - 0.5) * torch.log(size) - size + 0.5 * math.log(2 * math.pi) + series
    found = torch.where(size < 8, near, far)
    return torch.where(size == math.inf, size, found)


def _lgamma(x):
    size = torch.abs(x)
    found = _lgamma_of_size(size)
    part = size - torch.floor(size)
    sine = torch.sin(math.pi * torch.minimum(part, 1 - part))
    reflected = math.log(math.pi) - torch.log(sine) - torch.log(size) - found
    pole = (x <= 0) & (torch.floor(x) == x)
    return torch.where(pole, math.inf, torch.where(x < 0, reflected, found))


def _cotangent_of_pi_times(x):
    """By the distance to the nearest pole or zero, which is exact."""
    part = x - torch.round(x)
    size = torch.abs(part)
    near = size < 0.25
    slope = torch.tan(math.pi * torch.where(near, size, 0.5 - size))
    found = torch.where(near, 1 / slope, slope)
    return torch.where(part < 0, -found, found)


def _digamma(x):
    """Shifted to at least 8, then the asymptotic series; negative arguments are reflected."""
    below = x < 0
    shifted, total = torch.where(below, 1 - x, x), torch.zeros((), dtype=x.dtype)
    for _ in range(8):
        small = shifted < 8
        total = torch.where(small, total - 1 / shifted, total)
        shifted = torch.where(small, shifted + 1, shifted)
    r = 1 / shifted
    rest = r * r * _polynomial(r * r, 1 / 252, -1 / 120, 1 / 12)
    found = total + torch.log(shifted) - 0.5 * r - rest
    reflected = found - math.pi * _cotangent_of_pi_times(x)
    found = torch.where(below, reflected, found)
    found = torch.where(below & (torch.round(x) == x), math.nan, found)
    return torch.where(x == 0, torch.where(1 / x < 0, math.inf, -math.inf), found)


def _zeta(order: int, x):
    """The sum of (x + k) ** -order: eight terms, then Euler's and Maclaurin's series."""
    total, after = torch.zeros((), dtype=x.dtype), x + 8
    for k in range(8):
        total = total + torch.pow(1 / (x + k), order)
    r = 1 / after
    series, rising = 1 / (order - 1) + 0.5 * r, order
    for n, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66), 1):
        factor = bernoulli * rising / math.factorial(2 * n)
        series = series + factor * torch.pow(r, 2 * n)
        rising *= (order + 2 * n - 1) * (order + 2 * n)
    return total + series * torch.pow(r, order - 1)


def _cotangent_derivative(n: int) -> list[float]:
    """The n-th derivative of cot as a polynomial of cot, highest power first."""
    factors = [0.0, 1.0]  # lowest first
    for _ in range(n):
        slopes = [at * factor for at, factor in enumerate(factors)][1:]
        factors = [-(low + high) for low, high in zip([*slopes, 0.0, 0.0], [0.0, 0.0, *slopes])]
    return factors[::-1]


def _polygamma(n: int, x):
    """Negative arguments are reflected."""
    if n == 0:
        return _digamma(x)
    below = x < 0
    size = float(math.factorial(n)) * _zeta(n + 1, torch.where(below, 1 - x, x))
    found = size if n % 2 else -size
    slope = _polynomial(_cotangent_of_pi_times(x), *_cotangent_derivative(n))
    reflected = (-found if n % 2 else found) - math.pi ** (n + 1) * slope
    found = torch.where(below, reflected, found)
    return found if n == 1 else torch.where(torch.abs(x) == math.inf, math.nan, found)


def _legendre(x, k, one, two):
    return ((2 * k + 1) * x * one - k * two) / (k + 1)


def _laguerre(x, k, one, two):
    return ((2 * k + 1 - x) * one - k * two) / (k + 1)


def _twice(x, k, one, two):
    return 2 * x * one - two


# the member of degree 1, and that of degree k + 1 from those of k and k - 1
_FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, _twice),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _twice),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _twice),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _twice),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, one, two: 2 * (x * one - k * two)),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, one, two: x * one - k * two),
    "laguerre_polynomial_l": (lambda x: 1 - x, _laguerre),
    "legendre_polynomial_p": (lambda x: x, _legendre),
}


def _of_degree(first, following):
    def member(x, degree):
        two, one = torch.zeros_like(x), torch.ones_like(x)
        if degree < 0:
            return two
        for k in range(int(degree)):
            two, one = one, following(x, k, one, two) if k else first(x)
        return one

    return lambda x, degree: promoted(None, lambda x: member(x, degree))(x)
