"""The command line: `streamtensor`, or `python -m streamtensor`."""

import argparse
import contextlib
import logging
import os
import subprocess
import sys
import traceback
import warnings
from dataclasses import replace
from pathlib import Path

from . import __version__
from . import options as compiler_options
from .core import CompileError
from .errors import Error
from .interruption import STATUS, report_error, signals_as_interrupt
from .progress import Progress
from .work_folder import WorkFolder

# what the compiler reads itself
SOURCES = (".mlir", ".c")
# commands of the compiler that are the same here
PASSED_ON = {
    "simulate": "simulate the cycles of a design and report the bottleneck",
    "platforms": "list the platforms",
}


class _Parser(argparse.ArgumentParser):
    """Options of a command are added when it is the one that is given, since those of the compiler
    must be asked for; fill: adds them.
    """

    def __init__(self, *arguments, fill=None, **options):
        super().__init__(*arguments, **options)
        self._fill = fill

    def parse_known_args(self, args=None, namespace=None, **options):
        if self._fill:
            fill, self._fill = self._fill, None
            fill(self, "--help-expert" in (args or ()))
        found, rest = super().parse_known_args(args, namespace, **options)
        strange = next((word for word in rest if word.startswith("--") and word != "--"), None)
        if strange and self.get_default("run"):
            name = strange.partition("=")[0]
            known = [each for each in self._option_string_actions if each.startswith("--")]
            command = self.prog.partition(" ")[2]
            raise compiler_options.unknown(name, command, known, f"`{self.prog} --help-expert`")
        return found, rest

    def error(self, message):
        raise Error(message, f"`{self.prog} --help` lists what is accepted")


def _is_passed_on(arguments: list[str]) -> bool:
    """Is it a command of the compiler, among them a run that takes no images?"""
    if arguments[:1] == ["run"]:
        return not any(word.partition("=")[0] == "--images" for word in arguments)
    return bool(arguments) and arguments[0] in PASSED_ON


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    try:
        if _is_passed_on(arguments):
            return _pass_on(arguments)
        options = _parser().parse_args(arguments)
        for name in ("platform", "quant"):
            if "settings" in options:
                setattr(options, name, options.settings.get(name, [None])[-1])
        _silence_libraries(debug)
        with Progress() as progress, signals_as_interrupt(progress):
            return options.run(options, progress)
    except CompileError as error:
        sys.stderr.write(error.text)
    except Error as error:
        report_error(str(error), *error.notes)
    except KeyboardInterrupt:
        report_error("interrupted")
        return STATUS
    except OSError as error:
        report_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:
        report_error(f"internal: {type(error).__name__}: {error}", "--debug shows where")
        if debug:
            traceback.print_exc()
    return 1


def _pass_on(arguments: list[str]) -> int:
    """Runs a command of the compiler, which is told of an interruption and says so itself."""
    from . import core

    with signals_as_interrupt():
        with subprocess.Popen([str(core.find_file(core.COMPILER)), *arguments]) as process:
            try:
                return process.wait()
            except KeyboardInterrupt:
                process.terminate()
                return process.wait()


def _silence_libraries(debug: bool) -> None:
    """Hides progress bars, warnings and log messages of libraries."""
    if debug:
        return
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="streamtensor", description="PyTorch models as stream dataflow accelerators."
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"streamtensor {__version__}",
        help="print the version",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name, add in (
        ("export", _add_export),
        ("compile", _add_compile),
        ("run", _add_run),
        ("generate", _add_generate),
        ("evaluate", _add_evaluate),
        ("explore", _add_explore),
        ("demo", _add_demo),
        ("report", _add_report),
    ):
        add(commands, name)
    for name, help in PASSED_ON.items():
        commands.add_parser(name, help=help)
    return parser


