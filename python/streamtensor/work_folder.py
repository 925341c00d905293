"""Folders in which a process works until it removes them. Each is locked by its maker, so that what
a killed process left is known and removed by the next that works there.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

_YOUNG = 60  # seconds in which nobody asks whose it is: it may not be locked yet
_LETTERS = 8  # of a name, behind the prefix
_open: "weakref.WeakSet[WorkFolder]" = weakref.WeakSet()  # those of this process


class WorkFolder(tempfile.TemporaryDirectory):
    """A temporary folder, among others of this prefix in the same parent."""

    def __init__(self, prefix: str = "streamtensor.", parent: Path | None = None):
        parent = Path(parent or tempfile.gettempdir())
        _sweep(parent, prefix)
        super().__init__(prefix=prefix, dir=parent)
        _open.add(self)
        self._maker = os.getpid()
        held = _lock(self.name)
        if held is not None:
            weakref.finalize(self, os.close, held)


def remove_all() -> None:
    """Removes the folders of this process, which is about to end."""
    for folder in list(_open):
        if folder._maker == os.getpid():  # not the parent's, in a fork
            shutil.rmtree(folder.name, ignore_errors=True)


def _lock(path: str | Path) -> int | None:
    """The descriptor of a folder that is locked now; None: another process holds it."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _is_old(entry: os.DirEntry) -> bool:
    found = entry.stat(follow_symlinks=False)
    is_ours = entry.is_dir(follow_symlinks=False) and found.st_uid == os.geteuid()
    return is_ours and time.time() - found.st_mtime > _YOUNG


def _sweep(parent: Path, prefix: str) -> None:
    """Removes the folders that nobody holds."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            name = entry.name
            if len(name) != len(prefix) + _LETTERS or not name.startswith(prefix):
                continue
            with contextlib.suppress(OSError):
                held = _lock(entry.path) if _is_old(entry) else None
                if held is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(held)
