"""One forward step of a Hugging Face causal language model as a pure function, with an explicit KV
cache.

A context of C tokens is a cache of P = C - 1 rows, k.i and v.i, each BxHxPxD: B sequences, one by
default. Both phases read its first `positions` rows and write the new ones behind them (axis 2,
from index `positions` on):

    decode   (ids Bx1, positions 1x1, k.0.., v.0..) -> (logits Bx1xV, rows k.i.., v.i.. BxHx1xD)
    prefill  (ids BxN, positions 1x1, tokens 1x1, k.0.., v.0..) -> (logits Bx1xV, rows k.i.., v.i..
    BxHxNxD)

Several sequences go in step, aligned at their ends: one more input, `starts` Bx1 behind positions,
says in which row each of them begins. What is in front of it is seen by nobody.

Of a prefill's N tokens the first `tokens` count: the others are padding, whose rows are not
written, and the logits are those of the last one that counts (`every`: of all N). With `argmax` the
id of the largest logit, the lowest of equal ones, takes the logits' place. The states' axis 2 is a
run-time extent named `positions`: no row beyond it is read, and of the states of a layer with a
sliding window none that is older. So that such an extent comes last, the new keys and values stand
before the past ones; attention does not depend on their order. What a token may not see, later ones
of its launch and rows outside a layer's sliding window, is worked out in the step, from positions.
`masked`: rows from `positions` on too, where the extent cannot be said.
"""

from dataclasses import dataclass

import torch

from .errors import Error
from .graph import Port

PHASES = ("decode", "prefill")


class ExplicitCache:
    """Takes the past keys and values as given and keeps the new ones, as model code expects of its
    cache.
    """

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


class DecoderStep(torch.nn.Module):
    """forward(ids, positions, [tokens,] k, v) -> (logits, *new k, *new v)."""

    def __init__(self, model: torch.nn.Module, shape: "StepShape"):
        super().__init__()
        self.model, self.shape = model, shape

    def forward(self, ids, positions, *rest):
        *tokens, k, v = rest
        config, shape = self.model.config, self.shape
        at = positions.reshape(1) + torch.arange(shape.tokens, device=ids.device)
        starts = tokens.pop(0) if shape.batch > 1 else None
        cache = ExplicitCache(config.num_hidden_layers, list(k), list(v))
        past = k[0].shape[2] if k else 0
        mask = (
            self._mask(at, starts, past)
            if shape.window is None
            else self._window_mask(at, starts, past, shape.window)
        )
        # masks are looked up by kind of layer; all have one form, so that all layers are alike
        if config.model_type.startswith("gemma3"):
            full = self._window_mask(at, starts, past, shape.tokens + past) if shape.mixed else mask
            mask = {"full_attention": full, "sliding_attention": mask}
        hooks = (
            _head_on_last_token_only(self.model, tokens[0], cache)
            if tokens and not shape.all_logits
            else []
        )
        try:
            places = at[None] if starts is None else (at[None] - starts).clamp(min=0)
            logits = self.model(
                input_ids=ids,
                position_ids=places,
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
                return_dict=False,
            )[0]
        finally:
            for hook in hooks:
                hook.remove()
        return (_argmax_logits(logits) if shape.argmax else logits, *cache.new_k, *cache.new_v)

    def _window_mask(self, at, starts, past: int, window: int):
        """The same as _mask as one expression over all keys, of which the last `window` are seen:
        in
        one part, so that attention on bytes reads it as blocks of keys.
        """
        shape, keys = self.shape, torch.arange(self.shape.tokens + past, device=at.device)
        place = torch.where(keys < shape.tokens, at[:1] + keys, keys - shape.tokens)
        age = at[:, None] - place[None]
        hidden = (age < 0) | (age >= window)
        if shape.masks_past:
            hidden = hidden | ((keys >= shape.tokens) & (place >= at[:1]))[None]
        if starts is not None:
            hidden = hidden[None] | ((place[None, None] < starts[:, :, None]) & (age != 0)[None])
        return self._additive(hidden, shape.tokens + past)[:, None]

    def _mask(self, at, starts, past: int):
        """Additive, 1 or Bx1xNx(N+past): 0 where the token at at[i] sees new token j, or row j - N
        of
        the cache.
        """
        shape, rows = self.shape, torch.arange(past, device=at.device)
        distance = at[:, None] - at[None]
        hidden = [distance < 0, rows[None] >= at[:1, None] if shape.masks_past else None]
        if shape.tokens == 1:
            hidden[0] = None  # a token sees itself
        if starts is not None:
            hidden = _mask_padding(hidden, [at, rows], starts[:, :, None], distance != 0)
        if hidden == [None, None]:
            return torch.zeros_like(self.model.get_input_embeddings().weight[:1, :1])[None, None]
        parts = [
            self._additive(part, width)
            for part, width in zip(hidden, (shape.tokens, past))
            if width
        ]
        return torch.cat(parts, 2)[:, None]

    def _additive(self, hidden, width: int):
        shown, extents = (
            torch.zeros((), device=self.model.get_input_embeddings().weight.device),
            (self.shape.batch, self.shape.tokens, width),
        )
        if hidden is None:
            return shown.expand(extents)
        return torch.where(hidden, torch.full_like(shown, float("-inf")), shown).expand(extents)


