"""The command line: what it writes, what it refuses, and how it says so."""

import contextlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FAMILIES, stc
from safetensors.torch import load_file

from streamtensor import cli, core, workflow
from streamtensor.language import models
from streamtensor.progress import Progress

ROOT = Path(__file__).resolve().parents[2]


# what is asked about options is answered by the compiler
KNOWN = (
    f'[ "$1" != options ] || exec {core.find_file(core.COMPILER)} "$@"\n'
    '[ "$3" != --dry-run ] || exit 0\n'
)


@pytest.fixture
def run(capsys):
    """run(*arguments) -> (status, standard output, standard error)."""

    def call(*arguments):
        try:
            status = cli.main(list(map(str, arguments)))
        except SystemExit as stop:
            status = stop.code
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def fake_core(tmp_path, monkeypatch):
    """fake_core(script): `stc` is this shell script."""

    def make(script: str) -> None:
        folder = tmp_path / "core"
        folder.mkdir(exist_ok=True)
        (folder / "stc").write_text("#!/bin/sh\n" + script)
        (folder / "stc").chmod(stat.S_IRWXU)
        monkeypatch.setenv("STREAMTENSOR_CORE", str(folder))

    return make


def test_export_writes_three_files(run, tmp_path, folder_of):
    status, out, err = run("export", folder_of("llama"), "--context", 16, "-o", tmp_path / "x")
    assert status == 0 and out == ""
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "config.json",
        "model.mlir",
        "weights.safetensors",
    ]
    assert "streamtensor: note: no weights found" in err and "streamtensor: export\n" in err
    text = (tmp_path / "x" / "model.mlir").read_text()
    assert all(f'"{name}"' in text for name in load_file(tmp_path / "x" / "weights.safetensors"))
    assert (
        json.loads((tmp_path / "x" / "config.json").read_text())["streamtensor"]["cache_rows"] == 15
    )


