"""Every family of decoders that transformers knows, as a tiny model made from its own defaults."""

import contextlib
import itertools
import re
from pathlib import Path

import torch

from streamtensor import workflow
from streamtensor.core import CompileError
from streamtensor.errors import Error
from streamtensor.language import decoder_layers, generation, models, reference
from streamtensor.lowering.graph import first_line
from streamtensor.progress import Progress

TOLERANCE = 1e-4

LENGTHS = dict(window=6, prompt=13, new=6, context=24, chunk=5)
WIDTH, HEADS, WORDS = 64, 4, 97
MOST = 4_000_000  # parameters
# the value of a configuration's entry by the end of its name; the first match is taken
_SMALL = (
    (("vocab_size", "n_vocab", "num_embeddings"), WORDS),
    (("moe_intermediate_size", "shared_expert_intermediate_size", "expert_ffn_hidden_size"), 32),
    (("intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size", "dim_ff"), 96),
    (("encoder_layers", "decoder_layers", "num_hidden_layers", "n_layer", "n_layers"), 2),
    (("num_layers", "num_decoder_layers", "num_encoder_layers", "num_blocks"), 2),
    (("num_attention_heads", "n_head", "n_heads", "decoder_attention_heads"), HEADS),
    (("encoder_attention_heads",), HEADS),
    (("num_key_value_heads", "num_kv_heads", "n_head_kv"), 2),
    (("qk_nope_head_dim", "v_head_dim", "head_dim", "dim_head"), 16),
    (("qk_rope_head_dim", "rotary_dim"), 8),
    (("q_lora_rank",), 24),
    (("kv_lora_rank",), 16),
    (("hidden_size", "d_model", "n_embd", "embed_dim", "embedding_size"), WIDTH),
    (("sliding_window", "attention_window", "window_size", "attention_chunk_size"), 6),
    (("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"), 64),
    (("num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k"), 2),
    (("n_group", "topk_group", "num_expert_group"), 1),
    (("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"), 4),
    (("first_k_dense_replace",), 1),
    (("mamba_n_heads", "n_mamba_heads"), 8),
    (("mamba_d_head",), 16),
    (("mamba_d_ssm",), 128),
    (("num_kv_shared_layers",), 0),
)
# entries without a number in a family's defaults that some models need
_NEEDED = "head_dim num_key_value_heads num_experts_per_tok n_routed_experts n_group topk_group"
_OF_SIDES = ("ffn_dim", "layers", "attention_heads")
_ENDS = ("bos_token_id", "eos_token_id", "pad_token_id", "eos_token_ids")


def config(family: str):
    """The configuration of a tiny model that can be built and run."""
    from transformers import AutoConfig, AutoModelForCausalLM

    default = AutoConfig.for_model(family).get_text_config(decoder=True)
    failed = None
    ids = ({}, dict(bos_token_id=1, eos_token_id=2, pad_token_id=0))
    for needed, given, kinds in itertools.product((False, True), ids, (True, False)):
        try:
            entries = {**_changed(default, kinds), **(_missing(default) if needed else {})}
            made = type(default)(**{**entries, **given})
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(made)
            if sum(value.numel() for value in model.parameters()) > MOST:
                raise ValueError("its tiny model is too large")
            model = AutoModelForCausalLM.from_config(made, attn_implementation="eager").float()
            with torch.no_grad():
                model.eval()(torch.full((1, 9), 3), use_cache=False)
            return made
        except Exception as error:
            failed = error
    raise failed


def _missing(default) -> dict:
    """Numbers that the defaults leave to be given."""
    entries = default.to_dict()
    return {name: _small(name, 1) for name in _NEEDED.split() if entries.get(name, 0) is None}


def _changed(default, kinds: bool) -> dict:
    """The entries of a tiny model. kinds: with a layer of every kind."""
    entries = default.to_dict()
    for name, side in itertools.product(_OF_SIDES, ("decoder", "encoder")):
        if isinstance(getattr(default, f"{side}_{name}", None), int):
            entries.setdefault(f"{side}_{name}", getattr(default, f"{side}_{name}"))
    changed, pattern = _shrunk(entries), entries.get("layer_types") or []
    picked = list(range(2))
    if kinds and len(set(pattern)) > 1:
        picked = [pattern.index(kind) for kind in dict.fromkeys(pattern)]
        for name, value in entries.items():
            if isinstance(value, list) and len(value) == len(pattern):
                changed[name] = [value[layer] for layer in picked]
        for name in ("num_hidden_layers", "n_layer", "num_layers", "n_layers"):
            if name in changed:
                changed[name] = len(picked)
    if entries.get("per_layer_config"):
        own = {int(layer): value for layer, value in entries["per_layer_config"].items()}
        changed["per_layer_config"] = {
            at: _shrunk(own[layer]) for at, layer in enumerate(picked) if layer in own
        }
    if entries.get("attention_types"):  # GPT-Neo: kinds, and how often they are repeated
        changed["attention_types"] = [[entries["attention_types"][0][0], 1]]
        changed["attention_layers"] = entries["attention_types"][0][0]
    if entries.get("languages"):
        changed["default_language"] = entries["languages"][0]
    if hasattr(default, "is_decoder"):
        changed["is_decoder"] = True
    if {"qk_head_dim", "qk_nope_head_dim", "qk_rope_head_dim"} <= set(changed):
        changed["qk_head_dim"] = changed["qk_nope_head_dim"] + changed["qk_rope_head_dim"]
    for name, like in (
        ("num_key_value_heads", "num_attention_heads"),
        ("head_dim", "qk_rope_head_dim"),
    ):
        if like in changed and entries.get(name) == entries[like]:
            changed[name] = changed[like]
    return changed


