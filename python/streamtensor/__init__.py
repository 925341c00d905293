"""StreamTensor: compiles PyTorch models into stream dataflow accelerators."""

from typing import TYPE_CHECKING

from .errors import Error

if TYPE_CHECKING:  # else they are imported on first use
    from .api import Exported, compile, export
    from .design import Design, load
    from .dynamo import backend, last_design
    from .exploration.explore import explore
    from .layer_costs import sensitivity
    from .quantization.static_quantization import quantized

__version__ = "0.1.0"
__all__ = [
    "Design",
    "Error",
    "Exported",
    "__version__",
    "backend",
    "compile",
    "explore",
    "export",
    "last_design",
    "load",
    "quantized",
    "sensitivity",
]


def __getattr__(name):
    """Imports the rest on first use, because it imports PyTorch, which `--help` does not need."""
    if name in ("Design", "Exported", "compile", "export"):
        from . import api

        return getattr(api, name)
    if name == "load":
        from .design import load

        return load
    if name == "explore":
        from .exploration.explore import explore

        return explore
    if name == "quantized":
        from .quantization.static_quantization import quantized

        return quantized
    if name == "sensitivity":
        from .layer_costs import sensitivity

        return sensitivity
    if name in ("backend", "last_design"):
        from . import dynamo

        return getattr(dynamo, name)
    raise AttributeError(f"module 'streamtensor' has no attribute '{name}'")