def _mask_padding(hidden: list, places: list, starts, others) -> list:
    """What is hidden, and with it what stands in front of each sequence; a token always sees
    itself,
    so that it sees something.
    """
    early = [
        (place[None, None] < starts) & kept for place, kept in zip(places, (others[None], True))
    ]
    if others.numel() == 1:
        early[0] = None
    return [
        new if old is None else old if new is None else old | new for old, new in zip(hidden, early)
    ]


def _select_last_token(hidden, tokens):
    """Row tokens - 1 of 1xNxD: a sum of which one term is not zero, so exact."""
    at = torch.arange(hidden.shape[1], device=hidden.device)
    return torch.where(
        (at == tokens.reshape(1) - 1)[None, :, None], hidden, torch.zeros_like(hidden[:1, :1, :1])
    ).sum(1, keepdim=True)


def _head_on_last_token_only(model, tokens, cache: ExplicitCache) -> list:
    """Hooks by which only row tokens - 1 goes through the head and the norm behind all layers,
    where
    there is one: it is chosen in front of that.
    """
    norms = [
        child for child in model.base_model.children() if type(child).__name__.endswith("Norm")
    ]
    skipped_norms = []

    def skip_norm(norm, inputs, output):
        if cache.new_v and cache.new_v[-1] is None:  # in front of the layers
            return output
        skipped_norms.append(norm)
        return inputs[0]

    def choose(_, inputs):
        row = _select_last_token(inputs[0], tokens)
        for norm in skipped_norms:
            row = norm.forward(row)
        return (row,)

    return [
        *(norm.register_forward_hook(skip_norm) for norm in norms[-1:]),
        model.get_output_embeddings().register_forward_pre_hook(choose),
    ]


def _argmax_logits(logits):
    """The lowest index of the largest number: two passes, each a plain reduction."""
    count = logits.shape[-1]
    at = torch.arange(count, dtype=torch.int32, device=logits.device)
    beyond = torch.full((), count, dtype=torch.int32, device=logits.device)
    return torch.where(logits == logits.amax(-1, keepdim=True), at, beyond).amin(-1)


