"""What each layer of a decoder keeps and sees: the shapes of its keys and values and of its
recurrent states, and the mask that transformers gives it.

The masks of a model are functions of the places of a query and a key. transformers makes them from
the configuration and asks for a tensor of each. `masks_by` answers such requests.
"""

import contextlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.cache_utils import Cache

from ..errors import Error
from ..lowering.graph import place_of_error
from . import model_module

# of two tensors of places, whether the query at the first sees the key at the second
Predicate = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# places of which every pair is looked at, to tell which kind of mask a predicate is
PAIRS = 1024
_ACCEPTED = "accepted are decoders whose layers keep keys and values, or recurrent states"
# how models call what their layers keep
_CACHES = ("past_key_values", "cache_params")

# of a state: its layer, what it is for ("conv" or "recurrent"), and its number among these
StateKey = tuple[int, str, int]


class StepCache(Cache):
    """A cache for model code: takes the past keys, values and states and collects the new ones."""

    is_compileable = False

    def __init__(self, layers, k: list, v: list, positions, states: dict | None = None):
        """layers: those with keys and values, or how many have them. positions: number of tokens
        before those of the step. states: by key; model code may write into them.
        """
        numbers = range(layers) if isinstance(layers, int) else layers
        self.place = {layer: place for place, layer in enumerate(numbers)}
        self.k, self.v, self.positions = k, v, positions
        self.new_k, self.new_v = [None] * len(self.place), [None] * len(self.place)
        self.states: dict[StateKey, torch.Tensor] = {
            key: value.clone() for key, value in (states or {}).items()
        }

    def update(self, key_states, value_states, layer_idx, *_, **__):
        place = self.place[layer_idx]
        self.new_k[place], self.new_v[place] = key_states, value_states
        if not self.k:
            return key_states, value_states
        return (
            torch.cat([key_states, self.k[place]], 2),
            torch.cat([value_states, self.v[place]], 2),
        )

    def get_seq_length(self, *_):
        return self.positions

    get_query_offset = get_seq_length

    def get_mask_sizes(self, query, *_):
        return (self.k[0].shape[2] if self.k else 0) + int(query), 0

    def get_max_length(self, *_):
        return -1

    get_max_cache_shape = get_max_length

    def get_conv_state(self, layer_idx, state_idx=0):
        return self.states[layer_idx, "conv", state_idx]

    def get_recurrent_state(self, layer_idx, state_idx=0):
        return self.states[layer_idx, "recurrent", state_idx]

    def update_conv_state(self, new, layer_idx, state_idx=0, conv_kernel_size=None, **_):
        old = self.states[layer_idx, "conv", state_idx]
        whole = torch.cat([old, new], -1)
        self.states[layer_idx, "conv", state_idx] = whole[..., -old.shape[-1] :]
        return whole

    def update_recurrent_state(self, new, layer_idx, state_idx=0, **_):
        self.states[layer_idx, "recurrent", state_idx] = new
        return new

    def has_previous_state(self, *_, **__):
        return True

    def is_recording_past(self, *_):
        return False

    def update_indexer(self, *_, **__):
        raise Error(": some of its layers keep an index of their keys", _ACCEPTED)

    @property
    def is_sliding(self):
        return [False] * len(self)

    is_linear = is_dummy = is_sliding

    def __len__(self):
        return len(self.new_k)


@contextlib.contextmanager
def masks_by(make: Callable[[Predicate], torch.Tensor]):
    """While active, models get the masks that `make` makes from their predicates."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as makers

    def mask(*_, mask_function, use_vmap=False, **__):
        return make(_predicate(mask_function, use_vmap))

    names = list(makers)
    for name in names:
        makers[name] = mask
    try:
        yield
    finally:
        for name in names:
            del makers[name]


def _predicate(mask_function, use_vmap: bool) -> Predicate:
    """mask_function: of numbers of a sequence, a head, a query and a key."""

    def sees(query, key):
        first = torch.zeros((), dtype=torch.long, device=key.device)
        of_pair = lambda q, k: mask_function(first, first, q, k)  # noqa: E731
        if use_vmap:  # a predicate that may take no other tensors than numbers
            each_key = torch.vmap(of_pair, in_dims=(None, 0))
            return torch.vmap(each_key, in_dims=(0, None))(query, key)
        return of_pair(query[:, None], key[None])

    return sees


@dataclass(frozen=True)
class Layer:
    """What one layer with attention keeps and sees."""

    number: int
    k: tuple[int, int]  # heads and elements of a key
    v: tuple[int, int]
    mask: int | None  # number of its mask; None: it is given none as transformers made it


def window(sees: Predicate, context: int) -> tuple[int, bool]:
    """How many of the last keys a token sees at most, of `context` places, its own included, and
    whether it sees all of them.

    A predicate is taken to hold on one interval of keys that ends with the token, if it does so
    at the first PAIRS places.
    """
    few = min(context, PAIRS)
    with _RealNumbers():
        return _window(sees, context, few)


def _window(sees: Predicate, context: int, few: int) -> tuple[int, bool]:
    place = torch.arange(few)
    table = sees(place, place).expand(few, few)
    if bool((table & (place[None] > place[:, None])).any()):
        raise Error("tokens of this model see later ones", "accepted are decoders")
    begins = table.int().argmax(1)
    interval = (place[None] >= begins[:, None]) & (place[None] <= place[:, None])
    if not torch.equal(table, interval):
        return context, False
    low, high = torch.zeros(context, dtype=torch.long), torch.arange(context)
    place = torch.arange(context)
    paired = torch.vmap(lambda q, k: sees(q[None], k[None]).reshape(()))
    while bool((low < high).any()):
        middle = (low + high) // 2
        seen = paired(place, middle)
        low, high = torch.where(seen, low, middle + 1), torch.where(seen, middle, high)
    widest = int((place - high).max()) + 1
    return widest, torch.equal(high, (place - widest + 1).clamp(min=0))


class _RealNumbers(TorchDispatchMode):
    """Takes zeros for tensors without values: the padding of sequences that have none."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        arguments, keywords = torch.utils._pytree.tree_map_only(
            torch.Tensor,
            lambda value: torch.zeros_like(value, device="cpu") if value.is_meta else value,
            (arguments, keywords or {}),
        )
        return function(*arguments, **keywords)


