"""Arguments that several commands have."""

import argparse
from pathlib import Path

from .. import options as compiler_options


def new_command(
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


def add_seed(command) -> None:
    command.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of random weights (if the model has none) and of sampling (default 0)",
    )


def add_model(command) -> None:
    command.add_argument(
        "model",
        metavar="NAME|FOLDER",
        help="Hugging Face model name, or a folder with config.json and *.safetensors",
    )
    add_seed(command)


def add_context(command) -> None:
    command.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="maximum tokens of prompt and answer together (default 1024, or the model's limit)",
    )


def add_prefill_chunk(command, with_w4a8: str = "") -> None:
    command.add_argument(
        "--prefill-chunk",
        type=int,
        metavar="N",
        help=f"maximum prompt tokens per launch (default 16{with_w4a8})",
    )
    # what scripts that call this command say
    command.add_argument("--tokens", type=int, dest="prefill_chunk", help=argparse.SUPPRESS)


def add_phase(command, both: bool = False) -> None:
    help = "step to compile (default decode)"
    command.add_argument(
        "--phase",
        choices=("decode", "prefill", "both") if both else ("decode", "prefill"),
        default="decode",
        help=help + "; both: one kernel with shared weights and KV cache" if both else help,
    )
    add_context(command)
    add_prefill_chunk(
        command,
        "; w4a8 with both phases: 32 on boards with 32 memory ports, else 8" if both else "",
    )


def add_batch(command) -> None:
    command.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="sequences per launch; each weight is read once for all of them (default 1)",
    )


def add_argmax(command) -> None:
    command.add_argument(
        "--argmax",
        action="store_true",
        help="select the most likely token on the device and return its id instead of the logits",
    )


def add_quant_method(command, **default) -> None:
    command.add_argument(
        "--quant-method",
        choices=("rtn", "gptq"),
        **default,
        help="weight rounding: rtn (to nearest) or gptq (default with a calibration text)",
    )


def add_calibration(command, or_folder: str = "", more: str = "") -> None:
    command.add_argument(
        "--calibration",
        type=Path,
        metavar=f"FILE{or_folder}",
        help=f"calibration text for GPTQ, at most 8 windows of 512 tokens; needs a tokenizer{more}",
    )


def add_output(command, required: bool = True, help: str = "output folder") -> None:
    command.add_argument(
        "-o", dest="output", type=Path, required=required, metavar="DIR", help=help
    )
