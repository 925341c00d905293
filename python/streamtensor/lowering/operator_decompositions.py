"""Decomposes operators that torch-mlir leaves without a lowering: products with sums, norms,
diagonals, scatters with a reduction, bags of embeddings, histograms, rounding to integers and back.
"""

import math

import torch
from torch._decomp import get_decompositions

_aten = torch.ops.aten
_PYTORCHS = (  # PyTorch's own decompositions are what the compiler takes
    "addmv addr addcdiv addcmul norm xlogy logit heaviside nan_to_num sinc special_entr "
    "special_xlog1py select_scatter renorm aminmax isin trace grid_sampler_2d "
    "native_layer_norm_backward native_group_norm_backward native_batch_norm_backward "
    "embedding_dense_backward"
).split()


def table() -> dict:
    pytorchs = [getattr(_aten, name) for name in _PYTORCHS if hasattr(_aten, name)]
    return {
        **get_decompositions(pytorchs),
        **{
            getattr(_aten, f"bitwise_{name}").Scalar: _with_number(
                getattr(_aten, f"bitwise_{name}").Tensor
            )
            for name in ("and", "or", "xor")
        },
        _aten.addbmm.default: _addbmm,
        _aten._new_zeros_with_same_feature_meta.default: _tangent_zeros,
        _aten.linalg_vector_norm.default: _vector_norm,
        _aten.linalg_norm.default: _norm,
        _aten.linalg_norm.ord_str: _named_norm,
        _aten._pdist_forward.default: _pdist,
        _aten.diag_embed.default: _diag_embed,
        _aten.diagonal_scatter.default: _diagonal_scatter,
        _aten.block_diag.default: _block_diag,
        _aten.scatter_reduce.two: _scatter_reduce,
        _aten.scatter.reduce: lambda x, dim, index, source, *, reduce: _scatter_reduce(
            x, dim, index, source, _REDUCTIONS[reduce]
        ),
        _aten.scatter.value_reduce: lambda x, dim, index, value, *, reduce: _scatter_reduce(
            x,
            dim,
            index,
            torch.full((), value, dtype=x.dtype).expand(index.shape),
            _REDUCTIONS[reduce],
        ),
        _aten.index_reduce.default: _index_reduce,
        _aten.multilabel_margin_loss_forward.default: _multilabel_margin_loss,
        _aten.masked_scatter.default: _masked_scatter,
        _aten._embedding_bag.default: _embedding_bag,
        _aten._embedding_bag_forward_only.default: _embedding_bag,
        _aten.histc.default: _histc,
        _aten.fake_quantize_per_tensor_affine_cachemask.default: _fake_quantized,
        _aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: (
            lambda x, scale, zero, enabled, low, high: _fake_quantized(x, scale, zero, low, high)
        ),
        _aten.fake_quantize_per_channel_affine_cachemask.default: _fake_quantized_by_channel,
        _aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        **_quantized_decomposed(),
    }


def _with_number(operation):
    return lambda x, number: operation(x, torch.full((), number, dtype=x.dtype))


def _tangent_zeros(x, like, *, self_num_batch_dims=0):
    return x.new_zeros((*x.shape[:self_num_batch_dims], *like.shape))


def _addbmm(x, one, other, *, beta=1, alpha=1):
    product = torch.bmm(one, other).sum(0)
    return (x if beta == 1 else beta * x) + (product if alpha == 1 else alpha * product)


def _vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    kind = dtype or x.dtype
    size = torch.abs(x.to(torch.promote_types(kind, torch.float32)))
    dims = list(range(x.ndim)) if dim is None else dim
    if not x.ndim:
        found = (size != 0).to(size.dtype) if ord == 0 else size
    elif ord == 0:
        found = (size != 0).to(size.dtype).sum(dims, keepdim)
    elif math.isinf(ord):
        found = (torch.amax if ord > 0 else torch.amin)(size, dims, keepdim)
    elif ord == 1:
        found = size.sum(dims, keepdim)
    elif ord == 2:
        found = torch.sqrt((size * size).sum(dims, keepdim))
    else:
        found = torch.pow(torch.pow(size, ord).sum(dims, keepdim), 1 / ord)
    return found.to(kind)


