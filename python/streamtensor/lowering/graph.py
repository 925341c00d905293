"""Lowers a PyTorch module to linalg-on-tensors MLIR, with every parameter and buffer as an argument
of @main.

Parameters may be on the meta device: lowering depends on shapes and types only, so that a model of
any size is lowered without its weights in memory. Arguments and results have their names and roles
as attributes:

    %arg0: tensor<1x1xi64> {stream.name = "ids", stream.role = "input"}
"""

import contextlib
import io
import itertools
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch.export.graph_signature import OutputKind

from .. import call_form
from ..errors import Error
from . import (
    attention_sinks,
    branches,
    complex_numbers,
    computed_numbers,
    constant_folding,
    decompose,
    filled_tensors,
    layer_names,
    narrow_integers,
    repeated_steps,
    torch_lowering,
    traced_functions,
)
from .torch_lowering import ELEMENTS

_ACCEPTED = "accepted is what torch.export can trace with the given inputs and torch-mlir can lower"
_ALTERNATIVES = {  # by a regular expression for the op's name
    "linalg|inverse|cholesky": "accepted are inverses, factors and solutions "
    "of what is known before the module runs: "
    "worked out once, and kept as a buffer",
}


@dataclass(frozen=True)
class Port:
    """The attributes of one argument or result."""

    name: str
    role: str  # argument: input, state or weight; result: output or state
    # state result: axis of the rows that it replaces; input with `rows`: axis of the tokens
    axis: int | None = None
    at: str | None = None  # state result: input that holds the index of the first row
    # input that holds the number of valid rows (tokens); None: all are valid
    rows: str | None = None
    batch: int | None = None  # number of sequences in the state
    # argument: for each dim the input that holds its run-time extent, or ""
    dims: tuple[str, ...] | None = None
    # input: the output that is fed back to it (its first row) in the next step, and the maximum
    # number of steps
    next: tuple[str, int] | None = None
    step: int | None = None  # input: increment per row of a step
    window: int | None = None  # argument: sliding window in tokens; older rows are not read


@dataclass(frozen=True)
class Signature:
    """The type of one argument or result of the lowered function."""

    port: Port
    shape: tuple[int, ...]
    dtype: torch.dtype
    stored: torch.dtype  # in the design's memory

    def of_images(self, images: int) -> "Signature":
        """The same of several images, which are the leading extent."""
        if images == 1:
            return self
        return replace(self, shape=(images * self.shape[0], *self.shape[1:]))


@dataclass(frozen=True)
class Lowered:
    """A function in MLIR, and the signatures of its arguments and results."""

    text: str
    inputs: list[Signature]
    weights: list[str]  # names in argument order; they follow the inputs
    results: list[Signature]
    # the PyTorch op that a line of the text comes from
    origin: Callable[[int], str | None] = lambda line: None
    # how the function's results stand in what the module returns
    form: call_form.Results | None = None
    # the function writes into these inputs and buffers: result that holds the new value, by name
    written: dict[str, str] = field(default_factory=dict)


class _Functional(torch.nn.Module):
    """`module` with its parameters and buffers as a second list of arguments."""

    def __init__(
        self,
        module: torch.nn.Module,
        weights: dict[str, torch.Tensor],
        form: call_form.Arguments,
    ):
        super().__init__()
        # in a tuple, so that torch.export does not find the parameters
        self._untracked = (module, weights, form)
        # what the module itself asks of its exported graph
        self.check_export = getattr(module, "check_export", None)

    def forward(self, inputs: list, weights: list):
        module, values, form = self._untracked
        for traced, value in zip(weights, values.values()):
            if value.dtype == torch.bool:
                traced_functions.keep_value(traced, value)
        with layer_names.told(module):
            return torch.func.functional_call(
                module, dict(zip(values, weights)), form.filled(inputs)
            )


