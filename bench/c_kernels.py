"""Simulates the 30 kernels of PolyBench/C 4.2.1 (f32) at 220 DSPs, operands on chip.

    c_kernels.py FOLDER [KERNEL ...]    prints rows (default: of all kernels); FOLDER: of PolyBench
    c_kernels.py FOLDER --write         writes bench/results/c_kernels.md

Each kernel is compiled from PolyBench's own source. The bound is that of its additions and products
on the DSPs (an addition takes 2, a product 3), or, where it is longer, of its chain of operations.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

import dense
from common import ROOT, print_rows, script_arguments, stc

RESULTS = ROOT / "bench" / "results" / "c_kernels.md"
DSP = 220
TIME_STEPS = 100  # at MEDIUM, of kernels in which no array has them as an extent
STEPPED = ("adi", "jacobi-1d", "jacobi-2d", "seidel-2d")
# thousands of cycles at MEDIUM
BOUNDS = {
    "correlation": 174,
    "covariance": 172,
    "gemm": 240,
    "gemver": 14.5,
    "gesummv": 2.84,
    "symm": 219,
    "syr2k": 263,
    "syrk": 131,
    "trmm": 109,
    "2mm": 334,
    "3mm": 518,
    "atax": 7.27,
    "bicg": 7.27,
    "doitgen": 164,
    "mvt": 7.27,
    "cholesky": 242,
    "durbin": 28,
    "gramschmidt": 298,
    "lu": 483,
    "ludcmp": 483,
    "trisolv": 9.6,
    "deriche": 129,
    "floyd-warshall": 1140,
    "nussinov": 189,
    "adi": 1350,
    "fdtd-2d": 542,
    "heat-3d": 1800,
    "jacobi-1d": 2.5,
    "jacobi-2d": 615,
    "seidel-2d": 1150,
}
HEAD = [
    "# Kernels of PolyBench in C",
    "",
    "PolyBench/C 4.2.1, MEDIUM, f32, from its own sources: simulated cycles, DSPs taken, and the",
    "ratio to the bound of 220 DSPs, operands on chip and operators of 10 ns.",
    "`bench/c_kernels.py` makes the table.",
    "",
    "| kernel | cycles | DSP | bound | ratio | compile s |",
    "|---|---|---|---|---|---|",
]


def write_platform(folder: Path) -> Path:
    """The U280 with memory that does not bound a kernel, and operators of 10 ns."""
    path = dense.write_platform(folder)
    platform = json.loads(path.read_text())
    slow = json.loads((ROOT / "platforms" / "xc7z020.json").read_text())
    for group in ("clock_mhz", "operators", "operators_f64"):
        platform[group] = slow[group]
    path.write_text(json.dumps(platform))
    return path


def compile_kernel(folder: Path, name: str, design: Path, *words: object) -> None:
    source = next(folder.rglob(f"{name}.c"))
    stc(
        "compile",
        source,
        "--top",
        f"kernel_{name.replace('-', '_')}",
        *("-I", source.parent, "-I", folder / "utilities", "-D", "DATA_TYPE_IS_FLOAT"),
        *("-o", design, *words),
    )


def row(folder: Path, name: str, scratch: Path, platform: Path) -> str:
    design = scratch / name
    begin = time.monotonic()
    limits = ("--kernel-dsp", DSP, "--max-dsp", DSP)
    steps = ("--define", f"tsteps={TIME_STEPS}") if name in STEPPED else ()
    sizes = ("-D", "MEDIUM_DATASET", *steps)
    try:
        compile_kernel(folder, name, design, *sizes, "--platform", platform, *limits)
    except RuntimeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return f"| {name} | refused | | | | |"
    seconds = time.monotonic() - begin
    report = json.loads((design / "report.json").read_text())
    cycles = json.loads(stc("simulate", design, "--platform", platform, "--json"))["cycles"]
    bound = BOUNDS[name]
    return (
        f"| {name} | {cycles:,} | {report['resources']['dsp']} | {bound:g}k | "
        f"{cycles / bound / 1000:.2f} | {seconds:.1f} |"
    )


def main():
    words = script_arguments(__doc__, ("--write",))
    names = [word for word in words if word != "--write"]
    if not names:
        sys.exit(__doc__.strip())
    folder = Path(names[0])
    unknown = set(names[1:]) - set(BOUNDS)
    if unknown:
        sys.exit(f"no kernel {min(unknown)}; there are {', '.join(BOUNDS)}")
    with tempfile.TemporaryDirectory() as scratch:
        platform = write_platform(Path(scratch))
        rows = (row(folder, name, Path(scratch), platform) for name in names[1:] or BOUNDS)
        print_rows(HEAD, rows, RESULTS if "--write" in words else None)


if __name__ == "__main__":
    main()
