#!/usr/bin/env python3
"""Checks an emitted design against the rules that the vendor's compiler enforces or that hang in
hardware.

usage: hls_lint.py DIR

DIR holds hls/*.cpp (or *.cpp) and link.cfg.  The text is read with a tokenizer of our own, so that
nothing is shared with the emitter.  Each finding is a line `FILE:LINE: RULE: message`; the exit
status is 1 if there is any.  Rules:

  A1  a dataflow body holds declarations, process calls and pragmas only
  A2  process arguments are plain names of exactly the parameter's type
  A3  one writer and one reader process per channel     A4  every channel is written and read
  A6  no arrays as channels                             A8  no dataflow inside a loop
  A10 loops with one exit, counted or by a flag         A11 processes are not inlined
  A12 streams: local, named, by reference               A16 no write and read of one cycle without
  dependence
  A17 pipelines on a cycle flush                        A22 complete partition of at most 1024
  elements
  A24 language subset                                   B1  depth as template argument, at least 2
  B3  as many reads as writes, where constant           B4  stream words of at most 4096 bits
  B9  no polling                                        B10 constant index into stream arrays
  C1  interface pragmas                                 C2  a pointer is one process's, with a
  bundle or a channel of one
  C3  ports of 8 to 512 bits, a power of two            C7  at most 32 m_axi ports
  C5  what the report calls bursting is accessed at     C6  one list of options and one width of
  consecutive words of the innermost loop's counter     bursting ports a bundle
  C9  names                                             D4  a memory has one read and one write an
  iteration and cycle of it, banks counted
  D9  counters of a pipelined loop take a cycle         D11 no variable index into registers in a
  recurrence                                            D12 counters are as wide as what they
  count to
  E4  link.cfg agrees with the code                     E5  floorplan.tcl names every process and
  channel once, channels on the die of their later process
  F5  scalar arguments are 32 or 64 bit integers
"""

import re
import sys
from itertools import product
from pathlib import Path

import hls_counters
import hls_floorplan
import hls_memory
import hls_timing
from hls_text import Finding, Source, closing, options, split, variable

SCALARS = {"int", "unsigned", "unsigned int", "int32_t", "uint32_t", "int64_t", "uint64_t"}
FORBIDDEN = set(
    "malloc calloc realloc free new delete virtual throw try catch goto std system printf "
    "fprintf exit abort "
    "setjmp longjmp dynamic_cast typeid thread_local FILE alloca".split()
)
HDL_WORDS = set(
    """
always and assign automatic begin bind bit buf bufif0 bufif1 byte case casex casez cell class
clocking cmos config const constraint context continue cover covergroup cross deassign default
defparam design disable dist do edge else end endcase endclass endconfig endfunction endgenerate
endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endspecify
endsequence endtable endtask enum event expect export extends extern final first_match for force
foreach forever fork forkjoin function generate genvar highz0 highz1 if iff ifnone ignore_bins
illegal_bins import incdir include initial inout input inside instance int integer interface
intersect join join_any join_none large liblist library local localparam logic longint macromodule
matches medium modport module nand negedge new nmos nor noshowcancelled not notif0 notif1 null or
output package packed parameter pmos posedge primitive priority program property protected pull0
pull1 pulldown pullup pure rand randc randcase randsequence rcmos real realtime ref reg release
repeat return rnmos rpmos rtran rtranif0 rtranif1 scalared sequence shortint shortreal showcancelled
signed small solve specify specparam static string strong0 strong1 struct super supply0 supply1
table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1
triand trior trireg type typedef union unique unsigned use uwire var vectored virtual void wait
wait_order wand weak0 weak1 while wildcard wire with within wor xnor xor abs access after alias all
architecture array assert attribute block body buffer bus component configuration disconnect downto
elsif entity exit file generic group guarded impure in inertial is label linkage literal loop map
mod next of on open others out port postponed procedure process range record register reject rem
report rol ror select severity shared signal sla sll sra srl subtype then to transport unaffected
units until variable when
""".split()
)


