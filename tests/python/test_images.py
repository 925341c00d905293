"""Several images a launch (--images): values, what is refused, and what reports and simulations say
of the interval and the latency of an image.
"""

import json
import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

import streamtensor
from streamtensor import cli, core
from streamtensor.errors import Error
from streamtensor.images import image_models

ROOT = Path(__file__).resolve().parents[2]
IMAGES = 3


def _network():
    """Layers of two rates, a shortcut, and rows of a border."""
    torch.manual_seed(3)
    first = nn.Conv2d(2, 8, 3, 2, 1)
    return nn.Sequential(
        first, nn.ReLU(), nn.Conv2d(8, 8, 3, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 5)
    ).eval()


@pytest.fixture(scope="module")
def designs(tmp_path_factory):
    """The network of int8, for one image a launch and for three."""
    folder = tmp_path_factory.mktemp("images")
    torch.manual_seed(5)
    calibration = [(torch.randn(1, 2, 8, 8),) for _ in range(4)]
    network = streamtensor.quantized(_network(), calibration[0], calibration)
    made = {
        images: streamtensor.compile(
            network, calibration[0], output=folder / f"by{images}", images=images
        )
        for images in (1, IMAGES)
    }
    yield made
    for design in made.values():
        design.close()


def test_images_of_a_launch_are_those_of_launches(designs):
    images = torch.randn(IMAGES, 2, 8, 8)
    one_by_one = torch.cat([designs[1](image[None]) for image in images])
    assert torch.equal(designs[IMAGES](images), one_by_one)
    assert len(one_by_one.unique(dim=0)) == IMAGES


class Attention(nn.Module):
    """Products of two tensors of the image, positions and a table."""

    def __init__(self):
        super().__init__()
        self.table, self.inner = nn.Embedding(7, 4), nn.Linear(4, 12)

    def forward(self, x):
        rows = self.table(x) + torch.arange(5)[:, None]
        query, key, value = self.inner(rows).chunk(3, -1)
        return torch.softmax(query @ key.transpose(1, 2), -1) @ value, x.argmax(-1)


def test_images_of_any_network(tmp_path):
    """Gathers, counters and products of two operands that differ by image."""
    torch.manual_seed(6)
    network, numbers = Attention(), torch.randint(0, 7, (IMAGES, 5))
    with streamtensor.compile(network, numbers[:1], output=tmp_path / "d", images=IMAGES) as design:
        values, places = design(numbers)
    torch.testing.assert_close(values, network(numbers)[0], rtol=1e-4, atol=1e-4)
    assert torch.equal(places, numbers.argmax(-1))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, 4))

    def forward(self, x):
        return x * 2, self.weight + 1


@pytest.mark.parametrize(
    "network, shape, message",
    [
        (nn.Linear(4, 3), (2, 4), "input 'arg0' is tensor<2x4xf32>"),
        (nn.Flatten(0), (1, 4), "result 'result0' is tensor<4xf32>"),
        (Shared(), (1, 4), "result 'result1' is the same for every image"),
        (nn.GRU(4, 4, batch_first=True), (1, 3, 4), "a loop passes what it computes on"),
    ],
)
def test_what_is_no_image_is_refused(network, shape, message, tmp_path):
    with pytest.raises(core.CompileError, match="--images 2: ") as caught:
        streamtensor.compile(network, torch.randn(shape), output=tmp_path / "d", images=2)
    assert message in caught.value.text and not (tmp_path / "d").exists()


@pytest.mark.parametrize("images", [0, -1, 65537])
def test_number_of_images_is_checked(images, tmp_path):
    with pytest.raises(core.CompileError, match="--images"):
        streamtensor.compile(
            nn.Linear(4, 3), torch.randn(1, 4), output=tmp_path / "d", images=images
        )


