"""Designs of the shapes that win, two layers at full width: what the emitted C++ computes on the CPU is what the evaluator says, bit for bit, within the FIFOs' depths."""
import os
import subprocess
from dataclasses import replace

import pytest

from streamtensor import core, families, models, workflow
from streamtensor.decoder import Shape
from streamtensor.progress import Progress

LONG = os.environ.get("STC_TEST_MODE") == "long"
KINDS = {
    "decode": (lambda config: replace(Shape.of(config, "decode", 1024, 1), argmax=True), {"positions": 300, "ids": 77}),
    "both": (lambda config: replace(Shape.of(config, "prefill", 1024, 32), argmax=True, counted=True), {"positions": 100, "ids": 77, "tokens": 19}),
    "prefill": (lambda config: Shape.of(config, "prefill", 1024, 128), {"positions": 64, "ids": 77, "tokens": 128}),
}
CASES = [("gpt2-medium", "decode"), ("gpt2-medium", "both")]
if LONG:
    CASES += [("gpt2-medium", "prefill"), *((name, "decode") for name in ("qwen2.5-0.5b", "tinyllama-1.1b", "llama-3.2-1b", "gemma-3-1b", "mistral-7b"))]


@pytest.mark.parametrize("name, kind", CASES)
def test_the_emitted_text_computes_what_the_evaluator_says(core_built, tmp_path, monkeypatch, name, kind):
    layers = "n_layer" if "n_layer" in families.BUILT_IN[name] else "num_hidden_layers"
    monkeypatch.setitem(families.BUILT_IN, name, families.BUILT_IN[name] | {layers: 2})
    model = models.load(name, search=False)
    shape, integers = KINDS[kind]
    workflow.compile_files(model, shape(model.config), "u55c", tmp_path / "design", Progress(), "w4a8", values=False)
    beside = core.find(core.COMPILER).parent / "unit" / "beside"
    done = subprocess.run([beside, tmp_path / "design", *(f"{key}={value}" for key, value in integers.items())], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith(": the same\n"), done.stdout + done.stderr[-2000:]
