"""streamtensor compile: a model's step, a module, an ONNX model, MLIR or C becomes a design."""

from pathlib import Path

from .. import options as compiler_options
from ..errors import Error
from ..progress import Progress
from .arguments import (
    add_argmax,
    add_batch,
    add_calibration,
    add_output,
    add_phase,
    add_quant_method,
    add_seed,
    new_command,
)
from .checked_options import checked_platform, other_settings, refuse, scheme_of
from .language_model import calibrated, check_quant_method, load, note_tokens, uses_engine

# what the compiler reads itself
SOURCES = (".mlir", ".c")


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "Compile a model's step, or a module, into a design.",
        run,
        "compile",
        {"quant": "; of modules also int8"},
    )
    command.add_argument(
        "model",
        metavar="NAME|FOLDER|FILE.py:NAME|FILE",
        help="Hugging Face model name, a folder with config.json and *.safetensors, the name of an "
        "image network (resnet18), a module or a function that makes one with its example inputs, "
        "or a file: .onnx, .mlir or .c",
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]1x3x224x224[:f32]",
        help="of FILE.py:NAME: an example input, or FILE.npy with one; one option per input",
    )
    command.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="of an image network by name: its state_dict, as .safetensors or of torch.save; of "
        "FILE.mlir: safetensors with the values of its weights",
    )
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="INPUT=1x3x48x192",
        help="of an ONNX model: the shape of an input that the file leaves open; may be repeated",
    )
    command.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="INPUT=NUMBER",
        help="of an ONNX model: what an input always is; may be repeated",
    )
    add_seed(command)
    add_phase(command, both=True)
    add_batch(command)
    add_argmax(command)
    add_quant_method(command)
    add_calibration(command, "|FOLDER", "; of modules with int8: inputs as .npy, .npz or pictures")
    command.add_argument(
        "--no-weights",
        action="store_true",
        help="compile from config.json alone: design, cycles and report, but nothing to run",
    )
    add_output(command)


def run(options, progress: Progress) -> int:
    from .. import module_file, output_folder, workflow
    from ..images import image_models
    from ..onnx import model as onnx_model

    is_by_name = image_models.is_image_model(options.model)
    is_onnx = onnx_model.is_onnx_file(options.model)
    is_source = Path(options.model).suffix in SOURCES
    refuse(options, not is_onnx, "ONNX models", shape=options.shape, value=options.value)
    is_module = module_file.is_module_file(options.model)
    refuse(options, not is_module, "FILE.py:NAME", input=options.input)
    takes_weights = is_source or is_by_name
    refuse(options, not takes_weights, "image networks and of FILE.mlir", weights=options.weights)
    if is_source:
        return _compile_source(options, progress)
    compiler_options.refuse_those_of_c(options.settings, options.model)
    if is_onnx or is_module or is_by_name:
        return _compile_module(options, progress)
    scheme_of(options)
    platform = checked_platform(options, progress)
    check_quant_method(options)
    output_folder.check(options.output, workflow.DESIGN_FILES)
    model = load(options, progress)
    quant = scheme_of(options)
    note_tokens(options, progress)
    shapes = workflow.step_shapes(
        model,
        options.phase,
        options.context,
        options.prefill_chunk,
        options.argmax,
        options.batch,
        uses_engine(options),
        platform,
    )
    integers = calibrated(options, model, progress)
    workflow.compile_phases(
        model,
        shapes,
        platform,
        options.output,
        progress,
        quant,
        not options.no_weights,
        integers,
        other_settings(options),
    )
    return 0


def _refuse_those_of_language_models(options) -> None:
    refuse(
        options,
        True,
        "language models",
        phase=options.phase != "decode",
        context=options.context,
        prefill_chunk=options.prefill_chunk,
        batch=options.batch != 1,
        argmax=options.argmax,
        quant_method=options.quant_method,
        no_weights=options.no_weights,
    )


def _compile_source(options, progress: Progress) -> int:
    """Compiles MLIR or C, which the compiler reads itself."""
    from .. import core

    _refuse_those_of_language_models(options)
    refuse(options, True, "modules", calibration=options.calibration)
    source = Path(options.model)
    if source.suffix != ".c":
        compiler_options.refuse_those_of_c(options.settings, options.model)
    platform = checked_platform(options, progress)
    settings = {**options.settings, "platform": [platform]}
    words = compiler_options.words(settings)
    core.compile_design(
        [core.Source(source, in_torch=False)],
        options.weights,
        words,
        options.output,
        progress.stage,
    )
    return 0


def _compile_module(options, progress: Progress) -> int:
    from .. import api, output_folder, workflow
    from ..quantization import static_quantization
    from ..quantization.rounding_note import rounding_note

    _refuse_those_of_language_models(options)
    is_integer = static_quantization.is_integer_scheme(options.quant)
    if is_integer:
        static_quantization.IntegerScheme.parse(options.quant)
    scheme = options.quant if is_integer else scheme_of(options)
    platform = checked_platform(options, progress)
    output_folder.check(options.output, workflow.DESIGN_FILES)
    progress.stage("load the module")
    made = _load_module(options, progress)
    if is_integer:
        progress.stage("calibrate")
    module, scheme = static_quantization.applied(
        made.module, made.inputs, scheme, options.calibration
    )
    if note := rounding_note(module, made.inputs, scheme):
        progress.note(note)
    progress.stage("export")
    lowered, tensors = api.lower(
        module, made.inputs, made.names, results=made.results, quant=scheme
    )
    settings = other_settings(options)
    settings |= compiler_options.settings({"platform": platform, "quant": scheme})
    call = api.call_of(made.inputs, lowered)
    api.write_design(lowered, tensors, settings, options.output, progress.stage, call)
    return 0


def _load_module(options, progress: Progress):
    """The module of a Python file, of an ONNX model, or an image network by its name."""
    from .. import module_file
    from ..images import image_models
    from ..onnx import model as onnx_model

    if image_models.is_image_model(options.model):
        return image_models.load(options.model, options.seed, options.weights, progress.note)
    if not onnx_model.is_onnx_file(options.model):
        return module_file.load(options.model, options.seed, options.input)
    shapes = [onnx_model.parse_shape(each) for each in options.shape]
    values = [onnx_model.parse_value(each) for each in options.value]
    for option, given in (("--shape", shapes), ("--value", values)):
        if len(dict(given)) != len(given):
            raise Error(f"{option} is given twice for an input", "accepted is one for each")
    return onnx_model.load(options.model, dict(shapes), dict(values))
