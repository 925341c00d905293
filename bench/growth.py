"""Measures how time, compile time and memory grow with the size of a module.

    growth.py [NAME ...]    prints rows (default: of all operators and axes)
    growth.py --write       writes bench/results/growth.md

An operator, alone on the board, is compiled at three sizes; an axis of a small network is doubled.
A row gives the time of a launch's cycles, the larger bound of memory and of products by the DSPs
that kernels may have, the compiler's seconds of a CPU and its peak memory. The exponents are fitted
through the sizes: 1 is linear.
"""

import collections
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, STC, script_arguments
from dense_sweep import board_of, geomean

RESULTS = ROOT / "bench" / "results" / "growth.md"
BOARD = "u55c"
LONGEST = 300  # seconds of a compilation
DSP_SHARE = 0.6  # of the card for kernels
DSP = 5  # of a product and its sum in f32
HEAD = [
    "# Growth",
    "",
    "Launches of one operator or a small network on the u55c; `bench/growth.py --write` makes the",
    "table. Bound: the larger of memory, inputs and results once through all channels, and of",
    "products by 60 % of the DSPs at the board's clock. Without the launch itself.",
    "",
    "| what | size | us | bound us | % | compile s | peak MiB |",
    "|---|---|---|---|---|---|---|",
]


def measure(source: Path) -> dict | None:
    """Of the compiler alone; None: it refuses, or takes longer than LONGEST."""
    design = source.with_suffix(".design")
    command = [STC, "compile", str(source), "--platform", BOARD, "-o", str(design)]
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
    steps = collections.Counter()
    for stage in json.loads((design / "timing.json").read_text())["stages"]:
        steps[stage["name"]] += stage["steps"]
    cycles = report["cycles"]
    return {
        "us": cycles.get("simulated", cycles["model"]) / report["clock_mhz"],
        "seconds": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
        "steps": steps,
    }


def exponent(sizes: list[int], figures: list[float]) -> float:
    """Slope of the line through the logarithms."""
    x, y = ([math.log(max(each, 1e-9)) for each in row] for row in (sizes, figures))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    above = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - mean_x) ** 2 for a in x)


def export(folder: Path, names: list[str], sizes: tuple[int, ...] = ()) -> dict[str, list[dict]]:
    """By name its modules, as growth_modules.py lists them. sizes: others than the table's."""
    script = Path(__file__).with_name("growth_modules.py")
    done = subprocess.run(
        [sys.executable, script, folder, ",".join(map(str, sizes)), *names],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr.strip())
    modules = {}
    for row in json.loads((folder / "index.json").read_text()):
        modules.setdefault(row["name"], []).append(row)
    return modules


def bound_us(board: dict, module: dict) -> float:
    """Microseconds in which all channels bring its bytes, and the DSPs for kernels its products."""
    memory = {key: row["value"] for key, row in board["memory"].items()}
    rate = memory["channels"] * memory["channel_gbps"] * memory["channel_efficiency"] * 1e3
    dsp = sum(die["dsp"]["value"] for die in board["dies"])
    products = dsp * DSP_SHARE / DSP * board["clock_mhz"]["value"]
    return max(module["bytes"] / rate, module["terms"] / products)


def rows(name: str, modules: list[dict], folder: Path, parts: list[float]) -> list[str]:
    """parts: takes those of the bound that the modules reach."""
    made, found, board = [], {}, board_of(BOARD)
    for module in modules:
        head = f"| {name} | {module['size']:,} |"
        figures = measure(folder / module["file"]) if module["file"] else None
        if not figures:
            print(module.get("message", ""), file=sys.stderr)
            made.append(f"{head} refused | | | | |")
            continue
        found[module["size"]] = figures
        bound = bound_us(board, module)
        parts.append(bound / figures["us"])
        made.append(
            f"{head} {figures['us']:,.1f} | {bound:,.1f} | {100 * parts[-1]:.0f} | "
            f"{figures['seconds']:.2f} | {figures['peak']:.0f} |"
        )
    if len(found) > 1:
        slopes = [
            exponent(list(found), [each[key] for each in found.values()])
            for key in ("us", "seconds", "peak")
        ]
        made.append(
            f"| {name} | exponent | {slopes[0]:.2f} | | | {slopes[1]:.2f} | {slopes[2]:.2f} |"
        )
    print("\n".join(made), flush=True)
    return made


def main():
    names = script_arguments(__doc__, ("--write",))
    parts: list[float] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        modules = export(folder, [name for name in names if name != "--write"])
        table = [row for name, sizes in modules.items() for row in rows(name, sizes, folder, parts)]
    summary = (
        f"Of {sum(map(len, modules.values()))} modules {len(parts)} compile. They reach "
        f"{100 * geomean(parts):.0f} % of the bound in the geometric mean, the worst "
        f"{100 * min(parts):.1f} %."
    )
    print(summary)
    if "--write" in names:
        RESULTS.write_text("\n".join([*HEAD[:-3], summary, *HEAD[-3:], *table]) + "\n")


if __name__ == "__main__":
    main()
