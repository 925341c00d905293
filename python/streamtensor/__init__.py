"""StreamTensor: PyTorch models as stream dataflow accelerators."""

from .errors import Error

__version__ = "0.1.0"
__all__ = [
    "Design",
    "Error",
    "Exported",
    "__version__",
    "backend",
    "compile",
    "export",
    "last_design",
]


def __getattr__(name):
    """The rest is imported on first use: it brings PyTorch in, which `--help` can do without."""
    if name in ("Design", "Exported", "compile", "export"):
        from . import api

        return getattr(api, name)
    if name in ("backend", "last_design"):
        from . import dynamo

        return getattr(dynamo, name)
    raise AttributeError(f"module 'streamtensor' has no attribute '{name}'")