def _command(
    commands, name: str, help: str, run, compiles: str | None = None, more=None
) -> argparse.ArgumentParser:
    """compiles: the command of the compiler whose options this one has, too; more: added to the
    help of some of them.
    """

    def fill(command, expert: bool) -> None:
        if compiles:
            compiler_options.add_to(command, compiles, expert, more)
            command.add_argument(
                "--help-expert",
                action="help",
                default=argparse.SUPPRESS,
                help="show this help message with the expert options",
            )

    # Without abbreviations: --tokens would be read as --tokens-per-launch.
    command = commands.add_parser(name, help=help, description=help, allow_abbrev=False, fill=fill)
    command.set_defaults(run=run)
    command.add_argument(
        "--debug", action="store_true", help="show tracebacks and the messages of libraries"
    )
    return command


def _seed(text: str) -> int:
    if not 0 <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 2^63 - 1")
    return int(text)


def _add_seed(command) -> None:
    command.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of random weights (if the model has none) and of sampling (default 0)",
    )


def _add_model(command) -> None:
    command.add_argument(
        "model",
        metavar="NAME|FOLDER",
        help="Hugging Face model name, or a folder with config.json and *.safetensors",
    )
    _add_seed(command)


def _add_context(command) -> None:
    command.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="maximum tokens of prompt and answer together (default 1024, or the model's limit)",
    )


def _add_prefill_chunk(command, with_w4a8: str = "") -> None:
    command.add_argument(
        "--prefill-chunk",
        type=int,
        metavar="N",
        help=f"maximum prompt tokens per launch (default 16{with_w4a8})",
    )
    # what scripts that call this command say
    command.add_argument("--tokens", type=int, dest="prefill_chunk", help=argparse.SUPPRESS)


def _add_phase(command, both: bool = False) -> None:
    help = "step to compile (default decode)"
    command.add_argument(
        "--phase",
        choices=("decode", "prefill", "both") if both else ("decode", "prefill"),
        default="decode",
        help=help + "; both: one kernel with shared weights and KV cache" if both else help,
    )
    _add_context(command)
    _add_prefill_chunk(
        command,
        "; w4a8 with both phases: 32 on boards with 32 memory ports, else 8" if both else "",
    )


def _add_batch(command) -> None:
    command.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="sequences per launch; each weight is read once for all of them (default 1)",
    )


def _add_argmax(command) -> None:
    command.add_argument(
        "--argmax",
        action="store_true",
        help="select the most likely token on the device and return its id instead of the logits",
    )


def _add_quant_method(command, **default) -> None:
    command.add_argument(
        "--quant-method",
        choices=("rtn", "gptq"),
        **default,
        help="weight rounding: rtn (to nearest) or gptq (default with a calibration text)",
    )


def _add_calibration(command, or_folder: str = "", more: str = "") -> None:
    command.add_argument(
        "--calibration",
        type=Path,
        metavar=f"FILE{or_folder}",
        help=f"calibration text for GPTQ, at most 8 windows of 512 tokens; needs a tokenizer{more}",
    )


def _add_output(command, required: bool = True, help: str = "output folder") -> None:
    command.add_argument(
        "-o", dest="output", type=Path, required=required, metavar="DIR", help=help
    )


def _add_export(commands, name: str) -> None:
    command = _command(commands, name, "Write a model's step as MLIR, with its weights.", _export)
    _add_model(command)
    _add_phase(command)
    _add_batch(command)
    command.add_argument(
        "--no-attributes",
        action="store_true",
        help="write plain MLIR without the names and roles of arguments and results",
    )
    _add_output(command)


def _add_compile(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "Compile a model's step, or a module, into a design.",
        _compile,
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
    _add_seed(command)
    _add_phase(command, both=True)
    _add_batch(command)
    _add_argmax(command)
    _add_quant_method(command)
    _add_calibration(command, "|FOLDER", "; of modules with int8: inputs as .npy, .npz or pictures")
    command.add_argument(
        "--no-weights",
        action="store_true",
        help="compile from config.json alone: design, cycles and report, but nothing to run",
    )
    _add_output(command)


def _add_run(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "Run a design once, from .npy files to .npy files, or classify images (--images FOLDER).",
        _run,
    )
    command.add_argument("design", type=Path, metavar="DESIGN", help="folder of the design")
    command.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="images: .npy and .npz, or pictures, which are resized and scaled to 0 to 1 (with "
        "the package pillow)",
    )
    command.add_argument(
        "--labels", type=Path, metavar="FILE", help="names of the classes, one on each line"
    )
    command.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="cpu (default), or xrt:0 for the first accelerator card",
    )


