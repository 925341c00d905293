"""The steps that the commands share: a language model -> files -> a design."""
import json
import tempfile
from pathlib import Path

from . import core, outputs
from .decoder import Shape
from .design import Design
from .graph import Lowered
from .models import Model
from .progress import Progress

MLIR, WEIGHTS, CONFIG = "model.mlir", "weights.safetensors", "config.json"
DESIGN_FILES = {"design.mlir", "hls", "host", "weights", "manifest.json", "report.json", "report.txt", "report.html", "timing.json"}
DEFAULT_CONTEXT, DEFAULT_TOKENS = 1024, 16


def step_shape(model: Model, phase: str, context: int | None, tokens: int | None) -> Shape:
    limit = getattr(model.config, "max_position_embeddings", None) or DEFAULT_CONTEXT
    context = min(DEFAULT_CONTEXT, limit) if context is None else context
    tokens = min(DEFAULT_TOKENS, limit) if tokens is None else tokens
    return Shape.of(model.config, phase, context, tokens)


def export_files(model: Model, shape: Shape, folder: Path, progress: Progress, attributes: bool = True, values: bool = True) -> Lowered:
    """Writes model.mlir, config.json and, if `values`, weights.safetensors into `folder`."""
    progress.stage("export")
    lowered = model.lower(shape, attributes)
    (folder / MLIR).write_text(lowered.text)
    config = json.loads(model.config.to_json_string(use_diff=False))
    config["streamtensor"] = {"phase": shape.phase, "tokens": shape.tokens, "past": shape.past}
    (folder / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    if values:
        progress.stage("write weights")
        model.write_weights(folder / WEIGHTS, lowered.weights, progress.update)
    return lowered


def compile_files(model: Model, shape: Shape, platform: str, output: Path, progress: Progress, quant: str | None = None,
                  values: bool = True) -> Lowered:
    """Compiles one step into the design folder `output`; without `values` it has no weights and cannot run."""
    core.find(core.COMPILER)  # before minutes of export
    outputs.check(output, DESIGN_FILES)
    output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.absolute().parent) as work:
        lowered = export_files(model, shape, Path(work), progress, values=values)
        core.compile_design(Path(work) / MLIR, Path(work) / WEIGHTS if values else None, platform, output, progress.stage, quant, lowered.origin)
    return lowered


def open_design(folder: Path, lowered: Lowered, progress: Progress, device: str = "cpu", keep=None) -> Design:
    progress.stage("open the design")
    return Design(folder, lowered.inputs, lowered.results, device, keep)
