"""Compiles and simulates random dense shapes in f32 on three boards.

    dense_sweep.py [seed=N] [shapes=N] [kind=KIND] [--write]

Products of matrices, of a matrix (or its transpose) and a vector, and convolutions. Extents are
drawn evenly over their magnitudes, a third of them prime. The bound is the larger of two: terms
over the multiply-adds that fit the DSPs, and bytes read and written once over the bandwidth of all
memory channels; beside it one latency of the memory. `--write` makes bench/results/dense_sweep.md.
"""

import json
import math
import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, script_arguments, stc
from dense import Kernel

RESULTS = ROOT / "bench" / "results" / "dense_sweep.md"
TERM_DSP = 5  # of an addition and a product in f32
BOARDS = {"u55c": (220, 880, 2560), "vu9p": (220, 880, 2200), "xc7z020": (220,)}
KINDS = ("gemm", "matvec", "transposed", "conv")
TERMS = {"gemm": (1e6, 2e8), "matvec": (2e5, 2e7), "transposed": (2e5, 2e7), "conv": (1e6, 2e8)}

SUMMARY = [
    "# Dense shapes at random",
    "",
    "Simulated cycles against the bound at the clock that a design has (a crowded one has a slower",
    "one), in per cent; the error of the token model; seconds of a compilation, other work beside",
    "it. `bench/dense_sweep.py --write` makes the tables.",
    "",
    "| board | kind | shapes | refused | geomean % | worst % | model, worst % | most s |",
    "|---|---|---|---|---|---|---|---|",
]
HEAD = [
    "| kind | extents | board | DSPs | bound | cycles | MHz | DSP | % | model % | s |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
]


@dataclass
class Shape:
    kind: str
    extents: tuple[int, ...]
    board: str
    dsp: int

    @property
    def terms(self) -> int:
        if self.kind != "conv":
            return math.prod(self.extents)
        channels, size, filters, window = self.extents
        return channels * filters * (window * (size - window + 1)) ** 2

    @property
    def words(self) -> int:
        """Numbers that are read and written once."""
        if self.kind == "gemm":
            rows, columns, terms = self.extents
            return rows * terms + terms * columns + rows * columns
        if self.kind != "conv":
            rows, columns = self.extents
            return rows * columns + rows + columns
        channels, size, filters, window = self.extents
        result = filters * (size - window + 1) ** 2
        return channels * size**2 + channels * filters * window**2 + result

    @property
    def text(self) -> str:
        if self.kind == "conv":
            return convolution(*self.extents)
        if self.kind == "gemm":
            rows, columns, terms = self.extents
            kernel = Kernel(A=(rows, terms), B=(terms, columns))
        else:
            rows, columns = self.extents
            kernel = Kernel(A=(rows, columns), B=(rows if self.kind == "transposed" else columns,))
        kernel.product("Y", "A", "B", self.kind == "transposed")
        return kernel.text("Y")

    def __str__(self) -> str:
        return f"{self.kind} | {' x '.join(map(str, self.extents))} | {self.board} | {self.dsp}"


def convolution(channels: int, size: int, filters: int, window: int) -> str:
    x, w, y = (
        f"tensor<{'x'.join(map(str, shape))}xf32>"
        for shape in (
            (1, channels, size, size),
            (filters, channels, window, window),
            (1, filters, size - window + 1, size - window + 1),
        )
    )
    return f"""func.func @main(%x: {x} {{stream.name = "x"}}, %w: {w} {{stream.name = "w", \
stream.role = "weight"}}) -> ({y} {{stream.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : {x}, {w}) outs(%f : {y}) -> {y}
  return %y : {y}
}}
"""


def is_prime(number: int) -> bool:
    return number > 1 and all(number % i for i in range(2, math.isqrt(number) + 1))


def extent(draw: random.Random, low: int, high: int) -> int:
    """Evenly over the magnitudes; a third are primes."""
    found = round(math.exp(draw.uniform(math.log(low), math.log(high))))
    while draw.random() < 1 / 3 and not is_prime(found):
        found += 1
        while not is_prime(found):
            found += 1
    return found


def extents(draw: random.Random, kind: str) -> tuple[int, ...]:
    if kind == "gemm":
        return tuple(extent(draw, 24, 1500) for _ in range(3))
    if kind != "conv":
        return tuple(extent(draw, 100, 6000) for _ in range(2))
    window = draw.choice((1, 3, 3, 5, 7))
    channels, size, filters = (
        extent(draw, low, high) for low, high in ((3, 300), (9, 120), (8, 300))
    )
    return channels, size, filters, window


