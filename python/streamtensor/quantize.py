"""The quantized arithmetic of `--quant` in PyTorch: what a design computes, as modules for any
Hugging Face model.

Contraction, for each group g of the reduction (128 elements, the last one may be shorter), with
groups summed in index order:

    s_a = max|x| * (1 / 127)   (f32, 1 for a group of zeros)
    x_q = clamp(round_half_even(x * (1 / s_a)), -127, 127)
    s_w = max|w| / 7           (f16, 1 for a group of zeros)
    w_q = clamp(round_half_even(w / s_w), -7, 7)
    y  += float(sum of x_q * w_q) * (s_a * s_w)

Weights that were rounded elsewhere may have a zero point z for each scale: they are
(w_q - z) * s_w, and the integer sum is that of x_q * (w_q - z).

Every product and sum is f32 without fused multiply-add; the bias is added last.

If a LayerNorm precedes contractions with biases, its own bias is not quantized: x above is the norm
without its bias, and b + w . (bias of the norm), with w as rounded, is added last.

Attention: K and V are int8 within +-119, with one f16 scale per head and token. A query has one
scale, and a score is its contraction with a row of K as weights. The scales of V are multiplied
into the exponentials of the softmax before these are quantized in groups of keys (`keys_per_scale`:
128, 64 or 32); the result is divided by the sum of the exponentials. An embedding is int8 with one
f16 scale per row. Norms, softmax and rotary embeddings are f32.

Activations, keys and values are multiplied by two reciprocals, of the constant and of the scale,
both rounded to f32: a divider per element would be the largest part of a quantizer. The integer
differs from that of the exact quotient only where the quotient is within 2^-16 of a half.

Integer sums are computed as f32 matrix products (f64 where they might pass 2^24), which are exact.
"""

import copy
import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from .errors import Error

# keys that share one scale of the probabilities, and the minimum for launches of several tokens
KEYS_PER_SCALE, MIN_KEYS_PER_SCALE = 128, 32
# elements above which a head is wide, and the keys per scale of a wide head in decode
WIDE_HEAD, WIDE_HEAD_KEYS = 128, 64
FEW_TOKENS = 8  # launches of at most so many tokens have the keys per scale of decode
KV_LIMIT = 119  # the largest value of two signed nibbles
ATTENTION = "streamtensor"
_GROUPS = {"32": 32, "64": 64, "128": 128, "row": None}
_BITS = {"i4": 4, "i8": 8, "f32": None}
_LAYER_BITS = {"w4a8": 4, "w8a8": 8, "fp32": None}


@dataclass(frozen=True)
class Scheme:
    """A parsed `--quant` scheme."""

    name: str  # w4a8, w8a8, bf16 or fp32
    weight: int | None = None  # bits of the weights of contractions; None: not quantized
    # elements of the reduction per weight scale; None: a whole row
    group: int | None = 128
    per_token: bool = False  # activations: one scale per token instead of one per group
    head: int | None = None  # bits of the last contraction, the LM head
    embedding: int | None = None  # bits of gathered rows
    kv: int | None = None  # bits of keys and values
    zeros: bool = False  # weights that share a scale share a zero point as well
    # layers with bits of their own: patterns of their names; the first match counts
    layers: tuple[tuple[str, int | None], ...] = ()

    @property
    def has_weights(self) -> bool:
        """Whether some contraction has a quantized weight."""
        return bool(self.weight or any(bits for _, bits in self.layers))

    def bits_of(self, weight: str, is_head: bool) -> int | None:
        """Bits of the weight of a contraction, by its name."""
        names = (weight.removesuffix(".weight"), weight)
        for pattern, bits in self.layers:
            if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                return bits
        return self.head if is_head else self.weight

    @property
    def uses_engine(self) -> bool:
        """Whether contractions are mapped to the shared matmul engine.

        Then one design is decode and prefill; a design of decode alone would read a prompt hardly
        slower.
        """
        return (
            self.weight is not None
            and self.group is not None
            and self.weight * self.group == 512
            and not self.per_token
        )

    @classmethod
    def parse(cls, text: str) -> "Scheme":
        """ "w4a8,group=64,head=i8,embedding=f32,activation=token,fc1=w8a8" and the like."""
        name, *options = text.split(",")
        known = {
            "w4a8": cls(name, weight=4, head=4, embedding=8, kv=8),
            "w8a8": cls(name, weight=8, head=8, embedding=8, kv=8),
            "bf16": cls(name, kv=16),
            "fp32": cls(name),
        }
        if name == "int8":
            raise Error(
                f"--quant '{text}' takes modules without a KV cache",
                f"accepted for language models are {', '.join(known)}",
            )
        if name not in known:
            raise Error(
                f"--quant '{text}': there is no scheme '{name}'", f"accepted are {', '.join(known)}"
            )
        scheme = known[name]
        for option in options:
            scheme = scheme._with(text, *option.rpartition("=")[::2])
        return scheme

    def _with(self, text: str, key: str, value: str) -> "Scheme":
        if self.name != "bf16" and key and value in _LAYER_BITS:
            return replace(self, layers=(*self.layers, (key, _LAYER_BITS[value])))
        choices = {
            "group": _GROUPS,
            "head": _BITS,
            "embedding": {"i8": 8, "f32": None},
            "activation": {"group": False, "token": True},
            "kv": {"i8": 8, "bf16": 16, "f32": None},
            "zero": {"none": False, "group": True},
        }
        if self.weight is None or key not in choices or value not in choices[key]:
            accepted = "; ".join(
                f"{option}={'|'.join(values)}" for option, values in choices.items()
            )
            raise Error(
                f"--quant '{text}': cannot read '{key}={value}'",
                f"accepted after w4a8 or w8a8 are {accepted}; after all but bf16 "
                f"LAYER={'|'.join(_LAYER_BITS)}",
            )
        field = {"activation": "per_token", "zero": "zeros"}.get(key, key)
        return replace(self, **{field: choices[key][value]})


