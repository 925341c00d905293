"""Export: arguments, results and their attributes for each model family, and for any module."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
import torch
from conftest import FAMILIES
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import streamtensor
from streamtensor.checkpoints import weights
from streamtensor.language import models
from streamtensor.language.decoder_layers import StepCache
from streamtensor.language.decoder_step import StepShape, _head_on_last_token_only

ARGUMENT = re.compile(
    r'%arg\d+: (tensor<[^>]*>) \{(?:stream.dims = \[[^]]*\], )?stream.name = "([^"]*)", '
    r'stream.role = "(\w+)"\}'
)
RESULT = re.compile(
    r'(tensor<[^>]*>) \{(?:stream.axis = (\d+) : i64, )?stream.name = "([^"]*)", '
    r'(?:stream.position = "(\w+)", )?stream.role = "(\w+)"(?:, stream.token_count = '
    r'"(\w+)")?\}'
)


def signature(text: str):
    line = next(line for line in text.splitlines() if "func.func" in line)
    arguments, results = line.split(" -> ")
    return ARGUMENT.findall(arguments), RESULT.findall(results)


def parses(text: str) -> bool:
    tool = shutil.which("mlir-opt-19")
    return (
        not tool
        or subprocess.run([tool], input=text, capture_output=True, text=True).returncode == 0
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_decode_step(family, folder_of):
    model = models.load(str(folder_of(family)))
    shape = StepShape.of(model.config, "decode", 16, 1)
    lowered = model.lower(shape)
    arguments, results = signature(lowered.text)
    (heads, width), vocabulary = shape.keys[0], model.config.vocab_size
    past, row = f"tensor<1x{heads}x15x{width}xf32>", f"tensor<1x{heads}x1x{width}xf32>"
    states = ["k.0", "k.1", "v.0", "v.1"]
    assert arguments[:2] == [
        ("tensor<1x1xi64>", "ids", "input"),
        ("tensor<1x1xi64>", "positions", "input"),
    ]
    assert arguments[2:6] == [(past, name, "state") for name in states]
    assert results[0] == (f"tensor<1x1x{vocabulary}xf32>", "", "logits", "", "output", "")
    assert results[1:] == [(row, "2", name, "positions", "state", "") for name in states]
    assert [name for _, name, role in arguments[6:] if role == "weight"] == lowered.weights
    assert set(lowered.weights) <= set(model.tensors()) and len(arguments) == 6 + len(
        lowered.weights
    )
    assert parses(lowered.text)


def test_only_a_context_beyond_a_sliding_window_has_a_window(folder_of):
    config = models.load(str(folder_of("gemma3"))).config
    config.sliding_window = 8
    long, short = StepShape.of(config, "decode", 9, 1), StepShape.of(config, "decode", 8, 1)
    assert (long.window, long.mixed, short.window, short.mixed) == (8, True, None, False)


def test_a_model_without_a_cache_is_refused():
    from transformers import OpenAIGPTConfig

    with pytest.raises(streamtensor.Error, match="'openai-gpt' keeps no cache of keys and values"):
        StepShape.of(OpenAIGPTConfig(), "decode", 9, 1)


def test_recurrent_states_have_the_shapes_that_layers_give_them():
    from transformers import MambaConfig

    config = MambaConfig(hidden_size=8, state_size=4, num_hidden_layers=1, conv_kernel=3)
    shape = StepShape.of(config, "decode", 9, 1)
    assert shape.state_keys == ((0, "conv", 0), (0, "recurrent", 0)) and not shape.keys
    assert [shape.cache_shape(name) for name in shape.state_names()] == [(1, 16, 3), (1, 16, 4)]
    with pytest.raises(streamtensor.Error, match="one token after the other"):
        StepShape.of(config, "prefill", 9, 4)


@pytest.mark.parametrize("all_logits", [False, True])
def test_prefill_step(all_logits, folder_of):
    model = models.load(str(folder_of("gpt2")))
    arguments, results = signature(
        model.lower(
            replace(StepShape.of(model.config, "prefill", 64, 8), all_logits=all_logits)
        ).text
    )
    assert arguments[:3] == [
        ("tensor<1x8xi64>", "ids", "input"),
        ("tensor<1x1xi64>", "positions", "input"),
        ("tensor<1x1xi64>", "tokens", "input"),
    ]
    assert arguments[3:7] == [
        ("tensor<1x4x63x32xf32>", name, "state") for name in ("k.0", "k.1", "v.0", "v.1")
    ]
    assert {role for _, _, role in arguments[7:]} == {"weight"}
    assert results[0] == (
        f"tensor<1x{8 if all_logits else 1}x512xf32>",
        "",
        "logits",
        "",
        "output",
        "",
    )
    assert results[1:] == [
        ("tensor<1x4x8x32xf32>", "2", name, "positions", "state", "tokens")
        for name in ("k.0", "k.1", "v.0", "v.1")
    ]


def norms(text: str) -> list[str]:
    return re.findall(r"math\.rsqrt.*?-> (tensor<[^>]*>)", text, re.S)


@pytest.mark.parametrize(
    "family, all_logits", [(family, False) for family in FAMILIES] + [("gpt2", True)]
)
def test_the_last_norm_is_of_the_row_that_counts(family, all_logits, folder_of):
    model = models.load(str(folder_of(family)))
    rows = norms(
        model.lower(
            replace(StepShape.of(model.config, "prefill", 64, 8), all_logits=all_logits)
        ).text
    )
    assert len(rows) > 4 and all("x8x" in shape for shape in rows[:-1])
    assert ("x8x" in rows[-1]) == all_logits


def test_a_norm_in_front_of_layers_stays_there():
    front = torch.nn.LayerNorm(4)
    outer = torch.nn.Module()
    outer.base_model, outer.head = torch.nn.Module(), torch.nn.Linear(4, 3)
    outer.base_model.front = front
    outer.get_output_embeddings = lambda: outer.head
    cache = StepCache(2, [], [], 0)
    _head_on_last_token_only(outer, torch.tensor([[2]]), cache, True)
    x = torch.randn(1, 5, 4)
    assert torch.equal(
        front(x), torch.nn.functional.layer_norm(x, (4,), front.weight, front.bias, front.eps)
    )
    assert torch.equal(
        outer.head(x), torch.nn.functional.linear(x[:, 1:2], outer.head.weight, outer.head.bias)
    )
    cache.new_v[-1] = x
    assert torch.equal(front(x), x)
    row = torch.nn.functional.layer_norm(x[:, 1:2], (4,), front.weight, front.bias, front.eps)
    assert torch.equal(
        outer.head(x), torch.nn.functional.linear(row, outer.head.weight, outer.head.bias)
    )


def test_bare_text_has_no_attributes_and_is_otherwise_the_same(folder_of):
    model = models.load(str(folder_of("gpt2")))
    shape = replace(StepShape.of(model.config, "decode", 16, 1), masks_past=True)
    text, bare = model.lower(shape).text, model.lower(shape, attributes=False).text
    assert "stream." not in bare and " loc(" not in bare
    text = re.sub(r' *( loc\("[^"]*"\("-":\d+:1\)\))?$', "", text, flags=re.M)
    bare = re.sub(r" *$", "", bare, flags=re.M)
    assert re.sub(r" \{stream\.[^}]*\}", "", text).replace("-> (", "-> ") == bare.replace(
        "-> (", "-> "
    )


def test_export_is_reproducible(folder_of):
    texts = {
        models.load(str(folder_of("llama")))
        .lower(StepShape.of(models.load(str(folder_of("llama"))).config, "decode", 16, 1))
        .text
        for _ in range(2)
    }
    assert len(texts) == 1


def test_any_module():
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(144, 5),
    ).eval()
    exported = streamtensor.export(module, (torch.zeros(1, 3, 8, 8),), names=["image"])
    arguments, results = signature(exported.text)
    assert arguments[0] == ("tensor<1x3x8x8xf32>", "image", "input")
    assert [name for _, name, _ in arguments[1:]] == list(exported.weights)
    assert "1.num_batches_tracked" not in exported.weights and "1.running_var" in exported.weights
    assert all(
        exported.weights[name] is dict(module.state_dict(keep_vars=True))[name]
        for name in exported.weights
    )
    assert results == [("tensor<1x5xf32>", "", "result0", "", "output", "")]


def test_module_is_left_as_it_was():
    module = torch.nn.Linear(3, 2)
    before = module.weight
    streamtensor.export(module, torch.zeros(1, 3))
    assert module.weight is before and not before.is_meta


@pytest.mark.parametrize(
    "inputs, names, message",
    [
        ((object(),), None, "not a tensor: object"),
        ((torch.zeros(1, 3),), ["a", "b"], "2 names for 1"),
    ],
)
def test_bad_inputs_are_refused(inputs, names, message):
    with pytest.raises(streamtensor.Error, match=message):
        streamtensor.export(torch.nn.Linear(3, 2), inputs, names)


def test_control_flow_by_numbers_is_refused_with_its_line(capfd):
    class Loop(torch.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(
        streamtensor.Error,
        match=r"decides by numbers that it computes: return x \* 2 if x.sum\(\) > 0 else x "
        r"\(.*test_export.py:\d+\)",
    ):
        streamtensor.export(Loop(), torch.zeros(3))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "function, message",
    [
        # torch-mlir does not end on it
        (
            lambda x: x[x > 0].sum(),
            "aten.index.Tensor gives as many numbers as its inputs' values say",
        ),
        (lambda x: x + torch.rand_like(x), "aten.rand_like.default gives other numbers each time"),
        (
            lambda x: x * torch.equal(x, x + 1),
            "aten.equal.default gives what its inputs' values say",
        ),
    ],
)
def test_what_values_decide_is_told_so(function, message):
    class Strange(torch.nn.Module):
        def forward(self, x):
            return function(x)

    with pytest.raises(streamtensor.Error, match=re.escape(message)):
        streamtensor.export(Strange(), torch.ones(3), ["x"])


def test_operation_without_a_lowering_is_named(capfd):
    class Svd(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[1]

    with pytest.raises(streamtensor.Error, match="no lowering for torch.aten._linalg_svd"):
        streamtensor.export(Svd(), torch.zeros(4, 4))
    assert "loc(" not in capfd.readouterr().err


class Inverse(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x + 1)


class Inverted(torch.nn.Module):
    """Computes the inverse in a module of its own, behind another one."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), Inverse())

    def forward(self, x):
        return self.layers(x)