def _run(options, progress: Progress) -> int:
    from .images import classify

    classify.run(options.design, options.images, options.labels, options.device, progress)
    return 0


def _add_generate(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "Compile a model, run the design on the CPU and print the generated text.",
        _generate,
        "compile",
    )
    _add_model(command)
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument(
        "--prompt",
        action="append",
        metavar="TEXT",
        help="prompt text; repeat it for a batch of sequences; needs the model's tokenizer",
    )
    prompt.add_argument(
        "--prompt-ids",
        type=_ids,
        action="append",
        metavar="ID,ID,...",
        help="prompt as token ids; repeat it for a batch of sequences",
    )
    command.add_argument(
        "--no-chat-template",
        action="store_true",
        help="use the prompt unchanged, without the model's chat template",
    )
    command.add_argument(
        "--max-new-tokens",
        type=int,
        default=16,
        metavar="N",
        help="maximum number of generated tokens (default 16)",
    )
    command.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="stop before this text appears; may be repeated",
    )
    command.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="sampling temperature; 0 (default): greedy decoding",
    )
    command.add_argument(
        "--top-k",
        type=int,
        metavar="N",
        help="sample from the N most likely tokens (default 0: all, or what the model's folder "
        "says)",
    )
    command.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="sample from the most likely tokens with total probability P (default 1, or what the "
        "model's folder says)",
    )
    command.add_argument(
        "--tokens-per-launch",
        type=int,
        metavar="N",
        help="tokens decoded per launch, fed back on the device (default 16; 1 when sampling)",
    )
    _add_context(command)
    _add_prefill_chunk(command, "; w4a8: 1, which means no prefill")
    _add_argmax(command)
    _add_quant_method(command)
    _add_calibration(command)
    _add_output(command, required=False, help="output folder: the design is kept there")


def _add_evaluate(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "Measure quantization: perplexity on a text, and how often the most likely next "
        "token stays.",
        _evaluate,
    )
    _add_model(command)
    command.add_argument(
        "--text",
        type=Path,
        required=True,
        metavar="FILE",
        help="text to evaluate on; its first windows are used for calibration",
    )
    command.add_argument(
        "--quant",
        metavar="SCHEME",
        default="w4a8",
        help="quantization: fp32, bf16, w8a8 or w4a8 (default w4a8)",
    )
    _add_quant_method(command, default="gptq")
    command.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="tokens per evaluation window (default 512, or the model's limit)",
    )
    command.add_argument(
        "--original",
        metavar="MODEL",
        help="the model without quantization, with which a quantized folder is compared; its own "
        "integers are measured then",
    )
    command.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="FILE",
        help="write the quantized weights to FILE, for `stc compile --weights`",
    )


def _add_explore(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "Explore the design space with Optuna, on this machine or a Dask cluster.",
        _explore,
        "explore",
    )
    command.add_argument(
        "model",
        type=Path,
        metavar="FILE",
        help="MLIR module, as `streamtensor export` writes it, or a C file",
    )
    command.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="designs compiled in parallel on this machine (default: number of cores)",
    )
    command.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler, as tcp://HOST:8786; its workers need this package",
    )
    _add_output(command, help="output folder: the study and report.html")


def _add_demo(commands, name: str) -> None:
    command = _command(
        commands,
        name,
        "GPT-2 from PyTorch to a running design; fails if its tokens differ from PyTorch's.",
        _demo,
        "compile",
    )
    _add_seed(command)
    _add_output(command)


def _add_report(commands, name: str) -> None:
    command = _command(
        commands, name, "Print what a design is, and show its page in a browser.", _report_design
    )
    command.add_argument("design", type=Path, metavar="DIR", help="design folder")
    command.add_argument("--no-page", action="store_true", help="print only, and open no browser")