class Region:
    """A dataflow function: its channels, the processes called in it and the graph they make."""

    def __init__(self, source, function):
        self.source, self.function = source, function
        self.channels = {p.name: p for p in function.parameters if p.kind == "stream"}
        self.outside = set(self.channels)
        self.calls = []  # (line, process, [argument tokens])
        for statement in function.body:
            self.read(statement)
        self.ends = self.find_ends()

    def read(self, s):
        if s.kind == "pragma":
            if s.tokens[0].text.split()[0].lower() == "stream":
                self.source.report(
                    s.line, "B1", "depth belongs in the stream's template argument, not in a pragma"
                )
            return
        if s.kind != "plain":
            self.source.report(s.line, "A1", f"{s.kind} statement in a dataflow body")
            return
        texts = [t.text for t in s.tokens]
        if texts[:2] == ["ST_REGION_END", "("]:
            return
        local = variable(self.source, s.tokens)
        if local and not (
            local.kind == "scalar"
            and "(" in texts
            and local.dims == []
            and texts[0] in self.source.functions
        ):
            self.declare(s, local, texts)
        elif (
            len(texts) > 2
            and texts[-1] == ")"
            and (texts[0] == "ST_PROCESS" or texts[0] in self.source.functions)
        ):
            self.call(s)
        else:
            self.source.report(
                s.line,
                "A1",
                f"neither a channel, a process call nor a pragma: {' '.join(texts[:8])}",
            )

    def declare(self, s, local, texts):
        if local.kind != "stream":
            rule = "A6" if local.dims else "A1"
            self.source.report(
                s.line, rule, f"{local.name} is declared in a dataflow body and is no stream"
            )
            return
        if "=" in texts:
            self.source.report(s.line, "A1", f"stream {local.name} has an initialiser")
        if "static" in texts:
            self.source.report(s.line, "A12", f"stream {local.name} is static")
        if not local.dims and "stream" in texts and f'"{local.name}"' not in texts:
            self.source.report(s.line, "A12", f"stream {local.name} is not given its name")
        # of a stream of blocks, the blocks that the producer and the consumer hold
        if local.depth is None or local.depth < 2:
            self.source.report(
                s.line,
                "B1",
                f"stream {local.name} needs a constant depth of at least 2 as template argument",
            )
        bits = self.source.width(local.type)
        if "stream_of_blocks" not in texts and (bits is None or bits > 4096):
            self.source.report(
                s.line,
                "B4",
                f"words of {local.name} have {bits or 'an unknown number of'} bits, at most "
                "4096 work",
            )
        self.channels[local.name] = local

    def call(self, s):
        tokens = s.tokens
        opening = next(i for i, t in enumerate(tokens) if t.text == "(")
        arguments = split(tokens[opening + 1 : closing(tokens, opening)])
        name = tokens[0].text
        if name == "ST_PROCESS":
            name, arguments = arguments[0][0].text, arguments[1:]
        process = self.source.functions.get(name)
        if process is None:
            self.source.report(s.line, "A1", f"{name} is not defined in this file")
            return
        self.calls.append((s.line, process, arguments))
        self.check_arguments(s.line, process, arguments)

    def check_arguments(self, line, process, arguments):
        known = {**{p.name: p for p in self.function.parameters}, **self.channels}
        if len(arguments) != len(process.parameters):
            self.source.report(
                line,
                "A2",
                f"{process.name} takes {len(process.parameters)} arguments, not {len(arguments)}",
            )
        for argument, parameter in zip(arguments, process.parameters):
            texts = [t.text for t in argument]
            indexed = len(texts) > 3 and texts[1] == "[" and texts[-1] == "]"
            given = known.get(texts[0])
            if given is None or not (len(texts) == 1 or indexed):
                self.source.report(
                    line, "A2", f"argument {' '.join(texts)} of {process.name} is not a plain name"
                )
                continue
            if indexed and self.source.evaluate(argument[2:-1]) is None:
                self.source.report(line, "B10", f"index of {' '.join(texts)} is not constant")
            want, got = (self.source.spell(v.type) for v in (parameter, given))
            if (parameter.kind, want, len(parameter.dims)) != (
                given.kind,
                got,
                len(given.dims) - indexed,
            ):
                self.source.report(
                    line,
                    "A2",
                    f"{process.name} takes {parameter.kind} of {want}, {texts[0]} is "
                    f"{given.kind} of {got}",
                )
            elif parameter.dims and (parameter.dims, parameter.depth) != (given.dims, given.depth):
                self.source.report(
                    line,
                    "A2",
                    f"{texts[0]} is an array of other extent or depth than {parameter.name} "
                    f"of {process.name}",
                )

    def find_ends(self):
        """channel -> [(call index, parameter, 'read' or 'write')]; an element of an array is a
        channel of its own.
        """
        ends = {}
        for name, channel in self.channels.items():
            if channel.dims and channel.dims[0]:
                ends.update({f"{name}[{i}]": [] for i in range(channel.dims[0])})
            else:
                ends[name] = []
        for index, (_, process, arguments) in enumerate(self.calls):
            for argument, parameter in zip(arguments, process.parameters):
                if parameter.kind != "stream" or argument[0].text not in self.channels:
                    continue
                name = argument[0].text
                element = (
                    f"{name}[{self.source.evaluate(argument[2:-1])}]" if len(argument) > 1 else name
                )
                for key in (
                    [element] if element in ends else [k for k in ends if k.startswith(name + "[")]
                ):
                    ends[key] += [
                        (index, parameter.name, way) for way in process.directions(parameter.name)
                    ]
        return ends

    def check_ends(self):
        for channel, ends in self.ends.items():
            line = self.channels[channel.split("[")[0]].line
            outside = channel.split("[")[0] in self.outside
            for way, noun in (("read", "reader"), ("write", "writer")):
                users = sorted({i for i, _, w in ends if w == way})
                if len(users) > 1:
                    names = ", ".join(self.calls[i][1].name for i in users)
                    self.source.report(line, "A3", f"{channel} has {len(users)} {noun}s: {names}")
                elif not users and not outside:
                    self.source.report(line, "A4", f"{channel} has no {noun}")
            both = {i for i, _, w in ends if w == "read"} & {i for i, _, w in ends if w == "write"}
            if both or (outside and len({i for i, _, _ in ends}) != 1):
                self.source.report(
                    line, "A3", f"{channel} is read and written by one process or used by several"
                )

    def check_counts(self):
        """Elements of an array that is passed whole are not told apart here."""
        for channel, ends in self.ends.items():
            counts = {}
            if any(
                p.dims
                for index, name, _ in ends
                for p in self.calls[index][1].parameters
                if p.name == name
            ):
                continue
            for index, parameter, way in ends:
                found = [
                    a
                    for a in self.calls[index][1].find_accesses()
                    if a[0] == parameter and a[1] == way
                ]
                parts = [count(self.source, a) for a in found]
                counts[way] = None if None in parts else sum(parts)
            if (
                None not in counts.values()
                and len(counts) == 2
                and counts["read"] != counts["write"]
            ):
                line = self.channels[channel.split("[")[0]].line
                self.source.report(
                    line,
                    "B3",
                    f"{channel} is written {counts['write']} times and read {counts['read']} times",
                )

    # -- cycles

    def edges(self):
        """(writer call, writer's parameter, reader call, reader's parameter) per channel."""
        for ends in self.ends.values():
            for writer, sent, way in ends:
                for reader, taken, other in ends:
                    if way == "write" and other == "read":
                        yield writer, sent, reader, taken

    def reachable(self, start, without):
        seen, todo = set(), [start]
        while todo:
            node = todo.pop()
            if node in seen or node in without:
                continue
            seen.add(node)
            todo += self.followers.get(node, ())
        return seen

    def on_cycle(self, index, without=frozenset()):
        return any(
            index in self.reachable(reader, without) for reader in self.followers.get(index, ())
        )

    def check_cycles(self):
        self.links = sorted(set(self.edges()))
        self.followers = {}
        for writer, _, reader, _ in self.links:
            self.followers.setdefault(writer, set()).add(reader)
        cyclic = [i for i in range(len(self.calls)) if self.on_cycle(i)]
        fed_back = {
            reader
            for writer, _, reader, _ in self.links
            if reader <= writer and writer in cyclic and reader in cyclic
        }
        forwarders = {i for i in fed_back if only_forwards(self.calls[i][1])}
        for index in cyclic:
            process = self.calls[index][1]
            if index not in forwarders and self.on_cycle(index, forwarders):
                self.check_styles(process)
            self.check_same_cycle(index, process)

    def check_styles(self, process):
        for pragma, _ in process.pragmas("pipeline"):
            if options(pragma.tokens[0].text).get("style") not in ("flp", "frp"):
                self.source.report(
                    pragma.line,
                    "A17",
                    f"{process.name} lies on a cycle: its pipelines need style=flp",
                )

    def check_same_cycle(self, index, process):
        taking = [(source, taken) for source, _, target, taken in self.links if target == index]
        for writer, sent, reader, _ in self.links:
            if writer != index:
                continue
            behind = self.reachable(reader, {index})
            for source, taken in taking:
                if source in behind or source == index:
                    self.check_dependence(process, sent, taken)

    def check_dependence(self, process, sent, taken):
        """A read before the write is waited for by the text itself."""
        accesses = process.find_accesses()
        for place, access in enumerate(accesses):
            _, _, statement, loops, conditions, argument = access
            body = pipeline_body(loops)
            later = [
                a
                for a in accesses[place + 1 :]
                if a[:2] == (taken, "read")
                and pipeline_body(a[3]) is body
                and not exclude(conditions, a[4])
            ]
            if access[:2] != (sent, "write") or argument is None or not later:
                continue
            if taken not in dependences(process, body, statement, argument, conditions):
                self.source.report(
                    statement.line,
                    "A16",
                    f"{process.name} writes {sent} without dependence on {taken}, which "
                    "closes a cycle",
                )