def test_states_are_no_images():
    model = ROOT / "tests" / "models" / "chunk.mlir"
    command = [core.find_file("stc"), "compile", model, "--images", "2", "--to", "stream"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 1 and "--images 2: input" in done.stderr


def _report(folder):
    return json.loads((folder / "report.json").read_text())


def _stream(folder, *options):
    """Two convolutions, whose results come image by image."""
    torch.manual_seed(4)
    network = nn.Sequential(nn.Conv2d(2, 4, 3, 1, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 1, 1))
    image = torch.randn(1, 2, 10, 10)
    quantized = streamtensor.quantized(network, image, [(image,)])
    exported = streamtensor.export(quantized, image)
    (folder / "two.mlir").write_text(exported.text)
    for images in (4, 8):
        command = [core.find_file("stc"), "compile", folder / "two.mlir", "--images", images]
        command += ["-o", folder / f"by{images}", *options]
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return [_report(folder / f"by{images}") for images in (4, 8)]


def test_interval_is_what_a_further_image_takes(tmp_path):
    four, eight = _stream(tmp_path)
    further = (eight["cycles"]["simulated"] - four["cycles"]["simulated"]) / 4
    for report in (four, eight):
        images = report["images"]
        assert images["source"] == "simulated" and "together" not in images
        assert images["interval_cycles"] == pytest.approx(further, rel=0.05)
        last = images["latency_cycles"] + (images["count"] - 1) * images["interval_cycles"]
        assert last == pytest.approx(report["cycles"]["simulated"], rel=0.1)
        launched = images["count"] / (report["latency_ms"] / 1e3)
        assert images["per_s"] == pytest.approx(launched, rel=1e-4)
        assert images["per_s"] < images["steady_per_s"]
    simulated = core.run_json("simulate", str(tmp_path / "by4"))["images"]
    assert simulated.items() <= four["images"].items() and "interval_cycles" in simulated
    text = (tmp_path / "by4" / "report.txt").read_text().splitlines()
    assert text[2].startswith("one image ") and "a further one every" in text[2]
    assert text[3].startswith("images ") and "KV cache" not in "\n".join(text)
    slowest = four["images"]["slowest"]
    assert text[4].startswith("slowest layer ") and slowest["process"] in text[4]
    assert "bound by " in text[4] and slowest["bound"] in ("lanes", "words", "memory")
    assert slowest["cycles"] == pytest.approx(four["images"]["interval_cycles"], rel=0.1)


def test_interval_is_modeled_where_nothing_is_simulated(tmp_path):
    four, _ = _stream(tmp_path, "--max-iterations", "1K")
    assert four["images"]["source"] == "modeled" and "simulated" not in four["cycles"]
    simulated = core.run_json("simulate", str(tmp_path / "by4"))["images"]
    for key in ("latency_cycles", "interval_cycles"):
        assert four["images"][key] == pytest.approx(simulated[key], rel=0.05)


def test_an_image_leaves_before_the_next_one_has_passed(designs):
    """The last layer reads each weight once for all images, but each image's results when they are
    there.
    """
    report = _report(designs[IMAGES].folder)
    images = report["images"]
    assert "together" not in images and report["numbers"] == "int8"
    assert images["interval_cycles"] == images["slowest"]["cycles"]
    assert images["latency_cycles"] <= report["cycles"]["simulated"] - images["interval_cycles"]
    alone = _report(designs[1].folder)
    assert "interval_cycles" not in alone["images"]
    assert alone["images"]["latency_cycles"] == alone["cycles"]["simulated"]
    overlapped = ["--launches", "3", "--overlap-launches"]
    simulated = core.run_json("simulate", str(designs[1].folder), *overlapped)
    assert simulated["images"]["interval_cycles"] == simulated["steady_state_cycles"]


def _folder(folder, images):
    folder.mkdir()
    numpy.save(folder / "b.npy", images[:2].numpy())
    for name, image in zip("ca", images[2:]):
        numpy.save(folder / f"{name}.npy", image.numpy())
    (folder / "notes.txt").write_text("no image")
    return folder


def test_classifies_a_folder(designs, tmp_path, capsys):
    """Four images in launches of three, sorted by the names of their files."""
    torch.manual_seed(8)
    images = torch.randn(4, 2, 8, 8)
    folder, labels = _folder(tmp_path / "images", images), tmp_path / "labels"
    labels.write_text("zero\none\ntwo\nthree\nfour\n")
    arguments = ["run", str(designs[IMAGES].folder), "--images", str(folder), "--labels"]
    assert cli.main([*arguments, str(labels)]) == 0
    printed = capsys.readouterr()
    found = [designs[1](images[place][None])[0] for place in (3, 0, 1, 2)]
    names = ["a.npy", "b.npy[0]", "b.npy[1]", "c.npy"]
    assert printed.out.splitlines() == [
        f"{name}\t{labels.read_text().split()[row.argmax()]}\t{row.max().item():.6g}"
        for name, row in zip(names, found)
    ]
    assert "measured on cpu: " in printed.err and "simulated for u55c: " in printed.err
    labels.write_text("zero\n")
    assert cli.main([*arguments, str(labels)]) == 1
    assert "1 labels for 5 classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "shape, message",
    [
        ((2, 8, 9), "b.npy: 2x8x9"),
        ((3, 8, 8), "accepted are images of 2x8x8 of float32"),
        (None, "no images in this folder"),
    ],
)
def test_images_that_do_not_fit_are_refused(shape, message, designs, tmp_path, capsys):
    if shape:
        numpy.save(tmp_path / "b.npy", numpy.zeros(shape, numpy.float32))
    assert cli.main(["run", str(designs[1].folder), "--images", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_what_does_not_classify_is_refused(tmp_path, capsys):
    assert cli.main(["run", str(tmp_path), "--images", str(tmp_path)]) == 1
    assert f"{tmp_path}: not a design" in capsys.readouterr().err


PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "vgg16": 138_357_544,
    "mobilenet_v2": 3_504_872,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_by_name_have_the_published_parameters(name):
    with torch.device("meta"):
        network = image_models.build(name).eval()
        assert network(torch.zeros(1, 3, 224, 224)).shape == (1, 1000)
    assert sum(each.numel() for each in network.parameters()) == PARAMETERS[name]


def test_weights_of_a_network_by_name(tmp_path):
    told = []
    kept = image_models.load("mobilenet_v2", 3, None, told.append).module
    assert any("random weights for mobilenet_v2 (seed 3)" in note for note in told)
    state = kept.state_dict()
    torch.save(state, tmp_path / "w.pt")
    found = image_models.load("mobilenet_v2", 4, tmp_path / "w.pt").module
    assert all(torch.equal(value, state[name]) for name, value in found.state_dict().items())
    for name, value, message in (
        ("features.0.0.weight", None, "the weight 'features.0.0.weight' is missing"),
        ("classifier.1.bias", torch.zeros(2), "the weight 'classifier.1.bias' is 2"),
    ):
        changed = {**state, name: value} if value is not None else dict(state)
        if value is None:
            del changed[name]
        torch.save(changed, tmp_path / "w.pt")
        with pytest.raises(Error, match=message):
            image_models.load("mobilenet_v2", 4, tmp_path / "w.pt")
    (tmp_path / "w.pt").write_text("no weights")
    with pytest.raises(Error, match="not a file of weights"):
        image_models.load("mobilenet_v2", 4, tmp_path / "w.pt")


def test_weights_are_of_networks_by_name(tmp_path, capsys):
    arguments = ["compile", "gpt2", "--weights", str(tmp_path / "w"), "-o", str(tmp_path / "d")]
    assert cli.main(arguments) == 1
    assert "--weights has no effect with gpt2" in capsys.readouterr().err
