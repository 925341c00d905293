"""Which values of a graph are read as integers, and which give them their scales."""

from collections.abc import Callable

import torch

from . import integer_forms
from .integer_forms import attribute, bounds, contraction, is_concatenation

_LIMIT = 2**31 - 2**30  # of the products' sum; the rest is for the bias


class IntegerValues:
    """Integers are the inputs of contractions, and of operators between them and other such
    values. An operator whose only reader is a ReLU gives that value at once: `value_of`.
    """

    def __init__(self, module: torch.fx.GraphModule, takes: Callable[[str], bool]):
        self.module, self.nodes = module, list(module.graph.nodes)
        found = {node: contraction(module, node) for node in self.nodes}
        fitting = {node: layer for node, layer in found.items() if layer and _fits(layer)}
        self.known = list(fitting.values())
        self.layers = {node: layer for node, layer in fitting.items() if takes(layer.name)}
        self._bounded = {
            node: next(iter(node.users))
            for node in self.nodes
            if len(node.users) == 1 and bounds(next(iter(node.users))) and self._saturates(node)
        }
        self.wanted = self._wanted()
        self._readers = self._only_readers()

    def value_of(self, node):
        """The value that the operator gives: its own, or bounded."""
        return self._bounded.get(node, node)

    def is_bound(self, node) -> bool:
        """Whether the operator in front gives this value."""
        return self._bounded.get(next(iter(node.all_input_nodes), None)) is node

    def _saturates(self, node) -> bool:
        return (
            node in self.layers
            or integer_forms.is_sum(node)
            or integer_forms.is_product(node)
            or integer_forms.average(node) is not None
        )

    def has_integer_form(self, node) -> bool:
        return (
            self._saturates(node) or self._keeps_scale(node) or is_concatenation(node)
        ) and not any(attribute(self.module, each) is not None for each in self._operands(node))

    @staticmethod
    def _keeps_scale(node) -> bool:
        return (
            integer_forms.largest(node) is not None
            or integer_forms.is_move(node)
            or integer_forms.repetition(node) is not None
        )

    def _operands(self, node) -> list:
        return [self.layers[node].x] if node in self.layers else integer_forms.operands(node)

    def _wanted(self) -> set:
        found = set()
        for node in reversed(self.nodes):
            wanted = self.value_of(node) in found and self.has_integer_form(node)
            if node in self.layers or wanted or self.averages_integers(node):
                found.update(self._operands(node))
        return found

    def averages_integers(self, node) -> bool:
        """Whether the node is an average of what a contraction computes."""
        if integer_forms.average(node) is None:
            return False
        source = node.args[0]
        while self._keeps_scale(source) or self.is_bound(source):
            source = source.args[0]
        return source in self.layers or integer_forms.is_sum(source)

    def _only_readers(self) -> dict:
        """For values that only a concatenation reads, as they are or moved, the reader whose scale
        they take.
        """
        found = {}
        for node in self.nodes:
            if node in self.wanted and is_concatenation(node):
                for operand in self._operands(node):
                    found.update(self._chain(operand, node))
        return found

    def _chain(self, node, reader) -> dict:
        """The values from what computes one to its only reader, each with its own; none if one of
        them has another reader.
        """
        found = {}
        while len(node.users) == 1:
            found[node] = reader
            if not self._keeps_scale(node):
                return found
            reader, node = node, node.args[0]
        return {}

    def origin(self, node):
        """The value whose range gives the scale of this one."""
        while True:
            if node in self._readers:
                node = self._readers[node]
            elif self._keeps_scale(node):
                node = node.args[0]
            else:
                return node

    def origins(self) -> list:
        found = {self.origin(node) for node in self.wanted}
        return [node for node in self.nodes if node in found]

    def is_unsigned(self, node) -> bool:
        """Whether no number can be negative."""
        if limits := bounds(node):
            return limits[0] >= 0 or self.is_unsigned(node.args[0])
        if node not in self.layers and self.has_integer_form(node):
            return all(map(self.is_unsigned, self._operands(node)))
        return node.target in integer_forms.NEVER_NEGATIVE


def _fits(layer) -> bool:
    """Whether sums fit 32 bits for every input: of many terms those of the weights that there are,
    each rounded up.
    """
    weight = layer.by_channel().detach().flatten(1).double().abs()
    terms = weight.shape[1]
    if terms * 255 * 127 < _LIMIT:
        return True
    most = weight.sum(1) / weight.amax(1).clamp(min=1e-300) * 127 + terms / 2
    return 255 * float(most.max()) < _LIMIT
