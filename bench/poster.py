"""Compiles the six kernels of the ScaleHLS poster at N = 4096 for 220 DSPs of an XC7Z020.

    poster.py [KERNEL ...]    prints rows (default: of all kernels)
    poster.py --write         writes bench/results/poster.md

The terms are those of the poster: arrays are on chip, outside of the design's limits, and a
speedup is over the C as it stands, one iteration after the other, over the full cube also where
the loops are triangles, with the cycles of an iteration that the poster's own baselines have.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, print_rows, script_arguments, stc
from dense import ON_CHIP

RESULTS = ROOT / "bench" / "results" / "poster.md"
SOURCE = "arrays on chip, as on the poster: no port waits, and no memory or logic bounds a kernel"
N = 4096
DSP = 220
ROOM = 10**6  # block RAMs, LUTs and flip-flops: the rows tell what is taken
# loops of the cube, cycles of an unoptimised iteration, the poster's speedup
KERNELS = {
    "bicg": (2, 14, 41.7),
    "gemm": (3, 18, 768.1),
    "gesummv": (2, 14, 199.1),
    "syr2k": (3, 24, 384.0),
    "syrk": (3, 18, 384.1),
    "trmm": (3, 15, 590.9),
}
HEAD = [
    "# The poster's kernels",
    "",
    f"N = {N}, f32, {DSP} DSPs of an XC7Z020 at 100 MHz, operators of 10 ns, arrays on chip as on",
    "ScaleHLS's poster: cycles by the model of a launch (those of sequential nests are simulated).",
    "L: cycles of an iteration of the C as it stands, over the full cube. `exact` keeps the order",
    "of C's sums, `free` is `--reassociate`. `bench/poster.py` makes the table.",
    "",
    "| kernel | sums | cycles | DSP | LUT | L | speedup | poster | compile s |",
    "|---|---|---|---|---|---|---|---|---|",
]


def write_platform(folder: Path) -> Path:
    part = json.loads((ROOT / "platforms" / "xc7z020.json").read_text())
    (die,) = part["dies"]
    for memory in ("bram18", "lut", "ff"):
        die[memory] = {"value": ROOM, "source": SOURCE}
    figures = {
        group: {key: {"value": value, "source": SOURCE} for key, value in rows.items()}
        for group, rows in ON_CHIP.items()
    }
    path = folder / "poster.json"
    words = {"name": "poster", "like": "xc7z020", "dies": [die], **figures}
    path.write_text(json.dumps(words))
    return path


def row(name: str, words: tuple[str, ...], scratch: Path, platform: Path) -> str:
    loops, iteration, poster = KERNELS[name]
    begin = time.monotonic()
    source = ROOT / "bench" / "poster.c"
    limits = ("--platform", platform, "--kernel-dsp", DSP, "--max-dsp", DSP)
    design = scratch / "_".join((name, *words))
    stc("compile", source, "--top", name, "-D", f"N={N}", *limits, "-o", design, *words)
    seconds = time.monotonic() - begin
    report = json.loads((design / "report.json").read_text())
    cycles = report["cycles"]["model"]
    used = report["resources"]
    return (
        f"| {name.upper()} | {'free' if words else 'exact'} | {cycles:,} | {used['dsp']} | "
        f"{used['lut']:,} | {iteration} | {iteration * N**loops / cycles:.1f} | {poster} | "
        f"{seconds:.1f} |"
    )


def main():
    words = script_arguments(__doc__, ("--write",))
    names = [word for word in words if word != "--write"]
    unknown = set(names) - set(KERNELS)
    if unknown:
        sys.exit(f"no kernel {min(unknown)}; there are {', '.join(KERNELS)}")
    with tempfile.TemporaryDirectory() as scratch:
        platform = write_platform(Path(scratch))
        rows = (
            row(name, free, Path(scratch), platform)
            for name in names or KERNELS
            for free in ((), ("--reassociate",))
        )
        print_rows(HEAD, rows, RESULTS if "--write" in words else None)


if __name__ == "__main__":
    main()