def _report_design(options, progress: Progress) -> int:
    import webbrowser

    from .report import Report

    print(Report.read(options.design))
    page = options.design / "report.html"
    print(f"page: {page}")
    if not options.no_page and page.is_file():
        webbrowser.open(page.absolute().as_uri())
    return 0


def _load(options, progress: Progress):
    from .language import models

    progress.stage("load the model")
    model = models.load(options.model, options.seed)
    if model.notice and not getattr(options, "no_weights", False):
        progress.note(model.notice)
    _take_zero_points(options, model, progress)
    return model


def _take_zero_points(options, model, progress: Progress) -> None:
    """Adds zero=group to --quant, where it says nothing about zero points and weights have some."""
    from .quantize import Scheme

    quant = getattr(options, "quant", None)
    if not quant or "zero=" in quant or getattr(options, "no_weights", False):
        return
    if model.needs_zeros(Scheme.parse(quant)):
        options.quant = f"{quant},zero=group"
        progress.note(f"its weights have zero points: --quant {options.quant}")


def _platform(options, progress: Progress, command: str = "compile") -> str:
    """The platform; all options are checked by the compiler before minutes of loading and
    exporting.
    """
    platform = compiler_options.value(options.settings, "platform", command)
    if options.platform is None:
        progress.note(f"platform {platform} (default)")
    theirs = {key: value for key, value in options.settings.items() if key != "quant"}
    if options.quant and not options.quant.startswith("int8"):
        theirs["quant"] = [options.quant]
    compiler_options.check(theirs, command)
    return platform


def _others(options) -> compiler_options.Settings:
    """The settings beside the platform and the scheme."""
    return {
        name: values
        for name, values in options.settings.items()
        if name not in ("platform", "quant")
    }


def _export(options, progress: Progress) -> int:
    from . import output_folder, workflow

    ours = {workflow.MLIR, workflow.WEIGHTS, workflow.CONFIG}
    output_folder.check(options.output, ours)
    model = _load(options, progress)
    _note_tokens(options, progress)
    shape = workflow.step_shapes(
        model, options.phase, options.context, options.prefill_chunk, batch=options.batch
    )[0]
    with output_folder.folder(options.output, ours) as folder:
        # a run-time extent is an attribute
        shape = replace(shape, masks_past=options.no_attributes)
        workflow.export_files(model, shape, folder, progress, attributes=not options.no_attributes)
    return 0


def _note_tokens(options, progress: Progress) -> None:
    if options.phase == "decode" and options.prefill_chunk not in (None, 1):
        progress.note(
            f"--prefill-chunk {options.prefill_chunk} has no effect: a decode step takes one "
            "token per sequence"
        )


def _compile(options, progress: Progress) -> int:
    from . import module_file, output_folder, workflow
    from .images import image_models
    from .onnx import model as onnx_model

    is_by_name = image_models.is_image_model(options.model)
    is_onnx = onnx_model.is_onnx_file(options.model)
    is_source = Path(options.model).suffix in SOURCES
    _refuse(options, not is_onnx, "ONNX models", shape=options.shape, value=options.value)
    is_module = module_file.is_module_file(options.model)
    _refuse(options, not is_module, "FILE.py:NAME", input=options.input)
    takes_weights = is_source or is_by_name
    _refuse(options, not takes_weights, "image networks and of FILE.mlir", weights=options.weights)
    if is_source:
        return _compile_source(options, progress)
    compiler_options.refuse_those_of_c(options.settings, options.model)
    if is_onnx or is_module or is_by_name:
        return _compile_module(options, progress)
    _quant(options)
    platform = _platform(options, progress)
    _check_quant_method(options)
    output_folder.check(options.output, workflow.DESIGN_FILES)
    model = _load(options, progress)
    quant = _quant(options)
    _note_tokens(options, progress)
    shapes = workflow.step_shapes(
        model,
        options.phase,
        options.context,
        options.prefill_chunk,
        options.argmax,
        options.batch,
        _uses_engine(options),
        platform,
    )
    integers = _calibrated(options, model, progress)
    workflow.compile_phases(
        model,
        shapes,
        platform,
        options.output,
        progress,
        quant,
        not options.no_weights,
        integers,
        _others(options),
    )
    return 0


