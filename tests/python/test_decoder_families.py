"""Families of decoders against transformers, and what their steps prove before they are lowered."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import decoder_families
import pytest
import torch
from torch import nn

from streamtensor.errors import Error
from streamtensor.language import decoder_layers, generation, model_module, models, reference
from streamtensor.language.decoder_step import StepShape
from streamtensor.lowering import (
    attention_sinks,
    filled_tensors,
    graph,
    position_tables,
    traced_functions,
)

TABLE = Path(__file__).resolve().parents[2] / "bench" / "decoder_families.tsv"
# of each family: what became of its step in PyTorch, and of its design
ROWS = {name: cells for name, *cells in (line.split("\t") for line in TABLE.open())}
EQUAL = sorted(name for name, (step, _) in ROWS.items() if step.startswith("equal"))
DESIGNS = [name for name in EQUAL if ROWS[name][1].startswith("equal")]
LONG = os.environ.get("STC_TEST_MODE") == "long"
SMALL = dict(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=4,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    max_position_embeddings=32,
)


def test_no_family_is_wrong_and_nearly_all_are_equal():
    assert "WRONG" not in TABLE.read_text()
    made = [name for name, (step, _) in ROWS.items() if not step.startswith("none")]
    assert len(ROWS) > 180 and len(EQUAL) > 0.6 * len(made)


@pytest.mark.parametrize(
    "family", EQUAL if LONG else random.Random(10).sample(DESIGNS, min(3, len(DESIGNS)))
)
def test_a_family_is_equal_to_transformers(family, core_built, tmp_path):
    """Prefill and decode, and a batch of two, as designs."""
    assert decoder_families.row(family, tmp_path).startswith("equal")


def shape_of(family: str, context: int = 16, **changes) -> StepShape:
    from transformers import AutoConfig

    config = AutoConfig.for_model(family, **{**SMALL, **changes})
    return StepShape.of(config, "decode", context, 1)


@pytest.mark.parametrize(
    "family, changes, windows, masks",
    [
        ("llama", {}, (None,) * 4, (0,)),
        ("mistral", dict(sliding_window=4), (4,) * 4, (4,)),
        (
            "qwen2",
            dict(use_sliding_window=True, sliding_window=4, max_window_layers=3),
            (None, None, None, 4),
            (0, 4),
        ),
        ("gemma2", dict(sliding_window=4), (4, None, 4, None), (0, 4)),
        ("cohere2", dict(sliding_window=4), (4, 4, 4, None), (0, 4)),
        ("llama4_text", dict(attention_chunk_size=4), (4, 4, 4, None), (0, None)),
    ],
)
def test_a_layer_has_the_window_of_its_mask(family, changes, windows, masks):
    shape = shape_of(family, **changes)
    assert (shape.windows, shape.masks) == (windows, masks)
    whole = replace(shape_of(family, context=4, **changes), tokens=1)
    assert whole.windows == (None,) * 4 and whole.window is None


def test_layers_have_their_own_extents():
    shape = shape_of(
        "deepseek_v3",
        num_key_value_heads=2,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        head_dim=4,
        v_head_dim=6,
        kv_lora_rank=8,
        q_lora_rank=8,
        num_hidden_layers=1,
    )
    assert (shape.keys, shape.values) == (((1, 8),), ((1, 4),))  # of a latent


def test_a_head_behind_more_than_the_norm_reads_all_tokens():
    """MiniCPM scales what the norm gives; Llama's head reads it as it stands."""
    assert shape_of("llama").norm_at_head and shape_of("cohere2").norm_at_head
    changes = dict(q_lora_rank=8, kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8)
    assert not shape_of("minicpm3", **changes, num_key_value_heads=2, head_dim=8).norm_at_head


def test_a_predicate_that_is_no_interval_is_kept_as_it_is():
    def every_second(query, key):
        age = query[:, None] - key[None]
        return (age >= 0) & (age % 2 == 0)

    assert decoder_layers.window(every_second, 12) == (12, False)
    with pytest.raises(Error, match="see later ones"):
        decoder_layers.window(lambda query, key: key[None] <= query[:, None] + 1, 12)