def _norm(x, ord=None, dim=None, keepdim=False, *, dtype=None):
    dims = [dim] if isinstance(dim, int) else dim
    if ord is None or len(dims or range(x.ndim)) == 1:
        return _vector_norm(x, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
    rows, columns = (each % x.ndim for each in dims or (-2, -1))
    if abs(ord) == 1:
        rows, columns = columns, rows
    elif not math.isinf(ord):
        return NotImplemented  # of singular values
    sums = torch.abs(x if dtype is None else x.to(dtype)).sum(columns, keepdim=True)
    found = (torch.amax if ord > 0 else torch.amin)(sums, rows, keepdim=True)
    return found if keepdim else found.squeeze((rows, columns))


def _named_norm(x, ord, dim=None, keepdim=False, *, dtype=None):
    if ord != "fro":
        return NotImplemented  # of singular values
    return _vector_norm(x, 2, dim, keepdim, dtype=dtype)


def _multilabel_margin_loss(x, target, reduction):
    """The targets of a row end at the first negative one."""
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1])
    count = rows.shape[-1]
    is_valid = (labels < 0).cumsum(1) == 0
    named = is_valid.unsqueeze(-1) & (labels.unsqueeze(-1) == torch.arange(count))
    is_target = named.any(1)
    aims = torch.where(named, rows.unsqueeze(1), 0.0).sum(-1)
    margins = torch.relu(1 - aims.unsqueeze(-1) + rows.unsqueeze(1))
    counted = is_valid.unsqueeze(-1) & ~is_target.unsqueeze(1)
    found = torch.where(counted, margins, 0.0).sum((1, 2)) / count
    found = found.reshape(x.shape[:-1])
    if reduction:
        found = found.mean() if reduction == 1 else found.sum()
    return found, is_target.reshape(target.shape).to(x.dtype)


def _pdist(x, p=2.0):
    """The distances of the pairs (0, 1), (0, 2), ..., (1, 2), ..."""
    count = x.shape[0]
    parts = [x[at].unsqueeze(0) - x[at + 1 :] for at in range(count - 1)]
    if not parts:
        return x.new_zeros(0)
    return _vector_norm(torch.cat(parts), p, [1])


def _diagonal_mask(rows: int, columns: int, offset: int):
    return torch.arange(columns) - torch.arange(rows).unsqueeze(-1) == offset


def _diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    low = max(-offset, 0)
    wide = torch.nn.functional.pad(source, (low, rows - low - source.shape[-1])).unsqueeze(-1)
    return torch.where(_diagonal_mask(rows, columns, offset), wide, moved).movedim(
        (-2, -1), (dim1, dim2)
    )


def _diag_embed(x, offset=0, dim1=-2, dim2=-1):
    extent = x.shape[-1] + abs(offset)
    zeros = torch.zeros((*x.shape[:-1], extent, extent), dtype=x.dtype)
    return _diagonal_scatter(zeros, x, offset, -2, -1).movedim((-2, -1), (dim1, dim2))


def _block_diag(tensors):
    parts = [torch.atleast_2d(each) for each in tensors]
    width, at, rows = sum(each.shape[1] for each in parts), 0, []
    for each in parts:
        rows.append(torch.nn.functional.pad(each, (at, width - at - each.shape[1])))
        at += each.shape[1]
    return torch.cat(rows)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def _least(dtype):
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _greatest(dtype):
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max


def _reduced(x, hits, source, reduce: str, include_self: bool):
    """x along the last dim, where row i of `hits` says which sources belong to element i."""
    rest = {
        "sum": 0,
        "mean": 0,
        "prod": 1,
        "amax": _least(x.dtype),
        "amin": _greatest(x.dtype),
    }[reduce]
    masked = torch.where(hits, source.unsqueeze(-2), torch.full((), rest, dtype=x.dtype))
    own = x if include_self else torch.full((), rest, dtype=x.dtype)
    if reduce in ("sum", "mean"):
        found = own + masked.sum(-1, dtype=x.dtype)
    elif reduce == "prod":
        found = own * masked.prod(-1, dtype=x.dtype)
    else:
        found = {"amax": torch.maximum, "amin": torch.minimum}[reduce](
            own.expand(x.shape), getattr(masked, reduce)(-1)
        )
    count = hits.sum(-1)
    if reduce == "mean":
        terms = (count + 1 if include_self else torch.clamp(count, min=1)).to(x.dtype)
        mode = None if x.dtype.is_floating_point else "floor"
        found = torch.div(found, terms, rounding_mode=mode)
    return found if include_self else torch.where(count > 0, found, x)


