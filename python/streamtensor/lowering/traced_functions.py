"""Functions that torch.export cannot trace, because PyTorch looks at values in them, written with
others that it can.
"""

import warnings

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

from . import traced_losses

_WRITING = {"__setitem__", "__set__"} | {
    f"__i{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
}
# views of their first argument, of whatever values the others are
_LIKE_ANOTHER = {"view_as", "expand_as", "reshape_as", "type_as", "to"}
_UNKNOWN = -1
_BUFFER, _CALL = "_streamtensor_value", "_streamtensor_call"


class Traced(TorchFunctionMode):
    """Calls the functions of this file in place of PyTorch's."""

    def __init__(self):
        super().__init__()
        self._calls = _Calls()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        options = kwargs or {}
        if function in _SELECTING:
            result = _SELECTING[function](self._calls, function, *args, **options)
        else:
            result = _TRACED.get(function, function)(*args, **options)
        self._calls.keep(function, args, options, result)
        return result


def _tensor(data, *, device=None, **options):
    """With its numbers, which the meta device does not keep."""
    made = torch.tensor(data, **options)
    return made if device is None else made.to(device)


def _bincount(x, weights=None, minlength=0):
    """With a minimum length, which is then the length: larger numbers are not counted."""
    if not minlength:
        return torch.bincount(x, weights)
    warnings.warn(
        f"streamtensor: bincount gives {minlength} counts; numbers from {minlength} on are not "
        "counted",
        stacklevel=2,
    )
    hits = x.unsqueeze(-1) == torch.arange(minlength)
    if weights is None:
        return hits.sum(0)
    kind = weights.dtype if weights.dtype == torch.float32 else torch.float64
    return torch.where(hits, weights.to(kind).unsqueeze(-1), torch.zeros((), dtype=kind)).sum(0)


def _cov(x, *, correction=1, fweights=None, aweights=None):
    if fweights is not None or aweights is not None:
        return torch.cov(x, correction=correction, fweights=fweights, aweights=aweights)
    rows = torch.atleast_2d(x)
    apart = rows - rows.mean(1, keepdim=True)
    found = apart @ apart.T / max(rows.shape[1] - correction, 0)
    return found.squeeze()


def _corrcoef(x):
    found = _cov(x)
    if not found.ndim:
        return found / found
    size = found.diagonal().sqrt()
    return (found / size.unsqueeze(-1) / size).clamp(-1, 1)


def _sym_max(one, other):
    """One of two numbers, where what is known about them says which is larger."""
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return torch.sym_max(one, other)
    if statically_known_true(one >= other):
        return one
    return other if statically_known_true(other >= one) else torch.sym_max(one, other)


def _getitem(calls, function, x, index):
    return function(x, _listed(calls, index))


def _setitem(calls, function, x, index, value):
    """One number under a mask is chosen, not scattered."""
    several = isinstance(value, torch.Tensor) and value.ndim > 0
    return function(x, _listed(calls, index) if several else index, value)


def _listed(calls, index):
    """Lists of numbers become tensors with values; PyTorch makes them where x is, as on meta."""
    made = []
    for part in index if isinstance(index, tuple) else (index,):
        places = _places(calls, part) if _is_mask(part) else None
        if places is not None:
            made += places
        elif isinstance(part, list) and part and all(isinstance(each, int) for each in part):
            made.append(torch.tensor(part))
        else:
            made.append(part)
    return tuple(made) if isinstance(index, tuple) or len(made) > 1 else made[0]


def _is_mask(part) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype == torch.bool and part.ndim > 0


def _places(calls, x) -> list | None:
    places = calls.places(x)
    if places is None:
        return None
    return [torch.tensor(each, dtype=torch.int64) for each in places]


def _nonzero(calls, function, x, *, as_tuple=False):
    places = _places(calls, x) if x.ndim else None
    if places is None:
        return function(x, as_tuple=as_tuple)
    return tuple(places) if as_tuple else torch.stack(places, 1)


def _masked_select(calls, function, x, mask):
    places = _places(calls, mask)
    if places is None or x.shape != mask.shape:
        return function(x, mask)
    return x[tuple(places)]


def _repeat_interleave(calls, function, x, *args, **options):
    """By numbers that follow from no input: elements at constant places."""
    repeats, dim = (*args, None, None)[:2]
    repeats, dim = options.get("repeats", repeats), options.get("dim", dim)
    counts = calls.values(repeats) if isinstance(repeats, torch.Tensor) else None
    if counts is None:
        return function(x, *args, **options)
    if dim is None:
        x, dim = x.flatten(), 0
    with _disable_current_modes():
        places = torch.arange(x.shape[dim]).repeat_interleave(counts).tolist()
    return x.index_select(dim, torch.tensor(places, dtype=torch.int64))


def keep_value(traced: torch.Tensor, value: torch.Tensor) -> None:
    """Says what a traced buffer holds."""
    setattr(traced, _BUFFER, value)


class _Calls:
    """The calls whose results depend on no input: a tensor keeps its own, which is made when its
    values are asked for, because the tracer does not know them.
    """

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
        values = self.values(tensor)
        with _disable_current_modes():
            return None if values is None else values.nonzero().T.tolist()

    def values(self, tensor) -> torch.Tensor | None:
        """None: not known, or random."""
        if not self._is_known(tensor):
            return None
        with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng([]):
            before = torch.get_rng_state()
            values = self._computed(tensor)
            return values if torch.equal(torch.get_rng_state(), before) else None

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


_TRACED = {
    torch.tensor: _tensor,
    torch.sym_max: _sym_max,
    torch.bincount: _bincount,
    torch.Tensor.bincount: _bincount,
    torch.cov: _cov,
    torch.Tensor.cov: _cov,
    torch.nn.functional.gaussian_nll_loss: traced_losses.gaussian_nll_loss,
    torch.nn.functional.ctc_loss: traced_losses.ctc_loss,
    torch.ctc_loss: traced_losses.ctc_loss,
    torch.corrcoef: _corrcoef,
    torch.Tensor.corrcoef: _corrcoef,
}
_SELECTING = {
    torch.Tensor.__getitem__: _getitem,
    torch.Tensor.__setitem__: _setitem,
    torch.nonzero: _nonzero,
    torch.Tensor.nonzero: _nonzero,
    torch.masked_select: _masked_select,
    torch.Tensor.masked_select: _masked_select,
    torch.repeat_interleave: _repeat_interleave,
    torch.Tensor.repeat_interleave: _repeat_interleave,
}