@dataclass(frozen=True)
class Weight:
    """A quantized matrix, outputs x inputs."""

    q: torch.Tensor  # int8, outputs x inputs
    scale: torch.Tensor  # f16, outputs x groups
    group: int  # elements of the reduction per scale; the last group may be shorter
    zero: torch.Tensor | None = None  # int8, outputs x groups; None: all are zero

    def value(self) -> torch.Tensor:
        q = self.q.float() if self.zero is None else self.q.float() - self._each(self.zero)
        return q * self._each(self.scale)

    def _each(self, numbers: torch.Tensor) -> torch.Tensor:
        """The number of its group for every element, in f32."""
        return numbers.float().repeat_interleave(self.group, 1)[:, : self.q.shape[1]]

    def parts(self) -> dict[str, torch.Tensor]:
        """By the ends of their names in a weights file."""
        zero = {} if self.zero is None else {"zero": self.zero}
        return {"q": self.q, "scale": self.scale, **zero}


def limit(bits: int) -> int:
    return 2 ** (bits - 1) - 1


def as_f16(scale: torch.Tensor) -> torch.Tensor:
    """The scale in f16: 1 where it rounds to 0, and at most the largest f16."""
    scale = scale.clamp(max=torch.finfo(torch.float16).max).half()
    return torch.where(scale == 0, torch.ones_like(scale), scale)


def f16_scale(largest: torch.Tensor, top: int) -> torch.Tensor:
    return as_f16(largest / top)


def to_integers(value: torch.Tensor, scale: torch.Tensor, top: int) -> torch.Tensor:
    return torch.round(value / scale.float()).clamp(-top, top).to(torch.int8)


def times_reciprocal(value: torch.Tensor, scale: torch.Tensor, top: int) -> torch.Tensor:
    return torch.round(value * (torch.ones_like(scale) / scale)).clamp(-top, top).to(torch.int8)


def groups(value: torch.Tensor, size: int) -> torch.Tensor:
    """The last dim in groups, the last group padded with zeros: ... x G x size."""
    short = -value.shape[-1] % size
    padded = nn.functional.pad(value, (0, short)) if short else value
    return padded.unflatten(-1, (-1, size))


def round_weight(weight: torch.Tensor, bits: int, group: int | None) -> Weight:
    """Rounds to nearest. weight: outputs x inputs."""
    size = group or weight.shape[1]
    parts = groups(weight.detach().float(), size)
    scale = f16_scale(parts.abs().amax(-1), limit(bits))
    q = to_integers(parts, scale.unsqueeze(-1), limit(bits))
    return Weight(q.flatten(1)[:, : weight.shape[1]].contiguous(), scale, size)


