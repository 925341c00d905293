"""The largest numbers of activations, found on calibration inputs, by one of three methods.

max: of all. percentile: all but one in 10,000 are at most as large. mse: the number at which
rounding and saturation have the least squared error.
"""

from collections.abc import Iterable

import torch

METHODS = ("max", "percentile", "mse")
PERCENTILE = 0.9999
_BINS = 2048
_CANDIDATES = 96  # thresholds that `mse` compares, from a quarter of the largest number to all


class _Observer(torch.fx.Interpreter):
    """Runs a graph, and shows the values of some nodes."""

    def __init__(self, module: torch.fx.GraphModule, nodes: Iterable, see):
        super().__init__(module)
        self._nodes, self._see = set(nodes), see

    def run_node(self, node):
        value = super().run_node(node)
        if node in self._nodes:
            self._see(node, value.detach().abs().flatten())
        return value


def largest(
    module: torch.fx.GraphModule, nodes: dict, batches: list[tuple], method: str
) -> dict[torch.fx.Node, float]:
    """nodes: those whose range is wanted, with the largest integer of each."""
    found = dict.fromkeys(nodes, 0.0)

    def see(node, value):
        if value.numel():
            found[node] = max(found[node], float(value.max()))

    _run(module, nodes, batches, see)
    if method == "max":
        return found
    counts = {node: torch.zeros(_BINS, dtype=torch.float64) for node in nodes}

    def count(node, value):
        if found[node]:
            counts[node] += torch.histc(value.double(), _BINS, 0, found[node])

    _run(module, nodes, batches, count)
    choose = _at_percentile if method == "percentile" else _least_squares
    return {node: choose(counts[node], found[node], top) for node, top in nodes.items()}


def _run(module, nodes, batches, see) -> None:
    observer = _Observer(module, nodes, see)
    with torch.no_grad():
        for batch in batches:
            observer.run(*batch)


def _at_percentile(counts: torch.Tensor, whole: float, top: int) -> float:
    if not whole:
        return whole
    seen = counts.cumsum(0) / counts.sum()
    return whole * (int((seen < PERCENTILE).sum()) + 1) / _BINS


def _least_squares(counts: torch.Tensor, whole: float, top: int) -> float:
    if not whole:
        return whole
    middles = (torch.arange(_BINS, dtype=torch.float64) + 0.5) * (whole / _BINS)
    thresholds = whole * torch.linspace(1, 0.25, _CANDIDATES, dtype=torch.float64).unsqueeze(1)
    step = thresholds / top
    error = (torch.round(middles / step).clamp(max=top) * step - middles).square() @ counts
    return float(thresholds[error.argmin()])