class Attention(nn.Module):
    """A model with one layer that does something to its keys, products and scores."""

    def __init__(
        self,
        keys=lambda keys: keys,
        scores=lambda scores, mask: scores + mask,
        product=lambda queries, keys: queries @ keys.transpose(2, 3),
    ):
        super().__init__()
        self.embed, self.head = nn.Embedding(16, 8), nn.Linear(8, 16)
        self.keys, self.scores, self.product = keys, scores, product

    def get_input_embeddings(self):
        return self.embed

    def forward(self, input_ids, position_ids, past_key_values, **_):
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

        x = self.embed(input_ids)[:, None]
        k, v = past_key_values.update(x, x, 0)
        mask = ALL_MASK_ATTENTION_FUNCTIONS["eager"](mask_function=None)
        scores = self.scores(self.product(x, self.keys(k)), mask)
        return (self.head((torch.softmax(scores, -1) @ v)[:, 0]),)


def step_of(model: nn.Module, tokens: int = 3) -> str:
    shape = StepShape("prefill", ((1, 8),), ((1, 8),), tokens, 9, (None,), (0,))
    shape = replace(shape, all_logits=True)
    return models.Model("a model", None, model, None, None, None).lower(shape).text


def product_and_table(beta: float):
    def product(queries, keys):
        table = torch.ones(1, 3, 12, device=keys.device) * torch.arange(12, device=keys.device)
        return torch.baddbmm(table, queries[0], keys[0].transpose(1, 2), beta=beta)[None]

    return product


def none_of(keys):
    return torch.zeros(1, 1, 1, 8, device=keys.device)


def half_of(keys):
    return torch.slice_scatter(torch.zeros_like(keys), keys[..., :4], 3, 4, 8)


@pytest.mark.parametrize(
    "model",
    [Attention(), Attention(product=product_and_table(beta=0)), Attention(keys=half_of)],
)
def test_attention_reads_its_cache_as_a_set(model):
    assert "stream.dims" in step_of(model)


def by_place(scores, numbers=lambda places: places):
    """With a table by key, as ALiBi has it."""
    return scores + numbers(torch.arange(12, device=scores.device)) / 8


@pytest.mark.parametrize(
    "model, why",
    [
        (
            Attention(keys=lambda keys: keys + torch.arange(12, device=keys.device)[:, None]),
            "a table by key",
        ),
        (Attention(keys=lambda keys: keys.flip(2)), "picks or orders keys"),
        (
            Attention(keys=lambda keys: torch.slice_scatter(keys, none_of(keys), 2, 0, 1)),
            "picks some of the keys",
        ),
        (Attention(keys=lambda keys: keys - keys.mean(2, keepdim=True)), "no mask hides"),
        (Attention(scores=lambda scores, mask: scores), "no mask hides"),
        (
            Attention(scores=lambda scores, mask: (scores + mask).topk(12).values),
            "picks or orders keys",
        ),
        (Attention(scores=lambda scores, mask: by_place(scores + mask).exp()), "a table by key"),
        (
            Attention(
                scores=lambda scores, mask: mask + by_place(scores, lambda each: each.cumsum(0))
            ),
            "a table by key",
        ),
        (
            Attention(scores=lambda s, mask: s + mask + (s + mask)[..., 1:2]),
            "picks some of the keys",
        ),
    ],
)
def test_what_reads_its_cache_otherwise_is_refused(model, why):
    with pytest.raises(Error, match=f"reads its cache otherwise than attention does.*{why}"):
        step_of(model)


def test_sinks_of_attention_come_first():
    def scores(scores, mask):
        sink = torch.ones(1, 1, 3, 1, device=scores.device)
        return torch.softmax(torch.cat([scores + mask, sink], -1), -1)[..., :-1] + mask

    assert "stream.dims" in step_of(Attention(scores=scores))


LONG_TEXTS = dict(
    rope_type="longrope",
    rope_theta=1e3,
    factor=2.0,
    original_max_position_embeddings=8,
    short_factor=[1.0] * 8,
    long_factor=[2.0 + each for each in range(8)],
)


def _saved(folder, **changes):
    """A model of one layer, saved in a folder."""
    from transformers import AutoConfig, AutoModelForCausalLM

    ends = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    entries = {**SMALL, "num_hidden_layers": 1, **ends, **changes}
    config = AutoConfig.for_model("llama", **entries)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    decoder_families.fill(model)
    model.save_pretrained(folder)
    return model