def _scatter_reduce(x, dim, index, source, reduce, *, include_self=True):
    if not x.ndim:
        return _scatter_reduce(
            x.reshape(1), 0, index.reshape(1), source.reshape(1), reduce, include_self=include_self
        ).reshape(())
    dim %= x.ndim
    for other, extent in enumerate(index.shape):
        if other != dim and extent < x.shape[other]:
            first, rest = x.split([extent, x.shape[other] - extent], other)
            return torch.cat(
                [
                    _scatter_reduce(first, dim, index, source, reduce, include_self=include_self),
                    rest,
                ],
                other,
            )
    source = source[tuple(map(slice, index.shape))]
    at = torch.arange(x.shape[dim]).unsqueeze(-1)
    hits = index.movedim(dim, -1).unsqueeze(-2) == at
    moved = x.movedim(dim, -1), hits, source.movedim(dim, -1)
    return _reduced(*moved, reduce, include_self).movedim(-1, dim)


def _index_reduce(x, dim, index, source, reduce, *, include_self=True):
    hits = index == torch.arange(x.shape[dim]).unsqueeze(-1)
    found = _reduced(x.movedim(dim, -1), hits, source.movedim(dim, -1), reduce, include_self)
    return found.movedim(-1, dim)


def _masked_scatter(x, mask, source):
    """The n-th element under the mask is the n-th of the source."""
    wide = mask.expand(x.shape).flatten()
    turn = torch.clamp(torch.cumsum(wide.to(torch.int64), 0) - 1, min=0)
    return torch.where(wide, source.flatten()[turn], x.flatten()).reshape(x.shape)


