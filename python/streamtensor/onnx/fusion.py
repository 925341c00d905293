"""Finds the quantized parts of an ONNX graph and makes integer operators of them, as onnxruntime
does, and leaves out what nothing reads.

    DequantizeLinear(x) ─┐
    DequantizeLinear(w) ─┴► Conv ─► Relu ─► QuantizeLinear   ->   integer:Conv(x, w, …)
    DequantizeLinear(x) ──► MaxPool ─► QuantizeLinear        ->   MaxPool(x), if formats are equal
"""

from dataclasses import dataclass

import numpy
import torch

from ..errors import Error
from . import file as onnx_file

DOMAIN = "integer"
# the least inputs of the operators that have a form on integers
_QUANTIZED = {"Conv": 2, "MatMul": 2, "Gemm": 2, "Add": 2, "Mul": 2, "GlobalAveragePool": 1}
_MOVES = (
    "Reshape Flatten Transpose Squeeze Unsqueeze Slice Gather MaxPool DepthToSpace SpaceToDepth "
    "Expand Concat Identity"
).split()


@dataclass
class _Use:
    """An integer value as its DequantizeLinear has it."""

    value: str
    scale: str
    zero: str
    axis: int


def used(graph: onnx_file.Graph) -> list:
    """The nodes that the outputs need."""
    return used_of(graph.nodes, graph.outputs)


def used_of(nodes: list, outputs: list[str]) -> list:
    wanted, kept = set(outputs), []
    for proto in reversed(nodes):
        if wanted & set(proto.output):
            kept.append(proto)
            wanted |= onnx_file.names_read(proto)
    return kept[::-1]


def fused(nodes: list, known: dict, outputs: list[str], file: str) -> list:
    """The nodes of a graph, with integer operators where it is quantized. known: constants."""
    for proto in nodes:
        if proto.domain == DOMAIN:
            raise Error(
                f"{file}: node '{proto.name}' is of the domain '{DOMAIN}'",
                "accepted are operators of ONNX and of com.microsoft",
            )
    return used_of(_Fusion(nodes, known, outputs).run(), outputs)


