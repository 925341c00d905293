"""Reads ONNX files: a graph of operators becomes a module of PyTorch, quantized parts integers."""

from . import (  # noqa: F401  each registers the operators that it knows
    elementwise,
    matrices,
    qonnx,
    quantized,
    recurrent,
    resize,
    shapes,
    windows,
)
