"""One forward step of a Hugging Face causal language model as a pure function, with an explicit KV cache.

Decode, at most P = context - 1 past rows:
    (ids 1x1, positions 1x1, k.0.., v.0.. each 1xHxPxD) -> (logits 1x1xV, rows k.i.., v.i.. 1xHx1xD)
The design writes row k.i into state k.i along axis 2 at index `positions`, which is also how many past rows there are:
the states' axis 2 is a run-time extent of that name, and no row beyond it is read. So that such an extent comes last,
the new keys and values stand before the past ones; attention does not depend on their order.
A masked step has, behind positions, an additive mask 1x1x1x(P+1) (slot 0: the new token). Prefill has no past:
    (ids 1xN, positions 1xN, mask 1x1xNxN) -> (logits 1xNxV, k.i.., v.i.. 1xHxNxD)
Where some layers see the last W tokens only and the context is longer, these have a mask of their own, `mask.window`,
after `mask`; where all layers do, `mask` is that one.
"""
from dataclasses import dataclass

import torch

from .errors import Error
from .graph import Port

PHASES = ("decode", "prefill")


class ExplicitCache:
    """Takes the past keys and values as given and keeps the new ones, as model code expects of its cache."""
    is_compileable = False

    def __init__(self, layers: int, k: list, v: list):
        self.k, self.v = k, v
        self.new_k, self.new_v = [None] * layers, [None] * layers

    def update(self, key, value, layer, *_, **__):
        self.new_k[layer], self.new_v[layer] = key, value
        if not self.k:
            return key, value
        return torch.cat([key, self.k[layer]], 2), torch.cat([value, self.v[layer]], 2)

    def get_seq_length(self, *_):
        return self.k[0].shape[2] if self.k else 0

    def get_mask_sizes(self, query, layer=0):
        return self.get_seq_length() + (query if isinstance(query, int) else query.shape[0]), 0

    def get_max_cache_shape(self, *_):
        return -1

    @property
    def is_sliding(self):
        return [False] * len(self.new_k)

    def __len__(self):
        return len(self.new_k)


class Step(torch.nn.Module):
    """forward(ids, positions, [mask,] k, v) -> (logits, *new k, *new v)."""

    def __init__(self, model: torch.nn.Module, masked: bool = True):
        super().__init__()
        self.model, self.masked = model, masked

    def forward(self, ids, positions, *rest):
        return self.run(ids, positions, *rest) if self.masked else self.run(ids, positions, None, *rest)

    def run(self, ids, positions, mask, k=(), v=()):
        config = self.model.config
        if mask is None:  # all rows that there are
            mask = torch.zeros_like(self.model.get_input_embeddings().weight[:1, :1])[None, None]
        cache = ExplicitCache(config.num_hidden_layers, list(k), list(v))
        if isinstance(mask, (list, tuple)) or config.model_type.startswith("gemma3"):  # masks are looked up by kind of layer
            full, window = mask if isinstance(mask, (list, tuple)) else (mask, mask)
            mask = {"full_attention": full, "sliding_attention": window}
        logits = self.model(input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=cache,
                            use_cache=True, return_dict=False)[0]
        return (logits, *cache.new_k, *cache.new_v)


@dataclass(frozen=True)
class Shape:
    """The extents of one exported step."""
    phase: str
    layers: int
    heads: int    # of keys and values
    width: int    # of one head
    tokens: int   # text tokens in one step: 1 for decode
    past: int     # rows of the cache: context - 1 for decode, 0 for prefill
    window: int | None = None  # text tokens that a sliding layer sees, where that is less than the context
    mixed: bool = False        # other layers see all of them
    masked: bool = True        # masks are inputs; else every row of the past is seen

    @classmethod
    def of(cls, config, phase: str, context: int, tokens: int) -> "Shape":
        heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None)
        if not heads:
            raise Error(f"a model of type '{config.model_type}' has no attention heads, so no cache of keys and values",
                        "accepted are decoders with attention in every layer")
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        limit = getattr(config, "max_position_embeddings", None)
        wanted = context if phase == "decode" else tokens
        if wanted < (2 if phase == "decode" else 1) or (limit and wanted > limit):
            option = "--context" if phase == "decode" else "--tokens"
            raise Error(f"{option} {wanted} is outside what the model can do",
                        f"accepted are {2 if phase == 'decode' else 1} to {limit or 'any'}")
        window, mixed = _window(config)
        if window is None or wanted <= window:
            window, mixed = None, False
        if phase == "decode":
            masked = window is not None
            return cls(phase, config.num_hidden_layers, heads, width, 1, context - 1, window, mixed, masked)
        return cls(phase, config.num_hidden_layers, heads, width, tokens, 0, window, mixed)

    def cache_shape(self) -> tuple[int, int, int, int]:
        return (1, self.heads, self.past, self.width)

    def inputs(self, device: str = "meta") -> list:
        """Arguments for Step.forward, all zero."""
        ids = torch.zeros(1, self.tokens, dtype=torch.long, device=device)
        inputs = [ids, ids.clone()]
        masks = [torch.zeros(1, 1, self.tokens, self.past + self.tokens, device=device) for _ in self.mask_names()]
        if masks:
            inputs.append(masks if self.mixed else masks[0])
        if self.phase == "prefill":
            return inputs
        return inputs + [[torch.zeros(self.cache_shape(), device=device) for _ in range(self.layers)] for _ in "kv"]

    def input_ports(self) -> list[Port]:
        ports = [Port(name, "input") for name in ("ids", "positions", *self.mask_names())]
        if self.phase == "prefill":
            return ports
        return ports + [Port(name, "state", dims=("", "", "positions", "")) for name in self.cache_names()]

    def result_ports(self) -> list[Port]:
        if self.phase == "prefill":
            return [Port("logits", "output"), *(Port(name, "output") for name in self.cache_names())]
        rows = (Port(name, "state", axis=2, at="positions") for name in self.cache_names())
        return [Port("logits", "output"), *rows]

    def mask_names(self) -> list[str]:
        return ["mask", "mask.window"] if self.mixed else ["mask"] if self.masked else []

    def cache_names(self) -> list[str]:
        return [f"{kind}.{layer}" for kind in "kv" for layer in range(self.layers)]


def _window(config) -> tuple[int | None, bool]:
    """How many tokens a layer with sliding attention sees (None: there is no such layer), and whether others see all."""
    kinds = getattr(config, "layer_types", None)
    if kinds and "sliding_attention" not in kinds:
        return None, False
    return getattr(config, "sliding_window", None), bool(kinds) and any(kind != "sliding_attention" for kind in kinds)
