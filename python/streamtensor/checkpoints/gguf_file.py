"""Weights of a GGUF file, by the package `gguf` and transformers' tables of names and entries.

Blocks of Q4_0 and Q8_0 are 32 integers with a scale; other types are read as numbers.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ..errors import Error
from .quantized_checkpoint import Packed

_BLOCK = 32
_FLOATS = ("F32", "F16", "BF16", "F64")
_SINGLE = "accepted is one file that has all tensors"
_BESIDE = "accepted is the model's config.json beside the file"
# entries that say nothing about numbers, or what the shapes of the tensors say as well
_HARMLESS = {"vocab_size", "rope.scaling.finetuned"}
_WIDTHS = {"attention.key_length", "attention.value_length", "rope.dimension_count"}
FREQUENCIES = "rope_freqs.weight"  # by which rotary frequencies are divided


def find(place: Path) -> Path | None:
    """The file if `place` is one, or a folder that has no other weights; None: neither."""
    if place.is_file():
        return place if place.suffix == ".gguf" else None
    found = sorted(place.glob("*.gguf"))
    if not found or any(place.glob("*.safetensors")):
        return None
    if len(found) > 1:
        raise Error(
            f"{place}: {len(found)} GGUF files, the first is {found[0].name}",
            "accepted is the path of one of them",
        )
    return found[0]


class File:
    """An opened file: its entries, and its tensors as a checkpoint stores them."""

    def __init__(self, path: Path):
        self.path = path
        self._reader = _opened(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.shapes = {
            name: [int(extent) for extent in reversed(tensor.shape)]
            for name, tensor in self._tensors.items()
        }
        kinds = {tensor.tensor_type.name for tensor in self._tensors.values()}
        quantized = ", ".join(sorted(kinds.difference(_FLOATS)))
        self.method = f"gguf ({quantized})" if quantized else None
        self._architecture = self.entry("general.architecture")
        self._processor = None
        if (self.entry("split.count") or 1) > 1:
            raise Error(f"{path}: one of {self.entry('split.count')} parts of a model", _SINGLE)

    def entry(self, key: str):
        """The value of an entry; None: there is none."""
        field = self._reader.fields.get(key)
        return field.contents() if field else None

    def config(self) -> dict:
        """The entries as a configuration of transformers; what its tables do not know is an error,
        because the numbers would be others.
        """
        from transformers import modeling_gguf_pytorch_utils as tables

        try:
            found = tables.load_gguf_checkpoint(str(self.path))["config"]
        except Exception as error:
            raise Error(
                f"{self.path}: a model of the architecture '{self._architecture}' is not read from "
                "its entries",
                _BESIDE,
            ) from error
        if not isinstance(found.get("eos_token_id"), list):
            found.update(self._special_tokens())
        self._check_entries(found, tables.GGUF_TO_TRANSFORMERS_MAPPING["config"])
        if kind := self.entry(f"{self._architecture}.rope.scaling.type"):
            found.update(self._scaled_positions(kind, found.get("rope_theta")))
        return found

    def _special_tokens(self) -> dict:
        """Those that the file says: a configuration's own are those of another model."""
        start = "tokenizer.ggml."
        ends = {self.entry(f"{start}{name}_token_id") for name in ("eos", "eot")} - {None}
        return {
            "bos_token_id": self.entry(f"{start}bos_token_id"),
            "eos_token_id": sorted(ends) or None,
            "pad_token_id": self.entry(f"{start}padding_token_id"),
        }

    def _check_entries(self, config: dict, tables: dict[str, dict]) -> None:
        start = f"{self._architecture}."
        table = tables.get(config["model_type"]) or tables.get(self._architecture) or {}
        known = _HARMLESS.union(name for name, place in table.items() if place not in (None, -1))
        for key in self._reader.fields:
            name = key.removeprefix(start)
            if not key.startswith(start) or name in known:
                continue
            same = name in _WIDTHS and self.entry(key) == _width(config, name)
            if not same and not name.startswith("rope.scaling."):
                raise Error(f"{self.path}: the entry '{key}' is not read", _BESIDE)
        for name in self.shapes:
            if name.startswith("rope_factors"):
                raise Error(f"{self.path}: the tensor '{name}' is not read", _BESIDE)

    def _scaled_positions(self, kind: str, theta) -> dict:
        start = f"{self._architecture}.rope.scaling."
        factor, length = self.entry(f"{start}factor"), self.entry(f"{start}original_context_length")
        others = {"type", "factor", "original_context_length", "finetuned"}
        keys = {key.removeprefix(start) for key in self._reader.fields if key.startswith(start)}
        if kind == "none":
            return {}
        if kind not in ("linear", "yarn") or not factor or keys - others:
            raise Error(f"{self.path}: rotary positions scaled by '{kind}' are not read", _BESIDE)
        found = dict(rope_type=kind, factor=factor, rope_theta=theta or 10000.0)
        if kind == "yarn" and length:
            found["original_max_position_embeddings"] = length
        return {"rope_parameters": found}

    def names(self, module: torch.nn.Module, config: dict) -> "Names":
        """Where the tensors of the module are. config: for transformers' tables, which reorder
        rows.
        """
        from transformers import modeling_gguf_pytorch_utils as tables

        kind = tables.TENSOR_PROCESSORS.get(self._architecture, tables.TensorProcessor)
        self._processor = kind(config=config)
        try:
            found = tables.get_gguf_hf_weights_map(module, self._processor)
        except Exception as error:
            raise Error(
                f"{self.path}: a model of the architecture '{self._architecture}' has no table of "
                "names",
                "accepted are those that transformers reads from GGUF files",
            ) from error
        for name, shape in self.shapes.items():
            if name in found and len(shape) > 2:
                raise Error(f"{self.path}: the tensor '{name}' holds experts", "which are not read")
            if name not in found and name != FREQUENCIES:
                raise Error(f"{self.path}: the tensor '{name}' has no place in the model")
        return Names({found[name]: name for name in self.shapes if name in found})

    def divide_frequencies(self, module: torch.nn.Module) -> None:
        """Rotary frequencies of a configuration that is of this file."""
        if FREQUENCIES not in self._tensors:
            return
        factors = torch.from_numpy(np.array(self._value(FREQUENCIES)))
        for part in module.modules():
            for name, value in list(part.named_buffers(recurse=False)):
                if name.endswith("inv_freq"):
                    setattr(part, name, value / factors)

    def tensor(self, name: str) -> torch.Tensor:
        value = self._processor.process(self._value(name), name).weights
        return torch.from_numpy(np.array(value, dtype=np.float32))

    def packed(self, name: str) -> Packed | None:
        """None: the tensor is stored as floats."""
        tensor, shape = self._tensors[name], self.shapes[name]
        kind = tensor.tensor_type.name
        if kind in _FLOATS or len(shape) != 2:
            return None
        rows = self._rows(name, shape)
        if rows is None or kind not in ("Q4_0", "Q8_0"):
            value = self.tensor(name)
            one = torch.ones(value.shape[0], 1)
            return Packed(value, one, None, torch.zeros(value.shape[1], dtype=torch.long), kind)
        blocks = np.array(tensor.data).reshape(shape[0], shape[1] // _BLOCK, -1)
        scale = torch.from_numpy(blocks[..., :2].copy().view(np.float16)[..., 0])
        if kind == "Q8_0":
            q = torch.from_numpy(blocks[..., 2:].copy().view(np.int8))
        else:  # the lower halves of the bytes are the first numbers
            words = torch.from_numpy(blocks[..., 2:].copy())
            q = torch.cat([words & 15, words >> 4], -1).to(torch.int8) - 8
        group = torch.arange(shape[1]) // _BLOCK
        return Packed(q.flatten(1)[rows], scale[rows], None, group, kind)

    def _rows(self, name: str, shape: list[int]) -> torch.Tensor | None:
        """Which row of the file each row of the matrix is; None: it is made otherwise."""
        numbers = np.broadcast_to(np.arange(shape[0], dtype=np.int32)[:, None], shape)
        found = self._processor.process(numbers, name).weights
        if found is numbers:
            return torch.arange(shape[0])
        if list(found.shape) != shape or (found != found[:, :1]).any():
            return None
        return torch.from_numpy(found[:, 0].astype(np.int64))

    def _value(self, name: str) -> np.ndarray:
        from gguf import dequantize

        tensor = self._tensors[name]
        try:
            return dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise Error(
                f"{self.path}: the tensor '{name}' is of the type {tensor.tensor_type.name}, which "
                "is not read",
                "accepted are types that the package gguf can dequantize",
            ) from error


def _width(config: dict, name: str) -> int:
    """The elements of a head, or those of them that turn with the position."""
    from transformers import AutoConfig

    made = AutoConfig.for_model(**config)
    width = getattr(made, "head_dim", None) or made.hidden_size // made.num_attention_heads
    turned = getattr(made, "rope_parameters", None) or {}
    factor = turned.get("partial_rotary_factor") or 1.0
    return int(width * factor) if name.startswith("rope.") else width


class Names:
    """Of each tensor of a model: its name in the file."""

    def __init__(self, sources: dict[str, str]):
        self._sources = sources

    def __contains__(self, target: str) -> bool:
        return target in self._sources

    def alias(self, target: str, source: str) -> None:
        self._sources[target] = self._sources[source]

    def source(self, target: str) -> str | None:
        return self._sources.get(target)

    def tensor(self, target: str, read: Callable[[str], torch.Tensor]) -> torch.Tensor:
        return read(self._sources[target])


def _opened(path: Path):
    try:
        from gguf import GGUFReader
    except ImportError:
        raise Error(
            f"{path}: GGUF files are read by the package gguf, which is not installed",
            "`pip install gguf` installs it",
        ) from None
    try:
        return GGUFReader(path)
    except Exception as error:  # it raises what NumPy does
        raise Error(
            f"{path}: not a GGUF file that can be read", "accepted is a whole file of version 2, 3"
        ) from error
