"""Every family that AutoModelForCausalLM knows, as a tiny model: its greedy tokens and logits
against transformers, in prefill and decode, and in decode of a batch of two.

    decoder_families.py [--write] [--designs] [FAMILY ...]

Without --designs the exported steps run in PyTorch; with it they are compiled for the U55C and run
on the CPU. --write renews bench/decoder_families.tsv and the table in docs/models.md.
"""

import logging
import re
import sys
import tempfile
import warnings
from pathlib import Path

from common import ROOT, Table, script_arguments

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]
RESULTS = ROOT / "bench" / "decoder_families.tsv"
MOST_NAMED = 16  # families that a row of the table lists
TABLE = Table("models.md", "decoder_families.py", lambda line: line)


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
            write(rows)
    return wrong


def read() -> dict[str, list[str]]:
    """What became of each family: as a step in PyTorch, and as a design."""
    lines = (line.split("\t") for line in RESULTS.read_text().splitlines())
    return {name: cells for name, *cells in lines}


def write(rows: dict[str, list[str]]) -> None:
    RESULTS.write_text(
        "".join("\t".join((name, *cells)) + "\n" for name, cells in sorted(rows.items()))
    )
    TABLE.write(table(rows))


def table(rows: dict[str, list[str]]) -> str:
    """The families of each result of their designs; of their steps, where these are refused."""
    groups: dict[str, list[str]] = {}
    for family, (step, design) in sorted(rows.items()):
        groups.setdefault(kind(design or step, bool(design)), []).append(family)
    none = groups.pop("no tiny model", [])
    alone = [said for said, each in groups.items() if len(each) == 1 and "refused" in said]
    if alone:
        groups["refused, each for its own reason"] = [groups.pop(said)[0] for said in alone]
    lines = [
        f"| {said} ({len(families)}) | {named(families)} |"
        for said, families in sorted(groups.items(), key=order)
    ]
    made = len(rows) - len(none)
    equal = sum(len(families) for said, families in groups.items() if said.startswith("equal"))
    return "\n".join(
        [
            "| as designs | families |",
            "|---|---|",
            *lines,
            "",
            f"{equal} of {made} are equal; {len(none)} have no tiny model.",
        ]
    )


def named(families: list[str]) -> str:
    """The families, where they are few; all are in the file of results."""
    few = len(families) <= MOST_NAMED
    return " ".join(families) if few else "[results](../bench/decoder_families.tsv)"


def order(group: tuple[str, list[str]]):
    said, families = group
    return not said.startswith("equal"), "step" in said, -len(families), said


def kind(said: str, design: bool) -> str:
    """What became of a family, in words that families share."""
    if said.startswith("none"):
        return "no tiny model"
    said = re.sub(r"a model of type '[^']*':? ?|, \de-\d+| as new ones", "", said)
    said = ": ".join(said.split(": ")[:2])
    return said if design or not said.startswith("equal") else f"{said} as a step"


if __name__ == "__main__":
    sys.exit(main(script_arguments(__doc__, ("--write", "--designs"))))
