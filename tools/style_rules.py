#!/usr/bin/env python3
"""Counts what the rules of the tree forbid; compares the counts with tools/style_counts.json.

    tools/style_rules.py [--write] [--show RULE]

A count may only fall: one more than the file says fails; after work that lowers a count, --write
records it.  A rule whose count is 0 is a rule without exception.  --show lists what
a rule finds.
"""

import argparse
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys

import lizard

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = ROOT / "tools" / "style_counts.json"
COLUMNS = {".c": 100, ".h": 100, ".py": 100, ".def": 120}
TAB = 8
FUNCTION_LINES = 50
PARAMETERS = 5
DECLARATIONS = 30
WORDS = (
    "again later given kept served dealt held hidden lend ride there turn turns around apart "
    "abreast alone together less ahead beside stuff misc util utils helper helpers"
).split()
FUNCTION_NAMES = ("find", "collect", "refuse", "visit")
OP_MAKERS = ("op_new", "op_append", "body_add", "block_add_argument")


def tracked(*suffixes):
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (ROOT / line for line in listed.stdout.splitlines())
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def sources(*suffixes):
    return [
        path for path in tracked(*suffixes) if path.relative_to(ROOT).parts[0] in ("src", "runtime")
    ]


def place(path, line=None):
    name = path.relative_to(ROOT).as_posix()
    return f"{name}:{line}" if line else name


def without_comments(text):
    """C code with comments and the contents of strings blanked, of the same lines."""

    def blank(match):
        token = match.group(0)
        if token.startswith('"'):
            return '""'
        return "\n" * token.count("\n") if token.startswith("/") else token

    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def long_lines():
    for path in tracked(*COLUMNS):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line.expandtabs(TAB)) > COLUMNS[path.suffix]:
                yield place(path, number)


def file_names():
    for path in tracked(".c", ".h", ".py"):
        vendor = path.parent == ROOT / "runtime" / "include"
        if not vendor and set(re.split(r"[_.]", path.stem)) & set(WORDS):
            yield place(path)


def nested_conditionals():
    """More than one conditional operator in a statement's line, or one inside another."""
    for path in sources(".c", ".h"):
        for number, line in enumerate(without_comments(path.read_text()).split("\n"), 1):
            if line.count("?") > 1:
                yield place(path, number)


def literal_keys():
    """Keys of attributes that do not come from ir/attrs.def."""
    call = r'\{\s*(?:\.name = )?"[a-z_.]+"\s*,\s*(?:\.value = )?attr_|attr_\w*named\([^;]*"'
    for path in sources(".c"):
        if path.parent.name in ("ir", "import"):
            continue
        for match in re.finditer(call, path.read_text()):
            yield place(path, path.read_text()[: match.start()].count("\n") + 1)


@functools.cache
def functions():
    return [
        (path, function)
        for path in sources(".c")
        for function in lizard.analyze_file(str(path)).function_list
    ]


def long_functions():
    for path, function in functions():
        if function.end_line - function.start_line + 1 > FUNCTION_LINES:
            yield f"{place(path, function.start_line)}: {function.name}"


def many_parameters():
    for path, function in functions():
        if len(function.parameters) > PARAMETERS:
            yield f"{place(path, function.start_line)}: {function.name}"


def vague_functions():
    for path, function in functions():
        if function.name in FUNCTION_NAMES:
            yield f"{place(path, function.start_line)}: {function.name}"


def struct_tags():
    """Struct tags that two files of the compiler define, or two of the runtime."""
    where = collections.defaultdict(set)
    for path in sources(".c", ".h"):
        for tag in re.findall(r"^struct (\w+) \{", path.read_text(), re.M):
            where[path.relative_to(ROOT).parts[0], tag].add(place(path))
    return [
        f"{tag}: {', '.join(sorted(files))}"
        for (_, tag), files in sorted(where.items())
        if len(files) > 1
    ]


def includers():
    """{header: rooms that include it}, of the headers of src."""
    found = collections.defaultdict(set)
    for path in sources(".c", ".h"):
        for name in re.findall(r'^#include "([a-z_]+/[a-z_0-9]+\.h)"', path.read_text(), re.M):
            found[name].add(path.parent.name)
    return found


def wide_headers():
    """Headers that other rooms include and that declare more than so many functions."""
    for name, rooms in sorted(includers().items()):
        path = ROOT / "src" / name
        if not path.is_file() or rooms <= {path.parent.name}:
            continue
        declared = re.findall(r"^[a-z].*\([^;{]*\);", without_comments(path.read_text()), re.M)
        if len(declared) > DECLARATIONS:
            yield f"{place(path)}: {len(declared)}"


