"""Schedules of one kernel: what several rows, several terms and sums in turn compute, as emitted
C++ against numpy.
"""

import re

import numpy
import pytest
import torch
from conftest import ROOT, stc

import streamtensor

HEADS, KEYS, WIDTH, TERMS = 3, 24, 16, 256

HEAD = """"builtin.module"() ({{
  "func.func"() ({{
  ^bb0({arguments}):
    %r = "stream.kernel"({values}) {{access = [{access}], init = 0{zero} : {result}, loops = \
array<i64: {loops}>, name = "k", {order}operand_segment_sizes = array<i32: {segments}>,
      {post}reduction = array<i64: {reduction}>, result = {address}, update = @k.update}} : \
({types}) -> {tensor}
    "func.return"(%r) : ({tensor}) -> ()
  }}) {{arg_attrs = [{names}], function_type = ({types}) -> {tensor}, res_attrs = [{{stream.name \
= "y", stream.role = "output"}}], sym_name = "main"}} : () -> ()
{bodies}}}) {{stream.level = "tensor"}} : () -> ()
"""


def body(name, types, lines):
    arguments, result = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(types)), types[-1]
    return (
        f'  "func.func"() ({{\n  ^bb0({arguments}):\n{lines}    "func.return"(%y) : '
        f"({result}) -> ()\n"
        f'  }}) {{function_type = ({", ".join(types)}) -> {result}, sym_name = "k.{name}", '
        f'sym_visibility = "private"}} : () -> ()\n'
    )


def module(operands, access, loops, reduction, address, result, tensor, bodies, ordered):
    types = [kind for _, kind in operands]
    maps = [
        f"affine_map<({', '.join(f'd{i}' for i in range(len(loops)))}) -> ({text})>"
        for text in [*access, address]
    ]
    return HEAD.format(
        arguments=", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types)),
        values=", ".join(f"%a{i}" for i in range(len(types))),
        access=", ".join(maps[:-1]),
        address=maps[-1],
        loops=", ".join(map(str, loops)),
        reduction=", ".join(map(str, reduction)),
        types=", ".join(types),
        tensor=tensor,
        result=result,
        zero=".0" if result == "f32" else "",
        order="ordered, " if ordered else "",
        post="post = @k.post, " if "k.post" in bodies else "",
        segments=", ".join(["1" if i < len(operands) else "0" for i in range(32)]),
        names=", ".join(
            f'{{stream.name = "{name}", stream.role = "input"}}' for name, _ in operands
        ),
        bodies=bodies,
    )


# x * (n where the key is the first, else row), added up
CHOSEN = """    %4 = "stream.index"() {loop = 1 : i64} : () -> index
    %5 = "arith.constant"() {value = 0 : index} : () -> index
    %6 = "arith.cmpi"(%4, %5) {predicate = 0 : i64} : (index, index) -> i1
    %7 = "arith.select"(%6, %2, %1) : (i1, i8, i8) -> i8
    %8 = "arith.extsi"(%7) : (i8) -> i32
    %9 = "arith.extsi"(%0) : (i8) -> i32
    %10 = "arith.muli"(%9, %8) : (i32, i32) -> i32
    %y = "arith.addi"(%3, %10) : (i32, i32) -> i32
"""
ROWS = f"d0 * {KEYS * WIDTH} + d1 * {WIDTH} + d2"
PRODUCT = body("update", ["i8", "i8", "i8", "i32"], CHOSEN)
SCORES = module(
    [
        ("x", f"tensor<{HEADS}x{WIDTH}xi8>"),
        ("row", f"tensor<{HEADS}x{KEYS}x{WIDTH}xi8>"),
        ("n", f"tensor<{HEADS}x{WIDTH}xi8>"),
    ],
    [f"d0 * {WIDTH} + d2", ROWS, f"d0 * {WIDTH} + d2"],
    [HEADS, KEYS, WIDTH],
    [0, 0, 1],
    f"d0 * {KEYS} + d1",
    "i32",
    f"tensor<{HEADS}x{KEYS}xi32>",
    PRODUCT,
    True,
)
VALUES = module(
    [
        ("x", f"tensor<{HEADS}x{KEYS}xi8>"),
        ("row", f"tensor<{HEADS}x{KEYS}x{WIDTH}xi8>"),
        ("n", f"tensor<{HEADS}x{WIDTH}xi8>"),
    ],
    [f"d0 * {KEYS} + d1", ROWS, f"d0 * {WIDTH} + d2"],
    [HEADS, KEYS, WIDTH],
    [0, 1, 0],
    f"d0 * {WIDTH} + d2",
    "i32",
    f"tensor<{HEADS}x{WIDTH}xi32>",
    PRODUCT,
    True,
)
SUMS = module(
    [("x", f"tensor<{HEADS}x{TERMS}xf32>"), ("s", f"tensor<{HEADS}xf32>")],
    [f"d0 * {TERMS} + d1", "d0"],
    [HEADS, TERMS],
    [0, 1],
    "d0",
    "f32",
    f"tensor<{HEADS}xf32>",
    body("update", ["f32", "f32", "f32"], '    %y = "arith.addf"(%2, %0) : (f32, f32) -> f32\n')
    + body("post", ["f32", "f32", "f32"], '    %y = "arith.mulf"(%2, %1) : (f32, f32) -> f32\n'),
    False,
)


