"""What the scripts of this folder share: the compiler they call, and the tables that they keep in
pages of docs/.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STC = os.environ.get("STC", str(ROOT / "build" / "stc"))


def script_arguments(text: str, known: tuple[str, ...] = ()) -> list[str]:
    """What the script is given; ends it with `text`, what it is for, where that is asked for or an
    option is none of `known`.
    """
    given = sys.argv[1:]
    unknown = [word for word in given if word.startswith("-") and word not in known]
    if unknown:
        asked = set(unknown) <= {"-h", "--help"}
        print(
            text.strip() if asked else f"unknown option {unknown[0]}\n{text.strip()}",
            file=sys.stdout if asked else sys.stderr,
        )
        sys.exit(not asked)
    return given


def stc(*words: object) -> str:
    """What it prints; RuntimeError with its message."""
    done = subprocess.run([STC, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"stc: exit status {done.returncode}")
    return done.stdout


def simulated(folder: Path, steps: int = 0, /, **extents: int) -> tuple[float, float]:
    """Milliseconds of a launch's cycles, and with a launch of its own. steps: of the launch, where
    a design takes several.
    """
    several = [f"--tokens={steps}"] if steps else []
    found = json.loads(
        stc(
            "simulate",
            folder,
            "--json",
            "--max-iterations",
            "16G",
            *several,
            *(f"--extent={name}={value}" for name, value in extents.items()),
        )
    )
    return found["cycles"] / (found["clock_mhz"] * 1e3), found["latency_ms"]


def amortized_token_ms(folder: Path, tokens_per_launch: int, /, **extents: int) -> float:
    """Milliseconds of a token where so many share a launch."""
    cycles, whole = simulated(folder, **extents)
    return cycles + (whole - cycles) / tokens_per_launch


def first_cell(line: str) -> str:
    return line.split(" | ")[0].removeprefix("| ")


class Table:
    """Rows of Markdown between two marks that name their script; key: what tells a row from others,
    None of a heading.
    """

    def __init__(self, page: str, script: str, key: Callable[[str], object]):
        self.page, self.key = ROOT / "docs" / page, key
        self.begin, self.end = (f"<!-- {mark}: bench/{script} -->" for mark in ("begin", "end"))

    def rows(self) -> dict:
        lines = self.page.read_text().partition(self.begin)[2].partition(self.end)[0].splitlines()
        return {
            key: line
            for line in lines
            if line.startswith("| ") and (key := self.key(line)) is not None
        }

    def write(self, text: str) -> None:
        before, _, rest = self.page.read_text().partition(self.begin)
        self.page.write_text(
            f"{before}{self.begin}\n{text}\n{self.end}{rest.partition(self.end)[2]}"
        )
