"""Layers with a sliding window read the rows of their window only: the same numbers as PyTorch's,
whatever stands in the others, and fewer cycles.
"""

import json
import os
import re
from pathlib import Path

import pytest
import torch
from conftest import TorchDesign, small_case, stc
from test_quantized_design import reference, worst

from streamtensor import quantize, workflow
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress

CONTEXT, TOKENS, WINDOW, BLOCK = 300, 16, 24, 128
# position, tokens
LAUNCHES = (
    (0, 1),
    (0, 16),
    (WINDOW - 1, 1),
    (WINDOW, 16),
    (BLOCK + 40, 7),
    (278, 1),
    (280, 16),
    (CONTEXT - 1, 1),
)
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]


def case_of(folder, family: str = "gemma3"):
    changes = {"layer_types": LAYERS, "num_hidden_layers": 3} if family == "gemma3" else {}
    return small_case(
        folder,
        family,
        CONTEXT,
        **{"max_position_embeddings": CONTEXT, "sliding_window": WINDOW, **changes},
    )


def outside_window(position: int, tokens: int, scheme: str | None) -> range:
    """Rows that no sliding layer may read: all older ones, or whole blocks of them, which count
    from the first token of the launch.
    """
    tile = BLOCK if scheme else 1
    room = 0 if tokens == 1 else -tokens % tile  # one row comes behind those of the past
    return range(room, room + max(position - (WINDOW - 1) - room, 0) // tile * tile)


def fill(design, expected, shape, position: int, scheme: str | None):
    """The same random rows for both sides; NaN in rows of the design that are not there."""
    for number, name in enumerate(shape.cache_names()):
        rows = torch.randn(
            shape.cache_shape(name),
            generator=torch.Generator().manual_seed(1000 * position + number),
        )
        expected.write(name, rows)
        lead_rows, states = design.lead_rows(name), {name: rows}
        if scheme:
            whole, scale = quantize.round_rows(rows, quantize.KV_LIMIT)
            states = {
                name: whole.to(torch.int8),
                f"{name}.scale": scale.reshape(rows.shape[:3]).half(),
            }
        for part, value in states.items():
            empty = design.read(part)
            # of blocks, the others are there as well
            empty.fill_(0 if scheme else float("nan"))
            empty[:, :, lead_rows : lead_rows + position] = value[:, :, :position]
            design.write(part, empty)


def poison(design, rows: range, layer: int, scheme: str | None):
    for name in (f"k.{layer}", f"v.{layer}"):
        part, lead_rows = name + (".scale" if scheme else ""), design.lead_rows(name)
        value = design.read(part)
        value[:, :, lead_rows + rows.start : lead_rows + rows.stop] = float("nan")
        design.write(part, value)


def launch(design, shape, ids: list[int], position: int) -> torch.Tensor:
    design.write("ids", torch.tensor([ids + [0] * (shape.tokens - len(ids))]))
    design.write("positions", torch.tensor([[position]]))
    if shape.phase == "prefill":
        design.write("tokens", torch.tensor([[len(ids)]]))
    design.launch()
    return design.read("logits").reshape(-1)


LONG = os.environ.get("STC_TEST_MODE") == "long"


@pytest.mark.parametrize(
    "phases, scheme",
    [(["prefill"], None), (["decode"], "w4a8")]
    + ([(["decode", "prefill"], None), (["decode", "prefill"], "w4a8")] if LONG else []),
)
def test_nothing_older_than_the_window_is_read(phases, scheme, core_built, tmp_path):
    """Several tokens go through prefill, one through decode, where the design has both."""
    case = case_of(tmp_path / "model")
    shapes = {phase: StepShape.of(case.model.config, phase, CONTEXT, TOKENS) for phase in phases}
    lowered = workflow.compile_phases(
        case.model, list(shapes.values()), "u55c", tmp_path / "design", Progress(), scheme
    )
    lowered = lowered if len(phases) > 1 else lowered[phases[0]]
    sides, found, wanted, skipped = {}, [], [], set()
    for phase, case.shape in shapes.items():
        sides[phase] = reference(case, scheme) if scheme else TorchDesign(case)
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        for position, count in LAUNCHES:
            shape = shapes.get("prefill" if count > 1 else "decode", shapes[phases[0]])
            count = min(count, shape.tokens)
            ids = torch.randint(
                97, (count,), generator=torch.Generator().manual_seed(position)
            ).tolist()
            if len(phases) > 1:
                design.select_phase(shape.phase)
            expected = sides[shape.phase]
            fill(design, expected, shape, position, scheme)
            rows = outside_window(position, shape.tokens, scheme)
            skipped.add(len(rows))
            for layer in (0, 2):
                poison(design, rows, layer, scheme)
            found.append(launch(design, shape, ids, position))
            wanted.append(launch(expected, shape, ids, position))
        assert len(skipped) > 1 and worst(found, wanted) <= (1e-3 if scheme else 1e-4)
        for layer, row in ((0, CONTEXT - WINDOW), (1, 0)):  # but these are read
            fill(design, expected, shape, CONTEXT - 1, scheme)
            poison(design, range(row, row + 1), layer, scheme)
            assert launch(design, shape, [1], CONTEXT - 1).isnan().any()


def cycles(folder, position: int) -> int:
    return json.loads(
        stc("simulate", folder, "--extent", f"positions={position}", "--json").stdout
    )["cycles"]


def compiled(text: str, folder, name: str, *options):
    (folder / f"{name}.mlir").write_text(text)
    done = stc(
        "compile", folder / f"{name}.mlir", "--platform", "u55c", *options, "-o", folder / name
    )
    assert done.returncode == 0, done.stderr
    return folder / name


def test_cycles_grow_no_further_than_the_window(core_built, tmp_path):
    """Mistral's layers are all alike; the other design hides the same rows, but reads them."""
    case = case_of(tmp_path / "model", "mistral")
    text = case.model.lower(case.shape).text
    assert text.count(f"stream.window = {WINDOW}") == 4
    near, whole = (
        compiled(text, tmp_path, "near"),
        compiled(re.sub(r", stream.window = \d+ : i64", "", text), tmp_path, "whole"),
    )
    assert (
        cycles(near, CONTEXT - 1) <= cycles(near, WINDOW - 1) + WINDOW < cycles(whole, CONTEXT - 1)
    )


@pytest.mark.parametrize("scheme", [[], ["--quant", "w4a8"]])
def test_every_pass_keeps_what_layers_of_both_kinds_compute(
    scheme, core_built, tmp_path, monkeypatch
):
    case = case_of(tmp_path / "model")
    monkeypatch.setenv("STREAMTENSOR_STRESS", "1")
    design = compiled(case.model.lower(case.shape).text, tmp_path, "design", *scheme)
    assert "visible_rows = array<i64: 23, -1, 23>" in (design / "design.mlir").read_text()


@pytest.mark.parametrize(
    "window, said",
    [
        ("0 : i64", "is no number of tokens"),
        ("-3 : i64", "is no number of tokens"),
        ('"many"', "accepted is an integer"),
    ],
)
def test_what_is_no_window_is_refused(window, said, core_built, tmp_path):
    text = (Path(__file__).resolve().parents[1] / "models" / "attention.mlir").read_text()
    (tmp_path / "m.mlir").write_text(
        text.replace("stream.dims", f"stream.window = {window}, stream.dims")
    )
    done = stc("compile", tmp_path / "m.mlir", "--platform", "u55c", "-o", tmp_path / "design")
    assert done.returncode == 1 and said in done.stderr and not (tmp_path / "design").exists()
