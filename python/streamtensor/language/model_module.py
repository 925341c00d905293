"""Builds the module of a language model from its configuration, without memory for parameters."""

import contextlib

import torch

from ..errors import Error
from ..lowering import graph


def build(name: str, config) -> torch.nn.Module:
    """The module; its parameters are on the meta device, its buffers have values."""
    from transformers import AutoModelForCausalLM

    try:
        with _meta_parameters():
            module = AutoModelForCausalLM.from_config(
                config,
                dtype=torch.float32,
                attn_implementation="eager",
                experts_implementation="batched_mm",  # reads the chosen experts only
            ).eval()
    except Exception as error:
        raise Error(
            f"{name}: a model of type '{config.model_type}' is not a causal language model "
            "that can be built: "
            f"{graph.told(error)}"
        ) from error
    _keep_frequencies(module)
    return module


def _keep_frequencies(module: torch.nn.Module) -> None:
    """Rotary frequencies that change with the length of a text stay those of a short one."""
    for part in module.modules():
        kinds = getattr(part, "rope_type", None)
        if isinstance(kinds, dict):
            part.rope_type = {layers: _kept(kind) for layers, kind in kinds.items()}
        elif isinstance(kinds, str):
            part.rope_type = _kept(kinds)


def _kept(kind: str) -> str:
    return "default" if "dynamic" in kind or kind == "longrope" else kind


def entry(config, name: str):
    """An entry of a configuration; None where it has none, or one for each layer."""
    try:
        return getattr(config, name, None)
    except RuntimeError:  # transformers' answer for an entry that differs from layer to layer
        return None


def position_limit(config) -> int | None:
    """The tokens of the longest text; None: the model does not say."""
    names = ("max_position_embeddings", "max_seq_len")
    return next(filter(None, (entry(config, name) for name in names)), None)


def context_limit(config) -> int | None:
    """The tokens of the longest text that is compiled."""
    limit = position_limit(config)
    return min((most for _, most in _changing_frequencies(config)), default=limit)


def check_frequencies(config, context: int) -> None:
    """Rejects a context in which the rotary frequencies change with the length of the text."""
    for kind, most in _changing_frequencies(config):
        if context > most:
            raise Error(
                f"rope_type '{kind}' turns keys by other frequencies once a text has more than "
                f"{most} tokens, and the context has {context}",
                f"accepted is --context {most} or less",
            )


def _changing_frequencies(config) -> list[tuple[str, int]]:
    """Kinds of rotary frequencies that change, and the tokens up to which they do not."""
    return list(_changing(entry(config, "rope_parameters") or {}, position_limit(config)))


def _changing(parameters: dict, limit: int | None):
    for value in parameters.values():
        if isinstance(value, dict):
            yield from _changing(value, limit)
    kind = parameters.get("rope_type")
    most = limit
    if kind == "longrope":
        most = parameters.get("original_max_position_embeddings") or limit
    if isinstance(kind, str) and _kept(kind) != kind and most:
        yield kind, most


@contextlib.contextmanager
def _meta_parameters():
    """While active, every new parameter goes to the meta device; buffers keep their values."""
    register = torch.nn.Module.register_parameter

    def register_meta(module, name, parameter):
        if parameter is not None and not parameter.is_meta:
            parameter = torch.nn.Parameter(
                parameter.to("meta"), requires_grad=parameter.requires_grad
            )
        register(module, name, parameter)

    torch.nn.Module.register_parameter = register_meta
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register
