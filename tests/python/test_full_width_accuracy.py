"""bench/full_width_accuracy.py: a design of a small model passes; what differs is seen."""

import os
import sys
from pathlib import Path

import pytest
import torch
from conftest import FAMILIES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import full_width_accuracy  # noqa: E402

from streamtensor import quantize  # noqa: E402
from streamtensor.language import builtin_models

LONG = os.environ.get("STC_TEST_MODE") == "long"


@pytest.fixture
def small(monkeypatch, core_built):
    monkeypatch.setitem(builtin_models.BUILT_IN, "small", FAMILIES["llama"])
    for name, value in dict(CONTEXT=64, PROMPT=3, NEW=6, CHUNK=4).items():
        monkeypatch.setattr(full_width_accuracy, name, value)


@pytest.mark.skipif(not LONG, reason="three designs are built")
def test_a_small_model_passes(small):
    text, good = full_width_accuracy.row("small", 2)
    assert good and "6 of 6" in text, text


@pytest.mark.skipif(not LONG, reason="takes as long again")
def test_other_bytes_in_the_cache_are_seen(small, monkeypatch):
    monkeypatch.setattr(quantize, "KV_LIMIT", 100)
    text, good = full_width_accuracy.row("small", 2)
    assert not good, text


@pytest.mark.skipif(not LONG, reason="a minute a model")
def test_a_model_at_full_width_passes(core_built):
    text, good = full_width_accuracy.row("gpt2", 2)
    assert good, text


def test_a_token_counts_as_wrong_where_pytorch_is_sure():
    rows = [
        (
            torch.zeros(1, 1, 2, 4, dtype=torch.int8),
            torch.tensor([0, 3]).to(torch.int8).reshape(1, 1, 2, 1).expand(1, 1, 2, 4),
        )
    ]
    for margin, wrong in ((0.5, 1), (0.01, 0)):
        against = full_width_accuracy.LaunchComparison(None)
        against.add(torch.tensor([1.0, 1.1]), torch.tensor([1.1 + margin, 1.1]), rows)
        against.off = [0.1]
        assert (
            against.token_mismatches(1) == (1, wrong)
            and against.tokens == 1
            and against.bytes == [(0.5, 3)]
        )
