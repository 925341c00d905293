"""GPT-2 at its real size (124M): the design's ids, logits and new K/V rows against PyTorch, step by
step, for four prompts.
"""

from types import SimpleNamespace

import pytest
import torch
from conftest import compare

from streamtensor import demo, workflow
from streamtensor.language import models
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress

DISTINCT = 12  # of 16 ids: weights that repeat tokens would hide errors


def prompts():
    yield demo.PROMPT
    for seed in (101, 102, 103):
        yield torch.randint(0, 50257, (16,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.long
def test_gpt2_124m_is_pytorch(core_built, tmp_path):
    model = models.load("gpt2", 0, search=False)
    shape = StepShape.of(model.config, "decode", model.config.max_position_embeddings, 1)
    case = SimpleNamespace(
        model=model, shape=shape, tensors={name: model.tensor(name) for name in model.tensors()}
    )
    lowered = workflow.compile_files(model, shape, "u55c", tmp_path / "design", Progress())
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        for prompt in prompts():
            comparison = compare(design, case, prompt)
            assert comparison.good() and comparison.distinct >= DISTINCT, comparison
