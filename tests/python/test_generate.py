"""Greedy decoding against PyTorch: on the exported step run by PyTorch itself, and on the compiled
design.

The mutants show that the comparison can fail: each has one fault that random weights would hide if
only ids were compared.
"""

import contextlib
import json

import pytest
import torch
from conftest import FAMILIES, MUTANTS, Case, FrozenPosition, TorchDesign, compare, skip_layer

import streamtensor
from streamtensor import cli, demo, workflow
from streamtensor.errors import Error
from streamtensor.language import generation, models
from streamtensor.progress import Progress

PROMPTS = range(4)


@pytest.fixture(scope="module")
def gpt2(folder_of):
    return Case.of(folder_of("gpt2"))


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2", "gemma3", "mistral"])
def test_exported_step_decodes_as_pytorch_does(family, folder_of):
    case = Case.of(folder_of(family))
    comparison = compare(TorchDesign(case), case, case.prompt(0))
    assert comparison.good(), comparison


@pytest.mark.parametrize("family", ["gemma3", "mistral"])
def test_a_window_shorter_than_the_context(family, folder_of, tmp_path):
    """Gemma has layers of both kinds, Mistral of the sliding kind only."""
    (tmp_path / "config.json").write_text(json.dumps({**FAMILIES[family], "sliding_window": 9}))
    case = Case.of(tmp_path)
    assert case.shape.window == 9 and case.shape.mixed == (family == "gemma3")
    comparison = compare(TorchDesign(case), case, case.prompt(0))
    assert comparison.good(), comparison


@pytest.mark.parametrize("seed", PROMPTS)
def test_random_weights_make_the_ids_vary(gpt2, seed):
    comparison = compare(TorchDesign(gpt2), gpt2, gpt2.prompt(seed))
    assert comparison.good() and comparison.distinct >= 12, comparison


@pytest.mark.parametrize("mutant", MUTANTS)
def test_comparison_sees_a_fault_in_the_step(gpt2, mutant):
    comparison = compare(mutant(TorchDesign(gpt2)), gpt2, gpt2.prompt(0))
    assert comparison.logits > 1e-2 and not comparison.good(), comparison


def test_generation_ends_at_an_end_token(gpt2):
    decoder, prompt = generation.Decoder(TorchDesign(gpt2), gpt2.shape), gpt2.prompt(0)
    ids = list(decoder.tokens(prompt, 8))
    assert (
        len(ids) == 8
        and list(decoder.tokens(prompt, 8, end={ids[2]})) == ids[: ids.index(ids[2]) + 1]
    )


@pytest.mark.parametrize(
    "prompt, new, message",
    [
        ([], 4, "empty"),
        ([7], 4, "the id 7"),
        ([-1], 4, "the id -1"),
        ([1], 0, "too few"),
        ([1] * 8, 1, "context of 8"),
    ],
)
def test_bad_prompt_is_refused(prompt, new, message):
    with pytest.raises(Error, match=message):
        generation.check_prompt(prompt, new, vocabulary=7, context=8)


def test_the_whole_context_can_be_used_and_no_more():
    assert [generation.check_prompt([1, 2], new, vocabulary=7, context=8) for new in (5, 6, 7)] == [
        5,
        6,
        6,
    ]


def test_sampling_is_that_of_the_cut_distribution():
    logits = torch.tensor([1.0, 3.0, 2.0, -1.0])
    assert generation.Sampler()(logits) == 1

    def draw(**options):
        return [generation.Sampler(seed=seed, **options)(logits) for seed in range(2000)]

    counts = torch.bincount(torch.tensor(draw(temperature=2.0)), minlength=4) / 2000
    torch.testing.assert_close(counts, torch.softmax(logits / 2, -1), rtol=0, atol=0.04)
    assert set(draw(temperature=2.0, top_k=2)) == {1, 2} and set(
        draw(temperature=1.0, top_p=0.6)
    ) == {1}
    assert draw(temperature=1.0)[:9] == draw(temperature=1.0)[:9]


WORDS = ["", "a", " b", " c", "ST", "OP", " d"]


@pytest.mark.parametrize(
    "stops, pieces, stopped",
    [
        ([], ["a", " b", "ST", "OP", " d", ""], False),
        (["STOP"], ["a", " b", "", "", ""], True),
        (["OPS"], ["a", " b", "ST", "", "OP d", ""], False),
    ],
)
def test_text_comes_in_pieces_and_ends_before_a_stop_text(stops, pieces, stopped):
    text = generation.IncrementalText(lambda ids: "".join(WORDS[i] for i in ids), [3], stops)
    found = []
    for token in (1, 2, 4, 5, 6):
        found.append(text.add(token))
        if text.stopped:
            break
    found.append(text.rest())
    assert found == pieces and text.stopped == stopped


