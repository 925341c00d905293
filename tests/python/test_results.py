"""What a design tells of itself: its report, simulations, other options, and itself in another
process.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import torch
from conftest import ROOT, stc

import streamtensor
from streamtensor.errors import Error

pytestmark = pytest.mark.usefixtures("core_built")


class Block(torch.nn.Module):
    """Takes a number beside its tensor, and gives a dictionary."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 8)

    def forward(self, x, scale):
        hidden = torch.relu(self.up(x))
        return {"y": self.down(hidden) * scale, "hidden": hidden}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    torch.manual_seed(0)
    module, x = Block().eval(), torch.randn(4, 16)
    folder = tmp_path_factory.mktemp("results") / "design"
    with streamtensor.compile(module, (x, 2.0), output=folder, names=["x"]) as design:
        yield design, module, x, folder


def test_it_says_what_it_is_in_three_lines(made):
    design, _, _, folder = made
    lines = repr(design).splitlines()
    report = json.loads((folder / "report.json").read_text())
    assert len(lines) == 3 and lines[0] == (
        "Design model on u55c: (x: 4x16 float32) -> result0: 4x8 float32, result1: 4x32 float32"
    )
    assert f"{report['cycles']['simulated']:,} cycles (simulated) at 300 MHz" in lines[1]
    assert f"{report['resources']['dsp']} DSPs (" in lines[1]
    assert lines[2] == f"bottleneck: {report['bottleneck']}; in {folder}"
    page = design._repr_html_()
    assert "<table>" in page and "://" not in page and "<script" not in page


def test_its_report_has_types_and_units(made):
    design, _, _, folder = made
    found, report = json.loads((folder / "report.json").read_text()), design.report
    assert report.latency_ms == found["latency_ms"] and report.cycles_source == "simulated"
    assert report.used.dsps == found["resources"]["dsp"] <= report.available.dsps == 8304
    assert report.bottleneck in (folder / "report.txt").read_text() and report.suggestions
    assert len(report.kernels) == len(found["kernels"]) and report.json == found
    stalls = [row["stall_cycles"] for row in list_of(design.table())]
    assert stalls == sorted(stalls, reverse=True) and stalls[0] > 0
    kernel = report.kernels[0]
    assert kernel.stall_cycles == sum(
        found["kernels"][0][f"{kind}_wait"] for kind in ("input", "output", "memory")
    )
    assert str(report).startswith("model on u55c: ") and "suggestion: " in str(report)


def list_of(table) -> list[dict]:
    return table if isinstance(table, list) else table.to_dict("records")


def test_it_simulates_itself(made):
    design = made[0]
    one, four = design.simulate(), design.simulate(launches=4)
    assert one["cycles"] == design.report.cycles < four["cycles"]
    with pytest.raises(Error, match="unknown option 'launchs' of simulate") as error:
        design.simulate(launchs=4)
    assert "the nearest is launches;" in error.value.notes[0]


def test_another_clock_or_limit_is_one_call(made):
    design, module, x, _ = made
    with design.set(clock=200, max_dsp=400) as slower, torch.no_grad():
        assert slower.report.clock_mhz == 200 and slower.report.used.dsps <= 400
        assert slower.folder != design.folder
        assert torch.allclose(slower(x, 2.0)["y"], module(x, 2.0)["y"], atol=1e-5)
    with pytest.raises(Error, match="unknown option 'clocks' of compile"):
        design.set(clocks=200)


