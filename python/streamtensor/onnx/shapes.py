"""ONNX's operators that move elements: shapes, parts, gathers, joins and repetitions."""

import math

import torch
import torch.nn.functional as F

from .node import operator


@operator("Reshape")
def _reshape(node, x, shape):
    wanted = node.known_ints(1, "shape")
    if not node.integer("allowzero", 0):
        if any(each == 0 and at >= x.ndim for at, each in enumerate(wanted)):
            raise node.refuse(f"has the shape {wanted} for {list(x.shape)}", "a 0 for a dim of it")
        wanted = [x.shape[at] if each == 0 else each for at, each in enumerate(wanted)]
    return x.reshape(wanted)


@operator("Flatten")
def _flatten(node, x):
    axis = node.integer("axis", 1)
    axis = axis if axis == x.ndim else node.axis(axis, x.ndim)
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Transpose")
def _transpose(node, x):
    order = node.integers("perm", list(reversed(range(x.ndim))))
    if sorted(order) != list(range(x.ndim)):
        raise node.refuse(f"has perm={order} for {x.ndim} dims", "each dim once")
    return x.permute(order)


@operator("Squeeze")
def _squeeze(node, x, axes=None):
    given = node.list_of(1, "axes", 13, 1 + (axes is not None))
    every = [at for at, extent in enumerate(x.shape) if extent == 1]
    dims = every if given is None else node.axes(given, x.ndim)
    if not set(dims) <= set(every):
        raise node.refuse(f"has axes={given} for {list(x.shape)}", "axes of extent 1")
    return x.reshape([extent for at, extent in enumerate(x.shape) if at not in dims])


@operator("Unsqueeze")
def _unsqueeze(node, x, axes=None):
    given = node.list_of(1, "axes", 13, 1 + (axes is not None))
    if given is None:
        raise node.refuse("has no axes", "a list of them")
    rank = x.ndim + len(given)
    dims, left = node.axes(given, rank), iter(x.shape)
    return x.reshape([1 if at in dims else next(left) for at in range(rank)])


@operator("Expand")
def _expand(node, x, shape):
    wanted = torch.broadcast_shapes(tuple(x.shape), tuple(node.known_ints(1, "shape")))
    return x.expand(wanted)


@operator("Tile")
def _tile(node, x, repeats):
    times = node.known_ints(1, "repeats")
    if len(times) != x.ndim:
        raise node.refuse(f"has {len(times)} repeats for {x.ndim} dims", "one for each dim")
    return x.repeat(times)


@operator("Concat")
def _concat(node, *values):
    axis = node.integer("axis")
    if axis is None:
        raise node.refuse("has no axis", "one")
    return torch.cat(values, node.axis(axis, values[0].ndim))


