"""Several sequences in one launch: each is decoded as it would be alone."""

import copy
import json
import os
from dataclasses import replace

import pytest
import torch
from conftest import Case, TorchDesign, small_case, stc

from streamtensor import cli, core, quantize, workflow
from streamtensor.language import builtin_models, models, reference
from streamtensor.language.decoder_step import StepShape
from streamtensor.language.generation import BatchDecoder
from streamtensor.language.reference import ReferenceDesign
from streamtensor.lowering import graph
from streamtensor.progress import Progress

CONTEXT, CHUNK, NEW = 40, 5, 6
LONG = os.environ.get("STC_TEST_MODE") == "long"
PROMPTS = [[3, 5, 7, 9, 11, 13, 2, 4, 6], [8, 1], [7, 7, 1, 40, 20, 30, 10]]


MANY = PROMPTS * 4  # more sequences than a launch of the decode design's form takes


def batch_of(
    folder, family: str, window: int | None = None, batch: int = len(PROMPTS)
) -> tuple[Case, StepShape]:
    """A case with decode's shape, and prefill's."""
    case = small_case(folder, family, CONTEXT, **({"sliding_window": window} if window else {}))
    return replace(case, shape=replace(case.shape, batch=batch)), replace(
        StepShape.of(case.model.config, "prefill", CONTEXT, CHUNK), batch=batch
    )


def good(design, case: Case, *shapes) -> bool:
    """Whether the design says to each prompt what PyTorch says to it alone; shapes: decode's, and
    prefill's if there is one.
    """
    steps = []
    found = list(zip(*BatchDecoder(design, *shapes).tokens(PROMPTS, NEW, launched=steps.append)))
    expected = [reference.greedy(case.model, case.tensors, prompt, NEW) for prompt in PROMPTS]
    ends = [
        float((logits - one.logits[-1]).abs().max() / one.logits[-1].abs().max())
        for logits, one in zip(steps[-1].logits, expected)
    ]
    return [list(ids) for ids in found] == [one.ids for one in expected] and max(ends) <= 1e-4


class Phases:
    """Two exported steps as a design of two phases; `late`: one sequence begins a row later than it
    should.
    """

    def __init__(self, case: Case, chunk: StepShape, late: bool = False):
        self.sides = {
            "decode": TorchDesign(case),
            "prefill": TorchDesign(replace(case, shape=chunk)),
        }
        self.sides["prefill"].values = self.sides["decode"].values
        self.late = late

    def select_phase(self, phase):
        self.side = self.sides[phase]

    def write(self, name, value):
        self.side.write(name, value + (self.late if name == "starts" else 0))

    def read(self, name):
        return self.side.read(name)

    def launch(self):
        self.side.launch()

    def reset(self):
        for value in self.sides["decode"].values.values():
            value.zero_()


@pytest.mark.parametrize(
    "family, window", [("gpt2", None), ("llama", None), ("gemma3", 9), ("mistral", 4)]
)
def test_the_exported_step_takes_sequences_of_any_lengths(family, window, tmp_path):
    case, chunk = batch_of(tmp_path / family, family, window)
    assert good(TorchDesign(case), case, case.shape)
    assert good(Phases(case, chunk), case, case.shape, chunk)
    assert not good(Phases(case, chunk, late=True), case, case.shape, chunk)


def test_a_design_of_both_phases_takes_a_batch(core_built, tmp_path):
    case, chunk = batch_of(tmp_path / "gpt2", "gpt2")
    lowered = workflow.compile_phases(
        case.model, [case.shape, chunk], "u55c", tmp_path / "design", Progress()
    )
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        assert good(design, case, case.shape, chunk)


def quantized_of(case: Case, shape: StepShape) -> ReferenceDesign:
    inner = copy.deepcopy(case.model.module).to_empty(device="cpu")
    inner.tie_weights()
    for name, value in graph.named_tensors(inner).items():
        value.data = case.tensors[name].clone()
    return ReferenceDesign(quantize.quantized_copy(inner, quantize.Scheme.parse("w4a8")), shape)


@pytest.mark.parametrize(
    "family, window", [("llama", None)] + LONG * [("gpt2", None), ("gemma3", 9), ("mistral", 4)]
)
def test_chunks_of_a_batch_meet_a_cache_of_bytes(core_built, family, window, tmp_path):
    case, chunk = batch_of(tmp_path / family, family, window)
    lowered, found, expected, position = (
        workflow.compile_files(case.model, chunk, "u55c", tmp_path / "design", Progress(), "w4a8"),
        [],
        [],
        0,
    )
    assert "w4a8; KV cache: 4 of i8, 4 of f16" in (tmp_path / "design" / "report.txt").read_text()
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        quantized = quantized_of(case, chunk)
        for count in (CHUNK, 3, 1, CHUNK, CHUNK, 2):
            ids = torch.randint(
                97, (len(PROMPTS), CHUNK), generator=torch.Generator().manual_seed(position)
            )
            for side, logits in ((design, found), (quantized, expected)):
                for name, value in (
                    ("ids", ids),
                    ("positions", torch.tensor([[position]])),
                    ("starts", torch.tensor([[0], [7], [2]])),
                    ("tokens", torch.tensor([[count]])),
                ):
                    side.write(name, value)
                side.launch()
                logits.append(side.read("logits").reshape(len(PROMPTS), -1))
            position += count
    assert max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected)) <= 1e-3


