"""A design made of C, run from files: inputs and outputs by the names of the function's arguments,
bits as in C.
"""

import ctypes
import json
import re
import subprocess

import numpy as np
import pytest
from conftest import ROOT, stc

from streamtensor import core

ROWS, COLUMNS, TERMS = 64, 48, 32
NUMPY_TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i8": "i1"}


def test_gemm_in_c_runs_from_files(core_built, tmp_path):
    compiler = core.find_file(core.COMPILER)
    design = tmp_path / "gemm"
    subprocess.run(
        [compiler, "compile", ROOT / "examples/gemm.c", "--top", "gemm", "-o", design], check=True
    )
    random = np.random.default_rng(1)
    shapes = {
        "alpha": (),
        "beta": (),
        "C": (ROWS, COLUMNS),
        "A": (ROWS, TERMS),
        "B": (TERMS, COLUMNS),
    }
    given = {
        name: np.asarray(random.standard_normal(shape), np.float32)
        for name, shape in shapes.items()
    }
    words = []
    for name, value in given.items():
        np.save(tmp_path / f"{name}.npy", value)
        words += ["--in", f"{name}={tmp_path / name}.npy"]
    subprocess.run(
        [compiler, "run", design, *words, "--out", f"C={tmp_path / 'out'}.npy"], check=True
    )
    expected = given["C"] * given["beta"]
    for k in range(TERMS):
        expected += given["alpha"] * given["A"][:, k : k + 1] * given["B"][k : k + 1]
    assert np.load(tmp_path / "out.npy").tobytes() == expected.tobytes()


def test_a_value_used_twice_in_every_statement_compiles_in_linear_time(core_built, tmp_path):
    """As a tree, the expression would have 2^40 leaves."""
    source = tmp_path / "shared.c"
    lines = ["float s = 0;", "for (int i = 0; i < 8; i++) {", "float t = x[i];"]
    lines += ["t = t * t + x[i];"] * 40 + ["s += t;", "}", "y[0] = s;"]
    source.write_text("void shared(float x[8], float y[1]) {\n" + "\n".join(lines) + "\n}\n")
    result = stc("compile", source, "--top", "shared", "--reassociate", "-o", tmp_path / "design")
    assert result.returncode == 0, result.stderr


def test_double_precision_gives_the_bits_of_c(core_built, tmp_path):
    """Values at the edges too: zeros of both signs, NaN, infinities, halves between integers."""
    source = ROOT / "tests/c/double.c"
    library = tmp_path / "double.so"
    flags = ["-O0", "-ffp-contract=off", "-fexcess-precision=16", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, source, "-o", library, "-lm"], check=True)
    edges = [0.0, -0.0, 0.5, -0.5, 2.5, -1.5, np.inf, -np.inf, np.nan, 1e-310, 1e30, 4.5e15]
    random = np.random.default_rng(2)
    for function in ("mixed", "edges"):
        design = tmp_path / function
        compiler = core.find_file(core.COMPILER)
        subprocess.run([compiler, "compile", source, "--top", function, "-o", design], check=True)
        manifest = json.loads((design / "manifest.json").read_text())
        head = re.search(rf"void {function}\((.*?)\)\n", source.read_text(), re.S).group(1)
        arrays = {}
        for tensor in manifest["inputs"] + manifest["outputs"]:
            number = np.dtype(NUMPY_TYPES[tensor["dtype"]])
            value = random.standard_normal(tensor["shape"])
            if function == "edges":
                value[: len(edges)] = random.permutation(edges)
            if number.kind == "i":
                value = value * 1000
            arrays.setdefault(tensor["name"], value.astype(number))
        words = []
        for tensor in manifest["inputs"]:
            path = tmp_path / f"{tensor['name']}.npy"
            np.save(path, arrays[tensor["name"]])
            words += ["--in", f"{tensor['name']}={path}"]
        for tensor in manifest["outputs"]:
            words += ["--out", f"{tensor['name']}={tmp_path / tensor['name']}_out.npy"]
        subprocess.run([compiler, "run", design, *words], check=True)
        parameters = [arrays[name] for name in re.findall(r"(\w+)\[N\]", head)]
        call = getattr(ctypes.CDLL(str(library)), function)
        call(*(ctypes.c_void_p(array.ctypes.data) for array in parameters))
        for tensor in manifest["outputs"]:
            found = np.load(tmp_path / f"{tensor['name']}_out.npy")
            expected = arrays[tensor["name"]]
            same = (found == expected) & (np.signbit(found) == np.signbit(expected))
            assert np.all(same | (np.isnan(found) & np.isnan(expected))), (function, tensor)


