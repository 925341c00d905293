"""Files of a design, and arrays, that somebody changed: each command ends with a result or with one
message. `make test-long` tries a thousand of each with the compiler under ASan and UBSan.
"""

import copy
import hashlib
import json
import os
import random
import shutil

import numpy
import pytest
import torch
from conftest import stc

import streamtensor
from streamtensor.errors import Error
from streamtensor.report import Report

FEW = 8
MANY = pytest.param(int(os.environ.get("HOSTILE", 1000)), marks=pytest.mark.long)
VALUES = [
    None, True, -1, 0, 1, 1 << 31, 1 << 53, 1 << 64, 1e308, -0.5, "", "x", "../x", "f32",
    "a" * 5000, "\0\udcff", [], [[]], {}, [1] * 1000, {"name": 1},
]  # fmt: skip


def _places(value, found=None):
    """Every (container, key) of a JSON value."""
    found = [] if found is None else found
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            _places(value[key], found)
    return found


def _changed_json(text: str, choice: random.Random) -> str:
    """The text with one to three values changed, removed, or exchanged."""
    changed = json.loads(text)
    for _ in range(choice.randint(1, 3)):
        places = _places(changed)
        if not places:
            break
        container, key = choice.choice(places)
        kind = choice.randrange(4)
        if kind == 0:
            del container[key]
        elif kind == 1:
            other, its = choice.choice(places)
            container[key] = copy.deepcopy(other[its])
        elif kind == 2 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            container[key] = copy.deepcopy(choice.choice(VALUES))
    return json.dumps(changed)


def _changed_bytes(data: bytes, choice: random.Random) -> bytes:
    """The bytes with parts changed, removed, repeated or moved; mostly at their beginning."""
    found = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(len(found) + 1)
        at = min(at, choice.randrange(200)) if choice.random() < 0.8 else at
        size = choice.choice([1, 1, 2, 8, 100])
        kind = choice.randrange(5)
        if kind == 0:
            found[at : at + size] = choice.randbytes(size)
        elif kind == 1:
            del found[at : at + size]
        elif kind == 2:
            found[at:at] = found[at : at + size] * choice.choice([1, 2, 50])
        elif kind == 3:
            del found[at:]
        else:
            words = [b"9" * 30, b"-1", b"{", b"[" * 500, b'"', b"\0", b"\xff\xfe", b"(4,)", b">f4"]
            found[at:at] = choice.choice(words)
    return bytes(found)


def _write_changed(path, text: str, choice: random.Random, hashed=False) -> bool:
    """Writes a changed text, mostly of valid JSON; whether its hash is that of what it says."""
    if choice.random() < 0.2:
        path.write_bytes(_changed_bytes(text.encode(), choice))
        return False
    made = json.loads(_changed_json(text, choice))
    if hashed and isinstance(made, dict):
        made.pop("hash", None)
        said = json.dumps(made)
        said = said[:-1] if path.name == "manifest.json" else said
        made["hash"] = hashlib.blake2b(said.encode(), digest_size=32).hexdigest()
        if path.name == "manifest.json":
            path.write_text(f'{said},\n"hash":"{made["hash"]}"}}\n')
            return True
    path.write_text(json.dumps(made))
    return hashed


@pytest.fixture(scope="module")
def perceptron(tmp_path_factory, core_built):
    """A design of a module with a buffer, and its input and result."""
    folder = tmp_path_factory.mktemp("hostile")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    value = torch.randn(2, 4)
    with streamtensor.compile(module.eval(), (value,), output=folder / "out") as design:
        numpy.save(folder / "x.npy", value.numpy())
        names = [next(iter(each)) for each in (design._inputs, design._results)]
        return folder, names, design(value)


def _text_of(folder, name: str) -> str:
    return (folder / "out" / name).read_text()


def _ends(done) -> bool:
    """Whether it gave a result; else it said why in one message."""
    said = done.stderr.partition("its last lines:")[0]  # the C++ compiler's own follow
    assert done.returncode in (0, 1), (done.returncode, said[-3000:])
    assert "Sanitizer" not in said and "runtime error" not in said, said[-3000:]
    assert done.returncode == 0 or said.count("error:") == 1, said
    return done.returncode == 0


