"""Launches of several tokens, which the design chooses itself: the ids and the cache are those of
one launch per token, and PyTorch's.
"""

import json
import re
import subprocess
from dataclasses import replace

import numpy
import pytest
import torch
from conftest import Case, TorchDesign, host_of, small_case, stc

from streamtensor import cli, core, workflow
from streamtensor.errors import Error
from streamtensor.language import reference
from streamtensor.language.decoder_step import StepShape
from streamtensor.language.generation import BatchDecoder, Decoder
from streamtensor.progress import Progress

CONTEXT = 24
PROMPT = [3, 40, 7, 21, 9]


def case_of(folder, family: str, batch: int = 1) -> Case:
    case = small_case(folder, family, CONTEXT)
    return replace(case, shape=replace(case.shape, argmax=True, batch=batch))


@pytest.fixture(
    scope="module", params=[("gpt2", None), ("llama", "w4a8")], ids=["gpt2-f32", "llama-w4a8"]
)
def compiled(request, core_built, tmp_path_factory):
    """(case, the open design, its folder, its scheme)"""
    family, quant = request.param
    root = tmp_path_factory.mktemp("tokens")
    case = case_of(root / family, family)
    lowered = workflow.compile_files(
        case.model, case.shape, "u55c", root / "design", Progress(), quant
    )
    with workflow.open_design(root / "design", lowered, Progress()) as design:
        yield case, design, root / "design", quant


def decode(design, case: Case, per_launch: int, prompt, new: int, **options):
    """The new ids, the launches, and the cache behind them."""
    decoder, launches = Decoder(design, case.shape, per_launch=per_launch), []
    decoder.reset()
    ids = list(decoder.tokens(prompt, new, launched=launches.append, **options))
    return ids, launches, {name: design.read(name) for name in case.shape.cache_names()}


