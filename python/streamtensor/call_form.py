"""How a module is called: which of its arguments and results are tensors, and where they stand
among numbers, strings, None, lists and dictionaries.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch.export.graph_signature import OutputKind
from torch.utils import _pytree

from .errors import Error

HOLE = object()  # stands for a tensor


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call: a tree whose leaves are tensors or known values."""

    leaves: tuple  # HOLE for a tensor
    structure: _pytree.TreeSpec

    @classmethod
    def of(cls, arguments: Sequence) -> "Arguments":
        leaves, structure = _pytree.tree_flatten(tuple(arguments))
        return cls(
            tuple(HOLE if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves), structure
        )

    @functools.cached_property
    def are_tensors(self) -> bool:
        """Whether every argument of the call is a tensor, and no list or dictionary of them."""
        parts = _pytree.tree_unflatten(self.leaves, self.structure)
        return all(each is HOLE for each in parts)

    def filled(self, tensors: Iterable[torch.Tensor]) -> tuple:
        found = iter(tensors)
        return _pytree.tree_unflatten(
            [next(found) if leaf is HOLE else leaf for leaf in self.leaves], self.structure
        )

    def tensors(self, arguments: Sequence) -> list[torch.Tensor]:
        """The tensors of a call; the other values must be those with which it was compiled."""
        given = _pytree.tree_leaves(tuple(arguments))
        known = [leaf for leaf in self.leaves if leaf is not HOLE]
        if len(given) == len(self.leaves) - len(known):
            given_tensors = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]
            if len(given_tensors) == len(given):
                return given_tensors
        if len(given) != len(self.leaves):
            raise Error(
                f"{len(given)} inputs for a design that takes {len(self.leaves)}",
                f"{len(self.leaves) - len(known)} of them are tensors",
            )
        for place, (leaf, value) in enumerate(zip(self.leaves, given)):
            if (leaf is HOLE) != isinstance(value, torch.Tensor):
                raise Error(
                    f"input {place} is {_named(value)}",
                    f"the design was compiled with {_named(leaf)} there",
                )
            if leaf is not HOLE and leaf != value:
                raise Error(
                    f"input {place} is {value!r}, but the design was compiled for {leaf!r}",
                    "compile it again for another value, or pass a tensor",
                )
        return [value for leaf, value in zip(self.leaves, given) if leaf is HOLE]


def _named(value) -> str:
    return "a tensor" if value is HOLE or isinstance(value, torch.Tensor) else repr(value)


@dataclass(frozen=True)
class Number:
    """A result that is a number, which the design gives as a tensor without dimensions."""

    type: type

    def read(self, value: torch.Tensor):
        return self.type(value.item())


@dataclass(frozen=True)
class Empty:
    """A result without elements, which the design does not give."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Results:
    """The results of a call: a tree whose leaves are tensors, numbers or known values."""

    leaves: tuple  # HOLE for a tensor, a Number, an Empty, or the value
    structure: _pytree.TreeSpec

    @property
    def tensors(self) -> int:
        return sum(leaf is HOLE or isinstance(leaf, Number) for leaf in self.leaves)

    def filled(self, tensors: Iterable[torch.Tensor]):
        found = iter(tensors)
        return _pytree.tree_unflatten([_given(leaf, found) for leaf in self.leaves], self.structure)


def _given(leaf, tensors):
    if leaf is HOLE:
        return next(tensors)
    if isinstance(leaf, Number):
        return leaf.read(next(tensors))
    return torch.empty(leaf.shape, dtype=leaf.dtype) if isinstance(leaf, Empty) else leaf


def _is_empty(node) -> bool:
    return isinstance(node, torch.fx.Node) and node.meta["val"].numel() == 0


def _leaf(node, spec):
    if not isinstance(node, torch.fx.Node):
        return spec.arg.value
    value = node.meta["val"]
    return Empty(tuple(value.shape), value.dtype) if _is_empty(node) else HOLE


def separate_values(program: torch.export.ExportedProgram, numbers: dict[int, type]) -> Results:
    """Removes the results of the program that are no tensors or have no elements, in place.

    numbers: the types of results that are numbers, which the program computes as tensors, by place.
    """
    output, structure = program.graph.output_node(), program.call_spec.out_spec
    pairs = list(zip(output.args[0], program.graph_signature.output_specs))
    own = [pair for pair in pairs if pair[1].kind == OutputKind.USER_OUTPUT]
    leaves = [
        Number(numbers[place]) if place in numbers else _leaf(node, spec)
        for place, (node, spec) in enumerate(own)
    ]
    kept = [
        (node, spec)
        for node, spec in pairs
        if isinstance(node, torch.fx.Node)
        and not (_is_empty(node) and spec.kind == OutputKind.USER_OUTPUT)
    ]
    output.args = (tuple(node for node, _ in kept),)
    program.graph_signature.output_specs[:] = [spec for _, spec in kept]
    return Results(tuple(leaves), structure)
