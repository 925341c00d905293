"""The language model that a command is given, and its weights as the options want them."""

from pathlib import Path

from ..errors import Error
from ..progress import Progress
from .checked_options import first_set, read_text


def load(options, progress: Progress):
    from ..language import models

    progress.stage("load the model")
    model = models.load(options.model, options.seed)
    if model.notice and not getattr(options, "no_weights", False):
        progress.note(model.notice)
    _take_zero_points(options, model, progress)
    return model


def _take_zero_points(options, model, progress: Progress) -> None:
    """Adds zero=group to --quant, where it says nothing about zero points and weights have some."""
    from ..quantize import Scheme

    quant = getattr(options, "quant", None)
    if not quant or "zero=" in quant or getattr(options, "no_weights", False):
        return
    if model.needs_zeros(Scheme.parse(quant)):
        options.quant = f"{quant},zero=group"
        progress.note(f"its weights have zero points: --quant {options.quant}")


def note_tokens(options, progress: Progress) -> None:
    if options.phase == "decode" and options.prefill_chunk not in (None, 1):
        progress.note(
            f"--prefill-chunk {options.prefill_chunk} has no effect: a decode step takes one "
            "token per sequence"
        )


def has_states(model) -> bool:
    """Whether some of its layers keep a recurrent state."""
    from ..language import decoder_layers

    return bool(decoder_layers.of(model.config).states)


def uses_engine(options) -> bool:
    from ..quantize import Scheme

    return Scheme.parse(options.quant or "fp32").uses_engine


def check_quant_method(options) -> None:
    """Checks --quant-method and --calibration against each other and against --quant."""
    from ..quantize import Scheme

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
    option = first_set(methods)
    if option and not (options.quant and Scheme.parse(options.quant).weight):
        raise Error(
            f"{option} has no effect with --quant {options.quant or 'fp32'}",
            "accepted are w4a8 and w8a8, whose weights are integers",
        )
    if option and getattr(options, "no_weights", False):
        raise Error(f"{option} and --no-weights contradict each other", "accepted is one of them")


def calibrated(options, model, progress: Progress) -> dict | None:
    """The weights rounded by GPTQ, or as the folder has them, by their names in a weights file;
    None: the compiler rounds them to nearest.
    """
    if not options.calibration:
        return _stored(options, model, progress)
    from .. import quantize
    from ..language import calibrate, evaluation

    context = min(
        evaluation.CONTEXT,
        getattr(model.config, "max_position_embeddings", None) or evaluation.CONTEXT,
    )
    prompts = evaluation.prompts(read_ids(options.model, model, options.calibration), context)
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
    from .. import quantize

    scheme = quantize.Scheme.parse(options.quant or "fp32")
    if not model.quantization() or getattr(options, "no_weights", False):
        return None
    if not scheme.has_weights:
        progress.note(f"{model.quantization()} weights widened: --quant keeps integers")
        return None
    module = model.with_values()
    return quantize.weight_file_tensors(module, stored_weights(model, module, scheme, progress))


def stored_weights(model, module, scheme, progress: Progress) -> dict:
    """The integers that the files have, and what is rounded instead. module: with its values."""
    from .. import quantize
    from ..checkpoints import quantized_checkpoint

    kept = quantized_checkpoint.KeptWeights(model.packed, scheme)
    found = quantize.rounded(module, scheme, kept)
    if scheme.has_weights:
        progress.note(kept.report())
    return found


def read_ids(name: str, model, path: Path) -> list[int]:
    """The text of a file as token ids."""
    text, tokenizer = read_text(path), model.tokenizer()
    if tokenizer is None:
        raise Error(
            f"{name} has no tokenizer here, so the text cannot be read",
            "accepted is a folder with tokenizer.json",
        )
    return tokenizer(text)["input_ids"]
