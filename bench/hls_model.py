"""Errors of `stc model` against reports of the vendor's synthesis.

    bench/hls_model.py FOLDER [--clock NS] [--top NAME] [-o OUT.tsv]

FOLDER holds designs, each a folder with a C++ file and a report `csynth.rpt` somewhere below it
(two public artifacts are laid out so: see docs/reference/model.md). Loops are matched by the line
that the report's name has, or by their label. Numbers of the report are synthesis estimates,
ours are modelled; nothing is run."""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STC = os.environ.get("STC", str(ROOT / "build" / "stc"))


def number(cell):
    found = re.match(r"\s*(\d+)", cell)
    return int(found.group(1)) if found else None


def report_loops(path):
    """The rows of the report's table, the first is the top:
    (name, latency, depth, interval, trips, DSP, + or o)."""
    rows = []
    for line in path.read_text(errors="replace").splitlines():
        cells = line.split("|")
        if len(cells) < 13 or not re.match(r"\s*[+o]", cells[1] or cells[2]):
            continue
        if not cells[1].strip():
            cells = cells[1:]
        rows.append(
            (
                cells[1].strip(" +o*"),
                *(number(cells[i]) for i in (4, 6, 7, 8, 11)),
                cells[1].strip()[0],
            )
        )
    return rows


def lines_of(name):
    """The source line of the outermost loop that the vendor's name has."""
    found = re.search(r"VITIS_LOOP_(\d+)_", name)
    return int(found.group(1)) if found else None


def modelled(source, arguments):
    done = subprocess.run(
        [STC, "model", str(source), "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=200,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def pairs(loops, rows):
    """Pipelined loops of the report and ours, by line or label."""
    ours = {}
    for row in rows:
        if row["loop"]:
            ours.setdefault(row["line"], row)
            for label in re.split(r"_(?=[A-Za-z])", row["name"]):
                ours.setdefault(label, row)
            ours.setdefault(row["name"], row)
    for name, latency, depth, interval, _, _, kind in loops:
        row = ours.get(lines_of(name)) or ours.get(name)
        if kind == "o" and row and interval and latency and row["runs_as"] == "pipeline":
            yield name, latency, depth, interval, row


def share(values):
    values = list(values)
    return f"{100 * sum(values) / len(values):.0f} % of {len(values)}" if values else "none"


def summary(tops, loops):
    errors = [abs(ours - theirs) / theirs for _, theirs, ours, _, _ in tops]
    equal = share(ours["interval"] == interval for _, _, _, interval, ours in loops)
    print(f"interval equal: {equal} loops")
    above = [item for item in loops if item[3] > 1]
    equal = share(ours["interval"] == interval for _, _, _, interval, ours in above)
    print(f"interval equal where above 1: {equal}")
    near = (abs(ours["latency"] - latency) <= 0.1 * latency for _, latency, _, _, ours in loops)
    print(f"loop latency within 10 %: {share(near)}")
    if errors:
        print(f"top latency: median error {100 * statistics.median(errors):.1f} %")
        print(f"top latency within 20 %: {share(error <= 0.2 for error in errors)}")
        dsp = (abs(ours - theirs) <= 0.1 * theirs for _, _, _, theirs, ours in tops if theirs)
        print(f"DSP within 10 %: {share(dsp)}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--clock", default="4")
    parser.add_argument("--top")
    parser.add_argument(
        "--reassociate", action="store_true", help="the designs were synthesised with unsafe math"
    )
    options = parser.parse_args()
    tops, loops = [], []
    for report in sorted(options.folder.rglob("csynth.rpt")):
        rows = report_loops(report)
        design = report.relative_to(options.folder).parts[0]
        sources = sorted((options.folder / design).rglob("output.cpp")) if rows else []
        if not sources or rows[0][1] is None:
            continue
        arguments = [
            "--clock",
            options.clock,
            "--top",
            options.top or rows[0][0],
            "-I",
            str(sources[0].parent),
        ]
        found = modelled(sources[0], arguments + ["--reassociate"] * options.reassociate)
        if not found:
            print(f"{design}: not read")
            continue
        tops.append((design, rows[0][1], found["latency"], rows[0][5], found["dsp"]))
        loops += pairs(rows, found["rows"])
        latency, dsp = rows[0][1], rows[0][5]
        print(f"{design}: latency {latency} reported, {found['latency']} modelled", end="; ")
        print(f"DSP {dsp}, {found['dsp']}")
    summary(tops, loops)
    return 0 if tops else 1


if __name__ == "__main__":
    sys.exit(main())
