"""torch.compile(model, backend="streamtensor"): each graph that Dynamo finds runs as a compiled
design.

A design is compiled at the first call with new shapes or new weights; weights are compared with
those of earlier calls, since a write through .data or NumPy leaves no trace. Results are views of
inputs and of one another where PyTorch's are, and inputs and buffers that the graph writes are
written. Designs are in a temporary
folder until the compiled function is dropped (torch._dynamo.reset) or the process ends; compiled
CPU libraries are in the user's cache, as with `stc run`. A graph that cannot be compiled runs in
PyTorch after one warning with the reason; with options={"fallback": False} that is an error. Other
options: those of `streamtensor.compile`, as {"clock": 250}.
"""

import warnings
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import torch

from . import api
from . import options as compiler_options
from .design import Design
from .errors import Error
from .lowering import graph
from .lowering.aliasing import arranged, equal_bits, layouts, overlap

_last_design: Design | None = None


class FallbackWarning(UserWarning):
    """A graph runs in PyTorch instead of as a design."""


def last_design() -> Path | None:
    """The folder of the design that ran last; None before the first one and after it was
    dropped.
    """
    return _last_design.folder if _last_design and _last_design.folder.is_dir() else None


def backend(module: torch.fx.GraphModule, example_inputs, *, options: dict | None = None, **_):
    """The backend function that Dynamo calls, an entry point of the group torch_dynamo_backends."""
    given = dict(options or {})
    fallback = given.pop("fallback", True)
    settings = compiler_options.with_platform(compiler_options.settings(given, others=["fallback"]))
    compiler_options.check(settings)
    return torch._dynamo.disable(_GraphRunner(module, fallback, settings).run)


class _FlattenedGraph(torch.nn.Module):
    """The graph as a function of (inputs, weights), without the results that `wanted` leaves out.

    told: called with one item per result of the graph, (value,) for each result that is no tensor.
    """

    def __init__(self, module, pattern: list, wanted: list[bool], told):
        super().__init__()
        # in a tuple, so that torch.export does not find the module's parameters
        self._untracked = (module, wanted, told)
        # per argument: ("input", i), ("weight", i) or ("value", the value)
        self.pattern = pattern

    def forward(self, inputs: list, weights: list):
        source = {
            "input": inputs.__getitem__,
            "weight": weights.__getitem__,
            "value": lambda value: value,
        }
        module, wanted, told = self._untracked
        results = module(*(source[kind](item) for kind, item in self.pattern))
        told([None if isinstance(value, torch.Tensor) else (value,) for value in results])
        return tuple(value for value, is_wanted in zip(results, wanted) if is_wanted)


class _Compiled(NamedTuple):
    """A design, and how the results of the graph are made from the results of the design."""

    design: Design
    # the design's inputs and the results by which inputs are written: places of arguments
    inputs: list[int]
    written: list[int]
    layouts: list  # of the graph's tensors
    results: list  # per result of the graph: None for a tensor, else (value,)

    def __call__(self, arguments):
        global _last_design
        found = self.design(*(arguments[place] for place in self.inputs))
        _last_design = self.design
        found = list(found if isinstance(found, tuple) else (found,))
        own = len(found) - len(self.written)
        with torch.no_grad():
            for place, value in zip(self.written, found[own:]):
                arguments[place].copy_(value)
        tensors = iter(arranged(found[:own], self.layouts, arguments))
        return tuple(result[0] if result else next(tensors) for result in self.results)


