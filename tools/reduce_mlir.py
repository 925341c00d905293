#!/usr/bin/env python3
"""Makes a failing MLIR file smaller while it keeps failing.

usage: reduce_mlir.py FILE OUTPUT -- COMMAND [ARGUMENT ...]

COMMAND is run with a candidate's path in place of every {} (or as last argument). Exit status 0:
the candidate still shows the fault. For a seed of the random graphs that fails:

  STC_RANDOM_KEEP=bad.mlir STC_RANDOM_FIRST=SEED STC_RANDOM_GRAPHS=1 build/unit/test_pipeline
  tools/reduce_mlir.py bad.mlir small.mlir -- sh -c 'STC_RANDOM_FILE={} STC_RANDOM_GRAPHS=1
  build/unit/test_pipeline | grep -q "form_streams: result"'

Tried until nothing more goes, in groups that become smaller: results are dropped; operations become
arguments; what is unused goes; extents and constants become smaller. FILE holds one function, one
operation after the other, as torch-mlir prints it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

VALUE = re.compile(r"%[\w#.-]+")


def split(text: str) -> list[str]:
    """At commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([{<") - (sign in ")]}" or (sign == ">" and text[at - 1] != "-"))
        if sign == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    raise ValueError("a bracket is not closed")


@dataclass(frozen=True)
class Op:
    text: str

    @property
    def names(self) -> list[str]:
        match = re.match(r"\s*(%[^=]*)=", self.text)
        return VALUE.findall(match[1]) if match else []

    @property
    def uses(self) -> set[str]:
        body = self.text[self.text.index("=") + 1 :] if self.names else self.text
        return set(VALUE.findall(body))

    @property
    def type(self) -> str | None:
        """Of the only result, if it is a tensor."""
        match = re.search(r"(?:->|\bto|\binto|:)\s*(tensor<[^<>]*>)\s*$", self.text)
        return match[1] if match and len(self.names) == 1 else None


@dataclass(frozen=True)
class Function:
    before: str  # maps, the module
    arguments: tuple[str, ...]  # %x: tensor<…> {…}
    types: tuple[str, ...]  # of results, with attributes
    ops: tuple[Op, ...]
    values: tuple[str, ...]  # that are returned
    after: str

    @classmethod
    def read(cls, text: str) -> "Function":
        start = text.index("(", text.index("func.func @"))
        end = closing(text, start)
        arrow = re.compile(r"\s*->\s*").match(text, end + 1)
        if text[arrow.end()] == "(":
            last = closing(text, arrow.end())
            types, opened = split(text[arrow.end() + 1 : last]), text.index("{", last)
        else:
            opened = text.index("{", arrow.end())
            types = [text[arrow.end() : opened].strip()]
        closed = closing(text, opened)
        *ops, returned = cls._operations(text[opened + 1 : closed])
        values = VALUE.findall(returned.text.split(":")[0])
        return cls(
            text[:start],
            tuple(split(text[start + 1 : end])),
            tuple(types),
            tuple(ops),
            tuple(values),
            text[closed:],
        )

    @staticmethod
    def _operations(body: str) -> list[Op]:
        ops, lines, depth = [], [], 0
        for line in body.strip("\n").split("\n"):
            lines.append(line)
            depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
            if depth == 0 and line.strip():
                ops.append(Op("\n".join(lines)))
                lines = []
        return ops

    def write(self) -> str:
        plain = ", ".join(re.sub(r"\s*\{.*\}$", "", text) for text in self.types)
        ops = "\n".join(op.text for op in self.ops)
        return (
            f"{self.before}({', '.join(self.arguments)}) -> ({', '.join(self.types)}) {{\n{ops}\n"
            f"  return {', '.join(self.values)} : {plain}\n{self.after}"
        )

    def without_unused(self) -> "Function":
        used, kept = set(self.values), []
        for op in reversed(self.ops):
            if not op.names or used & set(op.names):
                kept.append(op)
                used |= op.uses
        named = set(re.findall(r'stream\.at = "([^"]*)"', " ".join(self.types)))
        arguments = [
            text
            for text in self.arguments
            if VALUE.match(text)[0] in used
            or any(f'stream.name = "{name}"' in text for name in named)
        ]
        return replace(self, ops=tuple(reversed(kept)), arguments=tuple(arguments))

    def without_results(self, dropped: set[int]) -> "Function | None":
        kept = [i for i in range(len(self.values)) if i not in dropped]
        return (
            replace(
                self,
                values=tuple(self.values[i] for i in kept),
                types=tuple(self.types[i] for i in kept),
            )
            if kept
            else None
        )

    def with_arguments_for(self, cut: set[int]) -> "Function":
        made = [
            f"{op.names[0]}: {op.type}"
            for i, op in enumerate(self.ops)
            if i in cut and op.type and "tensor.empty" not in op.text
        ]
        ops = [
            op
            for i, op in enumerate(self.ops)
            if i not in cut or not op.type or "tensor.empty" in op.text
        ]
        return replace(self, arguments=(*self.arguments, *made), ops=tuple(ops))


class Reducer:
    def __init__(self, command: list[str], text: str):
        self.command, self.text, self.tries = command, text, 0
        self.folder = tempfile.TemporaryDirectory()

    def fails(self, text: str) -> bool:
        path = Path(self.folder.name) / "candidate.mlir"
        path.write_text(text)
        words = [word.replace("{}", str(path)) for word in self.command]
        words += [] if any("{}" in word for word in self.command) else [str(path)]
        self.tries += 1
        try:
            return (
                subprocess.run(
                    words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120
                ).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            return False

    def accept(self, text: str) -> bool:
        if text == self.text or not self.fails(text):
            return False
        self.text = text
        print(f"{len(text)} bytes after {self.tries} tries", file=sys.stderr)
        return True

    def groups(self, count, change) -> bool:
        """Tries change(function, group) for groups of the indices below count(function), from
        halves down to single ones.
        """
        done, size = False, max(1, count(Function.read(self.text)) // 2)
        while True:
            start = 0
            while start < count(function := Function.read(self.text)):
                candidate = change(function, set(range(start, start + size)))
                if candidate and self.accept(candidate.without_unused().write()):
                    done = True
                else:
                    start += size
            if size == 1:
                return done
            size //= 2

    def numbers(self) -> bool:
        """Every extent, everywhere at once, becomes 1, a half, or one less."""
        done = False
        for extent in sorted(
            {int(n) for n in re.findall(r"(?<![\w.])(\d+)x", self.text)}, reverse=True
        ):
            for smaller in sorted({1, extent // 2, extent - 1} - {0, extent}):
                if self.accept(
                    re.sub(rf"(?<![\w.%]){extent}(?=x|\b(?!\.))", str(smaller), self.text)
                ):
                    done = True
                    break
        return done

    def run(self) -> str:
        if not self.fails(self.text):
            raise SystemExit("the file itself does not make the command exit with 0")
        self.accept(Function.read(self.text).without_unused().write())
        more = True
        while more:
            more = self.groups(lambda f: len(f.values), Function.without_results)
            more |= self.groups(lambda f: len(f.ops), Function.with_arguments_for)
            more |= self.numbers()
        return self.text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    reducer = Reducer(arguments.command, arguments.file.read_text())
    try:
        reducer.run()
    finally:
        arguments.output.write_text(reducer.text)


if __name__ == "__main__":
    main()
