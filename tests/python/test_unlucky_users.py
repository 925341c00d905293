"""Bad luck and bad will: names that other languages know, results that are no regular files,
signals, limits of the machine, folders of others, threads. Nothing crashes, nothing is left, no
code of others runs, and no number is wrong.
"""

import fcntl
import functools
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading

import numpy
import pytest
import torch
from conftest import ROOT, host_of, slow_compiler, stc

import streamtensor
from streamtensor.checkpoints import weights
from streamtensor.exploration import design_trials
from streamtensor.language import models

KILLS, LEVELS = 300, 300  # of the long tests
# malloc that fails in one library: where FAIL_AT is 0 it only counts, and says so at the end
FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static long calls;
static __thread int busy;
void *malloc(size_t size)
{
	static void *(*real)(size_t);
	if (!real)
		real = dlsym(RTLD_NEXT, "malloc");
	const char *library = getenv("FAIL_IN"), *at = getenv("FAIL_AT");
	Dl_info from;
	if (busy || !library || !at)
		return real(size);
	busy = 1;
	int is_there = dladdr(__builtin_return_address(0), &from) && from.dli_fname &&
		strstr(from.dli_fname, library);
	busy = 0;
	if (is_there && ++calls == atol(at))
		return errno = ENOMEM, NULL;
	return real(size);
}
__attribute__((destructor)) static void say(void)
{
	const char *at = getenv("FAIL_AT");
	if (at && !atol(at))
		fprintf(stderr, "CALLS %ld\n", calls);
}
"""
PERCEPTRON = (ROOT / "examples/perceptron.mlir").read_text()
HOSTILE = [
    'x", 1}}; int injected(void) {return 1;} static const struct tensor q[] = {{"',
    "??/\n\\",
    "*/ int injected; /*",
    "$(touch injected)`touch injected`",
    "</script><img src=x onerror=alert(1)>",
    "%s%n",
    "ünï ∞ 名",
]
SMALL = """func.func @main(%x: tensor<4xf32> {stream.name = "NAME", stream.role = "input"})
    -> (tensor<4xf32> {stream.name = "NAME.y", stream.role = "output"}) {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""


# A sum of 64 terms, one of them read backwards; 33 sums have no lanes of a power of two.
BACKWARDS = """func.func @main(%x: tensor<64xf32> {stream.name = "x", stream.role = "input"},
    %w: tensor<64x33xf32> {stream.name = "w", stream.role = "input"})
    -> (tensor<33xf32> {stream.name = "y", stream.role = "output"}) {
  %last = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<64x33xf32>) outs(%z : tensor<33xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %j = linalg.index 1 : index
      %from = arith.subi %last, %j : index
      %b = tensor.extract %x[%from] : tensor<64xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %sum, %p : f32
      linalg.yield %s : f32
  } -> tensor<33xf32>
  return %y : tensor<33xf32>
}
"""


def _limited(limits: dict, *words, cwd=None):
    def before():
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, name), (most, most))

    return subprocess.run(
        [os.environ.get("STC", ROOT / "build/stc"), *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        preexec_fn=before,
        timeout=120,
    )


def _compile(folder, text, name="m", *options):
    (folder / f"{name}.mlir").write_text(text)
    return stc(
        "compile", folder / f"{name}.mlir", "--platform", "u55c", "-o", folder / "out", *options
    )


@pytest.fixture(scope="module")
def doubler(tmp_path_factory):
    """A design of y = x + x."""
    folder = tmp_path_factory.mktemp("doubler")
    assert _compile(folder, SMALL.replace("NAME.y", "y").replace("NAME", "x")).returncode == 0
    numpy.save(folder / "x.npy", numpy.arange(4, dtype=numpy.float32))
    return folder


def _run(design, result, values):
    return stc("run", design, "--in", f"x={values}", "--out", f"y={result}")


def _refused(done, *parts):
    assert done.returncode == 1 and done.stderr.count("error:") == 1, (done.returncode, done.stderr)
    for part in parts:
        assert part in done.stderr, done.stderr


# ---- names


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data_in_every_language(tmp_path, name):
    """Each file of the design is read by its language: nothing of the name is code there."""
    spelled = "".join(c if c.isalnum() or ord(c) > 127 else f"\\{ord(c):02X}" for c in name)
    done = _compile(tmp_path, SMALL.replace("NAME", spelled))
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    host_of(out, tmp_path / "host")
    text = (out / "host/main.c").read_text()
    outside = re.sub(r'"(\\.|[^"\\])*"|/\*.*?\*/', "", text, flags=re.S)
    assert "injected" not in outside and "alert" not in outside
    compiled = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", "-w", f"-I{out}/hls", f"-I{out}/hls/csim"]
        + list(out.glob("hls/*.cpp")),
        capture_output=True,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["inputs"][0]["name"] == name
    json.loads((out / "report.json").read_text())
    page = (out / "report.html").read_text()
    assert "<img src=x" not in page and page.count("</script>") == page.count("<script")
    made = subprocess.run(["make", "-n", "-C", out / "hls", "xclbin"], capture_output=True)
    assert made.returncode == 0 and not list(tmp_path.rglob("injected"))
    for trace in ("t.json", "t.vcd"):
        done = stc("simulate", out, "--trace", tmp_path / trace)
        assert done.returncode == 0, done.stderr
    json.loads((tmp_path / "t.json").read_text())
    signals = [line for line in (tmp_path / "t.vcd").read_text().splitlines() if "$var" in line]
    assert signals and all(line.split("$var")[1].split()[4] == "$end" for line in signals)
    dump = stc("compile", out / "design.mlir", "--platform", "u55c", "-o", tmp_path / "again")
    assert dump.returncode == 0, dump.stderr


def test_file_names_that_c_knows(tmp_path, doubler):
    """The file's name decides no value, whatever functions it is one of."""
    text = (doubler / "m.mlir").read_text()
    for name in ("exp", "std", "tokens"):
        assert _compile(tmp_path, text, name).returncode == 0
        done = _run(tmp_path / "out", tmp_path / "y.npy", doubler / "x.npy")
        assert done.returncode == 0, done.stderr
        assert (numpy.load(tmp_path / "y.npy") == [0, 2, 4, 6]).all(), name


def test_no_header_or_library_has_the_prefix_of_top_functions(doubler):
    """Macros and declarations of all headers that a design includes, and what libraries define."""
    (source,) = (doubler / "out/hls").glob("*.cpp")
    own = source.stem
    headers = subprocess.run(
        ["g++", "-std=c++17", "-dD", "-E", f"-I{source.parent}", f"-I{source.parent}/csim", source],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert own in headers
    assert set(re.findall(r"\btop_\w*", headers)) == {own}
    for library in ("c", "m", "stdc++", "gcc_s"):
        path = subprocess.run(
            ["g++", f"-print-file-name=lib{library}.so{'.6' if library != 'gcc_s' else '.1'}"],
            capture_output=True,
            text=True,
        ).stdout.strip()
        symbols = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True)
        assert " exp" in symbols.stdout or library != "m"
        assert not re.search(r"\btop_", symbols.stdout), library


def test_texts_of_a_platform_are_checked(tmp_path):
    platform = json.loads((ROOT / "platforms/u55c.json").read_text())
    for change in (
        {"xpfm": "x $(shell touch injected)"},
        {"memory_tag": "HBM[0]\nsp=m"},
        {"part": 'a"b'},
    ):
        (tmp_path / "p.json").write_text(json.dumps({**platform, **change}))
        done = stc(
            "compile",
            ROOT / "examples/perceptron.mlir",
            "--platform",
            tmp_path / "p.json",
            "-o",
            tmp_path / "out",
        )
        _refused(done, f"the text '{next(iter(change))}' has the character", "letters, digits")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("count", [9007199254740992, -1, 1001])
def test_counts_of_parts_are_checked(tmp_path, count):
    platform = json.loads((ROOT / "platforms/u55c.json").read_text())
    platform["operators"]["math.tanh"]["parts"]["arith.mulf"] = count
    (tmp_path / "p.json").write_text(json.dumps(platform))
    done = stc(
        "compile",
        ROOT / "examples/perceptron.mlir",
        "--platform",
        tmp_path / "p.json",
        "-o",
        tmp_path / "out",
    )
    _refused(done, "'operators.math.tanh.arith.mulf' is", "a number from 0 to 1000")


def test_a_product_that_no_card_ends_is_refused(tmp_path):
    n = 1 << 20
    text = f"""func.func @main(%a: tensor<{n}x{n}xf32>, %b: tensor<{n}x{n}xf32>)
    -> tensor<{n}x{n}xf32> {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{n}x{n}xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %y = linalg.matmul ins(%a, %b : tensor<{n}x{n}xf32>, tensor<{n}x{n}xf32>)
      outs(%f : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  return %y : tensor<{n}x{n}xf32>
}}"""
    _refused(_compile(tmp_path, text), "more than 2^53 iterations", "m.mlir:")


# ---- results


def test_a_result_goes_into_what_stands_there(tmp_path, doubler):
    """A pipe and a device stay what they are, a link stays and its target is written."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        done = _run(doubler / "out", tmp_path / "pipe", doubler / "x.npy")
        assert done.returncode == 0, done.stderr
        assert reader.communicate(timeout=20)[0].startswith(b"\x93NUMPY")
    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe").st_mode)
    assert _run(doubler / "out", tmp_path / "link.npy", doubler / "x.npy").returncode == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert (numpy.load(tmp_path / "real.npy") == [0, 2, 4, 6]).all()
    _refused(_run(doubler / "out", "/dev/full", doubler / "x.npy"), "/dev/full: error: cannot be")
    assert stat.S_ISCHR(os.lstat("/dev/full").st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.npy", "pipe", "real.npy"]


# ---- signals and limits


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGXCPU])
def test_a_signal_leaves_nothing(tmp_path, number):
    for stage in ("size_fifos", "emit"):
        with subprocess.Popen(
            [
                os.environ.get("STC", ROOT / "build/stc"),
                "compile",
                ROOT / "tests/models/layers.mlir",
            ]
            + ["--platform", "u55c", "--progress", "-o", tmp_path / "out"],
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            for line in child.stderr:
                if line.startswith(f"stage {stage}"):
                    child.send_signal(number)
            assert child.wait(60) in (0, 1)
        assert {path.name for path in tmp_path.iterdir()} <= {"out"}


def test_the_end_of_a_terminal_leaves_nothing_of_a_model(tmp_path):
    words = ["export", ROOT / "examples/tiny-gpt2", "--context", "16", "-o", tmp_path / "out"]
    command = [sys.executable, "-m", "streamtensor", *map(str, words)]
    heeds = functools.partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # under nohup, too
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeds) as child:
        for line in child.stderr:
            if line == "streamtensor: export\n":
                child.send_signal(signal.SIGHUP)
        assert child.wait(60) == 130
    assert line == "streamtensor: error: interrupted\n"
    assert not list(tmp_path.iterdir())


def test_a_long_search_heeds_a_signal(tmp_path):
    """A budget of points that no machine gets through."""
    words = ["compile", ROOT / "tests/models/mlp.mlir", "--platform", "u55c", "--progress"]
    words += ["--parallelism-budget", "1000000000000", "-o", tmp_path / "out"]
    program = os.environ.get("STC", ROOT / "build/stc")
    with subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True) as child:
        lines = []
        for line in child.stderr:
            lines.append(line)
            if line.startswith("stage choose_parallelism"):
                child.send_signal(signal.SIGTERM)
        assert child.wait(5) == 1
    assert lines[-1] == "stc: error: interrupted; nothing was written\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_many_signals_at_random_times(tmp_path, doubler):
    """Every command, every signal that can be heeded: a result or a message, nothing else."""
    choice = random.Random(1)
    signals = "INT TERM HUP QUIT XCPU ALRM VTALRM PROF USR1 USR2 POLL".split()
    layers = ROOT / "tests/models/layers.mlir"
    commands = [
        ("compile", layers, "--platform", "u55c", "-o", tmp_path / "out"),
        ("explore", layers, "--platform", "u55c", "--trials", "2", "-o", tmp_path / "state"),
        ("simulate", doubler / "out"),
        ("search-space", "--platform", "u55c"),
        ("options", "--json"),
        ("run", doubler / "out", "--in", f"x={doubler / 'x.npy'}", "--out", f"y={tmp_path}/y.npy"),
        ("check", layers),
    ]
    for _ in range(KILLS):
        command = choice.choice(commands)
        with subprocess.Popen(
            [os.environ.get("STC", ROOT / "build/stc"), *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            threading.Event().wait(0.05 + choice.random())  # behind the loader
            child.send_signal(getattr(signal, f"SIG{choice.choice(signals)}"))
            said = child.communicate(timeout=60)[1]
        ended = child.returncode == 0 or (child.returncode == 1 and "error:" in said)
        assert ended or (child.returncode < 0 and not said), said  # else before it could start
        assert {path.name for path in tmp_path.iterdir()} <= {"out", "y.npy", "state"}


def test_an_interrupt_ends_the_build_of_a_design(tmp_path, doubler):
    """The C++ compiler is told, and the message is that of an interrupt."""
    slow = slow_compiler(tmp_path, f"touch {tmp_path}/begun")
    environment = {**os.environ, "CXX": str(slow), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with subprocess.Popen(
        [os.environ.get("STC", ROOT / "build/stc"), "run", doubler / "out"]
        + ["--in", f"x={doubler / 'x.npy'}", "--out", f"y={tmp_path / 'y.npy'}"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        while child.poll() is None and not (tmp_path / "begun").exists():
            threading.Event().wait(0.01)
        child.send_signal(signal.SIGTERM)
        assert child.communicate(timeout=20)[1] == "stc: error: interrupted\n"
        assert child.returncode == 1 and not (tmp_path / "y.npy").exists()


def test_the_largest_file_is_a_full_disk(tmp_path):
    (tmp_path / "m.mlir").write_text(PERCEPTRON)
    done = _limited(
        {"RLIMIT_FSIZE": 8192}, "compile", "m.mlir", "--platform", "u55c", "-o", "out", cwd=tmp_path
    )
    _refused(done, "cannot be written")
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlir"]


def test_a_schedule_that_does_not_fit_is_not_tried_again(tmp_path):
    (tmp_path / "m.mlir").write_text(BACKWARDS)
    out = tmp_path / "out"
    words = "compile", tmp_path / "m.mlir", "--platform", "u55c", "-o", out
    done = _limited({"RLIMIT_AS": 1 << 30}, *words)
    assert done.returncode == 0, done.stderr
    x, w = numpy.arange(64, dtype="f4"), numpy.arange(64 * 33, dtype="f4").reshape(64, 33) % 7
    numpy.save(tmp_path / "x.npy", x)
    numpy.save(tmp_path / "w.npy", w)
    files = [f"--in=x={tmp_path}/x.npy", f"--in=w={tmp_path}/w.npy", f"--out=y={tmp_path}/y.npy"]
    stc("run", out, *files)
    assert (numpy.load(tmp_path / "y.npy") == x[::-1] @ w).all()


@pytest.mark.parametrize("step", [2500, pytest.param(250, marks=pytest.mark.long)])
def test_any_limit_of_memory_ends_with_a_message(tmp_path, step):
    """Inside the MLIR libraries and the solver too, from the least with which it starts on."""
    layers = ROOT / "tests/models/layers.mlir"
    words = ["compile", layers, "--platform", "u55c", "--progress", "-o", tmp_path / "out"]
    refused = 0
    for kib in range(250_000, 600_000, step):
        done = _limited({"RLIMIT_AS": kib << 10}, *words)
        if "stage" not in done.stderr:  # it does not start
            continue
        assert done.returncode in (0, 1), (kib, done.returncode, done.stderr)
        if done.returncode == 0:
            break
        refused += 1
        assert "memory" in done.stderr and not list(tmp_path.iterdir()), done.stderr
    assert done.returncode == 0 and refused > 3


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Runs the compiler where the nth malloc of a library fails, or with 0 counts them."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "failing.c").write_text(FAILING)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", folder / "failing.so", folder / "failing.c", "-ldl"],
        check=True,
    )

    def run(library, number, *words):
        environment = {"LD_PRELOAD": str(folder / "failing.so"), "FAIL_IN": library}
        return subprocess.run(
            [os.environ.get("STC", ROOT / "build/stc"), *map(str, words)],
            env={**os.environ, **environment, "FAIL_AT": str(number)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.mark.parametrize("library", ["libcjson", "libLLVM", "libMLIR", "libstdc++"])
def test_a_library_without_memory_is_one_message(tmp_path, failing, library):
    """cJSON's answer is not that the text is broken, LLVM writes no line of its own, and a null
    pointer that MLIR did not look at is no crash.
    """
    words = ["compile", ROOT / "examples/perceptron.mlir", "--platform", "u55c", "--to", "tensor"]
    counted = [
        int(failing(library, 0, *each).stderr.split("CALLS ")[1]) for each in (["passes"], words)
    ]
    before, all_calls = counted
    assert all_calls > before
    step = max(1, (all_calls - before) // 6)
    texts = []
    for number in range(before + 1, all_calls + 1, step):
        done = failing(library, number, *words)
        assert done.returncode in (0, 1), (number, done.returncode, done.stderr)
        texts += [done.stderr] if done.returncode else []
    assert texts and all(
        text.startswith("stc: error: out of memory") and text.count("\n") == 1 for text in texts
    ), texts


def _least_memory(*words) -> int:
    """Kilobytes with which main is reached: constructors of libraries that run before it need
    memory, too, and nobody can answer for them.
    """
    low, high = 100_000, 1_000_000
    while high - low > 100:
        middle = (low + high) // 2
        is_begun = _limited({"RLIMIT_AS": middle << 10}, *words).returncode in (0, 1)
        low, high = (low, middle) if is_begun else (middle, high)
    return high


@pytest.mark.long
def test_limits_of_memory_of_other_commands(tmp_path, doubler):
    layers = ROOT / "tests/models/layers.mlir"
    commands = [
        ("check", layers),
        ("simulate", doubler / "out"),
        ("run", doubler / "out", "--in", f"x={doubler / 'x.npy'}", "--out", f"y={tmp_path}/y.npy"),
        ("search-space", "--platform", "u55c"),
        ("explore", ROOT / "examples/perceptron.mlir", "--platform", "u55c", "--trials", "2")
        + ("-o", tmp_path / "state"),
    ]
    assert _run(doubler / "out", tmp_path / "y.npy", doubler / "x.npy").returncode == 0
    for command in commands:
        least, statuses = _least_memory(*command), set()
        for level in range(LEVELS // len(commands)):
            done = _limited({"RLIMIT_AS": (least + 150 * level) << 10}, *command)
            statuses.add(done.returncode)
            assert done.returncode in (0, 1), (command, level, done.returncode, done.stderr)
            assert done.returncode != 1 or done.stderr.count("error:") == 1, done.stderr
            assert {path.name for path in tmp_path.iterdir()} <= {"y.npy", "state"}
        assert 1 in statuses, (command, statuses)


# ---- folders of others


def _rewrite(folder, change) -> None:
    """Changes the manifest and gives it the hash of what it says then."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    del manifest["hash"]
    text = json.dumps(manifest)[:-1]
    digest = hashlib.blake2b(text.encode(), digest_size=32).hexdigest()
    path.write_text(f'{text},\n"hash":"{digest}"}}\n')


def test_a_changed_manifest_is_refused(tmp_path, doubler):
    """Numbers that decide results have a hash; ports are compared with the top function's."""
    design = shutil.copytree(doubler / "out", tmp_path / "d")
    text = (design / "manifest.json").read_text()
    changed = text.replace('"offset":0', '"offset":4', 1)
    assert changed != text
    (design / "manifest.json").write_text(changed)
    _refused(
        _run(design, tmp_path / "y.npy", doubler / "x.npy"), "was changed after it was written"
    )
    (design / "manifest.json").write_text(text)
    _rewrite(design, lambda manifest: None)
    assert _run(design, tmp_path / "y.npy", doubler / "x.npy").returncode == 0
    _rewrite(design, lambda manifest: manifest["ports"].pop())
    done = _run(design, tmp_path / "z.npy", doubler / "x.npy")
    assert done.returncode == 1 and "has the ports of another top function" in done.stderr
    assert not (tmp_path / "z.npy").exists()
    (design / "manifest.json").write_text(text)
    _rewrite(design, lambda manifest: manifest["files"].pop(f"hls/{manifest['top']}.cpp"))
    _refused(_run(design, tmp_path / "z.npy", doubler / "x.npy"), "does not list hls/top_m.cpp")


def test_code_of_a_model_folder_never_runs(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "other", "auto_map": {"AutoConfig": "own.C"}})
    )
    (tmp_path / "own.py").write_text("raise SystemExit('ran')\n")
    with pytest.raises(streamtensor.Error, match=r"runs code of its folder \(own.py\)"):
        models.load(str(tmp_path))