class Spectrum(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(torch.fft.fft(x)).real


class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.special.zeta(x * 2, x)


@pytest.mark.parametrize(
    "module, message, note",
    [
        (
            Inverse(),
            r"no lowering for torch.aten.linalg_inv: return torch.linalg.inv\(x \+ 1\)",
            "known before the module runs",
        ),
        (
            Inverted(),
            r"no lowering for torch.aten.linalg_inv: return torch.linalg.inv\(x \+ 1\)",
            "kept as a buffer",
        ),
        (
            Spectrum(),
            r"aten.tanh.default works with complex numbers: "
            r"return torch.tanh\(torch.fft.fft\(x\)\).real",
            "Fourier transforms",
        ),
        (
            Unknown(),
            r"no lowering for torch.aten.special_zeta: return torch.special.zeta\(x \* 2, x\)",
            "torch-mlir can lower",
        ),
    ],
)
def test_an_operator_that_is_refused_is_named_with_its_line(module, message, note):
    with pytest.raises(
        streamtensor.Error, match=rf"{message} \(.*test_export.py:\d+\)\n"
    ) as raised:
        streamtensor.export(module, torch.ones(4, 4))
    assert note in raised.value.notes[-1]


def test_weights_file_holds_the_values(tmp_path, folder_of):
    model = models.load(str(folder_of("llama")))
    names = model.lower(StepShape.of(model.config, "decode", 16, 1)).weights
    model.write_weights(tmp_path / "w.safetensors", names)
    with safe_open(tmp_path / "w.safetensors", "pt") as file:
        assert set(file.keys()) == set(names)
        for name in names:
            assert torch.equal(file.get_tensor(name), model.tensor(name))


def test_weights_file_appears_whole_or_not_at_all(tmp_path):
    like = {"a": torch.zeros(2, 3), "b": torch.zeros(4)}

    def tensor(name):
        if name == "b":
            raise streamtensor.Error("lost")
        return like[name]

    with pytest.raises(streamtensor.Error, match="lost"):
        weights.write(tmp_path / "w.safetensors", like, like, tensor)
    assert not list(tmp_path.iterdir())


def test_checkpoint_of_the_bare_model_in_shards_and_half_precision(tmp_path, folder_of):
    made = models.load(str(folder_of("gpt2")))
    values = {
        name.removeprefix("transformer."): made.tensor(name).bfloat16() for name in made.tensors()
    }
    (tmp_path / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    shards = {name: f"model-{i % 2}.safetensors" for i, name in enumerate(values)}
    for file in set(shards.values()):
        save_file(
            {name: value for name, value in values.items() if shards[name] == file}, tmp_path / file
        )
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    read = models.load(str(tmp_path))
    assert read.notice is None
    read.write_weights(tmp_path / "out.safetensors", list(read.tensors()))
    for name, value in load_file(tmp_path / "out.safetensors").items():
        assert torch.equal(value, values[name.removeprefix("transformer.")].float())


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, (1 << 40).to_bytes(8, "little") + b"{}"])
def test_broken_checkpoint_is_refused(tmp_path, folder_of, content):
    (tmp_path / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(streamtensor.Error, match="model.safetensors: not a safetensors file"):
        models.load(str(tmp_path))


def test_checkpoint_of_another_shape_is_refused(tmp_path, folder_of):
    (tmp_path / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    save_file({"transformer.wte.weight": torch.zeros(3, 3)}, tmp_path / "model.safetensors")
    model = models.load(str(tmp_path))
    with pytest.raises(
        streamtensor.Error, match=r"'transformer.wte.weight' has the shape \(3, 3\)"
    ):
        model.write_weights(tmp_path / "w.safetensors", ["transformer.wte.weight"])
    with pytest.raises(streamtensor.Error, match="no tensor 'transformer.wpe.weight'"):
        model.tensor("transformer.wpe.weight")
