"""An ONNX graph as a module of PyTorch: what is known is worked out while the file is read, what is
left are steps, each a function of this package on tensors.

    Shape -> Gather -> Concat  ─┐ known: a list of numbers
    x ─► Conv ─► BatchNorm ─► Reshape ─► y
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..errors import Error
from ..lowering import layer_names
from . import file as onnx_file
from . import fusion as onnx_fusion
from . import norms as onnx_norms
from .control import CONTROL
from .node import OPERATORS, TAKE_NUMBERS, Node

_LARGEST = 2**31  # numbers of a value
_FOLDED = 2**28  # numbers of a value that is known
_ALL_FOLDED = 2**29  # of all of them
_MOST_NODES = 100_000  # loops unrolled
# those whose graphs read more than their inputs, and what operators on integers take as integers
_LATER = ("If", "Loop", "DequantizeLinear")


@dataclass
class Value:
    """A tensor of the graph. `known` are its numbers, if they are."""

    fake: torch.Tensor
    known: torch.Tensor | None = None
    slot: int | None = None
    name: str = ""  # of a constant of the file


@dataclass(frozen=True)
class Plain:
    """A number that a step takes as it is, rather than as a tensor; None for no input."""

    number: float | int | None

    def made(self):
        return self.number


@dataclass(frozen=True)
class Filled:
    """A tensor of one number, which is no weight."""

    number: float | int
    dtype: torch.dtype

    def made(self):
        return torch.full((), self.number, dtype=self.dtype)


@dataclass
class Step:
    function: Callable
    node: Node
    takes: list  # slots, or numbers as they are
    gives: list[int]  # slots


class OnnxModule(torch.nn.Module):
    """Takes and gives what the graph does, in its order."""

    def __init__(self, steps: list[Step], inputs: list[int], outputs: list[int], constants: dict):
        super().__init__()
        self._steps, self._inputs, self._outputs = steps, inputs, outputs
        self._constants = {}  # names of buffers by slot
        taken = set()
        for slot, (name, value) in constants.items():
            self._constants[slot] = self._keep(name, value, taken)
        for step in steps:
            names = {
                key: self._keep(f"{step.node.name or step.node.op}_{key}", value, taken)
                for key, value in step.node.derived.items()
            }
            step.node.derived = {}
            step.node.stored = lambda key, names=names: self._buffers[names[key]]

    def operators(self) -> list[str]:
        """The names of its steps' operators, those of other domains as "domain:Name"."""
        return [key_of(step.node) for step in self._steps]

    def _keep(self, name: str, value: torch.Tensor, taken: set) -> str:
        plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in name)
        found, at = plain or "constant", 0
        while found in taken or hasattr(self, found):
            at += 1
            found = f"{plain}_{at}"
        taken.add(found)
        self.register_buffer(found, value)
        return found

    def forward(self, *inputs):
        values = dict(zip(self._inputs, inputs, strict=True))
        for slot, name in self._constants.items():
            values[slot] = self._buffers[name]
        for step in self._steps:
            _say_place(step.node)
            takes = [values[at] if isinstance(at, int) else at.made() for at in step.takes]
            made = step.function(step.node, *takes)
            values |= zip(step.gives, made if isinstance(made, tuple) else (made,))
        return tuple(values[slot] for slot in self._outputs)


def _say_place(node: Node) -> None:
    """What is traced from here on comes from this node."""
    if torch.fx.traceback.has_preserved_node_meta():
        file, _, says = node.label.partition(": ")
        place = f'  File "{file}", line 0, in forward\n    {" ".join(says.split())}\n'
        torch.fx.traceback.current_meta["stack_trace"] = place
        layer_names.say(node.name or (node.outputs or [node.op])[0])


def key_of(node: Node) -> str:
    return node.op if node.domain in onnx_file.DOMAINS else f"{node.domain}:{node.op}"


