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
_BUFFER, _CALL = "_streamtensor_value", "_streamtensor_call"


def keep_value(traced: torch.Tensor, value: torch.Tensor) -> None:
    """Says what a traced buffer holds."""
    setattr(traced, _BUFFER, value)


class Calls:
    """The calls whose results depend on no input."""

    def __init__(self):
        self._writes = 0  # what was made before a write into such a tensor is known no more

    def keep(self, function, args, options, result) -> None:
        tensors = [
            each for each in _pytree.tree_leaves((args, options)) if isinstance(each, torch.Tensor)
        ]
        if tensors and _writes(function, options) and self._is_known(tensors[0]):
            self._writes += 1
        elif type(result) is not torch.Tensor and isinstance(result, torch.Tensor):
            if all(map(self._is_known, tensors)):
                setattr(result, _CALL, (self._writes, function, args, options))

    def _is_known(self, tensor) -> bool:
        made = getattr(tensor, _CALL, None)
        return (
            type(tensor) is torch.Tensor
            or hasattr(tensor, _BUFFER)
            or (made is not None and made[0] == self._writes)
        )

    def places(self, tensor) -> list | None:
        """The indices of the elements other than zero, by dim. None: not known, or random."""
        if not self._is_known(tensor):
            return None
        with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng([]):
            before = torch.get_rng_state()
            places = self._computed(tensor).nonzero().T.tolist()
            return places if torch.equal(torch.get_rng_state(), before) else None

    def _computed(self, tensor):
        if type(tensor) is torch.Tensor:
            return tensor
        if hasattr(tensor, _BUFFER):
            return getattr(tensor, _BUFFER)
        _, function, args, options = getattr(tensor, _CALL)
        args, options = _pytree.tree_map_only(torch.Tensor, self._computed, (args, options))
        return function(*args, **options)


def _writes(function, options) -> bool:
    name = getattr(function, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    return in_place or name in _WRITING or "out" in options
