"""Calibrates integer weights by GPTQ (arXiv 2210.17323) on a few prompts.

GPTQ rounds a matrix column by column and adjusts the columns that are not rounded yet to compensate
each error, weighted by the second moments of the layer's inputs. It was chosen over
activation-aware scaling because it changes only the integers: no norm or bias has to be rescaled,
so every model that can be rounded can be calibrated. The scale of each group is searched in
addition: the candidate with the smallest error, with each column weighted by the second moment of
its input.

Layers are calibrated block by block; the inputs of a block come from the quantized blocks in front
of it.
"""

from collections.abc import Callable, Iterable

import torch
from torch import nn

from .. import quantize
from ..errors import Error
from ..quantize import Scheme, Weight

METHODS = ("rtn", "gptq")
DAMPING = 0.01  # relative to the mean diagonal element of the moments
# candidate scales, relative to that of the largest value
SHRINK = [1 - step / 20 for step in range(11)]
_BLOCK = 128  # columns between two updates of all columns to the right


class _Reached(Exception):
    """Ends a forward pass behind the last layer whose inputs are collected."""


def weights(
    module: nn.Module,
    scheme: Scheme,
    method: str,
    prompts: Iterable[torch.Tensor],
    progress: Callable[[float], None] = lambda _: None,
) -> dict[str, Weight]:
    """The integer weights of all contractions.

    prompts: token ids, 1 x tokens each; round-to-nearest needs none.
    """
    if method not in METHODS:
        raise Error(f"there is no method '{method}'", f"accepted are {', '.join(METHODS)}")
    if method == "rtn":
        return quantize.rounded(module, scheme)
    return _gptq(module, scheme, list(prompts), progress)


def _gptq(module, scheme, prompts, progress) -> dict[str, Weight]:
    if not prompts:
        raise Error("gptq needs calibration prompts", "method rtn needs none")
    found: dict[str, Weight] = {}
    layers = quantize.contractions(module)
    bits = {
        name: scheme.bits_of(name, layer is quantize.head(module)) for name, layer in layers.items()
    }
    paths = {layer: path for path, layer in module.named_modules()}
    blocks = _blocks(module, [name for name, b in bits.items() if b])
    for i, names in enumerate(blocks):
        moments = _moments(
            quantize.quantized_copy(module, scheme, found),
            {paths[layers[name]]: name for name in names},
            prompts,
        )
        for name in names:
            found[name] = gptq(
                quantize.matrix(layers[name]), moments[name], bits[name], scheme.group
            )
        progress((i + 1) / len(blocks))
    return found


def _blocks(module: nn.Module, names: list[str]) -> list[list[str]]:
    """The names grouped by element of the longest list of layers, in order; all others last."""
    lists = [
        (name, child) for name, child in module.named_modules() if isinstance(child, nn.ModuleList)
    ]
    if not lists:
        return [names]
    stem, longest = max(lists, key=lambda item: len(item[1]))
    parts = [
        [name for name in names if name.startswith(f"{stem}.{i}.")] for i in range(len(longest))
    ]
    rest = [name for name in names if not any(name in part for part in parts)]
    return [part for part in (*parts, rest) if part]


def _moments(module: nn.Module, names: dict[str, str], prompts) -> dict[str, torch.Tensor]:
    """The sum of x x^T over all inputs x of each layer. names: by the path of the layer."""
    layers = {module.get_submodule(path): name for path, name in names.items()}
    extents = {name: quantize.matrix(layer).shape[1] for layer, name in layers.items()}
    found = {name: torch.zeros(extent, extent) for name, extent in extents.items()}
    missing = set()

    def see(layer, inputs):
        x = inputs[0].detach().float().flatten(0, -2)
        found[layers[layer]] += x.T @ x
        missing.discard(layers[layer])

    def seen(layer, *_):
        if not missing:
            raise _Reached

    hooks = [
        hook
        for layer in layers
        for hook in (layer.register_forward_pre_hook(see), layer.register_forward_hook(seen))
    ]
    try:
        with torch.no_grad():
            for prompt in prompts:
                missing.update(names.values())
                try:
                    module(prompt)
                except _Reached:
                    pass
    finally:
        for hook in hooks:
            hook.remove()
    return found


def gptq(weight: torch.Tensor, moments: torch.Tensor, bits: int, group: int | None) -> Weight:
    """weight: outputs x inputs; moments: inputs x inputs."""
    weight, top = weight.detach().float().clone(), quantize.limit(bits)
    size, columns = group or weight.shape[1], weight.shape[1]
    importance = moments.diagonal().float().clone()
    inverse = _inverse_factor(moments)
    q = torch.zeros(weight.shape, dtype=torch.int8)
    scales = []
    for start in range(0, columns, min(size, _BLOCK)):
        stop = min(start + min(size, _BLOCK), columns)
        if start % size == 0:
            end = min(start + size, columns)
            scales.append(_best_scale(weight[:, start:end], importance[start:end], top))
        errors = _round_block(weight, q, inverse, scales[-1], start, stop, top)
        weight[:, stop:] -= errors @ inverse[start:stop, stop:]
    return Weight(q, torch.stack(scales, 1), size)


def _round_block(weight, q, inverse, scale, start, stop, top) -> torch.Tensor:
    """Rounds columns [start, stop); returns their errors, divided by the diagonal."""
    errors = torch.empty(weight.shape[0], stop - start)
    for column in range(start, stop):
        q[:, column] = quantize.to_integers(weight[:, column], scale, top)
        error = (weight[:, column] - q[:, column].float() * scale.float()) / inverse[column, column]
        errors[:, column - start] = error
        weight[:, column + 1 : stop] -= error.unsqueeze(1) * inverse[column, column + 1 : stop]
    return errors


def _inverse_factor(moments: torch.Tensor) -> torch.Tensor:
    """The upper Cholesky factor of the inverse of the damped moments."""
    damped = moments.double()
    mean = damped.diagonal().mean()
    damped = damped + torch.eye(len(damped), dtype=torch.float64) * (
        DAMPING * mean if mean > 0 else 1.0
    )
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True).float()


def _best_scale(part: torch.Tensor, importance: torch.Tensor, top: int) -> torch.Tensor:
    """One f16 scale for each row of `part`."""
    largest = part.abs().amax(1)
    best = least = None
    for shrink in SHRINK:
        scale = quantize.f16_scale(largest * shrink, top)
        rounded = quantize.to_integers(
            part, scale.unsqueeze(1), top
        ).float() * scale.float().unsqueeze(1)
        error = ((part - rounded).square() * importance).sum(1)
        if best is None:
            best, least = scale, error
        better = error < least
        best, least = torch.where(better, scale, best), torch.where(better, error, least)
    return best
