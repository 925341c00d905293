"""What emitted text says about memories: arrays in recurrences, bursts, and options of a bundle.

A small scalar evolution for the subset that designs are emitted in: an address is affine in the
counter of the innermost loop, or it is not.  It shares nothing with the compiler.
"""

import re

from hls_text import Source, closing, options, split

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


def runs(source, function, pointer):
    """For each access to memory in a loop, also of functions that are called: (line, is the address
    a run of the loop's counter?)
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
            yield s.line, steps == 1 and not fixed & assigned(loop) and always


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
    """Each port that asks for bursts is accessed in runs, but for those in `single`.
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
            found = list(runs(source, process, parameter.name))
            if found and not any(run for _, run in found):
                source.report(
                    found[0][0],
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
