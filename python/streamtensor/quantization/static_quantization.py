"""Static post-training quantization of networks to integers of 8 bits: `quant="int8"`.

    y = relu(conv(x))  ->  sums = integer_convolution(x_q, w_q, bias)    (32 bits)
                           y_q = requantize_channels(sums, s_x * s_w / s_y, 0, 255)

Weights are signed with one scale for each output channel, activations have one scale for a tensor,
found on calibration inputs: unsigned where no number is negative, behind a ReLU, else signed.
Batch norms are folded into weights. Convolutions and linear layers, and what lies between them and
has a form in integers, are computed as onnxruntime computes them; every other operator takes and
gives f32. The module's inputs and results stay what they were.

What `quantized` returns is the same arithmetic in PyTorch, and what a design is compiled from.
"""

import fnmatch
from dataclasses import dataclass
from typing import Any

import torch

from .. import options as compiler_options
from ..checkpoints import torchao_weights
from ..errors import Error
from ..lowering import graph
from . import activation_ranges, calibration_inputs, integer_forms, integer_graph, integer_values
from .integer_forms import aten, attribute, contraction


@dataclass(frozen=True)
class IntegerScheme:
    """A parsed scheme: "int8" with its settings, and layers that are other than the rest, as in
    "int8,fc=fp32" or "fp32,conv1=int8".
    """

    range: str = "max"  # how the range of activations is found
    weight: int = 8  # bits of the weights
    # bits of the integers that sums are multiplied by; None: f32, as onnxruntime has it
    multiplier: int | None = None
    every: bool = True  # whether layers are integers that `layers` does not name
    # patterns of the names of layers, and whether these are integers; the first match counts
    layers: tuple[tuple[str, bool], ...] = ()

    def takes(self, layer: str) -> bool:
        matches = (yes for pattern, yes in self.layers if fnmatch.fnmatchcase(layer, pattern))
        return next(matches, self.every)

    @classmethod
    def parse(cls, text: str) -> "IntegerScheme":
        choices: dict[str, dict] = {
            "range": {each: each for each in activation_ranges.METHODS},
            "weight": {"i8": 8, "i4": 4},
            "multiplier": {"f32": None, "i16": 16, "i18": 18},
        }
        name, *options = text.split(",")
        found: dict[str, Any] = {"every": name == "int8"}
        layers: dict[str, bool] = {"int8": True, "fp32": False}
        for option in options:
            key, _, value = option.rpartition("=")
            if key and value in layers:
                found["layers"] = (*found.get("layers", ()), (key, layers[value]))
                continue
            if value not in choices.get(key, ()):
                accepted = "; ".join(f"{each}={'|'.join(of)}" for each, of in choices.items())
                raise Error(
                    f"--quant '{text}': cannot read '{option}'",
                    f"accepted after int8 are {accepted}; LAYER=int8|fp32",
                )
            found[key] = choices[key][value]
        return cls(**found)


def is_integer_scheme(quant: str | None) -> bool:
    """Whether it has layers in integers with static ranges: "int8", or "fp32,LAYER=int8"."""
    name, *options = (quant or "fp32").split(",")
    return name == "int8" or (name == "fp32" and any(each.endswith("=int8") for each in options))


def applied(module, example_inputs, quant: str | None, calibration):
    """The module in integer arithmetic if the scheme is one of ours; and the compiler's scheme."""
    if is_integer_scheme(quant):
        return quantized(module, example_inputs, calibration, quant), None
    if calibration is not None:
        raise Error(
            f"calibration has no effect with quant={quant!r}",
            "accepted is quant='int8', whose activations have ranges",
        )
    return module, quant


def quantized(module, example_inputs, calibration, quant="int8") -> torch.fx.GraphModule:
    """The module in integer arithmetic, as a module of the same inputs and results.

    calibration: batches of inputs, each as `module` takes them, or a file or folder of them.
    """
    quant = compiler_options.scheme_text(quant)
    scheme = IntegerScheme.parse(quant)
    module, _ = torchao_weights.opened(module)
    several = isinstance(example_inputs, (tuple, list))
    inputs = tuple(example_inputs) if several else (example_inputs,)
    batches = calibration_inputs.read(calibration, inputs)
    _check_mode(module)
    exact = graph.exported_graph(module, inputs)
    _slice_parts(exact.graph)
    _bound_first(exact.graph)
    _fold_norms(exact)
    values = integer_values.IntegerValues(exact, scheme.takes)
    _check_layers(quant, scheme, values)
    if not values.layers:
        raise Error(
            "int8 finds no layer to quantize",
            "accepted are convolutions and linear layers of float32",
        )
    tops = {node: 255 if values.is_unsigned(node) else 127 for node in values.origins()}
    found = activation_ranges.largest(exact, tops, batches, scheme.range)
    scales = {node: _scale(found[node], top) for node, top in tops.items()}
    bits = scheme.weight, scheme.multiplier
    return integer_graph.Rewriter(values, scales, bits).run()


