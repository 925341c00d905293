"""Writes output folders atomically; replaces only folders that this package wrote."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import Error
from .work_folder import WorkFolder

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux' renameat2


@contextlib.contextmanager
def folder(path: Path, ours: set[str]) -> Iterator[Path]:
    """A new, empty folder that replaces `path` when the block ends without an error.

    ours: the names that such a folder may contain; a `path` that contains others is rejected before
    the block runs.
    """
    check(path, ours)
    path = Path(os.path.realpath(path))  # for a link, its target is replaced
    path.parent.mkdir(parents=True, exist_ok=True)
    with WorkFolder(f".{path.name}.streamtensor-", path.parent) as work:
        fresh, old = Path(work) / "new", Path(work) / "old"
        fresh.mkdir()
        yield fresh
        if path.exists() and _exchange(fresh, path):
            return
        if path.exists():
            path.rename(old)
        fresh.rename(path)


def _exchange(left: Path, right: Path) -> bool:
    """Exchanges two folders in one step, so that a process that is killed leaves the old or the new
    one; False: the system or the file system cannot.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = os.fsencode(left), os.fsencode(right)
    return bool(rename) and not rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)


def check(path: Path, ours: set[str]) -> None:
    if path.is_dir():
        strange = sorted(entry.name for entry in path.iterdir() if entry.name not in ours)
        if strange:
            raise Error(
                f"{path}: not a folder that this command wrote: it contains '{strange[0]}'",
                "accepted is a new folder, an empty one, or one with "
                f"{', '.join(sorted(ours))} only",
            )
        if path.samefile("."):
            raise Error(
                f"{path}: the folder that this runs in would be replaced",
                "accepted is another folder",
            )
    elif path.exists() or path.is_symlink():
        raise Error(
            f"{path}: not a folder", "accepted is a new folder or one that this command wrote"
        )
    _check_above(Path(os.path.realpath(path)))


def check_weights(path: Path) -> None:
    """Rejects a path for a weights file that exists and is something else."""
    if path.exists() and not (path.is_file() and _has_weights(path)):
        raise Error(
            f"{path}: not a file of weights",
            "accepted is a new file, or one of weights, which is replaced",
        )
    _check_above(path)


def _has_weights(path: Path) -> bool:
    """Whether the file begins as safetensors: 8 bytes with the length of the header, and the
    header.
    """
    with open(path, "rb") as file:
        return file.read(9)[8:] == b"{"


def _check_above(path: Path) -> None:
    """Rejects a path whose missing parent folders cannot be created."""
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not above.is_dir():
        raise Error(f"{above}: not a folder", f"'{path.name}' is to be written there")
    if not os.access(above, os.W_OK | os.X_OK):
        raise Error(f"{above}: nothing can be written there", "accepted is a folder of yours")
