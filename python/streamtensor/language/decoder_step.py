"""One forward step of a Hugging Face causal language model as a pure function with an explicit KV
cache.

A context of C tokens needs a cache of P = C - 1 rows, k.i and v.i, each BxHxPxD for B sequences
(default 1). Both phases read the first `positions` rows and append the new rows (axis 2, from index
`positions` on):

    decode   (ids Bx1, positions 1x1, k.0.., v.0..)
             -> (logits Bx1xV, rows k.i.., v.i.. BxHx1xD)
    prefill  (ids BxN, positions 1x1, tokens 1x1, k.0.., v.0..)
             -> (logits Bx1xV, rows k.i.., v.i.. BxHxNxD)

The sequences of a batch are aligned at their ends. One more input after positions, `starts` Bx1, is
the row where each sequence begins; rows in front of it are masked.

The first `tokens` of the N tokens of a prefill are valid, the others are padding: their rows are
not written, and the logits are those of the last valid token (`all_logits`: of all N). With
`argmax` the id of the largest logit, the lowest id of equal ones, replaces the logits.

Recurrent states of layers (state.0..) follow v as inputs, and what replaces them (state.0.next..)
follows the rows: a launch may not read them while it writes them. A model that has some takes one
token per launch.

Axis 2 of the keys and values is a run-time extent named `positions`: rows beyond it are not read.
A layer with a sliding window does not read rows that are older than the window. New keys and values
are concatenated in front of the cached ones, so that the axis with the run-time extent comes last;
attention does not depend on the order. The causal mask and the sliding window are computed in the
step from positions. `masks_past` masks rows from `positions` on as well, for exports without
run-time extents.
"""

from dataclasses import dataclass

import torch

from ..errors import Error
from ..lowering import cache_reads
from ..lowering.graph import Port, line_of, named_tensors
from . import decoder_layers, model_module
from .decoder_layers import Predicate, StepCache

PHASES = ("decode", "prefill")


