"""Layers by the user's names: in the exported text, in reports, and where numbers begin to differ
from PyTorch's.
"""

import copy
import json
import math
import shutil

import pytest
import torch
from conftest import stc
from torch import nn

import streamtensor
from streamtensor import api, cli, recorded_run

pytestmark = pytest.mark.usefixtures("core_built")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block(), torch.nn.Linear(16, 4)).eval()


X = torch.linspace(-1, 1, 64).reshape(4, 16)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layers") / "design"
    module = net()
    with streamtensor.compile(module, X, output=folder) as design:
        yield design, module


def test_the_text_says_which_layer_a_line_is_of(tmp_path):
    lowered, _ = api.lower(net(), X)
    lines = lowered.text.split("\n")
    matmuls = [(at, line) for at, line in enumerate(lines, 1) if "linalg.matmul" in line]
    assert [line.partition(' loc("')[2] for _, line in matmuls] == [
        f'{layer}"("-":{at}:1))'
        for (at, _), layer in zip(matmuls, ["0.up", "0.down", "1.up", "1.down", "2"])
    ]
    # a message names the operator of that line
    assert lowered.origin(matmuls[0][0]).startswith("aten.mm.default")
    plain, _ = api.lower(net(), X, attributes=False)
    assert "loc(" not in plain.text
    (tmp_path / "m.mlir").write_text(lowered.text)
    assert stc("check", tmp_path / "m.mlir").returncode == 0


def test_kernels_of_the_report_have_layers(made):
    layers = {each.layer for each in made[0].report.kernels if each.dsps}
    assert {"*.up", "*.down", "2"} <= layers, layers  # blocks that are alike are one
    assert all(each.line for each in made[0].report.kernels if each.layer)


def test_rolled_layers_are_one(folder_of, tmp_path):
    words = ["--no-weights", "--context", "16", "-o", str(tmp_path / "d")]
    assert cli.main(["compile", str(folder_of("llama")), *words]) == 0
    report = json.loads((tmp_path / "d" / "report.json").read_text())
    layers = {each.get("layer") for each in report["kernels"]} - {None}
    assert any(layer.endswith("layers.*.mlp.up_proj") for layer in layers), layers


def test_the_same_numbers_are_found_the_same(made):
    design, _ = made
    found = design.compare(X)
    assert [each.layer for each in found.layers] == [
        "0.up", "0.down", "1.up", "1.down", "2", "result0"
    ]  # fmt: skip
    assert all(each.snr_db > 100 and each.largest_error < 1e-5 for each in found.layers)
    assert found.first_below(100) is None and found.layers[0].shape == (4, 32)
    assert "0.down" in str(found) and found._repr_html_().count("<rect") == 6
    # both blocks' numbers come from one process, the loop over them; relu is part of "up"
    sent = {each.layer: each.process for each in found.layers}
    assert found.same_bits and sent["0.down"] == sent["1.down"] != sent["2"] and sent["2"]


@pytest.mark.parametrize("layer", ["0.down", "1.up"])
def test_a_fault_is_located(made, layer):
    design, module = made
    exact = copy.deepcopy(module)
    with torch.no_grad():
        exact.get_submodule(layer).weight[3, 5] += 0.25
    found = design.compare(X, reference=exact)
    assert found.first_below(90).layer == layer
    names = [each.layer for each in found.layers]
    assert all(each.snr_db > 100 for each in found.layers[: names.index(layer)])


SEEDED = """template <class Stream, class Word> static void seeded(Stream &y, Word word)
{
	reinterpret_cast<TYPE *>(&word)[0] += FAULT;
	y.write(word);
}
"""


