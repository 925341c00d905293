"""Contractions whose sums are formed side by side: values, and cycles against the bound of their
multipliers.
"""

import json
import re
import sys

import numpy
import pytest
import torch
from conftest import ROOT, stc

from streamtensor.checkpoints.weights import write

sys.path.insert(0, str(ROOT / "bench"))
from dense import KERNELS, Kernel, write_platform  # noqa: E402
from dense_sweep import Shape, bound, measure, shapes  # noqa: E402

BOARDS = ("u280", "u55c", "xc7z020")


def matmul(rows: int, columns: int, terms: int, scaled: bool) -> str:
    left, right, result = (
        f"tensor<{first}x{second}xf32>"
        for first, second in ((rows, terms), (terms, columns), (rows, columns))
    )
    scale = f"""
  %y = linalg.generic {{indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}}
      ins(%c, %p : {result}, {result}) outs(%e : {result}) {{
  ^bb0(%d: f32, %x: f32, %u: f32):
    %alpha = arith.constant 1.5 : f32
    %s = arith.mulf %alpha, %x : f32
    %z = arith.addf %d, %s : f32
    linalg.yield %z : f32
  }} -> {result}"""
    return f"""#m = affine_map<(i, j) -> (i, j)>
func.func @main(%a: {left} {{stream.name = "a"}}, %b: {right} {{stream.name = "b"}}, \
%c: {result} {{stream.name = "c"}}) -> ({result} {{stream.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {result}
  %f = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
  %p = linalg.matmul ins(%a, %b : {left}, {right}) outs(%f : {result}) -> {result}{
        scale if scaled else ""
    }
  return %{"y" if scaled else "p"} : {result}
}}
"""


def build(tmp_path, text, *options):
    source, design = tmp_path / "kernel.mlir", tmp_path / "design"
    source.write_text(text)
    done = stc("compile", source, "-o", design, *options)
    assert done.returncode == 0, done.stderr
    return design


def simulated(design) -> int:
    found = re.search(r"one launch +(\d+) cycles", stc("simulate", design).stdout)
    return int(found.group(1))


def dsps(design) -> int:
    return int(re.search(r"DSP +(\d+) ", (design / "report.txt").read_text()).group(1))


def sums_in_order(a, b):
    total = numpy.zeros((a.shape[0], b.shape[1]), numpy.float32)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1, :]
    return total


