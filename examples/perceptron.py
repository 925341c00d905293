"""Data for perceptron.mlir, and a check of what the design made of it.

perceptron.py make DIR     writes DIR/x.npy and DIR/weights.safetensors
perceptron.py check DIR    compares DIR/y.npy with NumPy
"""

import sys
from pathlib import Path

import numpy
from safetensors.numpy import load_file, save_file

SHAPES = {"w0": (64, 128), "b": (128,), "w1": (128, 32)}
TOLERANCE = 1e-4


def make(folder: Path) -> None:
    random = numpy.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    numpy.save(folder / "x.npy", random.standard_normal((8, 64), numpy.float32))
    save_file(
        {name: random.standard_normal(shape, numpy.float32) for name, shape in SHAPES.items()},
        folder / "weights.safetensors",
    )


def check(folder: Path) -> bool:
    x, weights, y = (
        numpy.load(folder / "x.npy"),
        load_file(folder / "weights.safetensors"),
        numpy.load(folder / "y.npy"),
    )
    expected = numpy.maximum(x @ weights["w0"] + weights["b"], 0) @ weights["w1"]
    difference = abs(y - expected).max() / abs(expected).max()
    print(f"largest difference {difference:.0e} of the largest value")
    return bool(difference < TOLERANCE)


if __name__ == "__main__":
    command, folder = sys.argv[1], Path(sys.argv[2])
    sys.exit(0 if {"make": make, "check": check}[command](folder) in (None, True) else 1)
