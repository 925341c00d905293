"""Which results of a graph share memory with its inputs or with one another, found by running it on
tensors without values; and how such results are made from the graph's inputs and new tensors.
"""

import math
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv

from ..errors import Error

# raised where the control flow or a shape depends on values
_BY_NUMBERS = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)


@dataclass(frozen=True)
class Layout:
    """How one result lies in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # in elements; of a view of an input from that input's first element
    dtype: torch.dtype
    of_input: int | None  # it is a view of this input
    # else: results of one number share memory of so many bytes
    group: int = 0
    bytes: int = 0

    @property
    def is_computed(self) -> bool:
        """It has values, and they are no input's."""
        return self.of_input is None and 0 not in self.shape


def layouts(module, arguments) -> list[Layout | None]:
    """For each result of module(*arguments) its layout; None for one that is no tensor."""
    # with symbols for the numbers that the graph reads from tensors
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    with mode, torch.no_grad():
        # each in memory of its own, as not all calls have inputs that share it
        fake = [
            torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=each.device)
            if isinstance(each, torch.Tensor)
            else each
            for each in arguments
        ]
        inputs = {
            _memory(each): place
            for place, each in enumerate(fake)
            if isinstance(each, torch.Tensor)
        }
        groups: dict[int, int] = {}
        return [
            _layout(each, inputs, groups) if isinstance(each, torch.Tensor) else None
            for each in _followed(module, fake)
        ]


def _followed(module, arguments):
    try:
        return module(*arguments)
    except _BY_NUMBERS as error:
        raise Error(
            "the graph decides by numbers that it computes",
            "accepted is control flow by shapes and constants; torch.where chooses by numbers",
        ) from error
    except RuntimeError as error:  # an operator's own, or that of tensors without values
        raise Error(
            f"the graph does not run on tensors without values: {str(error).partition(chr(10))[0]}",
            "accepted are operators that PyTorch can trace",
        ) from error


def _memory(value: torch.Tensor) -> int:
    return value.untyped_storage()._cdata


def _layout(value, inputs: dict, groups: dict) -> Layout:
    memory = _memory(value)
    return Layout(
        tuple(value.shape),
        tuple(value.stride()),
        value.storage_offset(),
        value.dtype,
        inputs.get(memory),
        groups.setdefault(memory, len(groups)),
        value.untyped_storage().nbytes(),
    )


def arranged(found: list, plans: list[Layout], arguments) -> list[torch.Tensor]:
    """The results: `found` are the values of those that are computed, in order."""
    values, memories, results = iter(found), {}, []
    groups = [plan.group for plan in plans if plan.of_input is None]
    for plan in plans:
        if plan.of_input is not None:
            results.append(_view(arguments[plan.of_input], plan))
            continue
        value = next(values) if plan.is_computed else torch.empty(plan.shape, dtype=plan.dtype)
        if groups.count(plan.group) == 1 and value.stride() == plan.strides:
            results.append(value)
            continue
        memory = memories.setdefault(
            plan.group, torch.empty(plan.bytes, dtype=torch.uint8).untyped_storage()
        )
        results.append(_placed(memory, value, plan))
    return results


def _view(argument: torch.Tensor, plan: Layout) -> torch.Tensor:
    if plan.dtype == argument.dtype:
        return argument.as_strided(
            plan.shape, plan.strides, argument.storage_offset() + plan.offset
        )
    first = argument.storage_offset() * argument.element_size() // plan.dtype.itemsize
    return torch.empty(0, dtype=plan.dtype).set_(
        argument.untyped_storage(), first + plan.offset, plan.shape, plan.strides
    )


def _placed(memory, value: torch.Tensor, plan: Layout) -> torch.Tensor:
    """The result in its memory. Elements that share a place have equal values."""
    whole = torch.empty(0, dtype=plan.dtype).set_(memory)
    places = torch.arange(whole.numel()).as_strided(plan.shape, plan.strides, plan.offset)
    whole[places.reshape(-1)] = value.reshape(-1)
    return whole.as_strided(plan.shape, plan.strides, plan.offset)


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the two may share elements: their extents in memory meet."""
    if not one.numel() or not other.numel():
        return False
    (first, end), (other_first, other_end) = _extent(one), _extent(other)
    return first < other_end and other_first < end


def _extent(value: torch.Tensor) -> tuple[int, int]:
    last = sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride()))
    return value.data_ptr(), value.data_ptr() + (last + 1) * value.element_size()


def equal_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one is other or (
        one.shape == other.shape
        and one.dtype == other.dtype
        and torch.equal(_bits(one), _bits(other))
    )


def _bits(value: torch.Tensor) -> torch.Tensor:
    """NaN equals NaN bit by bit."""
    flat = value.detach().contiguous().reshape(-1)
    size = math.gcd(flat.element_size(), 8)
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return flat.view(integers[size])
