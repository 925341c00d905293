"""How a command ends that SIGINT, SIGTERM or SIGHUP interrupts: its folders and child processes go,
and one message says so.

An exception does this, but not inside a library whose C++ calls Python: there an exception that
comes at any time can end the process by abort, or be swallowed.  In such a place the signal's
handler removes the folders itself and ends the process.
"""

import contextlib
import os
import signal
import sys
import threading
from types import FrameType

from . import work_folder
from .progress import Progress

STATUS = 130  # exit status, as of a shell
_CALLS_PYTHON = ("torch", "torch_mlir")  # packages with C++ that calls Python


@contextlib.contextmanager
def signals_as_interrupt(progress: Progress | None = None):
    """Raises KeyboardInterrupt for SIGINT, SIGTERM and SIGHUP, or ends the process where that is
    not safe.

    If a library swallows the exception, the next stage ends the command.
    """

    def interrupt(_, frame: FrameType | None):
        if progress:
            progress.interrupted = True
        if _is_called_back(frame):
            _leave(progress)
        raise KeyboardInterrupt

    usual: dict = {number: signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGHUP)}
    usual[signal.SIGINT] = signal.default_int_handler
    ours = [
        number
        for number, handler in usual.items()
        if threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is handler
    ]
    try:
        for number in ours:
            signal.signal(number, interrupt)
        yield
    finally:
        for number in ours:
            signal.signal(number, usual[number])


def report_error(message: str, *notes: str, stream=None) -> None:
    lines = [f"streamtensor: error: {message}", *(f"note: {note}" for note in notes)]
    print("\n".join(lines), file=stream or sys.stderr, flush=True)


def _is_called_back(frame: FrameType | None) -> bool:
    """Whether a frame or one of its callers belongs to a package whose C++ calls Python."""
    while frame:
        if frame.f_globals.get("__name__", "").split(".")[0] in _CALLS_PYTHON:
            return True
        frame = frame.f_back
    return False


def _leave(progress: Progress | None) -> None:
    if progress:
        progress.__exit__()
    work_folder.remove_all()
    # what a library says may be collected at this time: not on the stream of that name
    report_error("interrupted", stream=sys.__stderr__)
    os._exit(STATUS)