def _faulty(design, folder, process: str, kind: str, fault: str):
    """The design in another folder, where a process sends wrong numbers."""
    shutil.copytree(design.folder, folder)
    source = recorded_run.source_of(folder)
    before, begin, rest = source.read_text().partition(f"static void {process}(")
    body, end, behind = rest.partition("\n}\n")
    assert "y.write(" in body
    body = body.replace("y.write(", "seeded(y, ")
    seeded = SEEDED.replace("TYPE", kind).replace("FAULT", fault)
    source.write_text(before + seeded + begin + body + end + behind)
    recorded_run.rehash(folder, source)
    faulty = streamtensor.load(folder)
    for name in ("_module", "_again", "is_quantized"):
        setattr(faulty, name, getattr(design, name))
    return faulty


@pytest.mark.parametrize("layer", ["*.up", "2"])
def test_a_fault_in_the_text_of_a_kernel_is_located(made, layer, tmp_path):
    """The numbers are those of the design's own text. With its relu "up" has no result that is
    sent: its process is the first that sends what the compiled design does not.
    """
    design, _ = made
    process = [each.name for each in design.report.kernels if each.layer == layer and each.dsps][-1]
    with _faulty(design, tmp_path / "design", process, "float", "0.25f") as faulty:
        found = faulty.compare(X)
    first = found.first_below(60)
    assert first.layer == layer.replace("*", "0") and first.process == process, found
    assert found.same_bits


def test_what_quantization_costs_is_seen():
    module = net()
    with streamtensor.compile(module, X, quant="int8", calibration=[0.5 * X]) as design:
        found = design.compare(X)
    assert all(5 < each.snr_db < 60 for each in found.layers) and found.same_bits
    # the range was found on smaller inputs
    assert found.layers[0].saturated_share > 0 and "1.56 %" in str(found)
    row = found.table()[0] if isinstance(found.table(), list) else found.table().iloc[0]
    assert row["saturated_share"] == found.layers[0].saturated_share


@pytest.fixture(scope="module")
def integers(core_built):
    """An integer network for one image, whose ReLUs and pooling are fused, and the image."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 5),
    ).eval()  # fmt: skip
    image = torch.randn(1, 1, 8, 8)
    with streamtensor.compile(network, (image,), quant="int8", calibration=[image]) as design:
        yield design, image, design.compare(image)


def test_integers_of_the_design_are_the_layers_numbers(integers):
    """Sums before their scales by channel, and unsigned bytes; only a fused ReLU is in no FIFO."""
    _, _, found = integers
    borders = {each.layer: each.process for each in found.layers}
    assert found.same_bits and not borders["1"] and "no border" in str(found), found
    assert all(process for layer, process in borders.items() if layer not in ("1", "result0")), (
        found
    )
    assert all(each.snr_db > 25 for each in found.layers), found


@pytest.mark.parametrize("layer", ["0", "3", "6"])
def test_a_fault_in_the_text_of_an_integer_layer_is_located(integers, layer, tmp_path):
    design, image, clean = integers
    process = next(each.process for each in clean.layers if each.layer == layer)
    with _faulty(design, tmp_path / "design", process, "int", "40000") as faulty:
        first = faulty.compare(image).first_below(20)
    assert first.layer == layer and first.process == process


def test_figures_of_a_difference():
    from streamtensor.compare import LayerDifference

    expected = torch.tensor([3.0, 4.0, 0.0, 0.0])
    found = LayerDifference.of("a", expected + torch.tensor([0.0, 0.0, 0.5, -0.5]), expected, False)
    assert found.largest_error == 0.5 and found.rms_error == pytest.approx(math.sqrt(0.125))
    assert found.snr_db == pytest.approx(10 * math.log10(6.25 / 0.125))
    assert LayerDifference.of("a", expected, expected, False).snr_db == math.inf
    clipped = LayerDifference.of("a", expected.clamp(max=3), expected, True)
    assert clipped.saturated_share == 0.25


def test_kernels_of_a_network_in_integers_have_their_layers(core_built):
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 5)
    ).eval()
    image = torch.randn(1, 3, 6, 6)
    with streamtensor.compile(network, (image,), quant="int8", calibration=[image]) as design:
        layers = {each.layer for each in design.report.kernels if each.dsps}
        assert layers == {"0", "3"}
