"""What quantization costs a model that has learnt something: by our scheme, calibrated or not, and
by an outside one.
"""

import copy
import json
import os
import shutil

import pytest
import torch
import trained_models
from safetensors.torch import load_file, save_file

from streamtensor import cli, quantize
from streamtensor.errors import Error
from streamtensor.language import calibrate, evaluation, models
from streamtensor.quantize import Scheme

CONTEXT = 64
SIZES = {"short": dict(width=64, layers=2, steps=100), "long": dict(width=256, layers=4, steps=300)}
MODE = "long" if os.environ.get("STC_TEST_MODE") == "long" else "short"


@pytest.fixture(scope="module")
def trained_model(tmp_path_factory):
    """learnt(family): a folder with a trained model, and the model."""
    made = {}

    def make(family):
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            made[family] = (
                folder,
                trained_models.train(folder, family, context=CONTEXT, **SIZES[MODE]),
            )
        return made[family]

    return make


def pieces_of(folder):
    ids = models.load(str(folder)).tokenizer()(
        trained_models.stories(2, 60 if MODE == "short" else 200)
    )["input_ids"]
    return evaluation.split(ids, CONTEXT)


FAMILIES = ["gpt2", "llama"] if MODE == "long" else ["llama"]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_w4a8_costs(trained_model, family):
    folder, model = trained_model(family)
    calibration, pieces = pieces_of(folder)
    plain, gptq = (
        evaluation.cost(model, Scheme.parse("w4a8"), method, calibration, pieces)[0]
        for method in ("rtn", "gptq")
    )
    words = len(models.load(str(folder)).tokenizer())
    assert gptq.exact < words / 8  # it has learnt something
    assert abs(gptq.rise()) <= 0.05 and gptq.agreement > 0.85, gptq
    assert gptq.agreement >= plain.agreement - 0.01, (plain, gptq)
    # the same twice
    assert evaluation.cost(model, Scheme.parse("w4a8"), "rtn", [], pieces)[0] == plain


def test_the_measure_sees_damage(trained_model):
    folder, model = trained_model(FAMILIES[0])
    _, pieces = pieces_of(folder)
    weights = quantize.rounded(model, Scheme.parse("w4a8"))
    first = next(iter(weights))
    weights[first] = quantize.Weight(-weights[first].q, weights[first].scale, weights[first].group)
    worse = evaluation.compare(
        model, quantize.quantized_copy(model, Scheme.parse("w4a8"), weights), pieces
    )
    assert worse.rise() > 0.05, worse


class OutsideLinear(torch.nn.Module):
    """torchao's Int8DynamicActivationInt4WeightConfig, by its documentation: activations int8 with
    a scale and a zero point for each token, weights int4 (-8 to 7) symmetric in groups, the sums in
    f32. Embedding, cache and head's kind as it does: every nn.Linear is quantized, nothing else.
    """

    def __init__(self, layer, group: int):
        super().__init__()
        parts = quantize.groups(layer.weight.detach(), group)
        scale = (parts.abs().amax(-1, keepdim=True) / 7.5).clamp(min=torch.finfo(torch.float32).eps)
        value = (parts / scale).round().clamp(-8, 7) * scale
        self.value, self.bias = value.flatten(1)[:, : layer.weight.shape[1]], layer.bias

    def forward(self, x):
        low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
        scale = ((high - low) / 255).clamp(min=torch.finfo(torch.float32).eps)
        zero = (-128 - (low / scale).round()).clamp(-128, 127)
        q = ((x / scale).round() + zero).clamp(-128, 127)
        return torch.nn.functional.linear((q - zero) * scale, self.value, self.bias)


def outside(model, group: int):
    made = copy.deepcopy(model)
    for parent in list(made.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, OutsideLinear(child, group))
    return made


def test_the_outside_scheme_is_torchao_s(trained_model):
    quantization = pytest.importorskip(
        "torchao.quantization",
        reason="torchao is not installed: pip install torchao compares with it",
    )
    from torchao.quantization.granularity import PerGroup

    folder, model = trained_model("llama")
    _, pieces = pieces_of(folder)
    size = 128 if MODE == "long" else 64
    theirs = copy.deepcopy(model)
    quantization.quantize_(
        theirs,
        quantization.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(size)
        ),
    )
    theirs, written = (
        evaluation.compare(model, theirs, pieces),
        evaluation.compare(model, outside(model, size), pieces),
    )
    assert abs(theirs.quantized / written.quantized - 1) <= 0.002 and theirs.agreement >= 0.5, (
        theirs,
        written,
    )


