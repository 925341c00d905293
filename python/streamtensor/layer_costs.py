"""What each layer costs when it alone is quantized: the results of designs in which one layer has
the scheme, compared with those of the module.
"""

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import torch

from . import api
from .compare import LayerDifference
from .errors import Error
from .quantization import static_quantization
from .report import frame

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
        rows = "".join(
            f"<tr><td>{html.escape(each.layer)}</td><td>{each.largest_error:.3g}</td>"
            f"<td>{each.rms_error:.3g}</td><td>{each.snr_db:.1f}</td></tr>"
            for each in self._rows()
        )
        names = (f"{self.scheme} in", "largest error", "rms error", "SNR, dB")
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        return f"<table><tr>{heads}</tr>{rows}</table>"


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
    name, *settings = str(quant).split(",")
    if isinstance(quant, Mapping) or name not in _SCHEMES:
        raise Error(f"quant={quant!r} is not one scheme", f"accepted are {', '.join(_SCHEMES)}")
    if not isinstance(module, torch.nn.Module):
        raise Error("layers are compared of modules of PyTorch", "accepted is an nn.Module")
    several = isinstance(example_inputs, (tuple, list))
    inputs = tuple(example_inputs) if several else (example_inputs,)
    with torch.no_grad():
        expected = _joined(module(*inputs))

    def cost(layer: str, scheme: str) -> tuple[LayerDifference, list[str]]:
        own = {"calibration": calibration, **options}
        with api.compile(module, inputs, quant=scheme, **own) as design:
            found = LayerDifference.of(layer, _joined(design(*inputs)), expected, False)
            return found, _quantized_layers(design)

    progress(_ALL)
    whole, layers = cost(_ALL, quant)
    if name != "int8":
        quant += ",embedding=f32"
    else:
        layers = static_quantization.layers(module, inputs)
    rows = []
    for layer in layers:
        progress(layer)
        rows.append(cost(layer, f"{quant},{_literal(layer)}={name},*=fp32")[0])
    rows.sort(key=lambda each: each.snr_db)
    return Sensitivity(",".join([name, *settings]), tuple(rows), whole)


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
