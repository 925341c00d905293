"""ONNX's Resize: for each axis that changes, where an element of the result lies in the source.

Repetitions and PyTorch's own forms of linear interpolation are these; every other form is a gather
at constant places (nearest), or a product with a constant matrix for each axis (linear, cubic).
"""

import math
from dataclasses import dataclass

import numpy
import torch
import torch.nn.functional as F

from .node import Node, operator

_PLACES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
)
_MOST = 2**16  # elements of an axis that changes
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Axis:
    size: int
    wanted: int
    scale: float

    def places(self, mode: str) -> list[float]:
        """Where the elements of the result lie in the source, in f32 as onnxruntime has it: the
        rounding decides between neighbours.
        """
        size, wanted, scale = self.size, self.wanted, numpy.float32(self.scale)
        every, half = numpy.arange(wanted, dtype=numpy.float32), numpy.float32(0.5)
        if mode == "asymmetric":
            found = every / scale
        elif mode == "align_corners":
            found = every * numpy.float32(size - 1) / numpy.float32(max(wanted - 1, 1))
        elif mode == "pytorch_half_pixel" and wanted == 1:
            found = every
        else:
            found = (every + half) / scale - half
        if mode == "half_pixel_symmetric":
            found = found + numpy.float32(size / 2 * (1 - wanted / (self.scale * size)))
        return found.tolist()


@dataclass(frozen=True)
class _Form:
    mode: str  # nearest, linear or cubic
    places: str
    nearest: str
    coefficient: float  # of the cubic
    inside: bool  # weights outside of the source are left out
    antialias: bool


def _form(node: Node) -> _Form:
    places = node.choice("coordinate_transformation_mode", _PLACES, "half_pixel")
    form = _Form(
        node.choice("mode", ("nearest", "linear", "cubic"), "nearest"),
        places,
        node.choice("nearest_mode", _NEAREST, "round_prefer_floor"),
        node.real("cubic_coeff_a", -0.75),
        bool(node.choice("exclude_outside", (0, 1), 0)),
        bool(node.choice("antialias", (0, 1), 0)),
    )
    node.real("extrapolation_value", 0.0)  # of tf_crop_and_resize, which is no choice here
    if form.antialias:
        raise node.refuse("has antialias=1", "antialias=0")
    return form


@operator("Resize")
def _resize(node, x, roi=None, scales=None, sizes=None):
    form, axes = _form(node), _axes(node, x, scales, sizes)
    changed = {
        at: each for at, each in enumerate(axes) if each.size != each.wanted or each.scale != 1
    }
    if not changed:
        return x
    if form.mode == "nearest":
        return _nearest(node, x, form, changed)
    torchs = _interpolated(x, form, changed)
    if torchs is not None:
        return torchs
    for at, axis in changed.items():
        weights = _weights(form, axis)
        matrix = node.derive(f"axis{at}", lambda weights=weights: torch.tensor(weights)).to(x.dtype)
        x = F.linear(x.movedim(at, -1), matrix).movedim(-1, at)
    return x


def _axes(node: Node, x, scales, sizes) -> list[Axis]:
    dims = node.axes(node.integers("axes", list(range(x.ndim))), x.ndim)
    policy = ("stretch", "not_larger", "not_smaller")
    policy = node.choice("keep_aspect_ratio_policy", policy, "stretch")
    found = [Axis(extent, extent, 1.0) for extent in x.shape]
    if (scales is None or scales.numel() == 0) == (sizes is None):
        raise node.refuse("has not one of scales and sizes", "one of them")
    given = node.numbers(2, "scales") if sizes is None else node.known_ints(3, "sizes")
    if len(given) != len(dims) or not all(0 < each < 2**31 for each in given):
        raise node.refuse(f"has {given} for {len(dims)} axes", "a positive number for each")
    if sizes is not None and policy != "stretch":
        choose = min if policy == "not_larger" else max
        factor = choose(size / x.shape[dim] for dim, size in zip(dims, given))
        if not all(1 <= math.floor(x.shape[dim] * factor + 0.5) <= _MOST for dim in dims):
            raise node.refuse(f"has sizes {given}", f"1 to {_MOST}")
        for dim in dims:
            found[dim] = Axis(x.shape[dim], math.floor(x.shape[dim] * factor + 0.5), factor)
        return found
    for dim, each in zip(dims, given):
        size = x.shape[dim]
        wanted = each if sizes is not None else math.floor(size * each)
        if not 1 <= wanted <= _MOST:
            raise node.refuse(f"leaves {wanted} of {size} elements", f"1 to {_MOST}")
        found[dim] = Axis(size, wanted, wanted / size if sizes is not None else each)
    return found


