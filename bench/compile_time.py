"""Measures time and memory of `stc compile`.

    python bench/compile_time.py [--quant SCHEME] [MODULE.mlir ...]

Without modules, it compiles those of the tests. Prints the best of three runs: wall-clock seconds,
CPU seconds, CPU seconds without the simulation that verifies the design (by the stages of
timing.json), and the peak resident size. On a busy machine the wall-clock time does not measure the
compiler.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STC = os.environ.get("STC", ROOT / "build" / "stc")
RUNS = 3


def compile_once(module, options, output):
    """Seconds, processor's seconds, the same without simulation, and peak bytes of one compilation;
    ends the program with stc's message if it fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [STC, "compile", module, "--platform", "u55c", "-o", output, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{message}bench: stc compile {module} failed")
    stages = json.loads((output / "timing.json").read_text())["stages"]
    simulated = sum(stage["seconds"] for stage in stages if stage["name"] == "simulate") / sum(
        stage["seconds"] for stage in stages
    )
    used = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - start, used, used * (1 - simulated), usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", type=Path, metavar="MODULE.mlir")
    parser.add_argument("--quant", help="as of `stc compile`")
    asked = parser.parse_args()
    modules = asked.modules or sorted((ROOT / "tests" / "models").glob("*.mlir"))
    if not modules:
        sys.exit("bench: error: no modules; name some, or put them under tests/models")
    options = ["--quant", asked.quant] if asked.quant else []
    print(f"{'module':40} {'seconds':>8} {'CPU':>8} {'no sim':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for module in modules:
            runs = [compile_once(module, options, Path(folder) / f"run{i}") for i in range(RUNS)]
            least = [min(run[i] for run in runs) for i in range(3)]
            print(
                f"{module.stem:40} {least[0]:8.3f} {least[1]:8.3f} {least[2]:8.3f} "
                f"{max(run[3] for run in runs) / 2**20:9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
