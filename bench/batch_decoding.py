"""Measures the cost of several sequences per launch.

    python bench/batch_decoding.py [--batch N ...] [NAME]

A built-in model at full depth and width decodes N sequences, W4A8 on the U55C: milliseconds per
token of all sequences, simulated after 127, 511 and 1,023 tokens, with a launch overhead of 45 us
amortized over 16 tokens; and tokens per second, per sequence and in total. Prints a Markdown table.
"""

import argparse
import json
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from common import ROOT, amortized_token_ms, stc

sys.path.insert(0, str(ROOT / "python"))

from streamtensor.language import models  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402

POSITIONS, CONTEXT, TOKENS_PER_LAUNCH = (127, 511, 1023), 1024, 16
HEADINGS = [
    "sequences",
    *(f"after {count:,}, ms" for count in POSITIONS),
    *(f"tokens/s behind {count:,}: of each, of all" for count in (POSITIONS[0], POSITIONS[-1])),
    "MHz",
]


def row(model: models.Model, batch: int, folder: Path) -> str:
    source = folder.with_suffix(".mlir")
    source.write_text(
        model.lower(
            replace(StepShape.of(model.config, "decode", CONTEXT, 1), batch=batch, argmax=True)
        ).text
    )
    stc("compile", source, "--platform", "u55c", "--quant", "w4a8", "-o", folder)
    times = [
        amortized_token_ms(folder, TOKENS_PER_LAUNCH, positions=positions)
        for positions in POSITIONS
    ]
    speeds = [f"{1000 / time:.0f}, {1000 * batch / time:.0f}" for time in (times[0], times[-1])]
    clock = json.loads((folder / "report.json").read_text())["clock_mhz"]
    return (
        "| "
        + " | ".join([str(batch), *(f"{time:.3f}" for time in times), *speeds, str(clock)])
        + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="gpt2-medium", metavar="NAME")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 2, 4, 8])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    model = models.load(asked.name, search=False)
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|")
    with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        for batch in asked.batch:
            print(row(model, batch, Path(work) / f"batch{batch}"), flush=True)


if __name__ == "__main__":
    main()
