"""The quantized arithmetic against numbers worked out one by one, and what calibration gains."""

import subprocess
from pathlib import Path

import pytest
import torch
from conftest import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from streamtensor import core, quantize
from streamtensor.checkpoints import weights
from streamtensor.errors import Error
from streamtensor.language import calibrate
from streamtensor.quantize import Scheme

ROOT = Path(__file__).resolve().parents[2]


def tensor(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    value = torch.randn(shape, generator=generator)
    value[torch.rand(shape, generator=generator) < 0.1] = 0
    return value


def contract_elementwise(x, weight, bits: int, group: int) -> torch.Tensor:
    """One output of the contraction, every step a scalar one."""
    f32, top, y = torch.float32, quantize.limit(bits), None
    for start in range(0, len(x), group):
        xs, ws = x[start : start + group], weight[start : start + group]
        s_a = torch.tensor(max(abs(float(v)) for v in xs), dtype=f32) * (1 / 127)
        s_w = (torch.tensor(max(abs(float(v)) for v in ws), dtype=f32) / top).half().to(f32)
        s_a, s_w = s_a if s_a else torch.tensor(1.0), s_w if s_w else torch.tensor(1.0)
        dot = sum(
            max(-127, min(127, round(float(a * (1 / s_a)))))
            * max(-top, min(top, round(float(w / s_w))))
            for a, w in zip(xs, ws)
        )
        term = torch.tensor(float(dot), dtype=f32) * (s_a * s_w)
        y = term if y is None else y + term
    return y


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from((4, 8)),
    st.sampled_from((32, 64, 128)),
    st.integers(1, 300),
    st.booleans(),
)
def test_contraction_is_that_of_single_steps(seed, bits, group, extent, zeros):
    x, weight = tensor(seed, 1, extent), tensor(seed + 1, 2, extent)
    if zeros:
        x[:, :group], weight[0, :group] = 0, 0
    layer = torch.nn.Linear(extent, 2, bias=False)
    layer.weight.data = weight
    found = quantize.QuantizedLinear(quantize.round_weight(weight, bits, group), None, False)(x)
    assert [float(v) for v in found[0]] == [
        float(contract_elementwise(x[0], row, bits, group)) for row in weight
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 200), st.sampled_from((7, 119, 127)))
def test_rounding_twice_is_rounding_once(seed, extent, top):
    rows = tensor(seed, 3, extent) * 10.0 ** (seed % 5 - 2)
    q, scale = quantize.round_rows(rows, top)
    again, same = quantize.round_rows(q.float() * scale.float().unsqueeze(-1), top)
    assert torch.equal(q, again) and torch.equal(scale, same) and int(q.abs().max()) <= top


def test_integers_of_products_are_those_of_quotients_but_for_few():
    """Of a quotient within 2^-16 of a half the product with the reciprocal may give the other
    neighbor: less than one number in 10,000.
    """
    x = torch.randn(1 << 14, 128, generator=torch.Generator().manual_seed(3)) * torch.logspace(
        -6, 6, 1 << 14
    ).unsqueeze(1)
    for found, scale, top in [
        (*quantize.round_activation(x, 128), 127),
        (*quantize.round_rows(x, quantize.KV_LIMIT), quantize.KV_LIMIT),
    ]:
        kept = scale.float().reshape(-1, 1)
        plain = x.abs().amax(1, keepdim=True) / top
        by = quantize.as_f16(plain) if scale.dtype == torch.float16 else plain
        divided = quantize.to_integers(x, by, top)
        difference = (found.int() - divided.int()).abs()
        assert difference.max() <= 1 and (difference > 0).sum() < 1e-4 * x.numel()
        assert ((kept - by.float()).abs() <= by.float() * 2.0**-10).all()
        assert scale.dtype == torch.float16 or ((kept - by).abs() <= by * 2.0**-22).all()
        print(int((difference > 0).sum()), x.numel())


def test_half_goes_to_even_and_scales_stay_finite():
    assert quantize.to_integers(
        torch.tensor([0.5, 1.5, 2.5, -0.5, -9.0]), torch.tensor(1.0), 7
    ).tolist() == [0, 2, 2, 0, -7]
    assert quantize.f16_scale(torch.tensor([0.0, 1e-9, 1e9]), 7).tolist() == [1.0, 1.0, 65504.0]


def small(family: str, seed: int = 0):
    """A model with values whose matrices vary in importance, and ids for it."""
    torch.manual_seed(seed)
    from transformers import AutoConfig, AutoModelForCausalLM

    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**FAMILIES[family]), attn_implementation="eager"
    ).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    return model, torch.randint(90, (1, 48))


@pytest.mark.parametrize("family", FAMILIES)
def test_schemes_come_closer_with_more_bits(family):
    model, ids = small(family)
    with torch.no_grad():
        exact = model(ids).logits
        errors = [
            float(
                (quantize.quantized_copy(model, Scheme.parse(name))(ids).logits - exact).norm()
                / exact.norm()
            )
            for name in ("fp32", "bf16", "w8a8", "w4a8")
        ]
    assert (
        errors[0] == 0
        and errors == sorted(errors)
        and 1e-4 < errors[1] < 0.02
        and errors[2] < 0.1 < errors[3] < 0.7
    ), errors
    assert model.config._attn_implementation == "eager"  # the model itself is left alone


