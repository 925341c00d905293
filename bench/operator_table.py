"""Compiles one use of every core ATen operator of PyTorch and compares it with PyTorch.

    operator_table.py [NAME ...]    prints rows (default: of all operators)
    operator_table.py --write       writes bench/results/operators.md

A row says that the design's results equal PyTorch's, or why the operator is refused.
"""

import sys
import warnings
from pathlib import Path

from common import ROOT

sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import streamtensor  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "operators.md"
TOLERANCE = 2e-5  # largest difference / largest value of PyTorch's
TOGETHER = 12  # operators a design
aten = torch.ops.aten

torch.manual_seed(0)
A, B = torch.randn(4, 6), torch.randn(4, 6)
UNIT, POSITIVE = torch.rand(4, 6) * 1.8 - 0.9, torch.rand(4, 6) + 1.1
INTEGERS, PLACES = torch.randint(-20, 20, (4, 6)), torch.randint(0, 4, (4, 6))
TRUTHS = A > 0
IMAGE, VOLUME = torch.randn(1, 2, 6, 6), torch.randn(1, 2, 4, 4, 4)
SIGNAL, ROWS = torch.randn(1, 2, 8), torch.randn(10, 4)
SCALE = torch.rand(2) + 0.5
CUBE = torch.randn(2, 4, 6)
GRID = torch.rand(1, 3, 3, 2) * 2 - 1

UNARY = (
    "abs acos:u acosh:p alias asin:u asinh atan atanh:u ceil clone cos cosh erf exp expm1 floor "
    "isinf isnan log:p log10:p log1p:p log2:p neg reciprocal:p relu round rsqrt:p sigmoid sign sin "
    "sinh sqrt:p tan tanh trunc logical_not bitwise_not:i gelu elu leaky_relu hardtanh argmax "
    "argmin mean amax any"
)
BINARY = "add sub mul div maximum minimum atan2 logical_and logical_or logical_xor"
COMPARED = "eq ne lt le gt ge"
# why an operator is not tried
NOT_TRIED = {
    "empty.memory_format": "its values are not defined",
    "empty_strided.default": "its values are not defined",
    "resize_.default": "its values are not defined",
    "sym_is_contiguous.default": "it is about the export, not about numbers",
    "sym_numel.default": "it is about the export, not about numbers",
    "sym_size.int": "it is about the export, not about numbers",
    "sym_storage_offset.default": "it is about the export, not about numbers",
    "sym_stride.int": "it is about the export, not about numbers",
    "atan2.out": "it writes to a tensor of the caller",
}


def _call(operation, *rest, **named):
    return lambda *tensors: operation(*tensors, *rest, **named)


def samples() -> dict:
    """For each operator a function and its tensors."""
    of = {"u": UNIT, "p": POSITIVE, "i": INTEGERS, "": A}
    rows = {}
    for word in UNARY.split():
        name, _, kind = word.partition(":")
        rows[f"{name}.default"] = getattr(aten, name).default, of[kind]
    for name in BINARY.split():
        packet = getattr(aten, name)
        overload = "Tensor" if "Tensor" in packet.overloads() else "default"
        rows[f"{name}.{overload}"] = getattr(packet, overload), A, B
    for name in ("add", "sub", "mul", "div"):
        rows[f"{name}.Scalar"] = _call(getattr(aten, name).Scalar, 1.5), A
    for name in COMPARED.split():
        rows[f"{name}.Tensor"] = getattr(aten, name).Tensor, INTEGERS, PLACES
        rows[f"{name}.Scalar"] = _call(getattr(aten, name).Scalar, 3), INTEGERS
    for name in ("and", "or", "xor"):
        packet = getattr(aten, f"bitwise_{name}")
        rows[f"bitwise_{name}.Tensor"] = packet.Tensor, INTEGERS, PLACES
        rows[f"bitwise_{name}.Scalar"] = _call(packet.Scalar, 5), INTEGERS
    for name in ("fmod", "remainder"):
        rows[f"{name}.Tensor"] = getattr(aten, name).Tensor, A, POSITIVE
        rows[f"{name}.Scalar"] = _call(getattr(aten, name).Scalar, 0.7), A
    return rows | _reductions() | _images() | _moves() | _products() | _gradients()


