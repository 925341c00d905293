"""Designs as `stc` writes them: legal for the vendor's tools, the same bytes every time, and right
on the CPU, against PyTorch and bit for bit against the evaluator. Golden hashes of what is emitted
are in tests/golden/design.sha256; `BLESS=1` renews them.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

from streamtensor import core
from streamtensor.lowering import graph

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "design.sha256"
TOLERANCE = 1e-4
FIRST_CHOICE = "choose_parallelism"  # from this pass on, choices of the search matter
SEEDS = (98, 15)  # random graphs: rolled layers with states, and views

pytestmark = pytest.mark.usefixtures("core_built")


def stc(*arguments, cwd=None, prefix=()) -> str:
    command = [*prefix, core.find_file(core.COMPILER), *arguments]
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Mlp(torch.nn.Module):
    shape = (3, 12)

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = (
            torch.nn.Linear(12, 17),
            torch.nn.LayerNorm(17),
            torch.nn.Linear(17, 5),
        )

    def forward(self, x):
        return torch.softmax(self.down(torch.nn.functional.gelu(self.norm(self.up(x)))), -1)


class Cnn(torch.nn.Module):
    shape = (1, 2, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv, self.head = torch.nn.Conv2d(2, 5, 3, padding=1), torch.nn.Linear(5 * 16, 7)

    def forward(self, x):
        return self.head(
            torch.flatten(torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2), 1)
        )


class Case:
    """A model as files: model.mlir, weights.safetensors; and what PyTorch says."""

    def __init__(self, folder: Path, kind):
        torch.manual_seed(7)
        module = kind().eval()
        self.folder, self.name = folder, kind.__name__.lower()
        self.x = torch.randn(*kind.shape)
        weights = {
            name: value.detach().contiguous() for name, value in graph.named_tensors(module).items()
        }
        lowered = graph.lower(module, [self.x], [graph.Port("x", "input")], weights)
        self.mlir, self.weights = folder / f"{self.name}.mlir", folder / f"{self.name}.safetensors"
        self.mlir.write_text(lowered.text)
        save_file(weights, self.weights)
        with torch.no_grad():
            self.expected = module(self.x)

    def compile(self, output: Path, **how) -> Path:
        stc("compile", self.mlir, "--weights", self.weights, "-o", output, **how)
        return output


@pytest.fixture(scope="module", params=[Mlp, Cnn], ids=lambda kind: kind.__name__.lower())
def case(request, tmp_path_factory):
    return Case(tmp_path_factory.mktemp("case"), request.param)


@pytest.fixture(scope="module")
def design(case):
    return case.compile(case.folder / "design")


class Random:
    """A random graph, its inputs, and the results that the evaluator gives at hardware level."""

    def __init__(self, folder: Path, seed: int):
        program = core.find_file(core.COMPILER).parent / "unit" / "test_pipeline"
        if not program.exists():
            pytest.skip("the C tests are not built")
        environment = {
            **os.environ,
            "STC_RANDOM_FIRST": str(seed),
            "STC_RANDOM_GRAPHS": "1",
            "STC_RANDOM_VALUES": str(folder),
        }
        subprocess.run([program], env=environment, check=True, capture_output=True, timeout=120)
        self.folder, self.mlir = folder, folder / "graph.mlir"
        self.inputs = {path.name[3:-4]: path for path in sorted(folder.glob("in.*.npy"))}
        self.outputs = {path.name[4:-4]: path for path in sorted(folder.glob("out.*.npy"))}
        self.design = folder / "design"
        stc("compile", self.mlir, "-o", self.design)


@pytest.fixture(scope="module", params=SEEDS)
def random(request, tmp_path_factory):
    return Random(tmp_path_factory.mktemp("random"), request.param)


def files_of(design: Path) -> dict[str, bytes]:
    """Every file but the times."""
    return {
        str(path.relative_to(design)): path.read_bytes()
        for path in sorted(design.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }


def lint(design: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "hls_lint.py", design],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_lint(design):
    lint(design)


def test_the_text_asks_for_the_latency_that_is_simulated(design):
    """An adapter waits for memory as long as the platform's table says."""
    text = next((design / "hls").glob("*.cpp")).read_text()
    board = json.loads((ROOT / "platforms" / "u55c.json").read_text())
    said = set(re.findall(r"m_axi .* latency=(\d+) ", text))
    assert said == {str(board["memory"]["latency_cycles"]["value"])}


