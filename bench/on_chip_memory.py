"""Measures the on-chip memory of a layer.

    python bench/on_chip_memory.py [--write] [--modules FOLDER] [--fifo-sizing STRATEGY] [NAME ...]

For built-in families, two layers at full width in f32 on the U55C: decode after 1,023 tokens, and
32 and 128 prompt tokens without a cache. Bytes of one layer from report.json (`intermediates`):
converters, accumulators and arrays of kernels, FIFOs, shared buffers and layer feedback, relative
to the intermediates of the unfused model, before and after elementwise fusion; `held` is converters
and accumulators alone, relative to the latter.

--write updates these rows in docs/explore.md. --modules stores the exported modules in FOLDER, and
reuses those that exist.
"""

import argparse
import json
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

from common import ROOT, Table, stc

sys.path.insert(0, str(ROOT / "python"))

from full_width_accuracy import shortened  # noqa: E402

from streamtensor.language import models  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402

NAMES = ["gpt2-medium", "qwen2.5-0.5b", "tinyllama-1.1b", "gemma-3-1b", "mistral-7b"]
CONTEXT, LAYERS, PLATFORM = 1024, 2, "u55c"
PROMPTS = {"prefill of 32": 32, "prefill of 128": 128}
PHASES = ["decode", *PROMPTS]
KINDS = ["converters", "accumulators", "fifos", "buffers", "layer_feedback"]
HEADINGS = [
    "model",
    "phase",
    "kernels",
    "unfused, KB",
    *(f"{kind}, KB" for kind in ("converters", "sums", "FIFOs", "buffers", "layer_feedback")),
    "% of unfused before fusion",
    "after",
    "held",
]


def key(line: str) -> tuple[str, str] | None:
    name, phase = line.removeprefix("| ").split(" | ")[:2]
    return (name, phase) if phase in PHASES else None


TABLE = Table("explore.md", "on_chip_memory.py", key)


def shape_of(config, phase: str) -> StepShape:
    if phase not in PROMPTS:
        return replace(StepShape.of(config, phase, CONTEXT, 1), argmax=True)
    tokens = PROMPTS[phase]
    return replace(StepShape.of(config, "prefill", tokens + 1, tokens), past=0)


def module_of(model: models.Model, phase: str, folder: Path) -> Path:
    path = folder / f"{model.name}-{phase.replace(' ', '-')}.mlir"
    if not path.exists():
        path.write_text(model.lower(shape_of(model.config, phase)).text)
    return path


def row(name: str, phase: str, module: Path, fifo: str) -> str:
    with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        stc(
            "compile",
            module,
            "--platform",
            PLATFORM,
            "--fifo-sizing",
            fifo,
            "-o",
            Path(work) / "design",
        )
        found = json.loads((Path(work) / "design" / "report.json").read_text())["intermediates"]
    before, after = found["unfused_bytes"], found["unfused_after_elementwise_bytes"]
    held_bytes = found["converters"] + found["accumulators"]
    return (
        "| "
        + " | ".join(
            [
                name,
                phase,
                f"{found['unfused_kernels']}, {found['elementwise_fused_kernels']}",
                f"{before / 1e3:.0f}, {after / 1e3:.0f}",
                *(f"{found[kind] / 1e3:.1f}" for kind in KINDS),
                f"{100 * found['on_chip_bytes'] / before:.1f}",
                f"{100 * found['on_chip_bytes'] / after:.1f}",
                f"{100 * held_bytes / after:.1f}",
            ]
        )
        + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--modules", type=Path, metavar="FOLDER")
    parser.add_argument("--fifo-sizing", default="trim", metavar="STRATEGY")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = TABLE.rows()
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|")
    with tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        folder = asked.modules or Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        for name in asked.names:
            model = shortened(name, LAYERS, "sliding_attention")
            for phase in PHASES:
                rows[name, phase] = row(
                    name, phase, module_of(model, phase, folder), asked.fifo_sizing
                )
                print(rows[name, phase], flush=True)
    if asked.write:
        order = [(name, phase) for name in NAMES for phase in PHASES]
        TABLE.write(
            "\n".join(
                [
                    "| " + " | ".join(HEADINGS) + " |",
                    "|---" * len(HEADINGS) + "|",
                    *(rows[each] for each in order if each in rows),
                ]
            )
        )


if __name__ == "__main__":
    main()
