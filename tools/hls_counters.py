"""Are counters of an emitted loop as wide as what they count to?

What a trip count is at most follows from the text alone: from constants, minima and the types of
words that come from a FIFO.
"""

import re
from collections import defaultdict

from hls_text import closing, split


class Ranges:
    """The largest values of a function's integers; None: the text does not say."""

    def __init__(self, source, function):
        self.source = source
        self.types = {p.name: source.spell(p.type) for p in function.parameters}
        self.assigned = defaultdict(list)  # name -> all that is assigned to it, as tokens
        for s, _, _ in function.walk():
            texts = [t.text for t in s.tokens] if s.kind == "plain" else []
            if "=" in texts[1:]:
                at = texts.index("=")
                self.assigned[texts[at - 1]].append(s.tokens[at + 1 :])
                if at > 1 and not texts[at - 2] == ".":
                    self.types[texts[at - 1]] = source.spell(s.tokens[: at - 1])

    def bits(self, name):
        """Width of a counter; None: it is none."""
        found = re.fullmatch(r"ap_uint < (\d+) >", self.types.get(name, ""))
        return found and int(found[1])

    def most(self, tokens):
        """Largest value of a sum of what is at most known."""
        while len(tokens) > 1 and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
            tokens = tokens[1:-1]
        if [t.text for t in tokens[:3]] == ["(", "int", ")"]:
            return self.most(tokens[3:])
        if len(tokens) == 1:
            return self.most_of_name(tokens[0])
        if tokens[0].text in ("st_min", "st_max") and closing(tokens, 4) == len(tokens) - 1:
            return self.most_of_two(tokens[0].text, split(tokens[5:-1]))
        return self.most_of_sum(tokens)

    def most_of_two(self, function, arguments):
        known = [n for n in map(self.most, arguments) if n is not None]
        both = len(known) == len(arguments)
        if function == "st_max":
            return max(known) if both else None
        return min(known, default=None)

    def most_of_name(self, token):
        if self.source.evaluate([token]) is not None:
            return self.source.evaluate([token])
        found = [self.most(tokens) for tokens in self.assigned.get(token.text, [])]
        if found and None not in found:
            return max(found)
        signed = re.fullmatch(r"(?:const )?int(8|16)_t", self.types.get(token.text, ""))
        return 2 ** (int(signed[1]) - 1) - 1 if signed else None

    def most_of_sum(self, tokens):
        """Constants may be taken away from a number, or added to it."""
        level = 0
        for i in range(len(tokens) - 1, 0, -1):
            level += (tokens[i].text in ")]") - (tokens[i].text in "([")
            if level == 0 and tokens[i].text in ("+", "-"):
                left, right = self.most(tokens[:i]), self.most(tokens[i + 1 :])
                constant = self.source.evaluate(tokens[i + 1 :])
                if tokens[i].text == "-":
                    right = None if constant is None else -constant
                return None if None in (left, right) else left + right
        return None


def check_widths(source, function):
    """`last = at == before` is met before `at` has counted beyond its bits."""
    ranges = Ranges(source, function)
    for s, _, _ in function.walk():
        texts = [t.text for t in s.tokens] if s.kind == "plain" else []
        if texts[1:2] != ["="] or texts[3:4] != ["=="]:
            continue
        bits, most = ranges.bits(texts[2]), ranges.most(s.tokens[4:])
        if bits and most is not None and most + 1 >= 2**bits:
            source.report(s.line, "D12", f"{texts[2]} of {bits} bits counts to {most + 1}")