def test_lint_of_random_graphs(random):
    lint(random.design)


def test_values_are_pytorchs(case, design):
    numpy.save(case.folder / "x.npy", case.x.numpy())
    stc("run", design, "--in", f"x={case.folder}/x.npy", "--out", f"result0={case.folder}/y.npy")
    got = torch.from_numpy(numpy.load(case.folder / "y.npy"))
    assert got.shape == case.expected.shape
    assert float((got - case.expected).abs().max() / case.expected.abs().max()) <= TOLERANCE


def test_values_are_the_evaluators(random):
    given = [
        argument for name, path in random.inputs.items() for argument in ("--in", f"{name}={path}")
    ]
    wanted = [
        argument
        for name in random.outputs
        for argument in ("--out", f"{name}={random.folder}/got.{name}.npy")
    ]
    stc("run", random.design, *given, *wanted)
    for name, path in random.outputs.items():
        got, expected = numpy.load(random.folder / f"got.{name}.npy"), numpy.load(path)
        if name in random.inputs:  # a state: the evaluator gives the row that was written
            whole = numpy.load(random.inputs[name])
            whole[:, int(numpy.load(random.inputs["at"])[0])] = expected[:, 0]
            expected = whole
        assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes(), name
    assert random.outputs


def test_least_budget(case, tmp_path):
    """What a budget that cannot be met says is enough is enough, and one byte less is not."""

    def at(budget):
        return subprocess.run(
            [
                core.find_file(core.COMPILER),
                "compile",
                case.mlir,
                "--weights",
                case.weights,
                "--on-chip-memory",
                str(budget),
                "-o",
                tmp_path / "least",
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )

    refused = at(1)
    least = int(re.search(r"note: --on-chip-memory (\d+) is the minimum", refused.stderr)[1])
    parts = [
        int(number)
        for number in re.search(
            r"converters (\d+), shared buffers (\d+), accumulators (\d+), FIFOs of two words (\d+)",
            refused.stderr,
        ).groups()
    ]
    assert refused.returncode == 1 and sum(parts) == least
    assert at(least - 1).returncode == 1
    assert at(least).returncode == 0
    on_chip = json.loads((tmp_path / "least" / "report.json").read_text())["intermediates"]
    # another design, such as one with register tiles and fewer multipliers, may fit as well
    assert sum(on_chip[kind] for kind in ("converters", "buffers", "accumulators")) < least
    numpy.save(case.folder / "x.npy", case.x.numpy())
    stc(
        "run",
        tmp_path / "least",
        "--in",
        f"x={case.folder}/x.npy",
        "--out",
        f"result0={case.folder}/least.npy",
    )
    got = torch.from_numpy(numpy.load(case.folder / "least.npy"))
    assert float((got - case.expected).abs().max() / case.expected.abs().max()) <= TOLERANCE


def test_same_bytes(case, design, tmp_path):
    expected = files_of(design)
    elsewhere = case.compile(tmp_path / "elsewhere", cwd=tmp_path)
    assert files_of(elsewhere) == expected
    if (
        shutil.which("setarch")
        and subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0
    ):
        assert files_of(case.compile(tmp_path / "fixed", prefix=("setarch", "-R"))) == expected


@pytest.mark.parametrize("kind", [Mlp, Cnn], ids=["mlp", "cnn"])
def test_dumps_are_mlir(kind, tmp_path):
    program = shutil.which("mlir-opt-19")
    if not program:
        pytest.skip("no mlir-opt-19")
    made = Case(tmp_path, kind)
    stc("compile", made.mlir, "--dump-dir", tmp_path / "dumps", "-o", tmp_path / "design")
    dumps = sorted((tmp_path / "dumps").glob("*.mlir"))
    assert len(dumps) > 10
    for dump in dumps:
        done = subprocess.run(
            [program, f"--irdl-file={ROOT}/share/streamtensor.irdl.mlir", dump, "-o", os.devnull],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{dump.name}: {done.stderr[:400]}"


@pytest.mark.parametrize("model", ["attention", "chunk"])
def test_every_dump_goes_on_to_the_same_design(model, tmp_path):
    """What a pass decides stands in its dump: the passes after it make the same design of it."""
    whole = ROOT / "tests" / "models" / f"{model}.mlir"
    stc("compile", whole, "--dump-dir", tmp_path / "dumps", "-o", tmp_path / "design")
    expected = (tmp_path / "design" / "hls" / f"top_{model}.cpp").read_text()
    names = {int(path.name[:2]): path for path in (tmp_path / "dumps").glob("*.mlir")}
    choosing = next(number for number, path in names.items() if FIRST_CHOICE in path.name)
    for number in range(choosing, max(names)):
        dump, after = tmp_path / f"{model}.mlir", names[number + 1].stem[3:]
        shutil.copy(names[number], dump)
        stc("compile", dump, "--from", after, "--platform", "u55c", "-o", tmp_path / "again")
        found = (tmp_path / "again" / "hls" / f"top_{model}.cpp").read_text()
        assert found == expected, f"after {names[number].stem}"


def test_a_proof_is_about_the_depths_that_were_proved(tmp_path):
    """A dump whose FIFOs were cut does not claim the proof of their old depths."""
    model = ROOT / "tests" / "models" / "attention.mlir"
    stc("compile", model, "--dump-dir", tmp_path / "dumps", "-o", tmp_path / "design")
    dump = next((tmp_path / "dumps").glob("*-bind_storage.mlir"))
    for name, cut in {"as_sized": False, "cut": True}.items():
        text = dump.read_text()
        if cut:
            text = re.sub(r"(!stream\.fifo<[^<>]*(?:<[^<>]*>)?, )\d+>", r"\g<1>1>", text)
        (tmp_path / f"{name}.mlir").write_text(text)
        stc("compile", tmp_path / f"{name}.mlir", "--from", "floorplan", "-o", tmp_path / name)
        report = json.loads((tmp_path / name / "report.json").read_text())
        assert (report["termination"] == "token model") == (not cut)


GOLDEN_DESIGNS = {
    **{path.stem: (path,) for path in sorted((ROOT / "tests" / "models").glob("*.mlir"))},
    "perceptron_w4a8": (ROOT / "examples" / "perceptron.mlir", "--quant", "w4a8"),  # the engine
}


def golden_lines(tmp_path: Path) -> str:
    lines = []
    for name, (model, *options) in GOLDEN_DESIGNS.items():
        stc("compile", model.name, *options, "-o", tmp_path / name, cwd=model.parent)
        files = files_of(tmp_path / name)
        for file in (f"hls/top_{model.stem}.cpp", "hls/link.cfg"):
            lines.append(f"{hashlib.sha256(files[file]).hexdigest()}  {name}/{file}\n")
    return "".join(sorted(lines, key=lambda line: line.split()[1]))


def test_emitted_text_is_as_accepted(tmp_path):
    lines = golden_lines(tmp_path)
    if os.environ.get("BLESS") == "1":
        GOLDEN.write_text(lines)
    assert lines == GOLDEN.read_text(), (
        "what is emitted changed; if that was meant: BLESS=1 pytest "
        "tests/python/test_design.py -k accepted"
    )
