"""Builds the module of a language model from its configuration, without memory for parameters."""

import contextlib

import torch

from . import graph
from .errors import Error


def build(name: str, config) -> torch.nn.Module:
    """The module; its parameters are on the meta device, its buffers have values."""
    from transformers import AutoModelForCausalLM

    try:
        with _meta_parameters():
            return AutoModelForCausalLM.from_config(
                config, dtype=torch.float32, attn_implementation="eager"
            ).eval()
    except Exception as error:
        raise Error(
            f"{name}: a model of type '{config.model_type}' is not a causal language model "
            "that can be built: "
            f"{graph.first_line(error)}"
        ) from error


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
