"""What emitted text says about memories: arrays in recurrences, bursts, and options of a bundle.

A small scalar evolution for the subset that designs are emitted in: an address is affine in the
counter of the innermost loop, or it is not.  It shares nothing with the compiler.
"""

import re
from itertools import product

from hls_text import Source, closing, locked, options, split

SHORT_BURST = 2  # words of a request where the report promises no bursts
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=")


def names_of(tokens):
    return {t.text for t in tokens if t.kind == "name"}


def indices(tokens, i):
    """Index expressions of the element that begins with the name at i, and where it ends."""
    found, at = [], i + 1
    while at < len(tokens) and tokens[at].text == "[":
        end = closing(tokens, at)
        found.append(tokens[at + 1 : end])
        at = end + 1
    return found, at


def loop_pragmas(loop, word):
    return [
        options(s.tokens[0].text)
        for s in loop.body
        if s.kind == "pragma" and s.tokens[0].text.lower().split()[0] == word
    ]


def innermost(loops):
    """The innermost loop that is not unrolled."""
    return next((loop for loop in reversed(loops) if not loop_pragmas(loop, "unroll")), None)


def counter_of(loop):
    parts = split(loop.tokens, ";") if loop is not None and loop.kind == "loop" else []
    texts = [t.text for t in parts[0]] if len(parts) == 3 else []
    return texts[texts.index("=") - 1] if "=" in texts else None


def counters_of_unrolled(loops):
    return {counter_of(loop) for loop in loops if loop_pragmas(loop, "unroll")}


def pipelined(loops):
    return next((loop for loop in loops if loop_pragmas(loop, "pipeline")), None)


# -- arrays in recurrences


def register_files(source, function):
    """{array: dims that are one register each, of several}"""
    found = {}
    variables = function.variables()
    for pragma, _ in function.pragmas("array_partition"):
        said = options(pragma.tokens[0].text)
        array = variables.get(said.get("variable"))
        if array is None or not array.dims or said.get("type", "complete").lower() != "complete":
            continue
        which = int(said.get("dim", "1"))
        whole = range(len(array.dims)) if which == 0 else [which - 1]
        several = [d for d in whole if array.dims[d] != 1]
        found.setdefault(array.name, set()).update(several)
    return found


def flows(function, body):
    """{value: the values that it depends on} within an iteration, of whole arrays and words."""
    found = {}
    for s, loops, conditions in function.walk(body):
        if s.kind != "plain":
            continue
        texts = [t.text for t in s.tokens]
        level, cut = 0, None
        for i, text in enumerate(texts):
            level += (text in "([") - (text in ")]")
            if level == 0 and text in ASSIGNMENTS:
                cut = i
                break
        if cut is None:
            continue
        element = texts.index("[") if "[" in texts[:cut] else cut
        target = texts[element - 1]
        depends = names_of(s.tokens[cut:]) | set().union(*(names_of(c) for c, _ in conditions))
        found.setdefault(target, set()).update(
            depends - {target} if "[" in texts[cut:] else depends
        )
        if any(t == target for t in texts[cut:]):
            found[target].add(target)
    return found


def reaches(graph, start, goal):
    seen, todo = set(), set(graph.get(start, ()))
    while todo:
        if goal in todo:
            return True
        seen |= todo
        todo = set().union(*(graph.get(n, set()) for n in todo)) - seen
    return False


def passed_files(source):
    """{function: {array parameter: dims that are one register each}}, by its calls."""
    found = {}
    for function in source.functions.values():
        files = register_files(source, function)
        for s, _, _ in function.walk():
            callee = source.functions.get(s.tokens[0].text) if s.kind == "plain" else None
            if not files or callee is None:
                continue
            for argument, parameter in zip(split(s.tokens[2:-1]), callee.parameters):
                if argument[0].text in files and parameter.dims:
                    own = found.setdefault(callee.name, {}).setdefault(parameter.name, set())
                    own.update(files[argument[0].text])
    return found


def check_recurrences(source, function, passed):
    """No variable index into a completely partitioned array inside a recurrence."""
    files = {**register_files(source, function), **passed.get(function.name, {})}
    for s, loops, _ in function.walk():
        body = pipelined(loops)
        if not files or body is None or s.kind != "plain":
            continue
        unrolled = dict.fromkeys(counters_of_unrolled(loops), 0)
        for i, token in enumerate(s.tokens):
            if token.text not in files or i + 1 >= len(s.tokens) or s.tokens[i + 1].text != "[":
                continue
            variable = [
                d
                for d, index in enumerate(indices(s.tokens, i)[0])
                if d in files[token.text] and source.evaluate(index, unrolled) is None
            ]
            if variable and reaches(flows(function, body.body), token.text, token.text):
                source.report(
                    s.line,
                    "D11",
                    f"variable index into {token.text}, which is registers, in a recurrence",
                )


