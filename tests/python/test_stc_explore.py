"""stc explore: states that go on, points that can be compiled, limits that hold."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
STC = os.environ.get("STC", str(TREE / "build" / "stc"))
PERCEPTRON = TREE / "examples" / "perceptron.mlir"
MLP = TREE / "tests" / "models" / "mlp.mlir"


def stc(*words, fails=False):
    found = subprocess.run([STC, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert (found.returncode != 0) == fails, found.stderr
    return found.stderr if fails else found.stdout


def explore(model, state, *words, **keywords):
    return stc("explore", model, "--platform", "u55c", "-o", state, *words, **keywords)


def report(folder):
    return json.loads((folder / "report.json").read_text())


def test_a_resumed_exploration_is_the_same(tmp_path):
    explore(MLP, tmp_path / "parts.json", "--trials", 4)
    explore(MLP, tmp_path / "parts.json", "--trials", 9, "--resume")
    table = explore(MLP, tmp_path / "whole.json", "--trials", 9)
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    trials = json.loads((tmp_path / "whole.json").read_text())["trials"]
    front = [trial for trial in trials if trial.get("pareto_optimal")]
    assert len(trials) == 9 and front
    for trial in front:  # each is confirmed, and the model is near what is simulated
        assert abs(trial["cycles"] / trial["simulated"] - 1) < 0.05
        assert not any(
            other["latency_ms"] <= trial["latency_ms"]
            and other["dsp"] <= trial["dsp"]
            and other["on_chip_bytes"] <= trial["on_chip_bytes"]
            and other["energy_mj"] <= trial["energy_mj"]
            and other["launches_per_second"] >= trial["launches_per_second"]
            and (other["latency_ms"], other["dsp"], other["on_chip_bytes"])
            != (trial["latency_ms"], trial["dsp"], trial["on_chip_bytes"])
            for other in trials
            if "latency_ms" in other
        )
    assert len(table.splitlines()) == 1 + len(front)
    assert "exists" in explore(MLP, tmp_path / "whole.json", fails=True)


def test_a_point_can_be_compiled(tmp_path):
    state = tmp_path / "state.json"
    explore(MLP, state, "--trials", 5, "--max-dsp", "50%")
    trials = json.loads(state.read_text())["trials"]
    for trial in [trial for trial in trials if trial.get("pareto_optimal")]:
        stc(
            "compile",
            MLP,
            "--platform",
            "u55c",
            "--trial",
            f"{state}:{trial['id']}",
            "-o",
            tmp_path / "design",
        )
        found = report(tmp_path / "design")
        assert (
            found["cycles"]["simulated"],
            found["resources"]["dsp"],
            found["resources"]["lut"],
        ) == (trial["simulated"], trial["dsp"], trial["lut"])
        assert found["energy"]["launch_mj"] == pytest.approx(trial["energy_mj"], rel=1e-3)
    design = tmp_path / "none"
    assert "names no design" in stc(
        "compile", MLP, "--platform", "u55c", "--trial", f"{state}:99", "-o", design, fails=True
    )
    assert "platform is 'u55c'" in stc(
        "compile", MLP, "--platform", "u280", "--trial", f"{state}:0", "-o", design, fails=True
    )
    assert "sets all design parameters" in stc(
        "compile",
        MLP,
        "--platform",
        "u55c",
        "--trial",
        f"{state}:0",
        "--kernel-dsp",
        5,
        "-o",
        design,
        fails=True,
    )
    assert not design.exists()


def test_a_state_of_something_else_is_refused(tmp_path):
    state = tmp_path / "state.json"
    explore(PERCEPTRON, state, "--trials", 2)
    assert "its model is" in explore(MLP, state, "--resume", fails=True)
    assert "its quant is" in explore(PERCEPTRON, state, "--resume", "--quant", "w8a8", fails=True)
    assert "its constraint is" in explore(
        PERCEPTRON, state, "--resume", "--max-dsp", 300, fails=True
    )
    kept = state.read_text()
    for text, part in [
        ("{", "no JSON"),
        ("{}", "lacks"),
        (kept.replace('"dsp": ', '"dsp": -'), "trial 0 is damaged"),
        (kept.replace('"energy_mj"', '"energy"'), "trial 0 is damaged"),
        (kept.replace('"requested": {}', '"requested": {"kernel-dsp": "x"}'), "damaged"),
    ]:
        state.write_text(text)
        assert part in explore(PERCEPTRON, state, "--resume", fails=True)


def test_an_interrupted_exploration_keeps_its_state(tmp_path):
    state = tmp_path / "state.json"
    running = subprocess.Popen(
        [STC, "explore", MLP, "--platform", "u55c", "--trials", "10000", "-o", state],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not state.exists() and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, messages = running.communicate(timeout=60)
    assert (
        running.returncode == 1
        and "interrupted after" in messages
        and "--resume continues" in messages
    )
    kept = len(json.loads(state.read_text())["trials"])
    assert kept >= 1
    explore(MLP, state, "--resume", "--trials", kept + 1)
    assert len(json.loads(state.read_text())["trials"]) == kept + 1


@pytest.mark.parametrize(
    "wish, unit", [("--max-dsp", "dsp"), ("--max-lut", "lut"), ("--max-bram", "bram18")]
)
def test_limits_hold_and_the_nearest_can_be_met(tmp_path, wish, unit):
    design = tmp_path / "design"
    message = stc("compile", MLP, "--platform", "u55c", wish, 1, "-o", design, fails=True)
    nearest = message.split(f"the tightest limit that can be met is {wish} ")[1].split()[0]
    stc("compile", MLP, "--platform", "u55c", wish, nearest, "-o", design)
    least = report(design)["resources"][unit]
    assert least <= int(nearest)
    stc("compile", MLP, "--platform", "u55c", "-o", design)
    most = report(design)["resources"][unit]
    stc("compile", MLP, "--platform", "u55c", wish, (least + most) // 2, "-o", design)
    assert report(design)["resources"][unit] <= (least + most) // 2


PRODUCT = """
func.func @product(%x: tensor<1x512xf32>, %a: tensor<512x1024xf32> {stream.role = "weight"}) -> \
tensor<1x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x1024xf32>
  %none = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %y = linalg.matmul ins(%x, %a : tensor<1x512xf32>, tensor<512x1024xf32>) outs(%none : \
tensor<1x1024xf32>) -> tensor<1x1024xf32>
  return %y : tensor<1x1024xf32>
}
"""


@pytest.mark.parametrize("effort, cycles", [("-O1", 1100), ("-O2", 1000)])
def test_a_unit_has_as_many_slices_as_a_limit_allows(tmp_path, effort, cycles):
    """Without the limit its slices alone take more than is allowed."""
    path, design = tmp_path / "product.mlir", tmp_path / "design"
    path.write_text(PRODUCT)
    stc(
        "compile",
        path,
        "--platform",
        "u55c",
        "--quant",
        "w4a8",
        effort,
        "--max-dsp",
        800,
        "-o",
        design,
    )
    assert report(design)["resources"]["dsp"] <= 800
    assert report(design)["cycles"]["simulated"] < cycles


def test_two_limits_are_told_what_meets_both(tmp_path):
    design = tmp_path / "design"
    message = stc(
        "compile",
        MLP,
        "--platform",
        "u55c",
        "--max-bram",
        3,
        "--max-uram",
        0,
        "--progress",
        "-o",
        design,
        fails=True,
    )
    # smaller budgets as long as they change something, then the narrowest kernels
    assert "--max-bram 3 cannot be met" in message
    assert 3 <= message.count("stage size_fifos") <= 6
    nearest = message.split("the tightest limit that can be met is ")[1].split()
    assert nearest[::2] == ["--max-bram", "--max-uram"]
    stc("compile", MLP, "--platform", "u55c", *nearest, "-o", design)


def test_an_exploration_without_a_design_says_why(tmp_path):
    state = tmp_path / "state.json"
    message = explore(MLP, state, "--trials", 2, "--max-dsp", 1, fails=True)
    assert (
        "none of 2 trials gives a design" in message
        and "--max-dsp 1 cannot be met: the smallest design found takes" in message
    )
    assert len(json.loads(state.read_text())["trials"]) == 2


def test_the_slower_clock_that_is_tried_is_that_of_the_rule():
    clock = next(
        choice
        for choice in json.loads(stc("search-space", "--platform", "u55c", "--json"))
        if choice["name"] == "clock"
    )
    assert clock["candidates"] == [250, 300]


def test_a_target_takes_fewer_operators(tmp_path):
    design = tmp_path / "design"
    stc("compile", MLP, "--platform", "u55c", "-o", design)
    fast = report(design)
    message = stc(
        "compile", MLP, "--platform", "u55c", "--target-ms", 0.0001, "-o", design, fails=True
    )
    nearest = message.split("--target-ms ")[2].split(";")[0]
    stc("compile", MLP, "--platform", "u55c", "--target-ms", nearest, "-o", design)
    target = fast["latency_ms"] * 1.2
    stc("compile", MLP, "--platform", "u55c", "--target-ms", target, "-o", design)
    found = report(design)
    assert found["latency_ms"] <= target and found["resources"]["dsp"] < fast["resources"]["dsp"]


def test_a_long_search_is_no_worse(tmp_path):
    times = []
    for effort in ("-O1", "-O2", "-O3"):
        stc("compile", PERCEPTRON, "--platform", "u55c", effort, "-o", tmp_path / "design")
        times.append(report(tmp_path / "design")["latency_ms"])
    assert times[2] <= times[1] <= times[0]


def test_a_slower_clock_is_simulated_as_one(tmp_path):
    stc("compile", MLP, "--platform", "u55c", "--clock", 250, "-o", tmp_path / "design")
    found = report(tmp_path / "design")
    again = json.loads(stc("simulate", tmp_path / "design", "--json"))
    assert found["clock_mhz"] == 250 and again["cycles"] == found["cycles"]["simulated"]
    assert again["latency_ms"] == pytest.approx(found["latency_ms"], rel=1e-4)


def test_the_clock_falls_where_a_die_is_crowded(tmp_path):
    board = tmp_path / "crowded.json"
    board.write_text(
        json.dumps(
            {
                "name": "crowded",
                "like": "u55c",
                "crowded": {
                    "dsp": {"value": 1, "source": "test"},
                    "period": {"value": 1.5, "source": "test"},
                },
            }
        )
    )
    stc("compile", MLP, "--platform", board, "-o", tmp_path / "slow")
    stc("compile", MLP, "--platform", board, "--clock", 300, "-o", tmp_path / "told")
    assert [report(tmp_path / name)["clock_mhz"] for name in ("slow", "told")] == [200, 300]
    assert "FREQUENCY ?= 200" in (tmp_path / "slow" / "hls" / "Makefile").read_text()
    stc("explore", MLP, "--platform", board, "-o", tmp_path / "state.json", "--trials", 2)
    assert {
        trial["resolved"]["clock"]
        for trial in json.loads((tmp_path / "state.json").read_text())["trials"]
    } == {200}


def test_what_cannot_be_is_told_before_anything_is_tried(tmp_path):
    state = tmp_path / "state.json"
    told = explore(PERCEPTRON, state, "--trials", 3, "--fix-kernel", "nokernel:lanes=4", fails=True)
    assert (
        "--fix-kernel names 'nokernel', which is no kernel of the design\nnote: the nearest is k0"
        in told
        and not state.exists()
    )
    assert "is a folder" in explore(PERCEPTRON, tmp_path, "--trials", 3, fails=True)
    assert "cannot be made: No such file or directory" in explore(
        PERCEPTRON, tmp_path / "no" / "state.json", "--trials", 3, fails=True
    )


def test_a_point_is_the_design_that_was_tried(tmp_path):
    state = tmp_path / "state.json"
    explore(PERCEPTRON, state, "--trials", 1, "--max-dsp", 500)
    compile_point = [
        STC,
        "compile",
        PERCEPTRON,
        "--platform",
        "u55c",
        "--trial",
        f"{state}:0",
        "-o",
        tmp_path / "design",
    ]
    for limits, refused in (
        ([], False),
        (["--max-dsp", "500"], False),
        (["--max-dsp", "100"], True),
    ):
        done = subprocess.run(
            [*compile_point, *limits], capture_output=True, text=True, timeout=300
        )
        assert (
            done.returncode == refused
            and ("its constraint is '--max-dsp 500', not '--max-dsp 100'" in done.stderr) == refused
        ), done.stderr


def test_the_narrowest_design_says_why_it_is(tmp_path):
    for phase in ("decode", "prefill"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "streamtensor",
                "export",
                TREE / "examples" / "tiny-gpt2",
                "--phase",
                phase,
                "--prefill-chunk",
                "8",
                "--context",
                "64",
                "-o",
                tmp_path / phase,
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        (tmp_path / phase / "model.mlir").rename(tmp_path / f"{phase}.mlir")
    dies = json.loads((TREE / "platforms" / "u55c.json").read_text())["dies"]
    said = {}
    for blocks, more in (
        (200, []),
        (125, []),
        (200, ["--second-phase", tmp_path / "prefill.mlir"]),
        (125, ["--second-phase", tmp_path / "prefill.mlir"]),
    ):
        board = tmp_path / "little.json"
        board.write_text(
            json.dumps(
                {
                    "name": "little",
                    "like": "u55c",
                    "dies": [
                        {
                            **die,
                            "bram18": {"value": blocks, "source": "test"},
                            "uram": {"value": 0, "source": "test"},
                        }
                        for die in dies
                    ],
                }
            )
        )
        done = subprocess.run(
            [
                STC,
                "compile",
                tmp_path / "decode.mlir",
                *more,
                "--platform",
                board,
                "-o",
                tmp_path / "design",
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
        said[blocks, bool(more)] = done.stderr
        assert done.returncode == ((blocks, bool(more)) == (125, True)), done.stderr
    assert "single lane" not in said[200, False]
    assert (
        "only kernels with a single lane fit (at most one element per cycle, slow): processes "
        "with memory ports need" in said[125, False]
    )
    assert (
        "only kernels with a single lane of phase decode fit (at most one element per cycle, "
        "slow): processes with memory ports need" in said[200, True]
    )
    assert "of die 0, the memory die of little together with the other phase" in said[125, True]


def test_a_crowded_die_costs_what_is_least(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "streamtensor",
            "export",
            TREE / "examples" / "tiny-gpt2",
            "--phase",
            "decode",
            "--context",
            "64",
            "-o",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found, asked = {}, {}
    # narrower kernels fit into the first, nothing that is tried into the second
    for lut in (49, 38):
        board = tmp_path / "crowded.json"
        board.write_text(
            json.dumps(
                {
                    "name": "u55c",
                    "like": "u55c",
                    "crowded": {
                        key: {"value": value, "source": "test"}
                        for key, value in (("lut", lut), ("period", 1.05))
                    },
                }
            )
        )
        stc(
            "compile",
            tmp_path / "model.mlir",
            "--quant",
            "w4a8",
            "--platform",
            board,
            "-o",
            tmp_path / "design",
        )
        found[lut] = report(tmp_path / "design")
        stc(
            "compile",
            tmp_path / "model.mlir",
            "--quant",
            "w4a8",
            "--platform",
            board,
            "--clock",
            250,
            "-o",
            tmp_path / "design",
        )
        asked[lut] = report(tmp_path / "design")
    assert [found[lut]["clock_mhz"] for lut in (49, 38)] == [300, 285]
    # what costs less than a hundredth is taken at once
    assert found[49]["latency_ms"] < 1.01 * found[38]["latency_ms"]
    assert [asked[lut]["clock_mhz"] for lut in (49, 38)] == [250, 250]
    for die in found[49]["dies"] + asked[49]["dies"]:
        assert die["lut"] <= 0.49 * die["available"]["lut"]
    assert any(die["lut"] > 0.38 * die["available"]["lut"] for die in asked[38]["dies"])


def test_energy_is_between_rest_and_limit(tmp_path):
    stc("compile", MLP, "--platform", "u55c", "-o", tmp_path / "design")
    found = report(tmp_path / "design")
    energy = found["energy"]
    assert 15 <= energy["watts"] <= energy["limit_watts"] == 150
    assert energy["launch_mj"] == pytest.approx(energy["watts"] * found["latency_ms"], rel=2e-3)
    assert energy["limit_mj"] == pytest.approx(150 * found["latency_ms"], rel=2e-3)


def test_graphs_that_nobody_tuned_for():
    done = subprocess.run(
        [sys.executable, TREE / "bench" / "parallelism_search.py", "--small"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    # on all of them as good as every published search
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 5


def test_the_ladder_is_built_by_one_command(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "streamtensor",
            "export",
            TREE / "examples" / "tiny-gpt2",
            "--phase",
            "decode",
            "--context",
            "32",
            "-o",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [
            sys.executable,
            TREE / "bench" / "ablation_ladder.py",
            tmp_path / "model.mlir",
            "--position",
            "7",
            "--floor",
            "0.05",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rungs = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]
    ]
    cycles, ms = (
        [int(rung[2].replace(",", "")) for rung in rungs],
        [float(rung[3]) for rung in rungs],
    )
    assert len(rungs) > 8 and cycles[0] == cycles[1]
    assert ms[0] - ms[1] == pytest.approx(0.045, abs=0.002)  # two layers: one launch more
