"""Models by name, and weight files that are not as they should be: one message, nothing left
behind.
"""

import hashlib
import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

from streamtensor import cli
from streamtensor.errors import Error
from streamtensor.language import builtin_models, models
from streamtensor.language.decoder_step import StepShape


@pytest.mark.parametrize(
    "name",
    [
        *builtin_models.BUILT_IN,
        "Qwen/Qwen2.5-0.5B",
        "meta-llama/Llama-3.2-1B",
        "google/gemma-3-1b-pt",
        "TinyLlama",
    ],
)
def test_a_built_in_model_has_shapes_and_no_values(name):
    model = models.load(name)
    shape = StepShape.of(model.config, "decode", 1024, 1)
    assert (
        all(value.is_meta for value in dict(model.module.named_parameters()).values())
        and "random" in model.notice
    )
    assert shape.mixed == ("gemma" in name.lower()) and model.end_tokens()


# Parameters in all, as the models' cards give them (tied embeddings once), in millions.
@pytest.mark.parametrize(
    "name, millions",
    [
        ("gpt2", 124),
        ("qwen2.5-0.5b", 494),
        ("llama-3.2-1b", 1236),
        ("tinyllama-1.1b", 1100),
        ("gemma-3-1b", 1000),
        ("mistral-7b", 7242),
    ],
)
def test_a_built_in_model_has_the_size_of_its_card(name, millions):
    size = sum(value.numel() for value in models.load(name).module.parameters()) / 1e6
    assert abs(size - millions) < 1, size


@pytest.mark.parametrize("name", ["someone/gpt2", "gpt3", "qwen/gpt2/x"])
def test_other_names_are_no_built_in_models(name):
    assert builtin_models.built_in(name) is None


@pytest.fixture
def sharded(tmp_path, folder_of):
    """A tiny GPT-2 in two shards with an index."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    model = models.load(str(folder))
    tensors = {
        name: model.tensor(name).contiguous() for name in dict(model.module.named_parameters())
    }
    names = sorted(tensors)
    place = {name: f"model-0000{1 + (i % 2)}-of-00002.safetensors" for i, name in enumerate(names)}
    for file in set(place.values()):
        save_file({name: tensors[name] for name in names if place[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": place})
    )
    return folder


def shard(folder, number=1):
    return folder / f"model-0000{number}-of-00002.safetensors"


def change(folder, name, function):
    for path in (shard(folder, 1), shard(folder, 2)):
        tensors = load_file(path)
        if name in tensors:
            tensors[name] = function(tensors[name])
            save_file(tensors, path)


def test_shards_are_read(sharded, tmp_path, capsys):
    assert cli.main(["export", str(sharded), "--context", "16", "-o", str(tmp_path / "x")]) == 0
    written = load_file(tmp_path / "x" / "weights.safetensors")
    held = {**load_file(shard(sharded, 1)), **load_file(shard(sharded, 2))}
    assert written and all(
        torch.equal(value, held[name]) for name, value in written.items() if name in held
    )
    assert "random" not in capsys.readouterr().err


def missing(folder):
    shard(folder).unlink()


def truncated(folder):
    data = shard(folder).read_bytes()
    shard(folder).write_bytes(data[: len(data) // 2])


def misplaced(folder):
    index = folder / "model.safetensors.index.json"
    text = json.loads(index.read_text())
    text["weight_map"]["transformer.ln_f.weight"] = shard(folder, 1).name
    text["weight_map"]["transformer.ln_f.bias"] = shard(folder, 1).name
    index.write_text(json.dumps(text))


def damaged(folder):
    sums = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in (shard(folder, 1), shard(folder, 2))
    )
    (folder / "SHA256SUMS").write_text(sums)
    change(folder, "transformer.ln_f.bias", lambda value: value + 1)


def damaged_in_the_cache(folder):
    """The hub's cache: a link to a file that is named by its hash."""
    blob = folder / ("0" * 64)
    os.rename(shard(folder), blob)
    os.symlink(blob, shard(folder))


def missing_indexed_tensor(folder):
    (folder / "model.safetensors.index.json").write_text("{}")


def infinite(value):
    value[1] = float("inf")
    return value


def without_its_index(folder):
    (folder / "model.safetensors.index.json").unlink()


