"""Core ATen operators: rows of bench/results/operators.md, made again."""

import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import operator_table  # noqa: E402

SAMPLES = operator_table.samples()
PARTS = 6  # designs for all operators
SHORT = (1, 4)
MODE = os.environ.get("STC_TEST_MODE")


def listed() -> dict[str, str]:
    return dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", operator_table.RESULTS.read_text(), re.M))


def test_each_core_operator_has_a_row_and_nineteen_of_twenty_work():
    rows = listed()
    assert sorted(rows) == operator_table.core_operators()
    works = [name for name in SAMPLES if rows[name] == "works"]
    assert len(works) >= 0.95 * len(SAMPLES)
    assert not any("WRONG" in text for text in rows.values())


@pytest.mark.parametrize("part", range(PARTS) if MODE == "long" else SHORT)
def test_what_is_said_to_work_works(part, core_built):
    rows = listed()
    names = [name for name in list(SAMPLES)[part::PARTS] if rows[name] == "works"]
    found = operator_table.verdicts({name: SAMPLES[name] for name in names})
    assert set(found.values()) == {"works"}, found
