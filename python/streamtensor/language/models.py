"""Loads a model by name: a folder, the local Hugging Face cache, the hub (one short try), or a
built-in configuration.

Parameters stay on the meta device; `Model.tensor` reads or generates one at a time. Buffers, such
as rotary frequencies, are in no checkpoint and have values.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import quantize
from ..checkpoints import gguf_file, weights
from ..errors import Error
from ..images import image_models
from ..lowering import graph
from . import model_module
from .builtin_models import BUILT_IN, built_in
from .decoder_step import DecoderStep, StepShape

_FOLDER = "accepted are a folder with config.json and *.safetensors, and a .gguf file"
HUB_TIMEOUT_S = 5
HUB_FILES = ["*.json", "*.safetensors", "*.model", "*.txt"]


@dataclass
class Model:
    """A causal language model whose parameters have shapes but no values."""

    name: str
    config: object
    module: torch.nn.Module
    source: object  # has tensor(name): a Checkpoint or RandomWeights
    folder: Path | None  # folder with its files
    notice: str | None  # message about its weights
    vocabulary: str | None = None  # name of a GGUF file that has one

    def packed(self, name: str):
        """The tensor as it is quantized in the checkpoint (`Packed`); None: it is not."""
        return self.source.packed(name) if self.source.method else None

    def needs_zeros(self, scheme: quantize.Scheme) -> bool:
        """Whether some matrix of its files has the form of the scheme with zero points alone."""
        if not self.quantization() or not scheme.has_weights or scheme.zeros:
            return False
        top = quantize.head(self.module)
        for name, layer in quantize.contractions(self.module).items():
            bits, packed = scheme.bits_of(name, layer is top), self.packed(name)
            if not packed or not bits or packed.weight(bits, scheme.group):
                continue
            if packed.weight(bits, scheme.group, True):
                return True
        return False

    def quantization(self) -> str | None:
        """How the weights of its files are quantized; None: they are not."""
        return self.source.method

    def tensors(self) -> dict[str, torch.Tensor]:
        return graph.named_tensors(self.module)

    def tensor(self, name: str) -> torch.Tensor:
        value = self.tensors()[name]
        return self.source.tensor(name) if value.is_meta or name in self.source else value

    def lower(self, shape: StepShape, attributes: bool = True) -> graph.Lowered:
        """One step as MLIR."""
        step = DecoderStep(self.module, shape)
        meta = {f"model.{name}": value.to("meta") for name, value in self.tensors().items()}
        return graph.lower(
            step,
            shape.inputs(),
            shape.input_ports(),
            meta,
            shape.result_ports(),
            attributes,
            "model.",
        )

    def write_weights(self, path: Path, names: list[str], progress=lambda _: None) -> None:
        if self.folder:
            weights.check_hashes(self.folder)
        tensors = self.tensors()
        weights.write(path, names, tensors, self.tensor, progress)

    def with_values(self) -> torch.nn.Module:
        """The module with the values of its parameters; tied ones stay tied."""
        if self.folder:
            weights.check_hashes(self.folder)
        values = {
            id(value): torch.nn.Parameter(
                weights.checked(name, self.source.tensor(name), value), requires_grad=False
            )
            for name, value in self.module.named_parameters()
        }
        for module in self.module.modules():
            for name, value in list(module._parameters.items()):
                if value is not None and value.is_meta:
                    module._parameters[name] = values[id(value)]
        return self.module

    def end_tokens(self) -> set[int]:
        """The ids that end an answer: of the generation configuration, else of the model."""
        end = getattr(self.config, "eos_token_id", None)
        path = self.folder and self.folder / "generation_config.json"
        if path and path.is_file():
            try:
                end = json.loads(path.read_text()).get("eos_token_id", end)
            except (ValueError, AttributeError) as error:
                raise Error(f"{path}: not a generation configuration: {error}") from error
        end = [] if end is None else end
        ids = list(end) if isinstance(end, (list, tuple)) else [end]
        if not all(isinstance(token, int) for token in ids):
            raise Error(
                f"{path}: eos_token_id {json.dumps(end)} is no token",
                "accepted are an id and a list of ids",
            )
        return set(ids)

    def tokenizer(self):
        """The tokenizer of the model; None if it has no tokenizer files."""
        from transformers import AutoTokenizer

        files = ("tokenizer.json", "tokenizer.model", "vocab.json")
        other = {}
        if not self.folder or not any((self.folder / file).is_file() for file in files):
            if self.vocabulary is None:
                return None
            other = {"gguf_file": self.vocabulary}
        try:
            return AutoTokenizer.from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=False, **other
            )
        except Exception as error:
            raise Error(
                f"{self.folder}: the tokenizer cannot be read: {graph.told(error)}"
            ) from error


def load(name: str, seed: int = 0, search: bool = True) -> Model:
    """search=False: the built-in configuration `name` with random weights, without looking for
    files.
    """
    place = _find(name) if search else None
    file = gguf_file.find(place) if place else None
    file, folder = (gguf_file.File(file), file.parent) if file else (None, place)
    config = _config(name, folder, file)
    module = model_module.build(name, config)
    _check_causal(name, module)
    source, notice = _source(name, folder, file, module, seed)
    words = file.path.name if file and file.entry("tokenizer.ggml.tokens") else None
    return Model(name, config, module, source, folder, notice, words)


def _source(name: str, folder: Path | None, file, module, seed: int):
    """Where the module's values come from, and a message about that."""
    if file:
        if not _configured(folder):
            file.divide_frequencies(module)
        source = weights.Checkpoint.from_gguf(file, module, module.config.to_dict())
        told = f"{file.path.name}: weights of the method {source.method} are read"
        return source, told if source.method else None
    source = weights.Checkpoint.from_folder(folder, module) if folder else None
    if source:
        told = f"quantization_config: weights of the method {source.method} are read"
        return source, told if source.method else None
    if unread := folder and weights.UnreadableWeights.from_folder(folder):
        return unread, None
    tensors = graph.named_tensors(module)
    told = f"no weights found for {name}: using random ones (seed {seed})"
    return weights.RandomWeights(tensors, seed), told