def named_tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters, then buffers, in the order of the module; a tied parameter once, by its first
    name.
    """
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def lower(
    module: torch.nn.Module,
    inputs: Sequence,
    ports: Sequence[Port],
    weights: dict[str, torch.Tensor],
    results: Sequence[Port] = (),
    attributes: bool = True,
    prefix: str = "",
) -> Lowered:
    """Lowers `module(*inputs)`; weights that it does not use are dropped.

    ports: one per tensor in `inputs`, with nested lists flattened. results: ports of the first
    results; further results are outputs named resultN. prefix: removed from the names of weights in
    the text.
    """
    tensors = [
        leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)
    ]
    # complex ones are constants, whose parts are apart
    weights = {name: value for name, value in weights.items() if not value.is_complex()}
    function = _Functional(module, weights, call_form.Arguments.of(inputs))
    return lower_function(function, tensors, ports, weights, results, attributes, prefix)


def lower_function(
    function: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    ports: Sequence[Port],
    weights: dict[str, torch.Tensor],
    results: Sequence[Port] = (),
    attributes: bool = True,
    prefix: str = "",
) -> Lowered:
    """Lowers a module that takes two lists, (inputs, weights)."""
    public = [name.removeprefix(prefix) for name in weights]
    names = [*(port.name for port in ports), *public]
    # torch.export takes a tensor that is given twice, or is a parameter too, for one argument
    apart = [value.detach().clone() for value in inputs]
    program, lowered, form, written, types, layers = _lower_to_linalg(
        function, (apart, list(weights.values()))
    )
    function = next(iter(lowered.body.operations))
    used = _drop_unused(function, len(ports), public)
    place_of = {name: place for place, name in enumerate(public, len(ports))}
    results = [*results, *_further_results(len(results), form, [names[at] for at in written])]
    arguments = [
        *ports,
        *(Port(name, "input" if place_of[name] in written else "weight") for name in used),
    ]
    if attributes:
        _annotate(function, arguments, results)
    lowered.operation.verify()
    elements = _input_types(program)
    elements = elements[: len(ports)] + [elements[place_of[name]] for name in used]
    taken = _signatures(arguments, function.type.inputs, elements)
    return Lowered(
        layer_names.text_with_locations(lowered, layers) if attributes else str(lowered),
        [signature for signature in taken if signature.port.role != "weight"],
        [name for name in used if place_of[name] not in written],
        _signatures(results, function.type.results, types),
        lambda line: _told_origin(lowered, program, line),
        form,
        {names[at]: _next_name(names[at]) for at in written},
    )


def _next_name(name: str) -> str:
    return f"{name}.next"


def _further_results(first: int, form: call_form.Results, written: list[str]) -> list[Port]:
    count = form.tensors
    return [
        *(Port(f"result{i}", "output") for i in range(first, count)),
        *(Port(_next_name(name), "output") for name in written),
    ]


def _input_types(program) -> list[torch.dtype]:
    wanted = program.graph_signature.user_inputs
    found = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [found[name].meta["val"].dtype for name in wanted]


def _lower_to_linalg(functional: torch.nn.Module, arguments: tuple):
    """The program, its MLIR module, the form of its results, the arguments that it writes, the
    types of its results, and the layers whose numbers are the lines of locations.
    """
    program = None
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PyTorch warns about its own code
            program = _export(functional, arguments)
            program = complex_numbers.rewrite(program, _export, line_of)
            layer_names.keep(program.graph)
            _check_shapes(program)
            filled_tensors.rewrite(program.graph)
            attention_sinks.rewrite(program.graph)
            if check := getattr(functional, "check_export", None):
                check(program)
            branches.inline(program)
            numbers = computed_numbers.rewrite(program)
            spelled = {node.name: node.target for node in program.graph.nodes}
            narrow_integers.widen(program.graph)
            program = decompose.run(program)
            repeated_steps.roll(program)
            narrow_integers.widen(program.graph)
            form = call_form.separate_values(program, numbers)
            _check_effects(program, spelled)
            written = _written_arguments(program)
            constant_folding.fold_constants(program)
            _check_types(program)
            layers = _locate(program)
            types = narrow_integers.keep_results(program)
            lowered = torch_lowering.lower(program)
            _check_repeatable(program, lowered)
            return program, lowered, form, written, types, layers
    except Error:
        raise
    except torch_lowering.LoweringFailed as error:
        raise _no_lowering(error.place, _place_of(error.place, program)) from error
    except Exception as error:
        raise _untold(error, "traced" if program is None else "lowered to linalg") from error


def exported_graph(module: torch.nn.Module, inputs: tuple) -> torch.fx.GraphModule:
    """The module as a graph of its operators, with nothing written in place."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            program = _export(module, inputs)
            layer_names.keep_called(program.graph)
            program = program.run_decompositions({})
            _check_shapes(program)
            made = program.module()
    except Error:
        raise
    except Exception as error:
        raise _untold(error, "traced") from error
    for node in list(made.graph.nodes):
        if node.op == "call_module":  # checks of the inputs' shapes
            made.graph.erase_node(node)
    return made


