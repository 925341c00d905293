#!/usr/bin/env python3
"""The op table of docs/ir.md, made from src/ir/ops.def.

tools/op_table.py          prints the table
tools/op_table.py --write  puts it into docs/ir.md
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPS, PAGE = ROOT / "src/ir/ops.def", ROOT / "docs/ir.md"
BEGIN, END = "<!-- begin: tools/op_table.py -->\n", "<!-- end -->\n"
ROW = re.compile(
    r'X\((\w+),\s*"([^"]+)",\s*([\w|]+),\s*(-?\d+),\s*(-?\d+),\s*(\d+),'
    r'\s*((?:"[^"]*"\s*)+)\)'
)
GROUP = re.compile(r"/\* (.+) \*/")


def parts(text: str):
    """The file's rows as ("group", title) and ("op", fields)."""
    body = re.sub(r"\n\t", " ", text.split("*/", 1)[1])
    for line in filter(None, map(str.strip, body.splitlines())):
        if row := ROW.fullmatch(line):
            meaning = "".join(re.findall(r'"([^"]*)"', row[7]))
            yield "op", (*row.groups()[:6], meaning)
        elif group := GROUP.fullmatch(line):
            yield "group", group[1]
        else:
            raise SystemExit(f"{OPS}: neither an op nor a heading: {line}")


def count(number: str) -> str:
    return "any" if number == "-1" else number


def table(text: str) -> str:
    lines = []
    for kind, value in parts(text):
        if kind == "group":
            lines += [
                "",
                f"**{value[0].upper()}{value[1:]}**",
                "",
                "|op|levels|operands|results|meaning|",
                "|---|---|---|---|---|",
            ]
            continue
        _, name, levels, operands, results, _, meaning = value
        lines.append(
            f"|`{name}`|{levels.replace('|', ' ')}|{count(operands)}|{count(results)}"
            f"|{meaning.replace('|', chr(92) + '|')}|"
        )
    return "\n".join(lines[1:]) + "\n"


def page_with_table(page: str, text: str) -> str:
    before, rest = page.split(BEGIN)
    return before + BEGIN + table(text) + END + rest.split(END)[1]


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with_table(PAGE.read_text(), OPS.read_text()))
    else:
        print(table(OPS.read_text()), end="")


if __name__ == "__main__":
    main()
