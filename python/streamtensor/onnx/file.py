"""Reads an ONNX file: its graph, its constants and where these lie, with every number checked.

The file may be anyone's: counts, extents and paths are held against what is there before memory is
taken or a file is opened.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import torch

from ..errors import Error

LEAST_OPSET = 11
LARGEST = 2**31  # bytes of a file, and of a constant
DOMAINS = ("", "ai.onnx")

# types that tensors may have, by their name in ONNX
TYPES = {
    "FLOAT": torch.float32,
    "DOUBLE": torch.float64,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "INT64": torch.int64,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT8": torch.int8,
    "UINT8": torch.uint8,
    "BOOL": torch.bool,
}
# of constants only: they become the type beside them
_WIDENED = {
    "INT4": torch.int8,
    "UINT4": torch.uint8,
    "INT2": torch.int8,
    "UINT2": torch.uint8,
    "UINT16": torch.int32,
    "UINT32": torch.int64,
}
_BITS = {"INT4": 4, "UINT4": 4, "INT2": 2, "UINT2": 2}


@dataclass(frozen=True)
class Input:
    name: str
    dtype: torch.dtype
    extents: tuple[int | str | None, ...] | None  # a name or None: known when it runs


@dataclass
class Graph:
    """A graph, or a branch or a loop's body within one."""

    nodes: list  # NodeProto
    constants: dict[str, torch.Tensor]
    inputs: list[Input]
    outputs: list[str]


@dataclass
class Model:
    name: str  # of the file
    graph: Graph
    opsets: dict[str, int]
    reader: "Reader" = field(repr=False)


def shown(name: str) -> str:
    """A name of the file for a message."""
    plain = "".join(each if each.isprintable() else "?" for each in name)
    return plain if len(plain) <= 100 else f"{plain[:99]}…"


def library():
    try:
        import onnx
    except ImportError:
        raise Error(
            "ONNX files are read with the package onnx, which is not installed",
            "`pip install onnx` installs it",
        ) from None
    return onnx


def read(path: Path) -> Model:
    onnx = library()
    if not path.is_file():
        raise Error(f"{path}: there is no such file", "accepted is FILE.onnx")
    size = path.stat().st_size
    if size > LARGEST:
        raise Error(f"{path} has {size} bytes", f"accepted are at most {LARGEST}")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except Exception as error:
        if type(error).__name__ != "DecodeError":
            raise
        raise Error(
            f"{path} is no ONNX file, or is cut off", "accepted is what onnx.save writes"
        ) from None
    if not proto.HasField("graph") or not proto.graph.node:
        raise Error(f"{path} has no graph with operators", "accepted is what onnx.save writes")
    opsets = _opsets(path, proto, onnx.defs.onnx_opset_version())
    if proto.functions:
        proto = _inlined(path, proto)
    reader = Reader(path)
    return Model(path.name, reader.graph(proto.graph), opsets, reader)


def _opsets(path: Path, proto, newest: int) -> dict[str, int]:
    found = {
        "" if each.domain in DOMAINS else each.domain: each.version for each in proto.opset_import
    }
    version = found.get("")
    if version is None or not LEAST_OPSET <= version <= newest:
        says = "names no opset" if version is None else f"is of opset {version}"
        raise Error(
            f"{path} {says}",
            f"accepted are opsets {LEAST_OPSET} to {newest}; "
            "onnx.version_converter converts others",
        )
    return found


def _inlined(path: Path, proto):
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(proto)
    except Exception as error:
        raise Error(
            f"{path}: its functions cannot be put in place of their calls ({type(error).__name__})",
            "accepted are graphs without functions of their own: onnx.inliner shows what is wrong",
        ) from None


def names_read(proto) -> set[str]:
    """What a node reads, with what the graphs in it read."""
    found = {name for name in proto.input if name}
    for each in proto.attribute:
        for graph in [each.g, *each.graphs]:
            for node in graph.node:
                found |= names_read(node)
            found |= {output.name for output in graph.output}
    return found


def type_name(number: int) -> str:
    types = library().TensorProto.DataType
    return types.Name(number) if number in types.values() else str(number)


def _names(proto):
    """All names in a graph; those that are no UTF-8 are bytes."""
    for each in (*proto.input, *proto.output, *proto.initializer):
        yield each.name
    for node in proto.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (each.name for each in node.attribute)


def dtype_of(number: int, what: str) -> torch.dtype:
    """The type of ONNX's number for it."""
    name = type_name(number)
    if name not in TYPES:
        raise Error(f"{what} has the type {name}", f"accepted are {', '.join(TYPES)}")
    return TYPES[name]


