#!/usr/bin/env python3
"""Puts registers in front of the channels that cross between dies.

usage: crossings.py KERNEL.xo FLOORPLAN.tcl ST_CROSSING.v

FLOORPLAN.tcl lists the registers of each such channel: NAME_cross_0 is on the die of its writer,
the last one on that of its reader.  KERNEL.xo is an archive with the Verilog that the vendor's
compiler made.  The FIFO of a channel is NAME_U there: what its writer is connected to is connected
to the registers instead, and these to the FIFO.  The archive is replaced, or left as it is if a
channel is not found in it.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

MARK = "module st_crossing_exit"
WRITER = ("if_write", "if_din", "if_full_n")


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


def registers(channel, crossings, width, fifo):
    """The text of the registers of a channel."""
    name = f"{channel}_between"
    lines = [f"wire {name}_full_n;\n"]
    for at in range(crossings + 1):
        lines.append(f"wire {name}_write_{at};\nwire [{width - 1}:0] {name}_word_{at};\n")
        if at < crossings:
            lines.append(f"wire {name}_room_{at};\n")
    for at in range(crossings + 1):
        kind, ports = ports_of(name, crossings, at, fifo)
        sizes = f".WIDTH({width})" + (f", .CROSSINGS({crossings})" if kind == "entry" else "")
        listed = ",\n".join(f"    .{port}({wire})" for port, wire in ports.items())
        lines.append(f"st_crossing_{kind} #({sizes}) {channel}_cross_{at}(\n{listed}\n);\n")
    return "".join(lines)


def spliced(verilog, channel, crossings):
    """The text with registers in front of the channel; None: it does not have this channel."""
    begin = rf"^\s*\w+(?:\s+#\([^;]*?\))?\s+{re.escape(channel)}_U\s*\((.*?)\);"
    found = re.search(begin, verilog, re.M | re.S)
    fifo = dict(re.findall(r"\.(\w+)\s*\(\s*([^()]*?)\s*\)", found[1])) if found else {}
    width = width_of(verilog, fifo.get("if_dout", ""))
    if width is None or not all(fifo.get(port) for port in ("clk", "reset", *WRITER)):
        return None
    name, instance = f"{channel}_between", found[0]
    wires = (f"{name}_write_{crossings}", f"{name}_word_{crossings}", f"{name}_full_n")
    for port, wire in zip(WRITER, wires, strict=True):
        instance = re.sub(rf"\.{port}\s*\([^()]*\)", f".{port}({wire})", instance)
    lines = registers(channel, crossings, width, fifo)
    return verilog[: found.start()] + "\n" + lines + instance + verilog[found.end() :]


def patched(files, crossings, library):
    """The changed files, {name: text}, and the channels that no file has."""
    texts, missing = {}, []
    for channel, boundaries in crossings.items():
        for name in files:
            text = spliced(texts.get(name, files[name]), channel, boundaries)
            if text is not None:
                texts[name] = text
                break
        else:
            missing.append(channel)
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
    crossings = crossings_of(floorplan.read_text())
    with zipfile.ZipFile(archive) as old:
        names = [name for name in old.namelist() if name.endswith(".v")]
        files = {name: old.read(name).decode("latin-1") for name in names}
    if any(MARK in text for text in files.values()):
        return 0
    texts, missing = patched(files, crossings, library.read_text())
    if missing:
        print(
            f"crossings.py: {archive}: no FIFO NAME_U between a writer and a reader for "
            f"{', '.join(missing)}; it is left as it is",
            file=sys.stderr,
        )
        return 1
    replace(archive, texts)
    print(f"crossings.py: {archive}: registers in front of {len(crossings)} channels between dies")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