def exclude(conditions, others):
    """True if one place is in the branch of an `if` that the other place's branch excludes."""
    return any(
        tokens is same and sense != opposite
        for tokens, sense in conditions
        for same, opposite in others
    )


def pipeline_body(loops):
    """The loop whose body is one pipeline iteration at this place; None outside of loops."""
    piped = [
        loop
        for loop in loops
        if any(
            s.kind == "pragma" and s.tokens[0].text.lower().startswith("pipeline")
            for s in loop.body
        )
    ]
    return next(iter([*piped, *reversed(loops)]), None)


def dependences(process, body, write, argument, conditions):
    """Streams whose words, read earlier in the same iteration, decide what or whether `write`
    writes.
    """
    taint = {}

    def of(tokens):
        found = set()
        for token in tokens:
            found |= taint.get(token.text, set())
        return found | {
            name for name, way, _ in process.statement_accesses(tokens) if way == "read"
        }

    for s, _, guards in process.walk(body.body if body else None):
        if s is write:
            break
        if s.kind not in ("plain", "loop"):
            continue
        influence = of(s.tokens).union(*(of(tokens) for tokens, _ in guards))
        texts = [t.text for t in s.tokens]
        cut = next(
            (
                i
                for i, t in enumerate(texts)
                if t in ("=", "+=", "-=", "*=", "/=", "|=", "&=", "^=")
            ),
            None,
        )
        local = variable(process.source, s.tokens)
        if local or cut:
            targets = [local.name if local else s.tokens[0].text]
        else:
            targets = [t.text for t in s.tokens if t.kind == "name"]
        for target in targets:
            taint[target] = taint.get(target, set()) | influence
    return of(argument).union(*(of(tokens) for tokens, _ in conditions))