def test_export_replaces_its_own_folder_and_reads_it_back(run, tmp_path, folder_of):
    first = run("export", folder_of("gpt2"), "--context", 16, "--seed", 1, "-o", tmp_path / "x")
    before = (tmp_path / "x" / "weights.safetensors").read_bytes()
    second = run("export", folder_of("gpt2"), "--context", 16, "--seed", 2, "-o", tmp_path / "x")
    assert (first[0], second[0]) == (0, 0)
    assert before != (tmp_path / "x" / "weights.safetensors").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    "arguments, message, note",
    [
        (
            ["export", "no/such-model", "-o", "{out}"],
            "unknown model 'no/such-model'",
            "gpt2-medium",
        ),
        (
            ["export", "{empty}", "-o", "{out}"],
            "the folder has no config.json",
            "config.json and *.safetensors",
        ),
        (
            ["export", "{gpt2}", "-o", "{taken}"],
            "not a folder that this command wrote: it contains 'mine.txt'",
            "a new folder",
        ),
        (["export", "{gpt2}", "-o", "{taken}/mine.txt"], "not a folder", "a new folder"),
        (
            ["compile", "{gpt2}", "-o", "{taken}/mine.txt/x"],
            "mine.txt: not a folder",
            "'x' is to be written there",
        ),
        (["export", "{gpt2}", "--context", "65", "-o", "{out}"], "--context 65", "2 to 64"),
        (["export", "{gpt2}", "--context", "1", "-o", "{out}"], "--context 1", "2 to 64"),
        (
            ["export", "{gpt2}", "--phase", "prefill", "--prefill-chunk", "0", "-o", "{out}"],
            "--prefill-chunk 0",
            "1 to 63",
        ),
        (
            ["export", "{gpt2}", "--prefill-chunk", "64", "-o", "{out}"],
            "--prefill-chunk 64",
            "1 to 63",
        ),
        (
            ["export", "{gpt2}", "--tokens", "64", "-o", "{out}"],
            "--prefill-chunk 64",
            "1 to 63",
        ),
        (["export", "{gpt2}"], "the following arguments are required: -o", "export --help"),
        (
            ["export", "{gpt2}", "--phase", "both", "-o", "{out}"],
            "invalid choice: 'both'",
            "--help",
        ),
        (["import"], "invalid choice: 'import'", "streamtensor --help"),
        (["generate", "{gpt2}", "--prompt", "hello"], "no tokenizer", "--prompt-ids"),
        (["generate", "{gpt2}"], "--prompt --prompt-ids is required", "--help"),
        (
            ["generate", "no/such-model", "--prompt-ids", "1,two"],
            "'1,two' is not a list of token ids",
            "464,3290",
        ),
        (["generate", "{gpt2}", "--prompt-ids", "1,512"], "the id 512", "0 to 511"),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1,2,3", "--context", "3"],
            "context of 3",
            "larger --context, up to 64",
        ),
        (["generate", "{gpt2}", "--prompt", "caf\udce9"], "--prompt is not UTF-8", "plain text"),
        (
            ["generate", "{gpt2}", "--prompt", "x", "--stop", "\udcff"],
            "--stop is not UTF-8",
            "plain text",
        ),
        (["compile", "{gpt2}", "-o", "."], "not a folder that this command wrote", "a new folder"),
        (["generate", "{gpt2}", "--prompt-ids", "1", "--top-p", "0"], "--top-p 0", "up to 1"),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--quant", "w2a8"],
            "no scheme 'w2a8'",
            "w4a8",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--temperature", "-1"],
            "--temperature -1 is below zero",
            "and above",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--temperature", "nan"],
            "--temperature nan is no number",
            "and above",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--temperature", "inf"],
            "--temperature inf is no number",
            "and above",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--seed", "9223372036854775808"],
            "--seed",
            "--help",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--seed", "-1"],
            "--seed: -1 is outside",
            "--help",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--top-p", "0.5"],
            "--top-p has no effect with --temperature 0",
            "above 0",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--top-k", "5"],
            "--top-k has no effect with --temperature 0",
            "above 0",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--stop", "x"],
            "--stop has no effect with --prompt-ids",
            "--prompt TEXT",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--no-chat-template"],
            "--no-chat-template has no effect with --prompt-ids",
            "--prompt TEXT",
        ),
        (
            ["generate", "{gpt2}", "--prompt", "x", "--stop", ""],
            "--stop is empty",
            "ends the answer",
        ),
        (
            ["generate", "{gpt2}", "--prompt-ids", "1", "--quant-method", "rtn"],
            "--quant-method has no effect with --quant fp32",
            "w4a8",
        ),
        (
            [
                "compile",
                "{gpt2}",
                "--quant",
                "w4a8",
                "--quant-method",
                "rtn",
                "--no-weights",
                "-o",
                "{out}",
            ],
            "--quant-method and --no-weights contradict",
            "one of them",
        ),
        (
            [
                "explore",
                "{gpt2}/config.json",
                "--workers",
                "2",
                "--scheduler",
                "tcp://localhost:1",
                "-o",
                "{out}",
            ],
            "--workers and --scheduler contradict",
            "one of them",
        ),
        (
            ["evaluate", "{gpt2}", "--text", "{out}", "--context", "0"],
            "--context 0 is outside",
            "2 to 64",
        ),
    ],
)
def test_wrong_use_is_one_error_with_a_note(run, tmp_path, folder_of, arguments, message, note):
    places = {
        "out": tmp_path / "out",
        "empty": tmp_path / "empty",
        "taken": tmp_path / "taken",
        "gpt2": folder_of("gpt2"),
    }
    places["empty"].mkdir(), places["taken"].mkdir()
    (places["taken"] / "mine.txt").write_text("mine")
    status, out, err = run(*(text.format(**places) for text in arguments))
    errors = [line for line in err.splitlines() if line.startswith("streamtensor: error: ")]
    assert status == 1 and out == "" and len(errors) == 1 and message in errors[0]
    assert any(line.startswith("note: ") and note in line for line in err.splitlines())
    assert "Traceback" not in err and not places["out"].exists()
    assert [path.name for path in places["taken"].iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("command", [("compile",), ("generate", "--prompt-ids", "1,2")])
def test_a_folder_that_is_not_ours_is_refused_before_the_model_is_loaded(
    run, tmp_path, folder_of, core_built, command
):
    (tmp_path / "mine.txt").write_text("mine")
    status, _, err = run(command[0], folder_of("gpt2"), *command[1:], "-o", tmp_path)
    assert (
        status == 1
        and "not a folder that this command wrote: it contains 'mine.txt'" in err
        and "load" not in err
    )


def test_an_empty_folder_and_a_link_to_one_are_taken_but_not_the_one_that_this_runs_in(
    run, tmp_path, folder_of, monkeypatch
):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        assert run("export", folder_of("gpt2"), "--context", 16, "-o", tmp_path / "link")[0] == 0
        assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "model.mlir").is_file()
    monkeypatch.chdir(tmp_path / "real")
    status, _, err = run("export", folder_of("gpt2"), "--context", 16, "-o", ".")
    assert status == 1 and "the folder that this runs in would be replaced" in err


def test_a_stage_that_comes_again_is_said_once():
    said = io.StringIO()
    with Progress(said) as progress:
        for stage in ("export", "size_fifos", "emit", "size_fifos", "emit"):
            progress.stage(stage)
    assert said.getvalue() == "streamtensor: export\nstreamtensor: size_fifos\nstreamtensor: emit\n"


