"""`streamtensor` alone compiles, runs, simulates and reports, of every source."""

import numpy
import pytest
import torch
from conftest import ROOT

import streamtensor
from streamtensor import cli, core

pytestmark = pytest.mark.usefixtures("core_built")
FILE = """
import torch

net = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU())

def made():
    return net
"""


@pytest.fixture(autouse=True)
def compiler_prints(monkeypatch):
    """What a command of the compiler prints is the command's own output."""

    def pass_on(arguments):
        import subprocess

        done = subprocess.run(
            [core.find_file(core.COMPILER), *arguments], capture_output=True, text=True
        )
        print(done.stdout, end="")
        return done.returncode

    monkeypatch.setattr(cli, "_pass_on", pass_on)


def run(*words) -> int:
    return cli.main([str(word) for word in words])


def test_a_module_in_a_file_is_compiled_run_simulated_and_reported(tmp_path, capsys):
    (tmp_path / "net.py").write_text(FILE)
    x = torch.randn(4, 16)
    numpy.save(tmp_path / "x.npy", x.numpy())
    made = f"{tmp_path}/net.py"
    given = ["--input", "x=4x16", "--clock", 250]
    assert run("compile", f"{made}:net", *given, "-o", tmp_path / "d") == 0
    assert run("compile", f"{made}:made", "--input", f"x={tmp_path}/x.npy", "--clock", "250", "-o",
               tmp_path / "e") == 0  # fmt: skip
    manifests = [(tmp_path / name / "manifest.json").read_text() for name in "de"]
    assert '"name":"x","role":"input","dtype":"f32","shape":[4,16]' in manifests[0]
    assert manifests[0] == manifests[1]
    words = ["--in", f"x={tmp_path}/x.npy", "--out", f"result0={tmp_path}/y.npy"]
    assert run("run", tmp_path / "d", *words) == 0
    with streamtensor.load(tmp_path / "d") as design:
        assert torch.equal(design(x), torch.from_numpy(numpy.load(tmp_path / "y.npy")))
    capsys.readouterr()
    assert run("simulate", tmp_path / "d") == 0
    assert "bottleneck" in capsys.readouterr().out
    assert run("report", tmp_path / "d", "--no-page") == 0
    said = capsys.readouterr().out
    assert "at 250 MHz" in said and f"page: {tmp_path}/d/report.html" in said
    assert run("platforms") == 0 and "xc7z020" in capsys.readouterr().out


def test_mlir_and_c_are_compiled(tmp_path):
    sources = {
        "perceptron.mlir": [],
        "gemm.c": ["--top", "gemm", "--platform", "xc7z020"],
    }
    for name, words in sources.items():
        assert run("compile", ROOT / "examples" / name, *words, "-o", tmp_path / name) == 0
        with streamtensor.load(tmp_path / name) as design:
            assert design.report.name == name.partition(".")[0]


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["{net}:nett", "--input", "4x16"],
            "no function or module 'nett'\nnote: the nearest is net;",
        ),
        (["{net}:net"], "gives no example inputs\nnote: --input 1x3x224x224"),
        (["{net}:net", "--input", "4,16"], "--input '4,16' is no input\nnote: accepted is a shape"),
        (["{net}:net", "--input", "4x16:f33"], "--input '4x16:f33' is no input"),
        (["{net}:net", "--input", "none.npy"], "none.npy: No such file"),
        (["{net}:net", "--input", "4x16", "--top", "f"], "--top has no effect with"),
        (["{mlir}", "--input", "4x16"], "--input has no effect with"),
        (["{mlir}", "--define", "n=4"], "--define has no effect with"),
        (["{mlir}", "--batch", "2"], "--batch has no effect with"),
        (["{net}:net", "--input", "4x16", "--weights", "w"], "--weights has no effect with"),
    ],
)
def test_what_does_nothing_is_refused(tmp_path, capsys, words, said):
    (tmp_path / "net.py").write_text(FILE)
    places = {"net": tmp_path / "net.py", "mlir": ROOT / "examples" / "perceptron.mlir"}
    words = [word.format(**places) for word in words]
    assert run("compile", *words, "-o", tmp_path / "d") == 1
    assert said in capsys.readouterr().err and not (tmp_path / "d").exists()
