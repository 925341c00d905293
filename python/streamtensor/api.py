"""The Python API: exports a module with example inputs to MLIR and compiles it to a design."""

import inspect
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from . import call_form, core
from . import options as compiler_options
from .checkpoints import torchao_weights
from .checkpoints.weights import write
from .design import CPU, Design
from .errors import Error
from .lowering import graph
from .onnx import model as onnx_model
from .quantization import decomposed_integers, static_quantization
from .quantization.rounding_note import rounding_note
from .saved_call import Call, Saved, save
from .work_folder import WorkFolder

_exporting = threading.Lock()  # torch.export works for one thread at a time

_WITH_NUMBERS = "accepted are tensors that hold all their numbers"
_KNOWN = (torch.Tensor, bool, int, float, complex, str, type(None), torch.dtype, torch.device)


class Exported(NamedTuple):
    """The compiler's input for a module."""

    text: str  # linalg-on-tensors MLIR, the weights as arguments of @main
    weights: dict[str, torch.Tensor]  # those arguments by name, in their order


LoweredModule = tuple[graph.Lowered, dict[str, torch.Tensor]]  # with the values of its weights


class _Opened(NamedTuple):
    """A module with its example inputs, and the names of those and of its results."""

    module: torch.nn.Module
    inputs: tuple
    names: list[str] | None
    results: list[str]


def export(
    module, example_inputs=None, names=None, attributes: bool = True, shapes=None
) -> Exported:
    """Exports `module(*example_inputs)`. Inputs are called `names`, or arg0, arg1, ... where it is
    None. An ONNX file is taken as `compile` takes it.
    """
    made = _opened(module, example_inputs, names, shapes)
    lowered, tensors = lower(made.module, made.inputs, made.names, attributes, made.results)
    return Exported(lowered.text, {name: _stored(tensors[name]) for name in lowered.weights})


def compile(
    module,
    example_inputs=None,
    platform: str | None = None,
    output=None,
    names=None,
    quant: str | Mapping[str, str] | None = None,
    calibration=None,
    shapes: dict | None = None,
    **options,
) -> Design:
    """Compiles `module(*example_inputs)` into the folder `output`.

    module: or FILE.onnx, whose inputs have the shapes of `example_inputs` (a number: what an input
    always is), or those that the file says and `shapes` adds: {"x": (1, 3, 48, 192)}.
    output: None for a temporary folder, removed when the design is closed. quant: as for `stc
    compile --quant`, by layer as {"head": "w8a8", "body.*": "fp32", "*": "w4a8"}, or int8, which
    takes `calibration`, as `quantized` does. options: those that
    `streamtensor compile --help-expert` lists, as clock=250, max_dsp="50%". Buffers that the
    module writes are kept in the design's `buffers`.
    """
    return compiled(
        {name: value for name, value in locals().items() if name != "options"} | options
    )


def compiled(
    asked: dict[str, Any], device: str = CPU, known: LoweredModule | None = None
) -> Design:
    """What compile(**asked) gives, on a device. known: what `lower` gives for the same module,
    inputs and names.
    """
    own = {name: each.default for name, each in inspect.signature(compile).parameters.items()}
    own.pop("options")
    of = {**own, **asked}
    quant = compiler_options.scheme_text(of["quant"])
    options = {name: value for name, value in of.items() if name not in own}
    given = compiler_options.settings({"platform": of["platform"], **options}, others=list(own))
    is_ours = static_quantization.is_integer_scheme(quant)
    given |= compiler_options.settings({"quant": None if is_ours else quant})
    given = compiler_options.with_platform(given)
    compiler_options.refuse_those_of_c(given, "a module")
    compiler_options.check(given)
    made = _opened(of["module"], of["example_inputs"], of["names"], of["shapes"])
    module, scheme = static_quantization.applied(made.module, made.inputs, quant, of["calibration"])
    if known is None and (note := rounding_note(module, made.inputs, scheme)):
        warnings.warn(f"streamtensor: {note}", stacklevel=3)
    lowered, tensors = known or lower(
        module, made.inputs, made.names, results=made.results, quant=scheme
    )
    call = call_of(made.inputs, lowered)
    design = build(lowered, tensors, given, of["output"], call, device)
    design._module, design.is_quantized = of["module"], is_ours
    design._again = lambda others, device: compiled({**asked, "output": None, **others}, device)
    return design


