"""Simulates dense kernels of PolyBench (MEDIUM, f32) at numbers of DSPs.

    dense.py [KERNEL ...]    prints rows (default: of all kernels)
    dense.py --write         writes bench/results/dense.md

Each kernel is compiled twice: for the U280 with its memory, and for one whose operands are on chip,
as the published figures count: memory that never makes a port wait, and ports enough. The bound is
the terms over the multiply-adds that fit the DSPs.
"""

import json
import sys
import tempfile
from pathlib import Path

from common import ROOT, script_arguments, stc

RESULTS = ROOT / "bench" / "results" / "dense.md"
TERM_DSP = 5  # of an addition and a product in f32
SIZES = (220, 2560)
# cycles that Stream-HLS (FPGA 2025) publishes for 220 and 2560 DSPs, operands on chip
PUBLISHED = {
    "gemm": (330_053, 24_051),
    "2mm": (378_254, 36_352),
    "3mm": (601_511, 49_092),
    "atax": (15_855, 2_180),
    "bicg": (8_033, 1_112),
    "mvt": (8_041, 667),
    "gesummv": (3_177, 673),
}
HEAD = [
    "# Dense kernels",
    "",
    "PolyBench MEDIUM in f32, compiled from linalg; simulated cycles, DSPs taken, and per cent of",
    "the bound (terms over the multiply-adds that fit the DSPs). On chip, as the published figures",
    "of Stream-HLS count: no port waits for memory. `bench/dense.py --write` makes the table.",
    "",
    "| kernel | DSPs | bound | on chip: cycles | DSP | % | U280: cycles | DSP | % | published |",
    "|---|---|---|---|---|---|---|---|---|---|",
]
SOURCE = "operands on chip: no port waits, and each operand may have its own"
ON_CHIP = {
    "memory": {"channels": 256, "channel_gbps": 38.4, "channel_efficiency": 1, "latency_cycles": 1},
    "ports": {"most": 256},
}


class Kernel:
    """The text of a function over matrices and vectors."""

    def __init__(self, **arguments: tuple[int, ...]):
        self.shape = dict(arguments)
        self.arguments = list(arguments)
        self.lines = ["%zero = arith.constant 0.0 : f32"]
        self.terms: list[int] = []

    def type(self, name: str) -> str:
        return f"tensor<{'x'.join(map(str, self.shape[name]))}xf32>"

    def generic(self, result: str, maps: str, kinds: list[str], operands: list[str], body: list):
        initial = f"{result}_initial"
        kinds_text = ", ".join(f'"{kind}"' for kind in kinds)
        types = ", ".join(self.type(name) for name in operands)
        names = ", ".join(f"%{name}" for name in operands)
        values = ", ".join(f"%v{i}: f32" for i in range(len(operands)))
        self.lines += [
            f"%{result}_empty = tensor.empty() : {self.type(result)}",
            f"%{initial} = linalg.fill ins(%zero : f32) outs(%{result}_empty : "
            f"{self.type(result)}) -> {self.type(result)}",
            f"%{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = "
            f"[{kinds_text}]}} ins({names} : {types}) outs(%{initial} : {self.type(result)}) {{",
            f"^bb0({values}, %sum: f32):",
            *body,
            f"}} -> {self.type(result)}",
        ]

    def product(self, result: str, left: str, right: str, transposed: bool = False):
        """result = left * right, of the transposed left where that is said."""
        rows, terms = self.shape[left][::-1] if transposed else self.shape[left]
        matrix = len(self.shape[right]) == 2
        columns = self.shape[right][1:]
        self.shape[result] = (rows, *columns)
        self.terms.append(rows * terms * (columns[0] if matrix else 1))
        loops, column = ("(i, j, k)", ", j") if matrix else ("(i, k)", "")
        accesses = ["(k, i)" if transposed else "(i, k)", f"(k{column})", f"(i{column})"]
        self.generic(
            result,
            ", ".join(f"affine_map<{loops} -> {access}>" for access in accesses),
            ["parallel"] * (1 + matrix) + ["reduction"],
            [left, right],
            [
                "%term = arith.mulf %v0, %v1 : f32",
                "%total = arith.addf %sum, %term : f32",
                "linalg.yield %total : f32",
            ],
        )

    def sum(self, result: str, left: str, right: str, alpha: float = 1, beta: float = 1):
        """result = alpha * left + beta * right"""
        self.shape[result] = self.shape[left]
        loops = "(i, j)" if len(self.shape[left]) == 2 else "(i)"
        scaled, body = [], []
        for i, factor in enumerate((alpha, beta)):
            scaled.append(f"%v{i}" if factor == 1 else f"%s{i}")
            if factor != 1:
                body += [
                    f"%c{i} = arith.constant {float(factor)} : f32",
                    f"%s{i} = arith.mulf %c{i}, %v{i} : f32",
                ]
        body += [f"%total = arith.addf {scaled[0]}, {scaled[1]} : f32", "linalg.yield %total : f32"]
        maps = ", ".join([f"affine_map<{loops} -> {loops}>"] * 3)
        self.generic(result, maps, ["parallel"] * len(self.shape[left]), [left, right], body)

    def text(self, *results: str) -> str:
        def named(names):
            return [f'{self.type(name)} {{stream.name = "{name}"}}' for name in names]

        arguments = ", ".join(
            f"%{name}: {text}"
            for name, text in zip(self.arguments, named(self.arguments), strict=True)
        )
        types = ", ".join(self.type(name) for name in results)
        return (
            "\n  ".join(
                [
                    f"func.func @main({arguments}) -> ({', '.join(named(results))}) {{",
                    *self.lines,
                    f"return {', '.join(f'%{name}' for name in results)} : {types}",
                ]
            )
            + "\n}\n"
        )


