"""view(dtype): the bits of a tensor as numbers of another type.

Between integers it is shifts; between f32 and i32, and between bf16 and i16, it is an op of its
own. torch-mlir has no such op, so it is cut out of the program before the lowering, its operand a
further result and its result a further input, and joined as arith.bitcast behind it.
"""

import math

import torch
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from ..errors import Error

_aten = torch.ops.aten
_LEAST = 2.0**-149
_INTEGER = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes
_INTEGERS = {*_INTEGER.values(), torch.uint8}


@torch.library.custom_op("streamtensor::bits", mutates_args=())
def _bits(x: torch.Tensor) -> torch.Tensor:
    """The bits of f32 as i32."""
    return x.view(torch.int32).clone()


@torch.library.custom_op("streamtensor::of_bits", mutates_args=())
def _of_bits(x: torch.Tensor) -> torch.Tensor:
    """The f32 whose bits are those of i32."""
    return x.view(torch.float32).clone()


_bits.register_fake(lambda x: torch.empty_like(x, dtype=torch.int32))
_of_bits.register_fake(lambda x: torch.empty_like(x, dtype=torch.float32))
_OPS = {torch.ops.streamtensor.bits.default, torch.ops.streamtensor.of_bits.default}


def view(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """The decomposition of view(dtype)."""
    if x.dtype == kind:
        return x
    return _to_kind(_regrouped(_to_integer(x, kind), kind.itemsize), kind)


def _refuse(source: torch.dtype, kind: torch.dtype) -> Error:
    return Error(
        f"{source} cannot be viewed as {kind}",
        "accepted are views between integers, float32 and bfloat16",
    )


def _to_integer(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    if x.dtype == torch.float32:
        return _bits(x)
    if x.dtype == torch.bfloat16:
        return (_bits(x.float()) >> 16).to(torch.int16)
    if x.dtype not in _INTEGERS:
        raise _refuse(x.dtype, kind)
    return x


def _to_kind(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    if kind == torch.float32:
        return _of_bits(x)
    if kind == torch.bfloat16:
        return _of_bits(x.to(torch.int32) << 16).to(torch.bfloat16)
    if kind not in _INTEGERS:
        raise _refuse(x.dtype, kind)
    return x.to(kind)


def _regrouped(x: torch.Tensor, size: int) -> torch.Tensor:
    """Integers of `size` bytes each, whose bytes are those of x; the least significant come
    first.
    """
    own, count = x.dtype.itemsize, x.shape[-1] if x.ndim else 1
    wide = torch.int64 if max(own, size) == 8 else torch.int32
    if own == size:
        return x
    if own > size:
        parts = [x.to(wide) >> (8 * size * i) for i in range(own // size)]
        narrow = [part.to(_INTEGER[size]) for part in parts]
        return torch.stack(narrow, -1).reshape(*x.shape[:-1], count * own // size)
    groups = x.reshape(*x.shape[:-1], count * own // size, size // own).to(wide)
    masked = groups & ((1 << 8 * own) - 1)
    parts = [masked[..., i] << (8 * own * i) for i in range(size // own)]
    total = parts[0]
    for part in parts[1:]:
        total = total | part
    return total.to(_INTEGER[size])


def table() -> dict:
    """The decompositions of view(dtype) and of functions of a number's bits."""
    return {
        _aten.view.dtype: view,
        _aten.signbit.default: _signbit,
        _aten.frexp.Tensor: _frexp,
        _aten.nextafter.default: _nextafter,
    }


def _signbit(x):
    if not x.dtype.is_floating_point:
        return x < 0
    return _bits(x.float()) < 0


def _frexp(x):
    bits = _bits(x.float())
    exponent = ((bits >> 23) & 0xFF) - 126
    whole = (x == 0) | ~torch.isfinite(x)
    mantissa = _of_bits((bits & -0x7F800001) | 0x3F000000).to(x.dtype)
    return torch.where(whole, x, mantissa), torch.where(whole, torch.zeros_like(exponent), exponent)


def _nextafter(x, other):
    if x.dtype != torch.float32 or other.dtype != torch.float32:
        return NotImplemented
    bits = _bits(x)
    away = (x < other) ^ (bits < 0)
    stepped = _of_bits(torch.where(away, bits + 1, bits - 1))
    least = torch.where(other < 0, -_LEAST, _LEAST)
    found = torch.where(x == 0, least, torch.where(x == other, other, stepped))
    found = torch.where((x == 0) & (other == 0), other, found)
    return torch.where((x != x) | (other != other), math.nan, found)


def cut(program) -> int:
    """Turns each of these ops into a further input, the last of all, and its operand into a further
    result; returns their number.
    """
    graph, signature = program.graph, program.graph_signature
    output = graph.output_node()
    last = [node for node in graph.nodes if node.op == "placeholder"][-1]
    found = [node for node in graph.nodes if node.target in _OPS]
    for node in found:
        with graph.inserting_after(last):
            last = graph.placeholder(f"{node.name}_bits")
        last.meta.update(node.meta)
        node.replace_all_uses_with(last)
        operand = node.args[0]
        output.args = ((*output.args[0], operand),)
        signature.input_specs.append(
            InputSpec(InputKind.USER_INPUT, TensorArgument(name=last.name), None)
        )
        signature.output_specs.append(
            OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=operand.name), None)
        )
        graph.erase_node(node)
    return len(found)


def join(function, count: int) -> None:
    """Puts an arith.bitcast from each of the last `count` results to the last arguments."""
    from torch_mlir import ir

    block = function.entry_block
    end = block.operations[len(block.operations) - 1]
    kept = len(end.operands) - count
    arguments = len(block.arguments) - count
    with function.context, ir.Location.unknown():
        for i in range(count):
            argument = block.arguments[arguments + i]
            cast = ir.Operation.create(
                "arith.bitcast",
                results=[argument.type],
                operands=[end.operands[kept + i]],
                ip=ir.InsertionPoint(end),
            )
            argument.replace_all_uses_with(cast.result)
        results = list(end.operands)[:kept]
        ir.Operation.create("func.return", operands=results, ip=ir.InsertionPoint(end))
        end.operation.erase()
        for i in reversed(range(count)):
            block.erase_argument(arguments + i)
        signature = ir.FunctionType.get(
            [each.type for each in block.arguments], [each.type for each in results]
        )
        function.attributes["function_type"] = ir.TypeAttr.get(signature)
    _sort(block)


def _sort(block) -> None:
    """Puts each operation behind those whose results it uses."""
    operations = [each.operation for each in block.operations]
    end, placed = operations[-1], set()
    own = set(operations)
    waiting = operations[-2::-1]
    while waiting:
        operation = waiting[-1]
        before = [each for each in _used(operation) if each in own and each not in placed]
        if operation in placed or not before:
            waiting.pop()
            if operation not in placed:
                operation.move_before(end)
                placed.add(operation)
        else:
            waiting.extend(before)


def _used(operation) -> list:
    """The operations whose results it or an operation inside it uses."""
    from torch_mlir import ir

    found = [each.owner for each in operation.operands if not isinstance(each.owner, ir.Block)]
    for region in operation.regions:
        for block in region:
            for inside in block.operations:
                found += _used(inside.operation)
    return [each for each in found if each != operation]
