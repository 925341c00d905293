"""Lowers an exported program to linalg on tensors by torch-mlir's passes, in a child process: what
ends that process, or is slow to stop, does not touch the caller's.
"""

import faulthandler
import io
import os
import pickle
import re
import signal
import warnings

from . import bit_views
from .errors import Error

_PIPELINES = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{ extra-library=})",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=True})",
)


class LoweringFailed(Exception):
    """A pass failed on an operation; `place` is its location, the target of a graph's node."""

    def __init__(self, said: list[tuple[str, str]]):
        self.place, message = said[0] if said else ("", "")
        super().__init__(message)


def lower(program):
    """The MLIR module of an exported program whose operations torch-mlir takes."""
    from torch_mlir import fx, ir
    from torch_mlir.dialects import torch as dialect

    cuts = bit_views.cut(program)
    context = ir.Context()
    context.enable_multithreading(False)  # threads do not follow into the child
    dialect.register_dialect(context)
    module = fx.export_and_import(
        program,
        output_type="raw",
        func_name="main",
        decomposition_table={},
        fx_importer=fx.FxImporter(context=context, py_attr_tracker=kept_references()),
    )
    said, text = _in_child(lambda: _run_passes(module))
    if text is None:
        raise LoweringFailed(said)
    lowered = ir.Module.parse(text, context)
    if cuts:
        bit_views.join(next(iter(lowered.body.operations)), cuts)
    return lowered


def kept_references():
    """The importer's table of tensors that became literals, which also keeps them alive: it knows
    them by address, and that of a tensor that is gone may be another's.
    """
    from torch_mlir.extras import fx_importer

    class Kept(fx_importer.RefTracker):
        def __init__(self):
            super().__init__()
            self._kept = []

        def track(self, referrent):
            self._kept.append(referrent)
            return super().track(referrent)

    return Kept()


def _run_passes(module) -> tuple[list[tuple[str, str]], bytes | None]:
    """The errors, each with its place, and the module as bytecode if there are none."""
    from torch_mlir import ir, passmanager

    said, text = [], io.BytesIO()
    module.context.emit_error_diagnostics = True
    module.context.attach_diagnostic_handler(
        lambda each: said.append((_place(each.location), each.message)) or True
    )
    with module.context:
        try:
            for pipeline in _PIPELINES:
                passmanager.PassManager.parse(pipeline).run(module.operation)
        except ir.MLIRError:
            return said, None
        module.operation.write_bytecode(text)
    return said, text.getvalue()


def _place(location) -> str:
    """The file of the location, which is where the importer puts an operation's name."""
    found = re.search(r'"([^"]+)"', str(location))
    return found[1] if found else ""


def _in_child(function):
    """The value of function(), computed in a copy of this process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # only this thread goes on in the copy
        child = os.fork()
    if not child:
        _answer(function, reading, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answer:
            found = answer.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = os.waitpid(child, 0)[1]
    if status:
        raise Error(
            "the module cannot be lowered: torch-mlir fails on one of its operations",
            "find it by compiling parts of the module; casts to float32 or int64 often help",
        )
    return pickle.loads(found)


def _answer(function, reading: int, writing: int) -> None:
    """In the child: writes the value, and ends."""
    status = 1
    try:
        os.close(reading)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(function(), answer)
        status = 0
    finally:
        os._exit(status)
