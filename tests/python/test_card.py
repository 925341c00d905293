"""A design on a card: a library with the functions of XRT that runs the design's C++, and an xclbin
as the vendor's header lays it out.
"""

import json
import os
import re
import struct
import subprocess
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

from streamtensor import api, core

ROOT = Path(__file__).resolve().parents[2]
XRT = Path("/usr/include/xrt")
BANKS = [f"HBM[{i}]" for i in range(32)] + ["DDR[0]"]


def xclbin(banks=BANKS, mhz=287, kilobytes=524288):
    memories = struct.pack("<i4x", len(banks)) + b"".join(
        struct.pack("<BB6xQQ16s", 1, 1, kilobytes, i << 29, tag.encode())
        for i, tag in enumerate(banks)
    )
    clocks = struct.pack("<h", 2) + b"".join(
        struct.pack("<HB5x128s", frequency, kind, b"clock")
        for kind, frequency in ((2, 500), (1, mhz))
    )
    head = bytearray(456)
    head[:8] = b"xclbin2\0"
    struct.pack_into("<I", head, 448, 2)
    place = len(head) + 80
    head += struct.pack("<I16s4xQQ", 6, b"memory", place, len(memories))
    head += struct.pack("<I16s4xQQ", 11, b"clock", place + len(memories), len(clocks))
    return bytes(head) + memories + clocks


class Card:
    """A design of two layers and what stands in for a card with it."""

    def __init__(self, folder: Path):
        self.folder = folder
        torch.manual_seed(3)
        module = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.Linear(20, 5))
        x = torch.randn(6, 12)
        self.result = module(x).detach().numpy()
        exported = api.export(module, (x,))
        (folder / "m.mlir").write_text(exported.text)
        save_file(exported.weights, folder / "w.safetensors")
        options = ["--platform", "u55c"]
        source = core.Source(folder / "m.mlir")
        core.compile_design([source], folder / "w.safetensors", options, folder / "design")
        numpy.save(folder / "x.npy", x.numpy())
        assert self.run("cpu").returncode == 0
        self.manifest = json.loads((folder / "design" / "manifest.json").read_text())
        self.file = folder / "design" / "hls" / f"{self.manifest['top']}.hw.xclbin"
        library = folder / "libxrt_coreutil.so.2"
        fake = ROOT / "tests" / "c" / "card.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, fake, "-ldl"], check=True)

    def run(self, device="xrt:0", **environment):
        programs = list((self.folder / "cache").rglob("*.so"))
        (self.folder / "log").write_text("")
        return subprocess.run(
            [core.find_file(core.COMPILER), "run", "design", "--device", device]
            + ["--in", "arg0=x.npy", "--out", "result0=y.npy"],
            cwd=self.folder,
            env={
                **os.environ,
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                "XILINX_XRT": "/",
                "LD_LIBRARY_PATH": str(self.folder),
                "CARD_PROGRAM": str(programs[0]) if programs else "",
                "CARD_LOG": str(self.folder / "log"),
                **environment,
            },
            capture_output=True,
            text=True,
        )

    def noted(self, what):
        log = (self.folder / "log").read_text()
        return [(int(a), int(b)) for a, b in re.findall(rf"{what} (\d+) (\d+)", log)]


@pytest.fixture(scope="module")
def card(tmp_path_factory, core_built):
    return Card(tmp_path_factory.mktemp("card"))


def test_results_banks_and_clock(card):
    card.file.write_bytes(xclbin())
    done = card.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert "on xrt:0 at 287 MHz (compiled for 300), host" in done.stdout
    numpy.testing.assert_allclose(numpy.load(card.folder / "y.npy"), card.result, rtol=1e-4)
    channel = {port["argument"]: port["channel"] for port in card.manifest["ports"]}
    assert dict(card.noted("argument")) == channel and len(set(channel.values())) > 1


def test_group_of_the_narrowest_port(card):
    """Without memories of these names the runtime library chooses, for one of the arguments."""
    card.file.write_bytes(xclbin(["bank0"]))
    assert card.run().returncode == 0
    narrowest = {}
    for port in sorted(card.manifest["ports"], key=lambda p: p["channels"][1] - p["channels"][0]):
        narrowest.setdefault(port["buffer"], 100 + port["argument"])
    groups = {group for group, _ in card.noted("buffer")}
    assert groups == set(narrowest.values())
    card.file.write_bytes(xclbin(kilobytes=0))
    assert card.run().returncode == 0 and {g for g, _ in card.noted("buffer")} == groups


def test_argument_is_named(card):
    card.file.write_bytes(xclbin(["bank0"]))
    last = max(card.manifest["ports"], key=lambda port: port["argument"])
    assert last["argument"] > 0
    done = card.run(CARD_REFUSES=str(last["argument"]))
    assert done.returncode == 1
    assert f"argument {last['name']} of kernel {card.manifest['top']} cannot be set" in done.stderr
    done = card.run(CARD_REFUSES=str(-last["argument"]))
    assert done.returncode == 1
    assert f"argument {last['name']} of kernel" in done.stderr
    assert "is connected to no memory" in done.stderr


@pytest.mark.parametrize(
    "content, message",
    [
        (b"xclbin", "is no xclbin"),
        (xclbin()[:500], "is a damaged xclbin"),
        (xclbin()[:456] + bytes(79), "is a damaged xclbin"),
        (xclbin()[:480] + b"\xff" * 8 + xclbin()[488:], "is a damaged xclbin"),
    ],
)
def test_damaged_xclbin(card, content, message):
    card.file.write_bytes(content)
    done = card.run()
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.skipif(not (XRT / "xclbin.h").exists(), reason="libxrt-dev is not installed")
def test_layout_is_the_headers(tmp_path):
    source = (ROOT / "runtime" / "src" / "xclbin.c").read_text()
    number = dict(re.findall(r"\b([A-Z_]+) = (\d+)", source))
    said = {
        "offsetof(struct axlf, m_sections)": "HEADER_BYTES",
        "offsetof(struct axlf, m_header.m_numSections)": "COUNT_AT",
        "sizeof(struct axlf_section_header)": "SECTION_BYTES",
        "offsetof(struct axlf_section_header, m_sectionOffset)": "SECTION_PLACE_AT",
        "MEM_TOPOLOGY": "MEMORIES",
        "CLOCK_FREQ_TOPOLOGY": "CLOCKS",
        "offsetof(struct mem_topology, m_mem_data)": "MEMORY_AT",
        "sizeof(struct mem_data)": "MEMORY_BYTES",
        "offsetof(struct mem_data, m_tag)": "MEMORY_TAG_AT",
        "offsetof(struct clock_freq_topology, m_clock_freq)": "CLOCK_AT",
        "sizeof(struct clock_freq)": "CLOCK_BYTES",
        "CT_DATA": "DATA_CLOCK",
    }
    checks = [f'_Static_assert({c} == {number[name]}, "{name}");' for c, name in said.items()]
    text = "\n".join(["#include <stddef.h>", "#include <xclbin.h>", *checks, ""])
    (tmp_path / "layout.c").write_text(text)
    command = ["gcc", "-std=gnu11", "-fsyntax-only", "-I", str(XRT), "layout.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