# -- ports of memories


def affine(tokens, known):
    """({what varies: factor}, constant) of an index; a part that is no sum varies as a whole."""
    if len(tokens) > 1 and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        return affine(tokens[1:-1], known)
    terms = terms_of(tokens)
    if len(terms) == 1 and terms[0][0] > 0:
        number = Source.number(tokens[0].text) if len(tokens) == 1 else None
        if number is not None:
            return {}, number
        if len(tokens) == 1 and tokens[0].text in known:
            return {}, known[tokens[0].text]
        parts = split(tokens, "*")
        factors = [affine(f, known) for f in parts] if len(parts) == 2 else []
        fixed = [constant for varying, constant in factors if not varying]
        if fixed:
            varying, constant = next((f for f in factors if f[0]), ({}, factors[-1][1]))
            by = fixed[0]
            return {k: by * v for k, v in varying.items()}, by * constant
        return {" ".join(str(known.get(t.text, t.text)) for t in tokens): 1}, 0
    varying, constant = {}, 0
    for sign, term in terms:
        more, number = affine(term, known)
        constant += sign * number
        for name, factor in more.items():
            varying[name] = varying.get(name, 0) + sign * factor
    return {k: v for k, v in varying.items() if v}, constant


def partitions(source, function):
    """{array: {dim: number of banks}}; 0 banks: a bank an element."""
    found = {}
    variables = function.variables()
    for pragma, _ in function.pragmas("array_partition"):
        said = options(pragma.tokens[0].text)
        array = variables.get(said.get("variable"))
        if array is None:
            continue
        kind = said.get("type") or next((k for k in ("cyclic", "block") if k in said), "complete")
        which = int(said.get("dim", "1"))
        dims = range(len(array.dims)) if which == 0 else [which - 1]
        banks = 0 if kind == "complete" else int(said.get("factor", "2"))
        found.setdefault(array.name, {}).update(dict.fromkeys(dims, banks))
    return found


def all_partitions(source):
    """{function: {array: {dim: number of banks}}}, those of parameters as the callers say, and of a
    block as its channel.
    """
    found = {f.name: partitions(source, f) for f in source.functions.values()}
    changed = True
    while changed:
        changed = False
        for function in source.functions.values():
            own = found[function.name]
            for s, _, _ in function.walk():
                tokens = s.tokens if s.kind == "plain" else []
                lock = locked(tokens)
                if lock and lock[1] in own:
                    name = tokens[[t.text for t in tokens].index("(") - 1].text
                    changed |= own.get(name) != own[lock[1]]
                    own[name] = own[lock[1]]
                called = tokens[2:3] if tokens and tokens[0].text == "ST_PROCESS" else tokens[:1]
                callee = source.functions.get(called[0].text) if called else None
                given = (
                    split(tokens[2:-1])[1:]
                    if callee and len(called) and (tokens[0].text == "ST_PROCESS")
                    else split(tokens[2:-1])
                )
                for argument, parameter in zip(given, callee.parameters if callee else ()):
                    banks = own.get(argument[0].text)
                    if banks and found[callee.name].get(parameter.name) != banks:
                        found[callee.name][parameter.name] = banks
                        changed = True
    return found


def bank_of(index, parts, known):
    """(banks, place) of an element: the bank of each partitioned dim, None where it varies; and
    its place in the bank.
    """
    banks, place = [], []
    for d, tokens in enumerate(index):
        varying, constant = affine(tokens, known)
        if d in parts:
            fixed = all(parts[d] and factor % parts[d] == 0 for factor in varying.values())
            banks.append((constant % parts[d] if parts[d] else constant) if fixed else None)
        place.append((tuple(sorted(varying.items())), constant))
    return tuple(banks), tuple(place)


def unrolled_counters(source, loops):
    """Each assignment of the counters of the unrolled loops around a statement."""
    known = [{}]
    for loop in loops:
        if not loop_pragmas(loop, "unroll"):
            continue
        parts = split(loop.tokens, ";")
        bounds = [source.evaluate(parts[0][-1:]), source.evaluate(parts[1][2:])]
        if None in bounds:
            continue
        down = "--" in [t.text for t in parts[2]]
        counts = range(bounds[1] + 1, bounds[0] + 1) if down else range(*bounds)
        known = [{**k, counter_of(loop): i} for k in known for i in counts]
    return known


def target_of(tokens):
    """Where the assigned element ends; 0: nothing is assigned."""
    level = 0
    for i, token in enumerate(tokens):
        level += (token.text in "([{") - (token.text in ")]}")
        if level == 0 and token.text in ASSIGNMENTS:
            return i
    return 0