def sequential_nest_equals_c(folder, function, extent, shapes):
    """Runs the emitted C++ of a function of tests/c/sequential.c, and the function itself."""
    source = ROOT / "tests/c/sequential.c"
    size = f"N={extent}"
    design = folder / function
    compiled = stc("compile", source, "--top", function, "-D", size, "-o", design)
    assert compiled.returncode == 0, compiled.stderr
    library = folder / "c.so"
    options = ["-O0", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, "-D", size, source, "-o", library, "-lm"], check=True)
    random = np.random.default_rng(3)
    given = {}
    for name, shape in shapes.items():
        given[name] = np.asarray(random.random(shape), np.float32)
        np.save(folder / f"{name}.npy", given[name])
    manifest = json.loads((design / "manifest.json").read_text())
    words = []
    for entry in manifest["inputs"]:
        words += ["--in", f"{entry['name']}={folder / entry['name']}.npy"]
    for entry in manifest["outputs"]:
        words += ["--out", f"{entry['name']}={folder / entry['name']}.out.npy"]
    ran = stc("run", design, *words)
    assert ran.returncode == 0, ran.stderr
    getattr(ctypes.CDLL(library), function)(
        *[ctypes.c_void_p(value.ctypes.data) for value in given.values()]
    )
    for entry in manifest["outputs"]:
        name = entry["name"]
        assert np.load(folder / f"{name}.out.npy").tobytes() == given[name].tobytes(), name


def test_a_factorization_in_place_between_kernels(core_built, tmp_path):
    shapes = {"A": (13, 13), "L": (13, 13), "scaled": (13, 13)}
    sequential_nest_equals_c(tmp_path, "factors", 13, shapes)


@pytest.mark.parametrize(
    "function, arrays, extent",
    [("relaxation", "A", 24), ("triangle", "ACD", 66), ("elimination", "A", 24)],
)
def test_loops_in_another_order_give_the_bits_of_c(core_built, tmp_path, function, arrays, extent):
    """Words that are filled begin at other banks in turn; rows are one pipeline."""
    sequential_nest_equals_c(tmp_path, function, extent, dict.fromkeys(arrays, (extent, extent)))


@pytest.mark.parametrize(
    "function, cycles",
    [
        # 90^3 / 6 products, four lanes; as long as no loop but the innermost runs in parallel,
        # each takes more than a cycle
        ("factors", 90**3 // 6),
        # less than a cycle for each point
        ("relaxation", 7 * 88 * 88),
        # twice half of the cube
        ("triangle", 90**3 // 5),
        # the loops with the same update are one
        ("elimination", 90**3 // 15),
    ],
)
def test_parallel_loops_of_a_sequential_nest(core_built, tmp_path, function, cycles):
    source = ROOT / "tests/c/sequential.c"
    design = tmp_path / function
    words = ["--top", function, "-D", "N=90", "--kernel-dsp", "40"]
    compiled = stc("compile", source, *words, "-o", design)
    assert compiled.returncode == 0, compiled.stderr
    simulated = stc("simulate", design, "--json")
    assert json.loads(simulated.stdout)["cycles"] < cycles


@pytest.mark.long
@pytest.mark.parametrize(
    "function, shapes",
    [
        ("factors", {"A": (90, 90), "L": (90, 90), "scaled": (90, 90)}),
        ("sweeps", {"u": (90, 90), "v": (90, 90)}),
        ("recursive_filter", {"x": (7, 90), "y": (7, 90)}),
        ("wavefront", {"A": (90, 90)}),
    ],
)
def test_long_sequential_nests(core_built, tmp_path, function, shapes):
    sequential_nest_equals_c(tmp_path, function, 90, shapes)


def test_unroll_pragmas_set_the_lanes(core_built, tmp_path):
    """A factor that the loop cannot have leaves the choice to the compiler."""
    source = tmp_path / "f.c"
    source.write_text(
        "void f(float y[64], float A[64][64], float z[64], const float x[64])\n{\n"
        "\tfor (int i = 0; i < 64; i++) {\n#pragma HLS UNROLL factor = 4\n"
        "\t\ty[i] = 2 * x[i];\n\t}\n"
        "\tfor (int i = 0; i < 64; i++)\n\t\tfor (int j = 0; j < 64; j++) {\n"
        "#pragma HLS UNROLL factor=2\n\t\t\tA[i][j] = A[i][j] * x[i] + y[j];\n\t\t}\n"
        "\tfor (int i = 0; i < 64; i++) {\n#pragma HLS UNROLL factor = 3\n"
        "\t\tz[i] = z[i] * 3;\n\t}\n}\n"
    )
    result = stc("compile", source, "-o", tmp_path / "design")
    assert result.returncode == 0, result.stderr
    assert "UNROLL factor = 4 is taken as --fix-kernel y_l5:lanes=4" in result.stderr
    report = (tmp_path / "design/report.txt").read_text()
    lanes = dict(re.findall(r"^  p\d+_([yAz]_l\d+) +\d+ +\d+ +(\d+) ", report, re.M))
    assert lanes["y_l5"] == "4" and lanes["A_l10"] == "2" and lanes["z_l14"] != "3"
