"""Compares the strategies of FIFO sizing.

    python bench/fifo_strategies.py [--max-iterations COUNT] MODULE.mlir ...

For each module and each strategy of `stc compile --fifo-sizing`: bytes of the required depths and
of the memories built, cycles of a launch (simulated if that takes at most COUNT iterations, by
default 100M, else predicted), and seconds of FIFO sizing.
"""

import json
import sys
import tempfile
from pathlib import Path

from common import script_arguments, stc

STRATEGIES = ["safe", "normal", "conservative", "lp", "trim", "minimal"]


def simulated(design, iterations):
    """Cycles; None if they take more iterations."""
    try:
        return json.loads(stc("simulate", design, "--json", "--max-iterations", iterations))[
            "cycles"
        ]
    except RuntimeError:
        return None


def compiled(module, strategy, iterations):
    """Figures of the module's design under the strategy, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        design = Path(folder) / "design"
        try:
            stc(
                "compile",
                module,
                "--platform",
                "u55c",
                "--fifo-sizing",
                strategy,
                "-o",
                design,
                *(["--max-iterations", iterations] if strategy == "minimal" and iterations else []),
            )
        except RuntimeError as error:
            return None, str(error).splitlines()[0]
        report = json.loads((design / "report.json").read_text())
        stages = json.loads((design / "timing.json").read_text())["stages"]
        seconds = sum(stage["seconds"] for stage in stages if stage["name"] == "size_fifos")
        cycles = report["cycles"].get("simulated")
        if cycles is None:
            cycles = simulated(design, iterations or "100M")
        return (report["fifos"], cycles, report["cycles"]["model"], seconds), None


def study(module, iterations):
    """Lines of the table for one module."""
    for strategy in STRATEGIES:
        found, why = compiled(module, strategy, iterations)
        if not found:
            print(f"{module.stem:24} {strategy:13} {why}", flush=True)
            continue
        fifos, cycles, model, seconds = found
        how = "simulated" if cycles else "predicted"
        print(
            f"{module.stem:24} {strategy:13} {fifos['needed_bytes']:12} {fifos['bytes']:12} "
            f"{cycles or model:14} {how:10} {seconds:8.2f}",
            flush=True,
        )


def main(arguments):
    iterations = None
    if arguments[:1] == ["--max-iterations"] and len(arguments) > 1:
        iterations, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    print(
        f"{'module':24} {'strategy':13} {'needed bytes':>12} {'built bytes':>12} "
        f"{'cycles':>14} {'':10} {'seconds':>8}"
    )
    for name in arguments:
        study(Path(name), iterations)


if __name__ == "__main__":
    main(script_arguments(__doc__, ("--max-iterations",)))
