"""One table of options: every door of the compiler takes the same ones, and says the same of wrong
ones.
"""

import doctest
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT, stc

import streamtensor
from streamtensor import cli, options
from streamtensor.checkpoints.weights import write
from streamtensor.errors import Error

sys.path.insert(0, str(ROOT / "tools"))
import api_page  # noqa: E402
import option_page  # noqa: E402

# a number, a part, a word, an expert's count, a list and a flag
GIVEN = {
    "clock": 250,
    "max_dsp": "10%",
    "softmax": "two-pass",
    "kernel_lanes": 16,
    "fix_kernel": ["k0:lanes=4"],
}
FILE = """
import torch

def perceptron():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    return net.eval(), torch.zeros(4, 16)
"""


@pytest.fixture(autouse=True)
def built(core_built):
    pass


def perceptron():
    space = {}
    exec(FILE, space)
    return space["perceptron"]()


def hashes(folder: Path) -> list[str]:
    """What the manifest says of files, but of the reports, which have times."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    return sorted(f"{name} {each}" for name, each in files.items())


def test_every_door_makes_the_same_design(tmp_path):
    module, inputs = perceptron()
    words = options.words(options.settings(GIVEN))
    exported = streamtensor.export(module, inputs)
    (tmp_path / "model.mlir").write_text(exported.text)
    weights = exported.weights
    write(tmp_path / "w", weights, weights, weights.__getitem__)
    done = stc("compile", tmp_path / "model.mlir", "--weights", tmp_path / "w", *words, "-o",
               tmp_path / "stc")  # fmt: skip
    assert done.returncode == 0, done.stderr
    streamtensor.compile(module, inputs, output=tmp_path / "python", **GIVEN).close()
    (tmp_path / "net.py").write_text(FILE)
    command = ["compile", f"{tmp_path}/net.py:perceptron", *words, "-o", str(tmp_path / "command")]
    assert cli.main(command) == 0
    expected = hashes(tmp_path / "stc")
    assert len(expected) > 5
    assert hashes(tmp_path / "python") == hashes(tmp_path / "command") == expected
    usual = streamtensor.compile(module, inputs, output=tmp_path / "usual")
    usual.close()
    assert hashes(tmp_path / "usual") != expected


def test_torch_compile_takes_them_too():
    module, inputs = perceptron()
    made = torch.compile(module, backend="streamtensor", options={"fallback": False, **GIVEN})
    with torch.no_grad():
        assert torch.allclose(made(inputs), module(inputs), atol=1e-5)
    text = (streamtensor.last_design() / "report.txt").read_text()
    assert "250 MHz" in text
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "wrong, right",
    [("clok", "clock"), ("max_dsps", "max_dsp"), ("fifo_size", "fifo_sizing"), ("out", "output")],
)
def test_unknown_options_are_named_alike_with_the_nearest(tmp_path, capsys, wrong, right):
    dashed, nearest = wrong.replace("_", "-"), right.replace("_", "-")
    said = stc("compile", "x.mlir", f"--{dashed}=1", "-o", tmp_path / "d").stderr
    assert f"unknown option '--{dashed}' of compile\n" in said and f"is --{nearest};" in said
    assert cli.main(["compile", "x.py:f", f"--{dashed}=1", "-o", str(tmp_path / "d")]) == 1
    said = capsys.readouterr().err
    if right != "output":
        assert f"unknown option '--{dashed}' of compile\n" in said and f"is --{nearest};" in said
    with pytest.raises(Error, match=f"unknown option '{wrong}' of compile") as error:
        streamtensor.compile(torch.nn.ReLU(), torch.zeros(2), **{wrong: 1})
    assert f"the nearest is {right};" in error.value.notes[0]
    with pytest.raises(Exception, match=f"unknown option '{wrong}' of compile"):
        torch.compile(torch.nn.ReLU(), backend="streamtensor", options={wrong: 1})(torch.zeros(2))
    torch._dynamo.reset()


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("clock", 0, "--clock is '0'"),
        ("clock", 9999, "--clock is 9999 MHz"),
        ("softmax", "onlin", "the nearest is online"),
        ("max_dsp", "many", "--max-dsp"),
        ("platform", "u56c", "unknown platform 'u56c'"),
        ("effort", 4, "-O4 is not an effort level"),
    ],
)
def test_wrong_values_are_named_before_anything_is_exported(tmp_path, option, value, said):
    class Never(torch.nn.Module):
        def forward(self, x):
            raise AssertionError("exported")

    with pytest.raises(streamtensor.Error) as error:
        streamtensor.compile(Never(), torch.zeros(2), output=tmp_path / "d", **{option: value})
    assert said in str(error.value) and not (tmp_path / "d").exists()
    platform = [] if option == "platform" else ["--platform", "u55c"]
    given = [*platform, f"--{option.replace('_', '-')}", value]
    told = stc("compile", "x.mlir", *given, "-o", tmp_path / "d")
    assert told.returncode == 1 and str(error.value).strip() == told.stderr.strip()


def test_flags_and_lists_are_read():
    found = options.settings({"reassociate": True, "define": {"n": 4, "m": 8}, "top": None})
    assert options.words(found) == ["--define", "n=4", "--define", "m=8", "--reassociate"]
    assert options.settings({"reassociate": False, "fix-kernel": "k0:lanes=4"}) == {
        "fix-kernel": ["k0:lanes=4"]
    }
    for wrong in ({"reassociate": 3}, {"clock": True}):
        with pytest.raises(Error, match=f"{next(iter(wrong))} is "):
            options.settings(wrong)


def test_a_dry_run_reads_and_writes_nothing(tmp_path):
    done = stc(
        "compile", tmp_path / "none.mlir", "--dry-run", "--platform", "u280", "-o", tmp_path / "d"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_page_is_that_of_the_table():
    assert option_page.PAGE.read_text() == option_page.page(option_page.listed()), (
        "run tools/option_page.py --write"
    )


def test_page_of_the_package_is_that_of_its_docstrings():
    assert api_page.PAGE.read_text() == api_page.page(), "run tools/api_page.py --write"


def test_the_example_of_the_package_runs(core_built):
    failed, tried = doctest.testmod(streamtensor)
    assert tried > 9 and not failed


def complete(*words: str, script: str | None = None, folder=None) -> list[str]:
    line = " ".join(f"'{word}'" for word in words)
    path = f"PATH={Path(options.core.find_file('stc')).parent}:$PATH\n"
    script = script or stc("completion", "bash").stdout
    script += f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _{words[0]}; "
    script += "echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", path + script], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_channels_of_a_design_and_the_command_of_the_package_are_completed(capsys, tmp_path):
    (tmp_path / "design.mlir").write_text(
        '  %0 = "stream.fifo"() {name = "s_words", stream.storage = "srl"} : () -> ()\n'
    )
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    for command, text in (("stc", None), ("streamtensor", script)):
        words = (command, "simulate", ".", "--channel-depth", "s_")
        assert complete(*words, script=text, folder=tmp_path) == ["s_words="]
    assert complete("streamtensor", "gen", script=script) == ["generate"]
    assert complete("streamtensor", "run", "--imag", script=script) == ["--images"]
    assert complete("streamtensor", "compile", "--phase", "b", script=script) == ["both"]
    assert complete("streamtensor", "compile", "--softmax", "=", "two", script=script) == [
        "two-pass"
    ]
    assert cli.main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.startswith("#compdef streamtensor\n")


def test_bash_completes_commands_options_and_values():
    assert complete("stc", "sim") == ["simulate"]
    assert complete("stc", "compile", "--clo") == ["--clock"]
    assert complete("stc", "check", "--clo") == []
    assert "u55c" in complete("stc", "compile", "--platform", "u")
    assert complete("stc", "compile", "--softmax", "=", "two") == ["two-pass"]
    assert "form_streams" in complete("stc", "compile", "--from", "form")
    assert stc("completion", "zsh").stdout.startswith("#compdef stc\n")
    assert "bash or zsh" in stc("completion", "fish").stderr
