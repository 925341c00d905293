"""What each layer costs when it alone is quantized: the results of designs in which one layer has
the scheme, compared with those of the module.
"""

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import torch

from . import api
from .checkpoints import torchao_weights
from .compare import LayerDifference
from .core import CompileError
from .design import CPU_ONCE
from .errors import Error
from .quantization import static_quantization
from .report import frame, html_table

_ALL = "all layers"
_SCHEMES = ("w4a8", "w8a8", "int8")


@dataclass(frozen=True, repr=False)
class Sensitivity:
    """Rows of layers, most costly first. Errors are those of the module's results."""

    scheme: str
    layers: tuple[LayerDifference, ...]
    whole: LayerDifference  # with every layer quantized

    def without(self, count: int, others: str = "fp32") -> dict[str, str]:
        """The scheme by layer in which the most costly layers have another scheme."""
        if not 0 <= count <= len(self.layers):
            raise Error(f"{count} layers are asked for", f"accepted is 0 to {len(self.layers)}")
        return {each.layer: others for each in self.layers[:count]} | {"*": self.scheme}

    def table(self):
        """A pandas.DataFrame, or a list of dictionaries where pandas is not installed."""
        return frame([asdict(each) for each in self._rows()])

    def _rows(self) -> list[LayerDifference]:
        return [*self.layers, self.whole]

    def __repr__(self) -> str:
        wide = max(len(each.layer) for each in self._rows())
        lines = [f"{self.scheme + ' in':{wide}}  largest error  rms error  SNR, dB"]
        lines += [
            f"{each.layer:{wide}}  {each.largest_error:13.3g}  {each.rms_error:9.3g}  "
            f"{each.snr_db:7.1f}"
            for each in self._rows()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = (
            (
                each.layer,
                f"{each.largest_error:.3g}",
                f"{each.rms_error:.3g}",
                f"{each.snr_db:.1f}",
            )
            for each in self._rows()
        )
        return html_table((f"{self.scheme} in", "largest error", "rms error", "SNR, dB"), rows)


def sensitivity(
    module: torch.nn.Module,
    example_inputs,
    quant: str = "w8a8",
    calibration=None,
    progress: Callable[[str], None] = lambda layer: None,
    **options,
) -> Sensitivity:
    """Compiles a design for each layer and runs it on the example inputs.

    quant: w4a8, w8a8 or int8, which takes `calibration`, each with its settings. progress: called
    with the name of each layer before its design is compiled. options: as of `compile`.
    """
    name = str(quant).partition(",")[0]
    if isinstance(quant, Mapping) or name not in _SCHEMES:
        raise Error(f"quant={quant!r} is not one scheme", f"accepted are {', '.join(_SCHEMES)}")
    if not isinstance(module, torch.nn.Module):
        raise Error("layers are compared of modules of PyTorch", "accepted is an nn.Module")
    inputs = api._listed(example_inputs)
    with torch.no_grad():
        expected = _joined(module(*inputs))

    # schemes are of the weights alone, unless they, or the module's own, change what is computed
    is_one = name != "int8" and not torchao_weights.opened(module)[1]
    asked = {"module": module, "example_inputs": inputs, "calibration": calibration, **options}
    known = api.lower(module, inputs, options.get("names")) if is_one else None

    def designed(scheme: str):
        with contextlib.suppress(CompileError):  # a search may find what fits
            return api.compiled({"effort": 1, **asked, "quant": scheme}, CPU_ONCE, known)
        return api.compiled({**asked, "quant": scheme}, CPU_ONCE, known)

    def cost(layer: str, design) -> LayerDifference:
        return LayerDifference.of(layer, _joined(design(*inputs)), expected, False)

    progress(_ALL)
    with designed(quant) as design:
        whole, layers = cost(_ALL, design), _quantized_layers(design)
    alone = f"{quant},embedding=f32"
    if name == "int8":
        alone, layers = quant, static_quantization.layers(module, inputs)
    rows = []
    for layer in layers:
        progress(layer)
        with designed(f"{alone},{_literal(layer)}={name},*=fp32") as design:
            rows.append(cost(layer, design))
    rows.sort(key=lambda each: each.snr_db)
    return Sensitivity(quant, tuple(rows), whole)


def _joined(results) -> torch.Tensor:
    """All numbers of the results."""
    leaves = torch.utils._pytree.tree_leaves(results)
    numbers = [each.double().flatten() for each in leaves if isinstance(each, torch.Tensor)]
    return torch.cat(numbers)


def _quantized_layers(design) -> list[str]:
    """The layers whose weights the design has as integers, in its order."""
    manifest = json.loads((design.folder / "manifest.json").read_text())
    names = (each.get("name") or "" for each in manifest["inputs"])
    weights = (name.removesuffix(".q") for name in names if name.endswith(".q"))
    return list(dict.fromkeys(name.removesuffix(".weight") for name in weights))


def _literal(name: str) -> str:
    """The pattern that matches this name only."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)