def test_another_process_loads_it_and_calls_it_alike(made, tmp_path):
    design, module, x, folder = made
    with torch.no_grad():
        expected = module(x, 2.0)
    torch.save((x, expected), tmp_path / "values")
    (tmp_path / "pickled").write_bytes(pickle.dumps(design))
    code = f"""
import pickle, torch, streamtensor
x, expected = torch.load({str(tmp_path / "values")!r})
pickled = pickle.load(open({str(tmp_path / "pickled")!r}, "rb"))
for design in (streamtensor.load({str(folder)!r}), pickled):
    found = design(x, 2.0)
    assert set(found) == {{"y", "hidden"}}
    assert torch.allclose(found["y"], expected["y"], atol=1e-5)
    assert design.report.platform == "u55c"
try:
    design.set(clock=200)
except streamtensor.Error as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "what the design was made of is not known here" in done.stdout


def test_a_design_of_the_compiler_is_loaded_too(tmp_path):
    model = ROOT / "examples" / "gemm.c"
    done = stc("compile", model, "--top", "gemm", "--platform", "xc7z020", "-o", tmp_path / "gemm")
    assert done.returncode == 0, done.stderr
    with streamtensor.load(tmp_path / "gemm") as design:
        assert design.report.platform == "xc7z020" and "float32" in repr(design)
    for wrong in (tmp_path, tmp_path / "none"):
        with pytest.raises(Error, match="no such folder|not a design"):
            streamtensor.load(wrong)


def test_buffers_go_with_it(tmp_path):
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.full((3,), 5.0))

        def forward(self, x):
            self.seen.add_(x)
            return self.seen * 2

    with streamtensor.compile(Count(), torch.ones(3), output=tmp_path / "d") as design:
        assert design(torch.ones(3)).tolist() == [12.0] * 3
    with streamtensor.load(tmp_path / "d") as design:
        assert design(torch.ones(3)).tolist() == [12.0] * 3
        assert design(torch.ones(3)).tolist() == [14.0] * 3


def test_a_temporary_design_is_not_pickled():
    with streamtensor.compile(torch.nn.ReLU(), torch.zeros(4)) as design:
        with pytest.raises(Error, match="temporary folder"):
            pickle.dumps(design)


@pytest.mark.parametrize(
    "rows, said", [(9, "a batch of 9 for one of 4: call it with parts: x.split(4), the last one"),
                   (8, "x.split(4), or compile it for 8"),
                   (3, "fill the batch up to 4 and take the first 3 results")],
)  # fmt: skip
def test_another_batch_is_named_as_one(made, rows, said):
    with pytest.raises(Error) as error:
        made[0](torch.zeros(rows, 16), 2.0)
    assert any(said in note for note in error.value.notes), error.value.notes


@pytest.mark.parametrize("value", [[1, -2, 3], (1, -2, 3), numpy.array([1.0, -2.0, 3.0])])
def test_what_is_a_tensor_without_loss_is_taken(rectifier, value):
    assert rectifier(value).tolist() == [1, 0, 3]
    with pytest.raises(Error, match="torch.float64"):
        rectifier(numpy.array([0.1, 1, 2]))
    for wrong in (None, "x", [1, 2], [[1], [2, 3]], 2.5):
        with pytest.raises(Error):
            rectifier(wrong)


@pytest.fixture(scope="module")
def rectifier(core_built):
    with streamtensor.compile(torch.nn.ReLU(), (torch.randn(3),)) as design:
        yield design


def test_arrays_of_numpy_are_taken(made):
    design, module, x, _ = made
    found = design(numpy.asarray(x), 2.0)
    assert torch.equal(found["y"], design(x, 2.0)["y"])


def test_a_deleted_design_is_named(tmp_path):
    with streamtensor.compile(torch.nn.ReLU(), torch.zeros(4), output=tmp_path / "d") as design:
        shutil.rmtree(tmp_path / "d")
        assert "was moved or deleted" in repr(design)
        with pytest.raises(Error, match="has no report.json"):
            design.table()
        assert "was moved or deleted" in design._repr_html_()
        for use in (design.simulate, lambda: design(torch.zeros(4))):
            with pytest.raises(Error, match="was moved or deleted"):
                use()


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda module, x: streamtensor.compile(module, (x,), clok=250), "nearest is clock;"),
        (
            lambda module, x: torch.compile(module, backend="streamtensor", options={"clok": 250})(
                x
            ),
            "nearest is clock;",
        ),
        (lambda module, x: streamtensor.compile(module, (x,), quant=8), "scheme, as 'w4a8'"),
        (lambda module, x: streamtensor.compile(module, (x.to("meta"),)), "hold all their numbers"),
        (
            lambda module, x: streamtensor.compile(module.to("meta"), (x,)),
            "'weight' of the module is on the meta device",
        ),
        (lambda module, x: streamtensor.load(None), "the folder that `compile` wrote"),
        (
            lambda module, x: streamtensor.explore(module, (x,), budget=1, storage=__file__),
            "at which there is nothing",
        ),
    ],
)
def test_what_is_accepted_is_part_of_the_error(use, said):
    """So that a notebook shows it, and Dynamo, which passes the text on."""
    with pytest.raises(Exception, match="(?s)note: accepted|note: the nearest") as error:
        use(torch.nn.Linear(4, 2).eval().requires_grad_(False), torch.ones(1, 4))
    assert said in str(error.value), error.value


def test_comparisons_say_what_they_take():
    x = torch.ones(1, 4)
    module = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU())
    module.eval().requires_grad_(False)
    with streamtensor.compile(module, (x,)) as design:
        for arguments, reference in (((), None), ((x[:0],), None), ((x,), 3)):
            with pytest.raises(Error, match="note: "):
                design.compare(*arguments, reference=reference)
        with pytest.raises(Error, match="the design takes"):
            design.write("arg0", [1])
        other = torch.nn.Sequential(torch.nn.Identity(), module[0])
        # layers are those of the same name and shape; result0 is always there
        layers = design.compare(x, reference=other).layers
    assert [each.layer for each in layers] == ["1", "result0"]


def test_the_page_is_shown(made, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    assert made[0].show() == made[3] / "report.html"
    assert shown == [(made[3] / "report.html").as_uri()]
    assert Path(shown[0].removeprefix("file://")).is_file()


def test_a_call_costs_little_beside_the_launch(monkeypatch):
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    x = torch.zeros(4, 16)
    with streamtensor.compile(module.eval(), x) as design:
        for _ in range(3):
            design(x)
        assert design._quick
        monkeypatch.setattr(design, "launch", lambda: None)
        costs = []
        for _ in range(200):
            begun = time.thread_time()
            design(x)
            costs.append(time.thread_time() - begun)
    assert min(costs) < 100e-6


def test_the_package_is_imported_at_once():
    code = (
        "import sys, time; begun = time.process_time(); import streamtensor; "
        "assert 'torch' not in sys.modules; print(time.process_time() - begun)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and float(done.stdout) < 0.1, done