class Reader:
    """Reads the parts of one file."""

    def __init__(self, path: Path):
        self._path, self._folder, self.name = path, path.resolve().parent, path.name

    def graph(self, proto) -> Graph:
        if not all(isinstance(each, str) for each in _names(proto)):
            raise Error(f"{self._path} has a name that is no text", "accepted are names in UTF-8")
        if proto.sparse_initializer:
            name = proto.sparse_initializer[0].values.name
            raise Error(f"{self._path}: '{shown(name)}' is sparse", "accepted are dense constants")
        constants = {}
        for each in proto.initializer:
            if not each.name or each.name in constants:
                raise Error(
                    f"{self._path}: two constants are named '{shown(each.name)}'",
                    "accepted is a name of its own for each",
                )
            constants[each.name] = self.tensor(each, each.name)
        inputs = [self._input(each) for each in proto.input if each.name not in constants]
        return Graph(list(proto.node), constants, inputs, [each.name for each in proto.output])

    def _input(self, proto) -> Input:
        kind = proto.type.WhichOneof("value")
        if kind is None:  # of a loop's body: said by what is passed
            return Input(proto.name, torch.float32, None)
        if kind != "tensor_type":
            raise Error(
                f"{self._path}: input '{shown(proto.name)}' is a {kind.removesuffix('_type')}",
                "accepted are tensors",
            )
        kind = proto.type.tensor_type
        dtype = dtype_of(kind.elem_type, f"{self._path}: input '{shown(proto.name)}'")
        if not kind.HasField("shape"):
            return Input(proto.name, dtype, None)
        extents = [
            each.dim_value if each.HasField("dim_value") else each.dim_param or None
            for each in kind.shape.dim
        ]
        # some exporters write an extent that they do not know as -1 or 0
        known = [
            None if each == "?" or (isinstance(each, int) and each < 1) else each
            for each in extents
        ]
        return Input(proto.name, dtype, tuple(known))

    def tensor(self, proto, name: str) -> torch.Tensor:
        what = f"{self._path}: constant '{shown(name)}'"
        kind = type_name(proto.data_type)
        if kind not in TYPES and kind not in _WIDENED:
            accepted = ", ".join([*TYPES, *_WIDENED])
            raise Error(f"{what} has the type {kind}", f"accepted are {accepted}")
        if any(extent < 0 for extent in proto.dims):
            raise Error(f"{what} has the extents {list(proto.dims)}", "accepted are positive ones")
        self._check_size(proto, kind, what)
        if proto.data_location == library().TensorProto.EXTERNAL:
            proto = self._with_bytes(proto, what)
        try:
            found = library().numpy_helper.to_array(proto)
        except Exception as error:
            raise Error(
                f"{what} does not hold the numbers of its extents {list(proto.dims)}",
                f"accepted is what onnx.numpy_helper reads, which says: {_first(error)}",
            ) from None
        return _as_tensor(found, kind)

    def _check_size(self, proto, kind: str, what: str) -> None:
        """Its extents against the bytes that are there."""
        count = math.prod(proto.dims)
        wanted = _bytes(count, kind)
        if wanted > LARGEST:
            raise Error(f"{what} has {wanted} bytes", f"accepted are at most {LARGEST}")
        fields = (proto.float_data, proto.int32_data, proto.int64_data, proto.double_data)
        listed = sum(map(len, fields)) + len(proto.uint64_data)
        if proto.data_location == library().TensorProto.EXTERNAL:
            return
        there = len(proto.raw_data) if proto.HasField("raw_data") else listed
        if there < (wanted if proto.HasField("raw_data") else count * _BITS.get(kind, 8) // 8):
            raise Error(
                f"{what} has the extents {list(proto.dims)}, but {there} "
                f"{'bytes' if proto.HasField('raw_data') else 'numbers'}",
                f"accepted are {count} numbers",
            )

    def _with_bytes(self, proto, what: str):
        """The constant with the bytes of the file that it names."""
        entries = {each.key: each.value for each in proto.external_data}
        file = self._external(entries.get("location", ""), what)
        wanted = _bytes(math.prod(proto.dims), type_name(proto.data_type))
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
        except ValueError:
            offset, length = -1, 0
        size = file.stat().st_size
        if offset < 0 or length != wanted or offset + length > size:
            raise Error(
                f"{what} is said to lie at byte {entries.get('offset', 0)} of {file.name}, "
                f"{entries.get('length', wanted)} bytes of {size}",
                f"accepted are {wanted} bytes within the file",
            )
        with file.open("rb") as opened:
            opened.seek(offset)
            made = type(proto)(data_type=proto.data_type, dims=proto.dims)
            made.raw_data = opened.read(length)
        return made

    def _external(self, location: str, what: str) -> Path:
        """The file, which has to lie in the model's folder."""
        file = (self._folder / location).resolve()
        if not location or self._folder not in file.parents:
            raise Error(
                f"{what} is said to lie in '{shown(location)}', outside of the model's folder",
                "accepted is a file in the folder of the model",
            )
        if not file.is_file():
            raise Error(
                f"{what} lies in '{shown(location)}', which is not there",
                f"accepted is that file in {self._folder}",
            )
        return file


def _bytes(count: int, kind: str) -> int:
    if kind in _BITS:
        return (count * _BITS[kind] + 7) // 8
    bits = "".join(each for each in kind if each.isdigit())
    return count * {"FLOAT": 4, "DOUBLE": 8, "BOOL": 1}.get(kind, int(bits or 8) // 8)


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _as_tensor(array: numpy.ndarray, kind: str) -> torch.Tensor:
    if kind in _WIDENED:
        wide = torch.empty(0, dtype=_WIDENED[kind]).numpy().dtype
        array = array.astype(wide)
    if kind == "BFLOAT16":
        bits = numpy.array(array).view(numpy.int16)
        return torch.from_numpy(bits).view(torch.bfloat16)
    array = numpy.array(array, order="C").astype(array.dtype.newbyteorder("="))
    return torch.from_numpy(array)