def test_no_worse_than_the_outside_scheme(trained_model):
    """With calibration; ours also has an int8 cache and embedding, which the outside one leaves in
    f32.
    """
    folder, model = trained_model("llama")
    calibration, pieces = pieces_of(folder)
    ours, _ = evaluation.cost(model, Scheme.parse("w4a8"), "gptq", calibration, pieces)
    theirs = evaluation.compare(model, outside(model, 128 if MODE == "long" else 64), pieces)
    assert ours.quantized <= theirs.quantized * 1.005, (ours, theirs)


def test_the_command(trained_model, tmp_path, capsys):
    folder, _ = trained_model(FAMILIES[0])
    (tmp_path / "text").write_text(trained_models.stories(3, 20))
    place = tmp_path / "new" / "w.safetensors"
    # the second takes the place of the first
    for scheme, *options in (["w4a8", "--quant-method", "rtn"], ["w8a8"]):
        status = cli.main(
            [
                "evaluate",
                str(folder),
                "--text",
                str(tmp_path / "text"),
                "--quant",
                scheme,
                "-o",
                str(place),
                *options,
            ]
        )
        lines = capsys.readouterr().out.splitlines()
        assert status == 0 and [line.split()[0] for line in lines] == ["fp32", scheme, "next"]
    written = load_file(place)
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert any(name.endswith(".q") for name in written) and all(
        f"{name[:-2]}.scale" in written for name in written if name.endswith(".q")
    )


def generated(folder, design, *options) -> None:
    status = cli.main(
        [
            "generate",
            str(folder),
            "--prompt",
            "one day anna went to the",
            "--max-new-tokens",
            "12",
            "--context",
            "32",
            "--quant",
            "w4a8",
            "--platform",
            "u55c",
            "-o",
            str(design),
            *options,
        ]
    )
    assert status == 0