def outside() -> dict:
    """The same for operators without static shapes, or of random numbers."""
    return {
        "native_dropout.default": (lambda x: aten.native_dropout.default(x, 0.5, True)[0], A),
        "rand.default": (lambda x: x + aten.rand.default([4, 6]), A),
        "randn.default": (lambda x: x + aten.randn.default([4, 6]), A),
        "randperm.default": (lambda x: x[aten.randperm.default(4)], A),
        "nonzero.default": (aten.nonzero.default, A),
    }


def _reductions() -> dict:
    return {
        "_fft_r2c.default": (
            lambda x: aten.view_as_real(aten._fft_r2c.default(x, [1], 0, True)),
            A,
        ),
        "_fft_c2r.default": (lambda x: aten._fft_c2r.default(torch.complex(x, x), [1], 0, 10), A),
        "amin.default": (_call(aten.amin.default, [1]), A),
        "any.dim": (_call(aten.any.dim, 1), TRUTHS),
        "any.dims": (_call(aten.any.dims, [0, 1]), TRUTHS),
        "cumsum.default": (_call(aten.cumsum.default, 1), A),
        "max.dim": (_call(aten.max.dim, 1), A),
        "min.dim": (_call(aten.min.dim, 1), A),
        "mean.dim": (_call(aten.mean.dim, [1]), A),
        "prod.default": (aten.prod.default, UNIT),
        "prod.dim_int": (_call(aten.prod.dim_int, 1), UNIT),
        "sum.dim_IntList": (_call(aten.sum.dim_IntList, [1]), A),
        "var.dim": (_call(aten.var.dim, [1]), A),
        "var.correction": (_call(aten.var.correction, [1], correction=0), A),
        "sort.default": (_call(aten.sort.default, 1), A),
        "topk.default": (_call(aten.topk.default, 3), A),
        "_softmax.default": (_call(aten._softmax.default, 1, False), A),
        "_log_softmax.default": (_call(aten._log_softmax.default, 1, False), A),
        "pow.Tensor_Tensor": (aten.pow.Tensor_Tensor, POSITIVE, A),
        "pow.Tensor_Scalar": (_call(aten.pow.Tensor_Scalar, 3), A),
        "pow.Scalar": (lambda x: aten.pow.Scalar(1.7, x), A),
        "clamp.default": (_call(aten.clamp.default, -0.5, 0.5), A),
        "clamp.Tensor": (lambda x, low: aten.clamp.Tensor(x, low, low + 1), A, UNIT),
        "div.Tensor_mode": (
            lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
            A,
            UNIT,
        ),
        "div.Scalar_mode": (lambda x: aten.div.Scalar_mode(x, 0.7, rounding_mode="trunc"), A),
        "native_layer_norm.default": (
            lambda x, scale: aten.native_layer_norm.default(x, [6], scale[0], None, 1e-5)[0],
            A,
            B,
        ),
        "native_group_norm.default": (
            lambda x, scale: aten.native_group_norm.default(x, scale, None, 1, 2, 36, 1, 1e-5)[0],
            IMAGE,
            SCALE,
        ),
        "_native_batch_norm_legit_no_training.default": (
            lambda x, scale: aten._native_batch_norm_legit_no_training.default(
                x, scale, None, scale, scale, 0.1, 1e-5
            )[0],
            IMAGE,
            SCALE,
        ),
        "_native_batch_norm_legit.no_stats": (
            lambda x, scale: aten._native_batch_norm_legit.no_stats(
                x, scale, None, True, 0.1, 1e-5
            )[0],
            IMAGE,
            SCALE,
        ),
        "_native_batch_norm_legit.default": (
            lambda x, scale: aten._native_batch_norm_legit.default(
                x, scale, None, scale * 1, scale * 1, True, 0.1, 1e-5
            )[0],
            IMAGE,
            SCALE,
        ),
    }