def test_a_long_context_has_the_frequencies_of_long_texts(tmp_path):
    model = _saved(tmp_path, rope_parameters=LONG_TEXTS)
    ids = decoder_families.prompt(1, 13, 60)
    wanted, logits = decoder_families.greedy(model, ids, 3)
    loaded = models.load(str(tmp_path))
    frequencies = loaded.module.model.rotary_emb
    model_module.set_frequencies(loaded.module, 8)
    assert torch.equal(frequencies.inv_freq, model.model.rotary_emb.original_inv_freq)
    found = decoder_families.stepped(loaded, "decode", [ids], 24, 3)[0]
    assert found[0] == wanted and torch.allclose(found[1], logits, atol=1e-4)
    assert "of a long one" in model_module.frequencies_note(loaded.config, 24)
    assert model_module.frequencies_note(loaded.config, 8) is None


def test_dynamic_frequencies_are_those_of_a_short_text(tmp_path):
    """Within the model's context they do not change."""
    parameters = dict(rope_type="dynamic", rope_theta=1e3, factor=2.0)
    changes = dict(rope_parameters=parameters, max_position_embeddings=16)
    assert shape_of("llama", context=16, **changes).layers == 4
    with pytest.raises(Error, match="--context 17 is outside what the model can do"):
        shape_of("llama", context=17, **changes)
    model = _saved(tmp_path / "model", **changes)
    ids = decoder_families.prompt(1, 9, 60)
    wanted, logits = decoder_families.greedy(model, ids, 3)
    loaded = models.load(str(tmp_path / "model"))
    found = decoder_families.stepped(loaded, "decode", [ids], 16, 3)[0]
    assert found[0] == wanted and torch.allclose(found[1], logits, atol=1e-4)


def test_rules_of_the_folder_change_the_logits(folder_of, tmp_path):
    from streamtensor.language.generation_rules import GenerationRules, notes

    for file in folder_of("gpt2").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    said = dict(
        repetition_penalty=2.0,
        suppress_tokens=[4],
        min_new_tokens=2,
        eos_token_id=5,
        do_sample=True,
        temperature=0.7,
        num_beams=3,
    )
    (tmp_path / "generation_config.json").write_text(json.dumps(said))
    rules = GenerationRules.of(models.load(str(tmp_path)), 8)
    logits = rules.logits(torch.arange(8.0) - 3, [1, 7], 1)
    assert logits.tolist() == [-3, -4, -1, 0, float("-inf"), float("-inf"), 3, 2]
    assert rules.logits(torch.arange(8.0) - 3, [1, 7, 7], 1)[5] == 2
    assert rules.applied == ["repetition_penalty", "min_new_tokens", "suppress_tokens"]
    text = " ".join(notes(rules, on_device=True, sampled=False))
    for name in ("temperature 0.7", "num_beams", "suppress_tokens"):
        assert name in text


