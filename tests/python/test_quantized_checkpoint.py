"""Folders whose weights are quantized: the numbers of each layout, and which integers stay."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from streamtensor import cli, quantize
from streamtensor.checkpoints.quantized_checkpoint import KeptWeights
from streamtensor.errors import Error
from streamtensor.language import models

CONFIG = dict(
    model_type="llama",
    vocab_size=64,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=32,
    bos_token_id=None,
    eos_token_id=None,
)
GROUP = 32
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def words(numbers: torch.Tensor, bits: int = 4) -> torch.Tensor:
    """Numbers along the last dim in words of 32 bits, the first one lowest."""
    parts = numbers.long().unflatten(-1, (-1, 32 // bits))
    packed = sum(parts[..., i] << (bits * i) for i in range(32 // bits))
    return torch.where(packed >= 2**31, packed - 2**32, packed).int()


def drawn(shape, generator, zeros: bool, group: int):
    """Integers from 0 to 15 with f16 scales and zero points, outputs x inputs."""
    groups = (shape[0], shape[1] // group)
    q = torch.randint(0, 16, shape, generator=generator)
    scale = (torch.rand(groups, generator=generator) * 0.1 + 0.01).half()
    zero = torch.randint(1, 16, groups, generator=generator) if zeros else torch.full(groups, 8)
    return q, scale, zero


def gptq(q, scale, zero, order=None):
    group = torch.arange(q.shape[1]) // GROUP
    if order is not None:
        group = group[order]
    return dict(
        qweight=words(q).T,
        qzeros=words((zero - 1).T),
        scales=scale.T,
        g_idx=group.int(),
    )


def awq(q, scale, zero):
    def spread(numbers):
        return words(numbers.unflatten(-1, (-1, 8))[..., torch.tensor(AWQ_ORDER)].flatten(-2))

    return dict(qweight=spread(q.T), qzeros=spread(zero.T), scales=scale.T)


def compressed(q, scale, zero):
    parts = dict(
        weight_packed=words(q),
        weight_scale=scale,
        weight_shape=torch.tensor(q.shape),
    )
    if bool((zero != 8).any()):
        parts["weight_zero_point"] = words(zero.T).T
    return parts


GPTQ = dict(quant_method="gptq", bits=4, group_size=GROUP, desc_act=False)
AWQ = dict(quant_method="awq", bits=4, group_size=GROUP, version="gemm", zero_point=True)
WEIGHTS = dict(num_bits=4, type="int", strategy="group", group_size=GROUP)
COMPRESSED = dict(
    quant_method="compressed-tensors",
    format="pack-quantized",
    config_groups={"group_0": {"targets": ["Linear"], "weights": WEIGHTS}},
)


def write(folder, config, pack, zeros=False, **sizes) -> dict[str, torch.Tensor]:
    """A folder of this layout; gives the matrices that it means."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(**{**CONFIG, **sizes}))
    made.save_pretrained(folder)
    generator, tensors, meant = torch.Generator().manual_seed(1), {}, {}
    size = config.get("group_size", GROUP)
    for name, value in load_file(folder / "model.safetensors").items():
        if not name.endswith("proj.weight"):
            tensors[name] = value
            continue
        q, scale, zero = drawn(value.shape, generator, zeros, size)
        parts = pack(q, scale, zero)
        group = parts.get("g_idx", torch.arange(q.shape[1]) // size).long()
        meant[name] = (q - zero[:, group]).float() * scale.float()[:, group]
        for end, part in parts.items():
            tensors[f"{name.removesuffix('.weight')}.{end}"] = part.contiguous()
    save_file(tensors, folder / "model.safetensors")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": config}))
    return meant


def kept(model, scheme: str):
    parsed = quantize.Scheme.parse(scheme)
    keeper = KeptWeights(model.packed, parsed)
    return quantize.rounded(model.with_values(), parsed, keeper), keeper.report()


@pytest.mark.parametrize(
    "config, pack", [(GPTQ, gptq), (AWQ, awq), (COMPRESSED, compressed)], ids=str
)
@pytest.mark.parametrize("zeros", [False, True])
def test_a_layout_means_its_numbers_and_keeps_its_integers(config, pack, zeros, tmp_path):
    meant = write(tmp_path, config, pack, zeros)
    model = models.load(str(tmp_path))
    assert len(meant) == 7 and config["quant_method"] in model.notice
    for name, value in meant.items():
        assert torch.equal(model.tensor(name), value)
    # less a zero point, a number of 4 bits needs 5
    assert model.needs_zeros(quantize.Scheme.parse(f"w4a8,group={GROUP}")) == zeros
    for bits, also in ((8, ""), (4, ",zero=group")) if zeros else ((4, ""), (4, ",zero=group")):
        found, report = kept(model, f"w{bits}a8,group={GROUP}{also}")
        what = "integers, scales and zero points" if also else "integers and scales"
        assert report == f"7 quantized matrices keep their {what}"
        for name, value in meant.items():
            assert torch.equal(found[name].value(), value)
            assert (found[name].zero is not None) == (zeros and bits == 4)
    assert min(int(found[name].q.min()) for name in meant) == -8


def test_what_a_scheme_has_no_form_for_is_named(tmp_path):
    write(tmp_path, AWQ, awq, True)
    _, report = kept(models.load(str(tmp_path)), f"w4a8,group={GROUP}")
    assert report.startswith("0 quantized matrices keep") and report.endswith(
        f"--quant w4a8,group={GROUP},zero=group keeps it"
    )


def test_zero_points_beyond_their_bits_are_not_kept(tmp_path):
    write(tmp_path, GPTQ, lambda q, scale, zero: gptq(q, scale, torch.full_like(zero, 16)))
    model = models.load(str(tmp_path))
    assert not model.needs_zeros(quantize.Scheme.parse(f"w4a8,group={GROUP}"))
    assert kept(model, f"w4a8,group={GROUP},zero=group")[1].startswith("0 quantized matrices")


def test_compiling_a_folder_with_zero_points_keeps_them(core_built, tmp_path, capfd):
    write(tmp_path / "model", AWQ, awq, True)
    command = ["compile", str(tmp_path / "model"), "--platform", "u55c", "--context", "16"]
    assert cli.main([*command, "--quant", f"w4a8,group={GROUP}", "-o", str(tmp_path / "d")]) == 0
    said = capfd.readouterr().err
    assert f"its weights have zero points: --quant w4a8,group={GROUP},zero=group" in said
    assert "7 quantized matrices keep their integers, scales and zero points" in said


def test_an_order_of_activations_is_read_but_not_kept(tmp_path):
    order = torch.randperm(128, generator=torch.Generator().manual_seed(2))
    meant = write(tmp_path, GPTQ, lambda *parts: gptq(*parts, order[order < parts[0].shape[1]]))
    model = models.load(str(tmp_path))
    assert all(torch.equal(model.tensor(name), value) for name, value in meant.items())
    assert kept(model, f"w4a8,group={GROUP}")[1].endswith("no scheme has its form")


@pytest.mark.parametrize("blocks", [None, [32, 32]])
def test_floats_of_8_bits_are_widened(blocks, tmp_path):
    def pack(q, scale, zero):
        rows, columns = (q.shape[0] // 32, q.shape[1] // 32) if blocks else (1, 1)
        factor = torch.rand(rows, columns) + 0.5
        return dict(weight=(q - 8).to(torch.float8_e4m3fn), weight_scale_inv=factor)

    config = dict(quant_method="fp8", weight_block_size=blocks)
    write(tmp_path, config, pack)
    model, tensors = models.load(str(tmp_path)), load_file(tmp_path / "model.safetensors")
    for name in (name for name in tensors if name.endswith("proj.weight")):
        q, scale = tensors[name].float(), tensors[f"{name}_scale_inv"]
        each = scale.repeat_interleave(q.shape[0] // scale.shape[0], 0)
        assert torch.equal(
            model.tensor(name), q * each.repeat_interleave(q.shape[1] // scale.shape[1], 1)
        )


def test_integers_of_8_bits_by_row_are_kept(tmp_path):
    def pack(q, scale, zero):
        return dict(weight=(q * 16 - 128).to(torch.int8), weight_scale=scale[:, :1])

    weights = dict(num_bits=8, type="int", strategy="channel")
    config = dict(
        quant_method="compressed-tensors",
        format="int-quantized",
        config_groups={"group_0": {"targets": ["Linear"], "weights": weights}},
    )
    write(tmp_path, config, pack)
    model, tensors = models.load(str(tmp_path)), load_file(tmp_path / "model.safetensors")
    for scheme in ("w8a8", "w8a8,group=row"):
        found, report = kept(model, scheme)
        assert report == "7 quantized matrices keep their integers and scales"
        for name in (name for name in tensors if name.endswith("proj.weight")):
            assert torch.equal(
                found[name].value(), tensors[name].float() * tensors[f"{name}_scale"].float()
            )


@pytest.mark.parametrize(
    "config, named",
    [
        (dict(quant_method="bitsandbytes", load_in_4bit=True), "bitsandbytes"),
        (dict(GPTQ, bits=3), "gptq: weights of 3 bits"),
        (dict(COMPRESSED, format="nvfp4-pack-quantized"), "'nvfp4-pack-quantized'"),
        (dict(AWQ, version="gemv"), "'gemv'"),
        (dict(COMPRESSED, config_groups={}), "no config_groups"),
    ],
)
def test_other_layouts_are_refused_by_name(config, named, tmp_path):
    write(tmp_path, config, gptq)
    with pytest.raises(Error, match=named):
        models.load(str(tmp_path))


def test_zero_points_meet_prompts_in_chunks(core_built, tmp_path, capfd):
    """One engine for both phases: a token of decode and a tile of a prompt share its datapath."""
    sizes = dict(hidden_size=256, num_hidden_layers=2)
    write(tmp_path / "model", AWQ | {"group_size": 128}, awq, True, **sizes)
    scheme, prompt = "w4a8,zero=group", [3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9]
    command = ["generate", str(tmp_path / "model"), "--quant", scheme, "--max-new-tokens", "4"]
    command += ["--prompt-ids", ",".join(map(str, prompt)), "--context", "16"]
    assert cli.main([*command, "--prefill-chunk", "8"]) == 0
    found = capfd.readouterr().out
    parsed, model = quantize.Scheme.parse(scheme), models.load(str(tmp_path / "model"))
    rounded = quantize.rounded(model.with_values(), parsed, KeptWeights(model.packed, parsed))
    reference = quantize.quantized_copy(model.with_values(), parsed, rounded)
    ids = torch.tensor([prompt])
    for _ in range(4):
        ids = torch.cat([ids, reference(ids).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert found.split()[0] == ",".join(map(str, ids[0, len(prompt) :].tolist()))
