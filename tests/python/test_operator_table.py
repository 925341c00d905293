"""Core ATen operators: rows of bench/results/operators.md, made again."""

import random
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import operator_table  # noqa: E402

SAMPLES = operator_table.samples()
PARTS = 10  # parts of the table; `make test` makes the first one
SEED = 0  # by which operators fall into parts


def listed() -> dict[str, str]:
    return dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", operator_table.RESULTS.read_text(), re.M))


def names_of(part: int) -> list[str]:
    names = sorted(SAMPLES)
    random.Random(SEED).shuffle(names)
    return names[part::PARTS]


def test_each_core_operator_has_a_row_and_nineteen_of_twenty_work():
    rows = listed()
    assert sorted(rows) == operator_table.core_operators()
    works = [name for name in SAMPLES if rows[name] == "works"]
    assert len(works) >= 0.95 * len(SAMPLES)
    refused = [text for text in rows.values() if text != "works"]
    assert all(re.match(r"(refused|not tried): .", text) for text in refused), refused


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)
def test_what_the_table_says_happens(part, core_built):
    rows = listed()
    made = operator_table.verdicts({name: SAMPLES[name] for name in names_of(part)})
    assert made == {name: rows[name] for name in made}