@operator("Split")
def _split(node, x, sizes=None):
    axis = node.axis(node.integer("axis", 0), x.ndim)
    given = node.list_of(1, "split", 13, 1 + (sizes is not None))
    count = (
        node.integer("num_outputs", len(node.outputs)) if node.opset >= 18 else len(node.outputs)
    )
    extent = x.shape[axis]
    if given is None:
        part = -(-extent // count) if node.opset >= 18 else extent // count
        given = [part] * (count - 1) + [extent - part * (count - 1)]
        if node.opset < 18 and extent % count:
            raise node.refuse(f"splits {extent} into {count} equal parts", "sizes in `split`")
    if sum(given) != extent or min(given, default=0) < 0 or len(given) != len(node.outputs):
        raise node.refuse(f"splits {extent} into {given}", f"{len(node.outputs)} parts of it")
    return tuple(torch.split(x, given, axis))


@operator("Slice")
def _slice(node, x, starts, ends, axes=None, steps=None):
    begin, end = node.known_ints(1, "starts"), node.known_ints(2, "ends")
    dims = list(range(len(begin))) if axes is None else node.known_ints(3, "axes")
    step = [1] * len(begin) if steps is None else node.known_ints(4, "steps")
    if not len(begin) == len(end) == len(dims) == len(step) or 0 in step:
        raise node.refuse(
            f"has starts={begin}, ends={end}, axes={dims}, steps={step}", "one of each for an axis"
        )
    for dim, first, last, by in zip(node.axes(dims, x.ndim), begin, end, step):
        x = _sliced(x, dim, first, last, by)
    return x


def _sliced(x, dim: int, first: int, last: int, by: int):
    first, last, by = slice(first, last, by).indices(x.shape[dim])
    if by > 0:
        return torch.ops.aten.slice.Tensor(x, dim, first, max(last, first), by)
    count = len(range(first, last, by))
    if not count:
        return torch.ops.aten.slice.Tensor(x, dim, 0, 0, 1)
    least = first + (count - 1) * by
    return torch.ops.aten.slice.Tensor(x, dim, least, first + 1, -by).flip(dim)


def _positive(node, x, indices, axis: int):
    """Indices from the front; those that are known are checked."""
    extent = x.shape[axis]
    if 1 in node.constants:
        known = node.numbers(1, "indices") if node.constants[1].numel() < 2**16 else []
        wrong = [each for each in known if not -extent <= each < extent]
        if wrong:
            raise node.refuse(
                f"has the index {wrong[0]} of {extent} elements", f"{-extent} to {extent - 1}"
            )
        if all(each >= 0 for each in known):
            return indices
    return torch.where(indices < 0, indices + extent, indices)


@operator("Gather")
def _gather(node, x, indices):
    axis = node.axis(node.integer("axis", 0), x.ndim)
    if 1 in node.constants and node.constants[1].numel() == 1:
        _positive(node, x, indices, axis)
        at = node.number(1, "indices") % x.shape[axis]
        part = torch.ops.aten.slice.Tensor(x, axis, at, at + 1, 1)
        shape = [*x.shape[:axis], *node.constants[1].shape, *x.shape[axis + 1 :]]
        return part.reshape(shape)
    flat = _positive(node, x, indices, axis).reshape(-1)
    found = torch.index_select(x, axis, flat)
    return found.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


@operator("GatherElements")
def _gather_elements(node, x, indices):
    axis = node.axis(node.integer("axis", 0), x.ndim)
    return torch.gather(x, axis, _positive(node, x, indices, axis).long())


@operator("GatherND")
def _gather_nd(node, x, indices):
    if node.integer("batch_dims", 0):
        raise node.refuse(f"has batch_dims={node.integer('batch_dims')}", "batch_dims=0")
    places = [
        torch.where(part < 0, part + x.shape[at], part)
        for at, part in enumerate(indices.unbind(-1))
    ]
    return x[tuple(places)]


@operator("Pad")
def _pad(node, x, pads=None, value=None, axes=None):
    mode = node.choice("mode", ("constant", "reflect", "edge", "wrap"), "constant")
    widths = node.known_ints(1, "pads")
    dims = list(range(x.ndim)) if axes is None else node.axes(node.known_ints(3, "axes"), x.ndim)
    if len(widths) != 2 * len(dims):
        raise node.refuse(f"has {len(widths)} pads for {len(dims)} axes", "two for each")
    low, high = [0] * x.ndim, [0] * x.ndim
    for at, dim in enumerate(dims):
        low[dim], high[dim] = widths[at], widths[at + len(dims)]
    if mode == "constant":
        fill = node.number(2, "value") if value is not None else 0
        return F.pad(x, [each for pair in zip(low[::-1], high[::-1]) for each in pair], value=fill)
    for dim, ends in enumerate(zip(low, high)):
        x = _mirrored(node, x, mode, dim, ends)
    return x


def _mirrored(node, x, mode: str, dim: int, ends: tuple[int, int]):
    """What the border is filled with stands inside: slices of it."""
    low, high = ends
    extent = x.shape[dim]
    if not low and not high:
        return x
    most = {"reflect": extent - 1, "wrap": extent}.get(mode, max(low, high))
    if min(low, high) < 0 or max(low, high) > most:
        raise node.refuse(
            f"has pads of {low} and {high} for {extent} elements with mode={mode}",
            f"0 to {most}" if mode != "edge" else "positive ones",
        )

    def part(first, count):
        return torch.ops.aten.slice.Tensor(x, dim, first, first + count, 1)

    shape = list(x.shape)
    if mode == "edge":
        shapes = [[*shape[:dim], each, *shape[dim + 1 :]] for each in ends]
        parts = part(0, 1).expand(shapes[0]), x, part(extent - 1, 1).expand(shapes[1])
    elif mode == "reflect":
        parts = part(1, low).flip(dim), x, part(extent - 1 - high, high).flip(dim)
    else:
        parts = part(extent - low, low), x, part(0, high)
    return torch.cat([each for each in parts if each.shape[dim]], dim)


@operator("DepthToSpace")
def _depth_to_space(node, x):
    size = node.integer("blocksize")
    mode = node.choice("mode", ("DCR", "CRD"), "DCR")
    batch, depth, rows, columns = x.shape
    if not size or size < 1 or depth % size**2:
        raise node.refuse(f"has blocksize={size} for {depth} channels", "a divisor's root")
    channels = depth // size**2
    if mode == "CRD":
        return F.pixel_shuffle(x, size)
    parts = x.reshape(batch, size, size, channels, rows, columns).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(batch, channels, rows * size, columns * size)


@operator("SpaceToDepth")
def _space_to_depth(node, x):
    size = node.integer("blocksize")
    batch, channels, rows, columns = x.shape
    if not size or size < 1 or rows % size or columns % size:
        raise node.refuse(f"has blocksize={size} for {rows}x{columns}", "a divisor of both")
    parts = x.reshape(batch, channels, rows // size, size, columns // size, size)
    return parts.permute(0, 3, 5, 1, 2, 4).reshape(
        batch, channels * size**2, rows // size, columns // size
    )


@operator("Trilu")
def _triangle(node, x, k=None):
    diagonal = 0 if k is None else node.number(1, "k")
    return torch.triu(x, diagonal) if node.integer("upper", 1) else torch.tril(x, diagonal)


@operator("OneHot")
def _one_hot(node, indices, depth, values):
    count, axis = int(node.number(1, "depth")), node.integer("axis", -1)
    axis = node.axis(axis, indices.ndim + 1)
    off, on = node.numbers(2, "values")
    dtype = node.constants[2].dtype
    places = torch.arange(count).reshape([-1] + [1] * (indices.ndim - axis))
    at = torch.where(indices < 0, indices + count, indices).unsqueeze(axis)
    filled = [torch.full((), each, dtype=dtype) for each in (on, off)]
    return torch.where(at == places, *filled)


@operator("CumSum")
def _running_sum(node, x, axis):
    dim = node.axis(int(node.number(1, "axis")), x.ndim)
    reverse, exclusive = node.integer("reverse", 0), node.integer("exclusive", 0)
    found = torch.cumsum(x.flip(dim) if reverse else x, dim)
    if exclusive:
        found = found - (x.flip(dim) if reverse else x)
    return (found.flip(dim) if reverse else found).to(x.dtype)


@operator("ConstantOfShape")
def _filled(node, shape):
    fill, dtype = node.fill()
    return torch.full(node.known_ints(0, "shape"), fill, dtype=dtype)


@operator("Range")
def _range(node, start, limit, step):
    first, last, by = (node.number(at, name) for at, name in enumerate(("start", "limit", "delta")))
    count = max(math.ceil((last - first) / by), 0) if by else 0
    if not by or count > 2**24:
        raise node.refuse(f"has start {first}, limit {last}, delta {by}", "at most 2^24 numbers")
    made = torch.arange(count, dtype=torch.float64 if start.is_floating_point() else torch.int64)
    return (made * by + first).to(start.dtype)
