"""ONNX's operators on single elements: arithmetic, comparisons, activations and casts."""

import math
import operator as python

import torch
import torch.nn.functional as F

from . import file as onnx_file
from .node import operator

_OF_ONE = {
    "Abs": torch.abs,
    "Neg": torch.neg,
    "Exp": torch.exp,
    "Log": torch.log,
    "Sqrt": torch.sqrt,
    "Reciprocal": torch.reciprocal,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Tan": torch.tan,
    "Asin": torch.asin,
    "Acos": torch.acos,
    "Atan": torch.atan,
    "Sinh": torch.sinh,
    "Cosh": torch.cosh,
    "Tanh": torch.tanh,
    "Asinh": torch.asinh,
    "Acosh": torch.acosh,
    "Atanh": torch.atanh,
    "Erf": torch.erf,
    "Floor": torch.floor,
    "Ceil": torch.ceil,
    "Round": torch.round,
    "Sign": torch.sign,
    "Sigmoid": torch.sigmoid,
    "Relu": torch.relu,
    "Softplus": lambda x: torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x))),
    "Softsign": lambda x: x / (1 + torch.abs(x)),
    "Not": torch.logical_not,
    "IsNaN": torch.isnan,
    "BitwiseNot": torch.bitwise_not,
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Identity": lambda x: x,
}
_OF_TWO = {
    "Add": python.add,
    "Sub": python.sub,
    "Mul": python.mul,
    "Equal": python.eq,
    "Less": python.lt,
    "LessOrEqual": python.le,
    "Greater": python.gt,
    "GreaterOrEqual": python.ge,
    "And": torch.logical_and,
    "Or": torch.logical_or,
    "Xor": torch.logical_xor,
    "BitwiseAnd": python.and_,
    "BitwiseOr": python.or_,
    "BitwiseXor": python.xor,
}
_NUMBERS = ("Add", "Sub", "Mul", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _register() -> None:
    for name, function in _OF_ONE.items():
        operator(name)(lambda node, x, function=function: function(x))
    for name, function in _OF_TWO.items():
        register = operator(name, numbers=name in _NUMBERS)
        register(lambda node, x, y, function=function: function(x, y))


_register()


def _tensor(value, like: torch.Tensor) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    return torch.full((), value, dtype=like.dtype, device=like.device)


@operator("Div", numbers=True)
def _divide(node, x, y):
    """Quotients of integers are cut off towards zero."""
    x = _tensor(x, y) if isinstance(y, torch.Tensor) else x
    if x.dtype.is_floating_point:
        return x / y
    if not isinstance(y, torch.Tensor) and y == 0:
        raise node.refuse("divides integers by 0", "another divisor")
    if 0 in node.constants and 1 in node.constants and 0 in node.numbers(1, "divisors"):
        raise node.refuse("divides integers by 0", "another divisor")
    return torch.div(x, y, rounding_mode="trunc")


@operator("Mod")
def _modulo(node, x, y):
    """fmod: the sign of the dividend, else that of the divisor."""
    if node.choice("fmod", (0, 1), 0):
        return torch.fmod(x, y)
    if x.dtype.is_floating_point:
        raise node.refuse("has fmod=0 with floats", "fmod=1")
    return torch.remainder(x, y)


@operator("Pow", numbers=True)
def _power(node, x, y):
    if not isinstance(x, torch.Tensor):
        x = _tensor(x, y)
    if isinstance(y, torch.Tensor):
        return torch.pow(x, y).to(x.dtype)
    if x.dtype.is_floating_point:
        return torch.pow(x, y)
    if y != int(y) or y < 0:
        return torch.pow(x.double(), y).to(x.dtype)
    return torch.pow(x, int(y))


@operator("Min", "Max", "Sum", "Mean")
def _of_several(node, *values):
    combine = {"Min": torch.minimum, "Max": torch.maximum}.get(node.op, torch.add)
    found = values[0]
    for each in values[1:]:
        found = combine(found, each)
    return found / len(values) if node.op == "Mean" else found


@operator("Clip")
def _clip(node, x, low=None, high=None):
    bounds = {}
    for place, name, value in ((1, "min", low), (2, "max", high)):
        if node.opset < 11:
            bounds[name] = node.real(name)
        elif value is not None:
            bounds[name] = node.number(place, name) if place in node.constants else value
    given = {name: each for name, each in bounds.items() if each is not None}
    if all(not isinstance(each, torch.Tensor) for each in given.values()):
        if given == {"min": 0.0}:
            return torch.relu(x)
        return torch.clamp(x, **given) if given else x
    if "min" in given:
        x = torch.maximum(x, _tensor(given["min"], x))
    return torch.minimum(x, _tensor(given["max"], x)) if "max" in given else x


@operator("LeakyRelu")
def _leaky_relu(node, x):
    return F.leaky_relu(x, node.real("alpha", 0.01))


@operator("ThresholdedRelu")
def _thresholded_relu(node, x):
    return torch.where(x > node.real("alpha", 1.0), x, torch.zeros((), dtype=x.dtype))


@operator("PRelu")
def _prelu(node, x, slope):
    return torch.where(x < 0, x * slope, x)


@operator("Elu")
def _elu(node, x):
    return F.elu(x, node.real("alpha", 1.0))


@operator("Celu")
def _celu(node, x):
    return F.celu(x, node.real("alpha", 1.0))


@operator("Selu")
def _selu(node, x):
    alpha, gamma = node.real("alpha", 1.67326319), node.real("gamma", 1.05070102)
    return gamma * torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


@operator("HardSigmoid")
def _hard_sigmoid(node, x):
    return torch.clamp(node.real("alpha", 0.2) * x + node.real("beta", 0.5), 0, 1)


@operator("Gelu", "com.microsoft:Gelu")
def _gelu(node, x):
    form = node.choice("approximate", ("none", "tanh"), "none") if not node.domain else "none"
    return F.gelu(x, approximate=form)


@operator("com.microsoft:QuickGelu")
def _quick_gelu(node, x):
    return x * torch.sigmoid(node.real("alpha", 1.702) * x)


@operator("Swish")
def _swish(node, x):
    return x * torch.sigmoid(node.real("alpha", 1.0) * x)


@operator("Shrink")
def _shrink(node, x):
    bound, bias = node.real("lambd", 0.5), node.real("bias", 0.0)
    zero = torch.zeros((), dtype=x.dtype)
    return torch.where(x < -bound, x + bias, torch.where(x > bound, x - bias, zero))


@operator("IsInf")
def _is_inf(node, x):
    positive, negative = node.integer("detect_positive", 1), node.integer("detect_negative", 1)
    found = torch.zeros_like(x, dtype=torch.bool)
    found = found | (x == math.inf) if positive else found
    return found | (x == -math.inf) if negative else found


@operator("Where", numbers=True)
def _where(node, condition, x, y):
    if not isinstance(condition, torch.Tensor):
        condition = torch.full((), bool(condition))
    if not isinstance(x, torch.Tensor) and not isinstance(y, torch.Tensor):
        x, y = (torch.full((), each, dtype=node.constants[1].dtype) for each in (x, y))
    like = x if isinstance(x, torch.Tensor) else y
    return torch.where(condition, _tensor(x, like), _tensor(y, like))


@operator("BitShift")
def _shift(node, x, y):
    left = node.choice("direction", ("LEFT", "RIGHT"), "") == "LEFT"
    return x << y if left else x >> y


@operator("Cast")
def _cast(node, x):
    wanted = onnx_file.dtype_of(node.integer("to", 0), node.label)
    node.integer("saturate", 1)  # of types of 8 bits with a point, which no tensor here has
    node.text("round_mode", "up")  # likewise
    return cast(x, wanted)


def cast(x: torch.Tensor, wanted: torch.dtype) -> torch.Tensor:
    return x != 0 if wanted == torch.bool and x.dtype != torch.bool else x.to(wanted)


@operator("CastLike")
def _cast_like(node, x, like):
    node.integer("saturate", 1)
    node.text("round_mode", "up")
    return cast(x, like.dtype)


@operator("Dropout")
def _dropout(node, x, ratio=None, training=None):
    """Nothing, as a graph in inference has it."""
    node.real("ratio", 0.5)
    node.integer("seed", 0)
    if training is not None and node.number(2, "training_mode"):
        raise node.refuse("is in training mode", "training_mode false")
    return x, torch.ones_like(x, dtype=torch.bool)