@dataclass(frozen=True)
class Decoder:
    """What a model with some configuration is like."""

    layers: list[Layer]
    states: dict[StateKey, tuple[int, ...]]  # the shape of each recurrent state
    # in the order in which the model asks for them; None: nothing reads this one
    masks: list[Predicate | None]
    norm_at_head: bool  # the head's input is the final norm's result as it stands
    # of the number of cached tokens: "asked" for, "size" of a mask that it makes itself, unless
    # it is given one, and "compared", as numbers are
    uses_of_length: set[str]


_FOUND: dict[str, Decoder] = {}


def of(config) -> Decoder:
    """The decoder with this configuration, by a step without values."""
    key = json.dumps(config.to_dict(), sort_keys=True, default=str)
    if key not in _FOUND:
        _FOUND[key] = _layers(config)
    return _FOUND[key]


def _layers(config) -> Decoder:
    named = f"a model of type '{config.model_type}'"
    module = model_module.build(named, config)
    if not cache_name(module):
        raise Error(f"{named} keeps no cache of keys and values", _ACCEPTED)
    cache, masks, predicates, given = _RecordingCache(), [], [], {}

    def make(sees):
        masks.append(torch.zeros(1, 1, 1, 1, device="meta"))
        predicates.append(sees)
        return masks[-1]

    def see(part, arguments, keywords):
        values = (*arguments, *keywords.values())
        for number, mask in enumerate(masks):
            if any(value is mask for value in values):
                given.setdefault(part.layer_idx, []).append(number)

    for part in module.modules():
        if isinstance(getattr(part, "layer_idx", None), int):
            part.register_forward_pre_hook(see, with_kwargs=True)
    ends = _watch_ends(module)
    step = dict(input_ids=torch.zeros(1, 1), position_ids=torch.zeros(1, 1))
    step = {name: value.long().to("meta") for name, value in step.items()}
    if not numbers_positions(module):
        del step["position_ids"]
    values = {name: value.to("meta") for name, value in module.named_buffers()}
    reads = _Reads(masks)
    try:
        with torch.no_grad(), masks_by(make), _LengthAsSize(), reads:
            torch.func.functional_call(
                module, values, kwargs={cache_name(module): cache, "use_cache": True, **step}
            )
        return Decoder(
            cache.layers_of(
                {layer: min(reads.found & {*some}, default=None) for layer, some in given.items()}
            ),
            cache.states_of(),
            [sees if at in reads.found else None for at, sees in enumerate(predicates)],
            len(ends) == 2 and ends[0]._cdata == ends[1]._cdata,
            cache.positions.uses,
        )
    except Error as error:
        raise Error(f"{named}{error.message}", *error.notes) from error
    except Exception as error:
        raise Error(
            f"{named}: a step of one token with a cache cannot be followed{place_of_error(error)}",
            _ACCEPTED,
        ) from error


class _Length(int):
    """The number of tokens in the cache, and what is counted from it; `uses` says how."""

    def __new__(cls, value: int, uses: set):
        made = super().__new__(cls, value)
        made.uses = uses
        return made

    def _counted(self, value):
        return value if value is NotImplemented else _Length(value, self.uses)

    def __add__(self, other):
        return self._counted(int.__add__(self, other))

    def __sub__(self, other):
        return self._counted(int.__sub__(self, other))

    def __rsub__(self, other):
        return self._counted(int.__rsub__(self, other))

    def __lt__(self, other):
        self.uses.add("compared")
        return int.__lt__(self, other)

    def __gt__(self, other):
        self.uses.add("compared")
        return int.__gt__(self, other)

    __radd__ = __add__
    __hash__ = int.__hash__


