"""Proves that a step reads the rows of its cache as a set: whatever their order, and however many.

A step has its own keys in front of the cached ones, and reads only as many rows as there are. That
is right where each key is treated alike until a masked sum over all of them, as in attention. The
axis of the keys is followed through the exported graph. What numbers the keys, picks some of them,
sums them without a mask or joins them with a table by key is refused, except for tables of places
(position_tables) that are added in front of a softmax: an offset of all keys does not matter there.
"""

import math

import torch

from ..errors import Error
from .position_tables import NoTable, PositionTables

# how the code that makes masks is marked in the graph
MARK = {"streamtensor": "mask"}

_SAME = set(
    "clone contiguous to _to_copy type_as alias detach dropout native_dropout lift_fresh_copy "
    "_assert_tensor_metadata float".split()
)
_SOFTMAX = {"softmax", "_softmax", "log_softmax"}
_REDUCTIONS = {"sum", "amax", "max", "logsumexp"}
_OVER_WIDTH = {"mean", "var", "std"}
_NORMS = {"layer_norm", "rms_norm"}
# what may follow a sum with a table of places, up to the softmax
_AFTER_TABLES = {"add", "sub", "mul", "div", "masked_fill", "where", "expand", "unsqueeze"} | _SAME
_NEW = {"new_empty", "new_zeros", "new_ones", "new_full"}
_NEW_ALIKE = {"empty_like", "zeros_like", "ones_like", "full_like"}
_RESHAPES = {"view", "reshape", "_unsafe_view", "flatten", "unflatten"}


class _Unproved(Exception):
    """Why the rows are no set."""


def marked():
    """While active, nodes of the graph are marked as parts of a mask."""
    return torch.fx.traceback.annotate(MARK)


def check(program, shape, constants: list, place) -> None:
    """shape: of the step (`StepShape`). constants: values of the last inputs, None for those that
    differ from model to model. place: names the line of a node.
    """
    inputs = [node for node in program.graph.nodes if node.op == "placeholder"]
    inputs = inputs[len(inputs) - len(program.graph_signature.user_inputs) :]
    first = 1 + len(shape.scalar_names())
    states = inputs[first : first + 2 * shape.layers]
    keys = shape.tokens + shape.past
    known = zip(inputs[len(inputs) - len(constants) :], constants)
    known = {node: value for node, value in known if value is not None}
    axes = _Axes(
        keys,
        dict.fromkeys(states, 2),
        PositionTables(program.graph, inputs[1], shape, known),
    )
    for node in program.graph.nodes:
        try:
            axes.visit(node)
        except _Unproved as why:
            raise Error(
                f"a layer reads its cache otherwise than attention does: {node.target} "
                f"{why}{place(node)}",
                "accepted are decoders that treat cached keys alike, up to a masked sum over them",
            ) from None