def _shrunk(entries: dict) -> dict:
    """The entries that a tiny model has otherwise."""
    changed = {}
    for name, value in entries.items():
        if isinstance(value, dict) and "model_type" in value:
            changed[name] = {**value, **_shrunk(value)}
        elif (small := _small(name, value)) is not ...:
            changed[name] = small
    return changed


def _small(name: str, value):
    if name in _ENDS or name.startswith("forced_"):
        return None
    if name.endswith("_token_id"):
        return ... if value is None else 3
    if not isinstance(value, int) or isinstance(value, bool):
        return ... if name not in ("sliding_window", "attention_window") else 6
    for ends, small in _SMALL:
        if name.endswith(ends) or name.removesuffix("_per_layer_input").endswith(ends):
            return small
    return ...


def fill(model: torch.nn.Module) -> None:
    """Values by which greedy decoding moves from token to token."""
    generator = torch.Generator().manual_seed(1)
    embeddings = {
        id(p) for m in model.modules() if isinstance(m, torch.nn.Embedding) for p in m.parameters()
    }
    for name, value in model.named_parameters():
        noise = torch.randn(value.shape, generator=generator)
        if value.dim() < 2:
            value.data = value.data.nan_to_num() + 0.1 * noise
        else:
            scale = 0.3 if id(value) in embeddings else 2.0
            value.data = noise * scale * min(value.shape[-2:]) ** -0.5