class _LengthAsSize(TorchFunctionMode):
    """Adds "size" to the uses of a length where a tensor is made that is as long as the text, and
    "compared" where it counts from one length to another.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        counted = [each for each in args if isinstance(each, _Length)]
        if function is torch.arange and len(counted) > 1:
            counted[0].uses.add("compared")
        if function in (torch.ones, torch.zeros, torch.full):
            for leaf in torch.utils._pytree.tree_leaves((args, kwargs)):
                if isinstance(leaf, _Length):
                    leaf.uses.add("size")
        return function(*args, **(kwargs or {}))


class _Reads(TorchDispatchMode):
    """Finds which masks are read."""

    def __init__(self, masks: list[torch.Tensor]):
        super().__init__()
        self.masks, self.found = masks, set()

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        leaves = torch.utils._pytree.tree_leaves((arguments, keywords))
        for number, mask in enumerate(self.masks):
            if any(leaf is mask for leaf in leaves):
                self.found.add(number)
        return function(*arguments, **(keywords or {}))


def final_norm(module: torch.nn.Module) -> torch.nn.Module | None:
    """The norm behind the layers, if there is one."""
    norms = [
        child for child in module.base_model.children() if type(child).__name__.endswith("Norm")
    ]
    return norms[-1] if norms else None


def _watch_ends(module: torch.nn.Module) -> list[torch.UntypedStorage]:
    """Will hold the memory of the final norm's result and of the head's input."""
    ends: list[torch.UntypedStorage] = []
    norm, head = final_norm(module), module.get_output_embeddings()
    if norm is not None and head is not None:
        norm.register_forward_hook(lambda *seen: ends.append(seen[2].untyped_storage()))
        head.register_forward_pre_hook(lambda *seen: ends.append(seen[1][0].untyped_storage()))
    return ends


def cache_name(module: torch.nn.Module) -> str | None:
    """What the model calls its cache; None: it takes none."""
    taken = inspect.signature(module.forward).parameters
    return next((name for name in _CACHES if name in taken), None)


def aligns_sequences(module: torch.nn.Module) -> bool:
    """Whether sequences of different lengths can stand side by side."""
    return numbers_positions(module) or "asked" not in of(module.config).uses_of_length


def numbers_positions(module: torch.nn.Module) -> bool:
    """Whether the model takes the positions of its tokens; others count those in the cache."""
    return "position_ids" in inspect.signature(module.forward).parameters


class _RecordingCache(StepCache):
    """An empty cache of a model whose layers are not known yet."""

    def __init__(self):
        super().__init__(0, [], [], _Length(0, set()))
        self.shapes: dict[int, tuple] = {}
        self.kept: dict[StateKey, torch.Tensor] = {}

    def update(self, key_states, value_states, layer_idx, *_, **__):
        if layer_idx in self.shapes:
            raise Error(f": its layer {layer_idx} runs several times", _ACCEPTED)
        self.shapes[layer_idx] = tuple(key_states.shape), tuple(value_states.shape)
        return key_states, value_states

    def get_seq_length(self, *_):
        self.positions.uses.add("asked")
        return self.positions

    get_query_offset = get_seq_length

    def get_conv_state(self, *_, **__):
        return None

    get_recurrent_state = get_conv_state

    def update_conv_state(self, new, layer_idx, state_idx=0, conv_kernel_size=None, **_):
        width = conv_kernel_size or new.shape[-1]
        whole = torch.nn.functional.pad(new, (max(width - new.shape[-1], 0), 0))
        self.kept[layer_idx, "conv", state_idx] = whole[..., -width:]
        return whole

    def update_recurrent_state(self, new, layer_idx, state_idx=0, **_):
        self.kept[layer_idx, "recurrent", state_idx] = new
        return new

    def has_previous_state(self, *_, **__):
        return False

    @property
    def is_sliding(self):
        return [False]

    is_linear = is_dummy = is_sliding

    def layers_of(self, given: dict[int, int]) -> list[Layer]:
        if not self.shapes and not self.kept:
            raise Error(" has no attention heads, so no cache of keys and values", _ACCEPTED)
        if any(len(s) != 4 or s[2] != 1 for shapes in self.shapes.values() for s in shapes):
            raise Error(": its cache is none of heads of keys and values", _ACCEPTED)
        return [
            Layer(layer, (k[1], k[3]), (v[1], v[3]), given.get(layer))
            for layer, (k, v) in sorted(self.shapes.items())
        ]

    def states_of(self) -> dict[StateKey, tuple[int, ...]]:
        for value in self.kept.values():
            if value.shape[0] != 1 or value.dtype != torch.float32:
                raise Error(": a recurrent state of its layers is not of one sequence in f32")
        return {key: tuple(value.shape) for key, value in sorted(self.kept.items())}
