"""What users expect of the figures of one family: a design for fewer tokens is no slower at the
same position, logits cost next to nothing beside the most likely token, and the model of time
agrees with the simulation.
"""

import json
from dataclasses import replace

import pytest
from conftest import stc

from streamtensor.language import models
from streamtensor.language.decoder_step import StepShape

FAMILIES = [
    "gpt2-medium",
    "qwen2.5-0.5b",
    "tinyllama-1.1b",
    "llama-3.2-1b",
    "gemma-3-1b",
    "mistral-7b",
]


def decode_design(folder, name: str, context: int, argmax: bool = True):
    model = models.load(name, search=False)
    shape = replace(StepShape.of(model.config, "decode", context, 1), argmax=argmax)
    source = folder / f"{name}-{context}-{argmax}.mlir"
    source.write_text(model.lower(shape).text)
    design = source.with_suffix("")
    stc("compile", source, "--quant", "w4a8", "-o", design)
    return design


def simulated_ms(design, position: int) -> float:
    text = stc("simulate", design, "--json", f"--extent=positions={position}").stdout
    found = json.loads(text)
    return found["cycles"] / (found["clock_mhz"] * 1e3)


def model_error(design) -> float:
    """How far the modeled cycles of a launch are from the simulated ones, relative to these."""
    cycles = json.loads((design / "report.json").read_text())["cycles"]
    return abs(cycles["model"] / cycles["simulated"] - 1)


def check_smaller(folder, name: str, contexts: list[int]) -> None:
    """Each design beside that for the largest context, at the smaller one's last position."""
    largest = decode_design(folder, name, contexts[-1])
    for context in contexts[:-1]:
        smaller = decode_design(folder, name, context)
        position = context - 1
        took, others = simulated_ms(smaller, position), simulated_ms(largest, position)
        assert took <= 1.01 * others, (context, took, others)
        assert model_error(smaller) <= 0.03, context


def test_a_smaller_context_is_not_slower(tmp_path):
    check_smaller(tmp_path, "gpt2-medium", [64, 128, 1024])


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_no_smaller_context_is_slower(tmp_path, name):
    check_smaller(tmp_path, name, [64, 128, 256, 512, 1024])


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_logits_cost_next_to_nothing(tmp_path, name):
    token = decode_design(tmp_path, name, 1024)
    logits = decode_design(tmp_path, name, 1024, argmax=False)
    for position in (127, 1023):
        took, others = simulated_ms(logits, position), simulated_ms(token, position)
        assert took <= 1.02 * others, (position, took, others)