@pytest.mark.parametrize(
    "rows, columns, terms, scaled, dsp, board",
    [
        (37, 41, 53, False, 220, "u280"),  # short last rows and lanes
        (40, 42, 31, True, 2560, "u280"),  # tiles leave in several words
        (23, 19, 64, True, 60, "xc7z020"),
        (3, 512, 16, False, 5000, "u55c"),  # words of 171 numbers need two FIFOs
    ],
)
def test_sums_keep_the_order_of_the_source(tmp_path, rows, columns, terms, scaled, dsp, board):
    options = ("--platform", board, "--kernel-dsp", dsp, "--max-dsp", dsp)
    text = matmul(rows, columns, terms, scaled)
    design = build(tmp_path, text, *options, "--register-tiles", "searched")
    random = numpy.random.default_rng(rows)
    given = {
        name: random.standard_normal(shape).astype(numpy.float32)
        for name, shape in (("a", (rows, terms)), ("b", (terms, columns)), ("c", (rows, columns)))
    }
    arguments = []
    for name, array in given.items():
        numpy.save(tmp_path / f"{name}.npy", array)
        arguments += ["--in", f"{name}={tmp_path / name}.npy"]
    done = stc("run", design, *arguments, "--out", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    expected = sums_in_order(given["a"], given["b"])
    if scaled:
        expected = given["c"] + numpy.float32(1.5) * expected
    assert numpy.array_equal(numpy.load(tmp_path / "y.npy"), expected)
    dump = stc("compile", tmp_path / "kernel.mlir", *options, "--stop-after", "choose_loop_orders")
    assert "held = " in dump.stdout and ("padded" in dump.stdout or rows % 2 == 0)


@pytest.mark.parametrize("dsp, cycles", [(220, 260_000), (2560, 23_000)])
def test_a_product_of_matrices_is_bound_by_its_multipliers(tmp_path, dsp, cycles):
    """200 x 220 x 240 terms, five DSPs a term; what is held on chip is used as it comes."""
    options = ("--platform", "u280", "--kernel-dsp", dsp, "--max-dsp", dsp)
    design = build(tmp_path, matmul(200, 220, 240, True), *options)
    assert dsps(design) <= dsp
    assert simulated(design) <= cycles
    report = json.loads((design / "report.json").read_text())
    assert report["termination"] == "token model"


@pytest.mark.parametrize("board", BOARDS)
def test_large_products_fit_every_board(tmp_path, board):
    """4096 x 4096 x 4096 terms; the bound is 44 terms a cycle."""
    options = ("--platform", board, "--kernel-dsp", 220, "--max-dsp", 220)
    design = build(tmp_path, matmul(4096, 4096, 4096, False), *options)
    least = re.search(r"at least +(\d+) cycles", (design / "report.txt").read_text())
    assert 4096**3 / 44 <= int(least.group(1)) <= 4096**3 / 44 / 0.95
    assert dsps(design) <= 220


def convolution(image, weight) -> str:
    """A convolution of the argument x with constant weights."""
    (channels, rows, columns), (filters, _, high, wide) = image, weight.shape
    size = f"{filters}x{rows - high + 1}x{columns - wide + 1}"
    kernel = "x".join(map(str, weight.shape))
    return f"""func.func @main(%x: tensor<1x{channels}x{rows}x{columns}xf32> \
{{stream.name = "x"}}) -> (tensor<1x{size}xf32> {{stream.name = "y"}}) {{
  %w = arith.constant dense<"0x{weight.tobytes().hex()}"> : tensor<{kernel}xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x{size}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x{size}xf32>) -> tensor<1x{size}xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x{channels}x{rows}x{columns}xf32>, \
tensor<{kernel}xf32>) outs(%f : tensor<1x{size}xf32>) -> tensor<1x{size}xf32>
  return %y : tensor<1x{size}xf32>
}}
"""


def test_a_convolution_of_odd_extents_forms_sums_side_by_side(tmp_path):
    """13 channels, 17 x 17 pixels, 5 x 5 weights: one after the other 714,025 terms of five
    cycles each."""
    random = numpy.random.default_rng(13)
    x = random.standard_normal((1, 13, 17, 17)).astype(numpy.float32)
    weight = random.standard_normal((13, 13, 5, 5)).astype(numpy.float32)
    design = build(tmp_path, convolution(x.shape[1:], weight), "--register-tiles", "searched")
    assert simulated(design) <= 60_000
    numpy.save(tmp_path / "x.npy", x)
    done = stc("run", design, "--in", f"x={tmp_path}/x.npy", "--out", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    total = numpy.zeros((13, 13, 13), numpy.float32)
    for c, i, j in numpy.ndindex(13, 5, 5):
        total += weight[:, c, i, j, None, None] * x[0, c, i : i + 13, j : j + 13]
    assert numpy.array_equal(numpy.load(tmp_path / "y.npy")[0], total)


def test_results_leave_through_the_ports_that_operands_leave(tmp_path):
    """145,493 results of 11 terms each, on a board whose channels bring 6.4 bytes a cycle: padded
    words through one port would take 134,000 cycles."""
    random = numpy.random.default_rng(11)
    x = random.standard_normal((1, 11, 29, 29)).astype(numpy.float32)
    weight = random.standard_normal((173, 11, 1, 1)).astype(numpy.float32)
    limits = ("--platform", "xc7z020", "--kernel-dsp", 220, "--max-dsp", 220)
    design = build(tmp_path, convolution(x.shape[1:], weight), *limits)
    assert json.loads((design / "report.json").read_text())["cycles"]["simulated"] <= 42_000
    numpy.save(tmp_path / "x.npy", x)
    done = stc("run", design, "--in", f"x={tmp_path}/x.npy", "--out", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    total = numpy.zeros((173, 29, 29), numpy.float32)
    for c in range(11):
        total += weight[:, c] * x[0, c]
    assert numpy.array_equal(numpy.load(tmp_path / "y.npy")[0], total)


def test_results_of_a_product_do_not_wait_in_its_pipeline(tmp_path):
    """The second product begins when the first rows of the first one are done."""
    limits = ("--kernel-dsp", 220, "--max-dsp", 220, "--platform", write_platform(tmp_path))
    design = build(tmp_path, KERNELS["2mm"]()[1], *limits)
    assert json.loads((design / "report.json").read_text())["cycles"]["simulated"] <= 365_000


def gemm_in_c(tmp_path, rows, columns, terms):
    source = tmp_path / "gemm.c"
    sizes = f"ROWS = {rows}, COLUMNS = {columns}, TERMS = {terms}"
    text = (ROOT / "examples" / "gemm.c").read_text()
    source.write_text(re.sub(r"ROWS = .* }", sizes + " }", text))
    return source


def test_sums_of_c_that_start_with_a_value_form_side_by_side(tmp_path):
    """C[i][j] starts each sum, so rows of sums cannot share it; lanes of one row can."""
    source, design = gemm_in_c(tmp_path, 200, 220, 240), tmp_path / "design"
    limits = ("--platform", "u280", "--kernel-dsp", 2560, "--max-dsp", 2560)
    done = stc("compile", source, "--top", "gemm", "-o", design, *limits)
    assert done.returncode == 0, done.stderr
    assert simulated(design) <= 50_000


@pytest.mark.parametrize("rows, columns, terms", [(40, 44, 30), (7, 11, 97)])
def test_sums_of_c_keep_their_order(tmp_path, rows, columns, terms):
    """Words of four lanes become words of eleven on their way from kernel to kernel."""
    source, design = gemm_in_c(tmp_path, rows, columns, terms), tmp_path / "design"
    search = ("--parallelism-search", "intensity", "--register-tiles", "searched")
    limits = ("--platform", "u280", "--kernel-dsp", 110, "--max-dsp", 110)
    done = stc("compile", source, "--top", "gemm", "-o", design, *limits, *search)
    assert done.returncode == 0, done.stderr
    assert rows == 7 or "s_cast" in (design / "design.mlir").read_text()
    random = numpy.random.default_rng(rows)
    shapes = {
        "alpha": (),
        "beta": (),
        "C": (rows, columns),
        "A": (rows, terms),
        "B": (terms, columns),
    }
    given, arguments = {}, []
    for name, shape in shapes.items():
        given[name] = numpy.array(random.standard_normal(shape), numpy.float32)
        numpy.save(tmp_path / f"{name}.npy", given[name])
        arguments += ["--in", f"{name}={tmp_path / name}.npy"]
    done = stc("run", design, *arguments, "--out", f"C={tmp_path}/out.npy")
    assert done.returncode == 0, done.stderr
    total = given["C"] * given["beta"]
    for k in range(terms):
        total = total + given["alpha"] * given["A"][:, k : k + 1] * given["B"][k]
    assert numpy.array_equal(numpy.load(tmp_path / "out.npy"), total)


@pytest.mark.parametrize(
    "rows, columns, board, dsp, part",
    [
        (157, 363, "u55c", 880, 0.6),  # words of several rows, short last rows and terms
        (211, 461, "xc7z020", 220, 0.85),  # four of four ports for one operand
    ],
)
def test_a_product_with_a_vector_is_bound_by_multipliers_or_memory(
    tmp_path, rows, columns, board, dsp, part
):
    """Trees add up the terms of several rows; the vector is held on chip."""
    kernel = Kernel(A=(rows, columns), x=(columns,))
    kernel.product("y", "A", "x")
    options = ("--platform", board, "--kernel-dsp", dsp, "--max-dsp", dsp)
    design = build(tmp_path, kernel.text("y"), *options)
    shape = Shape("matvec", (rows, columns), board, dsp)
    assert simulated(design) <= bound(shape) / part
    random = numpy.random.default_rng(rows)
    a = random.standard_normal((rows, columns)).astype(numpy.float32)
    x = random.standard_normal(columns).astype(numpy.float32)
    arguments = []
    for name, array in {"A": a, "x": x}.items():
        numpy.save(tmp_path / f"{name}.npy", array)
        arguments += ["--in", f"{name}={tmp_path / name}.npy"]
    done = stc("run", design, *arguments, "--out", f"y={tmp_path}/y.npy")
    assert done.returncode == 0, done.stderr
    numpy.testing.assert_allclose(numpy.load(tmp_path / "y.npy"), a @ x, rtol=1e-4, atol=1e-4)
    dump = stc("compile", tmp_path / "kernel.mlir", *options, "--stop-after", "choose_loop_orders")
    assert "padded, ports = " in dump.stdout


def products(given) -> dict:
    """What the kernels of two products with a matrix compute."""
    a, vectors = given["A"], given
    if "x1" in given:
        return {
            "z1": vectors["x1"] + a @ vectors["y1"],
            "z2": vectors["x2"] + a.T @ vectors["y2"],
        }
    if "p" in given:
        return {"s": a.T @ vectors["r"], "q": a @ vectors["p"]}
    return {"y": a.T @ (a @ vectors["x"])}


@pytest.mark.parametrize("name, cycles", [("atax", 900), ("bicg", 900), ("mvt", 720)])
def test_terms_of_both_dims_of_a_matrix_are_added_at_once(tmp_path, name, cycles):
    """512 multiply-adds; the transposed matrix gives several rows' terms of neighboring sums."""
    kernel, text = KERNELS[name]()
    limits = ("--kernel-dsp", 2560, "--max-dsp", 2560, "--platform", write_platform(tmp_path))
    design = build(tmp_path, text, *limits)
    random = numpy.random.default_rng(7)
    given, arguments = {}, []
    for argument in kernel.arguments:
        given[argument] = random.standard_normal(kernel.shape[argument]).astype(numpy.float32)
        numpy.save(tmp_path / f"{argument}.npy", given[argument])
        arguments += ["--in", f"{argument}={tmp_path / argument}.npy"]
    expected = products(given)
    for result in expected:
        arguments += ["--out", f"{result}={tmp_path}/{result}.npy"]
    done = stc("run", design, *arguments)
    assert done.returncode == 0, done.stderr
    for result, value in expected.items():
        found = numpy.load(tmp_path / f"{result}.npy")
        assert numpy.abs(found - value).max() <= 1e-4 * numpy.abs(value).max()
    assert json.loads((design / "report.json").read_text())["cycles"]["model"] <= cycles


def test_words_sent_again_come_from_chip_where_memory_would_wait(tmp_path):
    """Runs of two words would wait for memory: 178,000 of 261,000 cycles."""
    shape = Shape("conv", (54, 19, 205, 3), "u55c", 2560)
    options = ("--platform", "u55c", "--kernel-dsp", 2560, "--max-dsp", 2560)
    design = build(tmp_path, shape.text, *options, "-O1")
    assert simulated(design) <= 90_000


@pytest.mark.parametrize(
    "shape",
    [
        *shapes(1, 3),  # the first of bench/dense_sweep.py
        # the fastest datapath would wait for the only channel, as its words are padded
        Shape("transposed", (529, 1033), "vu9p", 2200),
    ],
    ids=str,
)
def test_random_shapes_are_near_their_bound(tmp_path, shape):
    found = measure(shape, tmp_path)
    assert not found.refused
    assert found.part >= 0.9 and abs(found.error) <= 0.05


def test_few_sums_of_many_terms_are_added_up_by_trees(tmp_path):
    """1,428 sums of 1,298 terms: in order they would take an addition's latency a term. Both
    operands come through one port each in parts of their words, which are of two dims."""
    rows, columns, terms = extents = (34, 42, 1298)
    assert measure(Shape("gemm", extents, "vu9p", 2200), tmp_path).part >= 0.9
    random = numpy.random.default_rng(rows)
    a = random.standard_normal((rows, terms)).astype(numpy.float32)
    b = random.standard_normal((terms, columns)).astype(numpy.float32)
    numpy.save(tmp_path / "A.npy", a)
    numpy.save(tmp_path / "B.npy", b)
    given = ("--in", f"A={tmp_path}/A.npy", "--in", f"B={tmp_path}/B.npy")
    done = stc("run", tmp_path / "design", *given, "--out", f"Y={tmp_path}/Y.npy")
    assert done.returncode == 0, done.stderr
    found = numpy.load(tmp_path / "Y.npy")
    assert numpy.abs(found - a.astype(float) @ b).max() <= 1e-4 * numpy.abs(found).max()


@pytest.mark.parametrize(
    "shape, part",
    [
        # trees of channels: 31 columns in two blocks would leave a third of the multipliers
        (Shape("conv", (76, 37, 19, 7), "vu9p", 2200), 0.82),
        # one memory channel: more ports would only share it
        (Shape("conv", (54, 10, 47, 5), "vu9p", 880), 0.8),
        # 15 ports for the image would leave none that results could share
        (Shape("conv", (29, 17, 13, 7), "vu9p", 880), 0.72),
        # weights are held, as their traffic would make the image wait
        (Shape("conv", (97, 59, 34, 3), "vu9p", 220), 0.85),
        # a vector of more than 4,096 numbers leaves all ports to the matrix
        (Shape("transposed", (4558, 115), "xc7z020", 220), 0.9),
    ],
    ids=str,
)
def test_shapes_that_fit_badly_are_near_their_bound(tmp_path, shape, part):
    found = measure(shape, tmp_path)
    assert not found.refused and found.part >= part and abs(found.error) <= 0.05


def test_windows_that_overlap_are_loaded_once(tmp_path):
    """Else each number comes nine times from the board's only channel."""
    assert measure(Shape("conv", (66, 29, 12, 3), "vu9p", 880), tmp_path).part >= 0.82
    # seventeen filters, so words that no two ports bring in equal parts
    assert measure(Shape("conv", (85, 39, 17, 3), "vu9p", 2200), tmp_path).part >= 0.6


@pytest.mark.parametrize(
    "shape",
    [
        Shape("conv", (11, 13, 5, 3), "vu9p", 880),
        Shape("conv", (7, 9, 17, 5), "u55c", 2200),
        Shape("conv", (3, 17, 6, 3), "xc7z020", 220),
        Shape("conv", (54, 10, 47, 5), "vu9p", 880),  # trees of channels, parts of words
    ],
)
def test_windows_that_overlap_have_their_values(tmp_path, shape):
    channels, size, filters, window = shape.extents
    numbers = numpy.random.default_rng(size)
    image, weights = (
        torch.from_numpy(numbers.standard_normal(each).astype(numpy.float32))
        for each in ((1, channels, size, size), (filters, channels, window, window))
    )
    write(tmp_path / "w", {"w": weights}, {"w": weights}, lambda _: weights)
    options = ("--platform", shape.board, "--max-dsp", shape.dsp, "--weights", tmp_path / "w")
    design = build(tmp_path, shape.text, *options)
    numpy.save(tmp_path / "x.npy", image.numpy())
    given = ("--in", f"x={tmp_path}/x.npy", "--out", f"y={tmp_path}/y.npy")
    done = stc("run", design, *given)
    assert done.returncode == 0, done.stderr
    expected = torch.nn.functional.conv2d(image, weights).numpy()
    assert abs(numpy.load(tmp_path / "y.npy") - expected).max() < 2e-6 * abs(expected).max()
