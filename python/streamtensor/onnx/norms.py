"""Folds batch norms of an ONNX graph into the convolutions in front of them, as onnxruntime does.

Conv(x, w, b) ─► BatchNormalization(scale, bias, mean, variance)   ->   Conv(x, w', b')
"""

import torch

from . import file as onnx_file


def folded(nodes: list, known: dict[str, torch.Tensor], outputs: list[str]) -> list:
    """The nodes without these norms; their new weights and biases are added to `known`."""
    norms = _normed(nodes, known, outputs)
    made = []
    for node in nodes:
        norm = norms.get(node.output[0]) if node.op_type == "Conv" else None
        if norm is not None:
            made.append(_joined(node, norm, known))
        elif not any(node is each for each in norms.values()):
            made.append(node)
    return made


def _normed(nodes: list, known: dict, outputs: list[str]) -> dict:
    """By the result of a convolution the norm that alone reads it."""
    reads, found = {}, {}
    for node in nodes:
        for name in onnx_file.names_read(node):
            reads.setdefault(name, []).append(node)
    for node in nodes:
        readers = reads.get(node.output[0], []) if len(node.output) else []
        constant = all(name in known for name in list(node.input)[1:] if name)
        plain = node.op_type == "Conv" and node.domain in onnx_file.DOMAINS and constant
        plain = plain and len(node.input) > 1 and node.input[1] != ""
        if not plain or len(readers) != 1 or node.output[0] in outputs:
            continue
        if _is_constant_norm(readers[0], node, known):
            found[node.output[0]] = readers[0]
    return found


def _is_constant_norm(norm, node, known: dict) -> bool:
    numbers = [known.get(name) for name in list(norm.input)[1:]]
    weight = known[node.input[1]]
    return (
        norm.op_type == "BatchNormalization"
        and norm.domain in onnx_file.DOMAINS
        and norm.input[0] == node.output[0]
        and len(norm.output) == 1
        and all(each.name in ("epsilon", "momentum") for each in norm.attribute)
        and len(numbers) == 4
        and all(x is not None and x.shape == weight.shape[:1] for x in numbers)
        and all(x.dtype == torch.float32 for x in [weight, *numbers])
    )


def _joined(node, norm, known: dict):
    """The convolution with the norm's factors in its weight and bias."""
    epsilon = next((each.f for each in norm.attribute if each.name == "epsilon"), 1e-5)
    scale, shift, mean, variance = (known[name].double() for name in list(norm.input)[1:])
    weight = known[node.input[1]].double()
    own = node.input[2] if len(node.input) > 2 else ""
    bias = known[own].double() if own else torch.zeros(len(weight), dtype=torch.float64)
    factor = scale / torch.sqrt(variance + epsilon)
    values = weight * factor.reshape(-1, *[1] * (weight.ndim - 1)), (bias - mean) * factor + shift
    names = [f"{norm.output[0]}.{part}" for part in ("weight", "bias")]
    while set(names) & known.keys():
        names = [f"{name}_" for name in names]
    known.update((name, value.float()) for name, value in zip(names, values))
    made = type(node)()
    made.CopyFrom(node)
    del made.input[1:]
    made.input.extend(names)
    made.output[0] = norm.output[0]
    return made
