"""Rule E5 of hls_lint.py: floorplan.tcl names every process and every channel of the text once, a
channel on the die of the later of its processes, and what reads or writes memory on one die.
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
        elif die is not None and line.strip():
            found.append((number, die, line.strip()))
    return found


def cells_of(code):
    """(channels, [(process, arguments)]) of the dataflow regions, in order."""
    channels = re.findall(r"^\s+hls::stream(?:_of_blocks)?<.*> (\w+)(?:\(\"| ST_NAMED)", code, re.M)
    calls = re.findall(r"^\s+ST_PROCESS\((\w+)((?:, [\w\[\]]+)*)\);", code, re.M)
    return channels, [(name, arguments.split(", ")[1:]) for name, arguments in calls]


def check_floorplan(path, code):
    """The findings of one floorplan.tcl and the text it is for."""
    findings, dies = [], {}

    def report(line, message):
        findings.append(Finding(str(path), line, "E5", message))

    channels, calls = cells_of(code)
    wanted = {f"{name}_U0" for name, _ in calls} | {f"{name}_U" for name in channels}
    for line, die, cell in placed(Path(path).read_text()):
        if cell not in wanted:
            report(line, f"{cell} is no process or channel of the code")
        elif cell in dies:
            report(line, f"{cell} is placed twice")
        dies[cell] = (die, line)
    for cell in sorted(wanted - dies.keys()):
        report(1, f"{cell} is on no die")
    last, memory = {}, {}
    for name, arguments in calls:
        for argument in arguments:
            last[argument] = f"{name}_U0"
        if any(argument.startswith("m_") for argument in arguments):
            memory[f"{name}_U0"] = dies.get(f"{name}_U0")
    for name in channels:
        own, reader = dies.get(f"{name}_U"), dies.get(last.get(name))
        if own and reader and own[0] != reader[0]:
            report(own[1], f"{name} is on die {own[0]}, {last[name]} on die {reader[0]}")
    if len({place[0] for place in memory.values() if place}) > 1:
        report(1, "processes with memory ports are on several dies")
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
