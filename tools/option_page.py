#!/usr/bin/env python3
"""Prints docs/reference/options.md, made of the compiler's table; --write writes it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "options.md"
HEAD = """# Options

Written by `tools/option_page.py --write` from the compiler's table. `stc` takes all of them; the
Python package those marked *yes*: `streamtensor compile --max-dsp 50%`,
`streamtensor.compile(…, max_dsp="50%")`, `torch.compile(…, options={"max_dsp": "50%"})`.
"""


def listed() -> list[dict]:
    compiler = os.environ.get("STC", ROOT / "build" / "stc")
    return json.loads(subprocess.check_output([compiler, "options", "--json"]))


def page(rows: list[dict]) -> str:
    text = HEAD
    for group in dict.fromkeys(row["group"] for row in rows):
        text += f"\n## {group}\n\n| option | default | of | package | what it does |\n"
        text += "|---|---|---|---|---|\n"
        text += "".join(line(row) for row in rows if row["group"] == group)
    return text


def line(row: dict) -> str:
    letter = f"-{row['letter']}, " if row["letter"] else ""
    name = f"`{letter}--{row['name']}{' ' + row['value'] if row['value'] else ''}`"
    of = ", ".join(row["commands"]) if len(row["commands"]) < 10 else "all"
    cells = [name, row["default"] or "", of, "yes" if row["package"] else "", row["help"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(listed()))
    else:
        print(page(listed()), end="")