class PortUse:
    """The accesses of one pipelined loop to the arrays of a function."""

    def __init__(self, source, arrays, parts):
        self.source, self.arrays, self.parts = source, arrays, parts

    def of_statement(self, s, loops):
        """{(array, way, place): banks} of a plain statement and of conditions."""
        found = {}
        cut = target_of(s.tokens) if s.kind == "plain" else 0
        named = [i for i, t in enumerate(s.tokens[:-1]) if t.text in self.arrays]
        named = [i for i in named if s.tokens[i + 1].text == "["]
        if s.kind == "plain" and is_declaration(s.tokens, self.arrays):
            named = [i for i in named if i > cut > 0]
        for i in named:
            array = self.arrays[s.tokens[i].text]
            index = indices(s.tokens, i)[0][: len(array.dims)]
            way = "write" if i < cut else "read"
            for known in unrolled_counters(self.source, loops):
                banks, place = bank_of(index, self.parts.get(array.name, {}), known)
                found[array.name, way, place] = banks
        return found

    def of(self, statements, loops=()):
        """The most accesses of an iteration: of branches the one with more."""
        found = {}
        for s in statements:
            if s.kind in ("plain", "if", "jump"):
                found.update(self.of_statement(s, loops))
            if s.kind == "if":
                branches = [self.of(s.body, loops), self.of(s.other, loops)]
                found.update(max(branches, key=len))
            elif s.body:
                inner = loops + (s,) if s.kind == "loop" else loops
                found.update(self.of(s.body, inner))
        return found


def is_declaration(tokens, arrays):
    """Is the named array declared here?  A type stands before it."""
    return any(
        t.text in arrays and i and tokens[i - 1].kind == "name" and tokens[i - 1].text != "return"
        for i, t in enumerate(tokens[: target_of(tokens) or len(tokens)])
    )


def most_in_a_bank(accesses):
    """The most accesses that one bank may have: of those that vary in a dim, any bank of it."""
    seen = [
        sorted({banks[d] for banks in accesses} - {None}) or [0] for d in range(len(accesses[0]))
    ]
    return max(
        sum(all(b in (None, own) for b, own in zip(banks, bank)) for banks in accesses)
        for bank in product(*seen)
    )


def check_ports(source, function, parts):
    """No memory with more accesses an iteration than the ports of its banks have cycles for."""
    arrays = {v.name: v for v in function.variables().values() if v.dims and v.kind == "scalar"}
    for s, loops, _ in function.walk():
        pipeline = loop_pragmas(s, "pipeline") if s.kind in ("loop", "while") else []
        if not pipeline or not arrays:
            continue
        uses = PortUse(source, arrays, parts).of(s.body)
        for array, way in sorted({key[:2] for key in uses}):
            dims = arrays[array].dims
            if all(parts.get(array, {}).get(d) == 0 or dims[d] == 1 for d in range(len(dims))):
                continue
            most = most_in_a_bank([b for key, b in uses.items() if key[:2] == (array, way)])
            if most > int(pipeline[0].get("ii", "1")):
                source.report(
                    s.line, "D4", f"{most} {way}s an iteration of a memory of {array}, one port"
                )


# -- bursts


def terms_of(tokens):
    """[(sign, term)] of a sum, brackets kept whole."""
    found, level = [(1, [])], 0
    for token in tokens:
        level += (token.text in "([") - (token.text in ")]")
        if level == 0 and token.text in ("+", "-"):
            found.append((1 if token.text == "+" else -1, []))
        else:
            found[-1][1].append(token)
    return [(sign, term) for sign, term in found if term]


def coefficient(tokens, counter):
    """The factor of `counter` in a sum of products; None: it is not affine in it."""
    if counter not in names_of(tokens):
        return 0
    if tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        return coefficient(tokens[1:-1], counter)
    terms = terms_of(tokens)
    if len(terms) > 1 or terms[0][0] < 0:
        found = [(sign, coefficient(term, counter)) for sign, term in terms]
        return None if any(f is None for _, f in found) else sum(sign * f for sign, f in found)
    factors = split(tokens, "*")
    if len(factors) == 1:
        return 1 if len(tokens) == 1 else None
    total = 1
    for factor in factors:
        number = Source.number(factor[0].text) if len(factor) == 1 else None
        value = coefficient(factor, counter) if counter in names_of(factor) else number
        if value is None:
            return None
        total *= value
    return total if sum(counter in names_of(f) for f in factors) == 1 else None


def address_of(function, loop, index, depth=0):
    """The index with local names of the loop's body replaced by what they are."""
    found = []
    for token in index:
        value = None
        for s in loop.body if depth < 4 else ():
            texts = [t.text for t in s.tokens]
            if s.kind == "plain" and texts[:2] == ["const", "int"] and texts[2] == token.text:
                value = s.tokens[4:]
        found += address_of(function, loop, value, depth + 1) if value else [token]
    return found


