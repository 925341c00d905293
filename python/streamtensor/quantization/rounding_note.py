"""What a user is told of convolutions with weights of four bits: how far it takes the results."""

import copy

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd
from torch.utils import _pytree

from ..quantize import Scheme, round_weight

_FEW_BITS = 4


def rounding_note(module, inputs, quant: str | None) -> str | None:
    """The largest difference that rounded weights of convolutions make to a result of
    `module(*inputs)`, root mean square relative to the result's; None: none has so few bits.
    """
    if not isinstance(module, nn.Module) or not quant:
        return None
    scheme = Scheme.parse(quant)
    layers = {
        name: bits
        for name, layer in module.named_modules()
        if isinstance(layer, _ConvNd) and (bits := scheme.bits_of(f"{name}.weight", False))
    }
    if min(layers.values(), default=8) > _FEW_BITS:
        return None
    made = copy.deepcopy(module)
    for name, bits in layers.items():
        weight = made.get_submodule(name).weight
        weight.data = _rounded(weight, bits, scheme.group)
    share = _difference(_results(module, inputs), _results(made, inputs))
    return (
        f"quant={quant} rounds the weights of {len(layers)} convolutions: this alone changes the "
        f"results on the example inputs by {100 * share:.1f} % (root mean square, measured with "
        "PyTorch); w8a8, or int8 with calibration inputs, keeps more"
    )


def _rounded(weight: torch.Tensor, bits: int, group: int | None) -> torch.Tensor:
    matrix = round_weight(weight.flatten(1), bits, group).value()
    return matrix.view_as(weight).to(weight.dtype)


def _results(module: nn.Module, inputs) -> list[torch.Tensor]:
    with torch.no_grad():
        made = copy.deepcopy(module)(*copy.deepcopy(tuple(inputs)))
    leaves = _pytree.tree_leaves(made)
    return [each for each in leaves if isinstance(each, torch.Tensor) and each.is_floating_point()]


def _difference(exact: list[torch.Tensor], rounded: list[torch.Tensor]) -> float:
    shares = [
        float((ours - theirs).square().mean().sqrt() / theirs.square().mean().sqrt().clamp(1e-30))
        for ours, theirs in zip(rounded, exact)
        if theirs.numel()
    ]
    return max(shares, default=0.0)
