"""Where a design's numbers begin to differ from PyTorch's: layer by layer, by an instrumented run
of the design, which keeps what its processes send to each other.

Which of these tensors is the result of which layer, and in which form, is found with a second
design of the same module and options that gives the result of every layer, too. Integers become
numbers by the scales and offsets with which they are those results. Where no process sends a
layer's result, since it is computed in one with the next, the layer has no border in the design,
and its numbers are those of the second one.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from . import recorded_run
from .core import CompileError
from .design import CPU_ONCE
from .errors import Error
from .report import Html, frame, html_table
from .work_folder import WorkFolder

_BEYOND = 1e-3  # parts of the range by which a number is beyond what was found
_SAME_DB = 40  # signal to noise from which on two tensors are one, but for rounding
_CALLS = 4  # numbers of a channel by which its scale and offset are found, and found to be right
_NO_BORDER = "no border"  # what tables say of a layer that is computed in one with the next


def _snr_db(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Of numbers in double precision; inf: they are the same."""
    signal, noise = float(expected.square().mean()), float((found - expected).square().mean())
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf


@dataclass(frozen=True)
class LayerDifference:
    layer: str  # path of the module; again behind # where it is called more than once
    shape: tuple[int, ...]
    largest_error: float
    rms_error: float
    snr_db: float  # signal to noise; inf: the same numbers
    # of quantized layers: part of the elements that are at the end of the range found, and would
    # lie beyond it
    saturated_share: float | None
    # of the design, which sends these numbers; empty: no process sends this layer's result
    process: str = ""
    is_result: bool = False  # of the design, and no layer

    @classmethod
    def of(
        cls,
        layer: str,
        found: torch.Tensor,
        expected: torch.Tensor,
        integers: bool,
        process: str = "",
    ) -> "LayerDifference":
        shape = tuple(expected.shape)
        found, expected = found.double().flatten(), expected.double().flatten()
        error = found - expected
        snr = _snr_db(found, expected)
        noise = float(error.square().mean())
        low, high = found.min(), found.max()
        beyond = _BEYOND * float(high - low)
        clipped = ((found == high) & (expected > high + beyond)) | (
            (found == low) & (expected < low - beyond)
        )
        share = float(clipped.double().mean()) if integers else None
        return cls(layer, shape, float(error.abs().max()), math.sqrt(noise), snr, share, process)

    @property
    def border(self) -> str:
        """The process that sends this layer's result, for tables."""
        return self.process or ("" if self.is_result else _NO_BORDER)

    @property
    def saturated(self) -> str:
        return "" if self.saturated_share is None else f"{100 * self.saturated_share:.2f} %"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A row for each layer, in the order in which they run, then the results."""

    layers: tuple[LayerDifference, ...]
    same_bits: bool  # whether the instrumented run gave the design's own bits

    def first_below(self, snr_db: float) -> LayerDifference | None:
        """The first layer with a worse signal to noise ratio; None: there is none."""
        return next((each for each in self.layers if each.snr_db < snr_db), None)

    def table(self):
        """A pandas.DataFrame, or a list of dictionaries where pandas is not installed."""
        return frame([asdict(each) for each in self.layers])

    def __repr__(self) -> str:
        wide = max(len(each.layer) for each in self.layers)
        lines = [f"{'layer':{wide}}  largest error  rms error  SNR, dB  saturated  process"]
        lines += [
            f"{each.layer:{wide}}  {each.largest_error:13.3g}  {each.rms_error:9.3g}  "
            f"{each.snr_db:7.1f}  {each.saturated:>9}  {each.border}"
            for each in self.layers
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """The table with a bar for each layer, as long as its signal to noise ratio, up to 120."""
        rows = (
            (
                each.layer,
                f"{each.largest_error:.3g}",
                f"{each.rms_error:.3g}",
                f"{each.snr_db:.1f}",
                Html(
                    "<svg width='120' height='8'><rect height='8' fill='currentColor' "
                    f"width='{max(0.0, min(120.0, each.snr_db)):.0f}'/></svg>"
                ),
                each.saturated,
                each.border,
            )
            for each in self.layers
        )
        headings = ("layer", "largest error", "rms error", "SNR, dB", "", "saturated", "process")
        return html_table(headings, rows)


class Tapped(torch.nn.Module):
    """The module, with the results of its innermost parts in front of its own; `layers`: their
    names, once it was called.
    """

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module
        self.layers: list[str] = []
        self.eval()

    def forward(self, *inputs):
        with _taps(self.module) as taps:
            result = self.module(*inputs)
        self.layers[:] = [name for name, _ in taps]
        return [value for _, value in taps], result


@contextlib.contextmanager
def _taps(module: torch.nn.Module):
    """Collects what the innermost parts of a module give, in the order of their calls."""
    paths = {
        id(part): name
        for name, part in module.named_modules()
        if name and not list(part.children())
    }
    found: list[tuple[str, torch.Tensor]] = []
    call = torch.nn.Module.__call__

    def tapped(part, *arguments, **options):
        result = call(part, *arguments, **options)
        path = paths.get(id(part))
        if path is not None and isinstance(result, torch.Tensor) and result.is_floating_point():
            before = sum(name.partition("#")[0] == path for name, _ in found)
            # a copy: the module may write into it, or give the same tensor as a result
            found.append((f"{path}#{before + 1}" if before else path, result.clone()))
        return result

    setattr(torch.nn.Module, "__call__", tapped)
    try:
        yield found
    finally:
        setattr(torch.nn.Module, "__call__", call)


@dataclass(frozen=True)
class _Sent:
    """A tensor that a process sent in each call, and what it would have sent as compiled."""

    process: str
    layer: str | None
    found: torch.Tensor
    clean: torch.Tensor

    def _readings(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Both as numbers; the text says of integers only what they are to each operation."""
        yield self.found.double(), self.clean.double()
        if self.clean.dtype in (torch.int8, torch.int16):
            mask = (1 << 8 * self.clean.element_size()) - 1
            yield (self.found.int() & mask).double(), (self.clean.int() & mask).double()

    def forms(self, shape: tuple[int, ...]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Both as tensors of this shape in each call: as they are, and with their extents in
        another order.
        """
        if self.clean[0].numel() != math.prod(shape):
            return
        every = (len(self.clean), *shape)
        own = [extent for extent in self.clean.shape[1:] if extent != 1]
        wanted = [extent for extent in shape if extent != 1]
        is_other = sorted(own) == sorted(wanted) and own != wanted and len(wanted) <= 4
        orders = list(itertools.permutations(range(len(wanted)))) if is_other else []
        for both in self._readings():
            yield tuple(each.reshape(every) for each in both)
            for order in orders:
                if [own[at] for at in order] == wanted:
                    parts = (each.reshape(-1, *own) for each in both)
                    placed = [0, *(at + 1 for at in order)]
                    yield tuple(each.permute(placed).reshape(every) for each in parts)

    def of_layer(self, name: str) -> bool:
        return self.layer is not None and fnmatchcase(name.partition("#")[0], self.layer)


def _scaled(found: torch.Tensor, clean: torch.Tensor, expected: torch.Tensor, axis: int | None):
    """Integers, by the scale and the offset with which the clean ones are the expected numbers; one
    for each place along an axis: weights have scales by output channel.
    """
    rows = [
        each.reshape(1, -1) if axis is None else each.movedim(axis, 0).flatten(1)
        for each in (clean, expected)
    ]
    middle = rows[0] - rows[0].mean(1, keepdim=True)
    spread = middle.square().sum(1)
    scales = (middle * rows[1]).sum(1) / spread
    # a channel with the same number everywhere has the scale of the others
    scales = torch.where(spread > 0, scales, scales[spread > 0].mean() if spread.any() else 0.0)
    offsets = rows[1].mean(1) - scales * rows[0].mean(1)
    wide = [1] * clean.dim()
    if axis is not None:
        wide[axis] = -1
    scales, offsets = scales.reshape(wide), offsets.reshape(wide)
    return scales * found + offsets, scales * clean + offsets


def _channel_axes(shape: tuple[int, ...]) -> list[int]:
    """Where a layer's output channels may be, if every one of them has numbers enough for a scale
    and an offset to be found; of calls and the shape of one.
    """
    axes = sorted({min(2, len(shape) - 1), len(shape) - 1}) if len(shape) > 1 else []
    return [axis for axis in axes if math.prod(shape) >= _CALLS * shape[axis]]


def _values(sent: _Sent, expected: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What was sent as numbers that may be the expected ones, and those of the compiled text."""
    for found, clean in sent.forms(tuple(expected.shape[1:])):
        if sent.clean.is_floating_point():
            yield found, clean
            continue
        yield _scaled(found, clean, expected, None)
        if sent.clean.dtype == torch.int32:
            for axis in _channel_axes(tuple(expected.shape)):
                yield _scaled(found, clean, expected, axis)


def _sent_as(value: torch.Tensor, sent: list[_Sent]) -> tuple[torch.Tensor, str] | None:
    """The numbers of the process that sends this value of each call, and its name; None: there is
    none. The numbers are those of the first call.
    """
    expected = value.double()
    for each in sent:
        for found, clean in _values(each, expected):
            if _snr_db(clean, expected) >= _SAME_DB:
                return found[0], each.process
    return None


def _recorded(own, folder: Path, calls: list[tuple], names: set[str]):
    """Results of instrumented runs of the design in a folder, and the words of these FIFOs."""
    with WorkFolder() as temporary:
        copy, kept = Path(temporary) / "design", Path(temporary) / "sent"
        kept.mkdir()
        recorded_run.instrumented(folder, copy, kept)
        every = []
        with own._in_folder(copy) as design:
            for inputs in calls:
                results = design(*_fresh(inputs))
                files = {name: kept / name for name in names if (kept / name).is_file()}
                every.append((results, {name: file.read_bytes() for name, file in files.items()}))
        return every


def _fresh(inputs: tuple) -> tuple:
    """Copies, since a module may write into its inputs."""
    return torch.utils._pytree.tree_map(
        lambda each: each.clone() if isinstance(each, torch.Tensor) else each, inputs
    )


def _calls(own, inputs: tuple, layers: list[torch.Tensor]) -> list[tuple]:
    """The inputs, and for the scales of integers as many others as are needed."""
    scarce = own.is_quantized and any(not _channel_axes((1, *each.shape)) for each in layers)

    def other(factor: float):
        return torch.utils._pytree.tree_map(
            lambda each: (
                each.flip(-1) * factor
                if isinstance(each, torch.Tensor) and each.is_floating_point() and each.dim()
                else each
            ),
            inputs,
        )

    return [inputs, *(map(other, (0.9, -0.7, 0.5, -0.3)) if scarce else ())]


def _run(own, compiled: Callable, calls: list[tuple]):
    """Results of an instrumented run, and the tensors that processes send."""
    with WorkFolder() as temporary:
        # the same design again, for the order of its words, and as it was before somebody wrote
        # into its folder
        dumps, again = Path(temporary) / "dumps", Path(temporary) / "design"
        compiled({"output": again, "dump_dir": str(dumps)}, CPU_ONCE).close()
        text = recorded_run.source_of(own.folder).read_text()
        twin = recorded_run.source_of(again).read_text()
        channels = recorded_run.result_channels(text)
        known = {}
        for dump in dumps.glob(recorded_run.DUMP):
            known.update(recorded_run.orders(dump))
        if channels != recorded_run.result_channels(twin):
            channels = []
        names = {each.channel for each in channels if each.kernel in known}
        found = _recorded(own, own.folder, calls, names)
        clean = found if text == twin else _recorded(own, again, calls, names)
    layer_of = {each.name: each.layer for each in own.report.kernels}
    sent = []
    for each in channels:
        order = known.get(each.kernel, {}).get(each.channel.rpartition("_")[0])
        words = [[run.get(each.channel, b"") for _, run in runs] for runs in (found, clean)]
        if order is None or not all(order.divides(run) for runs in words for run in runs):
            continue
        # by call, then by layer of a rolled loop
        both = (torch.stack([order.tensors(run) for run in runs], 1) for runs in words)
        sent += [_Sent(each.process, layer_of.get(each.process), *pair) for pair in zip(*both)]
    return found[0][0], sent


def _tapped_design(compiled: Callable, tapped: Tapped):
    """Made without a search, which may find what fits only."""
    with contextlib.suppress(CompileError):
        return compiled({"module": tapped, "effort": 1}, CPU_ONCE)
    return compiled({"module": tapped}, CPU_ONCE)


def _tensors(results) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(results)
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def compare(
    module: torch.nn.Module, inputs: tuple, own, compiled: Callable, reference=None
) -> Comparison:
    """own: the compared design; compiled: the same with other options or of another module, on a
    device; reference: another module to compare with.
    """
    if not isinstance(module, torch.nn.Module):
        raise Error("layers are compared of modules of PyTorch", "accepted is an nn.Module")
    if reference is None:
        reference = module
    if not isinstance(reference, torch.nn.Module):
        raise Error(f"the reference is {reference!r}"[:200], "accepted is an nn.Module")
    mine = _tensors(own(*_fresh(inputs)))
    tapped, exact = Tapped(module), Tapped(reference)
    with torch.no_grad():
        expected, expected_results = exact(*_fresh(inputs))
        tapped(*_fresh(inputs))  # for the names: a scheme may compile a copy of it
    calls = _calls(own, inputs, expected)
    with _tapped_design(compiled, tapped) as design:
        found = [design(*_fresh(each))[0] for each in calls]
    results, sent = _run(own, compiled, calls)
    rows = []
    exactly_of = dict(zip(exact.layers, expected))
    for name, each in zip(tapped.layers, map(torch.stack, zip(*found))):
        exactly = exactly_of.get(name)
        if exactly is None or exactly.shape != each.shape[1:]:  # another reference has none such
            continue
        numbers, process = _sent_as(each, sent) or (each[0], "")
        # part of a process with another layer's result, of which somebody changed the text
        changed = [it for it in sent if it.of_layer(name) and not it.found.equal(it.clean)]
        if changed and not process:
            numbers, exactly = changed[0].found[0], changed[0].clean[0]
            process = changed[0].process
        rows.append(LayerDifference.of(name, numbers, exactly, own.is_quantized, process))
    ours, theirs = _tensors(results), _tensors(expected_results)
    rows += [
        replace(LayerDifference.of(f"result{i}", each, exactly, own.is_quantized), is_result=True)
        for i, (each, exactly) in enumerate(zip(ours, theirs))
    ]
    return Comparison(tuple(rows), all(map(torch.equal, ours, mine)))
