"""Writes the modules that growth.py measures: growth_modules.py FOLDER SIZES [NAME ...]

SIZES is a list with commas; "": those of the table. It writes FOLDER/index.json, a list of objects:
name, size, file (null, with a message: refused), bytes that are read and written at least, and
terms, the products of matrix products and convolutions. A program of its own, because the peak
memory of a process counts what the one that starts it holds.
"""

import json
import math
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import streamtensor  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def _of(function, *shapes):
    """Module of a function whose inputs have these shapes, of which each says what it is at a
    size."""
    return lambda size: (
        Function(function),
        tuple(torch.zeros(shape(size)) for shape in shapes),
    )


def _vector(size):
    return (size,)


def _square(size):
    return size, size


def _image(size):
    """of 64 channels"""
    return 1, 64, size, size


def _heads(size):
    """of 8 heads of 64 numbers"""
    return 1, 8, size, 64


def _indexed(function, count):
    """The second input is `count` numbers of rows."""
    return lambda size: (
        Function(function),
        (torch.zeros(size, 64), torch.zeros(count(size), dtype=torch.int64)),
    )


def _attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _layer_norm(x):
    return functional.layer_norm(x, x.shape[1:])


def _scatter(x, at):
    return torch.zeros_like(x).index_add(0, at, x)


def _dft(real, imaginary):
    """Of every row, as two products with tables."""
    count = real.shape[-1]
    turn = torch.arange(count, dtype=torch.float64).outer(torch.arange(count)) / count
    c, s = ((2 * math.pi * turn).cos().float(), (2 * math.pi * turn).sin().float())
    return real @ c + imaginary @ s, imaginary @ c - real @ s


def _module(make, *shapes):
    return lambda size: (make(size), tuple(torch.zeros(shape(size)) for shape in shapes))


def _mlp(_):
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def _layers(count: int, width: int = 32, rows: int = 4):
    """Linear layers whose widths have no period, so that they are no loop."""
    chance = random.Random(0)
    widths = [width + 8 * chance.randrange(7) for _ in range(count + 1)]
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers), (torch.zeros(rows, widths[0]),)


VECTORS, SQUARES = (1 << 18, 1 << 22, 1 << 26), (512, 2048, 8192)
IMAGES, PRODUCTS = (64, 256, 1024), (128, 512, 2048)
OPERATORS = {
    "relu": (_of(torch.relu, _vector), VECTORS),
    "add": (_of(torch.add, _vector, _vector), VECTORS),
    "add a row": (_of(torch.add, _square, _vector), SQUARES),
    "add a column": (_of(lambda x, y: x + y.unsqueeze(1), _square, _vector), SQUARES),
    "where": (_of(lambda x, y: torch.where(x > 0, x, y), _vector, _vector), VECTORS),
    "sum": (_of(torch.sum, _vector), VECTORS),
    "argmax": (_of(torch.argmax, _vector), VECTORS),
    "sum of rows": (_of(lambda x: x.sum(1), _square), SQUARES),
    "sum of columns": (_of(lambda x: x.sum(0), _square), SQUARES),
    "mean and variance": (_of(lambda x: (x.mean(1), x.var(1)), _square), SQUARES),
    "layer norm": (_of(_layer_norm, _square), SQUARES),
    "RMS norm": (_of(lambda x: functional.rms_norm(x, x.shape[1:]), _square), SQUARES),
    "softmax": (_of(lambda x: x.softmax(0), _vector), VECTORS),
    "softmax of rows": (_of(lambda x: x.softmax(1), _square), SQUARES),
    "cumsum": (_of(lambda x: x.cumsum(0), _vector), VECTORS),
    "cumprod": (_of(lambda x: x.cumprod(0), _vector), VECTORS),
    "cumsum of rows": (_of(lambda x: x.cumsum(1), _square), SQUARES),
    "transpose": (_of(lambda x: x.t().contiguous(), _square), SQUARES),
    "concat": (_of(lambda x, y: torch.cat((x, y), 1), _square, _square), SQUARES),
    "slice": (_of(lambda x: x[:, : x.shape[1] // 2].contiguous(), _square), SQUARES),
    "gather": (_indexed(lambda x, at: x[at], lambda size: size // 2), (1 << 12, 1 << 16, 1 << 20)),
    "scatter": (_indexed(_scatter, lambda size: size), (1 << 8, 1 << 12, 1 << 16)),
    "max pool": (_of(lambda x: functional.max_pool2d(x, 2), _image), IMAGES),
    "depthwise 3x3": (
        _module(lambda _: nn.Conv2d(64, 64, 3, padding=1, groups=64), _image),
        IMAGES,
    ),
    "pointwise": (_module(lambda _: nn.Conv2d(64, 64, 1), _image), IMAGES),
    "convolution 3x3": (_module(lambda _: nn.Conv2d(64, 64, 3, padding=1), _image), IMAGES),
    "matmul": (_of(torch.matmul, _square, _square), PRODUCTS),
    "attention": (_of(_attention, _heads, _heads, _heads), PRODUCTS),
    "linear, one row": (
        _module(lambda size: nn.Linear(size, size), lambda size: (1, size)),
        (512, 2048, 8192),
    ),
    "linear, 64 rows": (
        _module(lambda size: nn.Linear(size, 4 * size), lambda size: (64, size)),
        (256, 1024, 4096),
    ),
    "MLP 784-512-10": (_module(_mlp, lambda size: (size, 784)), (16, 64, 256)),
    "einsum of three": (
        _of(lambda x, y, z: torch.einsum("ij,jk,kl->il", x, y, z), _square, _square, _square),
        PRODUCTS,
    ),
    "DFT": (_of(_dft, _square, _square), PRODUCTS),
    "sort": (_of(lambda x: x.sort()[0], _vector), (1 << 8, 1 << 12, 1 << 16)),
    "top 50": (_of(lambda x: x.topk(50)[0], _vector), (1 << 10, 1 << 14, 128_256)),
}
# part of the first input that is read, where that is not all
TAKEN = {"slice": 0.5, "gather": 0.5}
AXES = {
    "layers": (_layers, (4, 8, 16)),
    "width": (lambda size: _layers(4, size), (32, 64, 128)),
    "batch": (lambda size: _layers(4, rows=size), (4, 8, 16)),
}
ALL = OPERATORS | AXES


def _written(folder: Path, name: str, size: int, make) -> dict:
    module, inputs = make(size)
    path = folder / f"{name.replace(' ', '_')}_{size}.mlir"
    try:
        path.write_text(streamtensor.export(module, inputs).text)
    except streamtensor.Error as error:
        return {"file": None, "message": str(error)}
    return {"file": path.name, **_least(module, inputs, TAKEN.get(name, 1))}


def _least(module, inputs, taken: float) -> dict:
    """What a launch reads, writes and multiplies at least.

    taken: the part of the first input that it reads.
    """
    with torch.device("meta"):
        shaped = [torch.empty_like(each, device="meta") for each in inputs]
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            results = module.to("meta")(*shaped)
    read, *rest = shaped
    others = [*rest, *module.parameters(), *tree_leaves(results)]
    own = taken * read.nbytes
    return {"bytes": own + sum(t.nbytes for t in others), "terms": counter.get_total_flops() / 2}


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
            index.append({"name": name, "size": size, **_written(folder, name, size, make)})
    (folder / "index.json").write_text(json.dumps(index))


if __name__ == "__main__":
    main()
