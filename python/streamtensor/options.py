"""The compiler's options, as it lists them itself: what command lines, keyword arguments and
dictionaries of options are made of.

Settings are options with their values, {"clock": ["250"], "max-dsp": ["50%"]}.
"""

import argparse
import functools
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from . import core
from .errors import Error

Settings = dict[str, list[str]]


@dataclass(frozen=True)
class Option:
    name: str
    kind: str  # flag, text, count, list or word
    value: str | None  # how its value looks, as COUNT|P%
    default: str | None  # None: none, or one that depends on the platform
    group: str
    expert: bool
    help: str
    letter: str | None = None
    words: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{self.name}"]


@functools.cache
def _listed(compiler: Path) -> list[dict]:
    done = subprocess.run([str(compiler), "options", "--json"], capture_output=True, text=True)
    if done.returncode:
        raise core.CompileError(done.stderr)
    return json.loads(done.stdout)


@functools.cache
def _table(compiler: Path, command: str) -> dict[str, Option]:
    rows = [row for row in _listed(compiler) if row["package"] and command in row["commands"]]
    return {row["name"]: _option(row) for row in rows}


def _option(row: dict[str, Any]) -> Option:
    found = {key: each for key, each in row.items() if key in Option.__dataclass_fields__}
    return Option(**{**found, "words": tuple(found.get("words", ()))})


def table(command: str = "compile") -> dict[str, Option]:
    """The options of a command of the compiler that the package has, too, by name."""
    return _table(core.find_file(core.COMPILER), command)


def words_by_flag(command: str | None = None) -> dict[str, tuple[str, ...]]:
    """The words that each option of the compiler takes, of one command or of all; none: it takes
    anything.
    """
    return {
        f"--{row['name']}": tuple(row.get("words", ()))
        for row in _listed(core.find_file(core.COMPILER))
        if command in (None, *row["commands"])
    }


def default(name: str, command: str = "compile") -> str | None:
    return table(command)[name].default


def nearest(name: str, known: Iterable[str]) -> str:
    return max(known, key=lambda each: SequenceMatcher(None, name, each).ratio())


def unknown(name: str, command: str, known: Iterable[str], lists: str) -> Error:
    """What is said of an option that there is not; lists: what lists all."""
    return Error(
        f"unknown option '{name}' of {command}",
        f"the nearest is {nearest(name, known)}; {lists} lists all",
    )


def settings(given: Mapping, command: str = "compile", others: Sequence[str] = ()) -> Settings:
    """The settings that keyword arguments ask for; None and False ask for nothing.

    others: names of the function's own keyword arguments, which may be the nearest.
    """
    known, found = table(command), {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in known:
            names = [*others, *(each.replace("-", "_") for each in known)]
            raise unknown(key, command, names, f"`stc {command} --help-expert`")
        texts = _texts(key, known[name], value)
        if texts:
            found[name] = texts
    return found


def scheme_text(quant) -> str | None:
    """The text of --quant for schemes by layer: {"lm_head": "w8a8", "*": "w4a8"}, where the first
    pattern that a layer's name matches counts, and * is what all others are, else fp32.
    """
    if quant is not None and not isinstance(quant, (str, Mapping)):
        accepted = "accepted is a scheme, as 'w4a8', or one for each layer, as {'0.*': 'w8a8'}"
        raise Error(f"quant is {quant!r}", accepted)
    if not isinstance(quant, Mapping):
        return quant
    layers = [f",{name}={scheme}" for name, scheme in quant.items() if name != "*"]
    return quant.get("*", "fp32") + "".join(layers)


OF_C = "of C: "


def refuse_those_of_c(found: Settings, what: str) -> None:
    """Rejects options that do nothing for a source that is not C."""
    if strange := next((each for each in found if table()[each].help.startswith(OF_C)), None):
        raise Error(f"--{strange} has no effect with {what}", "it is an option of C functions")


def with_platform(found: Settings) -> Settings:
    """The settings with the platform that the compiler would take, so that it says no more of
    it.
    """
    return found if "platform" in found else {"platform": [default("platform") or ""], **found}


def _texts(key: str, option: Option, value) -> list[str]:
    """The values of an option as the compiler's command line takes them."""
    if option.kind == "flag" and not isinstance(value, (bool, type(None))):
        raise Error(f"{key} is {value!r}", "accepted are True and False")
    if value is None or (option.kind == "flag" and not value):
        return []
    if option.name == "quant":
        return [str(scheme_text(value))]
    if isinstance(value, bool) and option.kind != "flag":
        raise Error(f"{key} is {value!r}", f"accepted is {option.value}")
    if option.kind != "list":
        return [str(value)]
    if isinstance(value, Mapping):
        return [f"{name}={each}" for name, each in value.items()]
    return [str(value)] if isinstance(value, (str, Path)) else [str(each) for each in value]


def words(found: Settings, command: str = "compile") -> list[str]:
    """The settings as words of the compiler's command line, in the order of its table."""
    known = table(command)
    return [
        word
        for name, option in known.items()
        for value in found.get(name, [])
        for word in ([f"--{name}"] if option.kind == "flag" else [f"--{name}", value])
    ]


def value(found: Settings, name: str, command: str = "compile") -> str | None:
    """The last value of an option, or its default."""
    return found[name][-1] if found.get(name) else default(name, command)


def count(found: Settings, name: str, command: str) -> int:
    """The value of an option that counts, 4K for 4096."""
    text = value(found, name, command) or "0"
    shift = 10 * (1 + "KMGT".index(text[-1])) if text[-1] in "KMGT" else 0
    return int(text.rstrip("KMGT")) << shift


def check(found: Settings, command: str = "compile") -> None:
    """Raises what the compiler says of the values, before a model is loaded and exported."""
    compiler = str(core.find_file(core.COMPILER))
    done = subprocess.run(
        [compiler, command, "-", "--dry-run", *words(found, command)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise core.CompileError(done.stderr or f"stc: error: it ended with {done.returncode}\n")


class _Set(argparse.Action):
    """Adds an option and its value to the settings of the command line."""

    def __init__(self, option_strings, dest, option: Option, **others):
        super().__init__(option_strings, dest, **others)
        self._option = option

    def __call__(self, parser, namespace, values, option_string=None):
        is_list = self._option.kind == "list"
        before = namespace.settings.get(self._option.name, []) if is_list else []
        added = {self._option.name: [*before, "1" if self._option.kind == "flag" else values]}
        namespace.settings = {**namespace.settings, **added}


def add_to(parser: argparse.ArgumentParser, command: str, expert: bool, more=None) -> None:
    """Adds the options of a command of the compiler, in its groups, to a parser.

    expert: shows the expert options, too. more: what is to be added to the help of some.
    """
    parser.set_defaults(settings={})
    groups = {}
    for option in table(command).values():
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        usual = f" (default {option.default})" if option.default and not option.words else ""
        text = option.help if usual.strip(" ()") in option.help else option.help + usual
        text += (more or {}).get(option.name, "")
        groups[option.group].add_argument(
            *option.flags,
            action=_Set,
            option=option,
            dest=f"settings_{option.name}",
            default=argparse.SUPPRESS,
            metavar=option.value,
            nargs=0 if option.kind == "flag" else None,
            help=text.replace("%", "%%") if expert or not option.expert else argparse.SUPPRESS,
        )