@pytest.mark.parametrize("family, prompts", [("llama", PROMPTS), ("gpt2", MANY)])
def test_a_batch_on_integers_is_the_arithmetic(core_built, family, prompts, tmp_path):
    case, _ = batch_of(tmp_path / family, family, batch=len(prompts))
    quantized = quantized_of(case, case.shape)
    lowered = workflow.compile_files(
        case.model, case.shape, "u55c", tmp_path / "design", Progress(), "w4a8"
    )
    found, expected = [], []
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        for side, logits in ((design, found), (quantized, expected)):
            list(
                BatchDecoder(side, case.shape).tokens(
                    prompts, NEW, launched=lambda step: logits.append(step.logits)
                )
            )
    report = json.loads((tmp_path / "design" / "report.json").read_text())
    assert (
        report["sequences"] == len(prompts)
        and abs(report["sequence_tokens_per_s"] * report["latency_ms"] / 1000 - 1) < 1e-3
    )
    assert abs(report["tokens_per_s"] / report["sequence_tokens_per_s"] - len(prompts)) < 1e-3
    assert len(found) == max(map(len, prompts)) + NEW - 1
    assert max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected)) <= 1e-3


def test_a_token_of_several_sequences_costs_less_than_of_each_alone(
    core_built, tmp_path, monkeypatch
):
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "gpt2-medium",
        builtin_models.BUILT_IN["gpt2-medium"] | {"n_layer": 2},
    )
    model, cycles = models.load("gpt2-medium", search=False), {}
    for batch in (1, 4, 16):
        shape = replace(StepShape.of(model.config, "decode", 1024, 1), batch=batch, argmax=True)
        workflow.compile_files(
            model, shape, "u55c", tmp_path / f"design{batch}", Progress(), "w4a8", values=False
        )
        for position in (127, 1023):
            found = core.simulate(tmp_path / f"design{batch}", None, {"positions": position})
            cycles[batch, position] = found["cycles"]
    for batch, position, share in ((4, 127, 0.8), (4, 1023, 0.9), (16, 127, 0.6), (16, 1023, 0.95)):
        alone = batch * cycles[1, position]
        assert cycles[batch, position] <= share * alone, (batch, position, cycles)


def test_generate_shows_each_text_and_its_speed(core_built, folder_of, tmp_path, capsys):
    status = cli.main(
        [
            "generate",
            str(folder_of("llama")),
            "--prompt-ids",
            "3,5,7",
            "--prompt-ids",
            "8,1",
            "--max-new-tokens",
            "3",
            "--context",
            "16",
            "--prefill-chunk",
            "1",
            "--platform",
            "u55c",
            "-o",
            str(tmp_path / "design"),
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    case = Case.of(folder_of("llama"), 16)
    expected = [
        reference.greedy(case.model, case.tensors, prompt, 3).ids for prompt in ([3, 5, 7], [8, 1])
    ]
    assert status == 0 and lines[:2] == [
        f"[{i + 1}] {','.join(map(str, ids))}" for i, ids in enumerate(expected)
    ]
    rates = next(line for line in lines if line.startswith("accelerator")).replace(",", "").split()
    assert abs(float(rates[6]) / float(rates[1]) - 2) < 0.01 and rates[7:9] == ["in", "all:"], rates


@pytest.mark.parametrize("batch", ["0", "-2"])
def test_no_sequences_are_refused(folder_of, tmp_path, capsys, batch):
    status = cli.main(
        ["compile", str(folder_of("gpt2")), "--batch", batch, "-o", str(tmp_path / "design")]
    )
    assert status == 1 and f"--batch {batch} is no number of sequences" in capsys.readouterr().err


def test_attention_of_two_sequences_takes_several_keys_a_cycle(core_built, tmp_path):
    """A launch of one tile: its layers follow each other as those of one token do, with a break,
    and are priced so.
    """
    model = models.load("gpt2-medium", search=False)
    shape = replace(StepShape.of(model.config, "decode", 1024, 1), batch=2, argmax=True)
    workflow.compile_files(
        model, shape, "u55c", tmp_path / "design", Progress(), "w4a8", values=False
    )
    done = stc(
        "simulate",
        tmp_path / "design",
        "--json",
        "--max-iterations",
        "4G",
        "--extent",
        "positions=1023",
    )
    # 297,760; a key a cycle: 723,847
    assert json.loads(done.stdout)["cycles"] < 320_000, done.stderr
