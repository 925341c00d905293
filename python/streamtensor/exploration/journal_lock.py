"""The lock of an exploration's journal: Optuna's, with messages about what it waits for."""

import sys
import time
from pathlib import Path

from optuna.storages.journal import JournalFileSymlinkLock

from ..errors import Error

NOTICE_SECONDS = 2  # seconds before a message
STALE_SECONDS = 30  # seconds without a write after which the owner of the lock counts as killed
POLL_SECONDS = 0.02


class JournalLock(JournalFileSymlinkLock):
    """A symbolic link beside the journal, which one run at a time holds."""

    def __init__(self, journal: Path):
        super().__init__(str(journal))
        self._journal, self._link = journal, journal.with_name(f"{journal.name}.lock")

    def acquire(self) -> bool:
        begun = since = time.monotonic()
        written, told = self._written(), False
        if self._link.is_symlink() and not self._link.exists():
            # a dangling link of a killed run, in a folder that was moved: nobody holds it
            self._link.unlink(missing_ok=True)
        while not self._taken():
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            if self._written() != written:
                written, since = self._written(), now
            if not told and now - begun >= NOTICE_SECONDS:
                told = True
                _say(
                    f"waiting for {self._link}, the lock of another exploration in this "
                    "folder, or of one that was killed"
                )
            if now - since >= STALE_SECONDS:
                since = now
                _say(
                    f"{self._link} is removed: nothing was written for {STALE_SECONDS} s, so "
                    "the exploration that made it was killed"
                )
                self._link.unlink(missing_ok=True)
        return True

    def release(self) -> None:
        try:
            super().release()
        except RuntimeError:
            raise Error(
                f"{self._link} was removed while this exploration wrote",
                "only one exploration may run in a folder; --resume continues it",
            ) from None

    def _taken(self) -> bool:
        try:
            self._link.symlink_to(self._journal)
            return True
        except FileExistsError:
            return False

    def _written(self) -> float | None:
        return self._journal.stat().st_mtime if self._journal.exists() else None


def _say(text: str) -> None:
    print(f"streamtensor: {text}", file=sys.stderr, flush=True)