def test_shards_are_files_of_the_folder(tmp_path):
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "w.safetensors").write_bytes(b"")
    for place in ("../w.safetensors", str(tmp_path / "w.safetensors")):
        index = {"weight_map": {"w": place}}
        (inside / "model.safetensors.index.json").write_text(json.dumps(index))
        with pytest.raises(streamtensor.Error, match="is outside the folder"):
            weights._check_shards(
                inside, inside / "model.safetensors.index.json", index["weight_map"]
            )


# ---- at once


def test_threads_share_a_design(core_built):
    """A call is one step, so each thread gets its own result."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
    wrong = []

    def use(design):
        for _ in range(200):
            value = torch.randn(2, 8)
            wrong.append(bool((design(value) - module(value)).abs().max() > 1e-4))

    with streamtensor.compile(module, (torch.randn(2, 8),)) as design:
        threads = [threading.Thread(target=use, args=(design,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(wrong) == 600 and not any(wrong)


def test_a_fork_leaves_the_folder_of_its_parent(core_built):
    with streamtensor.compile(torch.nn.ReLU(), (torch.randn(4),)) as design:
        child = os.fork()
        if child == 0:
            design.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert design.folder.is_dir() and design(torch.ones(4)).sum() == 4
        for value in (torch.ones(4, device="meta"), torch.ones(4).to_sparse()):
            with pytest.raises(streamtensor.Error, match="on the meta device|of layout"):
                design(value)


def test_one_exploration_a_folder(tmp_path):
    with design_trials.sole_use(tmp_path):
        with pytest.raises(streamtensor.Error, match=f"another exploration, process {os.getpid()}"):
            with design_trials.sole_use(tmp_path):
                pass
    with design_trials.sole_use(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


# ---- files of other kinds, what others left


def test_numbers_of_the_other_byte_order(tmp_path, doubler):
    numpy.save(tmp_path / "x.npy", numpy.arange(4).astype(">f4"))
    done = _run(doubler / "out", tmp_path / "y.npy", tmp_path / "x.npy")
    assert done.returncode == 0, done.stderr
    assert (numpy.load(tmp_path / "y.npy") == [0, 2, 4, 6]).all()


def test_what_is_no_file_is_not_read(tmp_path):
    _refused(stc("compile", "/dev/zero", "--platform", "u55c", "-o", tmp_path / "o"), "a device")
    os.mkfifo(tmp_path / "manifest.json")
    for command in (("run", tmp_path, "--out", "y=y.npy"), ("simulate", tmp_path)):
        _refused(stc(*command), "it is no regular file")


def test_what_a_killed_process_left_is_swept(tmp_path):
    """By the next that writes there; what a living process holds, or what is young, stays."""
    left, held, young = (tmp_path / f".out.stc-{name}" for name in ("lefttt", "helddd", "youngg"))
    for folder in (left, held, young):
        (folder / "hls").mkdir(parents=True)
    for folder in (left, held):
        os.utime(folder, (1, 1))
    holder = os.open(held, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert _compile(tmp_path, PERCEPTRON).returncode == 0
    os.close(holder)
    assert not left.exists() and held.exists() and young.exists()


def test_the_compiler_may_have_several_words(tmp_path, doubler, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "env g++")
    assert _run(doubler / "out", tmp_path / "y.npy", doubler / "x.npy").returncode == 0
    monkeypatch.setenv("CXX", "true")
    _refused(_run(doubler / "out", tmp_path / "y.npy", doubler / "x.npy"), "makes no library")


def test_names_that_are_no_text_and_numbers_with_spaces_are_refused(tmp_path):
    name = "\\FF\\FE"
    text = SMALL.replace("NAME.y", "y").replace("NAME", name)
    _refused(_compile(tmp_path, text), "the name of argument 0 is no UTF-8")
    for value in (" 5", "5 ", "1e3", "+5", "99999999999999999999"):
        _refused(_compile(tmp_path, PERCEPTRON, "m", "--kernel-dsp", value), f"is '{value}'")
    number = "99999999999999999999"
    for option, most in (("--kernel-dsp", r"\d+"), ("--images", "9223372036854775807")):
        done = _compile(tmp_path, PERCEPTRON, "m", option, number)
        _refused(done, f"{option} is '{number}'")
        assert re.search(f"a whole number from 1 to {most}", done.stderr), done.stderr


@pytest.mark.parametrize("words", [("--top", "f"), ("-D", "N=4"), ("--reassociate",)])
def test_options_of_c_are_refused_for_mlir(tmp_path, words):
    done = _compile(tmp_path, PERCEPTRON, "m", *words)
    _refused(done, "m.mlir: error: --", "is an option of C", "a file whose name ends in .c")
    assert not (tmp_path / "out").exists()


def test_an_unknown_model_is_told_all_that_are_known():
    with pytest.raises(streamtensor.Error, match="unknown model 'resnet99'") as error:
        models._find("resnet99")
    assert "gpt2" in error.value.notes[0] and "image networks: resnet18" in error.value.notes[0]
