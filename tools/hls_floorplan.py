"""Rule E5 of hls_lint.py: floorplan.tcl names every process and every channel of the text once, a
channel on the die of its reader, what reads or writes memory on one die, and for every boundary
between the dies of a channel's writer and its reader a register on both sides.
"""

import re
from pathlib import Path

from hls_text import Finding

SEVERAL_DIES = ("xcu55c", "xcu280", "xcvu9p")


def placed(text):
    """[(line, die, cell)] of floorplan.tcl."""
    found, die = [], None
    for number, line in enumerate(text.splitlines(), 1):
        begin = re.fullmatch(r"place (\d+) \{", line)
        if begin:
            die = int(begin[1])
        elif line == "}":
            die = None
        elif die is not None and line.strip() and "*" not in line:
            found.append((number, die, line.strip()))
    return found


def cells_of(code):
    """(channels, [(process, arguments)]) of the dataflow regions, in order."""
    channels = re.findall(r"^\s+hls::stream(?:_of_blocks)?<.*> (\w+)(?:\(\"| ST_NAMED)", code, re.M)
    calls = re.findall(r"^\s+ST_PROCESS\((\w+)((?:, [\w\[\]]+)*)\);", code, re.M)
    return channels, [(name, arguments.split(", ")[1:]) for name, arguments in calls]


def functions_of(code):
    """{name: (parameters, body)}"""
    found = re.findall(r"^static void (\w+)\(([^{;]*)\)\n\{\n(.*?)^\}", code, re.M | re.S)
    names = r"(\w+)(?:\[[^\]]*\])*(?:,|$)"
    return {name: (re.findall(names, head), body) for name, head, body in found}


def writes(functions, name, parameter):
    """Does a function, or one that it calls, write this parameter?"""
    parameters, body = functions.get(name, ([], ""))
    if re.search(rf"\b{parameter}\.write\(|write_lock<[^;]*\({parameter}\)", body):
        return True
    for called, given in re.findall(r"^\s+(\w+)\((.*)\);$", body, re.M):
        given = given.split(", ")
        if called in functions and called != name and parameter in given:
            own = functions[called][0][given.index(parameter)]
            if writes(functions, called, own):
                return True
    return False


def ends_of(code, calls):
    """{channel: [writer, reader]}, from what the functions of the processes do with parameters."""
    ends, functions = {}, functions_of(code)
    for name, arguments in calls:
        for parameter, argument in zip(functions.get(name, ([],))[0], arguments, strict=False):
            side = 0 if writes(functions, name, parameter) else 1
            ends.setdefault(argument, [None, None])[side] = f"{name}_U0"
    return ends


def check_crossing(name, ends, dies, report):
    """A channel is with its reader, and has registers from die to die."""
    own, begin, end = (dies.get(cell) for cell in (f"{name}_U", *ends))
    if own is None or begin is None or end is None:
        return
    if own[0] != end[0]:
        report(own[1], f"{name} is on die {own[0]}, {ends[1]} on die {end[0]}")
    step = 1 if end[0] > begin[0] else -1
    path = list(range(begin[0], end[0] + step, step)) if begin[0] != end[0] else []
    found = []
    while f"{name}_cross_{len(found)}" in dies:
        found.append(dies[f"{name}_cross_{len(found)}"][0])
    if found != path:
        report(own[1], f"{name} crosses dies {path}, and has registers on {found}")


def check_control(calls, ends, dies, report):
    """What the kernel starts itself, and what it waits for, is on the die of its control: a start
    between dies passes through a FIFO, to which crossings.py adds registers.
    """
    names = {f"{name}_U0" for name, _ in calls}
    first, last = names - {reader for _, reader in ends}, names - {writer for writer, _ in ends}
    for cell in sorted(first | last):
        if dies.get(cell, (0, 0))[0] != 0:
            kind = "read" if cell in first else "write"
            report(dies[cell][1], f"{cell} has no channel to {kind}, and is not on die 0")


def check_floorplan(path, code):
    """The findings of one floorplan.tcl and the text it is for."""
    findings, dies = [], {}

    def report(line, message):
        findings.append(Finding(str(path), line, "E5", message))

    channels, calls = cells_of(code)
    wanted = {f"{name}_U0" for name, _ in calls} | {f"{name}_U" for name in channels}
    for line, die, cell in placed(Path(path).read_text()):
        if cell not in wanted and re.sub(r"_cross_\d+$", "_U", cell) not in wanted:
            report(line, f"{cell} is no process or channel of the code")
        elif cell in dies:
            report(line, f"{cell} is placed twice")
        dies[cell] = (die, line)
    for cell in sorted(wanted - dies.keys()):
        report(1, f"{cell} is on no die")
    ends = ends_of(code, calls)
    for name in channels:
        check_crossing(name, ends.get(name, [None, None]), dies, report)
    users = [f"{name}_U0" for name, own in calls if any(a.startswith("m_") for a in own)]
    if len({dies[cell][0] for cell in users if cell in dies}) > 1:
        report(1, "processes with memory ports are on several dies")
    check_control(calls, [ends[name] for name in channels if name in ends], dies, report)
    return findings


def check_dies(folder, link, code):
    """A kernel on a part of several dies is on one of them, or has a floorplan."""
    path = folder / "floorplan.tcl"
    if path.is_file():
        return check_floorplan(path, code)
    makefile = folder / "Makefile"
    part = re.search(r"^PART = (\w+)", makefile.read_text(), re.M) if makefile.is_file() else None
    if not part or not part[1].startswith(SEVERAL_DIES) or "slr=" in link.read_text():
        return []
    return [Finding(str(path), 1, "E5", "missing, and link.cfg names no die")]