@pytest.fixture
def small_demo(gpt2, folder_of, monkeypatch, core_built):
    """small_demo(design): the demo on a small GPT-2, with `design` in place of a compiled one."""

    def compile_files(model, shape, platform, output, progress):
        output.mkdir(parents=True)
        (output / "report.txt").write_text("what the accelerator would do\n")

    monkeypatch.setitem(models.BUILT_IN, demo.MODEL, FAMILIES["gpt2"])
    monkeypatch.setattr(demo, "PROMPT", gpt2.prompt(0))
    monkeypatch.setattr(workflow, "compile_files", compile_files)
    return lambda design: monkeypatch.setattr(
        workflow, "open_design", lambda *_: contextlib.nullcontext(design)
    )


def test_demo_leaves_the_design_and_the_tokens(small_demo, folder_of, tmp_path, capsys):
    case = Case.of(folder_of("gpt2"), context=64)
    small_demo(TorchDesign(case))
    assert cli.main(["demo", "-o", str(tmp_path / "demo"), "--platform", "u55c"]) == 0
    tokens = json.loads((tmp_path / "demo" / "tokens.json").read_text())
    assert (
        tokens["equal"]
        and tokens["streamtensor"] == tokens["pytorch"]
        and len(tokens["pytorch"]) == demo.NEW_TOKENS
    )
    assert tokens["max_logit_error"] <= 1e-4 and tokens["prompt"] == case.prompt(0)
    assert (tmp_path / "demo" / "design" / "report.txt").is_file()
    out = capsys.readouterr().out
    assert out.startswith("what the accelerator would do\n") and "equal          yes" in out


def test_demo_fails_where_the_tokens_differ(small_demo, folder_of, tmp_path, capsys):
    small_demo(FrozenPosition(TorchDesign(Case.of(folder_of("gpt2"), context=64))))
    assert cli.main(["demo", "-o", str(tmp_path / "demo")]) == 1
    assert json.loads((tmp_path / "demo" / "tokens.json").read_text())["equal"] is False
    assert "equal          NO" in capsys.readouterr().out


@pytest.fixture(scope="module")
def compiled(gpt2, core_built, tmp_path_factory):
    """compiled(case): its decode design, opened on the CPU."""
    designs = []

    def make(case):
        folder = tmp_path_factory.mktemp("design") / "design"
        with Progress() as progress:
            lowered = workflow.compile_files(case.model, case.shape, "u55c", folder, progress)
            designs.append(workflow.open_design(folder, lowered, progress))
        return designs[-1]

    yield make
    for design in designs:
        design.close()


@pytest.fixture(scope="module")
def gpt2_design(compiled, gpt2):
    return compiled(gpt2)


@pytest.mark.parametrize("seed", PROMPTS)
def test_design_decodes_as_pytorch_does(gpt2, gpt2_design, seed):
    comparison = compare(gpt2_design, gpt2, gpt2.prompt(seed))
    assert comparison.good() and comparison.distinct >= 12, comparison


@pytest.mark.parametrize("mutant", MUTANTS)
def test_comparison_sees_a_fault_in_the_design(gpt2, gpt2_design, mutant):
    comparison = compare(mutant(gpt2_design), gpt2, gpt2.prompt(0))
    assert comparison.logits > 1e-2 and not comparison.good(), comparison


def test_comparison_sees_a_skipped_layer(compiled, folder_of):
    case = Case.of(folder_of("gpt2"))
    skip_layer(case)
    comparison = compare(compiled(case), case, case.prompt(0))
    assert comparison.logits > 1e-2 and not comparison.good(), comparison


def test_reset_forgets(gpt2, gpt2_design):
    decoder = generation.Decoder(gpt2_design, gpt2.shape)
    first = [step.logits for step in decoder.steps(gpt2.prompt(1), 2)]
    again = [step.logits for step in decoder.steps(gpt2.prompt(1), 2)]
    assert all(torch.equal(one, other) for one, other in zip(first, again))


def test_any_module_compiles_and_runs(core_built):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(24, 48), torch.nn.GELU(), torch.nn.Linear(48, 10)
    ).eval()
    x = torch.randn(4, 24)
    with streamtensor.compile(module, (x,)) as design:
        got, expected = design(x), module(x).detach()
    assert (got - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_wrong_input_of_a_design_is_refused(core_built):
    module = torch.nn.Linear(8, 4)
    with streamtensor.compile(module, torch.zeros(1, 8)) as design:
        with pytest.raises(Error, match="takes 1"):
            design()
        with pytest.raises(Error, match=r"'arg0' is \(1, 9\)") as refused:
            design(torch.zeros(1, 9))
        assert "design takes (1, 8)" in refused.value.notes[0]
        with pytest.raises(Error, match="no 'other'"):
            design.read("other")
