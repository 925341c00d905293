"""Quantized weights of checkpoints: GPTQ, AWQ, compressed-tensors and FP8.

A layout stores a matrix as several tensors beside each other, NAME.qweight, NAME.scales and the
like. Here they are one tensor NAME.weight, whose integers, scales and zero points can be asked for:

    weight[o, i] = (q[o, i] - zero[o, g]) * scale[o, g]        g: the group of input i
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from .errors import Error
from .quantize import Weight

Read = Callable[[str], torch.Tensor]
_ACCEPTED = (
    "accepted are gptq, awq, compressed-tensors and fp8, or the unquantized folder of the model"
)
# where AWQ puts the eight numbers of a word
_AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)


@dataclass(frozen=True)
class Packed:
    """A matrix as a checkpoint has it, outputs x inputs."""

    q: torch.Tensor  # integers, or floats of 8 bits
    scale: torch.Tensor  # outputs x groups
    zero: torch.Tensor | None  # outputs x groups; None: all are zero
    group: torch.Tensor  # of each input, the number of its group

    def value(self) -> torch.Tensor:
        q = self.q.float()
        if self.zero is not None:
            q = q - self.zero.float()[:, self.group]
        return q * self.scale.float()[:, self.group]

    def group_size(self) -> int | None:
        """Inputs of a group where groups are neighbours, in order; None: they are not."""
        inputs, groups = self.q.shape[1], self.scale.shape[1]
        size = -(-inputs // groups)
        in_order = torch.arange(inputs) // size
        return size if torch.equal(self.group, in_order) else None

    def weight(self, bits: int, group: int | None) -> Weight | None:
        """The same numbers as integers of so many bits with scales of such groups; None: they have
        no such form.
        """
        q, scale = self.q.float(), self.scale.half()
        q = q if self.zero is None else q - self.zero.float()[:, self.group]
        size, wanted = self.group_size(), min(group or q.shape[1], q.shape[1])
        top = 2 ** (bits - 1)
        if size is None or (size % wanted and size < q.shape[1]) or size < wanted:
            return None
        if not torch.equal(scale.float(), self.scale.float()) or not torch.equal(q, q.round()):
            return None
        if float(q.min()) < -top or float(q.max()) >= top or not bool((scale > 0).all()):
            return None
        first = torch.arange(0, q.shape[1], wanted)
        scale = scale[:, self.group[first]].contiguous()
        return Weight(q.to(torch.int8), scale, group or q.shape[1])


def _unpacked(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The numbers of the words of the last dim, the lowest bits first."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return ((words.unsqueeze(-1) >> shifts) & (2**bits - 1)).flatten(-2)


class Layout:
    """One way to store matrices: the ends of the names of their parts."""

    parts: tuple[str, ...] = ()
    first: tuple[str, ...] = ("qweight",)  # the parts by which a matrix is known

    def __init__(self, config: dict):
        self.config = config

    def shape(self, extents: dict[str, list[int]], part) -> list[int]:
        """Of the matrix. extents: of its parts, by the ends of their names."""
        return extents["weight"]

    def packed(self, part: Callable[[str], torch.Tensor | None]) -> Packed:
        """part: a tensor by the end of its name; None: there is none."""
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


_LAYOUTS = {
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

    def __init__(self, place: str, config: dict | None, shapes: dict[str, list[int]], read: Read):
        """config: its quantization_config. place: the file that has it, for messages."""
        self._read, self._matrices, self._parts = read, {}, shapes
        self.shapes, self.method = dict(shapes), None
        if not config:
            return
        _check(place, config)
        self.method = config["quant_method"]
        self._layout = _LAYOUTS[self.method](config)
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

    def _part_of(self, base: str):
        return lambda end: self._read(f"{base}.{end}") if f"{base}.{end}" in self._parts else None

    def packed(self, name: str) -> Packed | None:
        """None: this tensor is not quantized."""
        base = self._matrices.get(name)
        return self._layout.packed(self._part_of(base)) if base else None

    def tensor(self, name: str) -> torch.Tensor:
        packed = self.packed(name)
        return self._read(name) if packed is None else packed.value()


class KeptWeights:
    """The quantized matrices of a checkpoint as a scheme has them, and which it cannot have."""

    def __init__(self, packed: Callable[[str], Packed | None], group: int | None):
        self._packed, self._group = packed, group
        self._kept, self._others = 0, []

    def __call__(self, name: str, bits: int) -> Weight | None:
        packed = self._packed(name)
        if packed is None:
            return None
        weight = packed.weight(bits, self._group)
        if weight:
            self._kept += 1
        else:
            self._others.append((name, _scheme_of(packed)))
        return weight

    def report(self) -> str:
        text = f"{self._kept} quantized matrices keep their integers and scales"
        if not self._others:
            return text
        name, scheme = self._others[0]
        return f"{text}; {len(self._others)} are rounded again, the first is '{name}': " + (
            f"--quant {scheme} keeps it" if scheme else "no scheme has its form"
        )


def _scheme_of(packed: Packed) -> str | None:
    """The `--quant` that keeps the matrix."""
    size = packed.group_size()
    group = "row" if size and size >= packed.q.shape[1] else size
    if group not in ("row", 32, 64, 128):
        return None
    size = None if group == "row" else group
    return next((f"w{bits}a8,group={group}" for bits in (4, 8) if packed.weight(bits, size)), None)
