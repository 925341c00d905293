#!/usr/bin/env python3
"""Puts registers in front of the channels that cross between dies, and into the control wires.

usage: crossings.py KERNEL.xo FLOORPLAN.tcl ST_CROSSING.v

FLOORPLAN.tcl lists the registers of each such channel: NAME_cross_0 is on the die of its writer,
the last one on that of its reader.  KERNEL.xo is an archive with the Verilog that the vendor's
compiler made.  The FIFO of a channel is NAME_U there: what its writer is connected to is connected
to the registers instead, and these to the FIFO.  The archive is replaced, or left as it is if a
channel is not found in it.

A process is started through a FIFO start_for_NAME_U0_U by one that writes to it: where the two are
on different dies this FIFO gets the same registers.  The kernel is idle when all processes are: the
wires from each other die are joined there, and come to die 0 through registers.  The names of these
registers end in _on_die_NUMBER, by which FLOORPLAN.tcl places them.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

MARK = "module st_crossing_exit"
WRITER = ("if_write", "if_din", "if_full_n")


def dies_of(floorplan):
    """{process: die}"""
    dies = {}
    for die, names in re.findall(r"^place (\d+) \{\n(.*?)^\}", floorplan, re.M | re.S):
        dies |= {name: int(die) for name in re.findall(r"^\t(\w+)_U0$", names, re.M)}
    return dies


def crossings_of(floorplan):
    """{channel: boundaries} in the order of the text."""
    found = {}
    for name, number in re.findall(r"^\t(\w+)_cross_(\d+)$", floorplan, re.M):
        found[name] = max(found.get(name, 0), int(number))
    return found


def width_of(verilog, wire):
    """Bits of a wire that the module declares; None: it does not."""
    found = re.search(rf"^\s*wire\s+(?:\[(\d+):0\]\s*)?{re.escape(wire)};", verilog, re.M)
    return None if found is None else int(found[1] or 0) + 1


def ports_of(name, crossings, at, fifo):
    """The kind of one of the registers, and what its ports are connected to."""
    ports = {"clk": fifo["clk"], "reset": fifo["reset"]}
    if at == 0:
        ports |= {port: fifo[port] for port in WRITER}
    else:
        ports |= {"write_in": f"{name}_write_{at - 1}", "word_in": f"{name}_word_{at - 1}"}
    if at == crossings:
        ports |= {"room": f"{name}_room_{at - 1}", "if_write": f"{name}_write_{at}"}
        return "entry", ports | {"if_din": f"{name}_word_{at}", "if_full_n": f"{name}_full_n"}
    ports |= {port: f"{name}_{port}_{at}" for port in ("write", "word", "room")}
    return ("between", ports | {"room_in": f"{name}_room_{at - 1}"}) if at else ("exit", ports)


def instance_of(module, name, ports):
    listed = ",\n".join(f"    .{port}({wire})" for port, wire in ports.items())
    return f"{module} {name}(\n{listed}\n);\n"


def registers(channel, cells, width, fifo):
    """The text of the registers of a channel, which have these names."""
    name, crossings = f"{channel}_between", len(cells) - 1
    lines = [f"wire {name}_full_n;\n"]
    for at in range(crossings + 1):
        lines.append(f"wire {name}_write_{at};\nwire [{width - 1}:0] {name}_word_{at};\n")
        if at < crossings:
            lines.append(f"wire {name}_room_{at};\n")
    for at, cell in enumerate(cells):
        kind, ports = ports_of(name, crossings, at, fifo)
        sizes = f".WIDTH({width})" + (f", .CROSSINGS({crossings})" if kind == "entry" else "")
        lines.append(instance_of(f"st_crossing_{kind} #({sizes})", cell, ports))
    return "".join(lines)


def spliced(verilog, channel, cells):
    """The text with registers in front of the channel; None: it does not have this channel."""
    begin = rf"^\s*\w+(?:\s+#\([^;]*?\))?\s+{re.escape(channel)}_U\s*\((.*?)\);"
    found = re.search(begin, verilog, re.M | re.S)
    fifo = dict(re.findall(r"\.(\w+)\s*\(\s*([^()]*?)\s*\)", found[1])) if found else {}
    width = width_of(verilog, fifo.get("if_dout", ""))
    if width is None or not all(fifo.get(port) for port in ("clk", "reset", *WRITER)):
        return None
    name, instance, last = f"{channel}_between", found[0], len(cells) - 1
    wires = (f"{name}_write_{last}", f"{name}_word_{last}", f"{name}_full_n")
    for port, wire in zip(WRITER, wires, strict=True):
        instance = re.sub(rf"\.{port}\s*\([^()]*\)", f".{port}({wire})", instance)
    lines = registers(channel, cells, width, fifo)
    return verilog[: found.start()] + "\n" + lines + instance + verilog[found.end() :]


def path_of(begin, end):
    """The dies from one to another."""
    step = 1 if end > begin else -1
    return list(range(begin, end + step, step))


def with_starts(verilog, dies):
    """The text with registers in front of the FIFOs that bring a start to another die."""
    fifo = r"^\s*\w+\s+(start_for_(\w+)_U0)_U\s*\("
    writer = r"[^;]*?\.if_write\s*\(\s*(\w+)_U0_start_write\s*\)"
    for start, process, by in re.findall(fifo + writer, verilog, re.M):
        begin, end = dies.get(by), dies.get(process)
        if begin is None or end is None or begin == end:
            continue
        path = enumerate(path_of(begin, end))
        cells = [f"{start}_cross_{at}_on_die_{die}" for at, die in path]
        verilog = spliced(verilog, start, cells) or verilog
    return verilog


def idle_of(die, terms):
    """What joins the terms on a die and brings them to die 0, and the wire that it arrives on."""
    name = f"idle_of_die_{die}"
    path = path_of(die, 0)
    places = [path[0], *(at for at in path[1:-1] for _ in range(2)), path[-1]]
    lines = [f"wire {name}_0 = {' & '.join(terms)};\n"]
    for at, place in enumerate(places):
        ports = {"clk": "ap_clk", "level_in": f"{name}_{at}", "level": f"{name}_{at + 1}"}
        cell = f"{name}_cross_{at}_on_die_{place}"
        lines.append(f"wire {name}_{at + 1};\n" + instance_of("st_crossing_level", cell, ports))
    return "".join(lines), f"{name}_{len(places)}"


def with_idle(verilog, dies):
    """The text whose ap_idle comes from the other dies through registers."""
    found = re.search(r"^assign ap_idle = \((.* & .*)\);$", verilog, re.M)
    if not found:
        return verilog
    by_die, lines = {}, ""
    for term in found[1].split(" & "):
        process = re.fullmatch(r"(\w+)_U0_ap_idle", term)
        by_die.setdefault(dies.get(process[1], 0) if process else 0, []).append(term)
    terms = by_die.pop(0, [])
    for die in sorted(by_die):
        text, wire = idle_of(die, by_die[die])
        lines, terms = lines + text, [*terms, wire]
    joined = f"{lines}assign ap_idle = ({' & '.join(terms)});"
    return verilog[: found.start()] + joined + verilog[found.end() :] if lines else verilog


def patched(files, floorplan, library):
    """The changed files, {name: text}, and the channels that no file has."""
    texts, missing, dies = {}, [], dies_of(floorplan)
    for channel, boundaries in crossings_of(floorplan).items():
        cells = [f"{channel}_cross_{at}" for at in range(boundaries + 1)]
        for name in files:
            text = spliced(texts.get(name, files[name]), channel, cells)
            if text is not None:
                texts[name] = text
                break
        else:
            missing.append(channel)
    for name, text in list(texts.items()):
        texts[name] = with_idle(with_starts(text, dies), dies)
    if texts:
        first = next(iter(texts))
        texts[first] += "\n" + library
    return texts, missing


def replace(archive, texts):
    """Writes the archive anew with these files changed."""
    part = archive.with_name(archive.name + ".part")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            text = texts.get(entry.filename)
            new.writestr(entry, old.read(entry) if text is None else text.encode("latin-1"))
    os.replace(part, archive)


def main(arguments):
    if len(arguments) != 4:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    archive, floorplan, library = map(Path, arguments[1:])
    with zipfile.ZipFile(archive) as old:
        names = [name for name in old.namelist() if name.endswith(".v")]
        files = {name: old.read(name).decode("latin-1") for name in names}
    if any(MARK in text for text in files.values()):
        return 0
    texts, missing = patched(files, floorplan.read_text(), library.read_text())
    if missing:
        print(
            f"crossings.py: {archive}: no FIFO NAME_U between a writer and a reader for "
            f"{', '.join(missing)}; it is left as it is",
            file=sys.stderr,
        )
        return 1
    replace(archive, texts)
    cells = "".join(texts.values())
    starts = len(re.findall(r"\bstart_for_\w+_cross_0_on_die_\d+\(", cells))
    channels = len(re.findall(r"_cross_0\(", cells))
    print(
        f"crossings.py: {archive}: registers in front of {channels} channels and {starts} starts "
        "between dies"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
