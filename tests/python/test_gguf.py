"""Models in GGUF files, as the package gguf writes them and llama.cpp's converter orders them."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from streamtensor import quantize
from streamtensor.checkpoints.quantized_checkpoint import KeptWeights
from streamtensor.errors import Error
from streamtensor.language import models

gguf = pytest.importorskip("gguf")

HIDDEN, HEADS, KV_HEADS, WORDS = 64, 4, 2, 96
EPSILON = 2.0**-17  # in f32 as it is
CONFIG = dict(
    model_type="llama",
    vocab_size=WORDS,
    hidden_size=HIDDEN,
    intermediate_size=128,
    num_hidden_layers=1,
    num_attention_heads=HEADS,
    num_key_value_heads=KV_HEADS,
    max_position_embeddings=32,
    rms_norm_eps=EPSILON,
    rope_theta=5000.0,
    tie_word_embeddings=False,
    bos_token_id=None,
    eos_token_id=None,
)
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def name_in_file(name: str) -> str:
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name.replace("model.layers", "blk")


def permuted(value: np.ndarray, heads: int) -> np.ndarray:
    """Rows as llama.cpp has them: the two halves of a head interleaved."""
    parts = value.reshape(heads, 2, value.shape[0] // heads // 2, *value.shape[1:])
    return parts.swapaxes(1, 2).reshape(value.shape)


def quantized(value: np.ndarray, kind: str) -> np.ndarray:
    """Blocks with random bytes where the package cannot quantize; scales are small numbers of both
    signs.
    """
    form = getattr(gguf.GGMLQuantizationType, kind)
    try:
        return gguf.quants.quantize(value, form)
    except NotImplementedError:
        numbers, size = gguf.GGML_QUANT_SIZES[form]
        rng = np.random.default_rng(0)
        blocks = rng.integers(0, 256, (value.size // numbers, size), dtype=np.uint8)
        scales = (rng.random((len(blocks), 2)) * 2e-3).astype(np.float16).view(np.uint8)
        if kind == "Q4_K":
            blocks[:, :4] = scales
        else:
            blocks[:, -2:] = scales[:, :2]
        return blocks.reshape(*value.shape[:-1], -1)


def write(folder, kind: str = "Q4_0", width: int = HIDDEN, entries=(), tensors=(), **config):
    """The model of the numbers in the file."""
    torch.manual_seed(0)
    config = {**CONFIG, **config, "hidden_size": width}
    module = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**config), attn_implementation="eager"
    ).eval()
    path = folder / "model.gguf"
    out = gguf.GGUFWriter(path, "llama")
    out.add_name("tiny")
    out.add_context_length(32)
    out.add_embedding_length(width)
    out.add_block_count(1)
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_layer_norm_rms_eps(EPSILON)
    out.add_rope_dimension_count(width // HEADS)
    out.add_rope_freq_base(5000.0)
    out.add_vocab_size(WORDS)
    for key, value in entries:
        adders = {str: out.add_string, int: out.add_uint32, float: out.add_float32}
        adders[type(value)](key, value)
    state = module.state_dict()
    for name, value in state.items():
        numbers, form = value.float().numpy(), getattr(gguf.GGMLQuantizationType, kind)
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else None
        stored = permuted(numbers, heads) if heads else numbers
        if name.endswith(("proj.weight", "head.weight")):
            blocks = quantized(np.ascontiguousarray(stored), kind)
            out.add_tensor(name_in_file(name), blocks, raw_dtype=form)
            meant = gguf.quants.dequantize(blocks, form)
            if heads:  # back
                meant = meant.reshape(heads, -1, 2, width).swapaxes(1, 2).reshape(meant.shape)
            value.copy_(torch.from_numpy(meant))
        else:
            out.add_tensor(name_in_file(name), stored)
    for name, value in tensors:
        out.add_tensor(name, value)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path, module


def logits(module):
    with torch.no_grad():
        return module(torch.tensor([[1, 5, 9, 2, 77, 3]])).logits


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q4_K", "Q6_K", "F16"])
def test_a_file_alone_is_the_model(kind, tmp_path):
    width = 256 if kind.endswith("K") else HIDDEN
    path, module = write(tmp_path, kind, width, intermediate_size=4 * HIDDEN)
    for place in (path, tmp_path):
        model = models.load(str(place))
        assert model.notice is None if kind == "F16" else kind in model.notice
        found = model.with_values()
        for name, value in module.state_dict().items():
            assert torch.equal(found.state_dict()[name], value), name
        assert torch.equal(logits(found), logits(module))


@pytest.mark.parametrize("kind, scheme", [("Q4_0", "w4a8,group=32"), ("Q8_0", "w8a8,group=32")])
def test_integers_and_scales_are_kept(kind, scheme, tmp_path):
    path, module = write(tmp_path, kind)
    model, parsed = models.load(str(path)), quantize.Scheme.parse(scheme)
    keeper = KeptWeights(model.packed, parsed)
    found = quantize.rounded(model.with_values(), parsed, keeper)
    assert keeper.report() == "8 quantized matrices keep their integers and scales"
    state = module.state_dict()
    for name, weight in found.items():
        assert torch.equal(weight.value(), state[name]), name
    assert kind == "Q8_0" or min(int(weight.q.min()) for weight in found.values()) == -8
    assert kind == "Q8_0" or min(float(weight.scale.min()) for weight in found.values()) < 0


@pytest.mark.parametrize("kind", ["Q4_K", "Q6_K"])
def test_types_without_a_form_are_named(kind, tmp_path):
    path, _ = write(tmp_path, kind, 256, intermediate_size=256)
    model = models.load(str(path))
    scheme = quantize.Scheme.parse("w4a8,group=32")
    keeper = KeptWeights(model.packed, scheme)
    quantize.rounded(model.with_values(), scheme, keeper)
    assert (
        f"8 are rounded again, the first is 'model.layers.0.self_attn.q_proj.weight' ({kind})"
        in (keeper.report())
    )


def test_tied_heads_and_the_folders_configuration(tmp_path):
    path, module = write(tmp_path, tie_word_embeddings=True)
    found = models.load(str(path)).with_values()
    assert found.config.tie_word_embeddings and torch.equal(logits(found), logits(module))
    config = AutoConfig.for_model(**{**CONFIG, "rope_theta": 100.0, "tie_word_embeddings": True})
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    other = models.load(str(path)).with_values()
    assert other.config.rope_parameters["rope_theta"] == 100.0
    assert not torch.equal(logits(other), logits(module))


def test_frequencies_and_scaled_positions_of_the_file(tmp_path):
    factors = np.linspace(1, 8, HIDDEN // HEADS // 2, dtype=np.float32)
    path, module = write(tmp_path, tensors=[("rope_freqs.weight", factors)])
    module.model.rotary_emb.inv_freq /= torch.from_numpy(factors)
    assert torch.equal(logits(models.load(str(path)).with_values()), logits(module))
    entries = [("llama.rope.scaling.type", "linear"), ("llama.rope.scaling.factor", 4.0)]
    path, module = write(tmp_path, entries=entries)
    module.model.rotary_emb.inv_freq /= 4
    assert torch.equal(logits(models.load(str(path)).with_values()), logits(module))


def test_the_files_tokens_end_an_answer(tmp_path):
    path, _ = write(tmp_path)
    assert models.load(str(path)).end_tokens() == set()
    ends = [("tokenizer.ggml.eos_token_id", 7), ("tokenizer.ggml.eot_token_id", 9)]
    path, _ = write(tmp_path, entries=ends)
    assert models.load(str(path)).end_tokens() == {7, 9}


@pytest.mark.parametrize(
    "how, named",
    [
        (dict(entries=[("llama.attention.sliding_window", 8.0)]), "sliding_window' is not read"),
        (dict(entries=[("llama.rope.scaling.type", "longrope")]), "scaled by 'longrope'"),
        (dict(entries=[("llama.attention.key_length", 8)]), "key_length' is not read"),
        (dict(tensors=[("blk.0.attn_q.bias", np.ones(HIDDEN, "f"))]), "has no place in the model"),
    ],
)
def test_what_a_file_says_is_not_passed_over(how, named, tmp_path):
    path, _ = write(tmp_path, **how)
    with pytest.raises(Error, match=named):
        models.load(str(path))


def test_other_files_are_refused(tmp_path):
    path, _ = write(tmp_path)
    (tmp_path / "b.gguf").write_bytes(path.read_bytes())
    with pytest.raises(Error, match="2 GGUF files, the first is b.gguf"):
        models.load(str(tmp_path))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(Error, match="not a GGUF file that can be read"):
        models.load(str(path))
