"""Every family that AutoModelForCausalLM knows, as a tiny model: its greedy tokens and logits against
transformers, in decode, prefill and decode, and a batch of two.

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
    rows = {}
    for family in names or sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        with tempfile.TemporaryDirectory() as folder:
            rows[family] = decoder_families.row(family, Path(folder), "--designs" in arguments)
        print(f"{family}\t{rows[family]}", flush=True)
    if "--write" in arguments:
        old = RESULTS.read_text().splitlines() if RESULTS.is_file() and names else []
        kept = dict(line.split("\t", 1) for line in old)
        RESULTS.write_text(
            "".join(f"{name}\t{said}\n" for name, said in sorted({**kept, **rows}.items()))
        )
    return any(said.startswith("WRONG") for said in rows.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