def _images() -> dict:
    return {
        "_adaptive_avg_pool2d.default": (_call(aten._adaptive_avg_pool2d.default, [3, 4]), IMAGE),
        "_adaptive_avg_pool3d.default": (
            _call(aten._adaptive_avg_pool3d.default, [2, 2, 3]),
            VOLUME,
        ),
        "adaptive_avg_pool1d.default": (_call(aten.adaptive_avg_pool1d.default, [3]), SIGNAL),
        "avg_pool1d.default": (_call(aten.avg_pool1d.default, [2]), SIGNAL),
        "avg_pool2d.default": (_call(aten.avg_pool2d.default, [2, 2]), IMAGE),
        "avg_pool3d.default": (_call(aten.avg_pool3d.default, [2, 2, 2]), VOLUME),
        "max_pool2d_with_indices.default": (
            _call(aten.max_pool2d_with_indices.default, [2, 2]),
            IMAGE,
        ),
        "max_pool3d_with_indices.default": (
            lambda x: aten.max_pool3d_with_indices.default(x, [2, 2, 2])[0],
            VOLUME,
        ),
        "convolution.default": (
            lambda x, w: aten.convolution.default(
                x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1
            ),
            IMAGE,
            torch.randn(3, 2, 3, 3),
        ),
        "col2im.default": (
            _call(aten.col2im.default, [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
            torch.randn(1, 8, 12),
        ),
        "grid_sampler_2d.default": (_call(aten.grid_sampler_2d.default, 0, 0, False), IMAGE, GRID),
        "reflection_pad1d.default": (_call(aten.reflection_pad1d.default, [1, 2]), SIGNAL),
        "reflection_pad2d.default": (_call(aten.reflection_pad2d.default, [1, 2, 0, 1]), IMAGE),
        "reflection_pad3d.default": (
            _call(aten.reflection_pad3d.default, [1, 1, 0, 1, 1, 0]),
            VOLUME,
        ),
        "replication_pad2d.default": (_call(aten.replication_pad2d.default, [1, 2, 0, 1]), IMAGE),
        "replication_pad3d.default": (
            _call(aten.replication_pad3d.default, [1, 1, 0, 1, 1, 0]),
            VOLUME,
        ),
        "upsample_bilinear2d.vec": (
            lambda x: aten.upsample_bilinear2d.vec(x, None, False, [2.0, 2.0]),
            IMAGE,
        ),
        "upsample_nearest2d.vec": (
            lambda x: aten.upsample_nearest2d.vec(x, None, [2.0, 2.0]),
            IMAGE,
        ),
        "constant_pad_nd.default": (_call(aten.constant_pad_nd.default, [1, 2], 0.5), A),
    }


def _moves() -> dict:
    return {
        "_local_scalar_dense.default": (lambda x: x * x[0, 0].item(), A),
        "_to_copy.default": (lambda x: aten._to_copy.default(x, dtype=torch.int32), A * 5),
        "arange.start_step": (lambda x: x + aten.arange.start_step(0, 12, 2), INTEGERS),
        "as_strided.default": (_call(aten.as_strided.default, [3, 2], [5, 3], 1), A),
        "cat.default": (lambda x, y: aten.cat.default([x, y], 1), A, B),
        "copy.default": (aten.copy.default, A, B),
        "diagonal.default": (_call(aten.diagonal.default, 1), A),
        "expand.default": (lambda x: aten.expand.default(x, [3, 4, 6]), A),
        "fill.Scalar": (lambda x: x + aten.fill.Scalar(x, 2.0), A),
        "flip.default": (_call(aten.flip.default, [1]), A),
        "full.default": (lambda x: x + aten.full.default([4, 6], 1.5), A),
        "full_like.default": (lambda x: x + aten.full_like.default(x, 1.5), A),
        "scalar_tensor.default": (lambda x: x + aten.scalar_tensor.default(1.5), A),
        "gather.default": (lambda x, at: aten.gather.default(x, 1, at), A, PLACES),
        "index.Tensor": (lambda x, at: aten.index.Tensor(x, [at[0]]), ROWS, PLACES),
        "index_put.default": (
            lambda x, y, at: aten.index_put.default(x, [at[:, 0]], y),
            A,
            B,
            torch.tensor([[1], [0], [3], [2]]),
        ),
        "index_select.default": (
            lambda x, at: aten.index_select.default(x, 1, at[0]),
            A,
            PLACES,
        ),
        "embedding.default": (aten.embedding.default, ROWS, PLACES),
        "_embedding_bag.default": (
            lambda w, at, first: aten._embedding_bag.default(w, at, first)[0],
            ROWS,
            torch.tensor([1, 4, 2, 4, 5, 9]),
            torch.tensor([0, 2, 2]),
        ),
        "masked_scatter.default": (aten.masked_scatter.default, A, TRUTHS, B),
        "permute.default": (_call(aten.permute.default, [1, 0]), A),
        "repeat.default": (_call(aten.repeat.default, [2, 1]), A),
        "scatter.value": (lambda x, at: aten.scatter.value(x, 1, at, 2.0), A, PLACES),
        "scatter.src": (
            lambda x, at, y: aten.scatter.src(x, 1, at, y),
            A,
            torch.stack([torch.randperm(6) for _ in range(4)]),
            B,
        ),
        "scatter_add.default": (
            lambda x, at, y: aten.scatter_add.default(x, 1, at, y),
            A,
            PLACES,
            B,
        ),
        "scatter_reduce.two": (
            lambda x, at, y: aten.scatter_reduce.two(x, 1, at, y, "amax"),
            A,
            PLACES,
            B,
        ),
        "select.int": (_call(aten.select.int, 1, 2), A),
        "select_scatter.default": (lambda x, y: aten.select_scatter.default(x, y[0], 0, 2), A, B),
        "slice.Tensor": (_call(aten.slice.Tensor, 1, 1, 6, 2), A),
        "slice_scatter.default": (
            lambda x, y: aten.slice_scatter.default(x, y[:, :2], 1, 1, 3),
            A,
            B,
        ),
        "split_with_sizes.default": (_call(aten.split_with_sizes.default, [2, 4], 1), A),
        "squeeze.dim": (lambda x: aten.squeeze.dim(x[:1], 0), A),
        "squeeze.dims": (lambda x: aten.squeeze.dims(x[:1, :1], [0, 1]), A),
        "unsqueeze.default": (_call(aten.unsqueeze.default, 1), A),
        "view.default": (_call(aten.view.default, [6, 4]), A),
        "where.self": (aten.where.self, TRUTHS, A, B),
    }


def _products() -> dict:
    return {
        "_cdist_forward.default": (_call(aten._cdist_forward.default, 2.0, None), A, B),
        "_pdist_forward.default": (_call(aten._pdist_forward.default, 2.0), A),
        "addmm.default": (lambda x, y: aten.addmm.default(x[0, :4], x, y.T), A, B),
        "bmm.default": (lambda x: aten.bmm.default(x, x.transpose(1, 2)), CUBE),
        "mm.default": (lambda x, y: aten.mm.default(x, y.T), A, B),
    }


def _gradients() -> dict:
    pooled, indices = aten.max_pool2d_with_indices.default(IMAGE, [3, 3], [2, 2], [1, 1])
    kernel = torch.randn(3, 2, 3, 3)
    return {
        "_adaptive_avg_pool2d_backward.default": (
            aten._adaptive_avg_pool2d_backward.default,
            torch.randn(1, 2, 3, 4),
            IMAGE,
        ),
        "avg_pool2d_backward.default": (
            _call(aten.avg_pool2d_backward.default, [3, 3], [2, 2], [1, 1], False, False, None),
            pooled,
            IMAGE,
        ),
        "max_pool2d_with_indices_backward.default": (
            lambda g, x, at: aten.max_pool2d_with_indices_backward.default(
                g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, at
            ),
            pooled,
            IMAGE,
            indices,
        ),
        "convolution_backward.default": (
            lambda g, x, w: aten.convolution_backward.default(
                g, x, w, [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
            ),
            torch.randn(1, 3, 6, 6),
            IMAGE,
            kernel,
        ),
        "embedding_dense_backward.default": (
            _call(aten.embedding_dense_backward.default, 10, -1, False),
            torch.randn(4, 6, 3),
            PLACES,
        ),
        "native_layer_norm_backward.default": (
            lambda g, x, scale: aten.native_layer_norm_backward.default(
                g,
                x,
                [6],
                x.mean(1, keepdim=True),
                1 / x.std(1, correction=0, keepdim=True),
                scale[0],
                scale[0],
                [True, True, True],
            ),
            A,
            B,
            UNIT,
        ),
        "native_group_norm_backward.default": (
            lambda g, x, scale: aten.native_group_norm_backward.default(
                g,
                x,
                x.mean([1, 2, 3]).reshape(1, 1),
                1 / x.std([1, 2, 3], correction=0).reshape(1, 1),
                scale,
                1,
                2,
                36,
                1,
                [True, True, True],
            ),
            torch.randn(1, 2, 6, 6),
            IMAGE,
            SCALE,
        ),
    }


def core_operators() -> list[str]:
    names = {
        full.removeprefix("aten::").partition(".")[0]
        for full in torch._C._dispatch_get_all_op_names()
        if full.startswith("aten::")
    }
    return sorted(
        f"{name}.{overload}"
        for name in names
        for overload in getattr(aten, name).overloads()
        if torch.Tag.core in getattr(getattr(aten, name), overload).tags
    )


class Each(torch.nn.Module):
    """The operators' uses, each of its own tensors."""

    def __init__(self, rows: dict):
        super().__init__()
        self.rows = rows

    def forward(self, *tensors):
        found, rest = [], tensors
        for function, *own in self.rows.values():
            found.append(function(*rest[: len(own)]))
            rest = rest[len(own) :]
        return found


def verdicts(rows: dict) -> dict[str, str]:
    """What happens to each of the rows; of a design that is refused, one by one."""
    tensors = [each for _, *own in rows.values() for each in own]
    module = Each(rows)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with streamtensor.compile(module, tuple(tensors)) as design:
                found = design(*tensors)
    except streamtensor.Error as error:
        if len(rows) == 1:  # without the line of this file that calls it
            reason = str(error).splitlines()[0].partition(": found.append(")[0]
            return dict.fromkeys(rows, f"refused: {reason}")
        names = list(rows)
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        return {k: v for half in halves for k, v in verdicts({n: rows[n] for n in half}).items()}
    wanted = module(*[each.clone() for each in tensors])
    return {name: _compared(*pair) for name, *pair in zip(rows, found, wanted)}


def _compared(found, wanted) -> str:
    for got, right in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        if got.shape != right.shape or got.dtype != right.dtype:
            return "WRONG: another type"
        scale = right.double().abs().max().item() or 1
        if not (got.double() - right.double()).abs().max().item() <= TOLERANCE * scale:
            return "WRONG"
    return "works"


def main() -> None:
    words = sys.argv[1:]
    rows, beyond = samples(), outside()
    wanted = set(words) - {"--write"} or {*rows, *beyond}
    found = {name: f"not tried: {reason}" for name, reason in NOT_TRIED.items()}
    names = [name for name in rows if name in wanted]
    parts = [names[at : at + TOGETHER] for at in range(0, len(names), TOGETHER)]
    for part in [*parts, *([name] for name in beyond if name in wanted)]:
        made = verdicts({name: (rows | beyond)[name] for name in part})
        found |= made
        for name, text in made.items():
            print(f"| `{name}` | {text} |", flush=True)
    if "--write" in words:
        write(found, RESULTS)


def write(found: dict[str, str], path: Path) -> None:
    lines = [f"| `{name}` | {found[name]} |" for name in core_operators()]
    count = sum(found[name] == "works" for name in samples())
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "# Core ATen operators\n\n"
        f"Of {len(samples())} operators with static shapes and without randomness {count} work: a "
        "design with one use of\nthe operator gives what PyTorch gives.\n"
        "`bench/operator_table.py --write` makes the table.\n\n"
        "| operator | design |\n|---|---|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
