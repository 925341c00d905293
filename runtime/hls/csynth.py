#!/usr/bin/env python3
"""Does the vendor's compiler keep what this design promises?

usage: csynth.py version TOP.cpp              < output of `v++ --version`
       csynth.py prepare TOP.cpp PART MHZ [PROCESS]
       csynth.py compare TOP.cpp FOLDER

prepare writes csynth/NAME.cpp and csynth/NAME.tcl for the synthesis of the whole design, or of one
process as a design of its own.  compare reads csynth.xml and the bursts (burst.xml or csynth.rpt)
below FOLDER and compares each pipelined loop and each memory port with the text: initiation
interval, stages, bursts, and the clock of every module.  The exit status is 1 where the vendor's
compiler does worse, and 2 if there is nothing to compare.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

CHANNELS_SINCE = (2023, 1)  # the first version whose adapters have several channels
OLDEST = (2022, 1)
SHORT_BURST = 2  # words of a request that is no burst


def fail(message):
    print(f"csynth.py: {message}", file=sys.stderr)
    return 2


class Design:
    """What the text promises."""

    def __init__(self, path):
        self.path = Path(path)
        self.lines = self.path.read_text().splitlines()
        self.functions = {}  # name: (first line, last line, parameters)
        self.loops = []  # (function, line, initiation interval, stages or None)
        self.bursts = []  # (function, bundle, argument of the design, parameter, line)
        self.read_functions()
        self.read_loops()
        self.read_bursts()

    def read_functions(self):
        text = "\n".join(self.lines)
        head = r"^(?:static|extern \"C\") void (\w+)\(([^;{]*)\)\n\{$"
        for found in re.finditer(head, text, re.MULTILINE):
            first = text.count("\n", 0, found.start()) + 1
            last = text.count("\n", 0, text.index("\n}", found.end())) + 2
            parameters = [" ".join(p.split()) for p in split(found[2])]
            self.functions[found[1]] = (first, last, parameters)

    def function_at(self, line):
        return next((n for n, (a, b, _) in self.functions.items() if a <= line <= b), None)

    def loop_before(self, line):
        """The line of the loop header above a line (both from 1)."""
        return next(
            (i for i in range(line, 0, -1) if re.match(r"\s*(for|while) \(", self.lines[i - 1])), 0
        )

    def read_loops(self):
        for number, line in enumerate(self.lines, 1):
            found = re.match(r"\s*#pragma HLS pipeline II=(\d+)", line)
            if not found:
                continue
            stages = re.match(r"\s*// modelled stages: (\d+)", "".join(self.lines[number:][:1]))
            where = self.loop_before(number)
            self.loops.append(
                (self.function_at(where), where, int(found[1]), int(stages[1]) if stages else None)
            )

    def interfaces(self):
        """{argument: pragma} of the memory ports."""
        pragma = r"#pragma HLS interface m_axi port=(\w+).*"
        return {f[1]: f[0] for f in (re.search(pragma, line) for line in self.lines) if f}

    def single(self):
        """Arguments whose words the report counts one by one."""
        module = self.path.parent.parent / "design.mlir"
        text = module.read_text() if module.exists() else ""
        entries = re.findall(r"\{[^{}]*stream\.port = [^{}]*\}", text)
        names = [re.search(r'stream\.port = "(\w+)"', e)[1] for e in entries if one_by_one(e)]
        return {name if name.startswith("m_") else "m_" + name for name in names}

    def read_bursts(self):
        ports, single = self.interfaces(), self.single()
        for call in re.findall(r"ST_PROCESS\((.*)\);", "\n".join(self.lines)):
            name, *arguments = split(call)
            first, last, parameters = self.functions.get(name, (0, 0, []))
            for argument, parameter in zip(arguments, parameters):
                lengths = re.findall(r"max_\w+_burst_length=(\d+)", ports.get(argument, ""))
                if argument in single or max(map(int, lengths), default=0) <= SHORT_BURST:
                    continue
                own = parameter.split()[-1].lstrip("*&")
                bundle = re.search(r"bundle=(\w+)", ports[argument])[1]
                used = [
                    n
                    for n in range(first, last)
                    if f" {own}[" in f" {self.lines[n]}" or f"({own}[" in self.lines[n]
                ]
                if used:
                    self.bursts.append((name, bundle, argument, own, self.loop_before(used[0] + 1)))


def one_by_one(entry):
    return re.search(r"stream\.burst = 1\b", entry) is not None


def split(text):
    """At commas outside brackets."""
    parts, level = [""], 0
    for letter in text:
        level += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


# -- the vendor's reports


def number(element, name):
    text = element.findtext(name) or ""
    return int(text) if text.strip().isdigit() else None


def report_loops(module):
    """(lines of its loops, interval, stages) of each pipelined loop; the compiler calls a loop
    without a label VITIS_LOOP_LINE_COUNT, and a flattened nest by all its loops.
    """
    for element in module.iter():
        if element.findtext("PipelineII") is None:
            continue
        name = element.findtext("Name") or element.tag
        lines = {int(n) for n in re.findall(r"VITIS_LOOP_(\d+)_\d+", name)}
        yield lines, number(element, "PipelineII"), number(element, "PipelineDepth")


def read_reports(folder):
    """(loops, clocks): {line: (interval, stages)} and {module: (estimate, room)} in ns."""
    loops, clocks = {}, {}
    for path in sorted(folder.rglob("csynth.xml")):
        root = ElementTree.parse(path).getroot()
        for module in root.iter("Module"):
            timing = module.find(".//SummaryOfTimingAnalysis")
            if timing is not None:
                period, margin, estimate = (
                    float(timing.findtext(name) or 0)
                    for name in ("TargetClockPeriod", "ClockUncertainty", "EstimatedClockPeriod")
                )
                clocks[module.findtext("Name")] = (estimate, period - margin)
            summary = module.find(".//SummaryOfLoopLatency")
            for lines, interval, stages in report_loops(summary) if summary is not None else ():
                for line in lines:
                    worst = loops.get(line, (0, 0))
                    loops[line] = (max(worst[0], interval or 0), max(worst[1], stages or 0))
    return loops, clocks


def table_bursts(text):
    """(bundle, line of the loop) of the rows of `Inferred Burst Summary`, whose columns differ
    between versions.
    """
    part = text.partition("* Inferred Burst Summary")[2].partition("\n* ")[0]
    rows = [[c.strip() for c in r.strip("| ").split("|")] for r in part.splitlines() if "|" in r]
    for row in rows[1:]:
        cells = dict(zip(rows[0], row))
        found = re.search(r"VITIS_LOOP_(\d+)_\d+", cells.get("Loop", ""))
        place = cells.get("Loop Location") or cells.get("Location") or ""
        line = found[1] if found else (re.findall(r":(\d+):", place) or ["0"])[0]
        yield cells.get("HW Interface", "").removeprefix("m_axi_"), int(line)


def read_bursts(folder):
    """{(bundle, line of the loop)} of the bursts that were found; None: no report says."""
    found, said = set(), False
    for path in folder.rglob("burst.xml"):
        said = True
        for entry in re.findall(r"<burst ([^>]*)/>", path.read_text()):
            item = dict(re.findall(r'([\w-]+)="([^"]*)"', entry))
            loop = re.search(r"VITIS_LOOP_(\d+)_\d+", item.get("LoopName", ""))
            if item.get("group") == "BURST_VERBOSE_PASSED" and loop:
                found.add((item.get("BundleName"), int(loop[1])))
    for path in folder.rglob("csynth.rpt"):
        text = path.read_text(errors="replace")
        said = said or "Inferred Burst Summary" in text
        found.update(table_bursts(text))
    return found if said else None


def compare(design, folder):
    loops, clocks = read_reports(folder)
    bursts = read_bursts(folder)
    if not clocks:
        return fail(f"no csynth.xml is below {folder}")
    here = {n for n in design.functions if any(m == n or m.startswith(n + "_") for m in clocks)}
    worse, absent, same = [], 0, 0
    for function, line, interval, stages in design.loops:
        if function not in here:
            continue
        if line not in loops:
            absent += 1
            continue
        found, depth = loops[line]
        if found > interval:
            worse.append(f"{function}, line {line}: II {found}, promised {interval}")
        elif stages is not None and depth > 2 * stages + 8:
            worse.append(f"{function}, line {line}: {depth} stages, modelled {stages}")
        else:
            same += 1
    for name, (estimate, room) in sorted(clocks.items()):
        if estimate > room:
            worse.append(f"{name}: {estimate:.2f} ns, the clock leaves {room:.2f}")
    promised = [b for b in design.bursts if b[0] in here]
    for function, bundle, argument, own, line in promised if bursts is not None else ():
        first, last, _ = design.functions[function]
        if not any(b == bundle and first <= n <= last for b, n in bursts):
            worse.append(f"{function}, line {line}: no burst of {argument} ({own}) in {bundle}")
    for text in worse:
        print(text)
    print(
        f"{same} loops as promised, {absent} not in the reports (unrolled, or of one iteration); "
        + (f"{len(promised)} bursts promised" if bursts is not None else "no report of bursts")
        + f"; {len(worse)} worse"
    )
    return 1 if worse else 0


# -- runs of the vendor's compiler


def wrapper(design, process):
    """One process as a design of its own: its channels are FIFOs outside."""
    parameters = design.functions[process][2]
    names = [re.search(r"(\w+)\)?(\[\d+\])*$", p)[1] for p in parameters]
    ports = design.interfaces()
    call = next(
        (
            split(c)[1:]
            for c in re.findall(r"ST_PROCESS\((.*)\);", "\n".join(design.lines))
            if split(c)[0] == process
        ),
        names,
    )
    pragmas = []
    for name, argument, parameter in zip(names, call, parameters):
        if argument in ports:
            pragmas.append(re.sub(r"port=\w+", f"port={name}", ports[argument]))
        elif "hls::stream" in parameter:
            pragmas.append(f"#pragma HLS interface mode=ap_fifo port={name}")
    body = "\n".join(pragmas)
    return (
        f'#include "../{design.path.name}"\n\nextern "C" void csynth_{process}('
        f"{', '.join(parameters)})\n{{\n{body}\n\t{process}({', '.join(names)});\n}}\n"
    )


def prepare(design, part, megahertz, process):
    folder = Path("csynth")
    if process and process not in design.functions:
        return fail(f"{design.path} has no process {process}")
    if process and any("stream_of_blocks" in p for p in design.functions[process][2]):
        return fail(f"{process} has channels of blocks, which no design has outside: take another")
    folder.mkdir(exist_ok=True)
    name = process or design.path.stem
    source = f"../{design.path.name}"
    if process:
        source = f"{name}.cpp"
        (folder / source).write_text(wrapper(design, process))
    (folder / f"{name}.tcl").write_text(
        f"open_project -reset {name}\nset_top {'csynth_' if process else ''}{name}\n"
        f'add_files {source} -cflags "-I.. -std=c++17"\n'
        f"open_solution -reset -flow_target {'vivado' if process else 'vitis'} solution\n"
        f"set_part {part}\ncreate_clock -period {1000 / float(megahertz):.3f}\n"
        "set_clock_uncertainty 27%\nconfig_dataflow -strict_mode error\ncsynth_design\nexit\n"
    )
    return 0


def version(design, text):
    found = re.search(r"\bv(20\d\d)\.(\d)", text)
    if not found:
        return fail("v++ --version names no version: source settings64.sh of Vitis")
    wanted = (
        CHANNELS_SINCE if any("channel=" in p for p in design.interfaces().values()) else OLDEST
    )
    if (int(found[1]), int(found[2])) >= wanted:
        return 0
    why = "its adapters have channels" if wanted == CHANNELS_SINCE else "its pragmas"
    return fail(f"Vitis {found[1]}.{found[2]} is too old: {wanted[0]}.{wanted[1]} is needed, {why}")


def main(arguments):
    command, rest = (arguments[1], arguments[2:]) if len(arguments) > 2 else ("", [])
    if command == "version" and len(rest) == 1:
        return version(Design(rest[0]), sys.stdin.read())
    if command == "prepare" and len(rest) in (3, 4):
        return prepare(Design(rest[0]), rest[1], rest[2], rest[3] if len(rest) > 3 else "")
    if command == "compare" and len(rest) == 2:
        return compare(Design(rest[0]), Path(rest[1]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv))
