"""A small reader of emitted HLS C++: tokens, types, functions, statements and stream accesses.

It knows just the shape that designs are emitted in and shares nothing with the emitter; text
outside that shape becomes a finding.  A `>>` is read as two tokens, so templates nest without
special care.
"""

import re
from collections import namedtuple

Token = namedtuple("Token", "kind text line")
Finding = namedtuple("Finding", "file line rule message")

TOKEN = re.compile(
    r"(?P<space>[ "
    r"\t\r\n]+|//[^\n]*|/\*.*?\*/)|(?P<directive>\#(?:[^\n\\]|\\.|\\\n)*)|"
    r"(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)+')"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)|"
    r"(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark><<=|>>=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.S,
)

WIDTHS = {
    "bool": 8,
    "char": 8,
    "short": 16,
    "int": 32,
    "unsigned": 32,
    "float": 32,
    "double": 64,
    "half": 16,
}
WIDTHS |= {f"{u}int{w}_t": w for u in ("", "u") for w in (8, 16, 32, 64)} | {
    "st_f16": 16,
    "st_bf16": 16,
}
TYPE_WORDS = set(WIDTHS) | {
    "const",
    "static",
    "void",
    "auto",
    "long",
    "signed",
    "constexpr",
    "volatile",
    "struct",
    "enum",
}