def run(folder, text, widths, inputs):
    """The result, and the emitted text."""
    (folder / "k.mlir").write_text(text)
    done = stc(
        "compile",
        folder / "k.mlir",
        "--from",
        "choose_parallelism",
        "--platform",
        "u55c",
        "--fix-kernel",
        f"k:{widths}",
        "-o",
        folder / "design",
    )
    assert done.returncode == 0, done.stderr
    arguments = []
    for name, value in inputs.items():
        numpy.save(folder / f"{name}.npy", value)
        arguments += ["--in", f"{name}={folder / name}.npy"]
    done = stc("run", folder / "design", *arguments, "--out", f"y={folder / 'y.npy'}")
    assert done.returncode == 0, done.stderr
    return numpy.load(folder / "y.npy"), next((folder / "design" / "hls").glob("*.cpp")).read_text()


def rows_of(random):
    row, n = (
        random.integers(-128, 128, (HEADS, KEYS, WIDTH), numpy.int8),
        random.integers(-128, 128, (HEADS, WIDTH), numpy.int8),
    )
    whole = row.astype(numpy.int32)
    whole[:, 0] = n
    return row, n, whole


@pytest.mark.parametrize(
    "program, extent, product, rows",
    [
        (SCORES, WIDTH, "hd,hkd->hk", 1),
        (SCORES, WIDTH, "hd,hkd->hk", 4),
        (VALUES, KEYS, "hk,hkd->hd", 1),
        (VALUES, KEYS, "hk,hkd->hd", 2),
        (VALUES, KEYS, "hk,hkd->hd", 4),
    ],
)
def test_products_of_rows_told_by_their_number(
    core_built, tmp_path, program, extent, product, rows
):
    """Sums side by side, and several terms at once."""
    random = numpy.random.default_rng(rows)
    row, n, whole = rows_of(random)
    x = random.integers(-128, 128, (HEADS, extent), numpy.int8)
    found, _ = run(
        tmp_path, program, f"lanes={WIDTH},row-unroll={rows}", {"x": x, "row": row, "n": n}
    )
    assert (found == numpy.einsum(product, x.astype(numpy.int32), whole)).all()


