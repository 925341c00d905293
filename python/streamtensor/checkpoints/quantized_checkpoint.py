"""Quantized weights of checkpoints: GPTQ, AWQ, compressed-tensors, torchao and FP8.

A layout stores a matrix as several tensors beside each other, NAME.qweight, NAME.scales and the
like. Here they are one tensor NAME.weight, whose integers, scales and zero points can be asked for:

    weight[o, i] = (q[o, i] - zero[o, g]) * scale[o, g]        g: the group of input i
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..errors import Error
from ..quantize import Scheme, Weight

Read = Callable[[str], torch.Tensor]
_ACCEPTED = (
    "accepted are gptq, awq, compressed-tensors, torchao and fp8, or the unquantized folder of the "
    "model"
)
_OF_F16 = 2.0**-11  # to which a normal f16 rounds, relative
# where AWQ puts the eight numbers of a word
_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)


@dataclass(frozen=True)
class Packed:
    """A matrix as a checkpoint has it, outputs x inputs."""

    q: torch.Tensor  # integers, or floats of 8 bits
    scale: torch.Tensor  # outputs x groups
    zero: torch.Tensor | None  # outputs x groups; None: all are zero
    group: torch.Tensor  # of each input, the number of its group
    kind: str | None = None  # what the checkpoint calls its form, if it has several

    shift: torch.Tensor | None = None  # outputs x groups: a real number that is added

    def value(self) -> torch.Tensor:
        q = self.q.float()
        if self.zero is not None:
            q = q - self.zero.float()[:, self.group]
        found = q * self.scale.float()[:, self.group]
        return found if self.shift is None else found + self.shift.float()[:, self.group]

    def group_size(self) -> int | None:
        """Inputs of a group where groups are neighbours, in order; None: they are not."""
        inputs, groups = self.q.shape[1], self.scale.shape[1]
        size = -(-inputs // groups)
        in_order = torch.arange(inputs) // size
        return size if torch.equal(self.group, in_order) else None

    def weight(self, bits: int, group: int | None, zeros: bool = False) -> Weight | None:
        """The same integers of so many bits with scales of such groups, in f16, and with zero
        points if the scheme has them (zeros); None: they have no such form.
        """
        if self.shift is not None:
            return None
        q, scale = self.q.float(), self.scale.half()
        size, wanted = self.group_size(), min(group or q.shape[1], q.shape[1])
        if size is None or (size % wanted and size < q.shape[1]) or size < wanted:
            return None
        if not torch.allclose(scale.float(), self.scale.float(), rtol=_OF_F16, atol=0):
            return None
        if not bool(scale.isfinite().all()):
            return None
        first = self.group[torch.arange(0, q.shape[1], wanted)]
        zero = None if self.zero is None else self.zero.float()
        less = q if zero is None else q - zero[:, self.group]
        parts = (less, None) if _fits(less, bits) or not zeros else _signed(q, zero, bits)
        if not all(_fits(part, bits) for part in parts if part is not None):
            return None
        q, zero = (part if part is None else part.to(torch.int8) for part in parts)
        zero = zero if zero is None else zero[:, first].contiguous()
        return Weight(q, scale[:, first].contiguous(), group or q.shape[1], zero)


def _fits(numbers: torch.Tensor, bits: int) -> bool:
    """Whether all are integers of so many bits."""
    top = 2 ** (bits - 1)
    inside = -top <= float(numbers.min()) and float(numbers.max()) < top
    return inside and torch.equal(numbers, numbers.round())


def _signed(q: torch.Tensor, zero: torch.Tensor | None, bits: int):
    """Integers and zero points that are from 0 on, less half of what bits can count."""
    half = 2 ** (bits - 1)
    if zero is None or float(q.max()) < half:
        return q, zero
    return q - half, zero - half


def _unpacked(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The numbers of the words of the last dim, the lowest bits first."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return ((words.unsqueeze(-1) >> shifts) & (2**bits - 1)).flatten(-2)


class Parts:
    """The tensors that a matrix is stored as."""

    def __init__(self, base: str, held, read: Read):
        """base: how their names begin. held: the names of the tensors of the checkpoint."""
        self.base, self._held, self._read = base, held, read

    def __call__(self, end: str) -> torch.Tensor | None:
        """A tensor by the end of its name; None: there is none."""
        name = f"{self.base}.{end}"
        return self._read(name) if name in self._held else None


class Layout:
    """One way to store matrices: the ends of the names of their parts."""

    parts: tuple[str, ...] = ()
    first: tuple[str, ...] = ("qweight",)  # the parts by which a matrix is known

    def __init__(self, config: dict, metadata: dict[str, str]):
        """metadata: texts of the files about their tensors."""
        self.config, self.metadata = config, metadata

    def shape(self, extents: dict[str, list[int]], part: Parts) -> list[int]:
        """Of the matrix. extents: of its parts, by the ends of their names."""
        return extents["weight"]

    def packed(self, part: Parts) -> Packed:
        raise NotImplementedError


class Gptq(Layout):
    parts = ("qweight", "qzeros", "scales", "g_idx")

    def shape(self, extents, part):
        words, outputs = extents["qweight"]
        return [outputs, words * 32 // self.config["bits"]]

    def packed(self, part):
        bits = self.config["bits"]
        q = _unpacked(part("qweight").T.contiguous(), bits)
        scale = part("scales").T
        zero = _unpacked(part("qzeros"), bits).T[: scale.shape[0]]
        if self.config.get("checkpoint_format", "gptq") != "gptq_v2":
            zero = zero + 1  # it is stored less one
        if self.config.get("sym") and bool((zero != 2 ** (bits - 1)).any()):
            raise Error(
                "quantization_config: gptq: sym is true, but there are other zero points than "
                f"{2 ** (bits - 1)}",
                "accepted are the zero points that the configuration says",
            )
        group = part("g_idx")
        if group is None:
            group = _neighbours(q.shape[1], scale.shape[1], self.config.get("group_size"))
        return Packed(q, scale, zero, group.long())


class Awq(Layout):
    parts = ("qweight", "qzeros", "scales")

    def shape(self, extents, part):
        inputs, words = extents["qweight"]
        return [words * 8, inputs]

    def packed(self, part):
        bits, scale = self.config["bits"], part("scales").T
        order = torch.tensor(_AWQ_ORDER)

        def numbers(name):
            found = _unpacked(part(name), bits)
            return found.unflatten(-1, (-1, 8))[..., order].flatten(-2).T

        q = numbers("qweight")
        group = _neighbours(q.shape[1], scale.shape[1], self.config.get("group_size"))
        return Packed(q, scale, numbers("qzeros"), group)


class CompressedTensors(Layout):
    parts = (
        "weight_packed weight_scale weight_zero_point weight_shape weight_g_idx input_scale "
        "output_scale input_zero_point output_zero_point weight"
    ).split()
    first = ("weight_scale",)

    def shape(self, extents, part):
        return extents.get("weight") or part("weight_shape").tolist()

    def packed(self, part):
        packed, zero, group = part("weight_packed"), part("weight_zero_point"), part("weight_g_idx")
        if packed is None:
            q = part("weight")
        else:
            outputs, inputs = part("weight_shape").tolist()
            bits = self._weights().get("num_bits", 4)
            q = _unpacked(packed, bits)[:outputs, :inputs] - 2 ** (bits - 1)
            if zero is not None and zero.dtype == torch.int32:
                zero = _unpacked(zero.T.contiguous(), bits).T[:outputs] - 2 ** (bits - 1)
        rows, columns = self._weights().get("block_structure") or (None, None)
        columns = columns or self._weights().get("group_size")
        scale = _by_row(part("weight_scale"), q.shape[0], rows)
        if zero is not None:
            zero = _by_row(zero, q.shape[0], rows)
            zero = zero if bool(zero.float().any()) else None
        if group is None or bool((group < 0).any()):
            group = _neighbours(q.shape[1], scale.shape[1], columns)
        return Packed(q, scale, zero, group.long())

    def _weights(self) -> dict:
        """What the configuration says about weights: the same for all, as _check has seen."""
        groups = (self.config.get("config_groups") or {}).values()
        return next((group["weights"] for group in groups if group.get("weights")), {})


def _by_row(scale: torch.Tensor, outputs: int, rows: int | None) -> torch.Tensor:
    """Scales of a matrix, of its rows, or of blocks of rows, for every row."""
    scale = scale.reshape(-1, 1) if scale.dim() < 2 else scale
    each = rows or -(-outputs // scale.shape[0])
    return scale.repeat_interleave(each, 0)[:outputs] if scale.shape[0] != outputs else scale


def _neighbours(inputs: int, groups: int, size: int | None) -> torch.Tensor:
    """The group of each input where inputs beside each other make a group."""
    return torch.arange(inputs) // (
        size if groups > 1 and (size or 0) > 0 else -(-inputs // groups)
    )


class Fp8(Layout):
    """Floats of 8 bits with a scale for the matrix, for each row, or for each block of both."""

    parts = ("weight", "weight_scale_inv", "weight_scale", "input_scale", "activation_scale")
    first = ("weight_scale_inv", "weight_scale")

    def packed(self, part):
        q, scale = part("weight"), part("weight_scale_inv")
        scale = (part("weight_scale") if scale is None else scale).float()
        rows, columns = self.config.get("weight_block_size") or (None, None)
        scale = _by_row(scale, q.shape[0], rows)
        return Packed(q, scale, None, _neighbours(q.shape[1], scale.shape[1], columns))


def halves(words: torch.Tensor) -> torch.Tensor:
    """The signed numbers of 4 bits of the bytes of the last dim, the lower one first."""
    low, high = ((words << 4).to(torch.int8) >> 4), words.to(torch.int8) >> 4
    return torch.stack([low, high], -1).flatten(-2)


class Torchao(Layout):
    """Subclasses of tensors, whose parts and attributes the files' metadata names."""

    parts = tuple(
        f"_weight_{name}"
        for name in (
            "qdata scale zero_point act_pre_scale act_quant_scale act_quant_zero_point "
            "per_tensor_scale scale_and_zero"
        ).split()
    )
    first = ("_weight_qdata",)
    ACCEPTED = (
        "Int4Tensor",
        "Int4TilePackedTo4dTensor",
        "IntxUnpackedToInt8Tensor",
        "Int8Tensor",
        "Float8Tensor",
    )

    def shape(self, extents, part):
        kind, said = self._said(part)
        if kind == "Int4TilePackedTo4dTensor":
            return said["shape"]
        rows, columns = extents["_weight_qdata"]
        return [rows, columns * 2 if kind == "Int4Tensor" else columns]

    def _said(self, part: Parts) -> tuple[str, dict]:
        """What the metadata say about a tensor: its class, and what it has beside its parts."""
        name = f"{part.base}.weight"
        try:
            said = json.loads(self.metadata[name])
            kind, found = said["_type"], dict(said["_data"])
        except (KeyError, TypeError, ValueError):
            raise Error(
                f"'{name}': the file's metadata does not say what torchao's tensor it is",
                "accepted is what save_pretrained writes",
            ) from None
        if kind not in self.ACCEPTED:
            raise Error(
                f"'{name}': torchao's {kind} is not read",
                f"accepted are {', '.join(self.ACCEPTED)}",
            )
        extents = found.get("shape")
        whole = isinstance(extents, list) and all(isinstance(extent, int) for extent in extents)
        if kind == "Int4TilePackedTo4dTensor" and not (whole and len(extents) == 2):
            raise Error(f"'{name}': the file's metadata does not say the tensor's shape")
        return kind, found

    def packed(self, part):
        kind, said = self._said(part)
        return torchao_packed(kind, lambda name: part(f"_weight_{name}"), said.get("shape"))