def _opened(module, example_inputs, names, shapes) -> _Opened:
    if not onnx_model.is_onnx_file(module):
        if example_inputs is None or shapes is not None:
            raise Error(
                "shapes are given for a module" if shapes else "there are no example inputs",
                "accepted are example inputs; of an ONNX file shapes, too",
            )
        return _Opened(module, example_inputs, names, [])
    if example_inputs is None:
        found = onnx_model.load(module, shapes)
        return _Opened(found.module, found.inputs, names or found.names, found.results)
    if shapes is not None:
        raise Error("example inputs and shapes contradict each other", "accepted is one of them")
    found = onnx_model.load_for(module, _listed(example_inputs))
    return _Opened(found.module, found.inputs, names or found.names, found.results)


def build(
    lowered: graph.Lowered,
    tensors: dict[str, torch.Tensor],
    settings: compiler_options.Settings,
    output=None,
    call: Call | None = None,
    device: str = CPU,
) -> Design:
    """Compiles a lowered module; `tensors` holds the values of its weights, and of the buffers that
    it writes.

    settings: options of the compiler. call: how the module is called, None for tensors only.
    """
    keep = WorkFolder() if output is None else None
    folder = Path(keep.name) / "design" if keep else Path(output)
    try:
        write_design(lowered, tensors, settings, folder, call=call)
        images = (
            compiler_options.count(settings, "images", "compile") if "images" in settings else 1
        )
        inputs, results = (
            [each.of_images(images) for each in signatures]
            for signatures in (lowered.inputs, lowered.results)
        )
        design = Design(folder, inputs, results, device, keep, call=call)
        design.buffers.update(_buffers(lowered, tensors, call))
        return design
    except BaseException:
        if keep:
            keep.cleanup()
        raise


def write_design(
    lowered: graph.Lowered,
    tensors: dict[str, torch.Tensor],
    settings: compiler_options.Settings,
    folder: Path,
    stage=lambda _: None,
    call: Call | None = None,
) -> None:
    """Compiles a lowered module into the folder. stage: called with the name of each stage. call:
    how the module is called, None for tensors only.
    """
    with WorkFolder() as work:
        mlir, weights = Path(work) / "model.mlir", Path(work) / "weights.safetensors"
        mlir.write_text(lowered.text)
        stored = {name: _stored(tensors[name]) for name in lowered.weights}
        write(weights, stored, stored, stored.__getitem__)
        words = compiler_options.words(settings)
        core.compile_design([core.Source(mlir, lowered.origin)], weights, words, folder, stage)
    sides = {"": (lowered.inputs, lowered.results)}
    save(folder, Saved(sides, call, _buffers(lowered, tensors, call)))


def _buffers(lowered: graph.Lowered, tensors: dict, call: Call | None) -> dict[str, torch.Tensor]:
    """The first values of the buffers that the module writes."""
    written = lowered.written if call else ()
    return {name: tensors[name].detach().clone() for name in written if name in tensors}


def call_of(example_inputs, lowered: graph.Lowered) -> Call:
    """How a module is called that is called with such inputs."""
    assert lowered.form is not None  # it is None of language models only
    return Call(call_form.Arguments.of(_listed(example_inputs)), lowered.form, lowered.written)


def _listed(example_inputs) -> tuple:
    return tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)


def _stored(value: torch.Tensor) -> torch.Tensor:
    """The weight as the design reads it."""
    if value.dtype == torch.float64:
        return value.detach().float()
    return value.detach().view(torch.int8) if value.dtype == torch.uint8 else value