class Source:
    """One translation unit: tokens, constants, types, functions; and the findings about it."""

    def __init__(self, path):
        self.path = path
        self.findings = []
        self.constants = {}
        self.types = {}
        self.extents = {}  # of the types that are arrays
        self.structs = {}
        self.functions = {}
        # ST_NAMED("…") names a channel for our own headers; for the vendor's it is nothing
        self.tokens = list(self.scan(re.sub(r' ST_NAMED\("\w+"\)', "", path.read_text())))
        self.read_top(0, len(self.tokens))

    def report(self, line, rule, message):
        finding = Finding(str(self.path), line, rule, message)
        if finding not in self.findings:
            self.findings.append(finding)

    def scan(self, text):
        line = 1
        for match in TOKEN.finditer(text):
            kind, word = match.lastgroup, match.group()
            if kind == "directive":
                pragma = re.match(r"#\s*pragma\s+HLS\s+(.*)", word, re.S | re.I)
                define = re.match(r"#\s*define\s+(\w+)\s+(\w+)\s*$", word)
                if pragma:
                    yield Token("pragma", " ".join(pragma.group(1).split()), line)
                elif define:
                    self.constants[define.group(1)] = self.number(define.group(2))
                if re.match(r"#\s*(define|undef)\s+__SYNTHESIS__", word):
                    self.report(line, "A24", "__SYNTHESIS__ belongs to the vendor's tool")
            elif kind != "space":
                yield Token(kind, word, line)
            line += word.count("\n")

    @staticmethod
    def number(text):
        try:
            return int(text.rstrip("uUlL"), 0)
        except ValueError:
            return None

    def evaluate(self, tokens, names=None):
        """Value of an integer expression over constants and `names`; None if it depends on anything
        else.
        """
        words = []
        for token in tokens:
            if token.kind == "number":
                words.append(str(self.number(token.text)))
            elif token.kind == "name":
                value = (names or {}).get(token.text, self.constants.get(token.text))
                words.append(
                    str(value)
                    if value is not None
                    else {"true": "1", "false": "0"}.get(token.text, "None")
                )
            elif token.text in ("&&", "||", "!", "/", "?", ":"):
                words.append(
                    {"&&": " and ", "||": " or ", "!": " not ", "/": "//"}.get(token.text, "None")
                )
            elif token.text in "+-*%<>&|^()" or token.text in ("<<", "<=", ">=", "==", "!="):
                words.append(token.text)
            else:
                return None
        if "None" in words:
            return None
        try:
            # only digits, operators and brackets
            return int(eval(" ".join(words).replace("> >", ">>"), {"__builtins__": {}}))
        except (SyntaxError, TypeError, ZeroDivisionError):
            return None

    def match(self, i):
        """Index of the bracket that closes the one at i."""
        pairs = {"(": ")", "[": "]", "{": "}"}
        open_, close, depth = self.tokens[i].text, pairs[self.tokens[i].text], 0
        for j in range(i, len(self.tokens)):
            depth += (self.tokens[j].text == open_) - (self.tokens[j].text == close)
            if depth == 0:
                return j
        raise SystemExit(f"{self.path}:{self.tokens[i].line}: A24: unbalanced {open_}")

    # -- declarations at file scope

    def read_top(self, i, end):
        while i < end:
            token = self.tokens[i]
            if token.text == "extern" and self.tokens[i + 2].text == "{":
                close = self.match(i + 2)
                self.read_top(i + 3, close)
                i = close + 1
            elif token.kind == "pragma":
                self.report(token.line, "C1", f"pragma outside a function: {token.text}")
                i += 1
            else:
                i = self.read_declaration(i, end)

    def read_declaration(self, start, end):
        i = start
        while i < end and self.tokens[i].text not in (";", "{", "="):
            i = self.match(i) + 1 if self.tokens[i].text in "([" else i + 1
        if i >= end:
            return end
        head = self.tokens[start:i]
        if self.tokens[i].text == "{":
            close = self.match(i)
            if head and head[0].text in ("struct", "class"):
                self.read_struct(head, i, close)
            elif head and head[0].text == "enum":
                self.read_enum(i, close)
            elif any(t.text == "(" for t in head):
                function = Function(self, head, i, close)
                self.functions[function.name] = function
            return close + 1
        while self.tokens[i].text != ";":
            i = self.match(i) + 1 if self.tokens[i].text in "([{" else i + 1
        whole = self.tokens[start:i]
        words = [t.text for t in whole]
        if words and words[0] == "typedef":
            name = words[words.index("[") - 1] if "[" in words else words[-1]
            self.types[name] = whole[1 : words.index(name)]
            if "[" in words:
                array = variable(self, whole[1:], known=False)
                self.extents[name] = array.dims if array else []
        elif "=" in words and "[" not in words:
            at = words.index("=")
            self.constants[words[at - 1]] = self.evaluate(whole[at + 1 :])
        return i + 1

    def read_struct(self, head, start, close):
        self.structs[head[1].text] = [
            variable(self, field) for field in split(self.tokens[start + 1 : close], ";")
        ]
        for token in self.tokens[start:close]:
            if token.text == "stream":
                self.report(token.line, "A12", f"stream inside struct {head[1].text}")

    def read_enum(self, start, close):
        value = -1
        for part in split(self.tokens[start + 1 : close]):
            value = self.evaluate(part[2:]) if len(part) > 2 else value + 1
            self.constants[part[0].text] = value

    # -- types

    def spell(self, tokens):
        """Canonical spelling of a type: typedefs resolved, const and static dropped."""
        words = []
        for token in tokens:
            if token.text in self.types:
                words.append(self.spell(self.types[token.text]))
            elif self.constants.get(token.text) is not None:
                words.append(str(self.constants[token.text]))
            elif token.text not in ("const", "static", "&", "*"):
                words.append(token.text)
        text = " ".join(words)
        return {"unsigned int": "unsigned", "int32_t": "int", "uint32_t": "unsigned"}.get(
            text, text
        )

    def width(self, tokens):
        return self.bits(self.spell(tokens))

    def bits(self, spelling):
        """Width of a canonical type; None if unknown."""
        vector = re.fullmatch(r"hls :: vector < (.*) , (\d+) >", spelling)
        if vector:
            inner = self.bits(vector.group(1))
            return inner and inner * int(vector.group(2))
        if spelling in self.structs:
            fields = [field and self.width(field.type) for field in self.structs[spelling]]
            return None if None in fields else sum(fields)
        wide = re.fullmatch(r"ap_u?int < (\d+) >", spelling)
        return int(wide.group(1)) if wide else WIDTHS.get(spelling)


