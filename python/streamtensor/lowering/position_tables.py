"""Tables by key, as attention with linear biases adds them to its scores.

transformers numbers the keys by their places in the text. A step has its own keys in front of the
cached ones, so that the numbers in a table become those places:

    arange(keys) * slope  ->  where(key < tokens, positions + key, key - tokens) * slope

A constant square table of the keys that each query sees, as some models keep for themselves, is
computed from places where every query sees the same number of last keys:

    tril(ones)[keys - tokens : keys, : keys]  ->  place of the query >= place of the key
"""

import math

import torch

from .narrow_integers import called

_aten = torch.ops.aten
_RESHAPES = {"view", "reshape", "_unsafe_view"}
_SAME = {"to", "_to_copy", "clone", "contiguous", "alias", "lift_fresh_copy", "detach"}
# what keeps an offset of all keys an offset of all keys
_OF_OFFSETS = {"mul", "div", "neg", "add", "sub"}
_HALVES = (torch.float16, torch.bfloat16)


class NoTable(Exception):
    """The numbers do not follow from the places of the keys by what this file knows."""


class PositionTables:
    """Makes the tables of one step."""

    def __init__(self, graph, positions, shape, constants: dict):
        """positions: the input that holds the place of the first token. shape: of the step
        (`StepShape`). constants: inputs that are the same in every step, with their values.
        """
        self.graph, self.positions = graph, positions
        self.tokens, self.keys = shape.tokens, shape.tokens + shape.past
        self.one_text = shape.batch == 1  # all places are counted from one beginning
        self._values: dict = dict(constants)

    def placed(self, user, table, dim: int):
        """A node for `table`, whose entries along `dim` are numbered by place, with an entry for
        each key of the step.
        """
        if not self.one_text:
            raise NoTable
        with self.graph.inserting_before(user):
            return _Walk(self)._at(table, dim, self._places(user))

    def seen(self, user, table, dim: int):
        """A node for a `table` of the keys that each query sees; None: it is no such table."""
        found = self._band(table, dim)
        if not found:
            return None
        queries, width = found
        with self.graph.inserting_before(user):
            age = self._ages(user, table.meta["val"].dim(), queries, dim)
            sees = called(self.graph, _aten.lt.Scalar, (age, width), {}, user)
            if self.tokens > 1:
                known = called(self.graph, _aten.ge.Scalar, (age, 0), {}, user)
                sees = called(self.graph, _aten.logical_and.default, (sees, known), {}, user)
            kind = {"dtype": table.meta["val"].dtype}
            return called(self.graph, _aten._to_copy.default, (sees,), kind, user)

    def _band(self, node, dim: int) -> tuple[int, int] | None:
        """The dim of the queries, and how many of the last keys each of them sees."""
        spans = {}
        while _name(node) == "slice" and len(node.args) < 5:
            source, at, *ends = (*node.args, 0)[: max(len(node.args), 2)]
            extent = source.meta["val"].shape[at]
            if at in spans:
                return None
            spans[at] = range(extent)[slice(*(*ends, None, None)[:2])]
            node = source
        value = self.value(node)
        if value is None or spans.get(dim, range(value.shape[dim])) != range(self.keys):
            return None
        new = range(self.keys - self.tokens, self.keys)
        queries = [at for at in range(dim) if spans.get(at, range(value.shape[at])) == new]
        if len(queries) != 1 or value.numel() != value.shape[queries[0]] * value.shape[dim]:
            return None
        width = _width(value.movedim((queries[0], dim), (-2, -1)).squeeze())
        return width and (queries[0], width)

    def _ages(self, like, rank: int, queries: int, dim: int):
        """The places of the queries less those of the keys."""
        graph, device = self.graph, self.positions.meta["val"].device
        kind = {"dtype": torch.long, "device": device}
        first = called(graph, _aten.reshape.default, (self.positions, [1]), {}, like)
        places = called(graph, _aten.arange.default, (self.tokens,), kind, like)
        places = called(graph, _aten.add.Tensor, (places, first), {}, like)
        sides = []
        for given, at in ((places, queries), (self._places(like), dim)):
            shape = [-1 if each == at else 1 for each in range(rank)]
            sides.append(called(graph, _aten.reshape.default, (given, shape), {}, like))
        return called(graph, _aten.sub.Tensor, tuple(sides), {}, like)

    def value(self, node) -> torch.Tensor | None:
        """The numbers of a node; None: they depend on inputs."""
        if node not in self._values:
            self._values[node] = self._evaluated(node)
        return self._values[node]

    def _evaluated(self, node):
        if node.op != "call_function" or not isinstance(node.meta.get("val"), torch.Tensor):
            return None
        known = {each: self.value(each) for each in node.all_input_nodes}
        if any(value is None for value in known.values()):
            return None
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "cpu"}
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return None
        return node.target(*args, **kwargs)

    def _places(self, like):
        graph = self.graph
        keys = called(
            graph,
            _aten.arange.default,
            (self.keys,),
            {"dtype": torch.long, "device": self.positions.meta["val"].device},
            like,
        )
        first = called(graph, _aten.reshape.default, (self.positions, [1]), {}, like)
        new = called(graph, _aten.add.Tensor, (keys, first), {}, like)
        old = called(graph, _aten.sub.Tensor, (keys, self.tokens), {}, like)
        is_new = called(graph, _aten.lt.Scalar, (keys, self.tokens), {}, like)
        return called(graph, _aten.where.self, (is_new, new, old), {}, like)