def only_forwards(process):
    """True if every word written is one that was read: no arithmetic between."""
    sources = {}
    for s, _, _ in process.walk():
        if s.kind != "plain":
            continue
        texts = [t.text for t in s.tokens]
        if "=" in texts:
            local = variable(process.source, s.tokens)
            target = local.name if local else texts[0]
            sources.setdefault(target, []).append(s.tokens[texts.index("=") + 1 :])
        elif "=" not in texts and any(
            t.endswith("=") and t not in ("==", "<=", ">=", "!=") for t in texts
        ):
            sources.setdefault(texts[0], []).append(s.tokens)

    def copied(tokens):
        texts = [t.text for t in tokens]
        if len(texts) == 5 and texts[1:] == [".", "read", "(", ")"]:
            return True
        return len(tokens) == 1 and tokens[0].kind == "number"

    writes = [a for a in process.find_accesses() if a[1] == "write"]
    for *_, argument in writes:
        if argument is not None and copied(argument):
            continue
        if (
            argument is None
            or len(argument) != 1
            or not all(copied(tokens) for tokens in sources.get(argument[0].text, [argument]))
        ):
            return False
    return bool(writes)


def loop_range(source, loop):
    """(variable, range) of a counted loop with constant bounds; (variable, None) if not constant;
    None if not counted.
    """
    parts = split(loop.tokens, ";")
    if len(parts) != 3:
        return None
    init, test, step = ([t.text for t in part] for part in parts)
    if "=" not in init or len(test) < 3 or test[1] not in ("<", "<=", ">", ">=", "!="):
        return None
    name = init[init.index("=") - 1]
    if test[0] != name or name not in step or "&&" in test or "||" in test:
        return None
    low = source.evaluate(parts[0][init.index("=") + 1 :])
    high = source.evaluate(parts[1][2:])
    if "--" in step or "++" in step:
        by = -1 if "--" in step else 1
    else:
        by = source.evaluate(parts[2][2:])
    if None in (low, high, by) or by == 0 or test[1] == "!=":
        return name, None
    if "-=" in step:
        by = -by
    return name, range(low, high + {"<": 0, "<=": 1, ">": 0, ">=": -1}[test[1]], by)


