"""One forward step of a Hugging Face causal language model as a pure function, with an explicit KV cache.

A context of C tokens is a cache of P = C - 1 rows, k.i and v.i, each BxHxPxD: B sequences, one by default. Both phases read its first `positions` rows and
write the new ones behind them (axis 2, from index `positions` on):

    decode   (ids Bx1, positions 1x1, k.0.., v.0..) -> (logits Bx1xV, rows k.i.., v.i.. BxHx1xD)
    prefill  (ids BxN, positions 1x1, tokens 1x1, k.0.., v.0..) -> (logits Bx1xV, rows k.i.., v.i.. BxHxNxD)

Several sequences go in step, aligned at their ends: one more input, `starts` Bx1 behind positions, says in which row each of them begins.
What is in front of it is seen by nobody.

Of a prefill's N tokens the first `tokens` count: the others are padding, whose rows are not written, and the logits are those
of the last one that counts (`every`: of all N). With `argmax` the id of the largest logit, the lowest of equal ones, takes
the logits' place. The states' axis 2 is a run-time extent named `positions`: no row beyond it is
read. So that such an extent comes last, the new keys and values stand before the past ones; attention does not depend on their
order. What a token may not see, later ones of its launch and rows outside a layer's sliding window, is worked out in the
step, from positions. `masked`: rows from `positions` on too, where the extent cannot be said.
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
    """forward(ids, positions, [tokens,] k, v) -> (logits, *new k, *new v)."""

    def __init__(self, model: torch.nn.Module, shape: "Shape"):
        super().__init__()
        self.model, self.shape = model, shape

    def forward(self, ids, positions, *rest):
        *tokens, k, v = rest
        config, shape = self.model.config, self.shape
        at = positions.reshape(1) + torch.arange(shape.tokens, device=ids.device)
        starts = tokens.pop(0) if shape.batch > 1 else None
        cache = ExplicitCache(config.num_hidden_layers, list(k), list(v))
        past = k[0].shape[2]
        mask = self._mask(at, starts, past, None if shape.mixed else shape.window)
        if shape.mixed or config.model_type.startswith("gemma3"):  # masks are looked up by kind of layer
            mask = {"full_attention": mask, "sliding_attention": self._mask(at, starts, past, shape.window)}
        head = self.model.get_output_embeddings()
        hook = head.register_forward_pre_hook(lambda _, inputs: (_row(inputs[0], tokens[0]),)) if tokens and not shape.every else None
        try:
            places = at[None] if starts is None else (at[None] - starts).clamp(min=0)
            logits = self.model(input_ids=ids, position_ids=places, attention_mask=mask, past_key_values=cache,
                                use_cache=True, return_dict=False)[0]
        finally:
            if hook:
                hook.remove()
        return (_largest(logits) if shape.argmax else logits, *cache.new_k, *cache.new_v)

    def _mask(self, at, starts, past: int, window: int | None):
        """Additive, 1 or Bx1xNx(N+past): 0 where the token at at[i] sees new token j, or row j - N of the cache."""
        shape, rows = self.shape, torch.arange(past, device=at.device)
        distance, age = at[:, None] - at[None], at[:, None] - rows[None]
        hidden = [distance < 0, rows[None] >= at[:1, None] if shape.masked else None]
        if window:
            hidden = [hidden[0] | (distance >= window), age >= window if hidden[1] is None else hidden[1] | (age >= window)]
        if shape.tokens == 1:
            hidden[0] = None  # a token sees itself
        if window and shape.tokens > 1 and starts is None:  # one part, so that attention on bytes reads it as blocks of keys
            return self._additive(self._outside(at, past, window), shape.tokens + past)[:, None]
        if starts is not None:
            hidden = _before(hidden, [at, rows], starts[:, :, None], distance != 0)
        if hidden == [None, None]:
            return torch.zeros_like(self.model.get_input_embeddings().weight[:1, :1])[None, None]
        parts = [self._additive(part, width) for part, width in zip(hidden, (shape.tokens, past))]
        return torch.cat(parts, 2)[:, None]

    def _outside(self, at, past: int, window: int):
        """The same over tokens and rows alike."""
        first, key = at[:1, None], torch.arange(self.shape.tokens + past, device=at.device)[None]
        row = key - self.shape.tokens
        age = torch.where(row < 0, at[:, None] - first - key, at[:, None] - row)
        hidden = (age < 0) | (age >= window)
        return hidden | (row >= first) if self.shape.masked else hidden

    def _additive(self, hidden, width: int):
        shown, extents = torch.zeros((), device=self.model.get_input_embeddings().weight.device), (self.shape.batch, self.shape.tokens, width)
        if hidden is None:
            return shown.expand(extents)
        return torch.where(hidden, torch.full_like(shown, float("-inf")), shown).expand(extents)


def _before(hidden: list, places: list, starts, others) -> list:
    """What is hidden, and with it what stands in front of each sequence; a token always sees itself, so that it sees something."""
    early = [(place[None, None] < starts) & kept for place, kept in zip(places, (others[None], True))]
    if others.numel() == 1:
        early[0] = None
    return [new if old is None else old if new is None else old | new for old, new in zip(hidden, early)]


def _row(hidden, tokens):
    """Row tokens - 1 of 1xNxD: a sum of which one term is not zero, so exact."""
    at = torch.arange(hidden.shape[1], device=hidden.device)
    return torch.where((at == tokens.reshape(1) - 1)[None, :, None], hidden, torch.zeros_like(hidden[:1, :1, :1])).sum(1, keepdim=True)


def _largest(logits):
    """The lowest index of the largest number: two passes, each a plain reduction."""
    count = logits.shape[-1]
    at = torch.arange(count, dtype=torch.int32, device=logits.device)
    beyond = torch.full((), count, dtype=torch.int32, device=logits.device)
    return torch.where(logits == logits.amax(-1, keepdim=True), at, beyond).amin(-1)


@dataclass(frozen=True)
class Shape:
    """The extents of one exported step."""
    phase: str
    layers: int
    heads: int    # of keys and values
    width: int    # of one head
    tokens: int   # text tokens in one step, at most: 1 for decode
    past: int     # rows of the cache: context - 1
    window: int | None = None  # text tokens that a sliding layer sees, where that is less than the context
    mixed: bool = False        # other layers see all of them
    masked: bool = False       # rows from `positions` on are hidden by masks, not by a run-time extent
    every: bool = False        # a prefill gives the logits of all its tokens
    argmax: bool = False       # the likeliest token instead of logits; a launch of decode may be several tokens then, each the one that the last chose
    batch: int = 1             # sequences in one launch

    @classmethod
    def of(cls, config, phase: str, context: int, tokens: int) -> "Shape":
        heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None)
        if not heads:
            raise Error(f"a model of type '{config.model_type}' has no attention heads, so no cache of keys and values",
                        "accepted are decoders with attention in every layer")
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        limit = getattr(config, "max_position_embeddings", None)
        if context < 2 or (limit and context > limit):
            raise Error(f"--context {context} is outside what the model can do", f"accepted are 2 to {limit or 'any'}")
        if phase == "prefill" and not 1 <= tokens < context:
            raise Error(f"--tokens {tokens} is outside what the context of {context} can hold", f"accepted are 1 to {context - 1}")
        window, mixed = _window(config)
        if window is None or context <= window:
            window, mixed = None, False
        return cls(phase, config.num_hidden_layers, heads, width, tokens if phase == "prefill" else 1, context - 1, window, mixed)

    def cache_shape(self) -> tuple[int, int, int, int]:
        return (self.batch, self.heads, self.past, self.width)

    def inputs(self, device: str = "meta") -> list:
        """Arguments for Step.forward, all zero."""
        ids = torch.zeros(self.batch, self.tokens, dtype=torch.long, device=device)
        scalars = [torch.zeros(self.batch if name == "starts" else 1, 1, dtype=torch.long, device=device) for name in self.scalar_names()]
        return [ids, *scalars] + [[torch.zeros(self.cache_shape(), device=device) for _ in range(self.layers)] for _ in "kv"]

    def input_ports(self) -> list[Port]:
        states = (Port(name, "state", dims=("", "", "" if self.masked else "positions", "")) for name in self.cache_names())
        goes_on = self.argmax and self.tokens == 1
        ids = Port("ids", "input", next=(self.chosen(), self.past + 1) if goes_on else None)
        scalars = (Port(name, "input", step=1 if goes_on and name == "positions" else None) for name in self.scalar_names())
        return [ids, *scalars, *states]

    def result_ports(self) -> list[Port]:
        rows, batch = "tokens" if self.phase == "prefill" else None, self.batch if self.batch > 1 else None
        return [Port(self.chosen(), "output"), *(Port(name, "state", axis=2, at="positions", rows=rows, batch=batch) for name in self.cache_names())]

    def chosen(self) -> str:
        """What comes out beside the rows."""
        return "token" if self.argmax else "logits"

    def scalar_names(self) -> list[str]:
        """Where the new tokens stand, where each sequence begins, and how many of the tokens count."""
        return ["positions", *(["starts"] if self.batch > 1 else []), *(["tokens"] if self.phase == "prefill" else [])]

    def cache_names(self) -> list[str]:
        return [f"{kind}.{layer}" for kind in "kv" for layer in range(self.layers)]


def _window(config) -> tuple[int | None, bool]:
    """How many tokens a layer with sliding attention sees (None: there is no such layer), and whether others see all."""
    kinds = getattr(config, "layer_types", None)
    if kinds and "sliding_attention" not in kinds:
        return None, False
    return getattr(config, "sliding_window", None), bool(kinds) and any(kind != "sliding_attention" for kind in kinds)