def test_a_design_has_the_calibrated_weights(core_built, trained_model, tmp_path, capsys):
    """And says what PyTorch says with them."""
    folder, model = trained_model("llama")
    (tmp_path / "text").write_text(trained_models.stories(3, 20))
    generated(folder, tmp_path / "design", "--calibration", str(tmp_path / "text"))
    said = capsys.readouterr().out.splitlines()[0]
    generated(folder, tmp_path / "plain", "--quant-method", "rtn")
    packed, plain = (
        {path.name: path.read_bytes() for path in (tmp_path / name / "weights").iterdir()}
        for name in ("design", "plain")
    )
    assert packed.keys() == plain.keys() and packed != plain
    words, scheme = models.load(str(folder)).tokenizer(), Scheme.parse("w4a8")
    prompts = evaluation.prompts(words((tmp_path / "text").read_text())["input_ids"], CONTEXT)
    quantized = quantize.quantized_copy(
        model, scheme, calibrate.weights(model, scheme, "gptq", prompts)
    )
    ids = words("one day anna went to the")["input_ids"]
    with torch.no_grad():
        for _ in range(12):
            ids.append(int(quantized(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    assert said.split() == words.decode(ids).split()


@pytest.mark.parametrize(
    "options, message",
    [
        (["--quant", "w4a8", "--quant-method", "gptq"], "needs a calibration text"),
        (
            ["--quant", "w4a8", "--quant-method", "rtn", "--calibration", "text"],
            "takes no --calibration",
        ),
        (["--quant", "bf16", "--calibration", "text"], "has no effect with --quant bf16"),
        (["--calibration", "text"], "has no effect with --quant fp32"),
        (["--quant", "w4a8", "--calibration", "text", "--no-weights"], "contradict each other"),
        (["--quant", "w4a8", "--calibration", "nowhere"], "No such file"),
        (["--quant", "w4a8", "--calibration", "text"], "no tokenizer here"),
    ],
)
def test_calibration_that_cannot_be_is_one_error(
    tmp_path, folder_of, capsys, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("one day")
    status = cli.main(["compile", str(folder_of("gpt2")), "-o", str(tmp_path / "design"), *options])
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert (
        status == 1
        and len(errors) == 1
        and message in errors[0]
        and not (tmp_path / "design").exists()
    ), errors


@pytest.mark.parametrize(
    "text, options, message",
    [
        (b"one day", [], "the text has 2 tokens"),
        (b"\xff\xfe", [], "not UTF-8"),
        (None, [], "No such file"),
        (b"one day", ["--context", "999"], "--context 999"),
        (b"one day", ["--quant", "w1a1"], "no scheme 'w1a1'"),
    ],
)
def test_wrong_use_is_one_error(tmp_path, folder_of, capsys, text, options, message):
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    trained_models.tokenizer(folder)
    if text is not None:
        (tmp_path / "text").write_bytes(text)
    status = cli.main(["evaluate", str(folder), "--text", str(tmp_path / "text"), *options])
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert status == 1 and len(errors) == 1 and message in errors[0], errors


@pytest.mark.parametrize(
    "output, message",
    [
        ("", "not a file of weights"),
        ("text", "not a file of weights"),
        ("text/w.safetensors", "text: not a folder"),
    ],
)
def test_a_place_for_the_weights_is_looked_at_before_the_model_is_loaded(
    tmp_path, folder_of, capsys, output, message
):
    (tmp_path / "text").write_text("one day anna went to the house")
    status = cli.main(
        [
            "evaluate",
            str(folder_of("gpt2")),
            "--text",
            str(tmp_path / "text"),
            "-o",
            str(tmp_path / output),
        ]
    )
    said = capsys.readouterr().err
    assert status == 1 and message in said.splitlines()[0] and "load" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["text"] and (
        tmp_path / "text"
    ).read_text().startswith("one day")


def test_a_text_is_split_into_two_parts_that_do_not_meet():
    calibration, pieces = evaluation.split(list(range(100)), 10)
    assert [int(piece[0, 0]) for piece in (*calibration, *pieces)] == list(
        range(0, 100, 10)
    ) and len(calibration) == 2
    with pytest.raises(Error, match="has 19 tokens"):
        evaluation.split(list(range(19)), 10)


def coarse_copy(folder, copied) -> None:
    """The model with weights of 4 bits and a scale for each row, as compressed-tensors has them."""
    shutil.copytree(folder, copied)
    tensors = {}
    for name, value in load_file(folder / "model.safetensors").items():
        if name.endswith("proj.weight"):
            weight = quantize.round_weight(value, 4, None)
            tensors[name], tensors[f"{name}_scale"] = weight.q, weight.scale
        else:
            tensors[name] = value
    save_file(tensors, copied / "model.safetensors")
    path = copied / "config.json"
    weights = dict(num_bits=8, type="int", strategy="channel")
    config = dict(
        quant_method="compressed-tensors",
        format="int-quantized",
        config_groups={"group_0": {"targets": ["Linear"], "weights": weights}},
    )
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": config}))


def test_a_quantized_folder_is_compared_with_its_original(trained_model, tmp_path, capsys):
    folder, model = trained_model("llama")
    coarse_copy(folder, tmp_path / "coarse")
    (tmp_path / "text").write_text(trained_models.stories(2, 60))
    options = ["--text", str(tmp_path / "text"), "--context", str(CONTEXT)]

    def evaluated(place, *others):
        status = cli.main(["evaluate", str(place), *options, "--quant", "w8a8,group=row", *others])
        return status, capsys.readouterr()

    status, said = evaluated(tmp_path / "coarse", "--original", str(folder))
    assert status == 0 and "14 quantized matrices keep their integers and scales" in said.err
    lines = said.out.splitlines()
    _, pieces = evaluation.split(
        models.load(str(folder)).tokenizer()((tmp_path / "text").read_text())["input_ids"], CONTEXT
    )
    exact = evaluation.compare(model, models.load(str(tmp_path / "coarse")).with_values(), pieces)
    assert float(lines[0].split()[2]) == pytest.approx(exact.exact, abs=1e-3)
    assert "method compressed-tensors" in lines[1]
    # its own rounding, of which most is that of the weights
    assert float(lines[1].split()[2]) == pytest.approx(exact.quantized, rel=0.02)
    assert exact.agreement < 0.99 and float(lines[2].split()[6]) < 99
    status, said = evaluated(folder, "--original", str(folder))
    assert status == 1 and "is not quantized" in said.err
    status, said = evaluated(tmp_path / "coarse", "--original", "gpt2")
    assert status == 1 and "is another one" in said.err
