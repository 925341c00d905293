"""A design made of C, run from files: inputs and outputs by the names of the function's arguments,
bits as in C.
"""

import subprocess

import numpy as np
from conftest import ROOT, stc

from streamtensor import core

ROWS, COLUMNS, TERMS = 64, 48, 32


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