class DecoderStep(torch.nn.Module):
    """forward(ids, positions, [tokens,] k, v, [states]) -> (logits, *new k, *new v, *states)."""

    def __init__(self, model: torch.nn.Module, shape: "StepShape"):
        super().__init__()
        self.model, self.shape = model, shape
        model_module.set_frequencies(model, (shape.past or shape.tokens - 1) + 1)

    def forward(self, ids, positions, *rest):
        shape = self.shape
        tokens = [part for part in rest if isinstance(part, torch.Tensor)]
        k, v, *states = rest[len(tokens) :]
        states = dict(zip(shape.state_keys, states[0])) if states else {}
        at = positions.reshape(1) + torch.arange(shape.tokens, device=ids.device)
        starts = tokens.pop(0) if shape.batch > 1 else None
        past = k[0].shape[2] if k else 0
        length = self._length(positions) if k else 0
        cache = StepCache(shape.cached_layers(), list(k), list(v), length, states)
        hooks = (
            _head_on_last_token_only(self.model, tokens[0], cache, shape.norm_at_head)
            if tokens and not shape.all_logits
            else []
        )
        places = at[None] if starts is None else (at[None] - starts).clamp(min=0)
        given = {"position_ids": places} if decoder_layers.numbers_positions(self.model) else {}
        if shape.takes_key_mask:
            given["attention_mask"] = torch.ones_like(ids[:, :1]).expand(-1, shape.tokens + past)
        try:
            with decoder_layers.masks_by(self._masks(at, starts, past)):
                logits = self.model(
                    input_ids=ids,
                    use_cache=True,
                    return_dict=False,
                    **{decoder_layers.cache_name(self.model): cache},
                    **given,
                )[0]
        finally:
            for hook in hooks:
                hook.remove()
        made = [cache.states[key] for key in states]
        if starts is not None:  # a sequence that has not begun has no state
            begun = at[None] >= starts
            made = [
                torch.where(begun.reshape(-1, *[1] * (new.dim() - 1)), new, old)
                for new, old in zip(made, states.values())
            ]
        first = _argmax_logits(logits) if shape.argmax else logits
        return (first, *cache.new_k, *cache.new_v, *made)

    def _length(self, positions):
        """The number of cached tokens: a tensor, or a number that is known to be none below 0."""
        if not self.shape.compares_length:
            return positions.reshape(())
        length = positions.item()
        torch._check(length >= 0)
        return length

    def check_export(self, program) -> None:
        """Refuses models whose layers read the cached rows in another way than as a set."""
        if self.shape.past:
            cache_reads.check(program, self.shape, self._constants(), line_of)

    def _constants(self) -> list[torch.Tensor | None]:
        """The values of the tensors that `lower` takes; None: a model's own."""
        own = {
            f"{place}.{name}"
            for place, part in self.named_modules()
            for name in part._non_persistent_buffers_set
        }
        tensors = {n: each for n, each in named_tensors(self).items() if not each.is_complex()}
        return [each if name in own else None for name, each in tensors.items()]

    def _masks(self, at, starts, past: int):
        """Makes the masks that transformers asks for, in its order.

        Equal masks are one tensor. Where some layers have a window and others do not, all masks
        have the form of a window, which keeps the layers identical.
        """
        shape, made, masks = self.shape, {}, list(self.shape.masks)
        whole = shape.tokens + past

        def make(sees: Predicate):
            with cache_reads.marked():
                return of_kind(sees)

        def of_kind(sees: Predicate):
            if not masks:
                raise Error("the model makes more masks than its configuration has")
            window = masks.pop(0)
            if window is None:
                return self._mask_of_predicate(at, starts, past, sees)
            if window not in made:
                made[window] = (
                    self._window_mask(at, starts, past, window or whole)
                    if window or shape.window
                    else self._mask(at, starts, past)
                )
            return made[window]

        return make

    def _window_mask(self, at, starts, past: int, window: int):
        """The mask of a layer where each token sees the last `window` keys."""
        return self._mask_of(at, starts, past, lambda place, age: (age < 0) | (age >= window))

    def _mask_of_predicate(self, at, starts, past: int, sees: Predicate):
        """The mask of any predicate. A sequence of a batch counts from its own start."""
        if starts is None:
            return self._mask_of(at, None, past, lambda place, age: ~sees(at, place))
        each = torch.vmap(lambda start: sees(at - start, self._places(at, past) - start))
        return self._mask_of(at, starts, past, lambda place, age: ~each(starts.reshape(-1)))

    def _places(self, at, past: int):
        """The places of the keys: those of the step, then those of the cache."""
        keys = torch.arange(self.shape.tokens + past, device=at.device)
        return torch.where(keys < self.shape.tokens, at[:1] + keys, keys - self.shape.tokens)

    def _mask_of(self, at, starts, past: int, hides):
        """hides: of the places of all keys and their ages.

        One expression over all keys, so that quantized attention reads the cache as blocks of keys.
        """
        shape, keys = self.shape, torch.arange(self.shape.tokens + past, device=at.device)
        place = self._places(at, past)
        age = at[:, None] - place[None]
        hidden = hides(place, age)
        if shape.masks_past:
            hidden = hidden | ((keys >= shape.tokens) & (place >= at[:1]))[None]
        if starts is not None:
            hidden = hidden if hidden.dim() == 3 else hidden[None]
            hidden = hidden | ((place[None, None] < starts[:, :, None]) & (age != 0)[None])
        return self._additive(hidden, shape.tokens + past)[:, None]

    def _mask(self, at, starts, past: int):
        """Additive mask, 1 or B x 1 x N x (N + past): 0 where the token at at[i] sees new token j,
        or row j - N of the cache.
        """
        shape, rows = self.shape, torch.arange(past, device=at.device)
        distance = at[:, None] - at[None]
        hidden = [distance < 0, rows[None] >= at[:1, None] if shape.masks_past else None]
        if shape.tokens == 1:
            hidden[0] = None  # a token always sees itself
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
    """Masks the rows in front of each sequence as well. A token always sees itself, so that no row
    is masked completely.
    """
    early = [
        (place[None, None] < starts) & kept for place, kept in zip(places, (others[None], True))
    ]
    if others.numel() == 1:
        early[0] = None
    return [_either(old, new) for old, new in zip(hidden, early)]