def _untold(error: Exception, done: str) -> Error:
    """The error's own text speaks of PyTorch's or torch-mlir's internals: --debug shows it."""
    kind = f" ({type(error).__name__})" if type(error).__module__ == "builtins" else ""
    return Error(
        f"the module cannot be {done}{kind}{place_of_error(error)}",
        "run module(*inputs) first: it has to take these inputs in PyTorch",
        _ACCEPTED,
    )


def _export(functional: torch.nn.Module, arguments: tuple):
    from torch._subclasses.fake_tensor import DataDependentOutputException
    from torch.fx._lazy_graph_module import _use_lazy_graph_module
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    disabled = logging.root.manager.disable
    try:
        # its messages about a failure do not show the user's graph
        logging.disable(logging.CRITICAL)
        # the graph modules of its passes are never called
        with (
            contextlib.redirect_stderr(io.StringIO()),
            _use_lazy_graph_module(True),
            traced_functions.Traced(),
            torch.fx.traceback.preserve_node_meta(),
        ):
            return _exported(functional, arguments)
    except DataDependentOutputException as error:
        raise Error(
            f"{error.func} gives what its inputs' values say{place_of_error(error)}",
            "accepted are results that are tensors: torch.where chooses by numbers",
        ) from error
    except GuardOnDataDependentSymNode as error:
        raise Error(
            f"the module decides by numbers that it computes{place_of_error(error)}",
            "accepted is control flow by shapes and constants; torch.where chooses by numbers",
        ) from error
    finally:
        logging.disable(disabled)


def _exported(functional: torch.nn.Module, arguments: tuple):
    """Exports the module; where it transforms functions, what is left of it then, since the export
    knows some transforms only.
    """
    try:
        program = torch.export.export(functional, arguments)
        if not _has_transforms(program):
            return program
    except (AttributeError, torch._dynamo.exc.Unsupported) as error:
        try:
            left = _Transformed(functional, arguments)
        except Exception:
            raise error from None
    else:
        left = _Transformed(functional, arguments)
    return torch.export.export(left, arguments)


def _has_transforms(program) -> bool:
    """Are functions transformed in the program, as by torch.vmap or torch.func.grad? Their inner
    tensors may have become its constants.
    """
    is_inner = torch._C._functorch.is_functorch_wrapped_tensor
    return any(
        getattr(node.target, "__module__", "").startswith("torch._functorch")
        for node in program.graph.nodes
        if node.op == "call_function"
    ) or any(is_inner(each) for each in program.constants.values() if torch.is_tensor(each))


class _Transformed(torch.nn.Module):
    """The operators of a module that are left when functions are transformed."""

    def __init__(self, functional: torch.nn.Module, arguments: tuple):
        super().__init__()
        from torch.fx.experimental.proxy_tensor import make_fx

        self._operators = make_fx(functional, tracing_mode="fake")(*arguments)

    def forward(self, *arguments):
        return self._operators(*arguments)