def count(source, access):
    """How often an access happens per run of its process; None if that is not constant."""
    _, _, _, loops, conditions, argument = access
    if argument is None:
        return None
    ranges = [loop_range(source, loop) for loop in loops]
    if any(r is None or r[1] is None for r in ranges):
        return None
    named = {t.text for tokens, _ in conditions for t in tokens}
    total, tested = 1, []
    for name, values in ranges:
        if name in named:
            tested.append((name, values))
        else:
            total *= len(values)
    points = 1
    for _, values in tested:
        points *= len(values)
    if points > 100000:
        return None
    hits = 0
    for point in product(*(values for _, values in tested)):
        names = dict(zip((name for name, _ in tested), point))
        truth = [(source.evaluate(tokens, names), sense) for tokens, sense in conditions]
        if any(value is None for value, _ in truth):
            return None
        hits += all(bool(value) == sense for value, sense in truth)
    return total * hits


def check_function(source, function):
    for s, loops, _ in function.walk():
        if s.kind == "while":
            flag = function.variables().get(s.tokens[0].text) if len(s.tokens) == 1 else None
            if flag is None or source.spell(flag.type) != "bool":
                source.report(
                    s.line, "A10", "neither a counted for loop nor one as long as a flag says"
                )
        elif s.kind == "loop":
            check_loop(source, s)
        elif s.kind == "jump" and (loops or s.tokens[0].text == "goto"):
            source.report(s.line, "A10", f"{s.tokens[0].text} gives a loop a second exit")
        elif (
            s.kind == "plain"
            and {t.text for t in s.tokens} & {"static"}
            and "stream" in [t.text for t in s.tokens]
        ):
            source.report(s.line, "A12", "a stream is not static")
        check_stream_index(source, function, s, loops)
        texts = [t.text for t in s.tokens]
        for method in ("empty", "full", "read_nb", "write_nb"):
            if any(a == "." and b == method for a, b in zip(texts, texts[1:])):
                source.report(s.line, "B9", f"{method}() differs between simulation and hardware")
    check_partitions(source, function)
    for pragma, loops in function.pragmas("dataflow"):
        if loops:
            source.report(pragma.line, "A8", "dataflow inside a loop")
    for pragma, _ in function.pragmas("pipeline"):
        if options(pragma.tokens[0].text).get("style") == "frp" and any(
            p.kind == "pointer" for p in function.parameters
        ):
            source.report(pragma.line, "A17", "style=frp does not work with m_axi")


def check_loop(source, loop):
    counted = loop_range(source, loop)
    if counted is None:
        source.report(loop.line, "A10", "not a counted loop with one exit condition")
        return
    texts = [t.text for t in flatten(loop.body)]
    assigned = any(
        a == counted[0] and b in ("=", "+=", "-=", "++", "--") for a, b in zip(texts, texts[1:])
    )
    if assigned:
        source.report(loop.line, "A10", f"the body assigns the loop counter {counted[0]}")
    unrolled = any(
        s.kind == "pragma" and s.tokens[0].text.lower().split() == ["unroll"] for s in loop.body
    )
    if unrolled and counted[1] is None:
        source.report(loop.line, "A10", "an unrolled loop needs constant bounds")