@pytest.mark.parametrize(
    "per_launch, prompt, new",
    [
        (2, 1, 4),
        (3, 5, 7),
        (7, 5, 3),
        (16, 5, CONTEXT - 5),
        (CONTEXT, 1, CONTEXT - 1),
        (4, CONTEXT - 1, 1),
    ],
)
def test_one_launch_is_as_many_of_one_token(compiled, per_launch, prompt, new):
    case, design, _, quant = compiled
    text = (PROMPT * 5)[:prompt]
    ids, launches, cache = decode(design, case, 1, text, new)
    found, together, kept = decode(design, case, per_launch, text, new)
    assert found == ids and all(torch.equal(cache[name], kept[name]) for name in cache)
    assert len(launches) == prompt + new - 1 and len(together) == -(-len(launches) // per_launch)
    assert sum(step.count for step in together) == len(launches)
    assert quant or ids == reference.greedy(case.model, case.tensors, text, new).ids


def test_ids_behind_an_end_are_dropped(compiled):
    case, design, _, _ = compiled
    ids, _, _ = decode(design, case, 1, PROMPT, 12)
    end = next(i for i in range(2, 12) if ids[i] not in ids[:i])
    found, launches, _ = decode(design, case, 16, PROMPT, 12, end={ids[end]})
    assert found == ids[: end + 1] and len(launches) == 1
    # what the cache holds behind the end is not taken for the conversation
    decoder = Decoder(design, case.shape, per_launch=16)
    decoder.reset()
    answer = list(decoder.tokens(PROMPT, 12, end={ids[end]}))
    following = [*PROMPT, *answer, 2, 3]
    assert list(decoder.tokens(following, 3)) == decode(design, case, 1, following, 3)[0]


def test_wrong_numbers_of_tokens_are_refused(compiled):
    case, design, _, _ = compiled
    first, given = torch.zeros(1, 1, dtype=torch.long), torch.zeros(2, 1, dtype=torch.long)
    for tokens, message in (
        (0, "a launch of 0 tokens"),
        (CONTEXT + 1, f"a launch of {CONTEXT + 1} tokens\nnote: accepted are 1 to {CONTEXT}"),
        (2, "3 prompt tokens for a launch of 2 tokens"),
    ):
        with pytest.raises(Error, match=message):
            design.launch_tokens(first, given, tokens)
    with pytest.raises(Error, match="needs a design that selects the token on the device"):
        Decoder(design, replace(case.shape, argmax=False), per_launch=2)
    with pytest.raises(Error, match="--tokens-per-launch 0"):
        Decoder(design, case.shape, per_launch=0)
    assert design.tokens_most() == CONTEXT


def test_run_writes_the_text(compiled, tmp_path):
    case, design, folder, _ = compiled
    ids, _, _ = decode(design, case, 1, PROMPT, 6)
    numpy.save(tmp_path / "ids.npy", numpy.array(PROMPT).reshape(-1, 1, 1))
    numpy.save(tmp_path / "one.npy", numpy.array([[PROMPT[0]]]))
    numpy.save(tmp_path / "zero.npy", numpy.array([[0]]))

    def run(tokens, given):
        return stc(
            "run",
            folder,
            "--tokens",
            tokens,
            "--in",
            f"ids={given}.npy",
            "--in",
            "positions=zero.npy",
            "--out",
            "ids=text.npy",
            cwd=tmp_path,
        )

    done = run(10, "ids")
    assert (
        done.returncode == 0
        and numpy.load(tmp_path / "text.npy").reshape(-1).tolist() == PROMPT + ids
    ), done.stderr
    assert run(1, "one").returncode == 0 and numpy.load(tmp_path / "text.npy").shape == (2, 1, 1)
    for tokens, given, message in (
        (CONTEXT + 1, "ids", f"accepted are 1 to {CONTEXT}"),
        (4, "ids", "5 prompt tokens for a launch of 4 tokens"),
    ):
        refused = run(tokens, given)
        assert (
            refused.returncode == 1
            and message in refused.stderr
            and refused.stderr.count("error:") == 1
        )


def test_the_host_program_writes_the_text(compiled, tmp_path):
    case, design, folder, _ = compiled
    ids, _, _ = decode(design, case, 1, PROMPT, 6)
    host, text = host_of(folder, tmp_path / "host"), tmp_path / "text"
    (tmp_path / "ids").write_bytes(numpy.array(PROMPT).tobytes())
    (tmp_path / "zero").write_bytes(numpy.array([0]).tobytes())

    def run(*words):
        return subprocess.run(
            [host, folder, "cpu", *words, f"positions={tmp_path}/zero"],
            capture_output=True,
            text=True,
            timeout=60,
        )

    words = ("--out", f"ids={text}", f"ids={tmp_path}/ids")
    done = run("--tokens", "10", *words)
    assert (
        done.returncode == 0
        and numpy.frombuffer(text.read_bytes(), numpy.int64).tolist() == PROMPT + ids
    ), done.stderr
    for tokens, message in (
        (f"{CONTEXT + 1}", f"accepted are 1 to {CONTEXT}"),
        ("x", f"accepted are 1 to {CONTEXT}"),
        ("4", "5 prompt tokens for a launch of 4 tokens"),
        ("3", "not the size of the input"),
    ):
        refused = run("--tokens", tokens, *words)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr
    assert (
        "no such input or output" in run(*words).stderr
        and "cannot be read" in run("--tokens", "2").stderr
    )


@pytest.mark.parametrize(
    "key, value",
    [
        ("offset", 10**9),
        ("offset", -1),
        ("most", 0),
        ("most", 2**40),
        ("most", CONTEXT + 1),
        ("input", "x"),
        ("output", "x"),
        ("buffer", "x"),
        ("token_count", "x"),
    ],
)
def test_a_damaged_text_is_refused(compiled, tmp_path, key, value):
    _, _, folder, _ = compiled
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["feedback"][key] = value
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    done = stc("run", tmp_path, "--tokens", "2", "--out", "ids=y.npy")
    assert (
        done.returncode == 1 and "manifest.json" in done.stderr and done.stderr.count("error:") == 1
    ), done.stderr


def test_the_simulation_sums_tokens(compiled):
    case, _, folder, _ = compiled
    each = [
        core.simulate(folder, None, {"positions": position})["cycles"] for position in range(3, 11)
    ]
    launch = core.simulate(folder, None, {"positions": 3}, 8)
    assert (
        launch["tokens"] == 8
        and abs(launch["cycles"] / sum(each) - 1) <= 0.002
        and 2 <= launch["simulated_steps"] <= 8
    )
    one = core.simulate(folder, None, {"positions": 3}, 1)
    assert (
        one["cycles"] == each[0]
        and one["latency_ms"] == core.simulate(folder, None, {"positions": 3})["latency_ms"]
    )
    us = 1000 * launch["latency_ms"] - launch["cycles"] / launch["clock_mhz"]
    assert abs(us - 45) < 0.1 and abs(launch["token_ms"] * 8 / launch["latency_ms"] - 1) < 1e-5
    report = json.loads((folder / "report.json").read_text())
    launch_ms = report["cycles"]["simulated"] / (1000 * report["clock_mhz"])
    assert (
        report["launches_per_token"] == 1 / 16
        and abs(report["token_ms"] - (launch_ms + 0.045 / 16)) < 1e-6
    )
    assert (
        abs(report["tokens_per_s"] * report["token_ms"] / 1000 - 1) < 1e-5
        and report["token_mj"] < report["energy"]["launch_mj"]
    )
    for words, message in (
        (["--tokens", "3"], "its first value is not given"),
        (["--tokens", "25", "--extent", "positions=0"], "accepted are 1 to 24"),
        (
            ["--tokens", "2", "--extent", "positions=0", "--launches", "2"],
            "--tokens cannot be combined with --launches or --overlap-launches",
        ),
    ):
        done = stc("simulate", folder, *words)
        assert done.returncode == 1 and message in done.stderr and done.stderr.count("error:") == 1


def test_a_design_without_a_choice_takes_one_token(core_built, tmp_path):
    case = small_case(tmp_path / "gpt2", "gpt2", CONTEXT)
    workflow.compile_files(
        case.model, case.shape, "u55c", tmp_path / "design", Progress(), values=False
    )
    assert (
        "feedback" not in (tmp_path / "design" / "manifest.json").read_text()
        and "--tokens" not in (tmp_path / "design" / "host" / "main.c").read_text()
    )
    for words in (
        ["run", tmp_path / "design", "--tokens", "2", "--out", "logits=y.npy"],
        ["simulate", tmp_path / "design", "--tokens", "2"],
    ):
        done = stc(*words, cwd=tmp_path)
        assert (
            done.returncode == 1
            and "a launch of this design processes one token" in done.stderr
            and done.stderr.count("error:") == 1
        )


def test_an_odd_vocabulary_is_searched_as_its_logits_come(core_built, tmp_path):
    """Words of four logits leave the engine, the last of them padded; the choice is that of a
    design that hands the logits out.
    """
    case = small_case(tmp_path / "gpt2", "gpt2", CONTEXT, vocab_size=509)
    found = []
    for argmax in (True, False):
        shape, folder = replace(case.shape, argmax=argmax), tmp_path / f"design{argmax}"
        lowered = workflow.compile_files(case.model, shape, "u55c", folder, Progress(), "w4a8")
        with workflow.open_design(folder, lowered, Progress()) as design:
            found.append(
                list(
                    Decoder(design, shape, per_launch=16 if argmax else 1).tokens(
                        PROMPT, CONTEXT - 5
                    )
                )
            )
    assert found[0] == found[1] and len(set(found[0])) > 4
    cycles = [
        core.simulate(tmp_path / f"design{argmax}", None, {"positions": 3})["cycles"]
        for argmax in (True, False)
    ]
    assert cycles[0] < cycles[1] + 300, cycles  # a number a cycle would take 509 more


def test_launches_of_a_batch(core_built, tmp_path):
    prompts, new = [[3, 5, 7, 9], [8, 1], [7, 7, 1]], 9
    case = case_of(tmp_path / "gpt2", "gpt2", len(prompts))
    lowered = workflow.compile_files(
        case.model, case.shape, "u55c", tmp_path / "design", Progress()
    )
    expected = [reference.greedy(case.model, case.tensors, prompt, new).ids for prompt in prompts]
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        for per_launch, launches in ((1, 12), (5, 3)):
            steps = []
            found = list(
                zip(
                    *BatchDecoder(design, case.shape, per_launch=per_launch).tokens(
                        prompts, new, launched=steps.append
                    )
                )
            )
            assert [list(ids) for ids in found] == expected and len(steps) == launches


@pytest.mark.parametrize("per_launch", [1, 3, 16])
def test_the_exported_step_goes_on_by_itself(tmp_path, per_launch):
    case = case_of(tmp_path / "llama", "llama")
    ids, launches, _ = decode(TorchDesign(case), case, per_launch, PROMPT, 8)
    assert ids == reference.greedy(case.model, case.tensors, PROMPT, 8).ids and len(launches) == -(
        -12 // per_launch
    )


def test_both_phases_and_several_tokens(core_built, tmp_path):
    """The prompt by prefill, what follows by launches of several tokens."""
    case = case_of(tmp_path / "gpt2", "gpt2")
    shapes = [
        case.shape,
        replace(StepShape.of(case.model.config, "prefill", CONTEXT, 4), argmax=True),
    ]
    lowered = workflow.compile_phases(case.model, shapes, "u55c", tmp_path / "design", Progress())
    phases = json.loads((tmp_path / "design" / "manifest.json").read_text())["phases"]
    assert ["feedback" in phase for phase in phases] == [True, False]
    with workflow.open_design(tmp_path / "design", lowered, Progress()) as design:
        decoder, steps, prompt = Decoder(design, *shapes, per_launch=6), [], (PROMPT * 2)[:9]
        assert (
            list(decoder.tokens(prompt, 10, launched=steps.append))
            == reference.greedy(case.model, case.tensors, prompt, 10).ids
        )
        assert [(step.phase, step.count) for step in steps] == [
            ("prefill", 4),
            ("prefill", 4),
            ("decode", 6),
            ("decode", 4),
        ]
        design.select_phase("prefill")
        with pytest.raises(Error, match="a launch of this design processes one token"):
            design.launch_tokens(
                torch.zeros(1, 4, dtype=torch.long), torch.zeros(0, 1, dtype=torch.long), 2
            )


ROWS = 4


@pytest.fixture(scope="module", params=[1, 2], ids=["one", "batch"])
def dynamic_tokens(request, core_built, tmp_path_factory):
    """One design of both phases, of one sequence or two: (case, the open design, its folder)"""
    root = tmp_path_factory.mktemp("counted")
    case = small_case(root / "gpt2", "gpt2", CONTEXT, ROWS)
    case = replace(
        case, shape=replace(case.shape, argmax=True, dynamic_tokens=True, batch=request.param)
    )
    lowered = workflow.compile_files(case.model, case.shape, "u55c", root / "design", Progress())
    with workflow.open_design(root / "design", lowered, Progress()) as design:
        yield case, design, root / "design"


def generate(design, case: Case, per_launch: int, prompts: list[list[int]], new: int):
    """Of each sequence the new ids; rows and tokens of the launches; and the cache behind them."""
    launches, batch = [], BatchDecoder(design, case.shape, case.shape, per_launch)
    ids = [list(tokens) for tokens in zip(*batch.tokens(prompts, new, launched=launches.append))]
    return (
        ids,
        [(step.rows, step.count) for step in launches],
        {name: design.read(name) for name in case.shape.cache_names()},
    )


def prompts_of(case: Case, length: int) -> list[list[int]]:
    """The first is as long as that; a second one is shorter."""
    return [(PROMPT * 5)[i : length - 2 * i] or PROMPT[:1] for i in range(case.shape.batch)]


@pytest.mark.parametrize(
    "length, new, per_launch, expected",
    [
        (9, 8, 16, [(9, 16)]),
        (8, 5, 16, [(8, 12)]),
        (8, 5, 2, [(8, 8), (1, 2), (1, 2)]),
        (11, 4, 3, [(11, 11), (1, 3)]),
        (11, 4, 2, [(8, 8), (3, 4), (1, 2)]),
        (13, 1, 16, [(13, 13)]),
        (3, 4, 3, [(3, 5), (1, 1)]),
        (CONTEXT - 1, 1, 16, [(CONTEXT - 1, CONTEXT - 1)]),
        (20, CONTEXT - 20, 16, [(20, CONTEXT - 1)]),
    ],
)
def test_one_launch_takes_the_chunks_of_a_prompt(dynamic_tokens, length, new, per_launch, expected):
    """And then tokens that it chose: ids and cache are those of a launch a step, and PyTorch's."""
    case, design, _ = dynamic_tokens
    prompts = prompts_of(case, length)
    ids, apart, cache = generate(design, case, 1, prompts, new)
    found, launches, kept = generate(design, case, per_launch, prompts, new)
    assert launches == expected and apart == [
        (min(ROWS, length - at),) * 2 for at in range(0, length, ROWS)
    ] + (new - 1) * [(1, 1)]
    assert (
        found
        == ids
        == [reference.greedy(case.model, case.tensors, prompt, new).ids for prompt in prompts]
    )
    assert all(torch.equal(cache[name], kept[name]) for name in cache)
    exported = TorchDesign(case)
    assert generate(exported, case, per_launch, prompts, new)[:2] == (ids, expected)


def test_chunks_that_a_launch_has_no_room_for_are_refused(dynamic_tokens):
    case, design, _ = dynamic_tokens
    batch = case.shape.batch
    first, given = (
        torch.zeros(batch, ROWS, dtype=torch.long),
        torch.zeros(9, batch, dtype=torch.long),
    )
    for name, value in (("positions", 0), ("tokens", ROWS)):
        design.write(name, torch.tensor([[value]]))
    if batch > 1:
        design.write("starts", torch.zeros(batch, 1, dtype=torch.long))
    for steps, message in (
        (3, "10 prompt tokens for a launch of 3 tokens\nnote: accepted are 1 to 9"),
        (1, "10 prompt tokens for a launch of 1 tokens\nnote: accepted are 1 to 1"),
    ):
        with pytest.raises(Error) as error:
            design.launch_tokens(first, given, steps)
        assert str(error.value).count(message) == 1
    # four steps: three chunks behind the first, and one row for what comes out
    text = torch.cat(
        [first.reshape(-1), given.reshape(-1), torch.zeros(2 * batch, dtype=torch.long)]
    )
    for rows in (0, 2):
        with pytest.raises(
            Error,
            match=f"10 tokens and the one that follows take {8 * batch * 14} bytes, not "
            f"{8 * batch * (13 + rows)}",
        ):
            design._call("tokens", 4, 10, text.data_ptr(), 8 * batch * (13 + rows))
    assert len(design.launch_tokens(first, given, 4)) == 10
    for name, value in (("positions", 12), ("tokens", ROWS)):
        design.write(name, torch.tensor([[value]]))
    with pytest.raises(
        Error,
        match=f"'positions' is 12 in a launch of 13 tokens\nnote: accepted are 0 to {CONTEXT - 13}",
    ):
        design.launch_tokens(first, given, 4)


def test_the_simulation_reads_a_prompt_of_several_chunks(dynamic_tokens):
    case, design, folder = dynamic_tokens
    # more numbers of the text are read, and written where the next step reads them

    def between(rows):
        return 2 * case.shape.batch * (rows - 1)

    for prompt, steps in ((10, 6), (8, 2), (8, 3), (9, 3), (4, 2), (1, 3)):
        chunks = [min(ROWS, prompt - at) for at in range(0, prompt, ROWS)]
        rows = chunks + (steps - len(chunks)) * [1]
        # one more where another chunk follows
        said = [
            count + (design.can_continue("tokens") and step < len(chunks) - 1)
            for step, count in enumerate(rows)
        ]
        each = [
            core.simulate(folder, None, {"positions": 1 + sum(rows[:step]), "tokens": said[step]})[
                "cycles"
            ]
            for step in range(steps)
        ]
        whole = core.simulate(folder, None, {"positions": 1, "tokens": prompt}, steps)
        assert whole["cycles"] == sum(each) + sum(between(count) for count in chunks[1:]) and (
            whole["tokens"],
            whole["steps"],
        ) == (sum(rows), steps)
        assert abs(1000 * whole["latency_ms"] - whole["cycles"] / whole["clock_mhz"] - 45) < 0.1
    for words, message in (
        (["--extent", "tokens=5"], f"the design is built for at most {ROWS}"),
        (["--tokens", "2", "--extent", "tokens=9"], f"the design is built for at most {2 * ROWS}"),
        (
            ["--tokens", "5", "--extent", "tokens=16", "--extent", f"positions={CONTEXT - 16}"],
            f"17 tokens after {CONTEXT - 16} cached ones exceed the context",
        ),
        (["--tokens", "25", "--extent", "tokens=9"], f"accepted are 1 to {CONTEXT}"),
    ):
        done = stc(
            "simulate",
            folder,
            *words,
            *(["--extent", "positions=0"] if "positions=" not in "".join(words) else []),
        )
        assert (
            done.returncode == 1 and message in done.stderr and done.stderr.count("error:") == 1
        ), done.stderr


def test_run_reads_the_chunks_of_a_prompt(dynamic_tokens, tmp_path):
    case, design, folder = dynamic_tokens
    prompts, new = (
        torch.tensor([[*PROMPT, 6, 2, 8, 30], [5, 1, *PROMPT, 9, 4]][: case.shape.batch]),
        4,
    )
    ids, _, _ = generate(design, case, 1, prompts.tolist(), new)
    values = {
        "ids": prompts.numpy(),
        "positions": [[0]],
        "tokens": [[ROWS]],
        "starts": case.shape.batch * [[0]],
    }
    for name, value in values.items():
        numpy.save(tmp_path / f"{name}.npy", numpy.array(value))
    words = [
        word
        for name in ("ids", *case.shape.scalar_names())
        for word in ("--in", f"{name}={name}.npy")
    ]

    def run(tokens):
        return stc("run", folder, "--tokens", tokens, *words, "--out", "ids=text.npy", cwd=tmp_path)

    done = run(6)
    assert done.returncode == 0, done.stderr
    assert numpy.load(tmp_path / "text.npy").reshape(-1, case.shape.batch).T.tolist() == [
        [*prompt[ROWS:], *answer] for prompt, answer in zip(prompts.tolist(), ids)
    ]
    refused = run(2)
    assert (
        refused.returncode == 1
        and "6 prompt tokens for a launch of 2 tokens\nnote: accepted are 1 to 5"
        in refused.stderr.replace("stc: ", "")
        and refused.stderr.count("error:") == 1
    ), refused.stderr


def test_the_host_program_reads_the_chunks_of_a_prompt(dynamic_tokens, tmp_path):
    case, design, folder = dynamic_tokens
    batch, prompt, new = case.shape.batch, (PROMPT * 2)[:9], 4
    ids, _, _ = generate(design, case, 1, batch * [prompt], new)
    host, text, numbers = (
        host_of(folder, tmp_path / "host"),
        tmp_path / "text",
        torch.tensor(batch * [prompt]),
    )
    (tmp_path / "ids").write_bytes(
        torch.cat([numbers[:, :ROWS].reshape(-1), numbers[:, ROWS:].T.reshape(-1)])
        .numpy()
        .tobytes()
    )
    for name, values in (("positions", [0]), ("tokens", [ROWS]), ("starts", batch * [0])):
        (tmp_path / name).write_bytes(numpy.array(values).tobytes())
    words = [f"{name}={tmp_path}/{name}" for name in ("ids", *case.shape.scalar_names())]

    def run(tokens):
        return subprocess.run(
            [host, folder, "cpu", "--tokens", tokens, "--out", f"ids={text}", *words],
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = run("6")
    made = numpy.frombuffer(text.read_bytes(), numpy.int64).reshape(-1, batch)
    assert done.returncode == 0 and made.T.tolist() == [prompt[ROWS:] + answer for answer in ids], (
        done.stderr
    )
    for tokens, message in (
        ("2", "6 prompt tokens for a launch of 2 tokens"),
        ("1", "not the size of the input"),
    ):
        refused = run(tokens)
        assert refused.returncode == 1 and message in refused.stderr, refused.stderr


def test_generate_takes_several_tokens_a_launch(core_built, tmp_path, capsys):
    case = case_of(tmp_path / "llama", "llama")
    command = [
        "generate",
        str(tmp_path / "llama"),
        "--prompt-ids",
        "3,40,7",
        "--max-new-tokens",
        "9",
        "--context",
        str(CONTEXT),
        "--prefill-chunk",
        "1",
        "--platform",
        "u55c",
    ]
    assert cli.main([*command, "--tokens-per-launch", "4"]) == 0
    out = capsys.readouterr().out
    expected = reference.greedy(case.model, case.tensors, [3, 40, 7], 9).ids
    assert out.splitlines()[0] == ",".join(map(str, expected))
    assert (
        re.search(r"^total +[\d.]+ ms on the accelerator: 3 launches for 9 new tokens", out, re.M)
        and "15 us launch overhead: 3 tokens per launch" in out
    ), out
    for words, message in (
        (["--argmax", "--tokens-per-launch", "0"], "--tokens-per-launch 0 is too few"),
        (
            ["--tokens-per-launch", "4", "--temperature", "1"],
            "--tokens-per-launch 4 needs a design that selects the token on the device",
        ),
    ):
        assert cli.main([*command, *words]) == 1 and message in capsys.readouterr().err


def test_what_layers_pick_from_is_made_of_tokens_that_count(core_built, tmp_path):
    """Gemma 3's layers pick one of two tables of sines, and of cosines: of a launch that counts its
    tokens, no rows of them are made for tokens that are not there.
    """
    case = small_case(
        tmp_path / "model",
        "gemma3",
        64,
        32,
        max_position_embeddings=64,
        hidden_size=128,
        layer_types=["sliding_attention", "full_attention"],
    )
    (tmp_path / "model.mlir").write_text(
        case.model.lower(replace(case.shape, dynamic_tokens=True)).text
    )
    done = stc(
        "compile",
        tmp_path / "model.mlir",
        "--platform",
        "u55c",
        "--quant",
        "w4a8",
        "--stop-after",
        "bind_token_count",
        "-o",
        tmp_path / "bound.mlir",
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "bound.mlir").read_text().splitlines()
    maker = {
        found[1]: line
        for line in lines
        if (found := re.match(r'\s*(%\d+) = "stream.kernel"', line))
    }
    picks = [
        found[1].split(", ")[1:]
        for line in lines
        if (found := re.search(r'"stream.layer_select"\((.*?)\)', line))
    ]
    tables = [pick for pick in picks if all(value in maker for value in pick)]
    assert len(tables) == 2 and all(
        'symbol = "tokens"' in maker[value] for pick in tables for value in pick
    )
