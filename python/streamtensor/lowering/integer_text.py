"""The operators of networks quantized to integers as functions in MLIR.

    %sums = linalg.generic (n, o, y0, y1, c, u0, u1)
        sums[n, o, y0, y1] += x[n, c, y0 * stride + u0, y1 * stride + u1] * w[o, c, u0, u1]

Images stay in the order of PyTorch, and borders are `tensor.pad`. Everything else is one
elementwise `linalg.generic`, the bias a first addition in it.
"""

import torch

from .integer_operators import CENTER, fixed_point, least

_ELEMENTS = {torch.float32: "f32", torch.int32: "i32", torch.int8: "i8", torch.uint8: "i8"}


def _type(dtype: torch.dtype, shape) -> str:
    return f"tensor<{'x'.join([*map(str, shape), _ELEMENTS[dtype]])}>"


class _Tensor:
    """A value of the function."""

    def __init__(self, name: str, dtype: torch.dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, list(shape)
        self.element, self.type = _ELEMENTS[dtype], _type(dtype, shape)


class _Function:
    """A function under construction."""

    def __init__(self, node):
        values = [each.meta["val"] for each in node.args if isinstance(each, torch.fx.Node)]
        self.arguments = [
            _Tensor(f"%x{at}", value.dtype, value.shape) for at, value in enumerate(values)
        ]
        self.result = _Tensor("", node.meta["val"].dtype, node.meta["val"].shape)
        self.lines = []

    def add(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"    {name} = {text}")
        return name

    def text(self, name: str, made: _Tensor) -> str:
        takes = ", ".join(f"{each.name}: {each.type}" for each in self.arguments)
        head = f"  func.func private @{name}({takes}) -> {made.type} {{"
        return "\n".join([head, *self.lines, f"    return {made.name} : {made.type}", "  }"])

    def constant(self, number: int | float, element: str) -> str:
        text = f"{number:.9e}" if element == "f32" else str(number)
        return self.add(f"arith.constant {text} : {element}")

    def filled(self, dtype: torch.dtype, shape, value: int) -> _Tensor:
        made = _Tensor("", dtype, shape)
        empty, number = (
            self.add(f"tensor.empty() : {made.type}"),
            self.constant(value, made.element),
        )
        name = self.add(
            f"linalg.fill ins({number} : {made.element}) outs({empty} : {made.type}) -> {made.type}"
        )
        return _Tensor(name, dtype, shape)

    def generic(self, loops: dict, operands: list, made: _Tensor, places, body) -> _Tensor:
        """loops: kinds by name. operands: tensors with subscripts. made: the result's type, or its
        first value; places: its subscripts. body: lines of what to do with %a0, %a1, ...; the last
        defines the result.
        """
        first = made.name or self.add(f"tensor.empty() : {made.type}")
        names = ", ".join(loops)
        every = [*operands, (made, places)]
        maps = ", ".join(f"affine_map<({names}) -> ({', '.join(at)})>" for _, at in every)
        kinds = ", ".join(f'"{kind}"' for kind in loops.values())
        takes = ", ".join(f"%a{at}: {each.element}" for at, (each, _) in enumerate(every))
        values = ", ".join(each.name for each, _ in operands)
        types = ", ".join(each.type for each, _ in operands)
        yielded = body[-1].partition(" =")[0] if body else "%a0"
        lines = "".join(f"      {line}\n" for line in body)
        name = self.add(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({values} : {types}) outs({first} : {made.type}) {{\n    ^bb0({takes}):\n{lines}"
            f"      linalg.yield {yielded} : {made.element}\n    }} -> {made.type}"
        )
        return _Tensor(name, made.dtype, made.shape)

    def elementwise(self, operands: list, body) -> _Tensor:
        """The function's result. operands: tensors with subscripts; None: those of the result."""
        places = _letters("d", len(self.result.shape))
        loops = dict.fromkeys(places, "parallel")
        own = [(each, places if at is None else at) for each, at in operands]
        return self.generic(loops, own, self.result, places, body)

    def pad(self, x: _Tensor, low, high, value: int) -> _Tensor:
        if not any([*low, *high]):
            return x
        wide = [*x.shape[:2], *(sum(each) for each in zip(x.shape[2:], low, high))]
        made = _Tensor("", x.dtype, wide)
        fill = self.constant(value, x.element)
        places = ", ".join(f"%p{at}: index" for at in range(len(wide)))
        name = self.add(
            f"tensor.pad {x.name} low{[0, 0, *low]} high{[0, 0, *high]} {{\n    ^bb0({places}):\n"
            f"      tensor.yield {fill} : {x.element}\n    }} : {x.type} to {made.type}"
        )
        return _Tensor(name, x.dtype, wide)

    def split(self, x: _Tensor, dim: int, parts: list[int]) -> _Tensor:
        shape = [*x.shape[:dim], *parts, *x.shape[dim + 1 :]]
        places = _groups(len(x.shape), dim, len(parts))
        name = self.add(
            f"tensor.expand_shape {x.name} {places} output_shape {shape} : "
            f"{x.type} into {_type(x.dtype, shape)}"
        )
        return _Tensor(name, x.dtype, shape)

    def join(self, x: _Tensor, dim: int) -> _Tensor:
        """The dim and the next as one."""
        shape = [*x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2 :]]
        places = _groups(len(shape), dim, 2)
        name = self.add(
            f"tensor.collapse_shape {x.name} {places} : {x.type} into {_type(x.dtype, shape)}"
        )
        return _Tensor(name, x.dtype, shape)


def _groups(count: int, dim: int, parts: int) -> list[list[int]]:
    """The dims of a longer shape by those of a shorter one, of which `dim` is several there."""
    found = [[at if at < dim else at + parts - 1] for at in range(count)]
    found[dim] = list(range(dim, dim + parts))
    return found


def _letters(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{at}" for at in range(count)]


def _windows(x: _Tensor, window, extents) -> list[str]:
    """Subscripts of the element at a tap of the window at a place. window: kernel, stride,
    dilation; extents: of places. A tap alone would say that the only window is all of the image.
    """

    def times(name, factor):
        return name if factor == 1 else f"{name} * {factor}"

    return [
        (f"{times(f'y{at}', s)} + " if places > 1 or d * (k - 1) + 1 < extent else "")
        + times(f"u{at}", d)
        for at, (k, s, d, places, extent) in enumerate(
            zip(*window, extents, x.shape[-len(extents) :])
        )
    ]


def _extended(name: str, value: str, x: _Tensor, to: str = "i32") -> str:
    return f"{name} = arith.ext{'s' if x.dtype.is_signed else 'u'}i {value} : {x.element} to {to}"


def _as_float(name: str, value: str, x: _Tensor) -> str:
    return f"{name} = arith.{'s' if x.dtype.is_signed else 'u'}itofp {value} : {x.element} to f32"


def _saturated(function: _Function, value: str, low: int, high: int, zero: int = 0) -> list[str]:
    bounds = [function.constant(float(each), "f32") for each in (low, high)]
    to = "s" if function.result.dtype.is_signed else "u"
    moved = [f"%rz = arith.addf %r0, {function.constant(float(zero), 'f32')} : f32"] if zero else []
    return [
        f"%r0 = math.roundeven {value} : f32",
        *moved,
        f"%r1 = arith.maximumf {'%rz' if zero else '%r0'}, {bounds[0]} : f32",
        f"%r2 = arith.minimumf %r1, {bounds[1]} : f32",
        f"%r3 = arith.fpto{to}i %r2 : f32 to i8",
    ]


def _grouped(function: _Function, x: _Tensor, weight: _Tensor, groups: int):
    """The operands with a dim of groups where one has several channels of a group; and the
    subscripts of the image's channels, of the filters' and of the result's.
    """
    several, outs = weight.shape[1] > 1, weight.shape[0] // groups
    if groups == 1:
        return (x, weight), (["c"], ["o", "c"], ["o"])
    if several:
        x = function.split(x, 1, [groups, weight.shape[1]])
    else:
        weight = function.join(weight, 0)
    if outs > 1:
        weight = function.split(weight, 0, [groups, outs])
    own, out = ["c"] * several, ["o"] * (outs > 1)
    return (x, weight), (["g", *own], ["g", *out, *own], ["g", *out])


def _convolution(function: _Function, stride, low, high, dilation, groups, border) -> _Tensor:
    x, weight = function.arguments
    result, places, taps = function.result, _letters("y", len(stride)), _letters("u", len(stride))
    window = (weight.shape[2:], stride, dilation)
    x = function.pad(x, low, high, border)
    (x, weight), (own, filters, made) = _grouped(function, x, weight, groups)
    at = ["n", *made, *places]
    outer = dict.fromkeys(at, "parallel")
    inner = dict.fromkeys([*(["c"] if "c" in filters else []), *taps], "reduction")
    channels = [result.shape[1]] if len(made) == 1 else [groups, result.shape[1] // groups]
    begin = function.filled(result.dtype, [result.shape[0], *channels, *result.shape[2:]], 0)
    body = [
        _extended("%w0", "%a0", x),
        _extended("%w1", "%a1", weight),
        "%w2 = arith.muli %w0, %w1 : i32",
        "%w3 = arith.addi %a2, %w2 : i32",
    ]
    operands = [
        (x, ["n", *own, *_windows(x, window, result.shape[2:])]),
        (weight, [*filters, *taps]),
    ]
    sums = function.generic(outer | inner, operands, begin, at, body)
    return function.join(sums, 1) if len(channels) > 1 else sums


def _center(function: _Function) -> _Tensor:
    x, least_number = function.arguments[0], function.constant(-CENTER, "i8")
    return function.elementwise([(x, None)], [f"%w0 = arith.xori %a0, {least_number} : i8"])


_SCALED = [
    "%w0 = arith.addi %a0, %a1 : i32",
    "%w1 = arith.sitofp %w0 : i32 to f32",
    "%w2 = arith.mulf %w1, %a2 : f32",
]


def _by_channel(function: _Function, body) -> _Tensor:
    """Of sums, biases and multipliers."""
    sums, *channels = function.arguments
    return function.elementwise([(sums, None), *((each, ["d1"]) for each in channels)], body)


def _requantize_channels(function: _Function, low, high, unsigned, zero=0) -> _Tensor:
    body = [*_SCALED, *_saturated(function, "%w2", low, high, zero)]
    return _by_channel(function, body)


def _requantize(function: _Function, multiplier, low, high, unsigned, zero=0) -> _Tensor:
    sums, by = function.arguments[0], function.constant(multiplier, "f32")
    body = [
        _as_float("%w0", "%a0", sums),
        f"%w1 = arith.mulf %w0, {by} : f32",
        *_saturated(function, "%w1", low, high, zero),
    ]
    return function.elementwise([(sums, None)], body)


def _dequantize_channels(function: _Function) -> _Tensor:
    return _by_channel(function, _SCALED)


def _dequantize(function: _Function, scale, zero=0) -> _Tensor:
    x, by = function.arguments[0], function.constant(scale, "f32")
    body = [_as_float("%w0", "%a0", x)]
    if zero:
        body.append(f"%wz = arith.subf %w0, {function.constant(float(zero), 'f32')} : f32")
    body.append(f"%w1 = arith.mulf {'%wz' if zero else '%w0'}, {by} : f32")
    return function.elementwise([(x, None)], body)


def _quantize(function: _Function, scale, low, high, unsigned, zero=0) -> _Tensor:
    by = function.constant(scale, "f32")
    body = [f"%w0 = arith.divf %a0, {by} : f32", *_saturated(function, "%w0", low, high, zero)]
    return function.elementwise([(function.arguments[0], None)], body)


def _add(function: _Function, x_ratio, y_ratio, low, high, unsigned, offset=0.0) -> _Tensor:
    x, y = function.arguments
    shift, whole, other, added = fixed_point(x_ratio, y_ratio, offset)
    by = function.constant(whole, "i64")
    point = function.constant(2.0**-shift, "f32")
    body = [
        _extended("%w0", "%a0", x, "i64"),
        f"%w1 = arith.muli %w0, {by} : i64",
        *_inner(function, y, (y_ratio * 2.0**shift, other, added)),
        "%w4 = arith.fptosi %w3 : f32 to i64",
        "%w5 = arith.addi %w1, %w4 : i64",
        "%w6 = arith.sitofp %w5 : i64 to f32",
        f"%w7 = arith.mulf %w6, {point} : f32",
        *_saturated(function, "%w7", low, high),
    ]
    return function.elementwise([(x, None), (y, None)], body)


def _inner(function: _Function, y: _Tensor, numbers: tuple) -> list[str]:
    """%w3 = y * ratio + offset, rounded once; numbers: the ratio, and both as integers."""
    ratio, whole, added = numbers
    if not added:
        by = function.constant(ratio, "f32")
        return [_as_float("%w2", "%a1", y), f"%w3 = arith.mulf %w2, {by} : f32"]
    by, plus = function.constant(whole, "i64"), function.constant(added, "i64")
    return [
        _extended("%i0", "%a1", y, "i64"),
        f"%i1 = arith.muli %i0, {by} : i64",
        f"%i2 = arith.addi %i1, {plus} : i64",
        "%w3 = arith.sitofp %i2 : i64 to f32",
    ]


def _product(function: _Function, *zeros) -> _Tensor:
    x, y = function.arguments
    body = [_extended("%w0", "%a0", x), _extended("%w1", "%a1", y)]
    names = []
    for at, zero in enumerate((*zeros, 0, 0)[:2]):
        names.append(f"%z{at}" if zero else f"%w{at}")
        if zero:
            body.append(f"%z{at} = arith.subi %w{at}, {function.constant(zero, 'i32')} : i32")
    body.append(f"%w2 = arith.muli {names[0]}, {names[1]} : i32")
    return function.elementwise([(x, _broadcast(function, x)), (y, _broadcast(function, y))], body)


def _shifted(function: _Function, value: str, numbers) -> list[str]:
    shift, low, high, _ = numbers
    half, by, low, high = (
        function.constant(each, "i64") for each in (1 << shift >> 1, shift, low, high)
    )
    return [
        f"%r0 = arith.addi {value}, {half} : i64",
        f"%r1 = arith.shrsi %r0, {by} : i64",
        f"%r2 = arith.maxsi %r1, {low} : i64",
        f"%r3 = arith.minsi %r2, {high} : i64",
        "%r4 = arith.trunci %r3 : i64 to i8",
    ]


def _shift_channels(function: _Function, *numbers) -> _Tensor:
    body = [
        "%w0 = arith.addi %a0, %a1 : i32",
        "%w1 = arith.extsi %w0 : i32 to i64",
        "%w2 = arith.extsi %a2 : i32 to i64",
        "%w3 = arith.muli %w1, %w2 : i64",
        *_shifted(function, "%w3", numbers),
    ]
    return _by_channel(function, body)


def _shift(function: _Function, factor, *numbers) -> _Tensor:
    by = function.constant(factor, "i64")
    body = [
        "%w0 = arith.extsi %a0 : i32 to i64",
        f"%w1 = arith.muli %w0, {by} : i64",
        *_shifted(function, "%w1", numbers),
    ]
    return function.elementwise([(function.arguments[0], None)], body)


def _shift_sum(function: _Function, x_factor, y_factor, *numbers) -> _Tensor:
    x, y = function.arguments
    factors = [function.constant(each, "i64") for each in (x_factor, y_factor)]
    body = [
        _extended("%w0", "%a0", x, "i64"),
        _extended("%w1", "%a1", y, "i64"),
        f"%w2 = arith.muli %w0, {factors[0]} : i64",
        f"%w3 = arith.muli %w1, {factors[1]} : i64",
        "%w4 = arith.addi %w2, %w3 : i64",
        *_shifted(function, "%w4", numbers),
    ]
    return function.elementwise([(x, None), (y, None)], body)


def _broadcast(function: _Function, x: _Tensor) -> list[str]:
    missing = len(function.result.shape) - len(x.shape)
    wanted = function.result.shape[missing:]
    return [
        "0" if own == 1 < whole else f"d{at + missing}"
        for at, (own, whole) in enumerate(zip(x.shape, wanted))
    ]


def _of_windows(function: _Function, x: _Tensor, window, first: int, body) -> _Tensor:
    """A reduction over windows. window: kernel, stride, dilation. first: what it begins with."""
    kernel = window[0]
    made, places = function.result, ["n", "c", *_letters("y", len(kernel))]
    begin = function.filled(made.dtype, made.shape, first)
    shape = function.add(f"tensor.empty() : {_type(x.dtype, kernel)}")
    loops = dict.fromkeys(places, "parallel")
    loops |= dict.fromkeys(_letters("u", len(kernel)), "reduction")
    operands = [
        (x, ["n", "c", *_windows(x, window, made.shape[2:])]),
        (_Tensor(shape, x.dtype, kernel), _letters("u", len(kernel))),
    ]
    return function.generic(loops, operands, begin, places, body)


def _window_sums(function: _Function, kernel, stride, low, high) -> _Tensor:
    x = function.pad(function.arguments[0], low, high, 0)
    body = [_extended("%w0", "%a0", x), "%w1 = arith.addi %a2, %w0 : i32"]
    return _of_windows(function, x, (kernel, stride, [1] * len(kernel)), 0, body)


def _max_pool(function: _Function, kernel, stride, low, high, dilation) -> _Tensor:
    x = function.arguments[0]
    first = least(x.dtype)
    x = function.pad(x, low, high, first)
    op = "maxsi" if x.dtype.is_signed else "maxui"
    body = [f"%w0 = arith.{op} %a2, %a0 : i8"]
    return _of_windows(function, x, (kernel, stride, dilation), first, body)


_TEXTS = {
    "integer_convolution": _convolution,
    "center": _center,
    "requantize": _requantize,
    "requantize_channels": _requantize_channels,
    "dequantize_channels": _dequantize_channels,
    "dequantize": _dequantize,
    "quantize": _quantize,
    "integer_add": _add,
    "integer_product": _product,
    "shift_channels": _shift_channels,
    "shift": _shift,
    "shift_sum": _shift_sum,
    "integer_window_sums": _window_sums,
    "integer_max_pool": _max_pool,
}


def is_integer_operator(node) -> bool:
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and (
        target.namespace == "streamtensor" and target._opname in _TEXTS
    )


def text(node, name: str) -> str:
    """The function of a node of the graph."""
    function = _Function(node)
    numbers = [each for each in node.args if not isinstance(each, torch.fx.Node)]
    return function.text(name, _TEXTS[node.target._opname](function, *numbers))
