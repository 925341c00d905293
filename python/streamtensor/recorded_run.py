"""A run of an emitted design on the CPU that also keeps what its kernels send: a copy of its C++
whose FIFOs also write their words into files.

The order of a kernel's words stands in the compiler's dump of the stream level (docs/ir.md): an
itensor sends tiles at the offsets that an affine map gives.
"""

import ast
import functools
import hashlib
import json
import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

from .errors import Error

DUMP = "*-mark_last_chunk_only.mlir"  # the last dump of the stream level
# in front of the design's text; FIFOs are of these classes
_RECORDER = r"""#include "hls_stream.h"
#include <cstdio>
namespace st_recorded {
template <class T, int DEPTH = 0> class stream;
template <class T> class stream<T, 0> : public hls::stream<T, 0> {
	std::FILE *file;
public:
	explicit stream(const char *title, std::size_t depth = 2) : hls::stream<T, 0>(title, depth),
		file(std::fopen((std::string(FOLDER) + "/" + title).c_str(), "wb")) {}
	~stream() { if (file) std::fclose(file); }
	void write(const T &word) {
		hls::stream<T, 0>::write(word);
		if (file) std::fwrite(&word, sizeof word, 1, file);
	}
};
template <class T, int DEPTH> class stream : public stream<T, 0> {
public:
	explicit stream(const char *title) : stream<T, 0>(title, DEPTH) {}
};
}
"""
_KINDS = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
}  # fmt: skip
_KERNEL = re.compile(r'(%\d+) = "stream\.kernel"\(.*?[,{] ?name = "(\w+)"')
_CONVERT = re.compile(r'(%\d+) = "stream\.convert"\((%\d+)\)')
_ORDER = re.compile(
    r"!stream\.itensor<(?:vector<(?P<tile>[\dx]+)x)?(?P<kind>\w+)>?, \[(?P<trips>[\d, ]*)\], "
    r"\[(?P<steps>[\d, ]*)\], affine_map<\((?P<dims>[^)]*)\) -> \((?P<map>[^>]*)\)>>$"
)
_FUNCTION = re.compile(r"^static void (p\d+_(\w+))\((.*)\)$", re.M)
_PROCESS = re.compile(r"ST_PROCESS\((p\d+_\w+), ([^)]*)\);")


@dataclass(frozen=True)
class Order:
    """In which order a stream sends a tensor."""

    shape: tuple[int, ...]
    kind: str
    positions: numpy.ndarray  # of each number sent, in the tensor in row-major order

    @classmethod
    def read(cls, line: str) -> "Order | None":
        """That of the result of a line; None: of a run-time extent, or not of a plain type."""
        tensor = re.search(r"[,{] ?tensor = tensor<((?:\d+x)*)\w+>", line)
        found = _ORDER.search(line.rstrip())
        if not tensor or not found or found["kind"] not in _KINDS:
            return None
        shape = tuple(int(each) for each in tensor[1].split("x") if each)
        tile = [int(each) for each in (found["tile"] or "").split("x") if each]
        trips, steps = (
            [int(each) for each in found[name].split(",") if each.strip()]
            for name in ("trips", "steps")
        )
        counters = numpy.indices(trips or [1]).reshape(max(len(trips), 1), -1)
        known = {
            name.strip(): counter * step
            for name, counter, step in zip(found["dims"].split(","), counters, steps)
        }
        words = counters.shape[1]
        offsets = [_affine(text, known, words) for text in found["map"].split(",") if text.strip()]
        if len(offsets) != len(shape) or (tile and len(tile) != len(shape)):
            return None
        inside = numpy.indices(tile or [1] * len(shape)).reshape(len(shape), -1)
        position = numpy.zeros((words, inside.shape[1] if shape else 1), numpy.int64)
        for extent, offset, within in zip(shape, offsets, inside):
            at = offset[:, None] + within[None]
            if at.size and at.max() >= extent:
                return None
            position = position * extent + at
        return cls(shape, found["kind"], position.reshape(-1))

    def divides(self, sent: bytes) -> bool:
        """Is it as long as a whole number of tensors?"""
        numbers, rest = divmod(len(sent), _KINDS[self.kind].itemsize * len(self.positions))
        return numbers > 0 and rest == 0

    def tensors(self, sent: bytes) -> torch.Tensor:
        """What was sent as tensors, one behind the other: one for each layer of a rolled loop."""
        values = torch.frombuffer(bytearray(sent), dtype=_KINDS[self.kind])
        values = values.reshape(-1, len(self.positions))
        made = torch.zeros(len(values), math.prod(self.shape), dtype=values.dtype)
        made[:, torch.from_numpy(self.positions)] = values
        return made.reshape(-1, *self.shape)


