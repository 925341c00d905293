"""ONNX's products of matrices, normalizations and reductions."""

import math

import torch
import torch.nn.functional as F

from . import file as onnx_file
from .node import operator


def _transposed_constant(node, place: int, like):
    """A constant matrix as linear layers have it, result channels first; None: it is no constant
    matrix.
    """
    if place not in node.constants or node.constants[place].ndim != 2:
        return None
    return node.derive("weight", lambda: node.constants[place].t().clone())


@operator("MatMul")
def _product(node, x, y):
    weight = _transposed_constant(node, 1, y)
    if weight is not None and x.ndim >= 2 and x.dtype.is_floating_point:
        return F.linear(x, weight)
    return torch.matmul(x, y)


@operator("Gemm")
def _general_product(node, x, y, z=None):
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    x = x.t() if node.integer("transA", 0) else x
    if node.integer("transB", 0):
        weight = y
    else:
        weight = _transposed_constant(node, 1, y)
        weight = y.t() if weight is None else weight
    plain = z is not None and alpha == beta == 1.0 and z.numel() == weight.shape[0]
    if plain and z.ndim == 1 and x.dtype.is_floating_point:
        return F.linear(x, weight, z)
    found = F.linear(x, weight) if x.dtype.is_floating_point else x @ weight.t()
    found = found if alpha == 1.0 else found * alpha
    if z is None:
        return found
    torch.broadcast_shapes(z.shape, found.shape)
    return found + (z if beta == 1.0 else z * beta)


@operator("Einsum")
def _einsum(node, *values):
    return torch.einsum(node.text("equation"), *values)


@operator("BatchNormalization")
def _batch_norm(node, x, scale, bias, mean, variance):
    node.real("momentum", 0.9)
    if node.choice("training_mode", (0, 1), 0) or any(map(node.has_output, range(1, 5))):
        raise node.refuse("is in training mode", "training_mode=0 with one result")
    epsilon = node.real("epsilon", 1e-5)
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


@operator("InstanceNormalization")
def _instance_norm(node, x, scale, bias):
    return F.instance_norm(x, weight=scale, bias=bias, eps=node.real("epsilon", 1e-5))


@operator("LayerNormalization")
def _layer_norm(node, x, scale, bias=None):
    axis = node.axis(node.integer("axis", -1), x.ndim)
    node.integer("stash_type", 1)
    if node.has_output(1) or node.has_output(2):
        raise node.refuse("gives means, too", "one result")
    shape = list(x.shape[axis:])
    scale = scale.expand(shape)
    bias = None if bias is None else bias.expand(shape)
    return F.layer_norm(x, shape, scale, bias, node.real("epsilon", 1e-5))