def test_a_checkpoint_parts_a_tied_head_of_its_own(tmp_path):
    from safetensors.torch import load_file, save_file
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("llama", **SMALL, tie_word_embeddings=True)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert "lm_head.weight" not in tensors
    tied = models.load(str(tmp_path))
    assert tied.module.lm_head.weight is tied.module.model.embed_tokens.weight
    only_head = dict(tensors)
    only_head["lm_head.weight"] = only_head.pop("model.embed_tokens.weight")
    save_file(only_head, path, metadata={"format": "pt"})
    stored = models.load(str(tmp_path)).tensor("model.embed_tokens.weight")
    assert torch.equal(stored, only_head["lm_head.weight"])
    own = {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"] + 1}
    save_file(own, path, metadata={"format": "pt"})
    parted = models.load(str(tmp_path))
    assert torch.equal(parted.tensor("lm_head.weight"), own["lm_head.weight"])
    assert graph.named_tensors(parted.module)["lm_head.weight"].is_meta


STEP = SimpleNamespace(tokens=3, past=9, batch=1)


def table_of(numbers):
    """A module that adds a table by key to what it is given."""

    class Biased(nn.Module):
        def forward(self, ids, positions, x):
            return x + numbers(x.shape[-1])

    return Biased()


@pytest.mark.parametrize(
    "numbers, told",
    [
        (
            lambda keys: torch.tensor([2.0**-3, 0.3])[:, None, None] * torch.arange(keys),
            lambda place: torch.tensor([2.0**-3, 0.3])[:, None, None] * place,
        ),
        (
            lambda keys: ((torch.ones(1, keys).cumsum(-1) - 1) * 3).bfloat16().view(1, 1, -1) / 7,
            lambda place: (place * 3.0).bfloat16() / 7,
        ),
        (
            lambda keys: (torch.arange(-31, 1).view(1, 1, 32) * 0.3)[..., 32 - keys :],
            lambda place: (place - 11) * 0.3,
        ),
    ],
)
def test_a_table_is_told_the_places_of_the_keys(numbers, told):
    x = torch.zeros(2, 3, 12)
    inputs = (torch.zeros(1, 3).long(), torch.tensor([[5]]), x)
    program = torch.export.export(table_of(numbers), inputs)
    (added,) = (node for node in program.graph.nodes if node.name == "add")
    places = [node for node in program.graph.nodes if node.op == "placeholder"][-2]
    tables = position_tables.PositionTables(program.graph, places, STEP, {})
    added.replace_input_with(added.args[1], tables.placed(added, added.args[1], 2))
    program.graph_module.recompile()
    place = torch.tensor([5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    assert torch.equal(program.module()(*inputs), (x + told(place)).float())


class Seeing(nn.Module):
    """Hides keys by the last rows of a table of its own."""

    def __init__(self, table):
        super().__init__()
        self.table = nn.Buffer(table, persistent=False)

    def forward(self, ids, positions, x):
        keys = x.shape[-1]
        return x * self.table[:, :, keys - x.shape[1] : keys, :keys]


@pytest.mark.parametrize("batch", (1, 2))
@pytest.mark.parametrize("width", (16, 4, None))
def test_a_table_of_seen_keys_is_computed_from_places(width, batch):
    seen = torch.ones(1, 1, 16, 16).tril()
    seen = seen - seen.tril(-width) if width else seen * (torch.rand(16, 16) < 0.5)
    inputs = (torch.zeros(1, 3).long(), torch.tensor([[5]]), torch.rand(2, 3, 12))
    program = torch.export.export(Seeing(seen), inputs)
    table, _, places, _ = (node for node in program.graph.nodes if node.op == "placeholder")
    (product,) = (node for node in program.graph.nodes if node.name == "mul")
    step = SimpleNamespace(**{**vars(STEP), "batch": batch})
    tables = position_tables.PositionTables(program.graph, places, step, {table: seen})
    found = tables.seen(product, product.args[1], 3)
    assert (found is None) == (width is None)
    if width is None:
        return
    product.replace_input_with(product.args[1], found)
    program.graph_module.recompile()
    key = torch.tensor([5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    age = torch.arange(5, 8)[:, None] - key
    wanted = inputs[2] * ((age >= 0) & (age < width))
    assert torch.equal(program.module()(*inputs)[0], wanted)


def test_numbers_of_a_tensor_made_on_the_meta_device_are_kept():
    class Least(nn.Module):
        def forward(self, x):
            return torch.where(x > 1, x, torch.tensor([-3.5, 7.0], device=x.device))

    with traced_functions.Traced():
        program = torch.export.export(Least(), (torch.zeros(2, 2, device="meta"),))
    (numbers,) = program.constants.values()
    assert numbers.tolist() == [-3.5, 7.0]


def test_errors_of_transformers_are_told_in_words_of_the_user(folder_of, monkeypatch):
    import transformers

    inner = "of the inside"

    def fail(*_, **__):
        raise RuntimeError(inner)

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", fail)
    with pytest.raises(Error, match="config.json: not a model configuration") as told:
        models.load(str(folder_of("llama")))
    assert inner not in f"{told.value}"


def test_entries_that_differ_from_layer_to_layer_are_not_read():
    from transformers import AutoConfig

    config = AutoConfig.for_model("gemma4_text")
    assert config.is_heterogeneous and model_module.entry(config, "head_dim") is None
    assert model_module.entry(config, "hidden_size") == config.hidden_size


def test_a_length_that_is_a_size_or_a_number_is_found():
    uses = set()
    length = 3 + decoder_layers._Length(4, uses)
    with decoder_layers._LengthAsSize():
        torch.arange(length)
        assert not uses
        torch.ones(2, length - 1)
    assert uses == {"size"} and max(0, 1 - length) == 0 and uses == {"size", "compared"}
    uses.clear()
    with decoder_layers._LengthAsSize():
        torch.arange(length, length + 2)
    assert uses == {"compared"}


def test_recurrent_states_go_from_launch_to_launch_and_begin_with_their_sequence():
    from transformers import AutoModelForCausalLM, MambaConfig

    torch.manual_seed(3)
    config = MambaConfig(vocab_size=24, hidden_size=8, state_size=4, num_hidden_layers=2)
    module = AutoModelForCausalLM.from_config(config).eval()
    decoder_families.fill(module)
    assert decoder_layers.aligns_sequences(module)
    shape = StepShape.of(config, "decode", 16, 1)
    texts = [[3, 7, 1, 19, 4], [7, 1, 19]]
    alone = [decoder_families.greedy(module, ids, 4) for ids in texts]
    decoder = generation.Decoder(reference.ReferenceDesign(module, shape), shape)
    for ids, (wanted, _) in zip(texts, alone):  # the second one is no continuation
        assert list(decoder.tokens(ids, 4)) == wanted
    several, seen = replace(shape, batch=2), []
    batch = generation.BatchDecoder(reference.ReferenceDesign(module, several), several)
    list(batch.tokens(texts, 4, launched=lambda launch: seen.append(launch.logits)))
    for row, (_, logits) in enumerate(alone):
        assert torch.allclose(torch.stack(seen[4:])[:, row], logits, atol=1e-5)
    with pytest.raises(Error, match="--tokens-per-launch 2: a recurrent state"):
        generation.Decoder(None, replace(shape, argmax=True), per_launch=2)


class Filled(nn.Module):
    def __init__(self, split: int, early: bool = False):
        super().__init__()
        self.split, self.early = split, early

    def forward(self, a, b):
        whole = a.new_zeros(2, 6)
        read = whole + 1 if self.early else 0
        whole[:, : self.split].copy_(a)
        whole[:, -2:].copy_(b)
        return whole * 2 + read


@pytest.mark.parametrize(
    "module, rewritten", [(Filled(4), True), (Filled(3), False), (Filled(4, early=True), False)]
)
def test_a_tensor_that_is_filled_part_by_part_is_a_concat(module, rewritten):
    inputs = (torch.rand(2, module.split), torch.rand(2, 1))
    program = torch.export.export(module, inputs)
    filled_tensors.rewrite(program.graph)
    program.graph_module.recompile()
    names = [str(node.target) for node in program.graph.nodes]
    assert ("aten.cat.default" in names) == rewritten
    assert torch.equal(program.module()(*inputs), module(*inputs))


def test_a_copy_of_nothing_is_left_away():
    class Nothing(nn.Module):
        def forward(self, a):
            a = a.clone()
            a[:, 2:2].copy_(a[:, 3:3])
            return a

    program = torch.export.export(Nothing(), (torch.rand(2, 6),))
    filled_tensors.rewrite(program.graph)
    assert not any("copy_" in str(node.target) for node in program.graph.nodes)


class Sinks(nn.Module):
    def __init__(self, shift: bool, kept: int):
        super().__init__()
        self.shift, self.kept = shift, kept

    def forward(self, scores, sink):
        joined = torch.cat([scores, sink], -1)
        if self.shift:
            joined = joined - joined.max(-1, keepdim=True).values
        return torch.softmax(joined, -1)[..., : self.kept] * 2


@pytest.mark.parametrize(
    "module, rewritten", [(Sinks(True, 7), True), (Sinks(False, 7), True), (Sinks(True, 6), False)]
)
def test_the_share_of_a_sink_is_no_key(module, rewritten):
    inputs = (torch.rand(2, 3, 7) * 9, torch.rand(2, 3, 1))
    program = torch.export.export(module, inputs)
    attention_sinks.rewrite(program.graph)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    names = [str(node.target) for node in program.graph.nodes]
    assert ("aten.cat.default" not in names) == rewritten
    assert torch.allclose(program.module()(*inputs), module(*inputs), rtol=1e-6, atol=1e-7)
