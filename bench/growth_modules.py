"""Writes the modules that growth.py measures: growth_modules.py FOLDER SIZES [NAME ...]

SIZES is a list with commas; "": those of the table. It writes FOLDER/index.json, a list of [name,
size, file]. A program of its own, because the peak memory of a process counts what the one that
starts it holds.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import streamtensor  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def _of_vectors(function, count: int = 1):
    return lambda size: (Function(function), tuple(torch.zeros(size) for _ in range(count)))


def _of_squares(function, count: int = 1):
    return lambda size: (Function(function), tuple(torch.zeros(size, size) for _ in range(count)))


def _layers(count: int, width: int = 32, rows: int = 4):
    """Linear layers of widths that differ, so that they are no loop."""
    widths = [width + 8 * (i * 5 % 7) for i in range(count + 1)]
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers), (torch.zeros(rows, widths[0]),)


VECTORS, SQUARES = (1 << 16, 1 << 18, 1 << 20), (256, 512, 1024)
OPERATORS = {
    "relu": (_of_vectors(torch.relu), VECTORS),
    "add": (_of_vectors(torch.add, 2), VECTORS),
    "sum": (_of_vectors(torch.sum), VECTORS),
    "softmax": (_of_vectors(lambda x: x.softmax(0)), VECTORS),
    "cumsum": (_of_vectors(lambda x: x.cumsum(0)), VECTORS),
    "cumprod": (_of_vectors(lambda x: x.cumprod(0)), VECTORS),
    "cumsum of rows": (_of_squares(lambda x: x.cumsum(1)), SQUARES),
    "transpose": (_of_squares(lambda x: x.t().contiguous()), SQUARES),
    "sum of columns": (_of_squares(lambda x: x.sum(0)), SQUARES),
    "layer norm": (_of_squares(lambda x: nn.functional.layer_norm(x, x.shape[1:])), SQUARES),
    "matmul": (_of_squares(torch.matmul, 2), (64, 128, 256)),
}
AXES = {
    "layers": (_layers, (4, 8, 16)),
    "width": (lambda size: _layers(4, size), (32, 64, 128)),
    "batch": (lambda size: _layers(4, rows=size), (4, 8, 16)),
}
ALL = OPERATORS | AXES


def main():
    folder, names = Path(sys.argv[1]), sys.argv[3:] or list(ALL)
    wanted = [int(size) for size in sys.argv[2].split(",") if size]
    unknown = set(names) - set(ALL)
    if unknown:
        sys.exit(f"no row {min(unknown)}; there are {', '.join(ALL)}")
    torch.manual_seed(0)
    index = []
    for name in names:
        make, sizes = ALL[name]
        for size in wanted or sizes:
            path = folder / f"{name.replace(' ', '_')}_{size}.mlir"
            path.write_text(streamtensor.export(*make(size)).text)
            index.append((name, size, path.name))
    (folder / "index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main()
