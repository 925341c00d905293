"""One operator of an ONNX graph as its PyTorch function sees it: attributes, constants, refusals.

    @operator("LeakyRelu")
    def _leaky_relu(node, x):
        return F.leaky_relu(x, node.real("alpha", 0.01))

A function takes the operator's inputs (None for one that is left out) and gives its result, or a
tuple of them. It runs once when the file is read, on tensors without numbers, and then whenever the
module runs. An attribute that no function has asked for is refused: nothing is passed over.
"""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..errors import Error
from .file import shown

OPERATORS: dict[str, Callable] = {}  # by name, those of other domains as "domain:Name"
TAKE_NUMBERS: set[str] = set()

_LISTED = 2**16  # numbers of a constant that is read as a list


def operator(*names: str, numbers: bool = False):
    """Registers the function for these operators; numbers: which takes a constant of one number as
    that number.
    """

    def register(function):
        OPERATORS.update(dict.fromkeys(names, function))
        if numbers:
            TAKE_NUMBERS.update(names)
        return function

    return register


class Node:
    def __init__(self, proto, opset: int, reader, name: str):
        self.op, self.name, self.opset, self.reader = (
            shown(proto.op_type),
            shown(name),
            opset,
            reader,
        )
        self.domain = proto.domain
        self.attributes = {each.name: each for each in proto.attribute}
        self.outputs = list(proto.output)
        self.constants: dict[int, torch.Tensor] = {}  # inputs that are known, by place
        self._lists: dict[int, list] = {}  # of their numbers
        self.derived: dict[str, torch.Tensor] = {}  # constants made of constants
        self.stored: Callable[[str], torch.Tensor] | None = None
        self._asked, self._found = set(), {}

    def set_constants(self, constants: dict[int, torch.Tensor]) -> None:
        self.constants = constants
        for place, value in constants.items():
            if value.numel() <= _LISTED:
                self._lists[place] = value.reshape(-1).tolist()

    @property
    def label(self) -> str:
        named = f"'{self.name}' " if self.name else ""
        return f"{self.reader.name}: node {named}({self.op}, opset {self.opset})"

    def refuse(self, found: str, accepted: str) -> Error:
        return Error(f"{self.label} {found}", f"accepted is {accepted}")

    def has_output(self, place: int) -> bool:
        return place < len(self.outputs) and self.outputs[place] != ""

    # --- attributes ---

    def has(self, name: str) -> bool:
        self._asked.add(name)
        return name in self.attributes

    def _value(self, name: str, kind: str, default):
        self._asked.add(name)
        found = self.attributes.get(name)
        if found is None:
            return default
        if type(found).AttributeType.Name(found.type) != kind:
            says = type(found).AttributeType.Name(found.type)
            raise self.refuse(f"has the attribute {name} of type {says}", kind)
        return found

    def integer(self, name: str, default: int | None = None) -> int | None:
        found = self._value(name, "INT", None)
        return default if found is None else found.i

    def real(self, name: str, default: float | None = None) -> float | None:
        found = self._value(name, "FLOAT", None)
        return default if found is None else found.f

    def text(self, name: str, default: str = "") -> str:
        found = self._value(name, "STRING", None)
        return default if found is None else found.s.decode("utf-8", "replace")

    def integers(self, name: str, default: list[int] | None = None) -> list[int] | None:
        found = self._value(name, "INTS", None)
        return default if found is None else list(found.ints)

    def reals(self, name: str, default: list | None = None) -> list[float] | None:
        found = self._value(name, "FLOATS", None)
        return default if found is None else list(found.floats)

    def texts(self, name: str, default: list[str] | None = None) -> list[str] | None:
        found = self._value(name, "STRINGS", None)
        return (
            default
            if found is None
            else [each.decode("utf-8", "replace") for each in found.strings]
        )

    def tensor(self, name: str) -> torch.Tensor | None:
        found = self._value(name, "TENSOR", None)
        if found is None:
            return None
        with unset_fake_temporarily():
            return self.reader.tensor(found.t, f"{name} of {self.name}")

    def fill(self) -> tuple[float | int | bool, torch.dtype]:
        """The number of `value`, and its type."""
        with unset_fake_temporarily():
            found = self.tensor("value")
            if found is None:
                return 0.0, torch.float32
            if found.numel() != 1:
                raise self.refuse(f"has a value of {list(found.shape)}", "one number")
            return found.reshape(-1).tolist()[0], found.dtype

    def graph(self, name: str):
        """A branch, or a loop's body."""
        found = self._value(name, "GRAPH", None)
        if found is None:
            raise self.refuse(f"has no {name}", "a graph as this attribute")
        return self.reader.graph(found.g)

    def choice(self, name: str, choices: tuple, default):
        """An attribute that is one of these."""
        read = self.text if isinstance(default, str) else self.integer
        found = read(name, default)
        if found not in choices:
            raise self.refuse(f"has {name}={shown(repr(found))}", " or ".join(map(repr, choices)))
        return found

    def check_all_read(self) -> None:
        for name in self.attributes:
            if name not in self._asked:
                raise self.refuse(f"has the attribute {shown(name)}", "one without it")

    # --- inputs ---

    def known(self, place: int, what: str) -> torch.Tensor:
        """An input that has to be a constant."""
        if place not in self.constants:
            raise self.refuse(
                f"takes its {what} from what it computes", "a constant, or what shapes say"
            )
        return self.constants[place]

    def known_ints(self, place: int, what: str) -> list[int]:
        found = self.known(place, what)
        if found.is_floating_point() or found.ndim > 1 or place not in self._lists:
            says = f"{list(found.shape)} of {str(found.dtype).removeprefix('torch.')}"
            raise self.refuse(f"has {what} of {says}", "a list of integers")
        return self._lists[place]

    def numbers(self, place: int, what: str) -> list:
        """All numbers of an input that has to be a constant."""
        found = self.known(place, what)
        if place not in self._lists:
            raise self.refuse(f"has {what} of {found.numel()} numbers", f"at most {_LISTED}")
        return self._lists[place]

    def number(self, place: int, what: str) -> int | float:
        found = self.known(place, what)
        if found.numel() != 1:
            raise self.refuse(f"has {found.numel()} numbers as {what}", "one")
        return self._lists[place][0]

    def derive(self, key: str, make: Callable[[], torch.Tensor]) -> torch.Tensor:
        """A constant that is made of constants, once."""
        if self.stored is not None:
            return self.stored(key)
        if key not in self.derived:
            with unset_fake_temporarily():
                self.derived[key] = make().contiguous()
        return self.derived[key]

    def once(self, key, make: Callable):
        """What is worked out of constants the first time, and is no tensor."""
        if key not in self._found:
            with unset_fake_temporarily():
                self._found[key] = make()
        return self._found[key]

    def axis(self, value: int, rank: int) -> int:
        if not -rank <= value < max(rank, 1):
            raise self.refuse(
                f"has the axis {value} of a tensor of {rank} dims", f"{-rank} to {rank - 1}"
            )
        return value % max(rank, 1)

    def axes(self, values, rank: int) -> list[int]:
        found = [self.axis(each, rank) for each in values]
        if len(set(found)) != len(found):
            raise self.refuse(f"has the axes {list(values)}", "each of them once")
        return found

    def list_of(self, place: int, name: str, since: int, count: int):
        """Integers that are an attribute before opset `since`, then an input; None: there are none.

        count: of the node's inputs.
        """
        if self.opset < since:
            return self.integers(name)
        return self.known_ints(place, name) if count > place else None