def lower(
    module, example_inputs, names=None, attributes: bool = True, results=(), quant=None
) -> LoweredModule:
    """The module in MLIR, with the values of its weights, and of the buffers that it writes.

    results: names of the results, else result0, result1, ... quant: the compiler's scheme, for
    weights that are integers already.
    """
    _check_module(module)
    module, packed = torchao_weights.opened(module)
    inputs = _listed(example_inputs)
    flat = [
        leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)
    ]
    _check_inputs(inputs)
    names = [f"arg{i}" for i in range(len(flat))] if names is None else list(names)
    if len(names) != len(flat) or len(set(names)) != len(names):
        raise Error(
            f"{len(names)} names for {len(flat)} input tensors",
            "accepted is one distinct name for each tensor",
        )
    ports = [graph.Port(name, "input") for name in names]
    with _exporting:
        module = decomposed_integers.applied(module, inputs)
        tensors: dict[str, Any] = graph.named_tensors(module)
        outputs = [graph.Port(name, "output") for name in results]
        lowered = graph.lower(module, inputs, ports, tensors, outputs, attributes)
    if not lowered.results:
        raise Error("the module computes no tensor", "accepted is a result with elements, at least")
    _warn_of_doubles(lowered, tensors)
    if packed:
        integers = torchao_weights.integers(module, packed, quant)
        tensors |= integers
        names = [name for name in (*lowered.weights, *integers) if tensors[name] is not None]
        lowered = replace(lowered, weights=list(dict.fromkeys(names)))
    kept = [*lowered.weights, *(name for name in lowered.written if name in tensors)]
    return lowered, {name: tensors[name] for name in kept}


def _check_module(module) -> None:
    if isinstance(module, torch.jit.ScriptModule):
        raise Error(
            "the module is TorchScript, which keeps its own code instead of Python's",
            "accepted is the nn.Module that it was made from, with the weights of its state_dict()",
        )
    if isinstance(module, torch.export.ExportedProgram):
        raise Error("an exported program is no module", "accepted is program.module()")
    if isinstance(module, (str, os.PathLike)):
        raise Error(
            f"{str(module)!r} is a path, not a module",
            "accepted is FILE.onnx; load others first: torch.load, or from_pretrained of their "
            "library; language models: streamtensor generate FOLDER",
        )
    if not isinstance(module, torch.nn.Module):
        raise Error(
            f"{type(module).__name__} is not a module",
            "accepted is an nn.Module; a function can be its forward",
        )
    for name, value in graph.named_tensors(module).items():
        if value.is_meta:
            raise Error(f"'{name}' of the module is on the meta device", _WITH_NUMBERS)


def _check_inputs(inputs: tuple) -> None:
    for value in torch.utils._pytree.tree_leaves(inputs):
        if not isinstance(value, _KNOWN):
            raise Error(
                f"an example input is not a tensor: {type(value).__name__}",
                "accepted are tensors, numbers, strings and None, also in lists, tuples and "
                "dictionaries",
            )
        if isinstance(value, torch.Tensor) and value.is_meta:
            raise Error("an example input is on the meta device", _WITH_NUMBERS)
        if isinstance(value, torch.Tensor) and value.layout != torch.strided:
            raise Error(
                f"an example input is a tensor of layout {value.layout}",
                "accepted are dense tensors: to_dense()",
            )


def _warn_of_doubles(lowered: graph.Lowered, tensors: dict[str, torch.Tensor]) -> None:
    floats = (each for each in (*lowered.inputs, *lowered.results) if each.stored.is_floating_point)
    types = {each.dtype for each in floats}
    if torch.float64 in types | {tensors[name].dtype for name in lowered.weights}:
        warnings.warn(
            "streamtensor: float64 is computed in float32, and given back as float64",
            stacklevel=4,
        )
