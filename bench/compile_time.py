"""How long `stc compile` takes and how much memory: python bench/compile_time.py [MODULE.mlir ...]

Without arguments: the models of the tests.  Prints the best of three runs and the peak resident size.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, STC

RUNS = 3


def compile_once(module, output):
    """Seconds and peak bytes of one compilation; ends the program with stc's message if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen([STC, "compile", module, "--platform", "u55c", "-o", output],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{message}bench: stc compile {module} failed")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def main(arguments):
    modules = [Path(name) for name in arguments] or sorted((ROOT / "tests" / "models").glob("*.mlir"))
    if not modules:
        sys.exit("bench: error: no modules; name some, or put them under tests/models")
    print(f"{'module':40} {'seconds':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for module in modules:
            runs = [compile_once(module, Path(folder) / f"run{i}") for i in range(RUNS)]
            print(f"{module.stem:40} {min(run[0] for run in runs):8.3f} {max(run[1] for run in runs) / 2**20:9.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
