"""Run-time extents: the work, and what is read, ends where the input says."""

import json
from pathlib import Path

import numpy
import pytest
from conftest import stc

from streamtensor import core

MODEL = Path(__file__).resolve().parents[1] / "models" / "attention.mlir"
CHUNK = MODEL.with_name("chunk.mlir")
SPLIT_KEYS = MODEL.with_name("split_keys.mlir")
ROWS = 15
MANY = 63  # so many that a sum over them is made of partial sums


def compiled(model, folder, *options):
    """Every pass is held to what it promises on the way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMTENSOR_STRESS", "1")
        done = stc("compile", model, "--platform", "u55c", *options, "-o", folder / "design")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return compiled(MODEL, tmp_path_factory.mktemp("extents"))


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("longer")
    (folder / "m.mlir").write_text(
        MODEL.read_text().replace("2x15x8", f"2x{MANY}x8").replace("2x16", f"2x{MANY + 1}")
    )
    core.compile_design(
        [core.Source(folder / "m.mlir")], None, ["--platform", "u55c"], folder / "design"
    )
    assert "acc[8]" in (folder / "design" / "hls" / "top_m.cpp").read_text()
    return folder


@pytest.mark.parametrize("past", [0, 1, 2, 7, ROWS - 1, ROWS])
def test_rows_beyond_are_not_read(built, past):
    check_rows(built, past, ROWS)


@pytest.mark.parametrize("past", [0, 1, 6, 7, 8, MANY - 1, MANY])
def test_partial_sums_of_few_terms(longer, past):
    check_rows(longer, past, MANY)


def run_with(folder, inputs, *results):
    arguments = []
    for name, value in inputs.items():
        numpy.save(folder / f"{name}.npy", value)
        arguments += ["--in", f"{name}={name}.npy"]
    return stc("run", folder / "design", *arguments, *results, cwd=folder)


def check_rows(built, past, most):
    random = numpy.random.default_rng(past)
    inputs = {
        "q": random.standard_normal((2, 8), numpy.float32),
        "n": random.standard_normal((2, 1, 8), numpy.float32),
        "k": random.standard_normal((2, most, 8), numpy.float32),
        "past": numpy.array([past]),
    }
    inputs["k"][:, past:] = numpy.nan
    done = run_with(built, inputs, "--out", "result0=y.npy")
    assert done.returncode == 0, done.stderr
    seen = numpy.concatenate([inputs["n"], inputs["k"][:, :past]], 1)
    expected = numpy.exp(numpy.einsum("hd,hkd->hk", inputs["q"], seen)).sum(1)
    numpy.testing.assert_allclose(numpy.load(built / "y.npy"), expected, rtol=1e-6)


def test_parts_of_a_key_end_together(tmp_path):
    """A score sums over both parts, so that rows beyond count for neither."""
    compiled(SPLIT_KEYS, tmp_path)
    random, past = numpy.random.default_rng(1), 6
    extents = dict(q=(2, 8), mask=(2, 16), k=(2, ROWS, 4), all=(ROWS, 4), n=(2, 1, 4), m=(1, 4))
    inputs = {name: random.standard_normal(each, numpy.float32) for name, each in extents.items()}
    inputs["k"][:, past:] = inputs["all"][past:] = numpy.nan
    done = run_with(tmp_path, {**inputs, "past": numpy.array([past])}, "--out", "result0=y.npy")
    assert done.returncode == 0, done.stderr
    own = numpy.concatenate([inputs["n"], inputs["k"][:, :past]], 1)
    shared = numpy.concatenate([inputs["m"], inputs["all"][:past]])
    scores = numpy.einsum("hd,hkd->hk", inputs["q"][:, :4], own) + inputs["q"][:, 4:] @ shared.T
    expected = numpy.exp(scores + inputs["mask"][:, : past + 1]).sum(1)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "y.npy"), expected, rtol=1e-5)


def test_cycles_grow_with_the_extent(built):
    cycles = []
    for past in (0, 4, ROWS):
        done = stc("simulate", built / "design", "--extent", f"past={past}", "--json")
        assert done.returncode == 0, done.stderr
        cycles.append(json.loads(done.stdout)["cycles"])
    assert cycles == sorted(cycles) and cycles[0] < cycles[1] < cycles[2]
    assert json.loads(stc("simulate", built / "design", "--json").stdout)["cycles"] == cycles[2]


@pytest.mark.parametrize(
    "extent, message",
    [
        ("past", "NAME=COUNT"),
        ("past=-1", "NAME=COUNT"),
        ("future=3", "no run-time extent of this name\nnote: past"),
        ("past=16", "built for at most 15"),
    ],
)
def test_wrong_extents_are_refused(built, extent, message):
    done = stc("simulate", built / "design", "--extent", extent)
    assert done.returncode == 1 and message in done.stderr and not done.stdout


def test_an_extent_given_twice_is_refused(built):
    done = stc("simulate", built / "design", "--extent", "past=1", "--extent", "past=2")
    assert done.returncode == 1 and "--extent names 'past' twice" in done.stderr and not done.stdout


@pytest.mark.parametrize(
    "change, message",
    [
        (('["", "past", ""]', '["", "now", ""]'), "no input of one integer"),
        (('["", "past", ""]', '["past", ""]'), "another rank"),
        (
            (
                "dim(1) %n, %k : (tensor<2x1x8xf32>, tensor<2x15x8xf32>)",
                "dim(1) %k, %n : (tensor<2x15x8xf32>, tensor<2x1x8xf32>)",
            ),
            "is not the last part of a concat",
        ),
    ],
)
def test_what_cannot_be_bound_is_refused(tmp_path, change, message):
    (tmp_path / "m.mlir").write_text(MODEL.read_text().replace(*change))
    done = stc("compile", "m.mlir", "--platform", "u55c", "-o", "d", cwd=tmp_path)
    assert done.returncode == 1 and message in done.stderr and not (tmp_path / "d").exists()


@pytest.fixture(scope="module")
def chunk(tmp_path_factory):
    return compiled(CHUNK, tmp_path_factory.mktemp("chunk"))


@pytest.fixture(scope="module")
def chunk_in_memory(tmp_path_factory):
    """As little on chip as can be: edges with as many rows as there are go through memory."""
    folder = compiled(CHUNK, tmp_path_factory.mktemp("memory"), "--on-chip-memory", "428")
    assert (folder / "design" / "design.mlir").read_text().count('_spill_load"') == 2
    return folder


@pytest.mark.parametrize(
    "past, fresh",
    [(0, 3), (1, 1), (7, 2), (ROWS - 3, 3), (ROWS - 2, 3), (ROWS - 1, 1), (ROWS, 0), (4, 0)],
)
def test_only_the_rows_that_count_are_written(chunk, past, fresh):
    check_chunk(chunk, past, fresh)


@pytest.mark.parametrize("past, fresh", [(0, 3), (7, 2), (ROWS, 0)])
def test_rows_through_memory(chunk_in_memory, past, fresh):
    check_chunk(chunk_in_memory, past, fresh)


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Room for as many rows as are new: parts of a concat that are equally long at compile time
    only.
    """
    folder = tmp_path_factory.mktemp("halves")
    (folder / "m.mlir").write_text(
        CHUNK.read_text()
        .replace("2x15x8", "2x3x8")
        .replace("2x18x8", "2x6x8")
        .replace("2x3x18", "2x3x6")
    )
    return compiled(folder / "m.mlir", folder)