def build(family: str, folder: Path):
    """Writes a tiny model; gives its configuration."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    small = config(family)
    model = AutoModelForCausalLM.from_config(small, attn_implementation="eager").float().eval()
    fill(model)
    model.tie_weights()
    model.save_pretrained(folder)
    return model


def prompt(seed: int, length: int = LENGTHS["prompt"], words: int = WORDS) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, words - 3, (length,), generator=generator).tolist()


def greedy(model, ids: list[int], new: int):
    """New ids, and the logits that chose them."""
    given = torch.tensor([ids])
    made = model.generate(
        given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        max_new_tokens=new,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return made.sequences[0, len(ids) :].tolist(), torch.cat(made.logits)


def stepwise(model, ids: list[int], new: int):
    """The same of transformers that reads every token of the prompt as it reads new ones."""
    text, logits, cache = list(ids), [], _begun(model)
    name = decoder_layers.cache_name(model)
    for at in range(len(ids) + new - 1):
        with torch.no_grad():
            out = model(torch.tensor([text[at : at + 1]]), use_cache=True, **{name: cache})
        if at >= len(ids) - 1:
            logits.append(out.logits[0, -1])
            text.append(int(logits[-1].argmax()))
    return text[len(ids) :], torch.stack(logits)


def _begun(model):
    """A cache without tokens, whose recurrent states are there already: zeros."""
    from transformers import DynamicCache

    cache, fresh = (DynamicCache(config=model.config) for _ in range(2))
    with torch.no_grad():
        model(torch.zeros(1, 1).long(), use_cache=True, **{decoder_layers.cache_name(model): cache})
    for place, layer in enumerate(cache.layers):
        if not hasattr(layer, "has_previous_state"):
            cache.layers[place] = fresh.layers[place]
            continue
        for state in (*layer.conv_states.values(), *layer.recurrent_states.values()):
            if state is not None:
                state.zero_()
    return cache


def _difference(found, wanted) -> float:
    """The largest of the logits of all sequences; without bound where a token differs."""
    wanted = wanted[: len(found)]
    if any(ids != wanted_ids for (ids, _), (wanted_ids, _) in zip(found, wanted)):
        return float("inf")
    logits, expected = (torch.stack([each for _, each in side]) for side in (found, wanted))
    scale = expected.abs().amax((1, 2), keepdim=True)
    return float(((logits - expected) / scale).abs().max())


def row(family: str, folder: Path, compiled: bool = True) -> str:
    """What becomes of a family. "equal, E", with the largest difference of the logits; behind it
    "one sequence" where several are refused, "one token at a time" where it has no prefill, "as new
    ones" where transformers reads tokens of a prompt in another way than new ones. "refused: …";
    "none: …" where there is no tiny model; "WRONG …". Not compiled: the exported step runs in
    PyTorch.
    """
    try:
        model = build(family, folder / "model")
        prompts = [prompt(1), prompt(2, LENGTHS["prompt"] - 4)]
        wanted = [greedy(model, ids, LENGTHS["new"]) for ids in prompts]
    except Exception as error:
        return f"none: {first_line(error)}"
    worst, several, whole = 0.0, True, True
    try:
        loaded = models.load(str(folder / "model"))
        several = decoder_layers.aligns_sequences(loaded.module)
        recurrent = bool(decoder_layers.of(loaded.config).states)
        phases = ("decode" if recurrent else "both", 1), ("decode", 2)
        for phase, batch in phases[: 1 + several]:
            try:
                made = compiled and folder / f"{phase}{batch}"
                found = _found(loaded, phase, prompts[:batch], made)
            except (Error, CompileError):
                if batch == 1:
                    raise
                several = False
                break
            differ = _difference(found, wanted)
            if recurrent and not differ <= TOLERANCE:
                whole, wanted = False, [stepwise(model, ids, LENGTHS["new"]) for ids in prompts]
                differ = _difference(found, wanted)
            worst = max(worst, differ)
            if not differ <= TOLERANCE:
                return f"WRONG in {phase} of {batch}: {[ids for ids, _ in found]}, {differ:.0e}"
    except (Error, CompileError) as error:
        said = next(line for line in f"{error}".splitlines() if line.strip())
        said = said.replace(str(folder / "model"), "").lstrip(": ").split("error: ")[-1]
        return f"refused: {re.sub(r' ?[(]/.*', '', said)}"
    except Exception as error:
        return f"WRONG: internal: {type(error).__name__}: {first_line(error)}"
    alone = "" if several else ", one sequence"
    steps = ", one token at a time" if recurrent else ""
    return f"equal, {worst:.0e}{alone}{steps}" + ("" if whole else " as new ones")


class _Steps:
    """Both phases of a model in PyTorch, with one cache, as a design has them."""

    def __init__(self, loaded, shapes):
        for shape in shapes:
            loaded.lower(shape)  # refuses what is not proved, and fits the frequencies
        values = {f"model.{name}": loaded.tensor(name) for name in loaded.tensors()}
        self._steps = {
            shape.phase: reference.ReferenceDesign(loaded.module, shape, values) for shape in shapes
        }
        self._step = next(iter(self._steps.values()))
        self.reset()

    def select_phase(self, phase: str) -> None:
        self._step = self._steps[phase]

    def reset(self) -> None:
        first, *others = self._steps.values()
        first.reset()
        for other in others:
            other.values = first.values

    def __getattr__(self, name):
        return getattr(self._step, name)


@contextlib.contextmanager
def _design(loaded, shapes, folder: Path | None):
    if not folder:
        yield _Steps(loaded, shapes)
        return
    lowered = workflow.compile_phases(loaded, shapes, "u55c", folder, Progress())
    lowered = lowered if len(shapes) > 1 else lowered[shapes[0].phase]
    with workflow.open_design(folder, lowered, Progress()) as design:
        yield design


def _found(loaded, phase: str, prompts: list[list[int]], folder: Path | None):
    """New ids and logits of each prompt."""
    return stepped(loaded, phase, prompts, LENGTHS["context"], LENGTHS["new"], folder)


def stepped(loaded, phase: str, prompts, context: int, new: int, folder: Path | None = None):
    """The same, of steps in PyTorch where there is no folder for a design."""
    shapes = workflow.step_shapes(loaded, phase, context, LENGTHS["chunk"], batch=len(prompts))
    logits, tokens = [], []

    def see(launched):
        if launched.first:
            logits.append(launched.logits.reshape(len(prompts), -1).clone())

    with _design(loaded, shapes, folder) as design:
        chunk = shapes[1] if len(shapes) > 1 else None
        if len(prompts) > 1:
            decoder = generation.BatchDecoder(design, shapes[0], chunk)
            tokens = list(decoder.tokens(prompts, new, launched=see))
        else:
            decoder = generation.Decoder(design, shapes[0], chunk)
            made = decoder.tokens(prompts[0], new, launched=see)
            tokens = [[token] for token in made]
    return [
        ([step[i] for step in tokens], torch.stack([step[i] for step in logits]))
        for i in range(len(prompts))
    ]
