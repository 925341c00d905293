"""Weights as torchao stores them: in safetensors with metadata, and in modules after `quantize_`.

The classes here have the names and the parts of torchao's, which need not be installed.
"""

import itertools
import json
import os
import sys
import types

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_quantized_checkpoint import CONFIG, kept
from torch import nn

import streamtensor
from streamtensor.checkpoints import torchao_weights
from streamtensor.errors import Error
from streamtensor.language import models

GROUP = 32


def nibbles(q: torch.Tensor) -> torch.Tensor:
    """Bytes of two numbers, the first one lower."""
    return (q[:, ::2] & 15) | (q[:, 1::2] << 4)


def int4(shape, generator):
    q = torch.randint(-8, 8, shape, generator=generator).to(torch.int8)
    groups = shape[0], shape[1] // GROUP
    scale = (torch.rand(groups, generator=generator) * 0.1 + 0.01).bfloat16()
    zero = torch.randn(groups, generator=generator).bfloat16()
    meant = q * scale.float().repeat_interleave(GROUP, 1) + zero.float().repeat_interleave(GROUP, 1)
    return dict(qdata=nibbles(q), scale=scale.T, zero_point=zero.T), meant


def intx(shape, generator, symmetric=True):
    q = torch.randint(-8, 8, shape, generator=generator).to(torch.int8)
    groups = shape[0], shape[1] // GROUP
    scale = (torch.rand(groups, generator=generator) * 0.5 + 0.01).half().float()
    zero = torch.zeros(groups) if symmetric else torch.randint(-8, 8, groups, generator=generator)
    meant = (q - zero.repeat_interleave(GROUP, 1)) * scale.repeat_interleave(GROUP, 1)
    return dict(qdata=q, scale=scale, zero_point=zero.to(torch.int8)), meant


def int8(shape, generator):
    q = torch.randint(-128, 128, shape, generator=generator).to(torch.int8)
    scale = (torch.rand((shape[0], 1), generator=generator) + 0.01).half().float()
    return dict(qdata=q, scale=scale), q * scale


KINDS = {
    "Int4Tensor": (int4, "w4a8,group=32", False),
    "IntxUnpackedToInt8Tensor": (intx, "w4a8,group=32", True),
    "Int8Tensor": (int8, "w8a8,group=row", True),
}


