"""`stc run` from .npy files to .npy files, the runtime under Python, and the card's interface
against the vendor's headers.
"""

import os
import re
import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

from streamtensor import api, core

ROOT = Path(__file__).resolve().parents[2]
XRT = Path("/usr/include/xrt")


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Linear(12, 20), torch.nn.Linear(20, 5)

    def forward(self, x, rows):
        return self.second(torch.relu(self.first(x[rows]))), x * 2


class Built:
    """A design with its weights and one without, and inputs for both."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.x, self.rows = (
            torch.randn(6, 12, generator=torch.Generator().manual_seed(1)),
            torch.tensor([5, 0, 5]),
        )
        module = Model()
        self.results = module(self.x, self.rows)
        exported = api.export(module, (self.x, self.rows))
        (folder / "m.mlir").write_text(exported.text)
        save_file(exported.weights, folder / "w.safetensors")
        source = core.Source(folder / "m.mlir")
        for weights, design in ((folder / "w.safetensors", "packed"), (None, "bare")):
            core.compile_design([source], weights, ["--platform", "u55c"], folder / design)
        numpy.save(folder / "x.npy", self.x.numpy())
        numpy.save(folder / "rows.npy", self.rows.numpy())

    def run(self, *arguments: str, design: str = "packed") -> subprocess.CompletedProcess:
        """In the folder; the compiled library is kept there too."""
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        return subprocess.run(
            [core.find_file(core.COMPILER), "run", design, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    def good(self, name: str, result: int) -> bool:
        value, expected = numpy.load(self.folder / name), self.results[result].detach().numpy()
        return (
            value.shape == expected.shape
            and value.dtype == expected.dtype
            and abs(value - expected).max() <= 1e-4 * abs(expected).max()
        )


INPUTS = ("--in", "arg0=x.npy", "--in", "arg1=rows.npy")


@pytest.fixture(scope="module")
def built(tmp_path_factory, core_built):
    return Built(tmp_path_factory.mktemp("run"))


def test_results_are_pytorchs(built):
    before = sorted(path for path in (built.folder / "packed").rglob("*"))
    done = built.run(*INPUTS, "--out", "result0=y.npy", "--out", "result1=z.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\w+: launch \d+\.\d+ s on cpu, host \d+\.\d+ s\n", done.stdout)
    assert built.good("y.npy", 0) and built.good("z.npy", 1)
    # the library is in the cache
    assert sorted(path for path in (built.folder / "packed").rglob("*")) == before


def test_weights_given_at_run_time(built):
    done = built.run(
        *INPUTS, "--weights", "w.safetensors", "--out", "result0=late.npy", design="bare"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert built.good("late.npy", 0)
    refused = built.run(*INPUTS, "--weights", "w.safetensors", "--out", "result0=never.npy")
    assert refused.returncode == 1 and "the design has its weights" in refused.stderr


@pytest.mark.parametrize(
    "arguments, message, note",
    [
        (
            ("--in", "arg0=x.npy", "--out", "result0=never.npy"),
            "no value is given for arg1",
            "arg1 i64 (3,)",
        ),
        (
            (*INPUTS, "--in", "arg9=x.npy", "--out", "result0=never.npy"),
            "no input 'arg9'",
            "arg0 f32 (6, 12), arg1 i64 (3,)",
        ),
        (
            (*INPUTS, "--out", "logits=never.npy"),
            "no result 'logits'",
            "result0 f32 (3, 5), result1 f32 (6, 12)",
        ),
        ((*INPUTS,), "no --out", "result0 f32 (3, 5)"),
        (
            (*INPUTS, "--in", "arg0=x.npy", "--out", "result0=never.npy"),
            "'arg0' is given twice",
            "",
        ),
        (
            ("--in", "arg0=rows.npy", "--in", "arg1=rows.npy", "--out", "result0=never.npy"),
            "rows.npy: error: holds i8 (3,)",
            "input 'arg0' is f4 (6, 12)",
        ),
        (
            ("--in", "arg0=m.mlir", "--in", "arg1=rows.npy", "--out", "result0=never.npy"),
            "m.mlir: error: is no .npy file",
            "C order",
        ),
        (("--in", "arg0", "--out", "result0=never.npy"), "--in is 'arg0'", "--in NAME=FILE"),
        (
            (*INPUTS, "--out", "result0=never.npy", "--out", "result1=nowhere/never.npy"),
            "nowhere/never.npy: error: cannot be written",
            "",
        ),
        (
            (*INPUTS, "--device", "tpu", "--out", "result0=never.npy"),
            "unknown device 'tpu'",
            "cpu, cpu-once to compile for few launches, or xrt:0",
        ),
    ],
)
def test_refusals_leave_nothing(built, arguments, message, note):
    done = built.run(*arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert message in done.stderr and note in done.stderr
    assert not list(built.folder.glob("never*"))


def test_bare_design_asks_for_its_weights(built):
    done = built.run(*INPUTS, "--out", "result0=never.npy", design="bare")
    assert done.returncode == 1 and "no value is given for first.weight, first.bias" in done.stderr


def test_not_a_design(built):
    done = built.run("--out", "result0=never.npy", design="cache")
    assert done.returncode == 1 and "cache: error: is no design" in done.stderr


@pytest.mark.skipif(
    not (XRT / "xrt" / "xrt_kernel.h").exists(), reason="libxrt-dev is not installed"
)
def test_card_functions_are_the_headers(tmp_path):
    """Each function that device_xrt.c loads is called through its own prototype and declared by XRT
    2.13: a host of them compiles as C and links.
    """
    source = (ROOT / "runtime" / "src" / "device_xrt.c").read_text()
    functions = re.findall(r"X\((\w+), ([\w *]+), \((.*?)\)\)", source)
    assert len(functions) == 16
    uses = []
    for name, result, arguments in functions:
        types = [
            re.sub(
                r"\b(index|device|path|uuid|kernel|name|argument|bytes|flags|group|buffer|"
                r"direction|offset|run)$",
                "",
                argument.strip(),
            )
            for argument in arguments.split(",")
        ]
        variadic = types[-1] == "..."
        values = ", ".join(f"({kind})0" for kind in types if kind != "...")
        uses.append(
            f'\t({{ _Static_assert(sizeof({name}({values})) == sizeof({result}), "result"); '
            f"if (argc > 99) (void){name}({values}{', (handle)0' if variadic else ''}); }});"
        )
    host = [
        "#include <xrt/xrt_device.h>",
        "#include <xrt/xrt_bo.h>",
        "#include <xrt/xrt_kernel.h>",
        "typedef void *handle;",
        "_Static_assert(XCL_BO_SYNC_BO_TO_DEVICE == 0 && XCL_BO_SYNC_BO_FROM_DEVICE == 1 && "
        'ERT_CMD_STATE_COMPLETED == 4, "constants");',
        "int main(int argc, char **argv)\n{\n\t(void)argv;",
        *uses,
        "\treturn 0;\n}",
    ]
    (tmp_path / "host.c").write_text("\n".join(host) + "\n")
    command = [
        "gcc",
        "-std=gnu11",
        "-Werror=incompatible-pointer-types",
        "-Werror=int-conversion",
        "-Werror=implicit-function-declaration",
        "-I",
        str(XRT),
        "host.c",
        "-o",
        "host",
        "-lxrt_coreutil",
        "-luuid",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