class _GraphRunner:
    def __init__(self, module, fallback: bool, settings: compiler_options.Settings):
        self._module = module
        self._designs: dict[Any, Any] = {}
        self._fallback, self._settings = fallback, settings
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._fixed = [
            "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {}) for node in inputs
        ]
        self._names = _distinct([_readable(node.name) for node in inputs])
        self._weights: list[list[torch.Tensor]] = []  # copies of those that designs were made of
        weakref.finalize(self, _close, self._designs)

    def run(self, *arguments):
        key = self._key(arguments)
        if key not in self._designs:
            made = self._compile(arguments)
            key = self._key(arguments)  # what the graph writes is known now
            self._designs[key] = made
        compiled = self._designs[key]
        if compiled and self._meet(compiled, arguments):
            compiled = None
        return compiled(arguments) if compiled else self._module(*arguments)

    def _key(self, arguments) -> tuple:
        weights = [value for value, fixed in zip(arguments, self._fixed) if fixed]
        return self._number_of(weights), tuple(
            _cache_key(value) for value, fixed in zip(arguments, self._fixed) if not fixed
        )

    def _number_of(self, weights: list[torch.Tensor]) -> int:
        """The same number for the same values."""
        for number, known in enumerate(self._weights):
            if len(known) == len(weights) and all(map(equal_bits, known, weights)):
                return number
        self._weights.append([value.detach().clone() for value in weights])
        return len(self._weights) - 1

    def _meet(self, compiled: _Compiled, arguments) -> bool:
        """Whether an input that the graph writes shares memory with another argument."""
        return any(
            isinstance(other, torch.Tensor)
            and place != written
            and overlap(arguments[written], other)
            for written in compiled.written
            for place, other in enumerate(arguments)
        )

    def _compile(self, arguments) -> _Compiled | None:
        try:
            if torch.is_grad_enabled() and any(
                isinstance(v, torch.Tensor) and v.requires_grad for v in arguments
            ):
                raise Error("gradients are wanted; under torch.no_grad() it would run as a design")
            return self._build(arguments)
        except Error as error:
            if not self._fallback:
                raise
            # the second line may name the PyTorch op
            reason = "; ".join(str(error).splitlines()[:2])
            warnings.warn(
                f"streamtensor: a graph runs in PyTorch: {reason}", FallbackWarning, stacklevel=2
            )
            return None

    def _build(self, arguments) -> _Compiled:
        plans = layouts(self._module, arguments)
        wanted = [plan is not None and plan.is_computed for plan in plans]
        pattern: list[tuple[str, Any]] = []
        inputs: list[torch.Tensor] = []
        weights: dict[str, torch.Tensor] = {}
        places: list[int] = []
        for place, (value, fixed, name) in enumerate(zip(arguments, self._fixed, self._names)):
            if not isinstance(value, torch.Tensor):
                pattern.append(("value", value))
            elif fixed:
                pattern.append(("weight", len(weights)))
                weights[name] = value.detach()
            else:
                pattern.append(("input", len(inputs)))
                inputs.append(value.detach())
                places.append(place)
        results: list[Any] = []
        function = _FlattenedGraph(
            self._module, pattern, wanted, lambda found: results.__setitem__(slice(None), found)
        )
        ports = [graph.Port(f"arg{i}", "input") for i in range(len(inputs))]
        lowered = graph.lower_function(function, inputs, ports, weights)
        if not lowered.results:
            raise Error("the graph computes no tensor")
        place_of = {
            **{port.name: place for port, place in zip(ports, places)},
            **{name: self._names.index(name) for name in weights},
        }
        written = [place_of[name] for name in lowered.written]
        for place in written:
            self._fixed[place] = False
        design = api.build(lowered, weights, self._settings)
        design.prepare()  # if that fails, the graph runs in PyTorch
        taken = [place_of[signature.port.name] for signature in lowered.inputs]
        return _Compiled(design, taken, written, [plan for plan in plans if plan], results)


def _readable(placeholder: str) -> str:
    """l_self_modules_fc_parameters_weight_ -> fc.weight"""
    name = (
        placeholder.lower().removeprefix("l_").removeprefix("self_").removeprefix("fn_").strip("_")
    )
    for part in ("_modules_", "_parameters_", "_buffers_"):
        name = name.replace(part, ".")
    return name.removeprefix("modules_").removeprefix("parameters_").removeprefix("buffers_")


def _distinct(names: list[str]) -> list[str]:
    return [name if names.count(name) == 1 else f"{name}.{i}" for i, name in enumerate(names)]


def _cache_key(value):
    if not isinstance(value, torch.Tensor):
        return value
    return tuple(value.shape), value.stride(), value.dtype


def _close(made: dict) -> None:
    for compiled in made.values():
        if compiled:
            compiled.design.close()