@operator("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(node, x, scale):
    axis = node.axis(node.integer("axis", -1), x.ndim)
    node.integer("stash_type", 1)
    shape = list(x.shape[axis:])
    return F.rms_norm(x, shape, scale.expand(shape), node.real("epsilon", 1e-5))


@operator("GroupNormalization")
def _group_norm(node, x, scale, bias):
    groups = node.integer("num_groups")
    node.integer("stash_type", 1)
    if not groups or groups < 1 or x.shape[1] % groups:
        raise node.refuse(f"has num_groups={groups} for {x.shape[1]} channels", "a divisor")
    if node.opset < 21:  # one number for each group
        times = x.shape[1] // groups
        scale, bias = scale.repeat_interleave(times), bias.repeat_interleave(times)
    return F.group_norm(x, groups, scale, bias, node.real("epsilon", 1e-5))


@operator("LRN")
def _local_norm(node, x):
    size, alpha = node.integer("size"), node.real("alpha", 1e-4)
    beta, bias = node.real("beta", 0.75), node.real("bias", 1.0)
    if size is None or not 1 <= size <= 2**16:
        raise node.refuse(f"has size={size}", "1 to 65536")
    low = (size - 1) // 2
    squares = (x * x).movedim(1, -1)
    shape = squares.shape
    wide = F.pad(squares.reshape(-1, 1, shape[-1]), (low, size - 1 - low))
    sums = F.avg_pool1d(wide, size, 1).reshape(shape).movedim(-1, 1)
    return x / torch.pow(bias + alpha * sums, beta)


@operator("LpNormalization")
def _lp_norm(node, x):
    axis, p = node.axis(node.integer("axis", -1), x.ndim), node.choice("p", (1, 2), 2)
    sums = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return torch.where(sums == 0, torch.zeros((), dtype=x.dtype), x / sums)


@operator("MeanVarianceNormalization")
def _mean_variance(node, x):
    axes = node.axes(node.integers("axes", [0, 2, 3]), x.ndim)
    mean = x.mean(axes, True)
    deviation = ((x - mean) ** 2).mean(axes, True).sqrt()
    return (x - mean) / (deviation + 1e-9)


# --- reductions ---

_REDUCTIONS = {
    "ReduceSum": lambda x, dims, keep: x.sum(dims, keep, dtype=x.dtype),
    "ReduceMean": lambda x, dims, keep: x.mean(dims, keep),
    "ReduceMax": lambda x, dims, keep: x.amax(dims, keep),
    "ReduceMin": lambda x, dims, keep: x.amin(dims, keep),
    "ReduceL1": lambda x, dims, keep: x.abs().sum(dims, keep, dtype=x.dtype),
    "ReduceL2": lambda x, dims, keep: (x * x).sum(dims, keep).sqrt(),
    "ReduceSumSquare": lambda x, dims, keep: (x * x).sum(dims, keep, dtype=x.dtype),
    "ReduceLogSum": lambda x, dims, keep: x.sum(dims, keep).log(),
    "ReduceLogSumExp": lambda x, dims, keep: torch.logsumexp(x, dims, keep),
    "ReduceProd": None,
}
_AXES_AS_INPUT = {"ReduceSum": 13}


@operator(*_REDUCTIONS)
def _reduce(node, x, axes=None):
    since = _AXES_AS_INPUT.get(node.op, 18)
    given = node.list_of(1, "axes", since, 1 + (axes is not None))
    keep = bool(node.choice("keepdims", (0, 1), 1))
    nothing = node.choice("noop_with_empty_axes", (0, 1), 0)
    if not given and nothing:
        if node.op not in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
            raise node.refuse("has noop_with_empty_axes=1 and no axes", "axes")
        return x
    dims = node.axes(given, x.ndim) if given else list(range(x.ndim))
    if node.op != "ReduceProd":
        return _REDUCTIONS[node.op](x, dims, keep) if dims else x
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim, keep, dtype=x.dtype)
    return x


@operator("ArgMax", "ArgMin")
def _place_of_largest(node, x):
    axis, keep = node.axis(node.integer("axis", 0), x.ndim), bool(node.integer("keepdims", 1))
    find = torch.argmax if node.op == "ArgMax" else torch.argmin
    if node.choice("select_last_index", (0, 1), 0):
        return x.shape[axis] - 1 - find(x.flip(axis), axis, keep)
    return find(x, axis, keep)


@operator("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node, x):
    """Before opset 13 the axis begins the dims that are one."""
    function = {"Softmax": F.softmax, "LogSoftmax": F.log_softmax, "Hardmax": _hardmax}[node.op]
    if node.opset >= 13:
        return function(x, node.axis(node.integer("axis", -1), x.ndim))
    axis = node.axis(node.integer("axis", 1), x.ndim)
    if axis == x.ndim - 1:
        return function(x, axis)
    rows = math.prod(x.shape[:axis])
    return function(x.reshape(rows, -1), 1).reshape(x.shape)


def _hardmax(x, dim: int):
    places = torch.arange(x.shape[dim]).reshape([-1] + [1] * (x.ndim - 1 - dim))
    return (x.argmax(dim, True) == places).to(x.dtype)


@operator("TopK")
def _largest(node, x, count):
    axis = node.axis(node.integer("axis", -1), x.ndim)
    largest = bool(node.choice("largest", (0, 1), 1))
    node.choice("sorted", (0, 1), 1)
    found = torch.topk(x, int(node.number(1, "K")), axis, largest, True)
    return found.values, found.indices


@operator("EyeLike")
def _eye(node, x):
    number = node.integer("dtype")
    dtype = x.dtype if number is None else onnx_file.dtype_of(number, node.label)
    rows, columns = (torch.arange(each) for each in x.shape)
    return (columns - rows.unsqueeze(1) == node.integer("k", 0)).to(dtype)
