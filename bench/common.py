"""Common to the scripts of this folder: running the compiler, and the tables in pages of docs/."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STC = os.environ.get("STC", str(ROOT / "build" / "stc"))


def script_arguments(text: str, known: tuple[str, ...] = ()) -> list[str]:
    """The script's arguments. Prints `text` and exits for --help, or for an option that is not in
    `known`.
    """
    arguments = sys.argv[1:]
    unknown = [word for word in arguments if word.startswith("-") and word not in known]
    if unknown:
        asked = set(unknown) <= {"-h", "--help"}
        print(
            text.strip() if asked else f"unknown option {unknown[0]}\n{text.strip()}",
            file=sys.stdout if asked else sys.stderr,
        )
        sys.exit(not asked)
    return arguments


def print_rows(head: list[str], rows: Iterable[str], path: Path | None) -> None:
    """Prints each row as it comes; with a `path`, writes the head and the rows there, too."""
    lines = list(head)
    for row in rows:
        print(row, flush=True)
        lines.append(row)
    if path:
        path.write_text("\n".join(lines) + "\n")
        print(f"wrote {path}", file=sys.stderr)


def stc(*words: object) -> str:
    """Runs `stc` and returns its output; raises RuntimeError with its message."""
    done = subprocess.run([STC, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"stc: exit status {done.returncode}")
    return done.stdout


def simulated(folder: Path, steps: int = 0, /, **extents: int) -> tuple[float, float]:
    """Milliseconds of the cycles of a launch, without and with launch overhead.

    steps: of the launch, for a design that runs several.
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
    """Milliseconds per token if so many tokens share a launch."""
    cycles, whole = simulated(folder, **extents)
    return cycles + (whole - cycles) / tokens_per_launch


def first_cell(line: str) -> str:
    return line.split(" | ")[0].removeprefix("| ")


class Table:
    """A Markdown table between two marks that name its script. key: identifies a row; None for a
    heading.
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
