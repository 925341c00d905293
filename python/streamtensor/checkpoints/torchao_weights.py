"""Modules after torchao's `quantize_`: their weights are tensors of its own classes, of which the
parts are read here without torchao.
"""

import copy
import warnings

import torch

from .. import quantize
from ..errors import Error
from .quantized_checkpoint import KeptWeights, Packed, Torchao, torchao_packed


def opened(module):
    """The module with plain weights, and those of torchao by name; the module itself if it has
    none.
    """
    if not isinstance(module, torch.nn.Module):
        return module, {}
    found = {
        name: _packed(name, value)
        for name, value in module.named_parameters()
        if _class(value).__module__.startswith("torchao.")
    }
    return (_with_plain(module, found, {}, "") if found else module), found


def _class(value: torch.nn.Parameter) -> type:
    return type(value.data) if type(value) is torch.nn.Parameter else type(value)


def _packed(name: str, value) -> Packed:
    kind = _class(value).__name__
    if kind not in Torchao.ACCEPTED:
        raise Error(
            f"'{name}' is torchao's {kind}, which is not read",
            f"accepted are {', '.join(Torchao.ACCEPTED)}",
        )
    parts = value if type(value) is not torch.nn.Parameter else value.data
    return torchao_packed(kind, lambda part: getattr(parts, part, None), value.shape)


def _with_plain(module, found: dict[str, Packed], made: dict, prefix: str):
    """A copy that shares all but the parameters of torchao. made: copies by what they are of."""
    if module in made:
        return made[module]
    made[module] = copied = copy.copy(module)
    copied.__dict__["_parameters"] = dict(module._parameters)
    copied.__dict__["_modules"] = {
        name: part if part is None else _with_plain(part, found, made, f"{prefix}{name}.")
        for name, part in module._modules.items()
    }
    for name in module._parameters:
        if packed := found.get(prefix + name):
            value = torch.nn.Parameter(packed.value(), requires_grad=False)
            copied._parameters[name] = value
    return copied


def integers(module, found: dict[str, Packed], quant: str | None) -> dict[str, torch.Tensor | None]:
    """What a weights file has beside a weight, where the scheme has its form: the integers,
    scales and zero points by their names; and None for a weight that is not needed any more.
    """
    scheme = quantize.Scheme.parse(quant or "fp32")
    keeper, made = KeptWeights(found.get, scheme), {}
    for name in quantize.contractions(module) if scheme.has_weights else ():
        bits = scheme.bits_of(name, False)
        if weight := bits and keeper(name, bits):
            made |= {f"{name}.{end}": part for end, part in weight.parts().items()}
            if weight.group >= weight.q.shape[1]:  # else the compiler would round it
                made[name] = None
    if keeper.others:
        warnings.warn(f"streamtensor: {keeper.report()}", stacklevel=3)
    return made