def gemm() -> tuple[Kernel, str]:
    kernel = Kernel(A=(200, 240), B=(240, 220), C=(200, 220))
    kernel.product("AB", "A", "B")
    kernel.sum("Y", "AB", "C", 1.5, 1.2)
    return kernel, kernel.text("Y")


def two_products() -> tuple[Kernel, str]:
    kernel = Kernel(A=(180, 210), B=(210, 190), C=(190, 220), D=(180, 220))
    kernel.product("AB", "A", "B")
    kernel.product("ABC", "AB", "C")
    kernel.sum("Y", "ABC", "D", 1.5, 1.2)
    return kernel, kernel.text("Y")


def three_products() -> tuple[Kernel, str]:
    kernel = Kernel(A=(180, 200), B=(200, 190), C=(190, 220), D=(220, 210))
    kernel.product("E", "A", "B")
    kernel.product("F", "C", "D")
    kernel.product("G", "E", "F")
    return kernel, kernel.text("G")


def atax() -> tuple[Kernel, str]:
    kernel = Kernel(A=(390, 410), x=(410,))
    kernel.product("t", "A", "x")
    kernel.product("y", "A", "t", True)
    return kernel, kernel.text("y")


def bicg() -> tuple[Kernel, str]:
    kernel = Kernel(A=(410, 390), p=(390,), r=(410,))
    kernel.product("s", "A", "r", True)
    kernel.product("q", "A", "p")
    return kernel, kernel.text("s", "q")


def mvt() -> tuple[Kernel, str]:
    kernel = Kernel(A=(400, 400), x1=(400,), x2=(400,), y1=(400,), y2=(400,))
    kernel.product("t1", "A", "y1")
    kernel.product("t2", "A", "y2", True)
    kernel.sum("z1", "x1", "t1")
    kernel.sum("z2", "x2", "t2")
    return kernel, kernel.text("z1", "z2")


def gesummv() -> tuple[Kernel, str]:
    kernel = Kernel(A=(250, 250), B=(250, 250), x=(250,))
    kernel.product("t1", "A", "x")
    kernel.product("t2", "B", "x")
    kernel.sum("y", "t1", "t2", 1.5, 1.2)
    return kernel, kernel.text("y")


KERNELS = {
    "gemm": gemm,
    "2mm": two_products,
    "3mm": three_products,
    "atax": atax,
    "bicg": bicg,
    "mvt": mvt,
    "gesummv": gesummv,
}


def write_platform(folder: Path) -> Path:
    """The U280 with memory that does not bound a kernel."""
    figures = {
        group: {key: {"value": value, "source": SOURCE} for key, value in rows.items()}
        for group, rows in ON_CHIP.items()
    }
    path = folder / "on_chip.json"
    path.write_text(json.dumps({"name": "on-chip", "like": "u280", **figures}))
    return path


def measure(source: Path, platform: object, dsp: int) -> tuple[int, int] | None:
    """Cycles of a launch and DSPs; None: no design fits."""
    design = source.with_suffix(".design")
    limits = ("--kernel-dsp", dsp, "--max-dsp", dsp)
    try:
        stc("compile", source, "-o", design, "--platform", platform, *limits)
    except RuntimeError as error:
        print(f"{source.stem}: {error}", file=sys.stderr)
        return None
    report = json.loads((design / "report.json").read_text())
    found = json.loads(stc("simulate", design, "--platform", platform, "--json"))
    return found["cycles"], report["resources"]["dsp"]


def cell(found: tuple[int, int] | None, bound: float) -> str:
    if not found:
        return "refused | | "
    return f"{found[0]:,} | {found[1]} | {100 * bound / found[0]:.0f}"


def rows(name: str, folder: Path) -> list[str]:
    kernel, text = KERNELS[name]()
    source = folder / f"{name}.mlir"
    source.write_text(text)
    platform = write_platform(folder)
    made = []
    for dsp, published in zip(SIZES, PUBLISHED[name], strict=True):
        bound = sum(kernel.terms) / (dsp // TERM_DSP)
        on_chip, with_memory = (measure(source, board, dsp) for board in (platform, "u280"))
        made.append(
            f"| {name} | {dsp} | {bound:,.0f} | {cell(on_chip, bound)} | "
            f"{cell(with_memory, bound)} | {published:,} |"
        )
        print(made[-1], flush=True)
    return made


def main():
    names = script_arguments(__doc__, ("--write",))
    written = "--write" in names
    chosen = [name for name in names if name != "--write"] or list(KERNELS)
    unknown = set(chosen) - set(KERNELS)
    if unknown:
        sys.exit(f"no kernel {min(unknown)}; there are {', '.join(KERNELS)}")
    with tempfile.TemporaryDirectory() as folder:
        table = [row for name in chosen for row in rows(name, Path(folder))]
    if written:
        RESULTS.write_text("\n".join([*HEAD, *table]) + "\n")


if __name__ == "__main__":
    main()