def _embedding_bag(
    table,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
    """Sums, means or maxima of the rows of each bag; bags begin at the offsets."""
    count, bags = indices.shape[0], offsets.shape[0] - bool(include_last_offset)
    last = torch.full((1,), count, dtype=offsets.dtype)
    ends = offsets[1:] if include_last_offset else torch.cat([offsets[1:], last])
    place = torch.arange(count)
    inside = (place >= offsets[:bags].unsqueeze(-1)) & (place < ends.unsqueeze(-1))
    if padding_idx >= 0:
        inside = inside & (indices != padding_idx)
    rows, sizes = table[indices], inside.sum(-1)
    if mode == 2:
        lowest = torch.full((), _least(rows.dtype), dtype=rows.dtype)
        largest = torch.where(inside.unsqueeze(-1), rows, lowest).amax(1)
        found = torch.where((sizes > 0).unsqueeze(-1), largest, torch.zeros((), dtype=rows.dtype))
    else:
        weights = inside.to(rows.dtype)
        weights = weights if per_sample_weights is None else weights * per_sample_weights
        found = weights @ rows
        if mode == 1:
            found = found / torch.clamp(sizes, min=1).to(rows.dtype).unsqueeze(-1)
    return found, inside.to(torch.int64).argmax(0), sizes, sizes


def _histc(x, bins=100, min=0, max=0):
    flat = x.flatten().to(torch.promote_types(x.dtype, torch.float32))
    low, high = (min, max) if min != max else (flat.amin(), flat.amax())
    if min == max:
        same = low == high
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    place = torch.floor((flat - low) * (bins / (high - low)))
    place = torch.where(flat == high, bins - 1.0, place)
    inside = ((flat >= low) & (flat <= high)).unsqueeze(-1)
    hits = inside & (place.unsqueeze(-1) == torch.arange(bins, dtype=torch.float32))
    return hits.to(torch.float32).sum(0).to(x.dtype)


def _fake_quantized(x, scale, zero_point, low, high):
    turned = torch.round(x * (1 / scale)) + zero_point
    mask = (turned >= low) & (turned <= high)
    return ((torch.clamp(turned, low, high) - zero_point) * scale).to(x.dtype), mask


def _along(values, x, axis: int):
    return values.reshape([-1 if dim == axis % x.ndim else 1 for dim in range(x.ndim)])


def _fake_quantized_by_channel(x, scale, zero_point, axis, low, high):
    return _fake_quantized(
        x, _along(scale, x, axis), _along(zero_point, x, axis).to(x.dtype), low, high
    )


def _quantized_decomposed() -> dict:
    """The operators by which PyTorch's quantizers write rounding to integers; they are there once a
    program has them.
    """
    library = torch.ops.quantized_decomposed
    rows = {
        "quantize_per_tensor": _quantized,
        "dequantize_per_tensor": _dequantized,
        "quantize_per_channel": _quantized_by_channel,
        "dequantize_per_channel": _dequantized_by_channel,
        "choose_qparams": _chosen_range,
        "choose_qparams_symmetric": _chosen_symmetric_range,
    }
    return {
        getattr(getattr(library, name), overload): function
        for name, function in rows.items()
        if hasattr(library, name)
        for overload in getattr(library, name).overloads()
        if overload in ("default", "tensor")
    }


def _chosen_range(x, low, high, eps, dtype):
    """The scale and the zero point of the numbers between the least and the largest one."""
    least = torch.clamp(x.float().amin(), max=0)
    scale = (torch.clamp(x.float().amax(), min=0) - least) / float(high - low)
    scale = torch.clamp(scale, min=eps).reshape(1)
    zero = torch.clamp(low - torch.round(least / scale).to(torch.int32), low, high)
    return scale.to(torch.float64), zero.to(torch.int64)


def _chosen_symmetric_range(x, low, high, eps, dtype):
    """The scale of the numbers up to the largest magnitude, and the middle of the integers."""
    scale = x.float().abs().amax() / (float(high - low) / 2)
    zero = torch.full((1,), 128 if dtype == torch.uint8 else 0)
    return torch.clamp(scale, min=eps).reshape(1).to(torch.float64), zero


def _quantized(x, scale, zero_point, low, high, dtype):
    scale = scale.to(torch.float32) if isinstance(scale, torch.Tensor) else scale
    turned = torch.round(x.to(torch.float32) * (1 / scale)) + zero_point
    return torch.clamp(turned, low, high).to(dtype)


def _dequantized(x, scale, zero_point, low, high, dtype, *, out_dtype=None):
    scale = scale.to(torch.float32) if isinstance(scale, torch.Tensor) else scale
    return ((x.to(torch.float32) - zero_point) * scale).to(out_dtype or torch.float32)


def _quantized_by_channel(x, scales, zero_points, axis, low, high, dtype):
    return _quantized(x, _along(scales, x, axis), _along(zero_points, x, axis), low, high, dtype)


def _dequantized_by_channel(x, scales, zero_points, axis, low, high, dtype, *, out_dtype=None):
    zeros = 0 if zero_points is None else _along(zero_points, x, axis)
    return _dequantized(x, _along(scales, x, axis), zeros, low, high, dtype, out_dtype=out_dtype)


def _encoder_layer(x, width, heads, qkv, qkv_bias, out, out_bias, gelu, norm_first, eps, *rest):
    """PyTorch's one operator for nn.TransformerEncoderLayer."""
    (scale1, shift1, scale2, shift2, up, up_bias, down, down_bias, mask, mask_type, *_) = (
        *rest,
        *[None] * 2,
    )
    norm1 = lambda y: torch.nn.functional.layer_norm(y, [width], scale1, shift1, eps)  # noqa: E731
    norm2 = lambda y: torch.nn.functional.layer_norm(y, [width], scale2, shift2, eps)  # noqa: E731

    def attention(y):
        parts = torch.nn.functional.linear(y, qkv, qkv_bias)
        q, k, v = parts.unflatten(-1, (3, heads, width // heads)).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) * (heads / width) ** 0.5
        if mask is not None:
            hidden = mask.to(torch.bool)
            hidden = hidden[:, None, None, :] if mask_type == 1 else hidden
            scores = torch.where(hidden, torch.full((), -math.inf, dtype=y.dtype), scores)
        found = (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)
        return torch.nn.functional.linear(found, out, out_bias)

    def perceptron(y):
        inner = torch.nn.functional.linear(y, up, up_bias)
        inner = torch.nn.functional.gelu(inner) if gelu else torch.relu(inner)
        return torch.nn.functional.linear(inner, down, down_bias)

    if norm_first:
        x = x + attention(norm1(x))
        return x + perceptron(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + perceptron(x))