def layers(module, example_inputs) -> list[str]:
    """The names of the layers that int8 quantizes."""
    exact = graph.exported_graph(module, example_inputs)
    found = integer_values.IntegerValues(exact, lambda layer: True).known
    return list(dict.fromkeys(layer.name for layer in found))


def _check_layers(quant: str, scheme: IntegerScheme, values) -> None:
    """Rejects names of layers that there are not."""
    known = [layer.name for layer in values.known]
    for pattern, _ in scheme.layers:
        if not fnmatch.filter(known, pattern):
            raise Error(
                f"quant='{quant}': there is no layer '{pattern}'",
                f"layers with a weight that is multiplied: {', '.join(known[:12]) or 'none'}"
                + (", …" if len(known) > 12 else ""),
            )


def _check_mode(module) -> None:
    """Rejects what computes with statistics of the batch, or at random."""
    learning = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    for name, part in getattr(module, "named_modules", dict)():
        if part.training and isinstance(part, learning):
            raise Error(f"'{name}' is in training mode", "accepted is what module.eval() gives")


def _scale(largest: float, top: int) -> float:
    """In f32; 1 for a tensor of zeros."""
    return float(torch.tensor(largest) / top) or 1.0


def _slice_parts(graph: torch.fx.Graph) -> None:
    """Makes parts of a split value slices of it."""
    for node in list(graph.nodes):
        parts = node.meta.get("val")
        splits = (aten.split.Tensor, aten.split_with_sizes.default, aten.chunk.default)
        if node.target not in splits or not all(isinstance(each, torch.Tensor) for each in parts):
            continue
        dim = (*node.args, *node.kwargs.values(), 0)[2]
        begins = [0]
        for part in parts:
            begins.append(begins[-1] + part.shape[dim])
        for user in list(node.users):
            at = user.args[1] % len(parts)
            with graph.inserting_before(user):
                args = (node.args[0], dim, begins[at], begins[at + 1])
                made = graph.call_function(aten.slice.Tensor, args)
            made.meta = dict(user.meta)
            user.replace_all_uses_with(made)
            graph.erase_node(user)
        graph.erase_node(node)


def _bound_first(graph: torch.fx.Graph) -> None:
    """relu(max_pool(x)) -> max_pool(relu(x)), and so for moves: then it bounds what computes x."""
    left = [node for node in graph.nodes if integer_forms.bounds(node)]
    while left:
        node = left.pop()
        inner = node.args[0]
        if len(inner.users) > 1 or not _passes_bounds(inner):
            continue
        source = inner.args[0]
        with graph.inserting_before(inner):
            bound = graph.call_function(node.target, (source, *node.args[1:]))
        bound.meta = dict(source.meta)
        inner.replace_input_with(source, bound)
        node.replace_all_uses_with(inner)
        graph.erase_node(node)
        left.append(bound)


def _passes_bounds(node) -> bool:
    return integer_forms.keeps_values(node) or integer_forms.largest(node) is not None


def _fold_norms(module: torch.fx.GraphModule) -> None:
    """Folds batch norms into the contractions in front of them."""
    for node in list(module.graph.nodes):
        layer = _normed_layer(module, node)
        norm = [attribute(module, each) for each in node.args[1:5]] if layer else ()
        if not layer or any(
            own is None and each is not None for own, each in zip(norm, node.args[1:5])
        ):
            continue
        scale, shift = (None if each is None else each.double() for each in norm[:2])
        mean, variance = (each.double() for each in norm[2:])
        factor = torch.rsqrt(variance + node.args[6])
        factor = factor if scale is None else factor * scale
        bias = -mean if layer.bias is None else layer.bias.double() - mean
        bias = bias * factor if shift is None else bias * factor + shift
        weight = layer.by_channel()
        weight = weight.double() * factor.reshape(-1, *[1] * (weight.ndim - 1))
        _set_parameters(module, node.args[0], layer, weight.float(), bias.float())
        for user in list(node.users):
            user.replace_all_uses_with(node.args[0])
            module.graph.erase_node(user)
        module.graph.erase_node(node)


def _normed_layer(module, node):
    """The contraction that only this batch norm reads; None: there is none."""
    if node.target is not aten._native_batch_norm_legit_no_training.default:
        return None
    layer = contraction(module, node.args[0])
    plain = all(user.args[1] == 0 for user in node.users)
    return layer if layer and plain and len(node.args[0].users) == 1 else None


def _set_parameters(module, node, layer, by_channel, bias) -> None:
    """Gives a contraction a weight and a bias of its own."""
    made = []
    for part, value in (("weight", layer.with_weight(by_channel)), ("bias", bias)):
        name = f"{layer.name}.folded.{part}"
        taken = dict(module.named_buffers())
        at = sum(each.startswith(f"{layer.name}.folded.{part}") for each in taken)
        place = f"{name}{at or ''}"
        torch.fx.graph_module._assign_attr(value, module, place)
        with module.graph.inserting_before(node):
            made.append(module.graph.get_attr(place))
        made[-1].meta["val"] = value
    node.args = (node.args[0], *made, *node.args[3:])
