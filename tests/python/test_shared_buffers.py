"""What is held once where it could be held several times: the numbers of several products, the
words of several readers.
"""

import json
import re
from pathlib import Path

import numpy
import pytest
import torch
from conftest import FAMILIES, stc

from streamtensor.language import builtin_models
from streamtensor.language.decoder_step import DecoderStep

TOKENS = 32
EXP, NEGATE, ADD = (
    "%v = {} : f32\n      linalg.yield %v : f32".format(op)
    for op in ("math.exp %a0", "arith.negf %a0", "arith.addf %a0, %a1")
)
MULTIPLY_ADD = (
    "%m = arith.mulf %a0, %a1 : f32\n      %v = arith.addf %o, %m : f32\n      linalg.yield "
    "%v : f32"
)


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def generic(name, inputs, result, body, dims, *maps, reductions=0):
    """inputs: (value, type); result: its type. An %e of that type is filled with %z for it."""
    kinds = ", ".join(
        ['"parallel"'] * (len(dims.split(",")) - reductions) + ['"reduction"'] * reductions
    )
    access = ", ".join(f"affine_map<({dims}) -> ({each})>" for each in maps)
    arguments = ", ".join(f"%a{i}: f32" for i in range(len(inputs)))
    values, types = (", ".join(each) for each in zip(*inputs))
    return f"""    %e{name} = tensor.empty() : {result}
    %f{name} = linalg.fill ins(%z : f32) outs(%e{name} : {result}) -> {result}
    %{name} = linalg.generic {{indexing_maps = [{access}], iterator_types = [{kinds}]}} \
ins({values} : {types}) outs(%f{name} : {result}) {{
    ^bb0({arguments}, %o: f32):
      {body}
    }} -> {result}
"""


def products(columns, rows):
    """exp(x) times a matrix of so many columns each: text of the module without its end."""
    x, weights = tensor(TOKENS, columns), [tensor(columns, n) for n in rows]
    arguments = ", ".join(
        [f'%x: {x} {{stream.name = "x"}}']
        + [f'%w{i}: {kind} {{stream.name = "w{i}"}}' for i, kind in enumerate(weights)]
    )
    text = "    %z = arith.constant 0.0 : f32\n" + generic(
        "y", [("%x", x)], x, EXP, "d0, d1", "d0, d1", "d0, d1"
    )
    for i, n in enumerate(rows):
        text += generic(
            f"p{i}",
            [("%y", x), (f"%w{i}", weights[i])],
            tensor(TOKENS, n),
            MULTIPLY_ADD,
            "d0, d1, d2",
            "d0, d2",
            "d2, d1",
            "d0, d1",
            reductions=1,
        )
    return arguments, text


def compiled(folder, arguments, text, results, *options):
    """results: (value, type)"""
    types = ", ".join(kind for _, kind in results)
    (folder / "m.mlir").write_text(
        f"module {{\n  func.func @main({arguments}) -> ({types}) {{\n{text}    return "
        f"{', '.join(value for value, _ in results)} : {types}\n  }}\n}}\n"
    )
    options = ("--register-tiles", "none", *options)  # which hold what they read by themselves
    done = stc("compile", "m.mlir", "--platform", "u55c", *options, "-o", "design", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "design" / "report.json").read_text())


