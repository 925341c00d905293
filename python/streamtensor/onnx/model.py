"""ONNX models as modules: FILE.onnx on the command line and in `streamtensor.compile`."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ..errors import Error
from . import file as onnx_file
from . import module as onnx_module


@dataclass(frozen=True)
class OnnxModel:
    module: torch.nn.Module
    inputs: tuple  # tensors of zeros
    names: list[str]  # of the inputs
    results: list[str]  # names of the results


def is_onnx_file(model) -> bool:
    return isinstance(model, (str, Path)) and str(model).endswith(".onnx")


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """NAME=1x3x48x192"""
    name, _, extents = text.rpartition("=")
    try:
        found = tuple(int(each) for each in extents.split("x")) if extents else ()
    except ValueError:
        found = (0,)
    if not name or min(found, default=1) < 1:
        raise Error(
            f"--shape '{text}' cannot be read", "accepted is INPUT=1x3x48x192, positive numbers"
        )
    return name, found


def parse_value(text: str) -> tuple[str, float]:
    """NAME=16000"""
    name, _, number = text.rpartition("=")
    try:
        found = float(number) if name else None
    except ValueError:
        found = None
    if found is None:
        raise Error(f"--value '{text}' cannot be read", "accepted is INPUT=NUMBER")
    return name, found


def load(path, shapes=None, values=None) -> OnnxModel:
    """shapes: extents of inputs by name, which those have to have that the file leaves open.
    values: numbers that inputs always have, by name; these are no inputs then.
    """
    return _made(onnx_file.read(Path(path)), dict(shapes or {}), dict(values or {}))


def load_for(path, examples: tuple) -> OnnxModel:
    """The model for inputs of the shapes of these tensors; a number is what an input always is."""
    model = onnx_file.read(Path(path))
    inputs = model.graph.inputs
    pairs = list(zip(inputs, examples))
    wrong = [
        own for own, each in pairs if isinstance(each, torch.Tensor) and each.dtype != own.dtype
    ]
    if wrong or len(inputs) != len(examples):
        raise Error(
            f"{model.name} takes other inputs than the {len(examples)} examples",
            "accepted are " + ", ".join(f"'{each.name}' of {each.dtype}" for each in inputs),
        )
    tensors = [each for each in examples if isinstance(each, torch.Tensor)]
    shapes = {own.name: tuple(x.shape) for own, x in pairs if isinstance(x, torch.Tensor)}
    values = {own.name: x for own, x in pairs if not isinstance(x, torch.Tensor)}
    made = _made(model, shapes, values)
    return OnnxModel(made.module, tuple(tensors), made.names, made.results)


def _made(model: onnx_file.Model, shapes: dict, values: dict) -> OnnxModel:
    graph = model.graph
    _check_names(model, shapes, values)
    builder = onnx_module.Builder(model)
    inputs, scope, bound = [], {}, {}
    for each in graph.inputs:
        if each.name in values:
            scope[each.name] = builder.constant(_fixed(model, each, values[each.name], shapes))
            continue
        extents = _extents(model, each, shapes, bound)
        inputs.append(torch.zeros(extents, dtype=each.dtype))
        fake = builder.mode.from_tensor(inputs[-1])
        scope[each.name] = onnx_module.Value(fake, slot=builder.new_slot())
    names = [each.name for each in graph.inputs if each.name not in values]
    slots = [scope[name].slot for name in names]
    results = builder.run(graph, scope)
    outputs = [builder.slot_of(value, name) for value, name in zip(results, graph.outputs)]
    module = onnx_module.OnnxModule(builder.steps, slots, outputs, builder.constants)
    return OnnxModel(module.eval(), tuple(inputs), names, graph.outputs)


def _fixed(model, each: onnx_file.Input, number, shapes: dict) -> torch.Tensor:
    extents = shapes.get(each.name, each.extents)
    extents = () if extents is None else extents
    whole = each.dtype.is_floating_point or number == int(number)
    if not all(isinstance(extent, int) for extent in extents) or not whole:
        raise Error(
            f"{model.name}: input '{onnx_file.shown(each.name)}' is given the number {number}",
            f"accepted is a number of {each.dtype} for an input whose shape is known",
        )
    return torch.full(extents, number, dtype=each.dtype)


def _check_names(model: onnx_file.Model, shapes: dict, values: dict) -> None:
    names = [each.name for each in model.graph.inputs]
    if wrong := [each for each in [*shapes, *values] if each not in names]:
        raise Error(
            f"{model.name} has no input '{wrong[0]}', whose shape or value is given",
            f"accepted are {', '.join(map(onnx_file.shown, names))}",
        )
    if not set(names) - set(values):
        raise Error(f"{model.name} has no inputs", "accepted are graphs that take tensors")


def _extents(model, each: onnx_file.Input, shapes: dict, bound: dict[str, int]) -> tuple[int, ...]:
    """The extents of an input. bound: those of extents that have a name."""
    own, given = each.extents, shapes.get(each.name)
    if own is None and given is None:
        raise Error(
            f"{model.name}: input '{onnx_file.shown(each.name)}' has no shape",
            f"accepted is one by --shape {each.name}=…, as in 1x3x224x224",
        )
    if given is None:
        given = [bound.get(extent, extent) for extent in own]
        if not all(isinstance(extent, int) for extent in given):
            said = "x".join(
                "?" if extent is None else onnx_file.shown(str(extent)) for extent in own
            )
            raise Error(
                f"{model.name}: input '{onnx_file.shown(each.name)}' has the extents {said}",
                f"accepted are numbers: --shape {each.name}=… gives all of them, as in 1x3x224x224",
            )
    pairs = list(zip(own, given)) if own is not None else []
    fits = own is None or len(own) == len(given)
    for extent, size in pairs if fits else ():
        if isinstance(extent, str):
            fits &= bound.setdefault(extent, size) == size
        elif extent is not None:
            fits &= extent == size
    if not fits:
        said = "x".join("?" if x is None else onnx_file.shown(str(bound.get(x, x))) for x in own)
        raise Error(
            f"{model.name}: input '{onnx_file.shown(each.name)}' is given the shape "
            + "x".join(map(str, given)),
            f"accepted are extents of {said}",
        )
    return tuple(given)