def test_tokens_beside_decode_are_not_passed_over_in_silence(run, tmp_path, folder_of):
    status, _, err = run(
        "export", folder_of("gpt2"), "--context", 16, "--prefill-chunk", 8, "-o", tmp_path / "x"
    )
    assert status == 0 and "note: --prefill-chunk 8 has no effect" in err
    assert (
        "--prefill-chunk"
        not in run(
            "export",
            folder_of("gpt2"),
            "--context",
            16,
            "--prefill-chunk",
            8,
            "--phase",
            "prefill",
            "-o",
            tmp_path / "x",
        )[2]
    )


def test_prompt_goes_through_the_folder_s_tokenizer(run, tmp_path, folder_of):
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_bytes((folder_of("gpt2") / "config.json").read_bytes())
    tokenizer = Tokenizer(models.WordLevel({"the": 3, "dog": 600, "?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    status, _, err = run("generate", folder, "--prompt", "the dog")
    assert status == 1 and "the prompt has the id 600" in err
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "chat_template": "{{ raise_exception('a system message first') }}",
            }
        )
    )
    status, _, err = run("generate", folder, "--prompt", "the dog")
    assert (
        status == 1
        and "chat template cannot take the prompt: TemplateError: a system message first" in err
        and "--no-chat-template" in err
    )


LLAMA = FAMILIES["llama"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "config.json: not a model configuration"),
        (json.dumps({**LLAMA, "num_hidden_layers": 0}), "config.json: num_hidden_layers is 0"),
        (json.dumps({**LLAMA, "num_hidden_layers": -1}), "config.json: num_hidden_layers is -1"),
        (json.dumps({**LLAMA, "rms_norm_eps": float("nan")}), "config.json: rms_norm_eps is nan"),
        (json.dumps({**LLAMA, "rope_theta": 0}), "config.json: rope_theta is 0"),
        (json.dumps({**LLAMA, "vocab_size": 0}), "config.json: vocab_size is 0"),
        (
            json.dumps({**LLAMA, "max_position_embeddings": 1}),
            "config.json: max_position_embeddings is 1",
        ),
        (json.dumps({**LLAMA, "num_key_value_heads": 3}), "no multiple of num_key_value_heads, 3"),
        (json.dumps({**LLAMA, "hidden_size": "wide"}), "'hidden_size': TypeError"),
        (json.dumps({**LLAMA, "hidden_act": "new"}), "there is no 'new'"),
    ],
)
def test_broken_configuration_is_refused(run, tmp_path, text, message):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text(text)
    status, _, err = run("export", tmp_path / "m", "-o", tmp_path / "out")
    assert (
        status == 1
        and message in err
        and err.count("error:") == 1
        and [path.name for path in tmp_path.iterdir()] == ["m"]
    )


@pytest.mark.parametrize("command", [("compile",), ("generate", "--prompt-ids", "1,2")])
def test_an_unknown_platform_is_refused_before_the_model_is_loaded(
    run, tmp_path, folder_of, core_built, command
):
    name, *others = command
    status, _, err = run(
        name, folder_of("gpt2"), *others, "--platform", "nosuch", "-o", tmp_path / "out"
    )
    assert (
        status == 1
        and "unknown platform 'nosuch'" in err
        and "load" not in err
        and not (tmp_path / "out").exists()
    )


def test_compile_hands_the_files_to_stc_and_shows_its_stages(run, tmp_path, folder_of, fake_core):
    fake_core(
        KNOWN
        + 'test -s "$2" && test -s "$9" && echo "stage import" >&2 && mkdir "$6" && echo "$@" '
        '> "$6/manifest.json"\n'
    )
    status, out, err = run(
        "compile", folder_of("gpt2"), "--context", 16, "--platform", "u280", "-o", tmp_path / "d"
    )
    assert status == 0 and out == "" and "streamtensor: import\n" in err, err
    words = (tmp_path / "d" / "manifest.json").read_text().split()
    assert (
        words[0] == "compile"
        and words[2:4] == ["--platform", "u280"]
        and words[6:8] == ["--progress", "--weights"]
    )
    assert Path(words[1]).name == f"{folder_of('gpt2').name}_decode.mlir"  # which names the design
    assert sorted(path.name for path in tmp_path.iterdir()) == ["core", "d"]


def test_compile_passes_on_what_stc_says(run, tmp_path, folder_of, fake_core):
    fake_core(
        KNOWN
        + 'echo "model.mlir:3:5: error: no such op" >&2; echo "note: accepted are others" >&2; '
        "exit 1\n"
    )
    status, out, err = run("compile", folder_of("gpt2"), "--context", 16, "-o", tmp_path / "d")
    assert status == 1 and err.endswith(
        "model.mlir:3:5: error: no such op\nnote: accepted are others\n"
    )
    assert "streamtensor: note: platform u55c (default)" in err and not (tmp_path / "d").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["core"]


