"""Writes weight files (safetensors) one tensor at a time, and reads the tensors of a model from its
sources.
"""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from ..errors import Error
from . import checkpoint_names, pickled_weights, quantized_checkpoint

DTYPES = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_POINTER = b"version https://git-lfs.github.com/"


def write(
    path: Path,
    names: Iterable[str],
    like: dict[str, torch.Tensor],
    tensor: Callable[[str], torch.Tensor],
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Writes the tensors `names` as a safetensors file; only one of them is in memory at a time.

    like: a tensor of the right shape and type for each name, on any device. The file is written
    atomically.
    """
    header, at, names = {}, 0, list(names)
    for name in names:
        size = like[name].numel() * like[name].element_size()
        header[name] = {
            "dtype": DTYPES[like[name].dtype],
            "shape": list(like[name].shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                out.write(_bytes(name, tensor(name), like[name]))
                progress(header[name]["data_offsets"][1] / max(at, 1))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def checked(name: str, value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The value in the type of `like`; raises an error if shape, type or values are wrong."""
    if value.shape != like.shape:
        raise Error(
            f"the weight '{name}' has the shape {tuple(value.shape)}, but the model's is "
            f"{tuple(like.shape)}"
        )
    if like.is_floating_point() != (value.dtype in _FLOATS):
        raise Error(
            f"the weight '{name}' is stored as {str(value.dtype).removeprefix('torch.')}, "
            "which cannot be read as a number on its own",
            "accepted are f32, f16, bf16 and f64",
        )
    if value.is_floating_point() and not bool(torch.isfinite(value).all()):
        at = tuple(torch.nonzero(~torch.isfinite(value))[0].tolist())
        raise Error(
            f"the weight '{name}' has {float(value[at])} at {list(at)}",
            "accepted are finite numbers",
        )
    return value.detach().to(device="cpu", dtype=like.dtype)


def _bytes(name: str, value: torch.Tensor, like: torch.Tensor) -> memoryview:
    return memoryview(checked(name, value, like).contiguous().reshape(-1).view(torch.uint8).numpy())


class _Files:
    """The safetensors files of a folder, one or sharded, of which one tensor is read at a time."""

    def __init__(self, files: dict[str, Path]):
        """files: the one that has each tensor, by name."""
        self._files, self._open = files, {}

    def shapes(self) -> dict[str, list[int]]:
        return {name: self._slice(name).get_shape() for name in self._files}

    def metadata(self) -> dict[str, str]:
        """What the files say about their tensors."""
        found = {}
        for file in self._open.values():
            found.update(file.metadata() or {})
        return found

    def read(self, key: str) -> torch.Tensor:
        try:
            return self._slice(key)[:]
        except Exception as error:
            raise Error(f"{self._files[key]}: cannot read '{key}': {error}") from error

    def _slice(self, key: str):
        from safetensors import safe_open

        path = self._files[key]
        if path not in self._open:
            self._open[path] = safe_open(path, "pt")
        return self._open[path].get_slice(key)


class Checkpoint:
    """The tensors of a model that files have; they are read on demand."""

    def __init__(self, place: Path, stored, names, module: torch.nn.Module):
        """stored: the tensors of the files (`quantized_checkpoint.Stored` and what is like it).
        names: of which the module's are made (`checkpoint_names.Names` and what is like it).
        """
        self._place, self._stored, self._names = place, stored, names
        self._tie(module)

    @classmethod
    def from_folder(cls, folder: Path, module: torch.nn.Module) -> "Checkpoint | None":
        """module: whose tensors are wanted. Its tied tensors are parted if the checkpoint has both
        with different values, as transformers does.
        """
        index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
        try:
            files, config = _files(folder, single, index), _quantization_config(folder)
            opened = _Files(files) if files else _pickles(folder)
            if opened is None:
                return None
            stored = quantized_checkpoint.Stored(str(folder / "config.json"), config, opened)
            return cls(folder, stored, checkpoint_names.Names(module, stored.shapes), module)
        except Error:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Error(
                f"{index if index.is_file() else single}: not a weights file: {error}"
            ) from error
        except Exception as error:  # safetensors raises a type of its own
            raise _not_safetensors(single, error) from error

    @classmethod
    def from_gguf(cls, file, module: torch.nn.Module, config: dict) -> "Checkpoint":
        """file: an opened `gguf_file.File`. config: of the module."""
        return cls(file.path, file, file.names(module, config), module)

    def _tie(self, module: torch.nn.Module) -> None:
        for target, source in (getattr(module, "all_tied_weights_keys", None) or {}).items():
            if source not in self._names and target in self._names:
                self._names.alias(source, target)
            elif target not in self._names and source in self._names:
                self._names.alias(target, source)
            elif target in self._names and not torch.equal(
                self.tensor(target), self.tensor(source)
            ):
                parent, _, name = target.rpartition(".")
                owner = module.get_submodule(parent)
                like = torch.empty_like(getattr(owner, name))
                setattr(owner, name, torch.nn.Parameter(like, requires_grad=False))

    @property
    def method(self) -> str | None:
        """How its matrices are quantized; None: they are not."""
        return self._stored.method

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def tensor(self, name: str) -> torch.Tensor:
        if name not in self._names:
            held = self._stored.shapes
            raise Error(
                f"{self._place}: the checkpoint has no tensor '{name}'",
                f"it has {len(held)} tensors, the first is '{next(iter(held))}'"
                if held
                else "it has none",
            )
        return self._names.tensor(name, self._stored.tensor)

    def packed(self, name: str) -> quantized_checkpoint.Packed | None:
        """The tensor as it is quantized in the checkpoint; None: it is not, or made of several."""
        source = self._names.source(name)
        return source and self._stored.packed(source)


def _files(folder: Path, single: Path, index: Path) -> dict[str, Path] | None:
    """The safetensors file that has each tensor; None: the folder has none."""
    from safetensors import safe_open

    if single.is_file():
        with safe_open(single, "pt") as file:
            return dict.fromkeys(file.keys(), single)
    if index.is_file():
        shards = json.loads(index.read_text())["weight_map"]
        _check_shards(folder, index, shards)
        return {name: folder / file for name, file in shards.items()}
    return None


def _pickles(folder: Path) -> pickled_weights.Pickles | None:
    """The files of torch.save; None: the folder has none, or safetensors that are not read."""
    index, single = folder / "pytorch_model.bin.index.json", folder / "pytorch_model.bin"
    if any(folder.glob("*.safetensors")):
        return None
    if single.is_file():
        return pickled_weights.Pickles([single])
    if not index.is_file():
        return None
    shards = json.loads(index.read_text())["weight_map"]
    _check_places(folder, index, shards)
    return pickled_weights.Pickles([folder / file for file in sorted(set(shards.values()))])


def _quantization_config(folder: Path) -> dict | None:
    try:
        found = json.loads((folder / "config.json").read_text())
    except ValueError:
        return None
    texts = [found, *(value for value in found.values() if isinstance(value, dict))]
    return next(
        (each["quantization_config"] for each in texts if each.get("quantization_config")), None
    )


class UnreadableWeights:
    """Weights in a file format that is not read, which is an error and no reason for random
    ones.
    """

    method = None

    def __init__(self, path: Path):
        self._path = path

    @classmethod
    def from_folder(cls, folder: Path) -> "UnreadableWeights | None":
        kinds = ("*.safetensors", "*.bin", "*.pth")
        found = sorted(path for kind in kinds for path in folder.glob(kind))
        return cls(found[0]) if found else None

    def __contains__(self, name: str) -> bool:
        return False

    def tensor(self, name: str) -> torch.Tensor:
        raise Error(
            f"{self._path}: weights in this file are not read",
            "accepted are model.safetensors, pytorch_model.bin, shards that an index lists, and "
            "*.gguf",
        )


def _not_safetensors(path: Path, error: Exception) -> Error:
    with open(path, "rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            return Error(
                f"{path}: a pointer of Git LFS, not the weights",
                "`git lfs pull` in the model's folder brings them",
            )
    return Error(f"{path}: not a safetensors file: {error}")


def _check_places(folder: Path, index: Path, shards: dict[str, str]) -> None:
    """Checks that every shard is a file of the folder."""
    if (
        not shards
        or not isinstance(shards, dict)
        or not all(isinstance(file, str) for file in shards.values())
    ):
        raise Error(
            f"{index}: weight_map does not say which tensors are where",
            "accepted is the name of a file for each of them",
        )
    for file in sorted(set(shards.values())):
        path = folder / file
        if Path(file).is_absolute() or ".." in Path(file).parts:
            raise Error(
                f"{index}: the shard '{file}' is outside the folder",
                "accepted are files of the folder",
            )
        if not path.is_file():
            raise Error(
                f"{path}: the shard is missing",
                f"{index.name} places {list(shards.values()).count(file)} tensors in it",
            )


def _check_shards(folder: Path, index: Path, shards: dict[str, str]) -> None:
    """Checks that every shard exists and has the tensors that the index places in it."""
    from safetensors import safe_open

    _check_places(folder, index, shards)
    for file in sorted(set(shards.values())):
        path = folder / file
        try:
            with safe_open(path, "pt") as opened:
                held = set(opened.keys())
        except Exception as error:  # safetensors raises a type of its own
            raise _not_safetensors(path, error) from error
        lost = next(
            (name for name, place in shards.items() if place == file and name not in held), None
        )
        if lost:
            raise Error(
                f"{path}: the shard has no tensor '{lost}'", f"{index.name} places it there"
            )


def check_hashes(folder: Path) -> None:
    """Checks weight files against their SHA-256: the file name in the hub's cache, or a file
    SHA256SUMS in the folder.
    """
    listed, sums = {}, folder / "SHA256SUMS"
    if sums.is_file():
        listed = {
            words[1].lstrip("*"): words[0].lower()
            for line in sums.read_text(errors="replace").splitlines()
            if len(words := line.split()) == 2
        }
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        name = path.resolve().name if path.is_symlink() else ""
        expected = listed.get(path.name) or (name if re.fullmatch("[0-9a-f]{64}", name) else None)
        if expected is None:
            continue
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise Error(
                f"{path}: the file is damaged: its SHA-256 is {found[:16]}…, expected "
                f"{expected[:16]}…",
                "download it again",
            )


class RandomWeights:
    """Seeded random tensors: each depends on the seed, its name and its shape only.

    The deviations make greedy decoding visit different tokens instead of repeating one, which would
    hide errors: sharp attention, positions that outweigh the (often tied) embedding, small biases.
    """

    # Standard deviations; those of matrices and embeddings are divided by the square root of the
    # width.
    MATRIX, POSITION, EMBEDDING, NORM, BIAS = 2.0, 8.0, 1.0, 0.1, 0.02
    method = None

    def __init__(self, like: dict[str, torch.Tensor], seed: int):
        self._like, self._seed = like, seed

    def __contains__(self, name: str) -> bool:
        return False  # buffers have values of their own

    def tensor(self, name: str) -> torch.Tensor:
        shape = self._like[name].shape
        # manual_seed reads 32 bits
        generator = torch.Generator().manual_seed(zlib.crc32(f"{self._seed}:{name}".encode()))
        value = torch.randn(shape, generator=generator)
        if len(shape) < 2:
            return (
                value.mul_(self.NORM).add_(1) if name.endswith("weight") else value.mul_(self.BIAS)
            )
        return value.mul_(self._deviation(name, shape))

    def _deviation(self, name: str, shape: torch.Size) -> float:
        layer = name.split(".")[-2]
        embeddings = dict(wpe=self.POSITION, wte=self.EMBEDDING, embed_tokens=self.EMBEDDING)
        scale = embeddings.get(layer, self.MATRIX)
        # Module classes disagree on which extent is the fan-in, and that of an embedding is its
        # row: the smaller extent is a fair choice for all.
        return scale * min(shape[0], shape[1:].numel()) ** -0.5
