"""Where a design's numbers begin to differ from PyTorch's: layer by layer, by a design of the same
module and options that gives the result of every layer, too.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from .errors import Error
from .report import Html, frame, html_table

_BEYOND = 1e-3  # parts of the range by which a number is beyond what was found


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

    @classmethod
    def of(
        cls, layer: str, found: torch.Tensor, expected: torch.Tensor, integers: bool
    ) -> "LayerDifference":
        shape = tuple(expected.shape)
        found, expected = found.double().flatten(), expected.double().flatten()
        error = found - expected
        signal, noise = float(expected.square().mean()), float(error.square().mean())
        snr = math.inf
        if noise:
            snr = 10 * math.log10(signal / noise) if signal else -math.inf
        low, high = found.min(), found.max()
        beyond = _BEYOND * float(high - low)
        clipped = ((found == high) & (expected > high + beyond)) | (
            (found == low) & (expected < low - beyond)
        )
        share = float(clipped.double().mean()) if integers else None
        return cls(layer, shape, float(error.abs().max()), math.sqrt(noise), snr, share)

    @property
    def saturated(self) -> str:
        return "" if self.saturated_share is None else f"{100 * self.saturated_share:.2f} %"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A row for each layer, in the order in which they run, then the results."""

    layers: tuple[LayerDifference, ...]
    # whether that design's results have the bits of the compared one's
    same_bits: bool

    def first_below(self, snr_db: float) -> LayerDifference | None:
        """The first layer with a worse signal to noise ratio; None: there is none."""
        return next((each for each in self.layers if each.snr_db < snr_db), None)

    def table(self):
        """A pandas.DataFrame, or a list of dictionaries where pandas is not installed."""
        return frame([asdict(each) for each in self.layers])

    def __repr__(self) -> str:
        wide = max(len(each.layer) for each in self.layers)
        lines = [f"{'layer':{wide}}  largest error  rms error  SNR, dB  saturated"]
        lines += [
            f"{each.layer:{wide}}  {each.largest_error:13.3g}  {each.rms_error:9.3g}  "
            f"{each.snr_db:7.1f}  {each.saturated:>9}"
            for each in self.layers
        ]
        return "\n".join(lines)

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
            )
            for each in self.layers
        )
        headings = ("layer", "largest error", "rms error", "SNR, dB", "", "saturated")
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


def compare(
    module: torch.nn.Module, inputs: tuple, own, compiled: Callable, reference=None
) -> Comparison:
    """own: the compared design; compiled: a module as a design of the same options; reference:
    another module to compare with.
    """
    if not isinstance(module, torch.nn.Module):
        raise Error("layers are compared of modules of PyTorch", "accepted is an nn.Module")
    if reference is None:
        reference = module
    tapped, exact = Tapped(module), Tapped(reference)
    with torch.no_grad():
        expected, expected_results = exact(*inputs)
    with compiled(tapped) as design:
        found, results = design(*inputs)
    flat = torch.utils._pytree.tree_leaves
    ours = [each for each in flat(results) if isinstance(each, torch.Tensor)]
    theirs = [each for each in flat(expected_results) if isinstance(each, torch.Tensor)]
    mine = [each for each in flat(own(*inputs)) if isinstance(each, torch.Tensor)]
    names = [*exact.layers, *(f"result{i}" for i in range(len(theirs)))]
    rows = [
        LayerDifference.of(name, each, exactly, own.is_quantized)
        for name, each, exactly in zip(names, [*found, *ours], [*expected, *theirs])
    ]
    return Comparison(tuple(rows), all(map(torch.equal, ours, mine)))
