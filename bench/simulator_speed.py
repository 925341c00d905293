"""Measures the speed of the time simulator.

    python bench/simulator_speed.py DESIGN ...

A design is a folder that `stc compile` wrote, or a hardware-level dump. Iterations are those of
pipelined loops. Their time is the CPU time of eleven launches less that of one, without reading the
design.
"""

import json
import resource
import sys
from pathlib import Path

from common import script_arguments, stc

EXTRA_LAUNCHES = 10


def simulate(design: str, launches: int) -> tuple[dict, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(
        stc("simulate", design, "--json", "--launches", launches, "--max-iterations", "1000G")
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    designs = script_arguments(__doc__)
    if not designs:
        sys.exit(__doc__)
    print(
        f"{'design':40} {'cycles':>12} {'iterations':>12} {'s, one launch':>14} "
        f"{'s, in all':>10} {'iterations/s':>10}"
    )
    for design in designs:
        one, whole = simulate(design, 1)
        _, many = simulate(design, 1 + EXTRA_LAUNCHES)
        seconds = max((many - whole) / EXTRA_LAUNCHES, 1e-9)
        print(
            f"{Path(design).name:40} {one['cycles']:12} {one['iterations']:12} "
            f"{seconds:14.3f} {whole:10.3f} {one['iterations'] / seconds / 1e6:8.1f} M"
        )


if __name__ == "__main__":
    main()