def torchao_packed(kind: str, part: Read, shape) -> Packed:
    """A matrix from the parts of torchao's tensor of this class, and its own shape."""
    q, scale, zero = part("qdata"), part("scale"), part("zero_point")
    factor = part("act_pre_scale")  # of the inputs
    if factor is not None and bool((factor != 1).any()):
        raise Error("torchao's act_pre_scale, a factor of activations, is not read")
    if kind == "Int4TilePackedTo4dTensor":
        return _of_tiles(q, part("scale_and_zero"), shape)
    scale = scale.reshape(1, 1) if scale.numel() == 1 else scale
    if kind == "Int4Tensor":  # parts of groups have outputs last; the zero point is added
        q, scale, zero = halves(q), scale.T, zero.T
    scale = _by_row(scale, q.shape[0], None)
    group = _neighbours(q.shape[1], scale.shape[1], q.shape[1] // scale.shape[1])
    if zero is not None:
        zero = _by_row(zero.reshape(1, 1) if zero.numel() == 1 else zero, q.shape[0], None)
        zero = zero if bool(zero.float().any()) else None
    if kind == "Int4Tensor":
        return Packed(q, scale, None, group, kind, zero)
    return Packed(q, scale, zero, group, kind)


def _of_tiles(q: torch.Tensor, scale_and_zero: torch.Tensor, shape) -> Packed:
    """From tiles of 8 outputs in the order in which a warp's threads read them, padded.

    A word of thread t has the numbers of output t / 4 and inputs 2 (t % 4) + {0, 8, 16, 24}, and,
    in its upper half, of the inputs behind these.
    """
    outputs, inputs = shape
    digits = _unpacked(q, 4).unflatten(2, (8, 4)).unflatten(-1, (-1, 2, 2, 2))
    padded = digits.permute(0, 2, 1, 4, 6, 7, 3, 5).flatten(2).flatten(0, 1)
    size = padded.shape[1] // scale_and_zero.shape[0]
    groups = -(-inputs // size)
    scale, zero = (each[:groups, :outputs].T for each in scale_and_zero.unbind(-1))
    group = torch.arange(inputs) // size
    return Packed(
        padded[:outputs, :inputs] - 8, scale, None, group, "Int4TilePackedTo4dTensor", zero
    )


_LAYOUTS = {
    "torchao": Torchao,
    "gptq": Gptq,
    "awq": Awq,
    "compressed-tensors": CompressedTensors,
    "fp8": Fp8,
    "fbgemm_fp8": Fp8,
}


_FORMATS = (None, "dense", "pack-quantized", "int-quantized", "naive-quantized", "float-quantized")


def _check(place: str, config: dict) -> None:
    """Rejects what a layout stores in a way that is not read."""
    method, says = config.get("quant_method"), None
    groups = [group.get("weights") or {} for group in (config.get("config_groups") or {}).values()]
    if method not in _LAYOUTS:
        says = "weights of this method are not read"
    elif method in ("gptq", "awq"):
        config.setdefault("bits", config.get("w_bit", 4))
        accepted = (4,) if method == "awq" else (2, 4, 8)
        if config["bits"] not in accepted:
            says = f"weights of {config['bits']} bits are not read"
        elif method == "awq" and config.get("version", "gemm") not in ("gemm", "GEMM"):
            says = f"the version {config['version']!r} is not read"
    elif method == "compressed-tensors" and not any(groups):
        says = "there are no config_groups that say what the weights are"
    elif config.get("format") not in _FORMATS:
        says = f"the format {config['format']!r} is not read"
    elif len({group.get("num_bits") for group in groups}) > 1:
        says = "layers with different numbers of bits are not read"
    elif any(group.get("num_bits") not in (None, 2, 4, 8) for group in groups):
        says = f"weights of {groups[0]['num_bits']} bits are not read"
    if says:
        raise Error(f"{place}: quantization_config: {method}: {says}", _ACCEPTED)


class Stored:
    """The tensors of a checkpoint, its quantized matrices each as one."""

    def __init__(self, place: str, config: dict | None, files):
        """config: its quantization_config. place: the file that has it, for messages. files: have
        shapes(), metadata() and read(name).
        """
        shapes = files.shapes()
        self._read, self._matrices, self._parts = files.read, {}, shapes
        self.shapes, self.method = dict(shapes), None
        if not config:
            return
        _check(place, config)
        self.method = config["quant_method"]
        self._layout = _LAYOUTS[self.method](config, files.metadata())
        for name in shapes:
            base, _, end = name.rpartition(".")
            if end in self._layout.first:
                self._matrices[f"{base}.weight"] = base
        for name, base in self._matrices.items():
            extents = {
                end: self.shapes.pop(f"{base}.{end}")
                for end in self._layout.parts
                if f"{base}.{end}" in shapes
            }
            self.shapes[name] = list(self._layout.shape(extents, self._part_of(base)))

    def _part_of(self, base: str) -> Parts:
        return Parts(base, self._parts, self._read)

    def packed(self, name: str) -> Packed | None:
        """None: this tensor is not quantized."""
        base = self._matrices.get(name)
        return self._layout.packed(self._part_of(base)) if base else None

    def tensor(self, name: str) -> torch.Tensor:
        packed = self.packed(name)
        return self._read(name) if packed is None else packed.value()


class KeptWeights:
    """The quantized matrices of a checkpoint as a scheme has them, and which it cannot have."""

    def __init__(self, packed: Callable[[str], Packed | None], scheme: Scheme):
        self._packed, self._scheme = packed, scheme
        self._kept, self._rounded, self.others = 0, 0, []

    def __call__(self, name: str, bits: int) -> Weight | None:
        packed = self._packed(name)
        if packed is None:
            return None
        weight = packed.weight(bits, self._scheme.group, self._scheme.zeros)
        if weight:
            self._kept += 1
            same = torch.equal(weight.value(), packed.value())
            self._rounded += not same
        else:
            self.others.append((name, packed.kind, _scheme_of(packed)))
        return weight

    def report(self) -> str:
        also = ", scales and zero points" if self._scheme.zeros else " and scales"
        text = f"{self._kept} quantized matrices keep their integers{also}"
        if self._rounded:
            text += f", of {self._rounded} in f16"
        if not self.others:
            return text
        name, kind, scheme = self.others[0]
        first = f"'{name}' ({kind})" if kind else f"'{name}'"
        return f"{text}; {len(self.others)} are rounded again, the first is {first}: " + (
            f"--quant {scheme} keeps it" if scheme else "no scheme has its form"
        )


def _scheme_of(packed: Packed) -> str | None:
    """The `--quant` that keeps the matrix."""
    size = packed.group_size()
    own = "row" if size and size >= packed.q.shape[1] else size
    forms = [(bits, group) for group in ("engine", own) for bits in (4, 8)]
    for bits, group in forms:  # the groups of the matmul engine first
        group = 512 // bits if group == "engine" else group
        if group not in ("row", 32, 64, 128):
            continue
        for zeros in (False, True):
            if packed.weight(bits, None if group == "row" else group, zeros):
                text = f"w{bits}a8" + (f",group={group}" if (bits, group) != (4, 128) else "")
                return text + (",zero=group" if zeros else "")
    return None