def _configured(folder: Path | None) -> bool:
    return folder is not None and (folder / "config.json").is_file()


def _find(name: str) -> Path | None:
    """The folder or the GGUF file of the model; None for a built-in configuration."""
    path = Path(name)
    if path.is_file():
        if path.suffix == ".gguf":
            return path
        raise Error(f"{path}: neither a folder nor a .gguf file", _FOLDER)
    if path.is_dir():
        if not _configured(path) and not gguf_file.find(path):
            raise Error(f"{path}: the folder has no config.json", _FOLDER)
        return path
    cached = _from_cache(name)
    if cached and _has_weights(cached):
        return cached
    folder = _from_hub(name) or cached
    if folder or built_in(name):
        return folder
    raise Error(
        f"unknown model '{name}': no such folder, not in the local cache, not found on the hub",
        "accepted are a folder with config.json and *.safetensors, a Hugging Face name, "
        f"{', '.join(BUILT_IN)}; image networks: {', '.join(image_models.known_names())}",
    )


def _has_weights(folder: Path) -> bool:
    return any(folder.glob("*.safetensors"))


def _from_cache(name: str) -> Path | None:
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except Exception:  # not a repository name, or not cached
        return None
    return folder if (folder / "config.json").is_file() else None


def _from_hub(name: str) -> Path | None:
    from huggingface_hub import HfApi, constants, snapshot_download

    if constants.HF_HUB_OFFLINE:
        return None
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
        return Path(snapshot_download(name, allow_patterns=HUB_FILES, etag_timeout=HUB_TIMEOUT_S))
    except Exception:  # unreachable, unknown or private: the caller reports it
        return None


def _config(name: str, folder: Path | None, file):
    """file: an opened GGUF file, whose entries stand for a configuration where there is none."""
    from transformers import AutoConfig

    place = folder / "config.json" if folder else name
    try:
        if _configured(folder):
            _refuse_code(place)
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        elif file:
            place = file.path
            config = AutoConfig.for_model(**file.config())
        else:
            config = AutoConfig.for_model(**built_in(name))
        config = config.get_text_config(decoder=True)
        _check_extents(place, config)
    except Error:
        raise
    except Exception as error:
        raise Error(f"{place}: not a model configuration: {graph.told(error)}") from error
    return config


def _refuse_code(place: Path) -> None:
    """Rejects a model whose classes are Python files of its folder: they could do anything."""
    from transformers import CONFIG_MAPPING

    entries = json.loads(place.read_text())
    if entries.get("auto_map") and entries.get("model_type") not in CONFIG_MAPPING:
        files = {str(name).rsplit(".", 1)[0] for name in entries["auto_map"].values()}
        raise Error(
            f"{place}: a model of type '{entries.get('model_type')}' runs code of its folder "
            f"({', '.join(sorted(f'{file}.py' for file in files))}), which is never done",
            "accepted are the types that transformers has itself",
        )


CONFIG_MINIMUMS = {
    name: 1
    for name in (
        "num_hidden_layers",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
    )
}
CONFIG_MINIMUMS["max_position_embeddings"] = 2  # a prompt and an answer


def _numbers(entries: dict):
    """All numbers of nested dictionaries, with their names."""
    for name, value in entries.items():
        if isinstance(value, dict):
            yield from _numbers(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield name, value


def _check_extents(place, config) -> None:
    """Rejects configurations of which transformers builds a model that cannot run."""
    for name, least in CONFIG_MINIMUMS.items():
        value = model_module.entry(config, name)
        if isinstance(value, int) and value < least:
            raise Error(f"{place}: {name} is {value}", f"accepted is {least} or more")
    for name, value in _numbers(config.to_dict()):
        if not math.isfinite(value):
            raise Error(f"{place}: {name} is {value}", "accepted are finite numbers")
        if name.endswith("theta") and value <= 0:
            raise Error(f"{place}: {name} is {value}", "accepted is a number above 0")
    heads, groups = (
        model_module.entry(config, name) for name in ("num_attention_heads", "num_key_value_heads")
    )
    if heads and groups and heads % groups:
        raise Error(
            f"{place}: num_attention_heads is {heads}, no multiple of num_key_value_heads, {groups}"
        )


def _check_causal(name: str, module: torch.nn.Module) -> None:
    """Rejects encoders, of which transformers also makes language models: their tokens depend on
    later ones.
    """
    kinds = {getattr(part, "is_causal", None) for part in module.modules()}
    if False in kinds and True not in kinds:
        raise Error(
            f"{name}: a model of type '{module.config.model_type}' is not causal: tokens "
            "depend on later ones, so it cannot generate text",
            'accepted are decoders; "is_decoder": true in config.json makes one of BERT and '
            "its like",
        )