def run(folder, results, **inputs):
    arguments = []
    for name, value in inputs.items():
        numpy.save(folder / f"{name}.npy", value)
        arguments += ["--in", f"{name}={name}.npy"]
    for i in range(results):
        arguments += ["--out", f"result{i}=y{i}.npy"]
    done = stc("run", "design", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [numpy.load(folder / f"y{i}.npy") for i in range(results)]


@pytest.mark.parametrize("rows", [(448, 128, 256), (128, 448, 256)])
def test_products_in_fewer_turns_take_the_first_ones(tmp_path, rows):
    """Each product takes all numbers again for every block of its columns: one array sends them, as
    often as the widest one wants.
    """
    columns = 96
    compiled(
        tmp_path,
        *products(columns, rows),
        [(f"%p{i}", tensor(TOKENS, n)) for i, n in enumerate(rows)],
    )
    text = (tmp_path / "design" / "report.txt").read_text()
    assert re.findall(r"(\d+) bytes on chip (\S+) -> (.*)", text) == [
        (str(4 * TOKENS * columns), "k0", "k1, k2, k3")
    ]
    random = numpy.random.default_rng(1)
    x = random.standard_normal((TOKENS, columns), numpy.float32)
    weights = [random.standard_normal((columns, n), numpy.float32) for n in rows]
    got = run(tmp_path, len(rows), x=x, **{f"w{i}": weight for i, weight in enumerate(weights)})
    for result, weight in zip(got, weights):
        numpy.testing.assert_allclose(result, numpy.exp(x) @ weight, rtol=1e-3, atol=1e-3)


def test_an_array_of_a_few_bytes_is_not_shared(tmp_path):
    """A product in few turns would wait for what the one in many turns is sent, for the sake of
    half a block RAM.
    """
    columns, rows = 16, (448, 128)
    compiled(
        tmp_path,
        *products(columns, rows),
        [(f"%p{i}", tensor(TOKENS, n)) for i, n in enumerate(rows)],
    )
    text = (tmp_path / "design" / "report.txt").read_text()
    assert re.findall(r"(\d+) bytes on chip (\S+) -> (.*)", text) == [
        (str(4 * TOKENS * columns), "k0", "k1"),
        (str(4 * TOKENS * columns), "k0", "k2"),
    ]


def test_words_of_readers_in_step_wait_once(tmp_path):
    """Queries of eight heads wait for all keys; the kernel that turns them reads each row in three
    ways, so they wait in front of the fork, not three times behind it.
    """
    heads, width = 8, 64
    columns, half, whole = 512, tensor(TOKENS, heads, width // 2), tensor(TOKENS, heads, width)
    arguments, text = products(columns, (heads * width, width))
    text += (
        f"    %q = tensor.expand_shape %p0 [[0], [1, 2]] output_shape [{TOKENS}, {heads}, "
        f"{width}] : {tensor(TOKENS, heads * width)} into {whole}\n"
    )
    for name, offset in (("low", 0), ("high", width // 2)):
        text += (
            f"    %{name} = tensor.extract_slice %q[0, 0, {offset}] [{TOKENS}, {heads}, "
            f"{width // 2}] [1, 1, 1] : {whole} to {half}\n"
        )
    text += generic("n", [("%high", half)], half, NEGATE, "d0, d1, d2", "d0, d1, d2", "d0, d1, d2")
    text += f"    %c = tensor.concat dim(2) %n, %low : ({half}, {half}) -> {whole}\n"
    text += generic(
        "r",
        [("%q", whole), ("%c", whole)],
        whole,
        ADD,
        "d0, d1, d2",
        "d0, d1, d2",
        "d0, d1, d2",
        "d0, d1, d2",
    )
    text += generic(
        "s",
        [("%r", whole), ("%p1", tensor(TOKENS, width))],
        tensor(heads, TOKENS, TOKENS),
        MULTIPLY_ADD,
        "d0, d1, d2, d3",
        "d1, d0, d3",
        "d2, d3",
        "d0, d1, d2",
        reductions=1,
    )
    report = compiled(
        tmp_path,
        arguments,
        text,
        [("%s", tensor(heads, TOKENS, TOKENS))],
        "--max-iterations",
        "30M",
    )
    assert report["intermediates"]["fifos"] <= 3 / 2 * 4 * TOKENS * heads * width


def once(members):
    """An object, no key of which is there twice: of two, a program would see the last."""
    assert len(dict(members)) == len(members)
    return dict(members)


def test_report_json_says_of_each_converter_what_report_txt_says(tmp_path):
    """Why it is there, what it costs and what would avoid it; with a small budget it goes through
    memory.
    """
    columns, rows = 96, (448,)
    for budget, cut in ((None, False), (8000, True)):
        folder = tmp_path / str(budget)
        folder.mkdir()
        compiled(
            folder,
            *products(columns, rows),
            [("%p0", tensor(TOKENS, *rows))],
            *(("--on-chip-memory", str(budget)) if budget else ()),
        )
        text, report = (
            (folder / "design" / name).read_text() for name in ("report.txt", "report.json")
        )
        shown = re.findall(
            r"(\d+) bytes (on chip|spilled to memory) (\S+) -> (.*)\n +written as (.*)\n +read "
            r"as +(.*)\n +avoidable by (.*)",
            text,
        )
        listed = json.loads(report, object_pairs_hook=once)["converters"]["list"]
        assert shown == [
            (
                str(c["bytes"]),
                "spilled to memory" if c["spilled"] else "on chip",
                c["writer"],
                ", ".join(c["readers"]),
                c["from"],
                c["to"],
                c["avoided_by"],
            )
            for c in listed
        ]
        assert [c["spilled"] for c in listed] == [cut] and all(
            stc("itensor", c["from"], c["to"]).returncode == 0 for c in listed
        )


@pytest.fixture
def table(monkeypatch, core_built):
    """bench/on_chip_memory.py, whose models are one small one, with a prompt of 8."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "bench"))
    import on_chip_memory

    monkeypatch.setitem(builtin_models.BUILT_IN, "small", FAMILIES["llama"])
    monkeypatch.setattr(on_chip_memory, "CONTEXT", 64)
    monkeypatch.setattr(on_chip_memory, "PROMPTS", {"prefill of 32": 8})
    return on_chip_memory


def test_its_table_is_made_of_modules_that_it_makes(table, tmp_path):
    model = table.shortened("small", 2)
    for phase in ("decode", *table.PROMPTS):
        module = table.module_of(model, phase, tmp_path)
        assert ('"state"' in module.read_text()) == (phase == "decode")
        line = table.row("small", phase, module, "trim")
        assert table.key(line) == ("small", phase)
        before, after, held = map(float, line.rstrip(" |").split(" | ")[-3:])
        assert 0 < before < after and 0 < held < after


def test_a_prompt_without_a_cache_is_the_models(table):
    model = table.shortened("small", 2)
    shape, module = table.shape_of(model.config, "prefill of 32"), model.with_values()
    ids = torch.arange(8)[None] * 7 % 97
    arguments = shape.inputs("cpu")
    assert (
        arguments[-2:] == [[], []] and [port.role for port in shape.input_ports()] == ["input"] * 3
    )
    logits, *made = DecoderStep(module, shape)(ids, arguments[1], arguments[2] + 8, [], [])
    with torch.no_grad():
        assert torch.allclose(logits[:, -1], module(ids).logits[:, -1], atol=1e-5)
    assert len(made) == len(shape.result_ports()) - 1 == 4 and {
        port.role for port in shape.result_ports()
    } == {"output"}