def _refuse(options, strange: bool, of: str, **given) -> None:
    """Rejects an option that is given where it does nothing."""
    option = _first_set((f"--{name.replace('_', '-')}", value) for name, value in given.items())
    if strange and option:
        raise Error(f"{option} has no effect with {options.model}", f"it is an option of {of}")


def _refuse_those_of_language_models(options) -> None:
    _refuse(
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
    from . import core

    _refuse_those_of_language_models(options)
    _refuse(options, True, "modules", calibration=options.calibration)
    source = Path(options.model)
    if source.suffix != ".c":
        compiler_options.refuse_those_of_c(options.settings, options.model)
    platform = _platform(options, progress)
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
    from . import api, output_folder, workflow
    from .quantization import static_quantization

    _refuse_those_of_language_models(options)
    is_integer = static_quantization.is_integer_scheme(options.quant)
    if is_integer:
        static_quantization.IntegerScheme.parse(options.quant)
    scheme = options.quant if is_integer else _quant(options)
    platform = _platform(options, progress)
    output_folder.check(options.output, workflow.DESIGN_FILES)
    progress.stage("load the module")
    made = _load_module(options, progress)
    if is_integer:
        progress.stage("calibrate")
    module, scheme = static_quantization.applied(
        made.module, made.inputs, scheme, options.calibration
    )
    progress.stage("export")
    lowered, tensors = api.lower(
        module, made.inputs, made.names, results=made.results, quant=scheme
    )
    settings = _others(options) | compiler_options.settings({"platform": platform, "quant": scheme})
    call = api.call_of(made.inputs, lowered)
    api.write_design(lowered, tensors, settings, options.output, progress.stage, call)
    return 0


def _load_module(options, progress: Progress):
    """The module of a Python file, of an ONNX model, or an image network by its name."""
    from . import module_file
    from .images import image_models
    from .onnx import model as onnx_model

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


def _both_phases(options, model) -> bool:
    """Whether a prompt is read in chunks."""
    if options.prefill_chunk is not None:
        return options.prefill_chunk != 1
    return not _uses_engine(options) and not _has_states(model)


def _has_states(model) -> bool:
    """Whether some of its layers keep a recurrent state."""
    from .language import decoder_layers

    return bool(decoder_layers.of(model.config).states)


def _uses_engine(options) -> bool:
    from .quantize import Scheme

    return Scheme.parse(options.quant or "fp32").uses_engine


def _first_set(options) -> str | None:
    """The name of the first option that is set."""
    return next((name for name, value in options if value), None)


def _check_quant_method(options) -> None:
    """Checks --quant-method and --calibration against each other and against --quant."""
    from .quantize import Scheme

    if options.quant_method == "rtn" and options.calibration:
        raise Error(
            "--quant-method rtn takes no --calibration", "gptq is the method that is calibrated"
        )
    if options.quant_method == "gptq" and not options.calibration:
        raise Error(
            "--quant-method gptq needs a calibration text",
            "--calibration FILE names it; --quant-method rtn needs none",
        )
    methods = (("--calibration", options.calibration), ("--quant-method", options.quant_method))
    option = _first_set(methods)
    if option and not (options.quant and Scheme.parse(options.quant).weight):
        raise Error(
            f"{option} has no effect with --quant {options.quant or 'fp32'}",
            "accepted are w4a8 and w8a8, whose weights are integers",
        )
    if option and getattr(options, "no_weights", False):
        raise Error(f"{option} and --no-weights contradict each other", "accepted is one of them")


def _calibrated(options, model, progress: Progress) -> dict | None:
    """The weights rounded by GPTQ, or as the folder has them, by their names in a weights file;
    None: the compiler rounds them to nearest.
    """
    if not options.calibration:
        return _stored(options, model, progress)
    from . import quantize
    from .language import calibrate, evaluation

    context = min(
        evaluation.CONTEXT,
        getattr(model.config, "max_position_embeddings", None) or evaluation.CONTEXT,
    )
    prompts = evaluation.prompts(_read_ids(options.model, model, options.calibration), context)
    module = model.with_values()
    progress.stage("calibrate")
    return quantize.weight_file_tensors(
        module,
        calibrate.weights(
            module, quantize.Scheme.parse(options.quant), "gptq", prompts, progress.update
        ),
    )


def _stored(options, model, progress: Progress) -> dict | None:
    """The integer weights of a folder that is quantized; what the scheme has no form for is rounded
    again.
    """
    from . import quantize

    scheme = quantize.Scheme.parse(options.quant or "fp32")
    if not model.quantization() or getattr(options, "no_weights", False):
        return None
    if not scheme.has_weights:
        progress.note(f"{model.quantization()} weights widened: --quant keeps integers")
        return None
    module = model.with_values()
    return quantize.weight_file_tensors(module, _stored_weights(model, module, scheme, progress))


def _stored_weights(model, module, scheme, progress: Progress) -> dict:
    """The integers that the files have, and what is rounded instead. module: with its values."""
    from . import quantize
    from .checkpoints import quantized_checkpoint

    kept = quantized_checkpoint.KeptWeights(model.packed, scheme)
    found = quantize.rounded(module, scheme, kept)
    if scheme.has_weights:
        progress.note(kept.report())
    return found


def _read_ids(name: str, model, path: Path) -> list[int]:
    """The text of a file as token ids."""
    text, tokenizer = _text(path), model.tokenizer()
    if tokenizer is None:
        raise Error(
            f"{name} has no tokenizer here, so the text cannot be read",
            "accepted is a folder with tokenizer.json",
        )
    return tokenizer(text)["input_ids"]


def _quant(options) -> str | None:
    """The scheme for `stc compile`; None: no quantization."""
    if options.quant is None:
        return None
    from .quantize import Scheme

    return None if Scheme.parse(options.quant).name == "fp32" else options.quant


def _generate(options, progress: Progress) -> int:
    from . import output_folder, workflow
    from .language import generation, generation_output

    _quant(options)
    if options.argmax and options.temperature:
        raise Error(
            f"--argmax and --temperature {options.temperature:g} contradict each other",
            "sampling needs the logits: accepted is one of them",
        )
    default = 1 if options.temperature else generation.TOKENS_PER_LAUNCH
    per_launch = default if options.tokens_per_launch is None else options.tokens_per_launch
    argmax = options.argmax or (per_launch > 1 and not options.temperature)
    generation.check_per_launch(per_launch, argmax)
    sampler = generation.Sampler(
        options.temperature,
        options.top_k or 0,
        1.0 if options.top_p is None else options.top_p,
        options.seed,
    )
    _check_text(options)
    _check_quant_method(options)
    platform = _platform(options, progress)
    if options.output:
        output_folder.check(options.output, workflow.DESIGN_FILES)
    model = _load(options, progress)
    quant = _quant(options)
    _follow_rules(options, model, sampler, progress)
    if sampler.rules:
        per_launch, argmax = 1, False
    elif _has_states(model) and options.tokens_per_launch is None:
        per_launch = 1
    end = model.end_tokens()
    tokenizer = None if options.prompt is None else model.tokenizer()
    prompts = _prompts(options, tokenizer)
    both = _both_phases(options, model)
    shapes = workflow.step_shapes(
        model,
        "both" if both else "decode",
        options.context,
        options.prefill_chunk,
        argmax,
        len(prompts),
        _uses_engine(options),
    )
    shape = shapes[0]
    generation.check_states(per_launch, shape)
    new = min(
        generation.check_prompt(
            prompt,
            options.max_new_tokens,
            model.config.vocab_size,
            shape.past + 1,
            workflow.context_limit(model),
        )
        for prompt in prompts
    )
    with _design_folder(options.output) as folder:
        lowered = workflow.compile_phases(
            model,
            shapes,
            platform,
            folder,
            progress,
            quant,
            integers=_calibrated(options, model, progress),
            others=_others(options),
        )
        with workflow.open_design(folder, lowered, progress) as design:
            progress.stage("generate")
            chunk = shapes[-1] if both else None
            answer = (
                generation_output.AnswerStream(
                    generation.Decoder(design, shape, chunk, per_launch),
                    tokenizer,
                    prompts[0],
                    options.stop,
                )
                if len(prompts) == 1
                else generation_output.BatchAnswers(
                    generation.BatchDecoder(design, shape, chunk, per_launch),
                    tokenizer,
                    prompts,
                    options.stop,
                )
            )
            answer.write(new, sampler, end, progress.update)
        if answer.stop_reason is None and new < options.max_new_tokens:
            progress.note(f"the context of {shape.past + 1} tokens is full")
        generation_output.print_speed(folder, answer, shapes)
    return 0


def _follow_rules(options, model, sampler, progress: Progress) -> None:
    """Gives the sampler what generation_config.json says about the choice of tokens."""
    from .language import generation_rules

    rules = generation_rules.GenerationRules.of(model, options.max_new_tokens)
    if rules is None:
        return
    on_device = options.argmax or (options.tokens_per_launch or 1) > 1
    if rules.applied and not on_device:
        sampler.rules = rules.logits
        progress.note(f"{', '.join(rules.applied)} of generation_config.json applied")
    if rules.sampling and options.temperature:
        if options.top_k is None:
            sampler.top_k = rules.sampling.get("top_k", 0)
        if options.top_p is None:
            sampler.top_p = rules.sampling.get("top_p", 1.0)
    for note in generation_rules.notes(rules, on_device, bool(options.temperature)):
        progress.note(note)


def _check_text(options) -> None:
    """Rejects options about text without --prompt, and options about sampling without sampling."""
    for name, texts in (("--prompt", options.prompt), ("--stop", options.stop)):
        # how Python decodes a byte that is not UTF-8
        if any("\udc80" <= letter <= "\udcff" for text in texts or () for letter in text):
            raise Error(f"{name} is not UTF-8", "accepted is plain text")
    if "" in options.stop:
        raise Error("--stop is empty", "accepted is a text that ends the answer")
    about_text = _first_set(
        (("--stop", options.stop), ("--no-chat-template", options.no_chat_template))
    )
    if about_text and options.prompt is None:
        raise Error(
            f"{about_text} has no effect with --prompt-ids, which use no tokenizer",
            "accepted is --prompt TEXT",
        )
    about_sampling = _first_set((("--top-k", options.top_k), ("--top-p", (options.top_p or 1) < 1)))
    if about_sampling and not options.temperature:
        raise Error(
            f"{about_sampling} has no effect with --temperature 0 (greedy decoding)",
            "accepted is a --temperature above 0",
        )


def _evaluate(options, progress: Progress) -> int:
    from . import output_folder, quantize
    from .checkpoints import weights
    from .language import evaluation, model_module

    quantize.Scheme.parse(options.quant)
    if options.output:
        output_folder.check_weights(options.output)
    model = _load(options, progress)
    scheme = quantize.Scheme.parse(options.quant)
    limit = model_module.context_limit(model.config) or evaluation.CONTEXT
    context = min(evaluation.CONTEXT, limit) if options.context is None else options.context
    if not 2 <= context <= limit:
        raise Error(
            f"--context {context} is outside what the model can do", f"accepted are 2 to {limit}"
        )
    calibration, pieces = evaluation.split(_read_ids(options.model, model, options.text), context)
    module = model.with_values()
    if options.original:
        method, exact = model.quantization(), _original(options, model).with_values()
        integers = _stored_weights(model, module, scheme, progress)
        progress.stage("evaluate")
        other = quantize.quantized_copy(module, scheme, integers)
        cost = evaluation.compare(exact, other, pieces, progress.update)
    else:
        method = options.quant_method
        progress.stage("evaluate")
        cost, integers = evaluation.cost(
            module, scheme, method, calibration, pieces, progress.update
        )
    print(f"fp32           perplexity {cost.exact:.4f} over {cost.tokens} tokens")
    print(
        f"{options.quant:<14} perplexity {cost.quantized:.4f} ({100 * cost.rise():+.2f} %), "
        f"method {method}"
    )
    print(f"next token     agrees with fp32 at {100 * cost.agreement:.2f} % of the positions")
    if options.output:
        found = quantize.weight_file_tensors(module, integers)
        options.output.absolute().parent.mkdir(parents=True, exist_ok=True)
        weights.write(options.output, found, found, found.__getitem__)
    return 0


def _original(options, model):
    """The model that the quantized one is compared with."""
    from .language import models

    if not model.quantization():
        raise Error(
            f"--original is given, but {options.model} is not quantized",
            "accepted is a quantized folder; --quant alone measures what rounding costs",
        )
    original = models.load(options.original)
    shapes = [
        {name: tuple(value.shape) for name, value in each.tensors().items()}
        for each in (model, original)
    ]
    name = next((each for each in shapes[1] if shapes[0].get(each) != shapes[1][each]), None)
    if name or not original.folder:
        raise Error(
            f"--original {options.original}: "
            + (f"its tensor '{name}' is another one" if name else "there are no weights"),
            "accepted is the model that the quantized one was made from",
        )
    return original


def _explore(options, progress: Progress) -> int:
    from .exploration import design_trials

    platform = _platform(options, progress, "explore")
    constraints = _others(options)
    resume = bool(constraints.pop("resume", None))
    constraints.pop("trials", None)
    trials = compiler_options.count(options.settings, "trials", "explore")
    settings = {"platform": [platform], **constraints}
    source = options.model if options.model.suffix == ".c" else None
    if not source:
        compiler_options.refuse_those_of_c(settings, "MLIR")
    task = design_trials.task(_text(options.model), settings, _quant(options), source)
    # before the study is opened, so that an error leaves the folder unchanged
    workers = design_trials.crew(options.workers, options.scheduler)
    with contextlib.ExitStack() as stack:
        stack.callback(workers.close)

        def watch(study):
            return stack.enter_context(design_trials.LiveTable(study, trials, sys.stderr)).done

        study = design_trials.run(task, options.output, resume, trials, workers, watch)
    if not design_trials.pareto_front(study):
        raise Error(design_trials.no_design_reason(study), "other limits, and another folder")
    for row in [design_trials.headings(study), *design_trials.rows(study)]:
        print("  ".join(row))
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Error(f"{path}: not UTF-8: byte {error.start}", "accepted is plain text") from None


@contextlib.contextmanager
def _design_folder(output: Path | None):
    if output:
        yield output
        return
    with WorkFolder() as work:
        yield Path(work) / "design"


def _prompts(options, tokenizer) -> list[list[int]]:
    if options.prompt is None:
        return options.prompt_ids
    if tokenizer is None:
        raise Error(
            f"{options.model} has no tokenizer here, so --prompt cannot be read",
            "--prompt-ids takes token ids, as in --prompt-ids 464,3290",
        )
    return [_read_prompt(text, tokenizer, options.no_chat_template) for text in options.prompt]


def _read_prompt(text: str, tokenizer, raw: bool) -> list[int]:
    if tokenizer.chat_template and not raw:
        messages = [{"role": "user", "content": text}]
        try:
            return list(
                tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, return_dict=True
                )["input_ids"]
            )
        except Exception as error:
            raise Error(
                "the model's chat template cannot take the prompt: "
                f"{type(error).__name__}: {error}",
                "--no-chat-template passes the prompt unchanged",
            ) from error
    return tokenizer(text)["input_ids"]


def _ids(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise Error(
            f"--prompt-ids '{text}' is not a list of token ids",
            "accepted are whole numbers with commas, as in 464,3290",
        ) from None


def _demo(options, progress: Progress) -> int:
    from . import demo

    return (
        0 if demo.run(options.output, _platform(options, progress), options.seed, progress) else 1
    )
