"""Functions that torch.export cannot trace, because PyTorch looks at values in them, written with
others that it can.
"""

import warnings

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.overrides import TorchFunctionMode

from . import known_values, traced_losses


class Traced(TorchFunctionMode):
    """Calls the functions of this file in place of PyTorch's."""

    def __init__(self):
        super().__init__()
        self._calls = known_values.Calls()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        options = kwargs or {}
        if function in _SELECTING:
            result = _SELECTING[function](self._calls, function, *args, **options)
        else:
            result = _TRACED.get(function, function)(*args, **options)
        self._calls.keep(function, args, options, result)
        return result


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


_TRACED = {
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
}
