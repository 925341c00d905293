"""streamtensor evaluate: what quantization costs a model on a text."""

from pathlib import Path

from ..errors import Error
from ..progress import Progress
from .arguments import add_model, add_quant_method, new_command
from .language_model import load, read_ids, stored_weights


def add(commands, name: str) -> None:
    command = new_command(
        commands,
        name,
        "Measure quantization: perplexity on a text, and how often the most likely next "
        "token stays.",
        run,
    )
    add_model(command)
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
    add_quant_method(command, default="gptq")
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


def run(options, progress: Progress) -> int:
    from .. import output_folder, quantize
    from ..checkpoints import weights
    from ..language import evaluation, model_module

    quantize.Scheme.parse(options.quant)
    if options.output:
        output_folder.check_weights(options.output)
    model = load(options, progress)
    scheme = quantize.Scheme.parse(options.quant)
    limit = model_module.context_limit(model.config) or evaluation.CONTEXT
    context = min(evaluation.CONTEXT, limit) if options.context is None else options.context
    if not 2 <= context <= limit:
        raise Error(
            f"--context {context} is outside what the model can do", f"accepted are 2 to {limit}"
        )
    calibration, pieces = evaluation.split(read_ids(options.model, model, options.text), context)
    module = model.with_values()
    if options.original:
        method, exact = model.quantization(), _original(options, model).with_values()
        integers = stored_weights(model, module, scheme, progress)
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
    from ..language import models

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
