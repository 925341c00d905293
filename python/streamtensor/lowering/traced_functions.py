"""Functions that torch.export cannot trace, because PyTorch looks at values in them, written with
others that it can.
"""

import warnings

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.overrides import TorchFunctionMode


class Traced(TorchFunctionMode):
    """Calls the functions of this file in place of PyTorch's."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return _TRACED.get(function, function)(*args, **(kwargs or {}))


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


def _getitem(x, index):
    """Lists of numbers become tensors with values; PyTorch makes them where x is, as on meta."""
    parts = index if isinstance(index, tuple) else (index,)
    made = tuple(
        torch.tensor(part)
        if isinstance(part, list) and part and all(isinstance(each, int) for each in part)
        else part
        for part in parts
    )
    return x[made if isinstance(index, tuple) else made[0]]


_TRACED = {
    torch.Tensor.__getitem__: _getitem,
    torch.sym_max: _sym_max,
    torch.bincount: _bincount,
    torch.Tensor.bincount: _bincount,
    torch.cov: _cov,
    torch.Tensor.cov: _cov,
    torch.corrcoef: _corrcoef,
    torch.Tensor.corrcoef: _corrcoef,
}
