"""torch.compile(backend="streamtensor"): graphs run as designs, or in PyTorch after one warning
that names the op.
"""

import gc
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from pathlib import Path

import pytest
import torch
from conftest import FAMILIES
from torch import nn

import streamtensor
from streamtensor import dynamo

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("core_built", "fresh")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """No graph is known from before, and temporary files go where they can be counted."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    torch._dynamo.reset()
    yield tmp_path
    torch._dynamo.reset()


def files_left_in(folder):
    # that one is PyTorch's
    return [entry for entry in folder.iterdir() if not entry.name.startswith("torchinductor")]


def compiled(module, **options):
    return torch.compile(
        module, backend=streamtensor.backend, options={"fallback": False, **options}
    )


def close(found, expected, bound=1e-4):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert (found - expected).abs().max() <= bound * expected.abs().max()


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def test_a_perceptron_recompiles_on_new_shapes_and_new_weights(fresh):
    module, seen = perceptron(), set()
    fast = compiled(module)
    with torch.no_grad():
        for rows in (2, 5, 3, 5):
            x = torch.randn(rows, 8)
            close(fast(x), module(x))
            seen.add(streamtensor.last_design())
        assert len(seen) == 3 and all((folder / "manifest.json").is_file() for folder in seen)
        module[0].weight.mul_(2)
        close(fast(x), module(x))
    assert streamtensor.last_design() not in seen
    del fast
    torch._dynamo.reset()
    gc.collect()
    assert streamtensor.last_design() is None and not files_left_in(fresh)


def test_a_convolution():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 5),
    ).eval()
    x = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        close(compiled(module)(x), module(x))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_language_model_with_its_own_masks(family):
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**FAMILIES[family])).eval()
    ids = torch.randint(90, (1, 8))
    with torch.no_grad():
        expected, found = model(ids), compiled(model)(ids)
    assert type(found) is type(expected)
    close(found.logits, expected.logits)
    for ours, theirs in zip(found.past_key_values.layers, expected.past_key_values.layers):
        close(ours.keys, theirs.keys)
        close(ours.values, theirs.values)
    assert streamtensor.last_design().is_dir()


class Transform(nn.Module):
    def forward(self, x):
        return torch.special.zeta(x.abs() + 2, x.abs() + 5)


def test_an_unsupported_graph_falls_back_with_one_warning(monkeypatch):
    monkeypatch.setattr(dynamo, "_last_design", None)
    module, x = Transform(), torch.randn(3, 8)
    fast = torch.compile(module, backend=streamtensor.backend)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.testing.assert_close(fast(x), module(x))
    ours = [str(one.message) for one in said if one.category is dynamo.FallbackWarning]
    assert len(ours) == 1 and "special_zeta" in ours[0], ours
    assert streamtensor.last_design() is None


def test_without_fallback_an_unsupported_graph_is_an_error(fresh):
    with torch.no_grad(), pytest.raises(streamtensor.Error, match="special_zeta"):
        compiled(Transform())(torch.randn(3, 8))
    assert not files_left_in(fresh)


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.linalg.svd(x)[1]


def test_what_torch_mlir_cannot_lower_is_not_left(fresh):
    with torch.no_grad(), pytest.raises(streamtensor.Error, match="linalg_svd"):
        compiled(Spectrum())(torch.randn(4, 4))
    assert not files_left_in(fresh)


class Gamma(nn.Module):
    def forward(self, x):
        return torch.special.gammainc(x, x + 2)


def test_what_the_compiler_refuses_is_named_too():
    with (
        torch.no_grad(),
        pytest.raises(streamtensor.Error, match="aten.special_gammainc|aten.igamma"),
    ):
        compiled(Gamma())(torch.arange(1.0, 9.0))


def test_an_input_that_is_written_is_written():
    module = torch.compile(lambda x: x.add_(1) * 2, backend="streamtensor")
    x = torch.zeros(3)
    with torch.no_grad():
        assert module(x).tolist() == [2, 2, 2] and module(x).tolist() == [4, 4, 4]
    assert x.tolist() == [2, 2, 2] and streamtensor.last_design().is_dir()


def test_a_written_input_may_not_share_memory():
    """Then the graph runs in PyTorch, which knows in which order elements are written."""
    call = torch.compile(lambda x, y: (x.mul_(2), x + y)[1], backend="streamtensor")
    base = torch.arange(8.0)
    with torch.no_grad():
        assert call(torch.ones(4), torch.ones(4)).tolist() == [3, 3, 3, 3]
        assert call(base[:4], base[2:6]).tolist() == [4, 8, 8, 11]
    assert base.tolist() == [0, 2, 4, 6, 4, 5, 6, 7]


def test_results_share_memory_as_those_of_pytorch():
    """A view of an input, two views of one new tensor, and a result with columns first."""

    def function(x):
        made = x + 1
        return x[1:], made[0], made.view(-1), (x * 2).T

    call, x = torch.compile(function, backend="streamtensor"), torch.arange(6.0).reshape(2, 3)
    with torch.no_grad():
        rest, row, flat, turned = call(x)
        rest.zero_()
        row.mul_(2)
    assert x.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert flat.tolist() == [2, 4, 6, 4, 5, 6]
    assert turned.stride() == (1, 3) and turned.tolist() == [[0, 6], [2, 8], [4, 10]]


def test_a_number_among_the_arguments_may_change():
    """Dynamo passes numbers that it has seen to change as tensors, which the graph reads."""
    torch._dynamo.reset()
    function = torch.compile(lambda x, scale: x * scale + scale, backend="streamtensor")
    for scale in (2, 2.5, 3.5):
        assert torch.equal(function(torch.ones(3), scale), torch.full((3,), 2.0 * scale))


def test_a_weight_that_is_written_unseen_is_read_again():
    """Through .data and through NumPy, which leave no trace in the tensor."""
    module, x = nn.Linear(2, 1, bias=False).requires_grad_(False), torch.ones(1, 2)
    module.weight.copy_(torch.tensor([[1.0, 2.0]]))
    call = torch.compile(module, backend="streamtensor")
    with torch.no_grad():
        assert call(x).item() == 3
        module.weight.data.mul_(2)
        assert call(x).item() == 6
        module.weight.numpy()[0, 0] = 10
        assert call(x).item() == 14


def test_running_statistics_are_kept_by_one_design():
    module, same = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    call, seen = torch.compile(module, backend="streamtensor"), set()
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 3)
            torch.testing.assert_close(call(x), same(x))
            seen.add(streamtensor.last_design())
    assert len(seen) == 1
    for name, value in same.named_buffers():
        torch.testing.assert_close(module.get_buffer(name), value)


def test_gradients_are_left_to_pytorch():
    module, x = perceptron(), torch.randn(2, 8)
    with pytest.warns(dynamo.FallbackWarning, match="gradients are wanted"):
        torch.compile(module, backend=streamtensor.backend)(x).sum().backward()
    assert module[0].weight.grad is not None
    torch._dynamo.reset()
    with pytest.raises(streamtensor.Error, match="no_grad"):
        compiled(module)(x)


def test_two_modules_of_one_class_keep_their_weights():
    first, second, x = nn.Linear(4, 3), nn.Linear(4, 3), torch.randn(2, 4)
    call = torch.compile(
        lambda module, x: module(x) + 1, backend=streamtensor.backend, options={"fallback": False}
    )
    with torch.no_grad():
        close(call(first, x), first(x) + 1)
        close(call(second, x), second(x) + 1)
        close(call(first, x), first(x) + 1)


def test_an_unknown_option_is_refused():
    with torch.no_grad(), pytest.raises(Exception, match="unknown option 'speed'"):
        compiled(perceptron(), speed=3)(torch.zeros(1, 8))


def test_the_entry_point_needs_no_import(tmp_path):
    """As pip writes it: the metadata of an installed package, made here from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "streamtensor-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = [
        line
        for group, items in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{k} = {v}" for k, v in items.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    script = (
        "import sys, torch\nmodel = torch.nn.Linear(4, 3)\nassert 'streamtensor' not in "
        "sys.modules\n"
        "fast = torch.compile(model, backend='streamtensor', options={'fallback': False})\nx "
        "= torch.randn(2, 4)\n"
        "with torch.no_grad():\n    print(float((fast(x) - model(x)).abs().max()) < 1e-5)"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT / "python")])
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr
    assert not files_left_in(temporary)
