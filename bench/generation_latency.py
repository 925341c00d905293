"""Measures how long a whole text takes on the card.

    python bench/generation_latency.py [--write] [--tokens N ...] [NAME ...]

For each built-in family at full depth and width, W4A8 on the U55C: a decode design, which reads
prompts token by token, and designs that are decode and prefill, which read up to N prompt tokens
per step. All select tokens on the device and run 16 steps per launch, each of a chunk of the prompt
or of one token. For prompts of 32 and 128 tokens and answers of the same length: the time to the
first token, and to the last. All chunks are simulated, and at most 9 evenly spaced single tokens;
the cycles of the steps between are interpolated linearly.

--write updates these rows in docs/explore.md.
"""

import argparse
import json
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from common import ROOT, Table, amortized_token_ms, simulated, stc

sys.path.insert(0, str(ROOT / "python"))

from streamtensor.language import models  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402
from streamtensor.workflow import FEW_TOKENS  # noqa: E402

NAMES = [
    "gpt2-medium",
    "qwen2.5-0.5b",
    "tinyllama-1.1b",
    "llama-3.2-1b",
    "gemma-3-1b",
    "mistral-7b",
]
LENGTHS, CONTEXT, TOKENS_PER_LAUNCH = (32, 128), 1024, 16
SAMPLES = 9
TOKENS = (FEW_TOKENS, 32)
HEADINGS = [
    "model",
    "design",
    "a token after 127, ms",
    "after 1,023",
    *(f"first token of {count}, ms" for count in LENGTHS),
    *(f"{count} : {count}, ms" for count in LENGTHS),
    "MHz",
]


class SimulatedDesign:
    """A design, simulated."""

    def __init__(self, model: models.Model, shape: StepShape, folder: Path):
        self.shape, self.folder = shape, folder
        source = folder.with_suffix(".mlir")
        source.write_text(model.lower(shape).text)
        stc("compile", str(source), "--platform", "u55c", "--quant", "w4a8", "-o", str(folder))
        self.clock = json.loads((folder / "report.json").read_text())["clock_mhz"]

    def token(self, positions: int) -> float:
        """Milliseconds of one token, its part of a launch of 16."""
        return amortized_token_ms(
            self.folder,
            TOKENS_PER_LAUNCH,
            positions=positions,
            **({"tokens": 1} if self.shape.dynamic_tokens else {}),
        )

    def tokens(self, first: int, count: int) -> float:
        """So many tokens from position `first` on, one a step."""
        if count <= 0:
            return 0
        numbers = sorted({round(sample * (count - 1) / (SAMPLES - 1)) for sample in range(SAMPLES)})
        times = [self.token(first + number) for number in numbers]
        between = sum(
            (after - before) * (early + late) / 2
            for before, after, early, late in zip(numbers, numbers[1:], times, times[1:])
        )
        return between + (times[0] + times[-1]) / 2

    def prompt(self, count: int) -> float:
        """In launches of up to 16 chunks."""
        each = TOKENS_PER_LAUNCH * self.shape.tokens
        pieces = [(first, min(each, count - first)) for first in range(0, count, each)]
        return sum(
            simulated(self.folder, -(-tokens // self.shape.tokens), positions=first, tokens=tokens)[
                1
            ]
            for first, tokens in pieces
        )

    def text(self, prompt: int, new: int) -> float:
        return (
            self.prompt(prompt) if self.shape.dynamic_tokens else self.tokens(0, prompt)
        ) + self.tokens(prompt, new - 1)


def row(name: str, kind: str, card: SimulatedDesign) -> str:
    cells = [f"{card.token(positions):.3f}" for positions in (127, 1023)]
    cells += [f"{card.text(count, 1):.1f}" for count in LENGTHS] + [
        f"{card.text(count, count):.1f}" for count in LENGTHS
    ]
    return "| " + " | ".join([name, kind, *cells, f"{card.clock:g}"]) + " |"


def key(line: str) -> tuple[str, str] | None:
    name, kind = line.removeprefix("| ").split(" | ")[:2]
    return (name, kind) if name in NAMES else None


TABLE = Table("explore.md", "generation_latency.py", key)


def table(rows: dict[tuple[str, str], str]) -> str:
    """Of a model decode first, then designs of more and more tokens."""
    order = sorted(
        rows,
        key=lambda at: (
            NAMES.index(at[0]),
            [int(word) for word in at[1].split() if word.isdigit()],
        ),
    )
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
    parser.add_argument(
        "--tokens",
        type=int,
        action="append",
        metavar="N",
        help=f"of a step of prefill (default {' and '.join(map(str, TOKENS))})",
    )
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        for name in asked.names or NAMES:
            model = models.load(name, search=False)
            shapes = {
                "decode": replace(StepShape.of(model.config, "decode", CONTEXT, 1), argmax=True)
            }
            for count in asked.tokens or TOKENS:
                shapes[f"both, {count} tokens"] = replace(
                    StepShape.of(model.config, "prefill", CONTEXT, count),
                    argmax=True,
                    dynamic_tokens=True,
                )
            for kind, shape in shapes.items():
                made = row(
                    name, kind, SimulatedDesign(model, shape, Path(work) / f"{name}-{shape.tokens}")
                )
                print(made, flush=True)
                if asked.write:
                    TABLE.write(table({**TABLE.rows(), key(made): made}))


if __name__ == "__main__":
    main()