def flatten(statements):
    for s in statements:
        yield from (t for t in s.tokens if t.kind != "pragma")
        yield from flatten(s.body)
        yield from flatten(s.other)


def check_stream_index(source, function, s, loops):
    arrays = {p.name for p in function.parameters if p.kind == "stream" and p.dims}
    unrolled = {
        loop_range(source, loop)[0]
        for loop in loops
        if loop.kind == "loop"
        and loop_range(source, loop)
        and any(
            b.kind == "pragma" and b.tokens[0].text.lower().startswith("unroll") for b in loop.body
        )
    }
    for i, token in enumerate(s.tokens):
        if token.text in arrays and i + 1 < len(s.tokens) and s.tokens[i + 1].text == "[":
            index = s.tokens[i + 2 : closing(s.tokens, i + 1)]
            if source.evaluate(index, {name: 0 for name in unrolled}) is None:
                source.report(
                    s.line, "B10", f"index into {token.text} is neither constant nor unrolled"
                )


def check_partitions(source, function):
    variables = function.variables()
    for pragma, _ in function.pragmas("array_partition"):
        found = options(pragma.tokens[0].text)
        array = variables.get(found.get("variable"))
        if array is not None and array.kind == "stream":
            array = array._replace(dims=source.extents.get(array.type[0].text, []))
        if array is None or not array.dims:
            source.report(
                pragma.line, "A22", f"array_partition of unknown array {found.get('variable')}"
            )
            continue
        complete = "complete" in (found.get("type", "").lower(), *found) or not (
            {"cyclic", "block"} & set(found) or "type" in found
        )
        which = int(found.get("dim", "1"))
        sizes = array.dims if which == 0 else array.dims[which - 1 : which]
        parts = 1
        for size in sizes:
            parts *= size or 1 << 30
        if not complete:
            parts = Source.number(found.get("factor", "2")) or 2
        if parts > 1024:
            source.report(
                pragma.line,
                "A22",
                f"{array.name} is partitioned into {parts} parts, at most 1024 work",
            )


def check_language(source):
    for token, after, third, fourth in zip(
        source.tokens, source.tokens[1:], source.tokens[2:], source.tokens[3:]
    ):
        if token.kind == "name" and token.text in FORBIDDEN:
            source.report(token.line, "A24", f"{token.text} is not synthesisable")
        if token.text == "(" and after.text == "*" and third.kind == "name" and fourth.text == ")":
            source.report(token.line, "A24", "function pointer")
    calls = {
        f.name: {t.text for t in f.tokens} & set(source.functions)
        for f in source.functions.values()
    }
    for name in calls:
        seen, todo = set(), set(calls[name])
        while todo:
            seen |= todo
            todo = set().union(*(calls[n] for n in todo)) - seen
        if name in seen:
            source.report(source.functions[name].line, "A24", f"{name} calls itself")


def check_name(source, line, name, what):
    if name.lower() in HDL_WORDS:
        source.report(
            line, "C9", f"{what} {name} is a word of Verilog or VHDL and would be renamed"
        )
    if len(name) > 200:
        source.report(line, "C9", f"{what} name of {len(name)} characters, at most 200 survive")