class _Axes:
    """The axis of the keys in each node that has one, and which nodes are masked."""

    def __init__(self, keys: int, axes: dict, tables: PositionTables):
        self.keys, self.axis, self.masked, self.tables = keys, axes, set(), tables
        self.offset: set = set()  # nodes where all keys may be off by the same
        # of a node, entries in front of the keys, which belong to no key
        self.lead: dict = {}

    def visit(self, node) -> None:
        if node.op != "call_function":
            return
        if (node.meta.get("custom") or {}).items() >= MARK.items():
            value = node.meta["val"]
            self.masked.add(node)  # one number for all keys where the rows that are there are seen
            if isinstance(value, torch.Tensor) and value.dim() and value.shape[-1] == self.keys:
                self.axis[node] = value.dim() - 1
            return
        if not any(argument in self.axis for argument in node.all_input_nodes):
            if any(argument in self.masked for argument in node.all_input_nodes):
                self.masked.add(node)
            return
        name = getattr(node.target, "__name__", str(node.target)).split(".")[0]
        axis = self._axis(name, node)
        self._follow_offset(name.removesuffix("_"), node, axis)
        if axis is not None:
            self.axis[node] = axis
            leads = [self.lead.get(argument, 0) for argument in node.all_input_nodes]
            self.lead.setdefault(node, max(leads))
            if any(argument in self.masked for argument in node.all_input_nodes):
                self.masked.add(node)

    def _follow_offset(self, name: str, node, axis: int | None) -> None:
        """A softmax over the keys is the same whatever is added to all of them."""
        given = [each for each in node.all_input_nodes if each in self.offset]
        if not given:
            return
        if name in _SOFTMAX and axis in self._dims(node, node.args[1]):
            return
        keyed = sum(each in self.axis for each in node.all_input_nodes)
        if name not in _AFTER_TABLES | _RESHAPES or (name in ("mul", "div") and keyed > 1):
            raise _Unproved("joins keys with a table by key")
        self.offset.add(node)

    def _axis(self, name: str, node) -> int | None:
        name = name.removesuffix("_") if not name.startswith("_") else name
        for names, rule in (
            (_SAME, self._same),
            (_SOFTMAX, self._softmax),
            (_REDUCTIONS, self._reduction),
            (_OVER_WIDTH, self._over_width),
            (_NORMS, self._norm),
            (_RESHAPES, self._reshape),
            (_NEW, self._new),
            (_NEW_ALIKE, self._same),
        ):
            if name in names:
                return rule(node)
        rule = getattr(self, f"_{name}", None)
        if rule:
            return rule(node)
        if torch.Tag.pointwise in getattr(node.target, "tags", ()):
            return self._pointwise(node)
        raise _Unproved("picks or orders keys")

    def _same(self, node):
        return self.axis.get(node.args[0])

    def _dims(self, node, dims) -> list[int]:
        rank = node.args[0].meta["val"].dim()
        if dims is None:
            return list(range(rank))
        return [dim % rank for dim in (dims if isinstance(dims, (list, tuple)) else [dims])]

    def _softmax(self, node):
        axis = self.axis[node.args[0]]
        if axis in self._dims(node, node.args[1]) and node.args[0] not in self.masked:
            raise _Unproved("is over keys that no mask hides")
        return axis

    def _reduction(self, node):
        source = node.args[0]
        dims = self._dims(node, node.args[1] if len(node.args) > 1 else None)
        keep = len(node.args) > 2 and node.args[2]
        if self.axis[source] in dims:
            if source not in self.masked:
                raise _Unproved("is over keys that no mask hides")
            return None
        return self.axis[source] - (0 if keep else sum(dim < self.axis[source] for dim in dims))

    def _over_width(self, node):
        source = node.args[0]
        given = node.args[1] if len(node.args) > 1 else None
        dims = self._dims(node, given)
        if self.axis[source] in dims:
            raise _Unproved("is over keys that no mask hides")
        same = node.meta["val"].dim() == source.meta["val"].dim()
        return self.axis[source] - (0 if same else sum(d < self.axis[source] for d in dims))

    def _norm(self, node):
        source = node.args[0]
        if self.axis[source] >= source.meta["val"].dim() - len(node.args[1]):
            raise _Unproved("is over keys that no mask hides")
        return self.axis[source]

    def _reshape(self, node):
        source = node.args[0]
        axis, old, new = self.axis[source], source.meta["val"].shape, node.meta["val"].shape
        before = math.prod(old[:axis])
        for dim, extent in enumerate(new):
            if extent == old[axis] and math.prod(new[:dim]) == before:
                return dim
        raise _Unproved("joins keys with other elements")

    def _new(self, node):
        """A tensor of the same numbers for all keys, of a shape that has their dim."""
        shape = node.meta["val"].shape
        if list(shape).count(self.keys) != 1:
            raise _Unproved("joins keys with other elements")
        return list(shape).index(self.keys)

    def _copy(self, node):
        target, source = node.args[:2]
        axis, value = self.axis.get(target), source.meta["val"]
        own = None if axis is None else axis - target.meta["val"].dim() + value.dim()
        if self.axis.get(source, own) != own or source not in self.axis and value.shape[own] != 1:
            raise _Unproved("joins keys with a table by key")
        return axis

    def _slice_scatter(self, node):
        (dim,) = self._dims(node, node.args[2] if len(node.args) > 2 else 0)
        axis = self._copy(node)
        if dim == axis:
            raise _Unproved("picks some of the keys")
        return axis

    def _cat(self, node):
        parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else 0
        rank = node.meta["val"].dim()
        axes = {self.axis[part] for part in parts if part in self.axis}
        if len(axes) != 1:
            raise _Unproved("joins keys with other elements")
        (axis,) = axes
        others = [part for part in parts if part not in self.axis]
        if dim % rank != axis and others:
            raise _Unproved("joins keys with a table by key")
        if dim % rank == axis and node.meta["val"].shape[axis] > self.keys:
            # as the sinks of attention; the rows of a run-time extent come last
            node.update_arg(0, [*others, *(part for part in parts if part in self.axis)])
            self.lead[node] = node.meta["val"].shape[axis] - self.keys
        return axis

    def _stack(self, node):
        axes = [self.axis.get(part) for part in node.args[0]]
        if len(set(axes)) != 1:
            raise _Unproved("joins keys with a table by key")
        dim = (node.args[1] if len(node.args) > 1 else 0) % node.meta["val"].dim()
        return axes[0] + (dim <= axes[0])

    def _transpose(self, node):
        first, second = self._dims(node, node.args[1:3])
        return {first: second, second: first}.get(self.axis[node.args[0]], self.axis[node.args[0]])

    def _t(self, node):
        return node.meta["val"].dim() - 1 - self.axis[node.args[0]]

    def _permute(self, node):
        return self._dims(node, node.args[1]).index(self.axis[node.args[0]])

    def _unsqueeze(self, node):
        dim = node.args[1] % node.meta["val"].dim()
        return self.axis[node.args[0]] + (dim <= self.axis[node.args[0]])

    def _squeeze(self, node):
        source = node.args[0]
        dims = self._dims(node, node.args[1] if len(node.args) > 1 else None)
        gone = [dim for dim in dims if source.meta["val"].shape[dim] == 1]
        return self.axis[source] - sum(dim < self.axis[source] for dim in gone)

    def _expand(self, node):
        source = node.args[0]
        return self.axis[source] + node.meta["val"].dim() - source.meta["val"].dim()

    def _repeat(self, node):
        axis = self._expand(node)
        if node.args[1][axis] != 1:
            raise _Unproved("repeats keys")
        return axis

    def _repeat_interleave(self, node):
        if node.kwargs.get("dim", node.args[2] if len(node.args) > 2 else None) is None:
            raise _Unproved("repeats keys")
        (dim,) = self._dims(node, node.kwargs.get("dim", node.args[2] if len(node.args) > 2 else 0))
        if dim == self.axis[node.args[0]]:
            raise _Unproved("repeats keys")
        return self.axis[node.args[0]]

    def _slice(self, node):
        source, (dim, start) = node.args[0], (*node.args[1:], 0, None)[:2]
        axis = self.axis[source]
        if self._dims(node, dim) != [axis]:
            return axis
        if (start or 0) != 0 or node.meta["val"].shape[axis] < self.keys:
            raise _Unproved("picks some of the keys")
        lead = self.lead.get(source, 0)
        if lead and node.meta["val"].shape[axis] == self.keys:
            node.args = (source, dim, lead, lead + self.keys)
            self.lead[node] = 0
        return axis

    def _select(self, node):
        (dim,) = self._dims(node, node.args[1])
        if dim == self.axis[node.args[0]]:
            raise _Unproved("picks one of the keys")
        return self.axis[node.args[0]] - (dim < self.axis[node.args[0]])

    def _split(self, node):
        (dim,) = self._dims(node, node.args[2] if len(node.args) > 2 else 0)
        if dim == self.axis[node.args[0]]:
            raise _Unproved("picks some of the keys")
        return self.axis[node.args[0]]

    _chunk = _split_with_sizes = _split

    def _getitem(self, node):
        return self.axis[node.args[0]]

    def _linear(self, node):
        source = node.args[0]
        if self.axis.get(source) is None or self.axis[source] == source.meta["val"].dim() - 1:
            raise _Unproved("joins keys with a table by key")
        return self.axis[source]

    def _matmul(self, node):
        first, second = node.args[:2]
        ranks = [side.meta["val"].dim() for side in (first, second)]
        if min(ranks) < 2:
            raise _Unproved("joins keys with a table by key")
        return self._product(
            node, (first, ranks[0] - 1, ranks[0] - 2), (second, ranks[1] - 2, ranks[1] - 1)
        )

    _bmm = _mm = _matmul

    def _product(self, node, first, second):
        """A product of matrices: (tensor, its summed axis, its other axis) of each side."""
        rank = node.meta["val"].dim()
        (left, left_sum, left_row), (right, right_sum, right_row) = first, second
        summed = self.axis.get(left) == left_sum, self.axis.get(right) == right_sum
        if any(summed):
            if not all(summed):
                raise _Unproved("joins keys with a table by key")
            if left not in self.masked and right not in self.masked:
                raise _Unproved("is over keys that no mask hides")
            return None
        found = (
            [rank - 2 if self.axis[left] == left_row else self.axis[left] + rank - left_sum - 1]
            if left in self.axis
            else []
        )
        if right in self.axis:
            behind = right.meta["val"].dim()
            axis = self.axis[right]
            found.append(rank - 1 if axis == right_row else axis + rank - behind)
        if len(set(found)) != 1:
            raise _Unproved("joins keys with keys")
        (axis,) = set(found)
        if axis < rank - 2:
            self._check_tables(node, (left, right), axis)
        return axis

    def _baddbmm(self, node):
        added, first, second = node.args[:3]
        return self._sum(node, added, self._product(node, (first, 2, 1), (second, 1, 2)))

    def _addmm(self, node):
        added, first, second = node.args[:3]
        return self._sum(node, added, self._product(node, (first, 1, 0), (second, 0, 1)))

    def _sum(self, node, added, axis):
        """Of a product whose axis is given and what is added to it, which beta=0 leaves out."""
        return axis if node.kwargs.get("beta") == 0 else self._joined(node, [added], axis)

    def _einsum(self, node):
        spec, sides = node.args[0].replace(" ", ""), node.args[1]
        inputs, _, output = spec.partition("->")
        letters = {
            letters[self.axis[side]]
            for letters, side in zip(inputs.split(","), sides)
            if side in self.axis
        }
        if len(letters) != 1 or "." in spec:
            raise _Unproved("joins keys with keys")
        (letter,) = letters
        for letters, side in zip(inputs.split(","), sides):
            if letter in letters and side not in self.axis:
                raise _Unproved("joins keys with a table by key")
        if letter in output:
            return output.index(letter)
        if not any(side in self.masked for side in sides):
            raise _Unproved("is over keys that no mask hides")
        return None

    def _pointwise(self, node):
        return self._joined(node, node.all_input_nodes, None)

    def _joined(self, node, operands, axis):
        """The axis behind a broadcast of operands, and of a result whose axis is given."""
        rank = node.meta["val"].dim()
        found = {
            self.axis[each] + rank - each.meta["val"].dim()
            for each in operands
            if each in self.axis
        } | ({axis} if axis is not None else set())
        if len(found) != 1:
            raise _Unproved("joins keys with keys")
        (axis,) = found
        self._check_tables(node, operands, axis)
        return axis

    def _check_tables(self, node, operands, axis: int) -> None:
        """Every operand that differs along the axis of the keys has the keys there."""
        rank = node.meta["val"].dim()
        for each in operands:
            value = each.meta.get("val")
            if each in self.axis or not isinstance(value, torch.Tensor):
                continue
            dim = axis - rank + value.dim()
            if dim >= 0 and value.shape[dim] != 1:
                self._place_table(node, each, dim)

    def _place_table(self, node, table, dim: int) -> None:
        """Numbers the entries of the table by the places of the keys."""
        placed = self.tables.seen(node, table, dim)
        if placed is None:
            try:
                placed = self.tables.placed(node, table, dim)
            except NoTable:
                raise _Unproved("joins keys with a table by key") from None
            self.offset.add(node)
        node.replace_input_with(table, placed)
        self.axis[placed] = dim
