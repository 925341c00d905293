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
    """The tokens of the longest text that rotary frequencies of a short one are for."""
    limit = position_limit(config)
    lengths = [parameters["original_max_position_embeddings"] for _, parameters in _long(config)]
    return min(lengths, default=limit)


def set_frequencies(module: torch.nn.Module, context: int) -> None:
    """Gives `longrope` the frequencies of a text that fills the context. transformers takes them
    anew for every text.
    """
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for kind, _ in _long(getattr(module, "config", None)):
        of_kind = dict(layer_type=kind) if kind else {}
        for part in module.modules():
            name = f"{kind}_inv_freq" if kind else "inv_freq"
            if name in part._buffers:
                part._buffers[name], _ = ROPE_INIT_FUNCTIONS["longrope"](
                    module.config, torch.device("cpu"), seq_len=context, **of_kind
                )


def frequencies_note(config, context: int) -> str | None:
    """What is to be said about frequencies in this context."""
    limit = context_limit(config)
    if not limit or context <= limit:
        return None
    return (
        f"rope_type 'longrope': the context has more than {limit} tokens, so every text is turned "
        "by the frequencies of a long one"
    )


def _long(config) -> list[tuple[str | None, dict]]:
    """The parameters of `longrope`, with the layers that they are of where these differ."""
    parameters = entry(config, "rope_parameters") or {}
    kinds = [(kind, each) for kind, each in parameters.items() if isinstance(each, dict)]
    return [
        (kind, each)
        for kind, each in (*kinds, (None, parameters))
        if each.get("rope_type") == "longrope" and each.get("original_max_position_embeddings")
    ]


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
