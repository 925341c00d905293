"""Measures how close the built-in models come to the limits of the board.

    python bench/board_limits.py [--write] [--clock MHZ ...] [NAME ...]

For each built-in family at full depth and width, W4A8 on the U55C: a decode design that selects the
token on the device, simulated after 127, 511 and 1,023 tokens; and a prefill design for 32 tokens,
simulated with an empty cache. The *floor* of decode is the time in which the board's memory reads
every weight once and the attended rows of the cache (of a sliding layer: those of its window). The
launch overhead of 45 us is amortized over 16 tokens, as in greedy generation. A second prefill
design takes 128 tokens; *products used* is the share of multiplications with weights in its cycles,
of those that the engine could do.

--write updates these rows in docs/explore.md.
"""

import argparse
import json
import math
import re
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from common import ROOT, Table, amortized_token_ms, simulated, stc

sys.path.insert(0, str(ROOT / "python"))

from streamtensor.language import models  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402

NAMES = [
    "gpt2-medium",
    "qwen2.5-0.5b",
    "tinyllama-1.1b",
    "llama-3.2-1b",
    "gemma-3-1b",
    "mistral-7b",
]
POSITIONS = (127, 511, 1023)
CONTEXT, TOKENS_PER_LAUNCH = 1024, 16
PROMPTS = (32, 128)
CLOCKS = (300, 250)
PLATFORM, SCHEME = "u55c", "w4a8"
BYTES = {"i8": 1, "f16": 2, "bf16": 2, "f32": 4}
HEADINGS = [
    "model",
    "MHz",
    *(f"after {count:,}, ms" for count in POSITIONS),
    "of the floor",
    *(f"{tokens} tokens, ms" for tokens in PROMPTS),
    "products used",
    "fullest die",
    "ports",
]


def built(model: models.Model, shape: StepShape, clock: int, folder: Path) -> dict:
    """The report; the clock is the platform's, or a lower one that is asked for."""
    source = folder.parent / f"{folder.name}.mlir"
    if not source.exists():
        source.write_text(model.lower(shape).text)
    stc(
        "compile",
        str(source),
        "--platform",
        PLATFORM,
        "--quant",
        SCHEME,
        "-o",
        str(folder),
        *([] if clock == CLOCKS[0] else ["--clock", str(clock)]),
    )
    return json.loads((folder / "report.json").read_text())


def attended(shape: StepShape, positions: int) -> float:
    """Which part of the cache's rows a token sees."""
    rows = [min(positions, window) if window else positions for window in shape.windows]
    return sum(rows) / (shape.past * shape.layers)


def floor_ms(report: dict, folder: Path, shape: StepShape, positions: int) -> float:
    """Of what memory brings for the whole cache, without the rows that are not attended."""
    states = [
        item
        for item in json.loads((folder / "manifest.json").read_text())["inputs"]
        if item["role"] == "state"
    ]
    cache = sum(BYTES[item["dtype"]] * math.prod(item["shape"]) for item in states)
    platform = json.loads((ROOT / "platforms" / f"{PLATFORM}.json").read_text())["memory"]
    bytes_a_ms = (
        platform["channels"]["value"]
        * platform["channel_gbps"]["value"]
        * platform["channel_efficiency"]["value"]
        * 1e6
    )
    return report["bounds"]["memory_ms"] - (1 - attended(shape, positions)) * cache / bytes_a_ms


def fullest_die(report: dict) -> str:
    name, part = max(
        (
            (name, die[name] / most)
            for die in report["dies"]
            for name, most in die["available"].items()
        ),
        key=lambda entry: entry[1],
    )
    return f"{100 * part:.0f} % of {name}"


def products_used(
    report: dict, folder: Path, model: models.Model, tokens: int, cycles: float
) -> float:
    """Share of the multiplications that the engine could do.

    Every weight meets every token; those of the head meet the last token only.
    """
    array = sum(
        process["unroll"] for process in report["kernels"] if re.search(r"_pe\d+$", process["name"])
    )
    inputs = json.loads((folder / "manifest.json").read_text())["inputs"]
    weights = sum(math.prod(item["shape"]) for item in inputs if item["dtype"] == "i4")
    head = model.config.vocab_size * model.config.hidden_size
    return (tokens * (weights - head) + head) / (array * cycles)


def prefill(name: str, model: models.Model, tokens: int, clock: int, folder: Path) -> list[str]:
    """Milliseconds to the first token, and the products used; dashes if there is no design."""
    design = folder / f"{name}-prefill{tokens}"
    try:
        report = built(
            model,
            replace(StepShape.of(model.config, "prefill", CONTEXT, tokens), argmax=True),
            clock,
            design,
        )
        cycles, launch = simulated(design, positions=0)
    except RuntimeError as error:
        print(f"{name}, prefill of {tokens}: {str(error)[:200]}", file=sys.stderr)
        return ["–", "–"]
    part = products_used(report, design, model, tokens, cycles * report["clock_mhz"] * 1e3)
    return [f"{launch:.2f}", f"{100 * part:.0f} %"]


def row(name: str, clock: int, folder: Path) -> str:
    model = models.load(name, search=False)
    shape = replace(StepShape.of(model.config, "decode", CONTEXT, 1), argmax=True)
    decode = folder / f"{name}-decode"
    report = built(model, shape, clock, decode)
    cells, parts = [], []
    for positions in POSITIONS:
        token = amortized_token_ms(decode, TOKENS_PER_LAUNCH, positions=positions)
        cells.append(f"{token:.3f}")
        parts.append(f"{100 * floor_ms(report, decode, shape, positions) / token:.0f}")
    (first, _), later_prompts = (prefill(name, model, tokens, clock, folder) for tokens in PROMPTS)
    return (
        "| "
        + " | ".join(
            [
                name,
                str(report["clock_mhz"]),
                *cells,
                "/".join(parts) + " %",
                first,
                *later_prompts,
                fullest_die(report),
                str(report["ports"]),
            ]
        )
        + " |"
    )


def key(line: str) -> tuple[str, str] | None:
    name, clock = line.removeprefix("| ").split(" | ")[:2]
    return (name, clock) if name in NAMES else None


TABLE = Table("explore.md", "board_limits.py", key)


def table(rows: dict[tuple[str, str], str]) -> str:
    order = sorted(rows, key=lambda at: (-int(at[1]), NAMES.index(at[0])))
    return "\n".join(
        [
            "| " + " | ".join(HEADINGS) + " |",
            "|---" * len(HEADINGS) + "|",
            *(rows[at] for at in order),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--clock", type=int, action="append", help="MHz (default: 300 and 250)")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = {}
    with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        for name in asked.names or NAMES:
            for clock in asked.clock or CLOCKS:
                made = row(name, clock, Path(work))
                rows[key(made)] = made
                print(made, flush=True)
                if asked.write:
                    TABLE.write(table({**TABLE.rows(), **rows}))


if __name__ == "__main__":
    main()