def assigned(loop):
    """Names that the loop's body assigns besides its counter."""
    found = set()
    todo = list(loop.body)
    while todo:
        s = todo.pop()
        texts = [t.text for t in s.tokens]
        for i, text in enumerate(texts):
            if text in ("++", "--"):
                found.update(texts[max(i - 1, 0) : i] + texts[i + 1 : i + 2])
            elif text in ASSIGNMENTS and i:
                found.add(texts[i - 1])
        todo += [*s.body, *s.other]
    return found


def is_single(loop):
    """True if the loop counts from 0 to 1."""
    parts = [[t.text for t in part] for part in split(loop.tokens, ";")]
    return len(parts) == 3 and parts[0][-2:] == ["=", "0"] and parts[1][-2:] == ["<", "1"]


def runs(source, function, pointer):
    """For each access to memory in a loop, also of functions that are called: (line, is the address
    a run of the loop's counter, or the loop of one iteration?)
    """
    for s, loops, _ in function.walk():
        callee = source.functions.get(s.tokens[0].text) if s.kind == "plain" else None
        for argument, parameter in zip(split(s.tokens[2:-1]), callee.parameters if callee else ()):
            if [t.text for t in argument] == [pointer]:
                yield from runs(source, callee, parameter.name)
        loop = innermost(loops)
        if loop is None or s.kind not in ("plain", "if"):
            continue
        for i, token in enumerate(s.tokens):
            if token.text != pointer or i + 1 >= len(s.tokens) or s.tokens[i + 1].text != "[":
                continue
            always = any(s is inner and not c for inner, _, c in function.walk(loop.body))
            index = address_of(function, loop, indices(s.tokens, i)[0][0])
            counter = counter_of(loop)
            steps = coefficient(index, counter) if counter else None
            fixed = names_of(index) - {counter}
            run = steps == 1 or is_single(loop)
            yield s.line, run and not fixed & assigned(loop) and always


def port_options(top):
    """{argument: (options, line)}"""
    found = {}
    for pragma, _ in top.pragmas("interface"):
        said = options(pragma.tokens[0].text)
        if "m_axi" in said or said.get("mode") == "m_axi":
            found[said.get("port", "")] = (said, pragma.line)
    return found


def single_ports(module):
    """Arguments whose words the report promises one by one, from the text of design.mlir."""
    found = set()
    for entry in re.findall(r"\{[^{}]*stream\.port = [^{}]*\}", module):
        if re.search(r"stream\.burst = 1\b", entry):
            name = re.search(r'stream\.port = "(\w+)"', entry)[1]
            found.add(name if name.startswith("m_") else "m_" + name)
    return found


def check_bursts(source, region, ports, single):
    """Each port that asks for bursts is accessed in runs only, but for those in `single`.
    region: [(process, arguments)]
    """
    for process, arguments in region:
        for argument, parameter in zip(arguments, process.parameters):
            said, line = ports.get(argument[0].text, ({}, 0))
            if parameter.kind != "pointer" or argument[0].text in single:
                continue
            lengths = [
                int(said[key])
                for key in ("max_read_burst_length", "max_write_burst_length")
                if key in said
            ]
            if not lengths or max(lengths) <= SHORT_BURST:
                continue
            apart = [line for line, run in runs(source, process, parameter.name) if not run]
            if apart:
                source.report(
                    apart[0],
                    "C5",
                    f"{argument[0].text} asks for bursts, but {parameter.name} is not accessed at "
                    "consecutive words of the innermost loop's own counter",
                )


def check_bundles(source, top, ports):
    """One list of options and one width for all ports of a bundle."""
    first = {}
    kinds = {p.name: source.width(p.type) for p in top.parameters if p.kind == "pointer"}
    for name, (said, line) in ports.items():
        listed = {k: v for k, v in said.items() if k not in ("port", "channel", "mode", "m_axi")}
        bundle = said.get("bundle")
        other, others, width = first.setdefault(bundle, (name, listed, kinds.get(name)))
        if listed != others:
            keys = [k for k in {**listed, **others} if listed.get(k) != others.get(k)]
            source.report(line, "C6", f"{name} and {other} of bundle {bundle} differ in {keys[0]}")
        bursts = [int(v) for k, v in listed.items() if re.fullmatch(r"max_\w+_burst_length", k)]
        if width != kinds.get(name) and (not bursts or max(bursts) > SHORT_BURST):
            source.report(
                line,
                "C6",
                f"{name} has {kinds.get(name)} bits, {other} of bundle {bundle} {width}: "
                "no bursts are found",
            )
