"""Prefill against PyTorch: prompts in chunks of any length, behind a past of any length, up to the
whole context; and both phases in one design.
"""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
import pytest
import torch
from conftest import MUTANTS, Case, TorchDesign, small_case, stc

import streamtensor
from streamtensor import cli, core, workflow
from streamtensor.errors import Error
from streamtensor.language import decoder_step, reference
from streamtensor.language.decoder_step import StepShape
from streamtensor.language.generation import Decoder
from streamtensor.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
CONTEXT, TOKENS = 24, 5
CHUNKS = (1, 5, 3, 2, 4, 1, 5, 3)  # the whole context


@dataclass
class Chunks:
    logits: float  # largest difference / largest reference value
    rows: float  # the same over the cache
    untouched: bool  # rows that are not of the chunk stay as they were


def case_of(folder, family: str, window: int | None = None) -> Case:
    return small_case(
        folder, family, CONTEXT, TOKENS, **({"sliding_window": window} if window else {})
    )


def launch(design, shape: StepShape, ids: list[int], position: int) -> torch.Tensor:
    """One chunk; what is behind it is padding."""
    padding = torch.randint(
        shape.layers * 40, (shape.tokens,), generator=torch.Generator().manual_seed(position)
    )
    padding[: len(ids)] = torch.tensor(ids)
    design.write("ids", padding[None])
    design.write("positions", torch.tensor([[position]]))
    design.write("tokens", torch.tensor([[len(ids)]]))
    design.launch()
    return design.read("logits").reshape(-1)


def compare(design, case: Case, chunks=CHUNKS, seed: int = 0) -> Chunks:
    shape, prompt = (
        case.shape,
        torch.randint(97, (sum(chunks),), generator=torch.Generator().manual_seed(seed)).tolist(),
    )
    expected = reference.greedy(case.model, case.tensors, prompt, 1)
    position, found = 0, Chunks(0.0, 0.0, True)
    for count in chunks:
        before = {name: design.read(name) for name in shape.cache_names()}
        logits = launch(design, shape, prompt[position : position + count], position)
        wanted = expected.logits[position + count - 1]
        found.logits = max(
            found.logits, float((logits - wanted).abs().max() / expected.logits.abs().max())
        )
        # the context's last token has no row of its own
        end = position + count if position + count <= shape.past else shape.past - 1
        for name in shape.cache_names():
            kind, layer = name.split(".")
            rows, after = getattr(expected, kind)[int(layer)], design.read(name)[0]
            found.rows = max(
                found.rows,
                float(
                    (after[:, position:end] - rows[:, position:end]).abs().max() / rows.abs().max()
                ),
            )
            kept = before[name][0]
            found.untouched &= torch.equal(after[:, :position], kept[:, :position]) and (
                end < position + count or torch.equal(after[:, end:], kept[:, end:])
            )
        position += count
    return found


def good(found: Chunks) -> bool:
    return found.logits <= 1e-4 and found.rows <= 1e-4 and found.untouched


@pytest.mark.parametrize(
    "family, window",
    [
        ("gpt2", None),
        ("llama", None),
        ("qwen2", None),
        ("gemma3", None),
        ("gemma3", 9),
        ("mistral", 4),
    ],
)
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
    lowered = workflow.compile_files(
        case.model, case.shape, "u55c", tmp_path / "design", Progress()
    )
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        assert good(found := compare(design, case)), found
        for mutant in MUTANTS[1:]:
            design.reset()
            assert not good(compare(mutant(design), case))


@pytest.mark.parametrize(
    "context, tokens, message",
    [
        (65, 4, "--context 65"),
        (1, 1, "--context 1 "),
        (24, 24, "--prefill-chunk 24"),
        (24, 0, "--prefill-chunk 0"),
    ],
)
def test_what_does_not_fit_the_context_is_refused(context, tokens, message, tmp_path):
    case = case_of(tmp_path / "gpt2", "gpt2")
    with pytest.raises(Error, match=message):
        StepShape.of(case.model.config, "prefill", context, tokens)


