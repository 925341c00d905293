"""Measures what each optimization is worth, as a ladder of designs for decoding one token.

    python bench/ablation_ladder.py [--position COUNT] [--platform NAME] [--quant SCHEME]
                                    [--floor MS] MODEL.mlir

The ladder leads from one kernel per operator, launched layer by layer, to one shared matmul engine.
Each rung is a set of options of `stc compile`, compiled and simulated here, so that the compiler
itself shows the gain over the rung below. A launch per layer is computed: the cycles of one launch,
and the launch overhead once per layer. Prints a Markdown table.
"""

import argparse
import json
import tempfile
from pathlib import Path

from common import stc

SPATIAL = ["--matmul", "spatial"]
# hardly any memory to prefetch whole layers of weights: FIFOs of loaders hold 32 words
NO_PREFETCH = ["--prefetch-divisor", "1024"]
ENGINE_PES = (4, 8, 16)

# Name of a rung, options of `stc compile`, whether it is launched layer by layer.
RUNGS = [
    (
        "one kernel per operator, uniform parallelism, one launch per layer",
        [*SPATIAL, *NO_PREFETCH, "--parallelism-search", "uniform"],
        True,
    ),
    ("one launch per token", [*SPATIAL, *NO_PREFETCH, "--parallelism-search", "uniform"], False),
    (
        "parallelism by intensity",
        [*SPATIAL, *NO_PREFETCH, "--parallelism-search", "intensity"],
        False,
    ),
    ("joint parallelism search", [*SPATIAL, *NO_PREFETCH], False),
    ("prefetch of whole layers of weights", SPATIAL, False),
    *[
        (
            f"one matmul engine of {pes} PEs, hardly any prefetch",
            ["--engine-pes", str(pes), *NO_PREFETCH],
            False,
        )
        for pes in ENGINE_PES
    ],
    ("prefetch of whole layers of weights", ["--engine-pes", str(ENGINE_PES[-1])], False),
    ("as many PEs as fit", [], False),
]


def layers_of(folder: Path) -> int:
    """Trips of the rolled layer; 1 where there is none."""
    marks = [
        line.split("stream.layers = ")[1]
        for line in (folder / "design.mlir").read_text().splitlines()
        if "stream.layers = " in line
    ]
    return max((int(mark.split(" ")[0]) for mark in marks), default=1)


def built(
    model: Path, folder: Path, options: list[str], by_layer: bool, asked: argparse.Namespace
) -> dict:
    """A rung: its launches, cycles, milliseconds with the launches, and what the design takes."""
    stc(
        "compile",
        str(model),
        "--platform",
        asked.platform,
        "--quant",
        asked.quant,
        "-o",
        str(folder),
        *options,
    )
    extent = ["--extent", f"positions={asked.position}"] if asked.position >= 0 else []
    simulated, report = (
        json.loads(stc("simulate", str(folder), "--json", *extent)),
        json.loads((folder / "report.json").read_text()),
    )
    launches = layers_of(folder) if by_layer else 1
    once = simulated["latency_ms"] - simulated["cycles"] / (simulated["clock_mhz"] * 1e3)
    return {
        "launches": launches,
        "cycles": simulated["cycles"],
        "ms": simulated["latency_ms"] + (launches - 1) * once,
        "dsp": report["resources"]["dsp"],
        "fifos": report["fifos"]["bytes"],
        "ports": report["ports"],
    }


def row(name: str, options: list[str], found: dict | str, last: float | None, floor: float) -> str:
    if isinstance(found, str):
        return f"| {name} | `{' '.join(options)}` | {found} | | | | |"
    gain = f"{last / found['ms']:.2f} x" if last else ""
    return (
        f"| {name} | `{' '.join(options)}` | {found['cycles']:,} | {found['ms']:.3f} | {gain} | "
        f"{100 * floor / found['ms']:.0f} % | {found['dsp']:,}, {found['fifos'] / 1e6:.1f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "--position",
        type=int,
        default=511,
        help="rows that the cache holds; -1: the model has no input `positions`",
    )
    parser.add_argument("--platform", default="u55c")
    parser.add_argument("--quant", default="w4a8")
    parser.add_argument(
        "--floor",
        type=float,
        default=0.492,
        help="ms that reading every byte once takes (default: GPT-2 medium's after 511 tokens)",
    )
    asked = parser.parse_args()
    print(
        "| | options | cycles | ms with launches | gain | of the floor | DSP, FIFOs |\n"
        "|---|---|---|---|---|---|---|"
    )
    last = None
    with tempfile.TemporaryDirectory() as folder:
        for name, options, by_layer in RUNGS:
            try:
                found = built(asked.model, Path(folder) / "design", options, by_layer, asked)
            except RuntimeError as error:
                found = str(error).splitlines()[0]
            print(row(name, options, found, last, asked.floor), flush=True)
            last = found["ms"] if isinstance(found, dict) else last


if __name__ == "__main__":
    main()
