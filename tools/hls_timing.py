"""The longest path between the registers of an emitted loop's header: its counters and flags.

A path is what one cycle computes from one register to the next.  Delays are those of operators on
UltraScale+ with the wires behind them; of other expressions than integer ones of names nothing is
said.
"""

import re

from hls_memory import ASSIGNMENTS, loop_pragmas, target_of
from hls_text import closing, split

# nanoseconds: what an operator takes, and what each bit adds
DELAYS = {
    "add": (0.42, 0.0116),
    "compare": (0.38, 0.0116),
    "select": (0.45, 0.0125),
    "and": (0.15, 0),
}
LEVELS = [
    (("||", "&&"), "and"),
    (("==", "!=", "<", ">", "<=", ">="), "compare"),
    (("+", "-"), "add"),
]
PERIOD_USED = 0.73  # the rest is the vendor's default uncertainty
CLOCK_MHZ = 300


def budget_of(makefile):
    """Nanoseconds of a cycle for a path, by the text of the design's Makefile."""
    clock = re.search(r"^FREQUENCY \?= (\d+)", makefile, re.M)
    return PERIOD_USED * 1000 / (int(clock[1]) if clock else CLOCK_MHZ)


def delay(kind, bits):
    first, more = DELAYS[kind]
    return first + more * bits


def split_at(tokens, words):
    """Parts of an expression between operators outside of brackets; a sign is no operator."""
    parts, level = [[]], 0
    for token in tokens:
        level += (token.text in "([") - (token.text in ")]")
        if level == 0 and token.text in words and parts[-1]:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class Header:
    """Paths of one pipelined loop; bits: {integer: its width}."""

    def __init__(self, bits, aliases):
        self.bits, self.aliases = bits, aliases

    def width(self, tokens):
        return max((self.bits.get(t.text, 32) for t in tokens if t.kind == "name"), default=1)

    def path(self, tokens):
        """Nanoseconds of an expression; None: it is not one of integers that are registers."""
        while len(tokens) > 1 and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        if not tokens:
            return None
        if len(tokens) == 1:
            known = tokens[0].kind == "number" or tokens[0].text in {*self.bits, "true", "false"}
            return self.aliases.get(tokens[0].text, 0.0 if known else None)
        if tokens[0].text in ("++", "--"):
            inner = self.path(tokens[1:])
            return None if inner is None else inner + delay("add", self.width(tokens))
        for words, kind in LEVELS:
            parts = split_at(tokens, words)
            if len(parts) > 1:
                paths = [self.path(part) for part in parts]
                return None if None in paths else max(paths) + delay(kind, self.width(tokens))
        return self.path(tokens[1:]) if tokens[0].text in ("!", "-") else None

    def of_assignment(self, target, value, conditions):
        """From registers to the one that is assigned where all conditions hold."""
        paths = [self.path(tokens) for tokens, _ in conditions] + [value]
        if None in paths:
            return None
        joined = delay("and", 0) * max(len(conditions) - 1, 0)
        chosen = delay("select", self.bits[target]) if conditions else 0
        return max(paths) + joined + chosen


def declared(source, tokens):
    """{integer scalar: width} of a declaration."""
    words = [t.text for t in tokens]
    kind = next((w for w in words if w not in ("const", "static")), "")
    if kind not in ("int", "bool", "ap_uint"):
        return {}
    wide = source.evaluate(tokens[words.index("<") + 1 :][:1]) if kind == "ap_uint" else 32
    at = words.index(">" if kind == "ap_uint" else kind) + 1
    names = [part[0].text for part in split(tokens[at:])]
    return dict.fromkeys(names, 1 if kind == "bool" else wide)


def integers_of(source, function, loop):
    """{integer scalar declared outside of the loop: width}, and those declared in it."""
    inside = {id(s) for s, _, _ in function.walk(loop.body)}
    outer, inner = {}, {}
    for s, _, _ in function.walk():
        if s.kind == "plain":
            (inner if id(s) in inside else outer).update(declared(source, s.tokens))
    outer.update({p.name: 32 for p in function.parameters if source.spell(p.type) == "int"})
    return outer, inner


def check_headers(source, function, budget):
    """No chain of counters takes more than a cycle."""
    for loop, _, _ in function.walk():
        if loop.kind not in ("loop", "while") or not loop_pragmas(loop, "pipeline"):
            continue
        outer, inner = integers_of(source, function, loop)
        header = Header({**outer, **inner}, {})
        for s, _, conditions in function.walk(loop.body):
            for target, value in assignments(s, header):
                if target in inner:
                    header.aliases[target] = value
                elif target in outer and value is not None:
                    path = header.of_assignment(target, value, guards(s, conditions))
                    if path and path > budget:
                        source.report(
                            s.line,
                            "D9",
                            f"{path:.2f} ns to {target}, a cycle has {budget:.2f} for a path",
                        )


def guards(s, conditions):
    """What decides an assignment; one in a condition is its own."""
    return [*conditions, (s.tokens, True)] if s.kind == "if" else list(conditions)


def assignments(s, header):
    """(target, path of the value) of what a statement or a condition assigns."""
    if s.kind == "plain":
        cut = target_of(s.tokens)
        if cut and s.tokens[cut].text in ASSIGNMENTS and s.tokens[cut - 1].kind == "name":
            yield s.tokens[cut - 1].text, header.path(s.tokens[cut + 1 :])
        elif len(s.tokens) == 2 and s.tokens[1].text in ("++", "--"):
            yield s.tokens[0].text, header.path(list(reversed(s.tokens)))
    elif s.kind == "if":
        for i, token in enumerate(s.tokens[:-1]):
            if token.text in ("++", "--") and s.tokens[i + 1].kind == "name":
                yield s.tokens[i + 1].text, header.path(s.tokens[i : i + 2])