def place_of_error(error: Exception) -> str:
    """The line of the user's code that raised the error."""
    return _last_place(
        (frame.line, frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
    )


def _place_of(operation: str, program) -> str:
    """The line of the user's code of the first node with that target."""
    return next(
        (line_of(node) for node in program.graph.nodes if str(node.target) == operation), ""
    )


def line_of(node) -> str:
    return _last_place(
        (line, file, number)
        for file, number, line in re.findall(
            r'File "([^"]+)", line (\d+), in .*\n +(.+)',
            node.meta.get("written") or node.meta.get("stack_trace") or "",
        )
    )


def _last_place(frames) -> str:
    ours, torchs = Path(__file__).parents[1], Path(torch.__file__).parent
    places = [
        frame
        for frame in frames
        if frame[0]
        and not frame[1].startswith("<")
        and not {ours, torchs} & set(Path(frame[1]).parents)
    ]
    return ": {} ({}:{})".format(*places[-1]) if places else ""


def _written_arguments(program) -> list[int]:
    """The arguments that the program writes; their new values become its last results."""
    signature, output = program.graph_signature, program.graph.output_node()
    pairs = list(zip(output.args[0], signature.output_specs))
    own = [pair for pair in pairs if pair[1].kind == OutputKind.USER_OUTPUT]
    written = [pair for pair in pairs if pair[1].kind != OutputKind.USER_OUTPUT]
    places = [signature.user_inputs.index(spec.target) for _, spec in written]
    for _, spec in written:
        spec.kind, spec.target = OutputKind.USER_OUTPUT, None
    output.args = (tuple(node for node, _ in own + written),)
    signature.output_specs[:] = [spec for _, spec in own + written]
    return places


def _check_effects(program, written: dict) -> None:
    """Rejects loops whose length values decide, and ops that raise errors depending on values.

    written: targets by name, before the decomposition.
    """
    for node in program.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.higher_order.while_loop:
            raise Error(
                f"torch.while_loop runs as often as its values say{line_of(node)}",
                "accepted is a loop of a fixed number of steps, as for i in range(N)",
            )
        if node.op == "call_function" and node.target is torch.ops.higher_order.with_effects:
            target = (
                written.get(node.meta["from_node"][0].name, node.args[1])
                if node.meta.get("from_node")
                else node.args[1]
            )
            raise _no_lowering(str(target), line_of(node))


def _no_lowering(operation: str, place: str) -> Error:
    if not operation:
        return Error("the module cannot be lowered to linalg", _ACCEPTED)
    spelled = f"torch.{operation}".removesuffix(".default")
    return Error(
        f"the module cannot be lowered to linalg: there is no lowering for {spelled}{place}",
        _alternative(operation) or _ACCEPTED,
    )


def _alternative(operation) -> str | None:
    return next(
        (note for pattern, note in _ALTERNATIVES.items() if re.search(pattern, str(operation))),
        None,
    )


def _check_repeatable(program, lowered) -> None:
    """Rejects random numbers: the lowered module then has a generator state beside the function."""
    if len(lowered.body.operations) == 1:
        return
    random = next(
        (
            f"{node.target} gives other numbers each time{line_of(node)}"
            for node in program.graph.nodes
            if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        ),
        "the module gives other numbers each time",
    )
    raise Error(
        random, "accepted are modules that give the same for the same inputs: eval() stops dropout"
    )


def _check_shapes(program) -> None:
    """Rejects data-dependent shapes: torch-mlir does not terminate on some of them."""
    for node in program.graph.nodes:
        for value in torch.utils._pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and not all(
                isinstance(extent, int) for extent in value.shape
            ):
                raise Error(
                    f"{node.target} gives as many numbers as its inputs' values say{line_of(node)}",
                    "accepted are shapes that are known before the module runs; torch.where "
                    "chooses by numbers",
                )


def _check_types(program) -> None:
    for node in program.graph.nodes:
        types = [
            value.dtype
            for value in torch.utils._pytree.tree_leaves(node.meta.get("val"))
            if isinstance(value, torch.Tensor)
        ]
        strange = next((each for each in types if each not in ELEMENTS.values()), None)
        if strange:
            notes = [f"accepted are tensors of {', '.join(ELEMENTS)}", _alternative(node.target)]
            raise Error(
                f"{node.target if node.op == 'call_function' else node.name} gives {strange}"
                f"{line_of(node)}",
                *filter(None, notes),
            )


def _locate(program) -> list[str]:
    """Sets each node's op as its location, and the number of its layer as the line; the importer
    takes locations from stack traces. The layers, by these numbers.
    """
    layers = {"": 1}
    loops = [node.meta["loop"] for node in program.graph.nodes if "loop" in node.meta]
    for node in itertools.chain(program.graph.nodes, *(loop.step.nodes for loop in loops)):
        if node.op != "placeholder":
            number = layers.setdefault(layer_names.of(node), 1 + len(layers))
            node.meta["written"] = node.meta.get("stack_trace")
            node.meta["stack_trace"] = f'File "{node.target}", line {number}, in {node.name}'
    return ["", *layers]


def _told_origin(module, program, line: int) -> str | None:
    operation = _origin(module, line)
    return operation and f"{operation}{_place_of(operation, program)}"


def _origin(module, line: int) -> str | None:
    """The op at that line (from 1) of the module's text."""
    lines = layer_names.lines_with_locations(module)
    found = (
        re.findall(r'loc\((?:fused\[|callsite\()?"([^"]+)"', lines[line - 1])
        if line <= len(lines)
        else []
    )
    return found[-1] if found else None


def _signatures(ports: Sequence[Port], types, elements: dict[str, torch.dtype]) -> list[Signature]:
    """elements: PyTorch's types, which say what MLIR's do not: signed or unsigned."""
    signatures = []
    for port, text, kind in zip(ports, map(str, types), elements, strict=True):
        *extents, element = text.removeprefix("tensor<").removesuffix(">").split("x")
        if element not in ELEMENTS or "?" in extents:
            raise Error(
                f"'{port.name}' has the type {text}",
                f"accepted are static tensors of {', '.join(ELEMENTS)}",
            )
        stored = (
            kind if kind != torch.float64 else narrow_integers.STORED.get(element, torch.float32)
        )
        signatures.append(Signature(port, tuple(map(int, extents)), kind, stored))
    return signatures


def _drop_unused(function, keep: int, names: list[str]) -> list[str]:
    """Removes unused arguments after the first `keep`; returns the names of the others."""
    from torch_mlir import ir

    block = function.entry_block
    if len(block.arguments) != keep + len(names):
        raise Error(
            f"the lowered function has {len(block.arguments)} arguments, "
            f"but the module has {keep} inputs and {len(names)} parameters and buffers"
        )
    used = [any(True for _ in block.arguments[keep + i].uses) for i in range(len(names))]
    for i in reversed(range(len(names))):
        if not used[i]:
            block.erase_argument(keep + i)
    with function.context:
        signature = ir.FunctionType.get([a.type for a in block.arguments], function.type.results)
        function.attributes["function_type"] = ir.TypeAttr.get(signature)
    return [name for name, is_used in zip(names, used) if is_used]


def _annotate(function, arguments: Sequence[Port], results: Sequence[Port]) -> None:
    from torch_mlir import ir

    with function.context:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [_dictionary(port) for port in arguments]
        )
        function.attributes["res_attrs"] = ir.ArrayAttr.get([_dictionary(port) for port in results])