@functools.cache
def op_makers():
    """(file, name) of functions by which an op or a node of a body is made, directly or not; the
    file of one that other files call is None.
    """
    calls = {}
    for path in sources(".c"):
        lines = without_comments(path.read_text()).split("\n")
        for function in (function for file, function in functions() if file == path):
            head, _, body = "\n".join(lines[function.start_line - 1 : function.end_line]).partition(
                "{"
            )
            scope = path if head.startswith("static") else None
            calls[scope, function.name] = path, set(re.findall(r"\b(\w+)\(", body))
    makers = {(None, name) for name in OP_MAKERS}
    grown = True
    while grown:
        found = {
            key
            for key, (path, names) in calls.items()
            if any((path, name) in makers or (None, name) in makers for name in names)
        }
        grown = not found <= makers
        makers |= found
    return makers


def arguments(text, start):
    """The parts between the commas of the bracket that opens at `start`; None: a block."""
    depth, parts, begin = 0, [], start + 1
    for i in range(start, len(text)):
        if text[i] in "({[":
            depth += 1
        elif text[i] in ")}]":
            depth -= 1
            if depth == 0:
                return [*parts, text[begin:i]]
        elif text[i] == "," and depth == 1:
            parts.append(text[begin:i])
            begin = i + 1
        elif text[i] == ";" and depth == 1:
            return None
    return None


def unordered_ops():
    """Calls and initialisers of which two parts make ops: their order is the C compiler's."""
    makers = op_makers()
    for path in sources(".c"):
        text = without_comments(path.read_text())
        for match in re.finditer(r"\b\w+\(|\{", text):
            parts = arguments(text, match.end() - 1) or []
            making = [
                part
                for part in parts
                if any(
                    (path, name) in makers or (None, name) in makers
                    for name in re.findall(r"\b(\w+)\(", part)
                )
            ]
            if len(making) > 1:
                yield place(path, text[: match.start()].count("\n") + 1)


# What stands between quotation marks of a format: words of our own tables, words that stand there.
OWN_WORDS = re.compile(
    r"key|key_name\(.*\)|kind_of\(.*\)|type_scalar\(.*\)->text|op_info\[.*\]\.name|[A-Z_]+|"
    r"(choice_info\[\w+\]|head\[i\]|flag\[i\])\.(name|key|member)|info->(name|word\[.*\])|.*\bhash|"
    r"state_names\[.*\]|own->queue|report->numbers|(stage|option)->name|values|unit|\w+_kind|"
    r'.*\? "\w+" : ("\w+"|type_scalar\(word\)->text)'
)
WRITERS = re.compile(r"\b(?:text_add|fprintf|hls_line)\(")


def calls(text, blank):
    """(offset, parts) of the writers' calls, parts as they are in the text."""
    for match in WRITERS.finditer(blank):
        parts = arguments(blank, match.end() - 1)
        start = match.end()
        whole = []
        for part in parts or []:
            whole.append(text[start : start + len(part)].strip())
            start += len(part) + 1
        yield match.start(), whole


def unquoted_texts():
    """Texts that stand between quotation marks of another language without having passed its
    quoting function: json_quote, text_add_literal, print_string.
    """
    for path in sources(".c"):
        text = path.read_text()
        blank = re.sub(
            r'"(?:\\.|[^"\\\n])*"', lambda string: '"' + "_" * (len(string[0]) - 2) + '"', text
        )
        for offset, parts in calls(text, blank):
            spelled = [i for i, part in enumerate(parts) if part.startswith('"') or '? "' in part]
            if not spelled:
                continue
            format_at = spelled[0]
            format_text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', parts[format_at]))
            for number, found in enumerate(re.finditer(r"%[-0-9.*l]*[a-z]", format_text)):
                inside = format_text[: found.start()].count('\\"') % 2
                part = (parts[format_at + 1 :] + [""] * 20)[number]
                if inside and found[0].endswith("s") and not OWN_WORDS.fullmatch(part):
                    line = text[:offset].count("\n") + 1
                    yield f"{place(path, line)}: {part}"


RULES = {
    "lines are at most 100 columns wide, of .def tables 120": long_lines,
    "file names have no private words": file_names,
    "one conditional operator a line": nested_conditionals,
    "keys of attributes come from ir/attrs.def": literal_keys,
    "functions have at most 50 lines": long_functions,
    "functions have at most five parameters": many_parameters,
    "functions say what they find, collect, refuse or visit": vague_functions,
    "a struct tag is defined once": struct_tags,
    "headers for other rooms declare at most 30 functions": wide_headers,
    "ops are made in an order that C defines": unordered_ops,
    "texts between quotation marks are quoted by a function": unquoted_texts,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record today's counts")
    parser.add_argument(
        "--show", metavar="RULE", help="list what rules with this in their name find"
    )
    options = parser.parse_args()
    if options.show:
        for name, rule in RULES.items():
            if options.show in name:
                print(*rule(), sep="\n")
        return 0
    counts = {name: len(list(rule())) for name, rule in RULES.items()}
    if options.write:
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n")
        return 0
    accepted = json.loads(COUNTS.read_text())
    worse = {name: count for name, count in counts.items() if count > accepted.get(name, 0)}
    for name, count in worse.items():
        print(
            f"{name}: {count} places, {accepted.get(name, 0)} accepted; "
            f"tools/style_rules.py --show '{name}' lists them"
        )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
