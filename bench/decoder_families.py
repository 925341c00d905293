"""Every family that AutoModelForCausalLM knows, as a tiny model: its greedy tokens and logits
against transformers, in decode, prefill and decode, and a batch of two.

    python bench/decoder_families.py [--write] [--designs] [FAMILY ...]

Without --designs the exported steps run in PyTorch; with it they are compiled for the U55C and run
on the CPU. --write renews bench/decoder_families.tsv.
"""

import logging
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
RESULTS = ROOT / "bench" / "decoder_families.tsv"


def main(arguments: list[str]) -> int:
    import decoder_families
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    names = [name for name in arguments if not name.startswith("--")]
    column, wrong = 1 if "--designs" in arguments else 0, False
    rows = read() if RESULTS.is_file() else {}
    for family in names or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        with tempfile.TemporaryDirectory() as folder:
            said = decoder_families.row(family, Path(folder), bool(column))
        print(f"{family}\t{said}", flush=True)
        rows.setdefault(family, ["", ""])[column] = said
        wrong |= said.startswith("WRONG")
        if "--write" in arguments:
            RESULTS.write_text(
                "".join("\t".join((name, *cells)) + "\n" for name, cells in sorted(rows.items()))
            )
    return wrong


def read() -> dict[str, list[str]]:
    """What became of each family: as a step in PyTorch, and as a design."""
    lines = (line.split("\t") for line in RESULTS.read_text().splitlines())
    return {name: cells for name, *cells in lines}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