def of_another_format(folder):
    without_its_index(folder)
    shard(folder, 2).unlink()
    shard(folder, 1).rename(folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    "fault, message",
    [
        (without_its_index, "model-00001-of-00002.safetensors: weights in this file are not read"),
        (of_another_format, "pytorch_model.bin: not a file of weights that can be read"),
        (missing, "the shard is missing"),
        (truncated, "not a safetensors file"),
        (misplaced, "the shard has no tensor 'transformer.ln_f."),
        (damaged, "the file is damaged: its SHA-256"),
        (damaged_in_the_cache, "the file is damaged: its SHA-256"),
        (missing_indexed_tensor, "not a weights file"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": 3}'
            ),
            "index.json: weight_map does not say which tensors are where",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": {}}'
            ),
            "index.json: weight_map does not say which tensors are where",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "b.safetensors", "c": 3}}'
            ),
            "index.json: weight_map does not say which tensors are where",
        ),
        (
            lambda folder: shard(folder, 2).write_text(
                "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"
            ),
            "00002-of-00002.safetensors: a pointer of Git LFS, not the weights",
        ),
        (
            lambda folder: (folder / "SHA256SUMS").write_bytes(
                b"\xff " + shard(folder).name.encode() + b"\n"
            ),
            "the file is damaged",
        ),
        (
            lambda folder: change(folder, "transformer.ln_f.bias", infinite),
            "'transformer.ln_f.bias' has inf at [1]",
        ),
        (
            lambda folder: change(
                folder, "transformer.ln_f.bias", lambda value: value * float("nan")
            ),
            "'transformer.ln_f.bias' has nan at [0]",
        ),
        (
            lambda folder: change(folder, "transformer.ln_f.bias", lambda value: value[:5]),
            "has the shape (5,), but the model's is (128,)",
        ),
        (
            lambda folder: change(
                folder, "transformer.ln_f.bias", lambda value: value.to(torch.int8)
            ),
            "is stored as int8",
        ),
        (
            lambda folder: change(
                folder, "transformer.ln_f.bias", lambda value: value.to(torch.float8_e4m3fn)
            ),
            "is stored as float8_e4m3fn",
        ),
    ],
)
def test_a_faulty_weight_file_is_one_message_and_leaves_nothing(
    sharded, tmp_path, capsys, fault, message
):
    fault(sharded)
    status = cli.main(["export", str(sharded), "--context", "16", "-o", str(tmp_path / "x")])
    errors = [line for line in capsys.readouterr().err.splitlines() if "error:" in line]
    assert status == 1 and len(errors) == 1 and message in errors[0], errors
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_no_weights_needs_none(sharded, tmp_path, core_built):
    missing(sharded)
    (sharded / "model.safetensors.index.json").unlink()
    for phase in ("decode", "prefill"):
        out = tmp_path / phase
        status = cli.main(
            [
                "compile",
                str(sharded),
                "--phase",
                phase,
                "--context",
                "32",
                "--prefill-chunk",
                "8",
                "--no-weights",
                "-o",
                str(out),
            ]
        )
        assert status == 0 and json.loads((out / "report.json").read_text())["cycles"]
        assert not list((out / "weights").glob("*.bin"))


@pytest.mark.parametrize("decoder", [False, True])
def test_an_encoder_is_no_model_that_decodes(tmp_path, decoder):
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 64,
    }
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "bert", "is_decoder": decoder, **sizes})
    )
    if decoder:
        assert models.load(str(tmp_path)).config.is_decoder
        return
    with pytest.raises(Error, match="is not causal: tokens depend on later ones"):
        models.load(str(tmp_path))


def test_end_tokens_are_those_of_the_generation_configuration(sharded):
    (sharded / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    assert models.load(str(sharded)).end_tokens() == {7, 8}


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "not a generation configuration"),
        ("[]", "not a generation configuration"),
        ('{"eos_token_id": "x"}', 'eos_token_id "x" is no token'),
        ('{"eos_token_id": {"a": 1}}', 'eos_token_id {"a": 1} is no token'),
        ('{"eos_token_id": [[1]]}', "eos_token_id [[1]] is no token"),
    ],
)
def test_end_tokens_that_are_none_are_refused_before_the_export(sharded, capsys, text, message):
    (sharded / "generation_config.json").write_text(text)
    status, err = cli.main(["generate", str(sharded), "--prompt-ids", "1"]), capsys.readouterr().err
    assert status == 1 and message in err and "export" not in err
