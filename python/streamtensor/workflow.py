"""Steps that the commands share: from a language model to files to a design."""

import json
import re
from dataclasses import replace
from pathlib import Path

import torch

from . import core, options, output_folder, saved_call
from .checkpoints import weights
from .design import Design
from .errors import Error
from .language import decoder_layers, model_module
from .language.decoder_step import PHASES, StepShape
from .language.models import Model
from .lowering.graph import Lowered
from .progress import Progress
from .work_folder import WorkFolder

MLIR, WEIGHTS, CONFIG = "model.mlir", "weights.safetensors", "config.json"
PREFILL = "prefill"  # folder of the second phase of a design
DESIGN_FILES = {
    PREFILL,
    "design.mlir",
    "hls",
    "host",
    "weights",
    "manifest.json",
    saved_call.FILE,
    saved_call.BUFFERS,
    "report.json",
    "report.txt",
    "report.html",
    "timing.json",
}
DEFAULT_CONTEXT, DEFAULT_TOKENS = 1024, 16
# tokens per launch of a design that is both phases: what the engine processes at once; and with
# tiles, for which decode is still as fast as memory
FEW_TOKENS, MANY_TOKENS = 8, 32
MANY_PORTS = 32  # boards with this many memory ports use MANY_TOKENS


def context_limit(model: Model) -> int:
    return model_module.context_limit(model.config) or DEFAULT_CONTEXT


def step_shape(
    model: Model, phase: str, context: int | None, tokens: int | None, usual: int = DEFAULT_TOKENS
) -> StepShape:
    limit = context_limit(model)
    context = min(DEFAULT_CONTEXT, limit) if context is None else context
    tokens = max(1, min(usual, context - 1)) if tokens is None else tokens
    return StepShape.of(model.config, phase, context, tokens)


def default_prefill_tokens(platform: str) -> int:
    """Tokens per launch of a design that is both phases, on this platform."""
    return (
        MANY_TOKENS
        if core.run_json("platforms", "--platform", platform)[0]["ports"] >= MANY_PORTS
        else FEW_TOKENS
    )


def step_shapes(
    model: Model,
    phase: str,
    context: int | None,
    tokens: int | None,
    argmax: bool = False,
    batch: int = 1,
    engine: bool = False,
    platform: str | None = None,
) -> list[StepShape]:
    """The shapes of one phase, or of decode and prefill.

    engine: contractions share the matmul engine; then one design of one sequence is both phases,
    and a decode step is a chunk of one token. platform: sets the default number of tokens.
    """
    if batch < 1:
        raise Error(f"--batch {batch} is no number of sequences", "accepted is 1 or more")
    if batch > 1 and not decoder_layers.aligns_sequences(model.module):
        raise Error(
            f"a model of type '{model.config.model_type}' counts the positions of its tokens "
            "itself, so sequences of different lengths have wrong ones",
            "accepted is one sequence",
        )
    if phase == "both" and engine and batch == 1:
        usual = default_prefill_tokens(platform) if platform and tokens is None else FEW_TOKENS
        return [
            replace(
                step_shape(model, "prefill", context, tokens, usual),
                argmax=argmax,
                dynamic_tokens=True,
            )
        ]
    return [
        replace(step_shape(model, name, context, tokens), argmax=argmax, batch=batch)
        for name in (PHASES if phase == "both" else [phase])
    ]


def _write_step(model: Model, shape: StepShape, path: Path, attributes: bool = True) -> Lowered:
    lowered = model.lower(shape, attributes)
    path.write_text(lowered.text)
    return lowered


def _write_weights(
    model: Model,
    steps: list[Lowered],
    folder: Path,
    progress: Progress,
    integers: dict[str, torch.Tensor] | None = None,
) -> None:
    """integers: replace the weights of the model, as `quantize.weight_file_tensors` makes them."""
    progress.stage("write weights")
    names = list(dict.fromkeys(name for step in steps for name in step.weights))
    if integers is None:
        model.write_weights(folder / WEIGHTS, names, progress.update)
    else:
        parts = [
            part
            for name in names
            for part in (name, f"{name}.q", f"{name}.scale", f"{name}.zero")
            if part in integers
        ]
        weights.write(folder / WEIGHTS, parts, integers, integers.__getitem__, progress.update)