@pytest.mark.parametrize("past, fresh", [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_as_many_rows_as_are_new(halves, past, fresh):
    check_chunk(halves, past, fresh, 3)


def test_no_launch_is_behind_more_rows_than_count(tmp_path):
    """A state may have more rows than may be there, as one that was padded has."""
    text = CHUNK.read_text().replace(
        'stream.token_count = "fresh"', 'stream.token_count = "fresh", stream.past = 12 : i64'
    )
    for name in "qn":
        text = text.replace(
            f'{{stream.name = "{name}"}}',
            f'{{stream.name = "{name}", stream.role = "input", stream.token_count = "fresh", '
            f"stream.axis = 1 : i64}}",
        )
    (tmp_path / "m.mlir").write_text(text)
    design = compiled(tmp_path / "m.mlir", tmp_path) / "design"
    assert [
        (launch["tokens"], launch["past_tokens"])
        for launch in json.loads((design / "report.json").read_text())["launches"]
    ] == [(1, 12), (3, 12), (1, 0)]
    done = stc("simulate", design, "--extent", "past=13")
    assert done.returncode == 1 and "built for at most 12" in done.stderr


def check_chunk(chunk, past, fresh, rows=ROWS):
    random = numpy.random.default_rng(17 * past + fresh + 2)
    inputs = {
        "q": random.standard_normal((2, 3, 8), numpy.float32),
        "n": random.standard_normal((2, 3, 8), numpy.float32),
        "k": random.standard_normal((2, rows, 8), numpy.float32),
        "past": numpy.array([past]),
        "fresh": numpy.array([fresh]),
    }
    inputs["k"][:, past:] = numpy.nan
    done = run_with(chunk, inputs, "--out", "result0=y.npy", "--out", "k=after.npy")
    assert done.returncode == 0, done.stderr
    seen = numpy.concatenate([inputs["n"], inputs["k"][:, :past]], 1)
    expected = numpy.exp(numpy.einsum("hqd,hkd->hqk", inputs["q"], seen)).sum(2)
    numpy.testing.assert_allclose(numpy.load(chunk / "y.npy"), expected, rtol=1e-6)
    after = inputs["k"].copy()
    for row in range(fresh):
        # a last token takes the place of the one before it
        after[:, min(past + row, rows - 1)] = inputs["n"][:, row]
    numpy.testing.assert_array_equal(numpy.load(chunk / "after.npy"), after)


@pytest.mark.parametrize(
    "past, fresh, message",
    [
        (-1, 1, f"'past' is -1\nnote: accepted are 0 to {ROWS}"),
        (ROWS + 1, 0, f"accepted are 0 to {ROWS}"),
        (4, -1, "accepted are 0 to 3"),
        (4, 4, "accepted are 0 to 3"),
        (
            ROWS - 1,
            3,
            f"'past' is {ROWS - 1} in a launch of 3 tokens\nnote: accepted are 0 to {ROWS - 2}",
        ),
    ],
)
def test_rows_that_there_is_no_room_for_are_refused(chunk, past, fresh, message):
    done = run_with(
        chunk,
        {
            "q": numpy.zeros((2, 3, 8), numpy.float32),
            "n": numpy.zeros((2, 3, 8), numpy.float32),
            "k": numpy.zeros((2, ROWS, 8), numpy.float32),
            "past": numpy.array([past]),
            "fresh": numpy.array([fresh]),
        },
        "--out",
        "k=refused.npy",
    )
    assert (
        done.returncode == 1
        and message in done.stderr
        and done.stderr.count("error:") == 1
        and not (chunk / "refused.npy").exists()
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (('stream.token_count = "fresh"', 'stream.token_count = "now"'), "stream.token_count"),
        (('stream.token_count = "fresh"', 'stream.token_count = "q"'), "stream.token_count"),
        (("2x15x8", "2x2x8"), "no more rows than the state has"),
    ],
)
def test_rows_that_cannot_be_written_are_refused(tmp_path, change, message):
    text = CHUNK.read_text().replace(*change)
    (tmp_path / "m.mlir").write_text(
        text.replace("2x18x8", "2x5x8").replace("2x3x18", "2x3x5") if "2x15" in change[0] else text
    )
    done = stc("compile", "m.mlir", "--platform", "u55c", "-o", "d", cwd=tmp_path)
    assert (
        done.returncode == 1
        and message in done.stderr
        and done.stderr.count("error:") == 1
        and not (tmp_path / "d").exists()
    )