@dataclass(frozen=True)
class StepShape:
    """The extents of one exported step."""

    phase: str
    layers: int
    heads: int  # of keys and values
    width: int  # of one head
    tokens: int  # text tokens in one step, at most: 1 for decode
    # rows of the cache: context - 1; 0: there is none, and new keys and values are outputs
    past: int
    # text tokens that a sliding layer sees, where that is less than the context
    window: int | None = None
    sliding: tuple[bool, ...] = ()  # with a window: which layers have it
    # rows from `positions` on are hidden by masks, not by a run-time extent
    masks_past: bool = False
    all_logits: bool = False  # a prefill gives the logits of all its tokens
    # the likeliest token instead of logits; a launch of decode may be several steps then, each of
    # the token that the last chose
    argmax: bool = False
    batch: int = 1  # sequences in one launch
    # a prefill of one sequence does the work of the tokens that count alone; with argmax it goes on
    # from there as decode does
    dynamic_tokens: bool = False

    @classmethod
    def of(cls, config, phase: str, context: int, tokens: int) -> "StepShape":
        heads = getattr(config, "num_key_value_heads", None) or getattr(
            config, "num_attention_heads", None
        )
        if not heads:
            raise Error(
                f"a model of type '{config.model_type}' has no attention heads, so no cache "
                "of keys and values",
                "accepted are decoders with attention in every layer",
            )
        width = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        limit = getattr(config, "max_position_embeddings", None)
        if context < 2 or (limit and context > limit):
            raise Error(
                f"--context {context} is outside what the model can do",
                f"accepted are 2 to {limit or 'any'}",
            )
        if not 1 <= tokens < context:
            raise Error(
                f"--prefill-chunk {tokens} does not fit the context of {context}",
                f"accepted are 1 to {context - 1}",
            )
        window, sliding = _window(config)
        if window is None or context <= window:
            window, sliding = None, ()
        return cls(
            phase,
            config.num_hidden_layers,
            heads,
            width,
            tokens if phase == "prefill" else 1,
            context - 1,
            window,
            sliding,
        )

    @property
    def mixed(self) -> bool:
        """Some layers have a window, others see all."""
        return self.window is not None and not all(self.sliding)

    def cache_shape(self) -> tuple[int, int, int, int]:
        return (self.batch, self.heads, self.past, self.width)

    def inputs(self, device: str = "meta") -> list:
        """Arguments for Step.forward, all zero."""
        ids = torch.zeros(self.batch, self.tokens, dtype=torch.long, device=device)
        scalars = [
            torch.zeros(self.batch if name == "starts" else 1, 1, dtype=torch.long, device=device)
            for name in self.scalar_names()
        ]
        return [ids, *scalars] + [
            [
                torch.zeros(self.cache_shape(), device=device)
                for _ in range(self.layers if self.past else 0)
            ]
            for _ in "kv"
        ]

    def input_ports(self) -> list[Port]:
        dims = ("", "", "" if self.masks_past else "positions", "")
        states = (
            Port(
                name,
                "state",
                dims=dims,
                window=self.window if self.window and sliding and not self.masks_past else None,
            )
            for name, sliding in zip(
                self.cache_names(), 2 * (self.sliding or (False,) * self.layers)
            )
        )
        chains_steps = self.argmax and (self.tokens == 1 or self.dynamic_tokens)
        dynamic_tokens = dict(rows="tokens", axis=1) if self.dynamic_tokens else {}
        ids = Port(
            "ids",
            "input",
            next=(self.result_name(), self.past + 1) if chains_steps else None,
            **dynamic_tokens,
        )
        scalars = (
            Port(name, "input", step=1 if chains_steps and name == "positions" else None)
            for name in self.scalar_names()
        )
        return [ids, *scalars, *(states if self.past else ())]

    def result_ports(self) -> list[Port]:
        rows, batch = (
            "tokens" if self.phase == "prefill" else None,
            self.batch if self.batch > 1 else None,
        )
        made = (
            dict(role="state", axis=2, at="positions", rows=rows, batch=batch)
            if self.past
            else dict(role="output")
        )
        return [
            Port(self.result_name(), "output"),
            *(Port(name, **made) for name in self.cache_names()),
        ]

    def result_name(self) -> str:
        """What comes out beside the rows."""
        return "token" if self.argmax else "logits"

    def scalar_names(self) -> list[str]:
        """Where the new tokens stand, where each sequence begins, and how many of the tokens count."""
        return [
            "positions",
            *(["starts"] if self.batch > 1 else []),
            *(["tokens"] if self.phase == "prefill" else []),
        ]

    def cache_names(self) -> list[str]:
        return [f"{kind}.{layer}" for kind in "kv" for layer in range(self.layers)]


def _window(config) -> tuple[int | None, tuple[bool, ...]]:
    """How many tokens a layer with sliding attention sees (None: there is no such layer), and which
    layers are such.
    """
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    sliding = tuple(kind == "sliding_attention" for kind in kinds)
    return (getattr(config, "sliding_window", None) if any(sliding) else None), sliding