def tree(terms, combine=numpy.add):
    while len(terms) > 1:
        terms = [combine(left, right) for left, right in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def test_sums_in_turn_go_on_with_the_next_one(core_built, tmp_path):
    """Partial sums of every second point are put together while those of the next one are formed,
    in one loop.
    """
    random = numpy.random.default_rng(0)
    x, s = (
        random.standard_normal((HEADS, TERMS), numpy.float32),
        random.standard_normal(HEADS, numpy.float32),
    )
    found, text = run(tmp_path, SUMS, "lanes=4", {"x": x, "s": s})
    assert "acc[16]" in text
    for head in range(HEADS):
        parts = [numpy.float32(0)] * 8
        for word in range(TERMS // 4):
            parts[word % 8] += tree(list(x[head, 4 * word : 4 * word + 4]))
        assert found[head] == tree(parts) * s[head]


@pytest.mark.parametrize("least", ["0.0", "1.5"])
def test_largest_in_turn_of_many_short_rows(core_built, tmp_path, least):
    """The largest of a row, and of what it begins with: rows are short, but in turn they cost no
    cycle for their partial results.
    """
    rows, numbers = 40, 32
    largest = module(
        [("x", f"tensor<{rows}x{numbers}xf32>")],
        [f"d0 * {numbers} + d1"],
        [rows, numbers],
        [0, 1],
        "d0",
        "f32",
        f"tensor<{rows}xf32>",
        body("update", ["f32", "f32"], '    %y = "arith.maximumf"(%1, %0) : (f32, f32) -> f32\n'),
        False,
    )
    x = numpy.random.default_rng(0).standard_normal((rows, numbers), numpy.float32)
    found, text = run(
        tmp_path, largest.replace("init = 0.0", f"init = {least}"), "lanes=2", {"x": x}
    )
    assert "acc[4]" in text
    assert (found == numpy.maximum(x.max(1), numpy.float32(least))).all()


TILES, TURNS, ROWS_MOST, BLOCKS_MOST = 2, 5, 3, 11
SUM = '    %y = "arith.addf"(%{0}, %0) : (f32, f32) -> f32\n'
LARGEST = '    %y = "arith.maximumf"(%1, %0) : (f32, f32) -> f32\n'
SCALED = '    %y = "arith.mulf"(%2, %1) : (f32, f32) -> f32\n'
TOTAL = """    %total = "stream.kernel"(%r) {{access = [affine_map<({dims}) -> ({access})>], init \
= 0.0 : f32, loops = array<i64: {loops}>, name = "total", operand_segment_sizes = array<i32: \
{segments}>,
      reduction = array<i64: {reduction}>, result = affine_map<({dims}) -> ({address})>, run_time \
= [{count}], update = @total.update}} : ({of}) -> {tensor}
"""


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def count(loop, plus, symbol):
    return f'{{loop = {loop} : i64, plus = {plus} : i64, symbol = "{symbol}", tile = 1 : i64}}'


def counted_sums(numbers, reduces, update, post=""):
    """A kernel of tiles, turns, rows, blocks and the numbers of a block, of which rows and blocks
    are counted at run time, and one that adds up a turn's rows.
    """
    turn, row, columns = (
        f"d0 * {TURNS} + d1",
        f"d0 * {TURNS * ROWS_MOST} + d1 * {ROWS_MOST} + d2",
        [numbers] * (not reduces),
    )
    operands = [
        ("x", tensor(TILES, TURNS, ROWS_MOST, BLOCKS_MOST, numbers)),
        *[("s", tensor(TILES, TURNS, ROWS_MOST))] * bool(post),
    ]
    types, of, to = (
        ["f32"] * (len(operands) + 1),
        tensor(TILES, TURNS, ROWS_MOST, *columns),
        tensor(TILES, TURNS, *columns),
    )
    text = module(
        operands,
        [f"({row}) * {BLOCKS_MOST * numbers} + d3 * {numbers} + d4", *[row] * bool(post)],
        [TILES, TURNS, ROWS_MOST, BLOCKS_MOST, numbers],
        [0, 0, 0, 1, int(reduces)],
        row if reduces else f"({row}) * {numbers} + d4",
        "f32",
        of,
        body("update", types, update) + (body("post", types, post) if post else ""),
        True,
    )
    total = TOTAL.format(
        dims="d0, d1, d2, d3" if columns else "d0, d1, d2",
        access=f"({row}) * {numbers} + d3" if columns else row,
        address=f"({turn}) * {numbers} + d3" if columns else turn,
        loops=", ".join(map(str, [TILES, TURNS, ROWS_MOST, *columns])),
        reduction="0, 0, 1, 0" if columns else "0, 0, 1",
        count=count(2, 0, "rows"),
        of=of,
        tensor=to,
        segments=", ".join(["1", *["0"] * 31]),
    )
    text = text.replace(
        "reduction = ",
        f"run_time = [{count(2, 0, 'rows')}, {count(3, 1, 'blocks')}], tile_outermost, "
        "reduction = ",
        1,
    ).replace("):\n", ", %rows: tensor<1xi64>, %blocks: tensor<1xi64>):\n", 1)
    text = re.sub(
        r'( *"func.return".*?)%r(.*?)' + re.escape(of),
        lambda found: total + found[1] + "%total" + found[2] + to,
        text,
        count=1,
    )
    text = re.sub(
        r"function_type = \((.*?)\) -> .*?, res",
        rf"function_type = (\1, tensor<1xi64>, tensor<1xi64>) -> {to}, res",
        text,
        count=1,
    )
    text = re.sub(
        r"arg_attrs = \[(.*?)\],",
        r'arg_attrs = [\1, {stream.name = "rows", stream.role = "input"}, {stream.name = '
        r'"blocks", stream.role = "input"}],',
        text,
        count=1,
    )
    return text.replace(
        "}) {stream.level",
        body("update", ["f32", "f32"], SUM.format(1)).replace("k.update", "total.update")
        + "}) {stream.level",
        1,
    )


def partial_sums(terms, parts, combine=numpy.add, least=0):
    """The terms of a row go to the parts in turn."""
    sums = [numpy.full(terms.shape[1:], least, numpy.float32) for _ in range(parts)]
    for i, term in enumerate(terms):
        sums[i % parts] = combine(sums[i % parts], term)
    return tree(sums, combine)


@pytest.mark.parametrize("blocks", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("reduces, lanes, parts", [(True, 16, 2), (False, 4, 2)])
def test_sums_in_turn_of_counted_terms(core_built, tmp_path, reduces, lanes, parts, rows, blocks):
    """Fewer terms than partial sums, as many, and more; of words that are one term, and of words
    whose numbers have a sum each.
    """
    random = numpy.random.default_rng(rows * 16 + blocks)
    x, s = (
        random.standard_normal((TILES, TURNS, ROWS_MOST, BLOCKS_MOST, 16), numpy.float32),
        random.standard_normal((TILES, TURNS, ROWS_MOST), numpy.float32),
    )
    found, text = run(
        tmp_path,
        counted_sums(16, reduces, SUM.format(2), SCALED),
        f"lanes={lanes}",
        {"x": x, "s": s, "rows": numpy.array([rows]), "blocks": numpy.array([blocks - 1])},
    )
    assert (
        f"acc[{2 * parts * (1 if reduces else 16 // lanes)}]" in text
        and f"i < {TURNS} * trips" in text
    )
    for turn in numpy.ndindex(TILES, TURNS):
        terms = [
            numpy.array([tree(list(word)) for word in row]) if reduces else row
            for row in x[turn][:rows, :blocks]
        ]
        wanted = partial_sums(
            numpy.array(
                [
                    partial_sums(row, parts) * scale
                    for row, scale in zip(terms, s[turn], strict=False)
                ]
            ),
            1,
        )
        assert (found[turn] == wanted).all()


@pytest.mark.parametrize("blocks", [1, 2, 11])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_largest_in_turn_of_counted_blocks(core_built, tmp_path, rows, blocks):
    """The turns inside a block go to the parts, whatever the number of blocks."""
    x = numpy.random.default_rng(blocks).standard_normal(
        (TILES, TURNS, ROWS_MOST, BLOCKS_MOST, 64), numpy.float32
    )
    found, text = run(
        tmp_path,
        counted_sums(64, True, LARGEST),
        "lanes=4",
        {"x": x, "rows": numpy.array([rows]), "blocks": numpy.array([blocks - 1])},
    )
    assert "acc[4]" in text and f"i < {TURNS} * trips" in text
    largest = numpy.maximum(x[:, :, :rows, :blocks].max((3, 4)), 0)
    assert all(
        found[turn] == partial_sums(largest[turn], 1) for turn in numpy.ndindex(TILES, TURNS)
    )


@pytest.fixture(scope="module")
def choices(core_built, tmp_path_factory):
    """The dumps of the perceptron after each pass that chooses how its kernels run; without
    register tiles, which would leave nothing to choose."""
    folder = tmp_path_factory.mktemp("choices")
    done = stc(
        "compile",
        ROOT / "examples" / "perceptron.mlir",
        "--register-tiles",
        "none",
        "--stop-after",
        "form_streams",
        "--dump-dir",
        folder,
        "-o",
        folder / "streams.mlir",
    )
    assert done.returncode == 0, done.stderr
    return {path.stem[3:]: path.read_text() for path in folder.glob("*-*.mlir")}


def proceed(folder, text, first, *options):
    edited = folder / "edited.mlir"
    edited.write_text(text)
    return stc(
        "compile", edited, "--from", first, "--stop-after", "form_streams", "-o", "-", *options
    )


def test_choices_are_attributes_that_later_passes_read(choices, tmp_path):
    """A dump shows the choice of each pass; an edited one leads to another design."""
    lanes = r"parallelism = \{lanes = (\d+)"
    assert not re.search(lanes, choices["interleave_qkv_heads"])
    assert len(re.findall(lanes, choices["choose_parallelism"])) == 2
    assert "schedule = {" not in choices["choose_parallelism"]
    schedules = re.findall(r"schedule = \{lanes = (\d+) :", choices["choose_loop_orders"])
    assert len(schedules) == 2 and max(map(int, schedules)) > 1
    assert not re.search(lanes, choices["form_streams"])
    narrow = re.sub(lanes, "parallelism = {lanes = 1", choices["choose_parallelism"])
    done = proceed(tmp_path, narrow, "choose_loop_orders")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\Wlanes = (\d+)", done.stdout) == ["1", "1"]


@pytest.mark.parametrize(
    "after, old, new, first, message",
    [
        ("interleave_qkv_heads", "", "", "choose_loop_orders", "has no attribute `parallelism`"),
        ("choose_parallelism", "", "", "form_streams", "has no attribute `schedule`"),
        ("choose_parallelism", r"\{lanes = \d+", "{lanes = 0", "choose_loop_orders", "`lanes`"),
        ("choose_loop_orders", r"i64: 0, 8, 1>", "i64: 0, 4, 1>", "form_streams", "iterations of"),
        ("choose_loop_orders", r"i64: 0, 8, 1>", "i64: 9, 8, 1>", "form_streams", "an item"),
        ("choose_loop_orders", r"i64: 0, 8, 1>", "i64: 0, 8, 2>", "form_streams", "a step of 2"),
        (
            "choose_loop_orders",
            r"\{lanes = \d+( : i64, l)",
            r"{lanes = 3\1",
            "form_streams",
            "3 lanes",
        ),
    ],
)
def test_choices_that_cannot_be_are_refused(choices, tmp_path, after, old, new, first, message):
    text = choices[after]
    edited = re.sub(old, new, text, count=1) if old else text
    assert bool(old) == (edited != text)
    done = proceed(tmp_path, edited, first)
    assert done.returncode == 1 and message in done.stderr, done.stderr


def test_choices_are_made_anew_from_an_earlier_pass_on(choices, tmp_path):
    """A schedule is about loops that earlier passes may change."""
    stale = re.sub(r"(parallelism = \{lanes = )\d+", r"\g<1>1", choices["choose_loop_orders"])
    done = proceed(tmp_path, stale, "fuse_elementwise", "--register-tiles", "none")
    assert done.returncode == 0, done.stderr
    assert done.stdout == choices["form_streams"]
    quantized = [
        proceed(tmp_path, choices[after], "quantize_bf16", "--quant", "w8a8,group=64").stdout
        for after in ("bind_extents", "choose_loop_orders")
    ]
    assert quantized[0] == quantized[1] and "i8" in quantized[0]


@pytest.mark.parametrize("model", ["attention", "cnn", "layers"])
def test_passes_before_the_choices_may_change_scheduled_loops(core_built, tmp_path, model):
    """A module of kernels with schedules of their own goes through all passes of tensor level."""
    path = ROOT / "tests" / "models" / f"{model}.mlir"
    done = stc("compile", path, "--stop-after", "form_streams", "--dump-dir", tmp_path, "-o", "-")
    assert done.returncode == 0, done.stderr

    def scheduled(loops):
        parts = [f"array<i64: {i}, {trip}, 1>" for i, trip in enumerate(loops[1].split(", "))]
        return f"{loops[0]}, schedule = {{lanes = 1 : i64, loops = [{', '.join(parts)}]}}"

    text = next(tmp_path.glob("*-fold_views.mlir")).read_text()
    text, kernels = re.subn(r"loops = array<i64: ([\d, ]+)>", scheduled, text)
    again = proceed(tmp_path, text, "batch_images")
    assert kernels and again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


@pytest.mark.parametrize("quant", ["fp32", "w8a8"])
def test_what_does_not_fit_shares_operators(quant):
    """Four layers of other widths: each GELU has multipliers of its own, more than the board."""
    torch.manual_seed(0)
    widths = [20, 33, 17, 40, 9]
    layers = [(torch.nn.Linear(*pair), torch.nn.GELU()) for pair in zip(widths, widths[1:])]
    module = torch.nn.Sequential(*(each for layer in layers for each in layer)).eval()
    value, board = torch.randn(5, 20), {"platform": "xc7z020", "quant": quant}
    with pytest.raises(streamtensor.Error, match="more than the 220 of xc7z020"):
        streamtensor.compile(module, (value,), **board, kernel_interval=1)
    with streamtensor.compile(module, (value,), **board) as design:
        assert (design(value) - module(value)).abs().max() < {"fp32": 1e-6, "w8a8": 0.02}[quant]


def test_partial_sums_share_the_adders_of_their_tree(tmp_path):
    torch.manual_seed(0)
    module, value = torch.nn.LayerNorm(32).eval(), torch.randn(16, 32)
    dsp = []
    for interval in (1, 8):
        with streamtensor.compile(
            module, (value,), kernel_interval=interval, kernel_dsp=1, register_tiles="none"
        ) as design:
            assert (design(value) - module(value)).abs().max() < 2e-6
            dsp.append(design.report.used.dsps)
    assert dsp[1] < 0.7 * dsp[0], dsp