def _run(folder, design, names, tmp_path, values=None):
    result = tmp_path / "y.npy"
    result.unlink(missing_ok=True)
    given = f"{names[0]}={values or folder / 'x.npy'}"
    ended = _ends(stc("run", design, "--in", given, "--out", f"{names[1]}={result}"))
    assert ended == result.exists() and {each.name for each in tmp_path.iterdir()} <= {
        "d", "y.npy", "x.npy"
    }  # fmt: skip
    return numpy.load(result) if ended else None


@pytest.mark.parametrize("count", [FEW, MANY])
def test_hostile_manifests(tmp_path, perceptron, count):
    """Half of them with the hash of what they say: then all depends on what is checked."""
    folder, names, expected = perceptron
    design = shutil.copytree(folder / "out", tmp_path / "d")
    text, choice = _text_of(folder, "manifest.json"), random.Random(1)
    for number in range(count):
        is_hashed = _write_changed(design / "manifest.json", text, choice, number % 2)
        found = _run(folder, design, names, tmp_path)
        assert found is None or is_hashed or (found == expected.numpy()).all(), number
        _ends(stc("simulate", design))


@pytest.mark.parametrize("count", [FEW, MANY])
def test_hostile_arrays(tmp_path, perceptron, count):
    folder, names, expected = perceptron
    data, choice = (folder / "x.npy").read_bytes(), random.Random(2)
    for _ in range(count):
        (tmp_path / "x.npy").write_bytes(_changed_bytes(data, choice))
        found = _run(folder, folder / "out", names, tmp_path, tmp_path / "x.npy")
        assert found is None or found.shape == expected.shape


@pytest.mark.parametrize("count", [FEW, MANY])
def test_hostile_designs_are_simulated(tmp_path, perceptron, count):
    folder, _, _ = perceptron
    design = shutil.copytree(folder / "out", tmp_path / "d")
    data, choice = (folder / "out/design.mlir").read_bytes(), random.Random(3)
    for _ in range(count):
        (design / "design.mlir").write_bytes(_changed_bytes(data, choice))
        _ends(stc("simulate", design))


def test_a_changed_call_is_refused(tmp_path, perceptron):
    """Its types decide numbers: without its hash an input would be read as another type."""
    design = shutil.copytree(perceptron[0] / "out", tmp_path / "d")
    text = (design / "call.json").read_text()
    changed = text.replace('"stored": "float32"', '"stored": "int32"', 1)
    assert changed != text
    (design / "call.json").write_text(changed)
    with pytest.raises(Error, match="call.json: not the file that .* it was changed"):
        streamtensor.load(design)


@pytest.mark.parametrize("count", [10 * FEW, MANY])
def test_hostile_reports(tmp_path, perceptron, count):
    """What Python says of a design is typed, or our error."""
    text, choice = _text_of(perceptron[0], "report.json"), random.Random(4)
    refused = 0
    for _ in range(count):
        _write_changed(tmp_path / "report.json", text, choice)
        try:
            report = Report.read(tmp_path)
            str(report), report.rows(), report.size
        except Error as error:
            assert str(tmp_path) in str(error), error
            refused += 1
    assert 0 < refused < count


@pytest.mark.parametrize("name", ["call.json", "manifest.json"])
@pytest.mark.parametrize("count", [FEW, MANY])
def test_hostile_folders_are_loaded(tmp_path, perceptron, name, count):
    """By Python: a design whose results are those of the compiled one, or our error. Half of the
    texts have the hash of what they say: then it may be called differently.
    """
    folder, _, expected = perceptron
    value = torch.from_numpy(numpy.load(folder / "x.npy"))
    design = shutil.copytree(folder / "out", tmp_path / "d")
    text, choice = _text_of(folder, name), random.Random(5)
    with streamtensor.load(design) as loaded:
        assert loaded(value).equal(expected) and loaded.table() is not None
    for number in range(count):
        is_hashed = _write_changed(design / name, text, choice, number % 2)
        try:
            with streamtensor.load(design) as loaded:
                found = loaded(value)
        except Error:
            continue
        assert is_hashed or found.equal(expected)