class _Fusion:
    def __init__(self, nodes: list, known: dict, outputs: list[str]):
        self._nodes, self._constants, self._outputs = nodes, known, set(outputs)
        self._makers = {name: node for node in nodes for name in node.output}
        self._readers: dict[str, list] = {}
        for node in nodes:
            for name in onnx_file.names_read(node):
                self._readers.setdefault(name, []).append(node)

    def run(self) -> list:
        made = {}  # by the QuantizeLinear that they end with
        for node in self._nodes:
            found = self._fused(node)
            if found is not None:
                made[found[0].output[0]] = found[1]
        return [
            each
            for node in self._nodes
            for each in (made[node.output[0]] if node.output[0] in made else [node])
        ]

    def _fused(self, node):
        """The QuantizeLinear behind a node, and the integer operator that gives its value."""
        if node.domain not in onnx_file.DOMAINS or len(node.output) < 1:
            return None
        if node.op_type in _MOVES:
            return self._moved(node)
        if node.op_type not in _QUANTIZED or len(node.input) < _QUANTIZED[node.op_type]:
            return None
        last, bounds = self._bounded(node)
        ends = self._only_reader(last)
        if ends is None or ends.op_type != "QuantizeLinear" or not self._is_plain(ends):
            return None
        takes = self._takes(node)
        if takes is None:
            return None
        result = [ends.input[1], ends.input[2] if len(ends.input) > 2 else ""]
        bias = takes.pop() if node.op_type in ("Conv", "Gemm") else None
        inputs = [*takes, *result] + ([bias] if bias else [])
        return ends, [self._operator(node, inputs, ends.output[0], bounds)]

    def _operator(self, node, inputs: list[str], output: str, bounds):
        made = type(node)(op_type=node.op_type, domain=DOMAIN, name=node.name)
        made.input.extend(inputs)
        made.output.append(output)
        plain = ("alpha", "beta", "transA")  # checked before
        made.attribute.extend(each for each in node.attribute if each.name not in plain)
        if bounds:
            made.attribute.append(onnx_file.library().helper.make_attribute("bounds", bounds))
        return made

    def _only_reader(self, node):
        readers = self._readers.get(node.output[0], [])
        return readers[0] if len(readers) == 1 and node.output[0] not in self._outputs else None

    def _bounded(self, node):
        """The last node of a ReLU or a Clip behind this one, and its bounds."""
        reader = self._only_reader(node)
        if reader is None or reader.domain not in onnx_file.DOMAINS:
            return node, None
        if reader.op_type == "Relu":
            return reader, [0.0, numpy.inf]
        if reader.op_type != "Clip" or len(reader.attribute) or reader.input[0] != node.output[0]:
            return node, None
        bounds = []
        for at, default in ((1, -numpy.inf), (2, numpy.inf)):
            name = reader.input[at] if len(reader.input) > at else ""
            if name and name not in self._constants:
                return node, None
            bounds.append(float(self._constants[name]) if name else default)
        return (reader, bounds) if bounds[0] <= bounds[1] else (node, None)

    def _is_plain(self, node) -> bool:
        """Whether a QuantizeLinear or DequantizeLinear has one known scale of bytes."""
        if len(node.input) < 2:
            return False
        scale = self._constants.get(node.input[1])
        zero = self._constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        types = (torch.int8, torch.uint8)
        known = zero is not None or len(node.input) < 3 or not node.input[2]
        names = {each.name for each in node.attribute}
        return (
            scale is not None
            and scale.numel() == 1
            and scale.dtype == torch.float32
            and known
            and (zero is None or (zero.numel() == 1 and zero.dtype in types))
            and names <= {"axis", "saturate"}
        )

    def _dequantized(self, name: str) -> _Use | None:
        node = self._makers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or len(node.input) < 2:
            return None
        names = {each.name: each.i for each in node.attribute}
        if not set(names) <= {"axis"}:
            return None
        zero = node.input[2] if len(node.input) > 2 else ""
        return _Use(node.input[0], node.input[1], zero, names.get("axis", 1))

    def _value(self, name: str) -> _Use | None:
        """A computed value with one scale."""
        found = self._dequantized(name)
        return found if found and self._is_plain(self._makers[name]) else None

    def _takes(self, node) -> list[str] | None:
        """The inputs of the integer operator; of Conv and Gemm the bias last."""
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            return self._takes_of_contraction(node)
        values = [self._value(name) for name in node.input]
        if None in values:
            return None
        return [name for each in values for name in (each.value, each.scale, each.zero)]

    def _takes_of_contraction(self, node) -> list[str] | None:
        attributes = {each.name: each for each in node.attribute}
        x, weight = self._value(node.input[0]), self._dequantized(node.input[1])
        if x is None or weight is None or x.value in self._constants:
            return None
        turned = attributes["transB"].i if "transB" in attributes else 0
        of_channels = 0 if node.op_type == "Conv" or turned else 1
        whole, scale = self._constants.get(weight.value), self._constants.get(weight.scale)
        if scale is None or (whole is None and scale.numel() != 1):
            return None
        if whole is not None and (whole.dtype not in (torch.int8, torch.uint8) or whole.ndim < 2):
            return None
        if scale.numel() != 1 and weight.axis % max(whole.ndim, 1) != of_channels:
            return None
        if node.op_type == "Conv" and whole is None:
            return None
        if node.op_type == "Gemm" and (whole is None or not _is_plain_product(attributes)):
            return None
        found = [x.value, x.scale, x.zero, weight.value, weight.scale, weight.zero]
        if node.op_type == "MatMul":
            return found
        bias = self._bias(node, x, scale)
        return None if bias is None else [*found, bias]

    def _bias(self, node, x: _Use, scale) -> str | None:
        """The name of the bias in 32 bits, "" where there is none; None: it is no such bias."""
        if len(node.input) < 3 or not node.input[2]:
            return ""
        bias = self._dequantized(node.input[2])
        if bias is None or self._constants.get(bias.value) is None:
            return None
        whole, own = self._constants[bias.value], self._constants.get(bias.scale)
        zero = self._constants.get(bias.zero)
        sums = self._constants[x.scale].reshape(-1) * scale.reshape(-1)
        if whole.dtype != torch.int32 or own is None or (bias.zero and zero is None):
            return None
        if zero is not None and bool(zero.any()):
            return None
        same = own.numel() in (1, sums.numel()) or sums.numel() == 1
        return bias.value if same and torch.allclose(own.reshape(-1), sums, rtol=1e-5) else None

    def _moved(self, node):
        """The move of integers for a move of numbers between equal formats."""
        ends = self._only_reader(node)
        if ends is None or ends.op_type != "QuantizeLinear" or not self._is_plain(ends):
            return None
        if len(node.output) > 1 or (node.op_type == "Identity"):
            return None
        count = len(node.input) if node.op_type == "Concat" else 1
        values = [self._value(name) for name in node.input[:count]]
        if None in values or not all(self._same(each, ends) for each in values):
            return None
        made = type(node)()
        made.CopyFrom(node)
        for at, each in enumerate(values):
            made.input[at] = each.value
        made.output[0] = ends.output[0]
        return ends, [made]

    def _same(self, use: _Use, ends) -> bool:
        """Whether a value has the format that a QuantizeLinear gives; zero points say its type."""
        names = use.zero, ends.input[2] if len(ends.input) > 2 else ""
        if "" in names:
            return False
        zeros = [self._constants[name] for name in names]
        scales = [self._constants[name].reshape(()) for name in (use.scale, ends.input[1])]
        return (
            zeros[0].dtype == zeros[1].dtype
            and int(zeros[0]) == int(zeros[1])
            and float(scales[0]) == float(scales[1])
        )


def _is_plain_product(attributes: dict) -> bool:
    values = {"alpha": 1.0, "beta": 1.0}
    plain = all(
        name not in attributes or attributes[name].f == each for name, each in values.items()
    )
    return plain and ("transA" not in attributes or not attributes["transA"].i)
