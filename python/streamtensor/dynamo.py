"""torch.compile(model, backend="streamtensor"): each graph that Dynamo finds runs as a compiled
design.

A design is compiled at the first call with new shapes or new weights. Designs are in a temporary
folder until the compiled function is dropped (torch._dynamo.reset) or the process ends; compiled
CPU libraries are in the user's cache, as with `stc run`. A graph that cannot be compiled runs in
PyTorch after one warning with the reason; with options={"fallback": False} that is an error. Other
options: platform (u55c), quant (as for `stc compile`).
"""

import warnings
import weakref
from pathlib import Path

import torch

from . import api, graph
from .design import Design
from .errors import Error

OPTIONS = {"fallback": True, "platform": "u55c", "quant": None}
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
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise Error(
            f"streamtensor: unknown option '{unknown[0]}'", f"accepted are {', '.join(OPTIONS)}"
        )
    return torch._dynamo.disable(_GraphRunner(module, {**OPTIONS, **(options or {})}).run)


class _FlattenedGraph(torch.nn.Module):
    """The graph as a function of (inputs, weights) that returns tensors only.

    told: called with one item per result of the graph, (value,) for each result that is no tensor.
    """

    def __init__(self, module, pattern: list, told):
        super().__init__()
        # in a tuple, so that torch.export does not find the module's parameters
        self._untracked = (module, told)
        # per argument: ("input", i), ("weight", i) or ("value", the value)
        self.pattern = pattern

    def forward(self, inputs: list, weights: list):
        source = {
            "input": inputs.__getitem__,
            "weight": weights.__getitem__,
            "value": lambda value: value,
        }
        results = self._untracked[0](*(source[kind](item) for kind, item in self.pattern))
        self._untracked[1](
            [None if isinstance(value, torch.Tensor) else (value,) for value in results]
        )
        return tuple(value for value in results if isinstance(value, torch.Tensor))


class _Compiled:
    """A design, and how the results of the graph are made from the results of the design."""

    def __init__(self, design: Design, pattern: list, results: list, weights: list):
        self.design, self._pattern, self._results = design, pattern, results
        # referenced, so that their ids, which identify them, are not reused
        self._weights = weights

    def __call__(self, arguments):
        global _last_design
        found = self.design(
            *(value for value, (kind, _) in zip(arguments, self._pattern) if kind == "input")
        )
        _last_design = self.design
        tensors = iter(found if isinstance(found, tuple) else (found,))
        return tuple(result[0] if result else next(tensors) for result in self._results)


class _GraphRunner:
    def __init__(self, module: torch.fx.GraphModule, options: dict):
        self._module, self._options, self._designs = module, options, {}
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._fixed = [
            "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {}) for node in inputs
        ]
        self._names = _distinct([_readable(node.name) for node in inputs])
        weakref.finalize(self, _close, self._designs)

    def run(self, *arguments):
        key = tuple(map(_cache_key, arguments, self._fixed))
        if key not in self._designs:
            self._designs[key] = self._compile(arguments)
        compiled = self._designs[key]
        return compiled(arguments) if compiled else self._module(*arguments)

    def _compile(self, arguments) -> _Compiled | None:
        try:
            if torch.is_grad_enabled() and any(
                isinstance(v, torch.Tensor) and v.requires_grad for v in arguments
            ):
                raise Error("gradients are wanted; under torch.no_grad() it would run as a design")
            return self._build(arguments)
        except Error as error:
            if not self._options["fallback"]:
                raise
            # the second line may name the PyTorch op
            reason = "; ".join(str(error).splitlines()[:2])
            warnings.warn(
                f"streamtensor: a graph runs in PyTorch: {reason}", FallbackWarning, stacklevel=2
            )
            return None

    def _build(self, arguments) -> _Compiled:
        pattern, inputs, weights = [], [], {}
        for value, fixed, name in zip(arguments, self._fixed, self._names):
            if not isinstance(value, torch.Tensor):
                pattern.append(("value", value))
            elif fixed:
                pattern.append(("weight", len(weights)))
                weights[name] = value.detach()
            else:
                pattern.append(("input", len(inputs)))
                inputs.append(value.detach())
        results = []
        function = _FlattenedGraph(
            self._module, pattern, lambda found: results.__setitem__(slice(None), found)
        )
        ports = [graph.Port(f"arg{i}", "input") for i in range(len(inputs))]
        lowered = graph.lower_function(function, inputs, ports, weights)
        if not lowered.results:
            raise Error("the graph has no tensor as a result")
        kept = {name: weights[name] for name in lowered.weights}
        design = api.build(lowered, kept, self._options["platform"], quant=self._options["quant"])
        return _Compiled(
            design, pattern, results, [v for v, fixed in zip(arguments, self._fixed) if fixed]
        )


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


def _cache_key(value, fixed: bool):
    if not isinstance(value, torch.Tensor):
        return value
    if not fixed:
        return value.shape, value.dtype
    # _version changes with every write
    return id(value), 0 if value.is_inference() else value._version


def _close(made: dict) -> None:
    for compiled in made.values():
        if compiled:
            compiled.design.close()
