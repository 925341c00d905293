"""Prefill against PyTorch: prompts in chunks of any length, behind a past of any length, up to the whole context."""
import json
from dataclasses import dataclass

import pytest
import torch
from conftest import FAMILIES, MUTANTS, Case, TorchDesign

from streamtensor import reference, workflow
from streamtensor.decoder import Shape
from streamtensor.errors import Error
from streamtensor.progress import Progress

CONTEXT, TOKENS = 24, 5
CHUNKS = (1, 5, 3, 2, 4, 1, 5, 3)  # the whole context


@dataclass
class Chunks:
    logits: float      # largest difference / largest reference value
    rows: float        # the same over the cache
    untouched: bool    # rows that are not of the chunk stay as they were


def case_of(folder, family: str, window: int | None = None) -> Case:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**FAMILIES[family], **({"sliding_window": window} if window else {})}))
    case = Case.of(folder, CONTEXT)
    return Case(case.model, case.tensors, Shape.of(case.model.config, "prefill", CONTEXT, TOKENS))


def launch(design, shape: Shape, ids: list[int], position: int) -> torch.Tensor:
    """One chunk; what is behind it is padding."""
    padding = torch.randint(shape.layers * 40, (shape.tokens,), generator=torch.Generator().manual_seed(position))
    padding[:len(ids)] = torch.tensor(ids)
    design.write("ids", padding[None])
    design.write("positions", torch.tensor([[position]]))
    design.write("tokens", torch.tensor([[len(ids)]]))
    design.launch()
    return design.read("logits").reshape(-1)


def compare(design, case: Case, chunks=CHUNKS, seed: int = 0) -> Chunks:
    shape, prompt = case.shape, torch.randint(97, (sum(chunks),), generator=torch.Generator().manual_seed(seed)).tolist()
    expected = reference.greedy(case.model, case.tensors, prompt, 1)
    position, found = 0, Chunks(0.0, 0.0, True)
    for count in chunks:
        before = {name: design.read(name) for name in shape.cache_names()}
        logits = launch(design, shape, prompt[position:position + count], position)
        wanted = expected.logits[position + count - 1]
        found.logits = max(found.logits, float((logits - wanted).abs().max() / expected.logits.abs().max()))
        end = position + count if position + count <= shape.past else shape.past - 1  # the context's last token has no row of its own
        for name in shape.cache_names():
            kind, layer = name.split(".")
            rows, after = getattr(expected, kind)[int(layer)], design.read(name)[0]
            found.rows = max(found.rows, float((after[:, position:end] - rows[:, position:end]).abs().max() / rows.abs().max()))
            kept = before[name][0]
            found.untouched &= torch.equal(after[:, :position], kept[:, :position]) and (end < position + count or torch.equal(after[:, end:], kept[:, end:]))
        position += count
    return found


def good(found: Chunks) -> bool:
    return found.logits <= 1e-4 and found.rows <= 1e-4 and found.untouched


@pytest.mark.parametrize("family, window", [("gpt2", None), ("llama", None), ("qwen2", None), ("gemma3", None), ("gemma3", 9), ("mistral", 4)])
def test_the_exported_step_takes_a_prompt_in_chunks(family, window, tmp_path):
    case = case_of(tmp_path / family, family, window)
    assert good(found := compare(TorchDesign(case), case, CHUNKS[:-1] + (2,))), found


@pytest.mark.parametrize("mutant", MUTANTS)
def test_comparison_sees_a_fault(mutant, tmp_path):
    case = case_of(tmp_path / "gpt2", "gpt2")
    assert not good(compare(mutant(TorchDesign(case)), case, CHUNKS[:-1]))


@pytest.mark.parametrize("family, window", [("gpt2", None), ("gemma3", 9)])
def test_a_design_takes_a_prompt_in_chunks(family, window, core_built, tmp_path):
    case = case_of(tmp_path / family, family, window)
    lowered = workflow.compile_files(case.model, case.shape, "u55c", tmp_path / "design", Progress())
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        assert good(found := compare(design, case)), found
        for mutant in MUTANTS[1:]:
            design.reset()
            assert not good(compare(mutant(design), case))


@pytest.mark.parametrize("context, tokens, message", [(65, 4, "--context 65"), (1, 1, "--context 1 "), (24, 24, "--tokens 24"), (24, 0, "--tokens 0")])
def test_what_does_not_fit_the_context_is_refused(context, tokens, message, tmp_path):
    case = case_of(tmp_path / "gpt2", "gpt2")
    with pytest.raises(Error, match=message):
        Shape.of(case.model.config, "prefill", context, tokens)