def write(folder, kind, make) -> dict[str, torch.Tensor]:
    """A folder as transformers saves it; gives the matrices that it means."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(**CONFIG)).save_pretrained(folder)
    generator, tensors, meant, says = torch.Generator().manual_seed(1), {}, {}, {}
    for name, value in load_file(folder / "model.safetensors").items():
        says[name] = json.dumps({"_type": "Tensor"})
        if not name.endswith("proj.weight"):
            tensors[name] = value
            continue
        parts, meant[name] = make(value.shape, generator)
        says[name] = json.dumps({"_type": kind, "_data": {}, "_tensor_data_names": list(parts)})
        for part, each in parts.items():
            tensors[f"{name.removesuffix('weight')}_weight_{part}"] = each.contiguous()
    says["tensor_names"] = json.dumps(list(says))
    save_file(tensors, folder / "model.safetensors", {"format": "pt", **says})
    path = folder / "config.json"
    config = dict(quant_method="torchao", quant_type={"default": {"_type": "Int4WeightOnlyConfig"}})
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": config}))
    return meant


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_means_its_numbers_and_keeps_its_integers(kind, tmp_path):
    make, scheme, has_form = KINDS[kind]
    meant = write(tmp_path, kind, make)
    model = models.load(str(tmp_path))
    assert len(meant) == 7 and "torchao" in model.notice
    for name, value in meant.items():
        assert torch.equal(model.tensor(name), value), name
    found, report = kept(model, scheme)
    if not has_form:
        assert report.startswith("0 quantized matrices") and "(Int4Tensor)" in report
        return
    assert report == "7 quantized matrices keep their integers and scales"
    assert all(torch.equal(found[name].value(), value) for name, value in meant.items())


def test_scales_of_f32_are_rounded_to_f16(tmp_path):
    def make(shape, generator):
        parts, meant = int8(shape, generator)
        return {**parts, "scale": parts["scale"] / 3}, meant / 3

    meant = write(tmp_path, "Int8Tensor", make)
    found, report = kept(models.load(str(tmp_path)), "w8a8,group=row")
    assert report == "7 quantized matrices keep their integers and scales, of 7 in f16"
    for name, value in meant.items():
        assert torch.allclose(found[name].value(), value, rtol=2.0**-11, atol=0)


def test_other_classes_are_refused_by_name(tmp_path):
    write(tmp_path, "Int4OpaqueTensor", int8)
    with pytest.raises(Error, match="torchao's Int4OpaqueTensor is not read"):
        models.load(str(tmp_path))


def tiles(shape, generator):
    """Int4TilePackedTo4dTensor, by the loops of the kernel that packs it."""
    outputs, inputs = shape
    padded = torch.zeros(-(-outputs // 8) * 8, -(-inputs // 128) * 128, dtype=torch.int64)
    padded[:outputs, :inputs] = torch.randint(0, 16, shape, generator=generator)
    q = torch.zeros(padded.shape[0] // 8, padded.shape[1] // 128, 32, 4, dtype=torch.int64)
    for n, k, t, word in itertools.product(*map(range, q.shape)):
        first = k * 128 + word * 32 + t % 4 * 2
        row = padded[n * 8 + t // 4]
        for at, inner in enumerate((0, 8, 16, 24)):
            q[n, k, t, word] |= row[first + inner] << 4 * at
            q[n, k, t, word] |= row[first + inner + 1] << 4 * at + 16
    groups = padded.shape[0], padded.shape[1] // GROUP
    scale = (torch.rand(groups, generator=generator) * 0.1 + 0.01).bfloat16()
    zero = torch.randn(groups, generator=generator).bfloat16()
    each = [part.float().repeat_interleave(GROUP, 1) for part in (scale, zero)]
    meant = (padded - 8) * each[0] + each[1]
    q = torch.where(q < 2**31, q, q - 2**32).int()
    both = torch.stack([scale, zero], -1).transpose(0, 1)
    return dict(qdata=q, scale_and_zero=both), meant[:outputs, :inputs]


@pytest.mark.parametrize("kind", [*KINDS, "Int4TilePackedTo4dTensor"])
def test_a_file_of_torch_save_means_its_numbers(kind, tmp_path, monkeypatch):
    """Classes of torchao exist while the file is written, not where it is read."""
    make = KINDS[kind][0] if kind in KINDS else tiles
    meant, values = write(tmp_path, kind, int8), load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    values = {name: value for name, value in values.items() if "._weight_" not in name}
    generator = torch.Generator().manual_seed(1)
    for name, value in list(meant.items()):
        parts, meant[name] = make(value.shape, generator)
        values[name] = weight_of(kind, parts, value.shape).data
        for module in ("torchao", "torchao.quantization"):
            monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
        setattr(sys.modules["torchao.quantization"], kind, type(values[name]))
        torch.save({name: values[name]}, tmp_path / f"{name}.bin")
    for name in set(values) - set(meant):
        torch.save({name: values[name]}, tmp_path / f"{name}.bin")
    places = {"weight_map": {name: f"{name}.bin" for name in values}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(places))
    monkeypatch.undo()
    model = models.load(str(tmp_path))
    assert "torchao" in model.notice
    for name in values:
        found = model.tensor(name)
        assert torch.equal(found, meant[name] if name in meant else values[name]), name


class Call:
    """What a pickle may hold that is no tensor."""

    def __reduce__(self):
        return os.mkdir, ("called",)


def test_a_pickle_calls_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "Int8Tensor", int8)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"a": torch.ones(2), "b": Call()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(Error, match="holds objects of 'posix.mkdir', which could do anything"):
        models.load(str(tmp_path))
    assert not (tmp_path / "called").exists()


def weight_of(kind: str, parts: dict, shape) -> nn.Parameter:
    """A parameter of a class that is called as torchao's."""

    def make(cls):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    def dispatch(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return args[0]
        raise AssertionError(f"{func} of a packed weight")

    made = type(
        kind, (torch.Tensor,), {"__new__": make, "__torch_dispatch__": classmethod(dispatch)}
    )
    made.__module__ = "torchao.quantization"
    value = made()
    for name, part in parts.items():
        setattr(value, name, part)
    return nn.Parameter(value, requires_grad=False)


def module_of(kind, make, symmetric=True):
    """A module after `quantize_`, and the same with plain weights."""
    torch.manual_seed(3)
    plain = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
    packed = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
    generator = torch.Generator().manual_seed(4)
    for at in (0, 2):
        shape = plain[at].weight.shape
        parts, meant = make(shape, generator)
        plain[at].weight = nn.Parameter(meant, requires_grad=False)
        packed[at].weight = weight_of(kind, parts, shape)
        packed[at].bias = plain[at].bias
    return packed.eval(), plain.eval()


def test_a_module_is_computed_with_its_own_integers():
    make, scheme, _ = KINDS["IntxUnpackedToInt8Tensor"]
    packed, plain = module_of("IntxUnpackedToInt8Tensor", make)
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(5))
    with torch.no_grad(), streamtensor.compile(packed, (x,)) as design:
        assert torch.allclose(design(x), plain(x), rtol=1e-5, atol=1e-5)
    again, found = torchao_weights.opened(packed)
    tensors = torchao_weights.integers(again, found, scheme)
    assert sorted(tensors) == ["0.weight.q", "0.weight.scale", "2.weight", "2.weight.q"] + [
        "2.weight.scale"
    ]
    exact = streamtensor.quantize.quantized_copy(
        plain,
        streamtensor.quantize.Scheme.parse(scheme),
        {name: found[name].weight(4, GROUP) for name in found},
    )
    with torch.no_grad(), streamtensor.compile(packed, (x,), quant=scheme) as design:
        assert torch.allclose(design(x), exact(x), rtol=1e-6, atol=1e-6)


def test_a_module_that_is_rounded_again_says_so():
    packed, _ = module_of("Int4Tensor", int4)
    again, found = torchao_weights.opened(packed)
    with pytest.warns(UserWarning, match="2 are rounded again, the first is '0.weight'"):
        torchao_weights.integers(again, found, "w4a8,group=32")
    assert torchao_weights.opened(again) == (again, {})
    with pytest.raises(Error, match="'0.weight' is torchao's Int4OpaqueTensor"):
        torchao_weights.opened(module_of("Int4OpaqueTensor", int4)[0])