def shapes(seed: int, count: int, kinds: Iterable[str] = KINDS) -> list[Shape]:
    draw = random.Random(seed)
    made: list[Shape] = []
    while len(made) < count:
        kind = KINDS[len(made) % len(KINDS)]
        board = list(BOARDS)[len(made) // len(KINDS) % len(BOARDS)]
        shape = Shape(kind, extents(draw, kind), board, draw.choice(BOARDS[board]))
        low, high = TERMS[kind]
        if low <= shape.terms <= high:
            made.append(shape)
    return [shape for shape in made if shape.kind in kinds]


def board_of(name: str) -> dict:
    """The figures of a board, with those of the board that it is like."""
    own = json.loads((ROOT / "platforms" / f"{name}.json").read_text())
    base = board_of(own["like"]) if "like" in own else {}
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict) and "value" not in value
        base[key] = {**base[key], **value} if both else value
    return base


def bound(shape: Shape, clock: int = 0) -> float:
    """In cycles of the design's clock, or else the board's."""
    board = board_of(shape.board)
    fastest = board["clock_mhz"]["value"]
    clock = clock or fastest
    memory = {key: row["value"] for key, row in board["memory"].items()}
    channel = memory["channel_gbps"] * memory["channel_efficiency"] * 1e3
    rate = memory["channels"] * channel / clock
    cycles = max(shape.terms / (shape.dsp // TERM_DSP), 4 * shape.words / rate)
    return cycles + memory["latency_cycles"] * clock / fastest


@dataclass
class Found:
    """What the compiler makes of a shape."""

    shape: Shape
    refused: str = ""
    cycles: int = 0
    predicted: int = 0
    dsp: int = 0
    clock: int = 0  # a crowded design has a slower one
    seconds: float = 0

    @property
    def part(self) -> float:
        return self.bound / self.cycles

    @property
    def bound(self) -> float:
        return bound(self.shape, self.clock)

    @property
    def error(self) -> float:
        return self.predicted / self.cycles - 1

    def __str__(self) -> str:
        head = f"| {self.shape} | {self.bound:,.0f} |"
        if self.refused:
            return f"{head} refused: {self.refused} | | | | | |"
        return (
            f"{head} {self.cycles:,} | {self.clock} | {self.dsp} | {100 * self.part:.0f} | "
            f"{100 * self.error:+.1f} | {self.seconds:.1f} |"
        )


def measure(shape: Shape, folder: Path) -> Found:
    found = Found(shape)
    source, design = folder / "kernel.mlir", folder / "design"
    source.write_text(shape.text)
    limits = ("--kernel-dsp", shape.dsp, "--max-dsp", shape.dsp)
    start = time.monotonic()
    try:
        stc("compile", source, "-o", design, "--platform", shape.board, *limits)
    except RuntimeError as error:
        found.refused = str(error).splitlines()[0].partition("error: ")[2]
        return found
    found.seconds = time.monotonic() - start
    report = json.loads((design / "report.json").read_text())
    found.dsp = report["resources"]["dsp"]
    found.predicted = report["cycles"]["model"]
    found.clock = report["clock_mhz"]
    board = ("--platform", shape.board, "--clock", found.clock)
    words = ("simulate", design, *board, "--json", "--max-iterations", "16G")
    found.cycles = json.loads(stc(*words))["cycles"]
    return found


def geomean(numbers: list[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def summary(found: list[Found]) -> list[str]:
    """A line for each board and kind, and for all."""
    lines = []
    groups = [(board, kind) for board in BOARDS for kind in KINDS] + [("all", "all")]
    for board, kind in groups:
        group = [
            one
            for one in found
            if board in ("all", one.shape.board) and kind in ("all", one.shape.kind)
        ]
        built = [one for one in group if not one.refused]
        if not built:
            continue
        parts = [one.part for one in built]
        errors = [abs(one.error) for one in built]
        lines.append(
            f"| {board} | {kind} | {len(group)} | {len(group) - len(built)} | "
            f"{100 * geomean(parts):.0f} | {100 * min(parts):.0f} | {100 * max(errors):.1f} | "
            f"{max(one.seconds for one in built):.1f} |"
        )
    return lines


def main():
    words = script_arguments(__doc__, ("--write",))
    numbers = {"seed": 1, "shapes": 300, **dict(word.split("=") for word in words if "=" in word)}
    kinds = (numbers["kind"],) if "kind" in numbers else KINDS
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes(int(numbers["seed"]), int(numbers["shapes"]), kinds):
            found.append(measure(shape, Path(folder)))
            print(found[-1], flush=True)
    table = [*SUMMARY, *summary(found), "", *HEAD, *map(str, found)]
    print("\n".join(summary(found)))
    if "--write" in words:
        RESULTS.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
