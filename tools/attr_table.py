#!/usr/bin/env python3
"""The attribute keys of src/ir/attrs.def as tables.

tools/attr_table.py          prints key, kind, owners and meaning
tools/attr_table.py --users  prints key and kind, and the files of src that set and that read it
tools/attr_table.py --write  puts the keys of each owner into docs/ir.md
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEYS, PAGE, SOURCE = ROOT / "src/ir/attrs.def", ROOT / "docs/ir.md", ROOT / "src"
BEGIN, END = "<!-- begin: tools/attr_table.py -->\n", "<!-- end: tools/attr_table.py -->\n"
STRING = r'((?:\s*"(?:[^"\\]|\\.)*")+)'
ROW = re.compile(rf'KEY\((\w+),\s*"([^"]+)",\s*([\w|]+),{STRING},{STRING}\)')
GROUP = re.compile(r"/\* (.+?)\.? \*/")
OTHERS = "MLIR's own"  # the group whose keys are described by MLIR
SETTERS = {"attr_set", "attr_with", "function_set_argument_attr", "process_mark"}
FILES_SHOWN = 3
COMMON = 12  # owners from which on a key is listed once for all of them


def joined(strings: str) -> str:
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace('\\"', '"')


def keys(text: str):
    """(group, code, key, kind, owners, meaning) of every row."""
    body = text.split("*/", 1)[1]
    rest = GROUP.sub("", ROW.sub("", body)).strip()
    if rest:
        raise SystemExit(f"{KEYS}: neither a key nor a heading: {rest.splitlines()[0]}")
    group = ""
    for match in re.finditer(rf"{ROW.pattern}|{GROUP.pattern}", body):
        if match[6]:
            group = match[6]
            continue
        owners = [owner.strip() for owner in joined(match[4]).split(",")]
        yield group, match[1], match[2], match[3].lower(), owners, joined(match[5])


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def full_table(text: str) -> str:
    lines, last = [], None
    for group, _, key, kind, owners, meaning in keys(text):
        if group != last:
            lines += ["", f"**{group}**", "", row("key", "kind", "owners", "meaning")]
            lines += ["|---|---|---|---|"]
            last = group
        lines.append(row(f"`{key}`", kind, ", ".join(owners), meaning))
    return "\n".join(lines[1:]) + "\n"


def caller(text: str, place: int) -> str:
    """The function whose argument list holds the place; "{" inside an initialiser."""
    depth = 0
    for i in range(place - 1, -1, -1):
        if text[i] in ")}":
            depth += 1
        elif text[i] in "({":
            if depth == 0:
                return re.search(r"(\w*)\s*$", text[:i])[1] if text[i] == "(" else "{"
            depth -= 1
        elif text[i] == ";" and depth == 0:
            return ""
    return ""


def is_set(text: str, place: int) -> bool:
    name = caller(text, place)
    if name == "key_name":
        return caller(text, text.rindex("key_name", 0, place)) == "{"
    return name in SETTERS


def users() -> dict:
    """code -> the stems of the files that set it, of those that read it."""
    found = defaultdict(lambda: (set(), set()))
    for path in sorted(SOURCE.glob("**/*.c")):
        text = path.read_text()
        for match in re.finditer(r"\bKEY_([A-Z0-9_]+)\b", text):
            found[match[1]][0 if is_set(text, match.start()) else 1].add(path.stem)
    return found


def stems(files: set) -> str:
    shown = sorted(files)
    return ", ".join(shown[:FILES_SHOWN]) + (", …" if len(shown) > FILES_SHOWN else "")


def users_table(text: str) -> str:
    found = users()
    lines = [row("key", "kind", "set by", "read by"), "|---|---|---|---|"]
    for _, code, key, kind, _, _ in keys(text):
        written, read = found[code]
        lines.append(row(f"`{key}`", kind, stems(written), stems(read)))
    return "\n".join(lines) + "\n"


def owner_table(text: str) -> str:
    of_owner, common, owners_of = defaultdict(list), [], defaultdict(list)
    for group, _, key, _, owners, _ in keys(text):
        if len(owners) >= COMMON:
            common.append(key)
        elif group != OTHERS:
            for owner in owners:
                of_owner[owner].append(key)
    for owner, own in of_owner.items():
        owners_of[f"`{' '.join(own)}`"].append(owner)
    lines = [row("owner", "keys"), "|---|---|", row("most stream ops", f"`{' '.join(common)}`")]
    lines += [row(", ".join(owners), own) for own, owners in owners_of.items()]
    return "\n".join(lines) + "\n"


def page_with_table(page: str, text: str) -> str:
    before, rest = page.split(BEGIN)
    return before + BEGIN + owner_table(text) + END + rest.split(END)[1]


def main() -> None:
    text = KEYS.read_text()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with_table(PAGE.read_text(), text))
    elif sys.argv[1:] == ["--users"]:
        print(users_table(text), end="")
    else:
        print(full_table(text), end="")


if __name__ == "__main__":
    main()