class _Walk:
    """From a table to the numbers of its keys."""

    def __init__(self, tables: PositionTables):
        self.tables, self.graph = tables, tables.graph
        self.counts_back = False  # the numbers are off by the same for all keys

    def _at(self, node, dim: int, places):
        value = self.tables.value(node)
        line = None if value is None else _line(value, dim)
        if line:
            self.counts_back |= line[0] != 0
            return self._numbers(node, dim, line, places)
        if node.op != "call_function":
            raise NoTable
        name = node.target.__name__.split(".")[0]
        if name == "slice" and self._dim(node.args[0], node.args[1:2] or (0,)) == dim:
            return self._sliced(node, dim, places)
        found = self._copied(node, name, dim, places)
        if self.counts_back and found.meta["val"].dtype in _HALVES:
            raise NoTable
        return found

    def _numbers(self, like, dim: int, line: tuple[int, int], places):
        """first + step * place along a dim."""
        graph, value = self.graph, like.meta["val"]
        shape = [1] * value.dim()
        shape[dim] = self.tables.keys
        found = called(graph, _aten.reshape.default, (places, shape), {}, like)
        found = called(graph, _aten.mul.Tensor, (found, line[1]), {}, like)
        found = called(graph, _aten.add.Tensor, (found, line[0]), {}, like)
        found = called(graph, _aten._to_copy.default, (found,), {"dtype": value.dtype}, like)
        shape = [*value.shape[:dim], self.tables.keys, *value.shape[dim + 1 :]]
        return called(graph, _aten.expand.default, (found, shape), {}, like)

    def _sliced(self, node, dim: int, places):
        source, _, start, _, step = (*node.args, *(0, 0, None, 1)[len(node.args) - 1 :])
        extent = source.meta["val"].shape[dim]
        start = 0 if start is None else start + extent if start < 0 else start
        if step != 1 or node.meta["val"].shape[dim] != self.tables.keys:
            raise NoTable
        if start:
            self.counts_back = True
            places = called(self.graph, _aten.add.Tensor, (places, start), {}, node)
        return self._at(source, dim, places)

    def _copied(self, node, name: str, dim: int, places):
        """The operation on a table that has the places."""
        pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
        if pointwise and (name in _OF_OFFSETS or not self.counts_back):
            given = {each: self._operand(node, each, dim, places) for each in node.all_input_nodes}
        elif name in _SAME:
            given = {node.args[0]: self._at(node.args[0], dim, places)}
        else:
            source, own = self._source(node, name, dim)
            given = {source: self._at(source, own, places)}
        if pointwise and self.counts_back and name not in _OF_OFFSETS:
            raise NoTable
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda each: given.get(each, each)
        )
        return called(self.graph, node.target, args, dict(kwargs), node)

    def _operand(self, node, each, dim: int, places):
        value = each.meta["val"]
        own = dim - node.meta["val"].dim() + value.dim()
        return each if own < 0 or value.shape[own] == 1 else self._at(each, own, places)

    def _source(self, node, name: str, dim: int):
        """The tensor that a view is of, and the dim that its dim `dim` is there."""
        source = node.args[0]
        if not isinstance(source, torch.fx.Node):
            raise NoTable
        old, new = source.meta["val"].shape, node.meta["val"].shape
        if name in _RESHAPES:
            after = math.prod(new[dim + 1 :])
            same = [
                at
                for at, extent in enumerate(old)
                if extent == new[dim] and math.prod(old[at + 1 :]) == after
            ]
            if not same:
                raise NoTable
            return source, same[-1]
        if name in ("expand", "repeat"):
            own = dim - len(new) + len(old)
            if own < 0 or old[own] != new[dim]:
                raise NoTable
            return source, own
        if name == "unsqueeze":
            at = node.args[1] % len(new)
            return source, dim - (dim > at)
        if name == "squeeze" and len(node.args) > 1:
            gone = node.args[1] if isinstance(node.args[1], (list, tuple)) else [node.args[1]]
            gone = {at % len(old) for at in gone if old[at] == 1}
            return source, [at for at in range(len(old)) if at not in gone][dim]
        if name == "transpose":
            pair = [self._dim(source, node.args[at : at + 1]) for at in (1, 2)]
            return source, pair[1 - pair.index(dim)] if dim in pair else dim
        if name == "slice":
            return source, dim
        raise NoTable

    @staticmethod
    def _dim(source, given: tuple) -> int:
        return given[0] % source.meta["val"].dim()


def _name(node) -> str:
    return getattr(node.target, "__name__", "").split(".")[0]


def _width(table: torch.Tensor) -> int | None:
    """How many of the last keys each query of a square table sees, if that is one number."""
    if table.dim() != 2 or table.shape[0] != table.shape[1] or table.is_complex():
        return None
    width = int((table[-1] != 0).sum())
    place = torch.arange(len(table))
    age = place[:, None] - place[None]
    return width if torch.equal(table, ((age >= 0) & (age < width)).to(table.dtype)) else None


def _line(value: torch.Tensor, dim: int) -> tuple[int, int] | None:
    """(first, step), if along a dim the numbers are first + step * index, and equal elsewhere."""
    if value.is_complex() or value.dtype == torch.bool or value.shape[dim] < 2:
        return None
    rows = value.movedim(dim, 0).reshape(value.shape[dim], -1).double()
    first, step = rows[0, 0].item(), (rows[1, 0] - rows[0, 0]).item()
    exact = first.is_integer() and step.is_integer()
    line = first + step * torch.arange(len(rows), dtype=torch.double)[:, None]
    return (int(first), int(step)) if exact and torch.equal(rows, line.expand_as(rows)) else None
