"""A softmax with a running maximum: the tokens and logits of PyTorch's, in decode and in chunks of
prefill, whatever the scores are.
"""

import os

import pytest
from conftest import FAMILIES, compare, compile_with, small_case

from streamtensor import workflow
from streamtensor.progress import Progress

LONG = os.environ.get("STC_TEST_MODE") == "long"

pytestmark = pytest.mark.usefixtures("core_built")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """While the test goes on, the compiler is asked for a running maximum."""
    with pytest.MonkeyPatch.context() as patch:
        compile_with(patch, tmp_path_factory.mktemp("running") / "stc", "--softmax online")
        yield


def decode(folder, case):
    with Progress() as progress:
        lowered = workflow.compile_files(case.model, case.shape, "u55c", folder, progress)
        design = workflow.open_design(folder, lowered, progress)
    try:
        return compare(design, case, case.prompt(3))
    finally:
        design.close()


@pytest.mark.parametrize("family", FAMILIES if LONG else ["qwen2"])
def test_decodes_as_pytorch_does(running, family, tmp_path):
    comparison = decode(tmp_path / "design", small_case(tmp_path / "model", family, 40))
    assert "_online_max(" in next((tmp_path / "design" / "hls").glob("*.cpp")).read_text()
    assert comparison.ids_equal and comparison.logits <= 1e-5 and comparison.rows <= 1e-5, (
        comparison
    )


def test_a_window_hides_the_first_keys(running, tmp_path):
    case = small_case(tmp_path / "model", "gemma3", 40, sliding_window=8)
    comparison = decode(tmp_path / "design", case)
    assert comparison.ids_equal and comparison.logits <= 1e-5, comparison
