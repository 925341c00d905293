"""The command line: `streamtensor`, or `python -m streamtensor`."""

import argparse
import logging
import os
import subprocess
import sys
import traceback
import warnings

from . import __version__
from . import options as compiler_options
from .commands import compile as compile_command
from .commands import completion, demo, evaluate, explore, export, generate, report, run
from .core import CompileError
from .errors import Error
from .interruption import STATUS, report_error, signals_as_interrupt
from .progress import Progress

COMMANDS = {
    "export": export,
    "compile": compile_command,
    "run": run,
    "generate": generate,
    "evaluate": evaluate,
    "explore": explore,
    "demo": demo,
    "report": report,
    "completion": completion,
}
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

    def actions(self) -> list[argparse.Action]:
        """All of them, those of the compiler among them."""
        self._add_options(True)
        return self._actions

    def _add_options(self, expert: bool) -> None:
        if self._fill:
            fill, self._fill = self._fill, None
            fill(self, expert)

    def parse_known_args(self, args=None, namespace=None, **options):
        self._add_options("--help-expert" in (args or ()))
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
        report_error(error.message, *error.notes)
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
    for name, command in COMMANDS.items():
        command.add(commands, name)
    for name, help in PASSED_ON.items():
        commands.add_parser(name, help=help)
    return parser
