"""Files of a design folder as Python reads them: where one was changed, an error says which."""

import contextlib
import dataclasses
import functools
import json
import types
import typing
from pathlib import Path

from .errors import Error

# what reading a broken text, and taking parts of values of other types, raises
_BROKEN = (
    ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip
_hints = functools.cache(typing.get_type_hints)


@contextlib.contextmanager
def reading(path: Path):
    """What goes wrong in here is a fault of this file's text."""
    try:
        yield
    except _BROKEN as error:
        raise Error(
            f"{path}: not the file that was written here: {type(error).__name__}: {error}"[:400],
            "compile the design again",
        ) from error


def read(path: Path):
    """The JSON value of a file; to be used in `reading`."""
    return json.loads(path.read_text(encoding="utf-8"))


def typed(value):
    """The dataclass, if its values are of the types of their fields."""
    hints = _hints(type(value))
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        if not _fits(found, hints[field.name]):
            raise TypeError(f"'{field.name}' is {found!r}")
    return value


def _fits(value, hint) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, each) for each in parts)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return len(value) == len(kinds) and all(map(_fits, value, kinds))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, origin or hint) and (hint is bool or not isinstance(value, bool))
