"""The stream headers: small regions compiled as the emitted Makefile would, and run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLAGS = "-std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off".split()
SANITIZE = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all".split()


def build(folder, name, *flags):
    program = folder / name
    command = [
        "g++",
        *FLAGS,
        *(flags or ["-O2"]),
        f"-I{ROOT}/runtime/include",
        f"{ROOT}/tests/cpp/{name}.cpp",
    ]
    subprocess.run([*command, "-o", program], check=True)
    return program


def run(program):
    return subprocess.run([program], capture_output=True, text=True, timeout=60)


every_build = pytest.mark.parametrize(
    "flags", [["-O2"], ["-O1", "-DST_FIBRE_UCONTEXT"], SANITIZE], ids=["asm", "ucontext", "asan"]
)


@every_build
def test_pipeline_is_repeatable_and_reports_marks(tmp_path, flags):
    result = run(build(tmp_path, "pipeline", *flags))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "111904 ok\n" * 3 + "s_x 64 64\ns_y 2 2\n"


@pytest.mark.parametrize("name", ["ring", "blocks", "vector", "reconverge"])
def test_region_gives_the_right_values(tmp_path, name):
    result = run(build(tmp_path, name, *SANITIZE))
    assert (result.returncode, result.stdout[:2]) == (0, "ok"), result.stdout + result.stderr


@every_build
def test_shallow_residual_deadlocks_and_names_the_cycle(tmp_path, flags):
    result = run(build(tmp_path, "reconverge", *flags, "-DSHORT_DEPTH=2"))
    assert result.returncode == 1
    assert result.stdout == (
        "deadlock: p_fork waits for space in s_short (full, depth 2); p_join waits for a word "
        "of s_total (empty, depth 2); "
        "p_reduce waits for a word of s_long (empty, depth 4)\n"
        "4 of 4 processes wait, also:\n"
        "  p_store waits for a word of s_y (empty, depth 2)\n"
    )


def test_shallow_ring_deadlocks(tmp_path):
    result = run(build(tmp_path, "ring", "-O2", "-DRING_DEPTH=4"))
    assert result.returncode == 1
    assert "p_leave waits for space in s_again (full, depth 4)" in result.stdout


def test_left_over_data_and_reads_outside_a_region_are_reported(tmp_path):
    result = run(build(tmp_path, "leftover", *SANITIZE))
    assert result.stdout == (
        "46 data left in channels at the end of the region:\n  stream holds 1\n"
        "46 ok\nlonely is read while empty outside any process\n"
    )


def test_region_runs_from_a_shared_library(tmp_path):
    library = build(
        tmp_path, "reconverge", "-O2", "-DSHORT_DEPTH=2", "-fPIC", "-shared", "-Wl,--no-undefined"
    )
    script = (
        "import ctypes, sys\n"
        "design = ctypes.CDLL(sys.argv[1])\n"
        "design.st_region_error.restype = ctypes.c_char_p\n"
        "row = (ctypes.c_float * 32)()\n"
        "for _ in range(3):\n"
        "    design.top(row, row)\n"
        "    print(design.st_region_error().decode().splitlines()[0], design.st_region_fifos())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, library], capture_output=True, text=True, timeout=60
    )
    waits = (
        "p_fork waits for space in s_short (full, depth 2); p_join waits for a word of "
        "s_total (empty, depth 2); "
        "p_reduce waits for a word of s_long (empty, depth 4)"
    )
    assert result.stdout == f"deadlock: {waits} 4\n" * 3, result.stderr


def test_throughput(tmp_path, capsys):
    """Prints the figures; the floor is far below them so that a busy machine passes."""
    result = run(build(tmp_path, "throughput"))
    assert result.returncode == 0
    with capsys.disabled():
        print("\n" + result.stdout, end="")
    rates = dict(re.findall(r"depth (\d+): (\d+) M", result.stdout))
    assert int(rates["64"]) >= 10


@pytest.mark.parametrize("standard", ["c++14", "c++17"])
def test_math_header_is_clean_cpp(tmp_path, standard):
    source = tmp_path / "math.cpp"
    source.write_text(
        '#include "st_math.h"\nfloat f(float x) { return st_exp(x) + st_pow(x, x) + st_sin(x); }\n'
    )
    flags = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Wshadow",
        "-Werror",
        "-fsyntax-only",
    ]
    subprocess.run(
        ["g++", f"-std={standard}", *flags, f"-I{ROOT}/runtime/include", source], check=True
    )