def _either(one, other):
    """The union of two masks, each of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _select_last_token(hidden, tokens):
    """Row tokens - 1 of 1xNxD, as a sum with one nonzero term, which is exact."""
    at = torch.arange(hidden.shape[1], device=hidden.device)
    return torch.where(
        (at == tokens.reshape(1) - 1)[None, :, None], hidden, torch.zeros_like(hidden[:1, :1, :1])
    ).sum(1, keepdim=True)


def _head_on_last_token_only(model, tokens, cache: StepCache, norm_at_head: bool) -> list:
    """Hooks that select row tokens - 1 in front of the final norm, if the head reads its result,
    and the head.
    """
    norm = decoder_layers.final_norm(model) if norm_at_head else None
    skipped_norms = []

    def skip_norm(norm, inputs, output):
        if cache.new_v and cache.new_v[-1] is None:  # the norm in front of the layers
            return output
        skipped_norms.append(norm)
        return inputs[0]

    def choose(_, inputs):
        row = _select_last_token(inputs[0], tokens)
        for norm in skipped_norms:
            row = norm.forward(row)
        return (row,)

    return [
        *([norm.register_forward_hook(skip_norm)] if norm else []),
        model.get_output_embeddings().register_forward_pre_hook(choose),
    ]


def _argmax_logits(logits):
    """The lowest index of the largest logit: two passes, each a plain reduction."""
    count = logits.shape[-1]
    at = torch.arange(count, dtype=torch.int32, device=logits.device)
    beyond = torch.full((), count, dtype=torch.int32, device=logits.device)
    return torch.where(logits == logits.amax(-1, keepdim=True), at, beyond).amin(-1)


@dataclass(frozen=True)
class StepShape:
    """The extents and options of one exported step."""

    phase: str
    keys: tuple[tuple[int, int], ...]  # of each layer: heads, and elements of a key
    values: tuple[tuple[int, int], ...]
    tokens: int  # maximum tokens per step; 1 for decode
    # rows of the cache, context - 1; 0: no cache, new keys and values are outputs
    past: int
    # of each layer: tokens that it sees; None: all of the context
    windows: tuple[int | None, ...]
    # of each mask that the model asks for: tokens that are seen; 0: all before; None: others
    masks: tuple[int | None, ...]
    # the head reads the final norm's result as it stands, so that a norm of one token will do
    norm_at_head: bool = False
    takes_key_mask: bool = False  # the model is told which keys there are: all
    compares_length: bool = False  # the number of cached tokens is a number to the model
    # mask rows from `positions` on instead of using a run-time extent
    masks_past: bool = False
    all_logits: bool = False  # logits of all tokens of a prefill
    # greedy token id instead of logits; a launch may then run several steps, with the token fed
    # back
    argmax: bool = False
    batch: int = 1  # sequences per launch
    # a prefill of one sequence computes valid tokens only; with argmax it continues as decode
    dynamic_tokens: bool = False
    places: tuple[int, ...] = ()  # layers with keys and values, where others have none
    # recurrent states: what they are, and the shape of each for one sequence
    state_keys: tuple[decoder_layers.StateKey, ...] = ()
    state_shapes: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, config, phase: str, context: int, tokens: int) -> "StepShape":
        limit = model_module.position_limit(config)
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
        decoder = decoder_layers.of(config)
        layers = decoder.layers
        if decoder.states and phase == "prefill":
            raise Error(
                f"a model of type '{config.model_type}' keeps a recurrent state, which takes one "
                "token after the other",
                "accepted are --phase decode and --prefill-chunk 1",
            )
        kinds = [
            decoder_layers.window(sees, context) if sees else (context, True)
            for sees in decoder.masks
        ]
        return cls(
            phase,
            tuple(layer.k for layer in layers),
            tuple(layer.v for layer in layers),
            tokens if phase == "prefill" else 1,
            context - 1,
            tuple(_window(layer.mask, kinds, context) for layer in layers),
            tuple((most if most < context else 0) if exact else None for most, exact in kinds),
            decoder.norm_at_head,
            "size" in decoder.uses_of_length,
            "compared" in decoder.uses_of_length,
            places=tuple(layer.number for layer in layers),
            state_keys=tuple(decoder.states),
            state_shapes=tuple(decoder.states.values()),
        )

    @property
    def layers(self) -> int:
        return len(self.keys)

    @property
    def window(self) -> int | None:
        """The smallest window; None: every layer sees all of the context."""
        return min((each for each in self.windows if each), default=None)

    @property
    def mixed(self) -> bool:
        """Whether some layers have a sliding window and others do not."""
        return len(set(self.windows)) > 1

    def cached_layers(self) -> tuple[int, ...]:
        return self.places or tuple(range(self.layers))

    def cache_shape(self, name: str) -> tuple[int, ...]:
        kind, layer = name.split(".")
        if kind == "state":
            return (self.batch, *self.state_shapes[int(layer)][1:])
        heads, width = (self.keys if kind == "k" else self.values)[int(layer)]
        return (self.batch, heads, self.past, width)

    def inputs(self, device: str = "meta") -> list:
        """Arguments for DecoderStep.forward, all zero."""
        ids = torch.zeros(self.batch, self.tokens, dtype=torch.long, device=device)
        scalars = [
            torch.zeros(self.batch if name == "starts" else 1, 1, dtype=torch.long, device=device)
            for name in self.scalar_names()
        ]
        rows = [torch.zeros(self.cache_shape(name), device=device) for name in self.cache_names()]
        rows = rows if self.past else []
        kept = [torch.zeros(self.cache_shape(name), device=device) for name in self.state_names()]
        states = [kept] if kept else []
        return [ids, *scalars, rows[: len(rows) // 2], rows[len(rows) // 2 :], *states]

    def input_ports(self) -> list[Port]:
        dims = ("", "", "" if self.masks_past else "positions", "")
        states = (
            Port(name, "state", dims=dims, window=None if self.masks_past else window)
            for name, window in zip(self.cache_names(), 2 * self.windows)
        )
        chains_steps = self.argmax and (self.tokens == 1 or self.dynamic_tokens)
        chains_steps = chains_steps and not self.state_keys
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
        kept = (Port(name, "input") for name in self.state_names())
        return [ids, *scalars, *(states if self.past else ()), *kept]

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
            *(Port(name, "output") for name in self.state_names(behind=True)),
        ]

    def result_name(self) -> str:
        """The name of the first result."""
        return "token" if self.argmax else "logits"

    def scalar_names(self) -> list[str]:
        """Position of the new tokens, start of each sequence, number of valid tokens."""
        return [
            "positions",
            *(["starts"] if self.batch > 1 else []),
            *(["tokens"] if self.phase == "prefill" else []),
        ]

    def cache_names(self) -> list[str]:
        return [f"{kind}.{layer}" for kind in "kv" for layer in range(self.layers)]

    def state_names(self, behind: bool = False) -> list[str]:
        """Of the states in front of a step, or behind it."""
        ending = ".next" if behind else ""
        return [f"state.{number}{ending}" for number in range(len(self.state_keys))]


def _window(mask: int | None, kinds: list[tuple[int, bool]], context: int) -> int | None:
    """Tokens that a layer sees at most, if these are fewer than the context."""
    return None if mask is None or kinds[mask][0] >= context else kinds[mask][0]
