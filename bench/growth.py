"""Measures how time, compile time and memory grow with the size of a module.

    growth.py [NAME ...]    prints rows (default: of all operators and axes)
    growth.py --write       writes bench/results/growth.md

An operator, alone on the board, is compiled at three sizes; an axis of a small network is doubled.
A row gives the cycles of a launch, the larger bound of memory and of products by the DSPs that
kernels may have, the compiler's seconds of a CPU and its peak memory. The exponents are fitted
through the sizes: 1 is linear.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, STC, script_arguments

RESULTS = ROOT / "bench" / "results" / "growth.md"
LONGEST = 300  # seconds of a compilation
DSP_SHARE = 0.6  # of the card for kernels
DSP = 5  # of a product and its sum in f32
HEAD = [
    "# Growth",
    "",
    "Launches of one operator or a small network on the u55c; `bench/growth.py --write` makes the",
    "table. Bound: the larger of memory, and of products by 60 % of the DSPs, without the launch.",
    "",
    "| what | size | cycles | bound | % | compile s | peak MiB |",
    "|---|---|---|---|---|---|---|",
]


def measure(source: Path) -> dict | None:
    """Of the compiler alone; None: it refuses, or takes longer than LONGEST."""
    design = source.with_suffix(".design")
    command = [STC, "compile", str(source), "--platform", "u55c", "-o", str(design)]
    process = subprocess.Popen(
        ["timeout", str(LONGEST), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print(f"{source.stem}: {message.strip() or 'too long'}", file=sys.stderr)
        return None
    report = json.loads((design / "report.json").read_text())
    bounds = report["bounds"]
    cycles = report["cycles"]
    a_ms = report["clock_mhz"] * 1e3
    products = bounds.get("mac_ms", 0) * a_ms * report.get("products", {"built": 0})["built"]
    dsp = report["available"]["dsp"]
    return {
        "cycles": cycles.get("simulated", cycles["model"]),
        "bound": max(bounds.get("memory_ms", 0) * a_ms, products / (dsp * DSP_SHARE / DSP)),
        "seconds": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
    }


def exponent(sizes: list[int], figures: list[float]) -> float:
    """Slope of the line through the logarithms."""
    x, y = ([math.log(max(each, 1e-9)) for each in row] for row in (sizes, figures))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def export(
    folder: Path, names: list[str], sizes: tuple[int, ...] = ()
) -> dict[str, list[tuple[int, Path]]]:
    """By name the sizes, each with its module. sizes: others than the table's."""
    script = Path(__file__).with_name("growth_modules.py")
    done = subprocess.run(
        [sys.executable, script, folder, ",".join(map(str, sizes)), *names],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr.strip())
    modules = {}
    for name, size, file in json.loads((folder / "index.json").read_text()):
        modules.setdefault(name, []).append((size, folder / file))
    return modules


def rows(name: str, modules: list[tuple[int, Path]]) -> list[str]:
    made, found = [], {}
    for size, source in modules:
        figures = measure(source)
        if not figures:
            made.append(f"| {name} | {size:,} | refused | | | | |")
            continue
        found[size] = figures
        part = 100 * figures["bound"] / figures["cycles"]
        made.append(
            f"| {name} | {size:,} | {figures['cycles']:,} | {figures['bound']:,.0f} | {part:.0f} | "
            f"{figures['seconds']:.2f} | {figures['peak']:.0f} |"
        )
    if len(found) > 1:
        slopes = [
            exponent(list(found), [each[key] for each in found.values()])
            for key in ("cycles", "seconds", "peak")
        ]
        made.append(
            f"| {name} | exponent | {slopes[0]:.2f} | | | {slopes[1]:.2f} | {slopes[2]:.2f} |"
        )
    print("\n".join(made), flush=True)
    return made


def main():
    names = script_arguments(__doc__, ("--write",))
    with tempfile.TemporaryDirectory() as folder:
        modules = export(Path(folder), [name for name in names if name != "--write"])
        table = [row for name, sizes in modules.items() for row in rows(name, sizes)]
    if "--write" in names:
        RESULTS.write_text("\n".join([*HEAD, *table]) + "\n")


if __name__ == "__main__":
    main()