def test_missing_core_is_named(run, tmp_path, folder_of, monkeypatch):
    from streamtensor import core

    monkeypatch.setattr(core, "folders", lambda: [tmp_path / "nowhere"])
    status, _, err = run("compile", folder_of("gpt2"), "--context", 16, "-o", tmp_path / "d")
    assert (
        status == 1
        and "stc was not found" in err
        and "nowhere" in err
        and "STREAMTENSOR_CORE" in err
    )


def test_internal_error_shows_a_traceback_only_when_asked(run, monkeypatch, tmp_path):
    from streamtensor.language import models

    def broken(*_):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(models, "load", broken)
    quiet = run("export", "gpt2", "-o", tmp_path / "x")
    loud = run("export", "gpt2", "-o", tmp_path / "x", "--debug")
    assert quiet[0] == loud[0] == 1 and "internal: ZeroDivisionError: oops" in quiet[2]
    assert "Traceback" not in quiet[2] and "Traceback" in loud[2]


def test_help_lists_the_commands_quickly_and_without_pytorch():
    code = (
        "import sys; from streamtensor import cli\ntry: cli.main(['--help'])\nfinally: assert "
        "'torch' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert all(command in ran.stdout for command in ("export", "compile", "generate", "demo"))


def test_help_speaks_of_what_the_command_takes(run):
    said = {
        command: " ".join(run(command, "--help")[1].split()) for command in ("export", "compile")
    }
    assert (
        "both" not in said["export"]
        and "w4a8 with both phases: 32 on boards with 32 memory ports, else 8" in said["compile"]
    )


def test_one_design_of_both_phases_takes_no_more_tokens_than_a_short_context_has(folder_of):
    model = models.load(str(folder_of("gpt2")))
    tokens = [
        workflow.step_shapes(model, "both", context, None, engine=True)[0].tokens
        for context in (5, 64)
    ]
    assert tokens == [4, 8]


@pytest.mark.parametrize(
    "platform, tokens", [("u55c", 32), ("u280", 32), ("vu9p", 8), ("xc7z020", 8)]
)
def test_a_board_with_a_port_for_each_slice_takes_many_tokens_a_launch(
    core_built, platform, tokens
):
    assert workflow.default_prefill_tokens(platform) == tokens


def test_a_reader_that_leaves_is_no_error_and_a_full_disk_is_one(core_built):
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full, open(writer, "w") as left:
        said = [
            subprocess.run(
                [core.find_file(core.COMPILER), "passes"],
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
            for out in (full, left)
        ]
    assert [(ran.returncode, ran.stderr) for ran in said] == [
        (1, "stc: error: standard output cannot be written\n"),
        (0, ""),
    ]


def test_module_is_the_command():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run(
        [sys.executable, "-m", "streamtensor", "--version"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and ran.stdout.startswith("streamtensor ")


def test_an_interrupt_that_a_library_swallows_ends_the_next_stage(
    run, tmp_path, folder_of, monkeypatch
):
    # which a background job ignores
    load, before = models.load, signal.signal(signal.SIGINT, signal.default_int_handler)

    def swallowing(*words):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return load(*words)

    monkeypatch.setattr(models, "load", swallowing)
    status, _, err = run("export", folder_of("gpt2"), "--context", 16, "-o", tmp_path / "x")
    handler = signal.signal(signal.SIGINT, before)
    assert (
        status == 130
        and err.endswith("streamtensor: error: interrupted\n")
        and "write weights" not in err
    )
    assert not list(tmp_path.iterdir()) and handler is signal.default_int_handler


def test_a_request_to_end_leaves_nothing(core_built, tmp_path):
    """Of `generate` into a temporary folder, in the middle of the compiler."""
    model = ROOT / "examples" / "tiny-gpt2"
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "streamtensor",
            "generate",
            str(model),
            "--prompt-ids",
            "1,2",
            "--platform",
            "u55c",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    said = []
    for line in running.stderr:
        said.append(line)
        if "roll_layers" in line:
            running.send_signal(signal.SIGTERM)
    assert running.wait() == 130 and said[-1] == "streamtensor: error: interrupted\n", said
    assert not [path for path in tmp_path.iterdir() if "torchinductor" not in path.name]


def test_a_pipe_is_written_not_replaced(core_built, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    done = stc("compile", ROOT / "examples" / "perceptron.mlir", "--to", "tensor", "-o", pipe)
    text = os.read(end, 1 << 16)
    os.close(end)
    assert done.returncode == 0 and stat.S_ISFIFO(pipe.stat().st_mode) and b"stream.kernel" in text


def test_a_file_that_a_link_names_is_replaced_and_the_link_stays(core_built, tmp_path):
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    file.touch()
    done = stc("compile", ROOT / "examples" / "perceptron.mlir", "--to", "tensor", "-o", link)
    assert done.returncode == 0 and link.is_symlink() and "stream.kernel" in file.read_text()