def round_activation(x: torch.Tensor, group: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """(int8 like x, f32 scales, ... x groups); group None: one scale for the whole last dim."""
    parts = groups(x.float(), group or x.shape[-1])
    scale = parts.abs().amax(-1) * (1 / 127)
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return times_reciprocal(parts, scale.unsqueeze(-1), 127).flatten(-2)[..., : x.shape[-1]], scale


def round_rows(x: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(int8 like x, f16 scales, one for each row)."""
    scale = as_f16(x.float().abs().amax(-1, keepdim=True) * (1 / top))
    return times_reciprocal(x.float(), scale.float(), top), scale.squeeze(-1)


def group_sums(x: torch.Tensor, weight: torch.Tensor, start: int, stop: int) -> torch.Tensor:
    """Exact integer sums over [start, stop) of the last dims of two tensors, int8 or weights less
    zero points, as f32: x @ weight^T.
    """
    most = 127 if weight.dtype == torch.int8 else 255
    exact = torch.float32 if (stop - start) * 127 * most < 2**24 else torch.float64
    return (
        x[..., start:stop].to(exact) @ weight[..., start:stop].to(exact).transpose(-1, -2)
    ).float()


def contract(
    x: torch.Tensor, x_scale: torch.Tensor, weight: torch.Tensor, w_scale: torch.Tensor, size: int
) -> torch.Tensor:
    """The sum over groups in index order.

    x, weight: int8, or weights less zero points. Scales: ... x G, or ... x 1 for one scale of all
    groups.
    """

    def column(scale, g):
        return scale[..., min(g, scale.shape[-1] - 1)]

    y = None
    for g in range(-(-x.shape[-1] // size)):
        dot = group_sums(x, weight, g * size, min((g + 1) * size, x.shape[-1]))
        term = dot * (column(x_scale, g).unsqueeze(-1) * column(w_scale.float(), g).unsqueeze(-2))
        y = term if y is None else y + term
    return y


class QuantizedLinear(nn.Module):
    """nn.Linear or Conv1D in integer arithmetic."""

    def __init__(self, weight: Weight, bias: torch.Tensor | None, per_token: bool):
        super().__init__()
        self.register_buffer("q", weight.q)
        self.register_buffer("scale", weight.scale)
        self.register_buffer("zero", weight.zero)
        self.bias, self.per_token = bias, per_token
        self.group = weight.group
        self.size = min(weight.group, 128) if not per_token else weight.group
        self.in_features, self.out_features = weight.q.shape[1], weight.q.shape[0]

    @property
    def weight(self) -> torch.Tensor:  # models read its type and device
        return self.scale.float()

    def forward(self, x):
        bias = self.bias
        if bias is not None and hasattr(x, "before_bias"):
            x, vector = x.before_bias
            bias = (bias.double() + self.rounded().value().double() @ vector.double()).float()
        x_q, x_scale = round_activation(x, None if self.per_token else self.size)
        q = self.q
        if self.zero is not None:
            each = self.zero.short().repeat_interleave(self.group, 1)
            q = q.short() - each[:, : q.shape[1]]
        y = contract(x_q, x_scale, q, self.scale, self.size)
        return y if bias is None else y + bias

    def rounded(self) -> Weight:
        return Weight(self.q, self.scale, self.group, self.zero)


def keys_per_scale(tokens: int, numbers: int) -> int:
    """Keys that share one scale of the probabilities.

    tokens: of a launch. numbers: elements of a head. The keys of the launch itself fit the first
    group.
    """
    keys = WIDE_HEAD_KEYS if tokens == 1 and numbers > WIDE_HEAD else KEYS_PER_SCALE
    while tokens > FEW_TOKENS and keys > MIN_KEYS_PER_SCALE and keys // 2 >= tokens:
        keys //= 2
    return keys


def _new_row_last(query, mask, *rows):
    """Moves the single new row of a decode step behind the cached rows, where the design has it
    when it forms groups of keys.
    """
    if query.shape[2] != 1 or rows[0].shape[2] <= keys_per_scale(1, query.shape[3]):
        return (mask, *rows)
    return (
        mask if mask is None or mask.shape[-1] == 1 else mask[..., : rows[0].shape[2]].roll(-1, -1),
        *(part.roll(-1, 2) for part in rows),
    )


def attention(module, query, key, value, mask, scaling=None, softcap=None, **_):
    """Integer attention with the interface of transformers: query B x H x T x D, key and value B x
    KV x S x D.
    """
    mask, key, value = _new_row_last(query, mask, key, value)
    repeat = query.shape[1] // key.shape[1]
    (k, k_scale), (v, v_scale) = (
        round_rows(rows.repeat_interleave(repeat, 1), KV_LIMIT) for rows in (key, value)
    )
    q, q_scale = round_activation(query, None)
    scores = contract(q, q_scale, k, k_scale.unsqueeze(-1), query.shape[-1])
    scores = _scaled(scores, mask, scaling or query.shape[-1] ** -0.5, softcap)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    whole = powers.sum(-1, keepdim=True)
    keys = keys_per_scale(query.shape[2], query.shape[3])
    p, p_scale = round_activation(powers * v_scale.float().unsqueeze(-2), keys)
    found = (
        contract(p, p_scale, v.transpose(-1, -2), torch.ones(*v.shape[:2], v.shape[3], 1), keys)
        / whole
    )
    return found.transpose(1, 2).contiguous(), powers / whole


def attention_bf16(module, query, key, value, mask, scaling=None, softcap=None, **_):
    """f32 attention with keys and values stored as bf16."""
    repeat = query.shape[1] // key.shape[1]
    key, value = (rows.bfloat16().float().repeat_interleave(repeat, 1) for rows in (key, value))
    probabilities = torch.softmax(
        _scaled(query @ key.transpose(2, 3), mask, scaling or query.shape[-1] ** -0.5, softcap), -1
    )
    return (probabilities @ value).transpose(1, 2).contiguous(), probabilities


def _scaled(scores, mask, scaling, softcap):
    scores = scores * scaling
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    return scores if mask is None else scores + mask[..., : scores.shape[-1]]


def contractions(module: nn.Module) -> dict[str, nn.Module]:
    """The layers with a weight, by the name of the weight (a tied weight: its first name), in the
    order of the module.
    """
    first = {id(parameter): name for name, parameter in module.named_parameters()}
    return {
        first[id(layer.weight)]: layer
        for layer in module.modules()
        if isinstance(layer, (nn.Linear, Conv1D))
    }


def matrix(layer: nn.Module) -> torch.Tensor:
    """The layer's weight, outputs x inputs."""
    return layer.weight.T if isinstance(layer, Conv1D) else layer.weight


def head(module: nn.Module) -> nn.Module | None:
    return module.get_output_embeddings() if hasattr(module, "get_output_embeddings") else None


def rounded(
    module: nn.Module,
    scheme: Scheme,
    stored: Callable[[str, int], Weight | None] = lambda name, bits: None,
) -> dict[str, Weight]:
    """Every weight that the scheme quantizes, rounded to nearest. stored: of those that have
    integers of so many bits already.
    """
    found = {}
    for name, layer in contractions(module).items():
        if bits := scheme.bits_of(name, layer is head(module)):
            weight = stored(name, bits)
            found[name] = weight or round_weight(matrix(layer), bits, scheme.group)
    return found


def _attach_unbiased_norm(norm: nn.LayerNorm, inputs, y: torch.Tensor) -> None:
    """Attaches the norm without its bias, for contractions with a bias.

    Norms whose result has other users too, as behind a residual addition, are treated in the same
    way.
    """
    y.before_bias = (
        nn.functional.layer_norm(inputs[0], norm.normalized_shape, norm.weight, None, norm.eps),
        norm.bias,
    )


def quantized_copy(
    module: nn.Module, scheme: Scheme, weights: dict[str, Weight] | None = None
) -> nn.Module:
    """A copy of the module with the arithmetic of the scheme. weights: of `rounded`, or
    calibrated.
    """
    weights = rounded(module, scheme) if weights is None else weights
    made = copy.deepcopy(module).eval()
    layers = {layer: weights[name] for name, layer in contractions(made).items() if name in weights}
    for parent in list(made.modules()):
        for name, child in list(parent.named_children()):
            if child in layers:
                setattr(parent, name, QuantizedLinear(layers[child], child.bias, scheme.per_token))
        if isinstance(parent, nn.LayerNorm) and parent.bias is not None and layers:
            parent.register_forward_hook(_attach_unbiased_norm)
    _round_storage(made, scheme)
    if scheme.kv and hasattr(made, "set_attn_implementation"):
        made.set_attn_implementation(
            _register_attention(ATTENTION if scheme.kv == 8 else ATTENTION + "_bf16")
        )
    return made


def _round_storage(module: nn.Module, scheme: Scheme) -> None:
    """Rounds embeddings to int8 rows; for bf16, every matrix to bf16."""
    for layer in module.modules():
        weight = getattr(layer, "weight", None)
        if isinstance(layer, nn.Embedding) and scheme.embedding:
            q, scale = round_rows(weight.detach(), limit(scheme.embedding))
            layer.weight = nn.Parameter(
                q.float() * scale.float().unsqueeze(-1), requires_grad=False
            )
        elif scheme.name == "bf16" and isinstance(layer, (nn.Linear, Conv1D, nn.Embedding)):
            layer.weight = nn.Parameter(weight.detach().bfloat16().float(), requires_grad=False)


def _register_attention(name: str) -> str:
    """Registers the attention in transformers, with additive masks."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(name, attention if name == ATTENTION else attention_bf16)
    AttentionMaskInterface.register(name, eager_mask)
    return name


def weight_file_tensors(module: nn.Module, weights: dict[str, Weight]) -> dict[str, torch.Tensor]:
    """The tensors of a weights file: NAME.q (int8, the shape of NAME), NAME.scale and maybe
    NAME.zero (f16 and int8, groups in place of the reduction).

    A weight that is gathered as well (a tied embedding) is also stored under its own name.
    """
    layers = contractions(module)
    gathered = {id(layer.weight) for layer in module.modules() if isinstance(layer, nn.Embedding)}
    found = {}
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if name not in weights or id(value) in gathered:
            found[name] = value.detach()
        if name in weights:
            flip = isinstance(layers[name], Conv1D)
            for part, tensor in weights[name].parts().items():
                found[f"{name}.{part}"] = (tensor.T if flip else tensor).contiguous()
    return found
