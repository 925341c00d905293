"""Values that the tracer does not know, though they depend on no input: a mask that is made of
counters or held as a buffer selects as many elements each time.

A tensor keeps the call that made it, and is computed when its values are asked for.
"""

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

_WRITING = {"__setitem__", "__set__"} | {
    f"__i{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
}
# views of their first argument, of whatever values the others are
_LIKE_ANOTHER = {"view_as", "expand_as", "reshape_as", "type_as", "to"}
_UNKNOWN = -1
_BUFFER, _CALL = "_streamtensor_value", "_streamtensor_call"


def keep_value(traced: torch.Tensor, value: torch.Tensor) -> None:
    """Says what a traced buffer holds."""
    setattr(traced, _BUFFER, value)


class Calls:
    """The calls whose results depend on no input."""

    def __init__(self):
        # what was made before a write into such a tensor is known no more, nor is what the module
        # holds after a write into that
        self._writes = 0
        self._is_held_written = False

    def keep(self, function, args, options, result) -> None:
        tensors = [
            each for each in _pytree.tree_leaves((args, options)) if isinstance(each, torch.Tensor)
        ]
        if not tensors:
            self._keep_call(result, (self._writes, function, args, options))
        elif _writes(function, options):
            if _is_held(tensors[0]) or hasattr(tensors[0], _CALL):
                self._writes += 1
                self._is_held_written |= _may_be_held(tensors[0])
        elif all(map(self._is_known, tensors)):
            self._keep_call(result, (self._writes, function, args, options))
        elif getattr(function, "__name__", "") in _LIKE_ANOTHER:
            self._keep_call(result, (_UNKNOWN, function, args, options))

    @staticmethod
    def _keep_call(result, call) -> None:
        if type(result) is not torch.Tensor and isinstance(result, torch.Tensor):
            setattr(result, _CALL, call)

    def _is_known(self, tensor) -> bool:
        if _is_held(tensor):
            return not self._is_held_written
        made = getattr(tensor, _CALL, None)
        return made is not None and made[0] == self._writes

    def places(self, tensor) -> list | None:
        """The indices of the elements other than zero, by dim. None: not known, or random."""
        if not self._is_known(tensor):
            return None
        with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng([]):
            before = torch.get_rng_state()
            places = self._computed(tensor).nonzero().T.tolist()
            return places if torch.equal(torch.get_rng_state(), before) else None

    def _computed(self, tensor):
        if _is_held(tensor):
            return getattr(tensor, _BUFFER, tensor)
        _, function, args, options = getattr(tensor, _CALL)
        args, options = _pytree.tree_map_only(torch.Tensor, self._computed, (args, options))
        return function(*args, **options)


def _is_held(tensor) -> bool:
    return type(tensor) is torch.Tensor or hasattr(tensor, _BUFFER)


def _may_be_held(tensor) -> bool:
    """Is it such a tensor, or could it be a view of one?"""
    _, _, args, options = getattr(tensor, _CALL, (0, None, (), {}))
    made_of = [each for each in _pytree.tree_leaves((args, options)) if each is not tensor]
    return _is_held(tensor) or any(
        _may_be_held(each) for each in made_of if isinstance(each, torch.Tensor)
    )


def _writes(function, options) -> bool:
    name = getattr(function, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name in _WRITING or "out" in options