class Builder:
    """Makes the steps of a graph."""

    def __init__(self, model: onnx_file.Model):
        self.model = model
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.steps: list[Step] = []
        self.constants: dict[int, tuple[str, torch.Tensor]] = {}
        self._slots = self._nodes = self._folded = 0

    def new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def constant(self, value: torch.Tensor, name: str = "") -> Value:
        return Value(value, value, name=name)

    def slot_of(self, value: Value, name: str) -> int:
        """Where the value stands; one that is known becomes a buffer."""
        if value.slot is None:
            value.slot = self.new_slot()
            self.constants[value.slot] = (value.name or name, value.known)
        return value.slot

    def run(self, graph: onnx_file.Graph, scope: dict[str, Value]) -> list[Value]:
        """The outputs of the graph; scope: the values that it may read, by name."""
        self._check_names(graph, scope)
        scope |= {name: self.constant(value, name) for name, value in graph.constants.items()}
        nodes = onnx_fusion.used(graph)
        for proto in nodes:
            if self._is_constant(proto, scope):
                self._add(proto, scope)
        known = {name: each.known for name, each in scope.items() if each.known is not None}
        left = [each for each in nodes if not self._is_constant(each, scope)]
        left = onnx_norms.folded(left, known, graph.outputs)
        scope |= {n: self.constant(x, n) for n, x in known.items() if n not in scope}
        for proto in onnx_fusion.fused(left, known, graph.outputs, self.model.name):
            self._add(proto, scope)
        return [self._look_up(name, scope, "the graph gives") for name in graph.outputs]

    def _check_names(self, graph: onnx_file.Graph, scope: dict) -> None:
        """Rejects a name that stands for two values."""
        made = [name for proto in graph.nodes for name in proto.output if name]
        every = [*made, *graph.constants]
        taken = set(every) & set(scope) or {
            name for name, count in Counter(every).items() if count > 1
        }
        if taken:
            raise Error(
                f"{self.model.name}: two values are named '{onnx_file.shown(min(taken))}'",
                "accepted is a name of its own for each",
            )

    def _is_constant(self, proto, scope: dict) -> bool:
        """Whether a node computes what is known from what is known."""
        takes = [scope.get(name) for name in proto.input if name]
        known = all(each is not None and each.known is not None for each in takes)
        return known and proto.op_type not in _LATER

    def _look_up(self, name: str, scope: dict, says: str) -> Value:
        if name not in scope:
            raise Error(
                f"{self.model.name}: {says} '{onnx_file.shown(name)}', which nothing before it "
                "computes",
                "accepted are graphs whose nodes stand in the order of their computation",
            )
        return scope[name]

    def _add(self, proto, scope: dict) -> None:
        node = self._node(proto)
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise node.refuse(f"is node {self._nodes}", f"at most {_MOST_NODES}, loops unrolled")
        values = [
            self._look_up(name, scope, f"{node.label.partition(': ')[2]} takes") if name else None
            for name in proto.input
        ]
        while values and values[-1] is None:
            values.pop()
        node.set_constants(
            {
                at: value.known
                for at, value in enumerate(values)
                if value is not None and value.known is not None
            }
        )
        control = CONTROL.get(key_of(node))
        made = (
            control(self, node, values, scope)
            if control
            else self.call(OPERATORS[key_of(node)], node, values)
        )
        node.check_all_read()
        scope |= {name: value for name, value in zip(proto.output, made) if name}
        missing = [name for name in list(proto.output)[len(made) :] if name]
        if missing:
            raise node.refuse(f"gives '{missing[0]}'", f"{len(made)} results")

    def _node(self, proto) -> Node:
        domain = "" if proto.domain in onnx_file.DOMAINS else proto.domain
        opset = self.model.opsets.get(domain, 0)
        node = Node(proto, opset, self.model.reader, proto.name or next(iter(proto.output), ""))
        if key_of(node) not in OPERATORS and key_of(node) not in CONTROL:
            where = f" of the domain {domain}" if domain else ""
            raise node.refuse(f"is an operator{where} that is not read", _accepted(domain))
        return node

    def call(self, function: Callable, node: Node, values: list) -> list[Value]:
        """The results of the function: known if all that it takes is, else of a new step."""
        known = all(value is None or value.known is not None for value in values)
        takes = [
            Plain(None) if value is None else self._taken(node, value, values) for value in values
        ]
        fakes = [each.number if isinstance(each, Plain) else each for each in takes]
        with self.mode, torch.no_grad():
            shapes = _called(function, node, fakes)
        self._check_size(node, shapes, _FOLDED if known else _LARGEST)
        if known:
            node.derived = {}
            self._folded += sum(each.numel() for each in shapes)
            if self._folded > _ALL_FOLDED:
                raise node.refuse(
                    "brings all that is computed of constants beyond the limit",
                    f"at most {_ALL_FOLDED} numbers",
                )
            with torch.no_grad():
                made = _called(function, node, [None if x is None else x.known for x in values])
            return [self.constant(each.clone()) for each in made]
        return self._step((function, node), values, takes, shapes)

    def _taken(self, node: Node, value: Value, values: list):
        """What stands for a value: a tensor without numbers, or its number."""
        others = [each for each in values if each is not None and each.known is None]
        if (
            key_of(node) in TAKE_NUMBERS
            and value.known is not None
            and value.known.numel() == 1
            and others
            and value.known.ndim <= max(each.fake.ndim for each in others)
        ):
            return Plain(value.known.reshape(-1).tolist()[0])
        return self._fake(value)

    def _taken_from(self, value: Value, name: str):
        """Where a step finds the value."""
        if value.slot is None and value.known.ndim == 0:
            return Filled(value.known.tolist(), value.known.dtype)
        return self.slot_of(value, name)

    def _fake(self, value: Value):
        if value.known is not None and value.fake is value.known:
            value.fake = self.mode.from_tensor(value.known)
        return value.fake

    def _check_size(self, node: Node, made: list, most: int) -> None:
        for each in made:
            if math.prod(each.shape) > most:
                raise node.refuse(
                    f"gives a tensor of {list(each.shape)}", f"one of at most {most} numbers"
                )

    def _step(self, call: tuple, values: list, takes: list, shapes: list) -> list[Value]:
        node = call[1]
        made = [Value(each, slot=self.new_slot()) for each in shapes]
        slots = [
            taken if isinstance(taken, Plain) else self._taken_from(value, f"{node.name}_{at}")
            for at, (value, taken) in enumerate(zip(values, takes))
        ]
        self.steps.append(Step(*call, slots, [each.slot for each in made]))
        return made


def _accepted(domain: str) -> str:
    of_domain = sorted(name for name in OPERATORS if (":" in name) == bool(domain))
    return "one of " + ", ".join(name.rpartition(":")[2] for name in of_domain)


def _called(function, node: Node, tensors: list) -> list:
    """The results of the function, whose errors name the node."""
    try:
        made = function(node, *tensors)
    except Error:
        raise
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError, KeyError) as error:
        kinds = ", ".join(
            "none" if x is None else f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
            for x in tensors
        )
        raise Error(
            f"{node.label} does not take inputs of {kinds}",
            f"accepted is what ONNX's opset {node.opset} says of {node.op}",
        ) from error
    return list(made) if isinstance(made, tuple) else [made]