def check_top(source, top):
    """Interface of the kernel; returns its m_axi argument names."""
    ports, bundles, seen, shared = {}, {}, set(), []
    for pragma, _ in top.pragmas("interface"):
        found = options(pragma.tokens[0].text)
        mode = found.get("mode") or next(
            (
                m
                for m in ("m_axi", "s_axilite", "axis", "ap_ctrl_none", "ap_ctrl_chain")
                if m in found
            ),
            "",
        )
        ports.setdefault(found.get("port", ""), []).append((mode, found, pragma.line))
    modes = {name: {mode for mode, _, _ in entries} for name, entries in ports.items()}
    known = {p.name for p in top.parameters} | {"return"}
    for name, entries in ports.items():
        if name not in known:
            source.report(entries[0][2], "C1", f"interface pragma for unknown argument {name}")
    if "s_axilite" not in modes.get("return", ()) and any(
        p.kind != "stream" for p in top.parameters
    ):
        source.report(top.line, "C1", "no s_axilite interface for port=return")
    pointers = [p for p in top.parameters if p.kind == "pointer"]
    for p in top.parameters:
        check_name(source, p.line, p.name, "argument")
        if p.name.lower() in seen:
            source.report(p.line, "C9", f"argument {p.name} differs from another only in case")
        seen.add(p.name.lower())
        if p.kind == "scalar" and source.spell(p.type) not in SCALARS:
            source.report(
                p.line,
                "F5",
                f"scalar argument {p.name} is {source.spell(p.type)}, not a 32 or 64 bit integer",
            )
    for p in pointers:
        entry = next((e for e in ports.get(p.name, []) if e[0] == "m_axi"), None)
        bits = source.width(p.type)
        if bits is None or bits > 512 or bits < 8 or bits & (bits - 1):
            source.report(
                p.line,
                "C3",
                f"m_axi port {p.name} has {bits or 'an unknown number of'} bits, 8 to 512 in "
                "powers of two work",
            )
        if entry is None:
            source.report(p.line, "C1", f"no m_axi interface for {p.name}")
            continue
        if entry[1].get("offset") != "slave":
            source.report(entry[2], "C1", f"{p.name} needs offset=slave")
        bundle = entry[1].get("bundle")
        if bundle is None:
            source.report(entry[2], "C2", f"{p.name} has no bundle")
        else:
            for other, channel in bundles.get(bundle, []):
                if channel is None or entry[1].get("channel") is None:
                    source.report(
                        entry[2],
                        "C2",
                        f"{p.name} and {other} share bundle {bundle} without channels",
                    )
                elif entry[1]["channel"] == channel:
                    shared.append(
                        (entry[2], p.name, other, f"channel {channel} of bundle {bundle}")
                    )
            check_name(source, entry[2], bundle, "bundle")
            bundles.setdefault(bundle, []).append((p.name, entry[1].get("channel")))
    adapters = len(pointers) - sum(len(users) - 1 for users in bundles.values())
    if adapters > 32:
        source.report(top.line, "C7", f"{adapters} m_axi ports, at most 32 can be linked")
    return [p.name for p in pointers], shared


def check_pointers(source, region):
    """{pointer: the process that uses it, and the line of its call}"""
    users = {}
    for line, process, arguments in region.calls:
        pointers = [a[0].text for a, p in zip(arguments, process.parameters) if p.kind == "pointer"]
        for name in pointers:
            if name in users:
                source.report(
                    line, "C2", f"pointer {name} is used by {users[name][0]} and {process.name}"
                )
            users.setdefault(name, (process.name, line))
    return users


def check_source(source, single, budget):
    """Runs every rule on one file; returns {kernel name: its m_axi arguments}.  single: arguments
    whose words travel one by one; budget: nanoseconds of a cycle for a path.
    """
    kernels, regions, shared = {}, [], []
    calls, ports = [], {}
    passed = hls_memory.passed_files(source)
    banks = hls_memory.all_partitions(source)
    check_language(source)
    for function in source.functions.values():
        check_name(source, function.line, function.name, "function")
        check_function(source, function)
        hls_memory.check_recurrences(source, function, passed)
        hls_memory.check_ports(source, function, banks[function.name])
        hls_timing.check_headers(source, function, budget)
        hls_counters.check_widths(source, function)
        if function.exported:
            ports = hls_memory.port_options(function)
            hls_memory.check_bundles(source, function, ports)
            kernels[function.name], alike = check_top(source, function)
            shared += alike
        if function.pragmas("dataflow"):
            region = Region(source, function)
            region.check_ends()
            region.check_counts()
            region.check_cycles()
            regions.append(check_pointers(source, region))
            for name, channel in region.channels.items():
                check_name(source, channel.line, name, "stream")
            calls += [(process, arguments) for _, process, arguments in region.calls]
            for line, process, _ in region.calls:
                if not any(
                    "off" in options(p.tokens[0].text) for p, _ in process.pragmas("inline")
                ):
                    source.report(
                        process.line, "A11", f"process {process.name} needs #pragma HLS inline off"
                    )
    hls_memory.check_bursts(source, calls, ports, single)
    for users in regions:
        for line, name, other, what in shared:
            if users.get(name) != users.get(other):
                source.report(
                    line, "C2", f"{name} and {other}, which are not of one process, share {what}"
                )
    return kernels


