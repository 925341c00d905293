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

import torch

from ..errors import Error
from . import bit_views, integer_text, recurrences

_PIPELINES = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline{ extra-library=})",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=True})",
)


ELEMENTS = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i1": torch.bool,
}


_VERIFIES = ",torch-verify-linalg-on-tensors-backend-contract"


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
    importer = fx.FxImporter(context=context, py_attr_tracker=kept_references())
    importer.import_frozen_program(program, func_name="main")
    functions = _import_functions(program, importer)
    said, text = _in_child(lambda: _run_passes(importer.module, functions))
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


def _import_functions(program, importer) -> dict[str, str]:
    """Makes operators of our library calls of functions, and imports what each step of those that
    are loops computes as another; returns the text of the former by name.
    """
    from . import decompose

    elements = {dtype: name for name, dtype in ELEMENTS.items()}
    functions, steps = {}, {}
    for node in program.graph.nodes:
        name = f"operator_{len(functions)}"
        if integer_text.is_integer_operator(node):
            functions[name] = integer_text.text(node, name)
            continue
        loop = recurrences.loop_of(node)
        if not loop:
            continue
        key = recurrences.step_key(node)
        if key not in steps:
            steps[key] = f"step_{len(steps)}"
            if loop.step:
                importer.import_stateless_graph(loop.step, func_name=steps[key])
            else:
                step = decompose.run(recurrences.step_program(node))
                importer.import_frozen_program(step, func_name=steps[key])
        functions[name] = recurrences.loop_text(node, name, steps[key], elements)
    _call(importer.module, list(functions))
    return functions


def _call(module, functions: list[str]) -> None:
    """Replaces main's operators of the library, in order, by calls of these functions."""
    from torch_mlir import ir

    main = next(
        each for each in module.body.operations if each.attributes["sym_name"].value == "main"
    )
    operators = [
        each.operation
        for each in main.regions[0].blocks[0].operations
        if each.operation.name == "torch.operator"
        and each.attributes["name"].value.startswith("torch.streamtensor.")
    ]
    for operator, function in zip(operators, functions, strict=True):
        types = [each.type for each in operator.results]
        operands = list(operator.operands)
        tensors = [each for each in operands if str(each.type).startswith("!torch.vtensor")]
        with module.context, ir.Location.unknown():
            kind = ir.FunctionType.get([each.type for each in tensors], types)
            ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get(function),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(kind),
                },
                regions=1,
                ip=ir.InsertionPoint(module.body),
            )
            call = ir.Operation.create(
                "func.call",
                results=types,
                operands=tensors,
                attributes={"callee": ir.FlatSymbolRefAttr.get(function)},
                loc=operator.location,
                ip=ir.InsertionPoint(operator),
            )
        for old, new in zip(operator.results, call.results):
            old.replace_all_uses_with(new)
        operator.erase()
        _erase_unused(operands)


def _erase_unused(values: list) -> None:
    """Erases the numbers and lists that only an operator of our library read."""
    for value in values:
        if str(value.type).startswith("!torch.vtensor") or any(True for _ in value.uses):
            continue
        owner = value.owner
        operands = list(owner.operands)
        owner.erase()
        _erase_unused(operands)


def _run_passes(module, functions: dict[str, str]) -> tuple[list[tuple[str, str]], bytes | None]:
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
                passes = passmanager.PassManager.parse(pipeline)
                if functions:  # the last pass refuses calls: it runs when they are inlined
                    spelled = str(passes).replace(_VERIFIES, "")
                    passes = passmanager.PassManager.parse(spelled)
                passes.run(module.operation)
            if functions:
                whole = module.operation.get_asm(enable_debug_info=True)
                module = ir.Module.parse(_with_functions(whole, functions))
                inline = f"builtin.module(inline,symbol-dce{_VERIFIES})"
                passmanager.PassManager.parse(inline).run(module.operation)
        except ir.MLIRError:
            return said, None
        module.operation.write_bytecode(text)
    return said, text.getvalue()


def _with_functions(text: str, functions: dict[str, str]) -> str:
    """The module's text with these functions in place of their declarations."""
    for name, function in functions.items():
        declared = re.compile(rf"^ *func\.func private @{name}\(.*$", re.MULTILINE)
        text = declared.sub(lambda _, function=function: function, text)
    return re.sub(r"func\.func @step_", "func.func private @step_", text)


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
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writing, "wb") as answer:
            pickle.dump(function(), answer)
        status = 0
    finally:
        os._exit(status)