def split(tokens, at=","):
    """Parts of a list between separators outside of any bracket."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token.text in "([{") - (token.text in ")]}")
        if at == ",":
            depth += (token.text == "<") - (token.text == ">")
        if token.text == at and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


# kind: pragma loop while if block jump plain
Statement = namedtuple("Statement", "kind line tokens body other")
# kind: stream pointer scalar; type: element tokens
Variable = namedtuple("Variable", "kind type name line dims depth")


def variable(source, tokens, known=True):
    """Reads `type name`, `type &name`, `type (&name)[N]`, `type name[N](...)`; None if it is no
    declaration.

    With `known` the type must be a known one, so that expressions are not taken for declarations.
    """
    texts = [t.text for t in tokens]
    cut = len(texts)
    for stop in ("=", "{"):
        cut = min(cut, texts.index(stop) if stop in texts else cut)
    texts, tokens = texts[:cut], tokens[:cut]
    channel = next((w for w in ("stream", "stream_of_blocks") if w in texts), None)
    kind, type_, depth, rest = "scalar", [], None, 0
    if channel:
        at = texts.index(channel)
        if at + 1 >= len(texts) or texts[at + 1] != "<":
            return None
        level, rest = 0, at + 1
        for rest in range(at + 1, len(texts)):
            level += (texts[rest] == "<") - (texts[rest] == ">")
            if level <= 0:
                break
        inner = split(tokens[at + 2 : rest])
        kind, type_ = "stream", inner[0] if inner else []
        depth = source.evaluate(inner[1]) if len(inner) > 1 else None
        rest += 1
    names = [
        i
        for i in range(rest, len(texts))
        if tokens[i].kind == "name" and texts[i] not in TYPE_WORDS
    ]
    if not names:
        return None
    opening = next(
        (i for i in range(rest, len(texts)) if texts[i] == "(" and texts[i + 1 : i + 2] != ["&"]),
        len(texts),
    )
    square = next((i for i in range(rest, len(texts)) if texts[i] == "["), len(texts))
    name_at = max((i for i in names if i < min(opening, square)), default=None)
    if name_at is None or (name_at == 0 and not channel):
        return None
    if not channel:
        type_ = [t for t in tokens[:name_at] if t.text not in "&*("]
        kind = "pointer" if "*" in texts[:name_at] else "scalar"
        if not type_ or any(
            t.kind not in ("name", "number") and t.text not in ("::", "<", ">", ",") for t in type_
        ):
            return None
        if known and not (
            type_[0].text in TYPE_WORDS
            or type_[0].text in source.types
            or type_[0].text in source.structs
            or type_[0].text in ("hls", "ap_int", "ap_uint")
        ):
            return None
    dims, i = [], square
    while i < len(texts) and texts[i] == "[":
        close = texts.index("]", i)
        dims.append(source.evaluate(tokens[i + 1 : close]))
        i = close + 1
    return Variable(kind, type_, texts[name_at], tokens[name_at].line, dims, depth)


def locked(tokens):
    """(block type, channel) of a lock `hls::read_lock<type> name(channel)`, or None."""
    texts = [t.text for t in tokens]
    lock = next((w for w in ("read_lock", "write_lock") if w in texts), None)
    return (texts[texts.index(lock) + 2], texts[-2]) if lock and texts[-1] == ")" else None


class Function:
    """A parsed function: parameters, statement tree, and what it does to the streams passed in."""

    def __init__(self, source, head, start, close):
        texts = [t.text for t in head]
        at = texts.index("(")
        if texts[0] == "template":
            at = next(i for i in range(1, len(texts)) if texts[i] == "(")
        self.source, self.head = source, head
        self.name, self.line = texts[at - 1], head[at - 1].line
        self.parameters = []
        for part in split(head[at + 1 : -1]):
            parameter = variable(source, part, known=False)
            if parameter is None:
                source.report(self.line, "A12", f"parameter of {self.name} cannot be read")
                continue
            self.parameters.append(parameter)
            if parameter.kind == "stream" and "&" not in [t.text for t in part]:
                source.report(parameter.line, "A12", f"stream {parameter.name} is passed by value")
        if any(t.text == "stream" for t in head[: at - 1]):
            source.report(self.line, "A12", f"{self.name} returns a stream")
        self.body = self.statements(start + 1, close)
        self.tokens = source.tokens[start + 1 : close]
        self.exported = start_of_export(source, head)
        self.accesses = None

    # -- statements

    def statements(self, i, end):
        found = []
        while i < end:
            statement, i = self.statement(i, end)
            if statement:
                found.append(statement)
        return found

    def statement(self, i, end):
        tokens = self.source.tokens
        token = tokens[i]
        if token.kind == "pragma":
            return Statement("pragma", token.line, [token], [], []), i + 1
        if token.text == ";":
            return None, i + 1
        if token.text == "{":
            close = self.source.match(i)
            return Statement("block", token.line, [], self.statements(i + 1, close), []), close + 1
        if token.text in ("for", "while", "if", "switch"):
            close = self.source.match(i + 1)
            inner, after = self.branch(close + 1, end)
            other = []
            if token.text == "if" and after < end and tokens[after].text == "else":
                other, after = self.branch(after + 1, end)
            kind = {"for": "loop", "if": "if"}.get(token.text, "while")
            return Statement(kind, token.line, tokens[i + 2 : close], inner, other), after
        if token.text == "do":
            inner, after = self.branch(i + 1, end)
            return Statement("while", token.line, [], inner, []), after
        stop = i
        while stop < end and tokens[stop].text != ";":
            stop = self.source.match(stop) + 1 if tokens[stop].text in ("(", "[", "{") else stop + 1
        kind = "jump" if token.text in ("break", "return", "goto", "continue") else "plain"
        return Statement(kind, token.line, tokens[i:stop], [], []), stop + 1

    def branch(self, i, end):
        statement, after = self.statement(i, end)
        body = [statement] if statement else []
        if statement and statement.kind == "block":
            body = statement.body
        return body, after

    def walk(self, statements=None, loops=(), conditions=()):
        """Yields (statement, enclosing loops, enclosing conditions) in program order."""
        for s in self.body if statements is None else statements:
            yield s, loops, conditions
            inner = loops + (s,) if s.kind in ("loop", "while") else loops
            guard = conditions + ((s.tokens, True),) if s.kind == "if" else conditions
            yield from self.walk(s.body, inner, guard)
            yield from self.walk(s.other, loops, conditions + ((s.tokens, False),))

    def variables(self):
        found = {p.name: p for p in self.parameters}
        for s, _, _ in self.walk():
            if s.kind == "plain":
                v = variable(self.source, s.tokens)
                lock = locked(s.tokens)
                if v and lock:
                    v = v._replace(dims=self.source.extents.get(lock[0], []))
                if v:
                    found[v.name] = v
        return found

    def pragmas(self, word):
        return [
            (s, loops)
            for s, loops, _ in self.walk()
            if s.kind == "pragma" and s.tokens[0].text.lower().split()[0] == word
        ]

    # -- stream accesses

    def find_accesses(self):
        """List of (stream name, 'read' or 'write', statement, loops, conditions, argument tokens),
        helpers followed: of those that loop, no tokens but None.
        """
        if self.accesses is not None:
            return self.accesses
        self.accesses = []
        for s, loops, conditions in self.walk():
            if s.kind in ("plain", "if", "loop", "while", "jump"):
                for name, way, argument in self.statement_accesses(s.tokens):
                    self.accesses.append((name, way, s, loops, conditions, argument))
        return self.accesses

    def statement_accesses(self, tokens):
        streams = {p.name for p in self.parameters if p.kind == "stream"}
        for i, token in enumerate(tokens):
            follower = tokens[i + 1].text if i + 1 < len(tokens) else ""
            if token.text in streams:
                at = i + 1
                while at < len(tokens) and tokens[at].text == "[":
                    at = closing(tokens, at) + 1
                if (
                    at + 2 < len(tokens)
                    and tokens[at].text == "."
                    and tokens[at + 1].text in ("read", "write")
                ):
                    yield token.text, tokens[at + 1].text, tokens[at + 3 : closing(tokens, at + 2)]
            elif token.text in ("read_lock", "write_lock"):
                for argument in tokens[i:]:
                    if argument.text in streams:
                        yield argument.text, token.text[:-5], []
            elif (
                token.text in self.source.functions and follower == "(" and token.text != self.name
            ):
                helper = self.source.functions[token.text]
                arguments = split(tokens[i + 2 : closing(tokens, i + 1)])
                for argument, parameter in zip(arguments, helper.parameters):
                    if argument[0].text in streams:
                        for way in helper.directions(parameter.name):
                            yield (
                                argument[0].text,
                                way,
                                None if helper.loops_over(parameter.name, way) else [],
                            )

    def loops_over(self, name, way):
        return any(
            access[:2] == (name, way) and (access[3] or access[5] is None)
            for access in self.find_accesses()
        )

    def directions(self, name):
        return sorted({way for stream, way, *_ in self.find_accesses() if stream == name})


def start_of_export(source, head):
    first = source.tokens.index(head[0])
    before = [t.text for t in source.tokens[max(0, first - 3) : first]] + [t.text for t in head[:2]]
    return "extern" in before or '"C"' in before


def closing(tokens, i):
    pairs = {"(": ")", "[": "]", "{": "}"}
    open_, close, depth = tokens[i].text, pairs[tokens[i].text], 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text == open_) - (tokens[j].text == close)
        if depth == 0:
            return j
    return len(tokens) - 1


def options(text):
    """`m_axi port=x bundle=y` -> {'m_axi': '', 'port': 'x', ...}, keys in lower case."""
    return {k.lower(): v for k, _, v in (word.partition("=") for word in text.split()[1:])}
