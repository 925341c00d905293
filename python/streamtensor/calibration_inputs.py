"""Reads the inputs that a network is calibrated with: tensors, or a file or a folder of them."""

import torch

from .errors import Error


def read(calibration, inputs: tuple) -> list[tuple]:
    """Batches as the module takes them. inputs: of the module, an example."""
    return [each if isinstance(each, tuple) else (each,) for each in calibration]