def _nearest(node: Node, x, form: _Form, changed: dict[int, Axis]):
    for at, axis in changed.items():
        places = [_rounded(each, form.nearest, axis) for each in axis.places(form.places)]
        factor = axis.wanted // axis.size
        if places == [each // factor for each in range(axis.wanted)] if factor else False:
            shape = list(x.shape)
            wide = x.unsqueeze(at + 1).expand([*shape[: at + 1], factor, *shape[at + 1 :]])
            x = wide.reshape([*shape[:at], axis.wanted, *shape[at + 1 :]])
        elif _step(places):
            x = torch.ops.aten.slice.Tensor(x, at, places[0], places[-1] + 1, _step(places))
        else:
            indices = node.derive(f"axis{at}", lambda places=places: torch.tensor(places))
            x = torch.index_select(x, at, indices)
    return x


def _step(places: list[int]) -> int | None:
    """The distance of places that are equally far apart."""
    steps = {b - a for a, b in zip(places, places[1:])} or {1}
    step = steps.pop()
    return step if not steps and step > 0 else None


def _rounded(place: float, mode: str, axis: Axis) -> int:
    half = place - math.floor(place) == 0.5
    whole = {
        "floor": math.floor(place),
        "ceil": math.ceil(place),
        "round_prefer_floor": math.floor(place) if half else math.floor(place + 0.5),
        "round_prefer_ceil": math.floor(place + 0.5),
    }[mode]
    return min(max(whole, 0), axis.size - 1)


def _interpolated(x, form: _Form, changed: dict[int, Axis]):
    """By PyTorch's function; None: it has no such form."""
    dims = x.ndim - 2
    halves = form.places in ("half_pixel", "pytorch_half_pixel")
    exact = all(abs(each.wanted / each.size - each.scale) < 1e-9 for each in changed.values())
    corners = form.places == "align_corners"
    if dims not in (1, 2) or min(changed) < 2 or form.mode == "cubic" or not (halves or corners):
        return None
    if not exact or any(each.wanted == 1 for each in changed.values()):
        return None
    wanted = [changed[at].wanted if at in changed else x.shape[at] for at in range(2, x.ndim)]
    return F.interpolate(x, wanted, mode=("linear", "bilinear")[dims - 1], align_corners=corners)


def _weights(form: _Form, axis: Axis) -> list[list[float]]:
    """A row for each element of the result: how much it takes of each element of the source."""
    rows = []
    for place in axis.places(form.places):
        first = math.floor(place)
        part = place - first
        taps = _cubic(part, form.coefficient) if form.mode == "cubic" else [1 - part, part]
        begin = first - (len(taps) // 2 - 1)
        row = [0.0] * axis.size
        total = 0.0
        for at, weight in enumerate(taps, begin):
            if form.inside and not 0 <= at < axis.size:
                continue
            row[min(max(at, 0), axis.size - 1)] += weight
            total += weight
        rows.append([each / total for each in row] if form.inside else row)
    return rows


def _cubic(part: float, a: float) -> list[float]:
    def near(x):
        return (a + 2) * x**3 - (a + 3) * x**2 + 1

    def far(x):
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a

    return [far(1 + part), near(part), near(1 - part), far(2 - part)]