def check_link(path, kernels):
    """link.cfg against {kernel: m_axi arguments}."""
    findings, section, units, mapped = [], "", {}, {}

    def report(line, message):
        findings.append(Finding(str(path), line, "E4", message))

    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.split("#")[0].strip()
        if line.startswith("["):
            section = line
        if section != "[connectivity]" or "=" not in line:
            continue
        key, _, value = line.partition("=")
        if key == "nk":
            parts = value.split(":")
            if parts[0] not in kernels:
                report(number, f"nk names kernel {parts[0]}, which the code does not define")
            if len(parts) != 3 or parts[1] != "1":
                report(number, "nk must be KERNEL:1:UNIT")
            elif parts[2] in units:
                report(number, f"compute unit {parts[2]} is named twice")
            else:
                units[parts[2]] = parts[0]
        elif key == "sp":
            check_bank(report, number, value, units, kernels, mapped)
        elif key == "slr":
            unit, _, die = value.partition(":")
            if unit not in units or die not in ("SLR0", "SLR1", "SLR2"):
                report(number, f"slr={value} names no compute unit or no die")
        elif key not in ("sc", "stream_connect"):
            report(number, f"unknown key {key}")
    for kernel, arguments in kernels.items():
        owners = [unit for unit, name in units.items() if name == kernel]
        if len(owners) != 1:
            report(1, f"kernel {kernel} has {len(owners)} compute units, not one")
        for argument in arguments:
            if owners and (owners[0], argument) not in mapped:
                report(1, f"no sp line for {owners[0]}.{argument}")
    return findings


def check_bank(report, number, value, units, kernels, mapped):
    found = re.fullmatch(r"(\w+)\.(\w+):(?:HBM|DDR|HP)\[(\d+)(?::(\d+))?\]", value)
    if not found:
        report(number, f"sp={value} is not UNIT.ARGUMENT:HBM[i] or HBM[i:j] (or DDR, HP)")
        return
    unit, argument, low, high = (
        found.group(1),
        found.group(2),
        int(found.group(3)),
        int(found.group(4) or found.group(3)),
    )
    if unit not in units:
        report(number, f"sp names compute unit {unit}, which no nk line defines")
    elif argument not in kernels.get(units[unit], ()):
        report(number, f"{argument} is no m_axi argument of {units[unit]}")
    if not low <= high <= 31:
        report(number, f"bank index in {value} is outside 0..31")
    if (unit, argument) in mapped:
        report(number, f"{unit}.{argument} is mapped twice")
    mapped[unit, argument] = number


def lint(folder):
    """All findings about the design in `folder`."""
    code = folder / "hls" if (folder / "hls").is_dir() else folder
    link = next((p for p in (folder / "link.cfg", code / "link.cfg") if p.is_file()), None)
    files = sorted(code.glob("*.cpp"))
    findings, kernels = [], {}
    if not files:
        return [Finding(str(code), 1, "E4", "no .cpp files")]
    module = folder / "design.mlir"
    single = hls_memory.single_ports(module.read_text()) if module.is_file() else set()
    makefile = code / "Makefile"
    budget = hls_timing.budget_of(makefile.read_text() if makefile.is_file() else "")
    for path in files:
        source = Source(path)
        for name, arguments in check_source(source, single, budget).items():
            kernels[name] = arguments
        findings += sorted(source.findings, key=lambda f: f.line)
    if not kernels:
        findings.append(Finding(str(code), 1, "C1", 'no extern "C" function'))
    if link is None:
        return findings + [Finding(str(folder / "link.cfg"), 1, "E4", "missing")]
    text = "\n".join(path.read_text() for path in files)
    return findings + check_link(link, kernels) + hls_floorplan.check_dies(code, link, text)


def main(arguments):
    if len(arguments) != 2 or not Path(arguments[1]).is_dir():
        print("usage: hls_lint.py DIR", file=sys.stderr)
        return 2
    findings = lint(Path(arguments[1]))
    for f in findings:
        print(f"{f.file}:{f.line}: {f.rule}: {f.message}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