def _dictionary(port: Port):
    from torch_mlir import ir

    values = {
        "stream.name": ir.StringAttr.get(port.name),
        "stream.role": ir.StringAttr.get(port.role),
    }
    if port.dims:
        values["stream.dims"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in port.dims])
    if port.next is not None:
        output, most = port.next
        values["stream.next"] = ir.DictAttr.get(
            {
                "output": ir.StringAttr.get(output),
                "most": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), most),
            }
        )
    if port.step is not None:
        values["stream.step"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), port.step)
    if port.window is not None:
        values["stream.window"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), port.window)
    if port.axis is not None:
        values["stream.axis"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), port.axis)
    if port.at is not None:
        values["stream.position"] = ir.StringAttr.get(port.at)
    if port.batch is not None:
        values["stream.batch"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), port.batch)
    if port.rows is not None:
        values["stream.token_count"] = ir.StringAttr.get(port.rows)
    return ir.DictAttr.get(values)


def told(error: Exception) -> str:
    """What the error of a library says, if that is written for users; else where it arose."""
    kinds = (OSError, ValueError, KeyError)
    of_entries = type(error).__module__.startswith("huggingface_hub")
    text = first_line(error)
    if (of_entries or type(error) in kinds or isinstance(error, OSError)) and "<class" not in text:
        return text
    return f"the installed transformers cannot take it{place_of_error(error)}"


def first_line(error: Exception) -> str:
    """The first line of the message; for a list, its heading and the first entry."""
    if isinstance(error, KeyError):
        return f"there is no {error}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (
        " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
        or type(error).__name__
    )