def _affine(text: str, known: dict[str, numpy.ndarray], words: int) -> numpy.ndarray:
    """A sum of products of dims and numbers."""

    def value(node):
        if isinstance(node, ast.BinOp):
            function = {ast.Add: numpy.add, ast.Sub: numpy.subtract, ast.Mult: numpy.multiply}
            return function[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        return known[node.id] if isinstance(node, ast.Name) else node.value

    return numpy.broadcast_to(value(ast.parse(text.strip(), mode="eval").body), (words,))


def orders(dump: Path) -> dict[str, dict[str, Order]]:
    """Of each kernel, by name: how the names of its FIFOs begin -> the order of the result in them;
    `s_convert` is that behind a converter folded into the kernel.
    """
    found: dict[str, dict[str, Order]] = {}
    kernel_of: dict[str, str] = {}
    for line in dump.read_text().splitlines():
        if kernel := _KERNEL.search(line):
            name = kernel[2]
            kernel_of[kernel[1]] = name
            if order := Order.read(line):
                found.setdefault(name, {})[f"s_{name}"] = order
        elif (convert := _CONVERT.search(line)) and convert[2] in kernel_of:
            if order := Order.read(line):
                found.setdefault(kernel_of[convert[2]], {})["s_convert"] = order
    return found


@dataclass(frozen=True)
class ResultChannel:
    """The FIFO through which a process sends its result."""

    process: str
    kernel: str
    channel: str


def result_channels(source: str) -> list[ResultChannel]:
    """Of each process of a design's text, the first FIFO that it writes: those are called y…."""
    writes = {}
    for process, kernel, parameters in _FUNCTION.findall(source):
        names = [each.split()[-1].lstrip("&*") for each in parameters.split(", ")]
        writes[process] = kernel, [at for at, name in enumerate(names) if name.startswith("y")]
    found = []
    for process, passed in _PROCESS.findall(source):
        kernel, places = writes.get(process, ("", []))
        if places:
            found.append(ResultChannel(process, kernel, passed.split(", ")[places[0]]))
    return found


def source_of(folder: Path) -> Path:
    """The C++ text of a design."""
    found = sorted((folder / "hls").glob("top_*.cpp"))
    if len(found) != 1:
        raise Error(f"{folder}: there is no text of a design", "compile it again")
    return found[0]


def _copy(source: str, destination: str) -> None:
    try:
        Path(destination).hardlink_to(source)
    except OSError:
        shutil.copy2(source, destination)


def instrumented(folder: Path, copy: Path, sent: Path) -> None:
    """A copy of the design whose FIFOs write their words into files of the folder `sent`."""
    shutil.copytree(folder, copy, copy_function=_copy)
    source = source_of(copy)
    text = source.read_text()
    name = json.dumps(str(sent), ensure_ascii=False)
    source.unlink()  # else the design's own would change
    source.write_text(
        _RECORDER.replace("FOLDER", name) + text.replace("hls::stream<", "st_recorded::stream<")
    )
    rehash(copy, source)


def rehash(folder: Path, changed: Path) -> None:
    """Gives the changed file and the manifest that lists it their hashes."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    digest = functools.partial(hashlib.blake2b, digest_size=32)
    manifest["files"][str(changed.relative_to(folder))] = digest(changed.read_bytes()).hexdigest()
    del manifest["hash"]
    text = json.dumps(manifest)[:-1]
    path.unlink()
    path.write_text(f'{text},\n"hash":"{digest(text.encode()).hexdigest()}"}}\n')
