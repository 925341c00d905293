"""The tables of rotary embeddings, made outside the layers, are kept in a layer once: what is sent
to every query head is sent to the key heads as well.
"""

import re

import pytest
from conftest import small_case, stc

from streamtensor import workflow
from streamtensor.progress import Progress

pytestmark = pytest.mark.usefixtures("core_built")


# cosines and sines; of two kinds of layers
@pytest.mark.parametrize("family, tables", [("qwen2", 2), ("gemma3", 4)])
def test_queries_and_keys_share_them(family, tables, tmp_path):
    case = small_case(tmp_path / "model", family, 40)
    (tmp_path / "mlir").mkdir()
    with Progress() as progress:
        workflow.export_files(case.model, case.shape, tmp_path / "mlir", progress)
    module = next((tmp_path / "mlir").glob("*.mlir"))
    done = stc(
        "compile", module, "--platform", "u55c", "--to", "stream", "-o", tmp_path / "streams.mlir"
    )
    assert done.returncode == 0, done.stderr
    before, layer = (tmp_path / "streams.mlir").read_text().split('"scf.for"', 1)
    outside = set(re.findall(r"%\d+", before))
    assert (
        sum(source in outside for source in re.findall(r'"stream\.convert"\((%\d+)\)', layer))
        == tables
    )
