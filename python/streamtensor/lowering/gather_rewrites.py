"""Rewrites x[numbers] in an exported graph into operations that the compiler reads.

The compiler gathers whole rows from memory, of an argument or a constant. Constant indices
elsewhere become slices of x that are concatenated. All other indices, and constant ones that need
many slices, become a one-hot selection: comparison with 0, 1, … along the dim, and a masked sum.
"""

import itertools

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

_aten = torch.ops.aten
MAX_SLICES = 16  # along one dim: each slice becomes a stream
MAX_COMPARISONS = 1 << 28
_SHAPED = {
    _aten.view.default,
    _aten.reshape.default,
    _aten._unsafe_view.default,
    _aten.alias.default,
}


def rewrite(graph, values: dict) -> None:
    """values: the nodes with constant values; constants that are added are added to it."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _READS or node in values:
            continue
        with graph.inserting_before(node):
            fresh = _READS[node.target](_GraphEditor(graph, values), *node.args)
        if fresh is not None:
            node.replace_all_uses_with(fresh)


class _GraphEditor:
    """Adds nodes to a graph at the current position."""

    def __init__(self, graph, values: dict):
        self.graph, self.values = graph, values

    def known(self, value: torch.Tensor):
        node = self.graph.call_function(
            _aten.full.default, (list(value.shape), 0), {"dtype": value.dtype}
        )
        with FakeTensorMode():
            node.meta = {"val": torch.empty(value.shape, dtype=value.dtype)}
        self.values[node] = value
        return node

    def written(self, function, *nodes):
        """Adds the operations that PyTorch traces of `function` on these nodes."""
        with FakeTensorMode():
            alike = [
                torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                for value in map(_value, nodes)
            ]
            traced = make_fx(function)(*alike).graph
        stands = dict(zip((node for node in traced.nodes if node.op == "placeholder"), nodes))
        for node in traced.nodes:
            if node.op == "call_function":
                stands[node] = self.graph.node_copy(node, stands.__getitem__)
        return stands[traced.output_node().args[0]]

    def is_in_memory(self, node) -> bool:
        while node.target in _SHAPED:
            node = node.args[0]
        return node in self.values or node.op != "call_function"


def _value(node) -> torch.Tensor:
    return node.meta["val"]


def _index(place, x, indices):
    """x[…, numbers, …]: indices of one dim, of several dims with separate result dims, or of
    several dims that are flattened into one.
    """
    found = {dim: index for dim, index in enumerate(indices) if index is not None}
    if any(_value(index).dtype in (torch.bool, torch.uint8) for index in found.values()):
        return None
    shape, dims = _value(x).shape, list(found)
    if (
        len(dims) > 1
        and dims == list(range(dims[0], dims[-1] + 1))
        and _index_distinct_dims(list(found.values()))
    ):
        for dim, index in found.items():
            x = _index_dim(
                place,
                x,
                dim,
                place.known(place.values[index].flatten())
                if index in place.values
                else place.written(torch.flatten, index),
            )
        return x
    if len(dims) == 1:
        return _index_dim(place, x, dims[0], found[dims[0]])
    first = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0
    order = [dim for dim in range(len(shape)) if dim not in found]
    order[first:first] = dims
    numbers = [place.values.get(index) for index in found.values()]
    extents = [shape[dim] for dim in dims]
    at = (
        place.known(flat_index(extents, *numbers))
        if all(number is not None for number in numbers)
        else place.written(lambda *each: flat_index(extents, *each), *found.values())
    )
    return _index_dim(
        place,
        place.written(lambda table: table.permute(order).flatten(first, first + len(dims) - 1), x),
        first,
        at,
    )


def _index_distinct_dims(indices: list) -> bool:
    """Whether the n-th index varies along the n-th result dim only."""
    shapes = [tuple(_value(index).shape) for index in indices]
    rank = max(map(len, shapes))
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return rank == len(indices) and all(
        extent == 1 or dim == at
        for at, shape in enumerate(wide)
        for dim, extent in enumerate(shape)
    )


def nonnegative_index(numbers, extent: int):
    return torch.where(numbers < 0, numbers + extent, numbers)


def flat_index(extents: list[int], *numbers):
    """The index into the flattened dims."""
    found = nonnegative_index(numbers[0], extents[0])
    for extent, number in zip(extents[1:], numbers[1:]):
        found = found * extent + nonnegative_index(number, extent)
    return found


def _order(node) -> list[int] | None:
    """The dims of its source that a permutation has, in its order."""
    if node.target is _aten.permute.default:
        return [dim % len(node.args[1]) for dim in node.args[1]]
    if node.target is not _aten.transpose.int:
        return None
    order = list(range(_value(node).ndim))
    first, second = node.args[1:]
    order[first], order[second] = order[second], order[first]
    return order


def _index_dim(place, x, dim: int, index):
    """x[…, index, …] along one dim."""
    order = _order(x)
    if dim == 0 and order and order[0] == 0 and place.is_in_memory(x.args[0]):
        before = _value(index).ndim - 1  # the rows' own dims are permuted behind the gather
        return place.written(
            lambda rows: rows.permute([*range(before + 1), *(before + at for at in order[1:])]),
            _index_dim(place, x.args[0], 0, index),
        )
    extent, shape = _value(x).shape[dim], list(_value(index).shape)
    in_memory = dim == 0 and place.is_in_memory(x)
    at = (
        nonnegative_index(place.values[index], extent).flatten().tolist()
        if index in place.values
        else None
    )
    if at and _slices_of(at) <= (1 if in_memory else MAX_SLICES):
        return place.written(
            lambda table: (
                _sliced(table, dim, at).unflatten(dim, shape)
                if len(shape) != 1
                else _sliced(table, dim, at)
            ),
            x,
        )
    if at and in_memory:
        rows = place.known(torch.tensor(at))
        return place.written(
            lambda table, row: (
                table.index_select(0, row).unflatten(0, shape)
                if len(shape) != 1
                else table.index_select(0, row)
            ),
            x,
            rows,
        )
    if in_memory or _value(x).numel() * _value(index).numel() > MAX_COMPARISONS:
        return place.written(
            lambda table, row: torch.ops.aten.index.Tensor(table, [None] * dim + [row]), x, index
        )
    return place.written(lambda table, row: _index_by_comparison(table, dim, row), x, index)


def _index_by_comparison(x, dim: int, index):
    numbers = nonnegative_index(index, x.shape[dim]).flatten().unsqueeze(-1)
    found = select_masked(
        x.movedim(dim, -1).unsqueeze(-2), numbers == torch.arange(x.shape[dim], device=x.device)
    )
    return found.movedim(-1, dim).reshape(x.shape[:dim] + index.shape + x.shape[dim + 1 :])


def select_masked(x, mask):
    """The element of the last dim where the mask is true; the mask has one true element."""
    if x.dtype == torch.bool:
        return (x & mask).any(-1)
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype)).sum(-1, dtype=x.dtype)


def first_true(mask):
    """The index of the first true element of the last dim; its extent if there is none."""
    place = torch.arange(mask.shape[-1], device=mask.device)
    return torch.where(mask, place, torch.full((), mask.shape[-1])).amin(-1)


def _runs(at: list[int]) -> list[tuple[int, int, int]]:
    """Maximal runs of evenly spaced indices: first, step, count."""
    runs = []
    for number in at:
        first, step, count = runs[-1] if runs else (number, 0, 0)
        if count == 1 or (count > 1 and number == first + step * count):
            runs[-1] = first, number - first if count == 1 else step, count + 1
        else:
            runs.append((number, 0, 1))
    return runs


def _period(at: list[int]) -> int | None:
    """The length of a group of indices that repeats with a constant offset."""
    for period in range(1, len(at) // 2 + 1):
        step = at[period] - at[0]
        if (
            len(at) % period == 0
            and step > 0
            and all(number + step == later for number, later in zip(at, at[period:]))
        ):
            return period
    return None


def _columns(at: list[int]) -> list[tuple[int, int]]:
    """The distinct indices of a period, and how often each is repeated."""
    return [(number, len(list(same))) for number, same in itertools.groupby(at)]


def _slices_of(at: list[int]) -> int:
    period = _period(at)
    return min([len(_runs(at))] + [len(_columns(at[:period]))] * bool(period))


def _sliced(x, dim: int, at: list[int]):
    period = _period(at)
    if period and len(_columns(at[:period])) < len(_runs(at)):
        step, count = at[period] - at[0], len(at) // period
        parts = [
            _slice(x, dim, number, step, count).unsqueeze(dim + 1)
            for number, _ in _columns(at[:period])
        ]
        wide = [
            part.expand([*part.shape[: dim + 1], often, *part.shape[dim + 2 :]])
            for part, (_, often) in zip(parts, _columns(at[:period]))
        ]
        return torch.cat(wide, dim + 1).flatten(dim, dim + 1)
    parts = [_run(x, dim, *run) for run in _runs(at)]
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0]


def _run(x, dim: int, first: int, step: int, count: int):
    if step == 0:
        part = x.narrow(dim, first, 1)
        return part.expand([*part.shape[:dim], count, *part.shape[dim + 1 :]])
    return (
        _slice(x, dim, first, step, count)
        if step > 0
        else _slice(x, dim, first + step * (count - 1), -step, count).flip(dim)
    )


def _slice(x, dim: int, first: int, step: int, count: int):
    return torch.ops.aten.slice.Tensor(x, dim, first, first + step * (count - 1) + 1, step)


def _gather(place, x, dim, index, sparse_grad=False):
    """Selects within each row by an index of its own."""
    dim %= max(_value(x).ndim, 1)
    if _value(x).ndim == 0 or _value(index).numel() * _value(x).shape[dim] > MAX_COMPARISONS:
        return None

    def of_rows(table, numbers):
        for other, extent in enumerate(numbers.shape):
            table = table if other == dim else table.narrow(other, 0, extent)
        mask = numbers.movedim(dim, -1).unsqueeze(-1) == torch.arange(
            table.shape[dim], device=numbers.device
        )
        return select_masked(table.movedim(dim, -1).unsqueeze(-2), mask).movedim(-1, dim)

    return place.written(of_rows, x, index)


def _index_select(place, x, dim, index):
    return (
        _index(place, x, [None] * (dim % max(_value(x).ndim, 1)) + [index])
        if _value(x).ndim
        else None
    )


def _embedding(place, table, index, *options):
    return None if place.is_in_memory(table) else _index(place, table, [index])


_READS = {
    _aten.index.Tensor: _index,
    _aten._unsafe_index.Tensor: _index,
    _aten.index_select.default: _index_select,
    _aten.gather.default: _gather,
    _aten.embedding.default: _embedding,
}