def test_the_cache_may_hold_what_the_rounding_gives():
    """Row by row against a cache, or all at once: the same keys and values are rounded to the same
    integers.
    """
    model, ids = small("llama")
    made = quantize.quantized_copy(model, Scheme.parse("w4a8"))
    with torch.no_grad():
        whole, cache = made(ids).logits[0], None
        for position in range(8):
            out = made(ids[:, position : position + 1], past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            torch.testing.assert_close(
                out.logits[0, 0], whole[position], rtol=0, atol=float(whole.abs().max()) * 1e-2
            )


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_calibration_lowers_the_error(family):
    model, ids = small(family)
    scheme = Scheme.parse("w4a8,head=f32,kv=f32,embedding=f32")
    prompts = [torch.randint(90, (1, 48)) for _ in range(6)]
    with torch.no_grad():
        exact = model(ids).logits
        errors = [
            float(
                (
                    quantize.quantized_copy(
                        model, scheme, calibrate.weights(model, scheme, method, prompts)
                    )(ids).logits
                    - exact
                ).norm()
            )
            for method in calibrate.METHODS
        ]
    assert errors[1] < 0.9 * errors[0], errors


def test_gptq_of_independent_inputs_is_rounding():
    """Where the inputs do not depend on each other, no column can make up for another."""
    weight = tensor(3, 5, 40)
    found, plain = (
        calibrate.gptq(weight, torch.eye(40), 8, 32),
        quantize.round_weight(weight, 8, 32),
    )
    assert (
        found.scale.shape == plain.scale.shape
        and (found.value() - plain.value()).norm() < 0.05 * weight.norm()
    )


def test_a_weights_file_holds_integers_and_scales(tmp_path):
    for family, name, flip in (
        ("gpt2", "transformer.h.0.attn.c_attn.weight", True),
        ("llama", "model.layers.1.mlp.down_proj.weight", False),
    ):
        model, _ = small(family)
        rounded = quantize.rounded(model, Scheme.parse("w4a8,group=32"))
        found = quantize.weight_file_tensors(model, rounded)
        weights.write(tmp_path / "w.safetensors", found, found, found.__getitem__)
        read = load_file(tmp_path / "w.safetensors")
        q, scale, original = (
            read[f"{name}.q"],
            read[f"{name}.scale"],
            dict(model.named_parameters())[name],
        )
        assert (
            name not in read
            and q.dtype == torch.int8
            and scale.dtype == torch.float16
            and q.shape == original.shape
        )
        value = q.float() * scale.float().repeat_interleave(32, 0 if flip else 1)
        assert (value - original).abs().max() <= scale.float().max() * 0.51
    model, _ = small("gpt2")  # its head is its embedding, which is gathered too
    found = quantize.weight_file_tensors(model, quantize.rounded(model, Scheme.parse("w4a8")))
    assert {
        "transformer.wte.weight",
        "transformer.wte.weight.q",
        "transformer.wte.weight.scale",
    } <= set(found)


@pytest.mark.parametrize(
    "text, message",
    [
        ("w3a8", "no scheme 'w3a8'"),
        ("w4a8,group=48", "'group=48'"),
        ("w4a8,size=2", "'size=2'"),
        ("bf16,group=64", "'group=64'"),
    ],
)
def test_an_unknown_scheme_is_refused(text, message):
    with pytest.raises(Error, match=message):
        Scheme.parse(text)


def schemes_to_read() -> list[str]:
    """Every setting after a scheme, some that only one parser might know, and the schemes."""
    settings = {
        "group": ("32", "64", "128", "row", "48"),
        "head": ("i4", "i8", "f32", "bf16"),
        "embedding": ("i8", "f32", "i4"),
        "kv": ("i8", "bf16", "f32", "i4"),
        "activation": ("group", "token", "row"),
        "zero": ("none", "group", "token"),
    }
    rest = [f"{key}={value}" for key, values in settings.items() for value in values]
    return [
        *(f"w4a8,{setting}" for setting in rest),
        *(
            "w4a8",
            "w8a8,kv=f32",
            "bf16",
            "bf16,kv=f32",
            "fp32",
            "fp32,head=i8",
            "w3a8",
            "w4a8,group",
        ),
    ]


def test_both_parsers_read_the_same_schemes(core_built):
    """`stc` reads --quant itself (src/driver/quant_option.c)."""
    for text in schemes_to_read():
        done = subprocess.run(
            [
                core.find_file(core.COMPILER),
                "compile",
                ROOT / "tests" / "models" / "mlp.mlir",
                "--quant",
                text,
                "--stop-after",
                "name_arguments",
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        try:
            Scheme.parse(text)
            read = True
        except Error:
            read = False
        assert (done.returncode == 0) == read, f"{text}: {done.stderr}"


def test_an_unknown_method_is_refused():
    with pytest.raises(Error, match="no method 'awq'"):
        calibrate.weights(torch.nn.Linear(2, 2), Scheme.parse("w4a8"), "awq", [])
    with pytest.raises(Error, match="needs calibration prompts"):
        calibrate.weights(torch.nn.Linear(2, 2), Scheme.parse("w4a8"), "gptq", [])