@pytest.fixture(scope="module")
def both(core_built, tmp_path_factory):
    """A small GPT-2 and its design of both phases: (case with decode's shape, prefill's shape,
    folder, what was lowered).
    """
    root = tmp_path_factory.mktemp("both")
    case = case_of(root / "gpt2", "gpt2")
    shapes = [
        StepShape.of(case.model.config, phase, CONTEXT, TOKENS) for phase in ("decode", "prefill")
    ]
    lowered = workflow.compile_phases(case.model, shapes, "u55c", root / "design", Progress())
    return Case(case.model, case.tensors, shapes[0]), shapes[1], root / "design", lowered


@pytest.fixture(scope="module")
def open_both(both):
    with workflow.open_design(both[2], both[3], Progress()) as design:
        yield design


class Phased:
    """Decoder with the launches that it made."""

    def __init__(self, both, design):
        self.decoder, self.case, self.launches = (
            Decoder(design, both[0].shape, both[1]),
            both[0],
            [],
        )

    def ids(self, prompt, new):
        self.launches = []
        return list(self.decoder.tokens(prompt, new, launched=self.launches.append))


def prompt_of(length: int, seed: int = 0) -> list[int]:
    return torch.randint(512, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize(
    "length, new", [(1, 4), (2, 3), (5, 3), (6, 3), (11, 4), (CONTEXT - 1, 1), (13, CONTEXT - 13)]
)
def test_both_phases_generate_as_pytorch_does(both, open_both, length, new):
    phased, prompt = Phased(both, open_both), prompt_of(length, length)
    assert (
        phased.ids(prompt, new) == reference.greedy(both[0].model, both[0].tensors, prompt, new).ids
    )
    assert len(phased.launches) == -(-length // TOKENS) + new - 1
    assert {step.count for step in phased.launches} <= {TOKENS, length % TOKENS, 1}


@pytest.mark.parametrize(
    "phase, inputs, message",
    [
        ("prefill", dict(tokens=TOKENS + 1), f"'tokens' is {TOKENS + 1}\n"),
        (
            "prefill",
            dict(tokens=3, positions=CONTEXT - 2),
            f"in a launch of 3 tokens\nnote: accepted are 0 to {CONTEXT - 3}",
        ),
        ("prefill", dict(tokens=1, positions=-1), "'positions' is -1"),
        (
            "decode",
            dict(positions=CONTEXT),
            f"'positions' is {CONTEXT}\nnote: accepted are 0 to {CONTEXT - 1}",
        ),
    ],
)
def test_launches_of_no_tokens_and_behind_the_context_are_refused(
    both, open_both, phase, inputs, message
):
    open_both.select_phase(phase)
    open_both.write("ids", torch.zeros(1, TOKENS if phase == "prefill" else 1, dtype=torch.long))
    open_both.write("positions", torch.tensor([[0]]))
    for name, value in inputs.items():
        open_both.write(name, torch.tensor([[value]]))
    with pytest.raises(Error) as error:
        open_both.launch()
    assert message in str(error.value)


def test_a_conversation_is_not_computed_again(both, open_both):
    phased, prompt = Phased(both, open_both), prompt_of(7)
    answer = phased.ids(prompt, 3)
    following = prompt + answer + prompt_of(4, 5)
    expected = reference.greedy(both[0].model, both[0].tensors, following, 3).ids
    assert phased.ids(following, 3) == expected
    assert (
        sum(step.count for step in phased.launches)
        == len(following) - len(prompt) - len(answer) + 1 + 2
    )
    other = prompt[:5] + prompt_of(4, 6)
    assert phased.ids(other, 2) == reference.greedy(both[0].model, both[0].tensors, other, 2).ids
    assert sum(step.count for step in phased.launches) == 4 + 1


class LostChunk:
    """Writes of prefill that decode does not see."""

    def __init__(self, design, names):
        self.design, self.names, self.phase = design, names, None

    def __getattr__(self, name):
        return getattr(self.design, name)

    def select_phase(self, phase):
        self.phase = phase
        self.design.select_phase(phase)

    def launch(self):
        before = {name: self.design.read(name) for name in self.names}
        self.design.launch()
        for name, value in before.items():
            if self.phase == "prefill":
                self.design.write(name, value)


def test_comparison_sees_a_cache_that_is_not_shared(both, open_both):
    phased, prompt = (
        Phased(both, LostChunk(open_both, both[0].shape.cache_names())),
        prompt_of(11, 11),
    )
    phased.decoder.reset()
    assert phased.ids(prompt, 6) != reference.greedy(both[0].model, both[0].tensors, prompt, 6).ids


def test_states_and_tables_are_in_memory_once(both):
    manifest = json.loads((both[2] / "manifest.json").read_text())
    decode, prefill = manifest["phases"]
    names = {buffer["name"] for buffer in decode["buffers"]}
    same = {
        segment["name"]
        for buffer in prefill["buffers"]
        if "same_as" in buffer
        for segment in buffer["segments"]
    }
    assert (decode["name"], prefill["name"]) == ("decode", "prefill")
    assert {"k.0", "k.1", "v.0", "v.1", "transformer.wte.weight"} <= same
    assert all(buffer["same_as"] in names for buffer in prefill["buffers"] if "same_as" in buffer)
    report = json.loads((both[2] / "report.json").read_text())
    assert [phase["name"] for phase in report["phases"]] == ["decode", "prefill"] and report[
        "kernel"
    ]["ports"] <= 32
    assert report["kernel"]["ports"] < sum(phase["ports"] for phase in report["phases"])
    chunk = json.loads((both[2] / "prefill" / "report.json").read_text())
    assert (
        chunk["tokens_per_launch"] == TOKENS
        and report["launches_per_token"] == 1
        and "launches_per_token" not in chunk
    )
    assert abs(chunk["tokens_per_s"] * chunk["latency_ms"] / (TOKENS * 1e3) - 1) < 1e-5
    files = {path.name for path in (both[2] / "weights").iterdir()}
    assert not any(
        buffer["name"] + ".bin" in files for buffer in prefill["buffers"] if "same_as" in buffer
    )


def test_each_phase_is_simulated(both):
    ms = {
        phase: core.simulate(both[2], phase, {"positions": 3})["latency_ms"]
        for phase in ("decode", "prefill")
    }
    assert ms["decode"] < ms["prefill"] < TOKENS * ms["decode"] * 2
    assert core.simulate(both[2])["cycles"] == core.simulate(both[2], "decode")["cycles"]
    done = stc("simulate", both[2], "--phase", "training")
    assert (
        done.returncode == 1
        and "no phase 'training'" in done.stderr
        and "decode, prefill" in done.stderr
    )


def test_a_prompt_with_an_empty_cache_is_reported(both):
    decode, prefill = (
        json.loads((both[2] / folder / "report.json").read_text()) for folder in (".", "prefill")
    )
    assert "launches" not in decode and "past_tokens" not in decode["extents"]
    (longest,) = prefill["launches"]
    assert (longest["tokens"], prefill["extents"]["past_tokens"]) == (TOKENS, 0)
    assert longest["past_tokens"] == prefill["extents"]["context"] - 1
    reported = core.simulate(both[2], "prefill")
    assert reported["cycles"] == core.simulate(both[2], "prefill", {"positions": 0})["cycles"]
    assert reported["latency_ms"] == prefill["latency_ms"]
    full = core.simulate(both[2], "prefill", {"positions": longest["past_tokens"]})
    assert longest["model"] == pytest.approx(full["cycles"], rel=0.08)
    assert reported["cycles"] < full["cycles"]
    assert (
        f"{TOKENS} tokens after {longest['past_tokens']} cached: {longest['model']} cycles"
        in (both[2] / "prefill" / "report.txt").read_text()
    )


def test_lint_of_both(both):
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "hls_lint.py", both[2]],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout


def test_the_host_program_takes_a_phase(both):
    text = (both[2] / "host" / "main.c").read_text()
    done = subprocess.run(
        [
            "cc",
            "-std=c17",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            f"-I{ROOT}/include",
            "-xc",
            "-",
        ],
        input=text,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and '{"prefill", inputs_1, outputs_1}' in text, done.stderr


def test_run_takes_a_phase(both, tmp_path):
    numpy.save(tmp_path / "ids.npy", numpy.array([[3, 1, 4, 0, 0]]))
    numpy.save(tmp_path / "zero.npy", numpy.array([[0]]))
    numpy.save(tmp_path / "three.npy", numpy.array([[3]]))
    done = stc(
        "run",
        both[2],
        "--phase",
        "prefill",
        "--in",
        "ids=ids.npy",
        "--in",
        "positions=zero.npy",
        "--in",
        "tokens=three.npy",
        "--out",
        "logits=y.npy",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    expected = reference.greedy(both[0].model, both[0].tensors, [3, 1, 4], 1).logits[-1]
    assert numpy.abs(
        numpy.load(tmp_path / "y.npy").reshape(-1) - expected.numpy()
    ).max() <= 1e-4 * float(expected.abs().max())
    refused = stc("run", both[2], "--phase", "training", "--out", "logits=y.npy", cwd=tmp_path)
    assert refused.returncode == 1 and "no phase 'training'" in refused.stderr


@pytest.mark.parametrize(
    "family, name, message",
    [
        ("llama", "prefill", "are not phases of the same model"),
        ("gpt2", "decode", "both phases are called decode"),
    ],
)
def test_phases_that_do_not_belong_together_are_refused(
    family, name, message, core_built, tmp_path
):
    first, second = case_of(tmp_path / "gpt2", "gpt2"), case_of(tmp_path / family, family)
    (tmp_path / "other").mkdir()
    (tmp_path / "decode.mlir").write_text(
        first.model.lower(StepShape.of(first.model.config, "decode", CONTEXT, 1)).text
    )
    (tmp_path / "other" / f"{name}.mlir").write_text(second.model.lower(second.shape).text)
    done = stc(
        "compile",
        "decode.mlir",
        "--second-phase",
        f"other/{name}.mlir",
        "-o",
        "design",
        cwd=tmp_path,
    )
    assert (
        done.returncode == 1
        and message in done.stderr
        and done.stderr.count("error:") == 1
        and not (tmp_path / "design").exists()
    ), done.stderr


def test_the_second_phase_comes_from_standard_input(core_built, tmp_path):
    case = case_of(tmp_path / "gpt2", "gpt2")
    (tmp_path / "decode.mlir").write_text(
        case.model.lower(StepShape.of(case.model.config, "decode", CONTEXT, 1)).text
    )
    second = case.model.lower(StepShape.of(case.model.config, "prefill", CONTEXT, TOKENS)).text
    # rows of bytes: how many the second phase writes is asked before the first is built
    command = [
        core.find_file(core.COMPILER),
        "compile",
        "decode.mlir",
        "--second-phase",
        "-",
        "--quant",
        "w4a8",
        "-o",
        "design",
    ]
    done = subprocess.run(
        command, input=second, capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_likeliest_token_is_chosen_on_the_device(core_built, tmp_path):
    case = case_of(tmp_path / "gpt2", "gpt2")
    shapes = [
        replace(StepShape.of(case.model.config, phase, CONTEXT, TOKENS), argmax=True)
        for phase in ("decode", "prefill")
    ]
    lowered = workflow.compile_phases(case.model, shapes, "u55c", tmp_path / "design", Progress())
    prompt = prompt_of(9)
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        assert (
            list(Decoder(design, *shapes).tokens(prompt, 6))
            == reference.greedy(case.model, case.tensors, prompt, 6).ids
        )
        assert design.read("token").numel() == 1


@pytest.mark.parametrize(
    "logits",
    [
        [3.0, 5.0, 5.0, -1.0],
        [-0.0, 0.0, -1.0, -2.0],
        [-4.0, -4.0, -4.0, -4.0],
        [float("-inf"), -1.0, -1.0, 2.0],
        [1e-45, 0.0, 1e-45, 1e-38],
    ],
)
def test_of_equal_logits_the_lowest_id_is_chosen(logits, core_built):
    class Largest(torch.nn.Module):
        def forward(self, x):
            return decoder_step._argmax_logits(x)

    x = torch.tensor([logits])
    with streamtensor.compile(Largest(), (x,)) as design:
        assert design(x).tolist() == Largest()(x).tolist() == x.argmax(-1).tolist()


def test_argmax_and_sampling_contradict_each_other(tmp_path, capsys):
    case_of(tmp_path / "gpt2", "gpt2")
    assert (
        cli.main(
            [
                "generate",
                str(tmp_path / "gpt2"),
                "--prompt-ids",
                "1",
                "--argmax",
                "--temperature",
                "1",
            ]
        )
        == 1
    )
    assert "--argmax and --temperature 1" in capsys.readouterr().err
