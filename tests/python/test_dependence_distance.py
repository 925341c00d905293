"""What arrays of a design claim by `stream.distance`, which emitted text tells the vendor's
compiler and the CPU cannot show: a launch in which reads that come sooner get wrong numbers has the
same results.
"""

import json
import re
import subprocess
from dataclasses import replace

import pytest

from streamtensor import core, workflow
from streamtensor.language import models
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress

TINY = dict(
    model_type="gpt2",
    n_layer=2,
    n_embd=128,
    n_head=4,
    vocab_size=512,
    n_positions=512,
    bos_token_id=0,
    eos_token_id=0,
)
KINDS = {  # its shape, and integers of launches
    "decode": (
        lambda config: replace(StepShape.of(config, "decode", 512, 1), argmax=True),
        ["positions=0", "positions=300"],
    ),
    "prefill": (lambda config: StepShape.of(config, "prefill", 512, 32), ["positions=64"]),
    "both": (
        lambda config: replace(
            StepShape.of(config, "prefill", 512, 32), argmax=True, dynamic_tokens=True
        ),
        ["positions=0 tokens=1", "positions=300 tokens=19"],
    ),
}


def evaluate(folder, integers: str) -> str:
    beside = core.find_file(core.COMPILER).parent / "unit" / "compare_design"
    done = subprocess.run(
        [beside, "--evaluate", folder, *integers.split()],
        capture_output=True,
        text=True,
        timeout=300,
    )
    return f"{done.stdout}{done.stderr}".removeprefix(f"{folder}: ").strip()


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_design_claims_of_its_arrays_holds(core_built, tmp_path, kind):
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    shape, launches = KINDS[kind]
    model = models.load(str(tmp_path))
    design = tmp_path / "design"
    workflow.compile_files(
        model, shape(model.config), "u55c", design, Progress(), "w4a8", values=False
    )
    claims = re.findall(r"stream\.distance = (\d+)", (design / "design.mlir").read_text())
    # arrays of slices that work without a break claim none
    assert len(claims) > (15 if kind == "prefill" else 20)
    assert [evaluate(design, integers) for integers in launches] == ["evaluated"] * len(launches)
    if kind != "decode":
        return
    text = (design / "design.mlir").read_text()
    for array, marks in (("sums", "stream.local, "), ("running", "")):
        # one iteration more is too much; so it is for a word that rotates, in either direction
        claim = rf'stream\.distance = (\d+) : i64, {marks}stream\.name = "{array}"'
        name = re.search(claim if marks else claim + ", stream.rotation", text)
        (design / "design.mlir").write_text(
            text.replace(name[0], name[0].replace(f"= {name[1]} ", f"= {int(name[1]) + 1} ", 1))
        )
        assert f"stream.distance of {array} in process" in evaluate(design, launches[0])
