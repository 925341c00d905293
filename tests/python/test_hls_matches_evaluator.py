"""Designs of the shapes that win, two layers at full width: what the emitted C++ computes on the
CPU is what the evaluator says, bit for bit, within the FIFOs' depths.
"""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from streamtensor import core, workflow
from streamtensor.language import builtin_models, models
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress

LONG = os.environ.get("STC_TEST_MODE") == "long"
KINDS = {
    "decode": (
        lambda config: replace(StepShape.of(config, "decode", 1024, 1), argmax=True),
        {"positions": 300, "ids": 77},
    ),
    "both": (
        lambda config: replace(
            StepShape.of(config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True
        ),
        {"positions": 100, "ids": 77, "tokens": 19},
    ),
    "prefill": (
        lambda config: StepShape.of(config, "prefill", 1024, 128),
        {"positions": 64, "ids": 77, "tokens": 128},
    ),
}
CASES = [("gpt2-medium", "decode"), ("gpt2-medium", "both"), ("qwen2.5-0.5b", "decode")]
if LONG:
    CASES += [
        ("gpt2-medium", "prefill"),
        *(
            (name, "decode")
            for name in ("tinyllama-1.1b", "llama-3.2-1b", "gemma-3-1b", "mistral-7b")
        ),
    ]


def design_of(name: str, kind: str, folder: Path, monkeypatch) -> dict[str, int]:
    """Two layers at full width; the integers of a launch."""
    layers = "n_layer" if "n_layer" in builtin_models.BUILT_IN[name] else "num_hidden_layers"
    monkeypatch.setitem(builtin_models.BUILT_IN, name, builtin_models.BUILT_IN[name] | {layers: 2})
    model = models.load(name, search=False)
    shape, integers = KINDS[kind]
    workflow.compile_files(
        model, shape(model.config), "u55c", folder, Progress(), "w4a8", values=False
    )
    return integers


def text_of(folder: Path) -> str:
    (text,) = (path.read_text() for path in (folder / "hls").glob("*.cpp"))
    return text


@pytest.mark.parametrize("name, kind", CASES)
def test_the_emitted_text_computes_what_the_evaluator_says(
    core_built, tmp_path, monkeypatch, name, kind
):
    integers = design_of(name, kind, tmp_path / "design", monkeypatch)
    beside = core.find_file(core.COMPILER).parent / "unit" / "compare_design"
    done = subprocess.run(
        [beside, tmp_path / "design", *(f"{key}={value}" for key, value in integers.items())],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.endswith(": the same\n"), (
        done.stdout + done.stderr[-2000:]
    )
    # queries, keys and values in one loop of a PE, and both products of the gate; the head, and
    # its definition
    if (name, kind) == ("qwen2.5-0.5b", "decode"):
        assert len(re.findall(r"\bp\d+_pe0_datapath\(", text_of(tmp_path / "design"))) == 6


def test_scores_of_two_groups_of_numbers_come_one_a_cycle(core_built, tmp_path, monkeypatch):
    design_of("gemma-3-1b", "decode", tmp_path / "design", monkeypatch)
    processes = re.findall(
        r"^static void p\d+_(k\d+_scaled)\([^)]*\)\n\{\n(.*?)^\}",
        text_of(tmp_path / "design"),
        re.M | re.S,
    )
    assert len(processes) == 2 and all(
        set(re.findall(r"pipeline II=(\d+) ", body)) == {"1"} for _, body in processes
    )
