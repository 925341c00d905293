#!/usr/bin/env python3
"""Speed of the time simulator on designs: bench/simulate.py DESIGN …; a design is a folder that `stc compile` wrote, or a dump of hardware level.

Events are iterations of pipelined loops.  Their time is CPU time, of eleven launches less that of one, so that reading the design does not count."""
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

STC = os.environ.get("STC", str(Path(__file__).resolve().parent.parent / "build" / "stc"))
MORE = 10


def simulate(design: str, launches: int) -> tuple[dict, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([STC, "simulate", design, "--json", "--launches", str(launches), "--events", "1000G"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(f"{'design':40} {'cycles':>12} {'events':>12} {'s, one launch':>14} {'s, in all':>10} {'events/s':>10}")
    for design in sys.argv[1:]:
        one, whole = simulate(design, 1)
        _, many = simulate(design, 1 + MORE)
        seconds = max((many - whole) / MORE, 1e-9)
        print(f"{Path(design).name:40} {one['cycles']:12} {one['events']:12} {seconds:14.3f} {whole:10.3f} {one['events'] / seconds / 1e6:8.1f} M")


if __name__ == "__main__":
    main()