def export_files(
    model: Model, shape: StepShape, folder: Path, progress: Progress, attributes: bool = True
) -> None:
    """Writes model.mlir, config.json and weights.safetensors into `folder`."""
    progress.stage("export")
    lowered = _write_step(model, shape, folder / MLIR, attributes)
    config = json.loads(model.config.to_json_string(use_diff=False))
    config["streamtensor"] = {
        "phase": shape.phase,
        "tokens": shape.tokens,
        "cache_rows": shape.past,
        "batch": shape.batch,
    }
    (folder / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    _write_weights(model, [lowered], folder, progress)


def _design_name(model: Model, shape: StepShape) -> str:
    """The name of a design of one phase, in its report and as the kernel on the card."""
    label = re.sub(r"[^0-9A-Za-z]+", "_", Path(model.name).absolute().name).strip("_")
    return f"{label or 'model'}_{'both' if shape.dynamic_tokens else shape.phase}"


def compile_files(
    model: Model,
    shape: StepShape,
    platform: str,
    output: Path,
    progress: Progress,
    quant: str | None = None,
    values: bool = True,
    **others,
) -> Lowered:
    """Compiles one step into the design folder `output`; without `values` it has no weights."""
    made = compile_phases(model, [shape], platform, output, progress, quant, values, **others)
    return made[shape.phase]


def compile_phases(
    model: Model,
    shapes: list[StepShape],
    platform: str,
    output: Path,
    progress: Progress,
    quant: str | None = None,
    values: bool = True,
    integers: dict[str, torch.Tensor] | None = None,
    others: options.Settings | None = None,
) -> dict[str, Lowered]:
    """Compiles one step, or two phases of one kernel with shared weights and states.

    integers: weights that are already quantized. others: settings beside platform and scheme.
    """
    output_folder.check(output, DESIGN_FILES)
    output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with WorkFolder(f".{output.name}.streamtensor-", output.absolute().parent) as work:
        names = [
            Path(work) / f"{shape.phase if len(shapes) > 1 else _design_name(model, shape)}.mlir"
            for shape in shapes
        ]
        progress.stage("export")
        if said := model_module.frequencies_note(model.config, shapes[0].past + 1):
            progress.note(said)
        if shapes[0].state_keys:
            progress.note(
                f"a model of type '{model.config.model_type}' keeps recurrent states: a prompt is "
                "read as new tokens are, one after the other"
            )
        steps = [_write_step(model, shape, path) for shape, path in zip(shapes, names)]
        if values:
            _write_weights(model, steps, Path(work), progress, integers)
        core.compile_design(
            [core.Source(path, step.origin) for path, step in zip(names, steps)],
            Path(work) / WEIGHTS if values else None,
            options.words(
                {**(others or {}), **options.settings({"platform": platform, "quant": quant})}
            ),
            output,
            progress.stage,
        )
    found = {shape.phase: step for shape, step in zip(shapes, steps)}
    sides = {name: (step.inputs, step.results) for name, step in found.items()}
    saved_call.save(output, saved_call.Saved(sides, None, {}))
    return found


def open_design(
    folder: Path,
    lowered: Lowered | dict[str, Lowered],
    progress: Progress,
    device: str = "cpu",
    keep=None,
) -> Design:
    progress.stage("open the design")
    steps = lowered if isinstance(lowered, dict) else {"": lowered}
    first = next(iter(steps.values()))
    phases = (
        {name: (step.inputs, step.results) for name, step in steps.items()}
        if len(steps) > 1
        else None
    )
    return Design(folder, first.inputs, first.results, device, keep, phases)
