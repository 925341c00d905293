"""What the user calls the parts of a module, from the traced program to the text of its MLIR.

While a module is traced, every node is told the path of the module that it comes from, as a frame
of its stack trace, which all rewrites keep. In the MLIR text the path is the name of a location:

    %3 = linalg.matmul … loc("layers.3.up"("-":17:1))
"""

import contextlib
import re

import torch
from torch.fx import traceback

_KEY = "layer"
_FRAME = re.compile(r'File "<layer ([^\n]*)>", line 0')
_AT_END = re.compile(r"^.*? (loc\(.*\))$")
_NUMBER = re.compile(r'"[^"]*":(\d+):\d+')


@contextlib.contextmanager
def told(module: torch.nn.Module):
    """Nodes that are traced meanwhile know which part of the module they come from."""
    paths = {id(part): name for name, part in module.named_modules() if name}
    graphs = {id(part) for part in module.modules() if _has_layers(part)}
    call = torch.nn.Module.__call__

    def named(part, *arguments, **options):
        if id(part) in graphs and traceback.has_preserved_node_meta():
            return torch.fx.Interpreter(part).run(*arguments)
        path = paths.get(id(part))
        if path is None or not traceback.has_preserved_node_meta():
            return call(part, *arguments, **options)
        before = traceback.current_meta.get("custom")
        say(path)
        try:
            return call(part, *arguments, **options)
        finally:
            traceback.current_meta.pop("custom", None)
            traceback.current_meta.update({"custom": before} if before else {})

    torch.nn.Module.__call__ = named
    try:
        yield
    finally:
        torch.nn.Module.__call__ = call


def _has_layers(part: torch.nn.Module) -> bool:
    """Whether it is a graph whose nodes know their layers: then these run one by one."""
    return isinstance(part, torch.fx.GraphModule) and any(
        _KEY in (node.meta.get("custom") or ()) for node in part.graph.nodes
    )


def assign(nodes, path: str) -> None:
    """These nodes of a graph module come from that part."""
    for node in nodes:
        node.meta["custom"] = {_KEY: path}


def say(path: str) -> None:
    """What is traced from here on comes from this part."""
    traceback.current_meta["custom"] = {_KEY: path}


def keep(graph: torch.fx.Graph) -> None:
    """Writes the paths into stack traces, right after tracing."""
    for node in graph.nodes:
        _write(node, (node.meta.get("custom") or {}).get(_KEY))


def keep_called(graph: torch.fx.Graph) -> None:
    """The same for a module that was traced by itself: PyTorch notes which part was called."""
    for node in graph.nodes:
        called = list((node.meta.get("nn_module_stack") or {}).values())
        _write(node, called[-1][0] if called else None)


def _write(node: torch.fx.Node, path: str | None) -> None:
    if path and node.op == "call_function":
        trace = node.meta.get("stack_trace") or ""
        node.meta["stack_trace"] = f'{trace}\n  File "<layer {path}>", line 0, in forward\n    -'


def of(node: torch.fx.Node) -> str:
    """The path of a node, "" for none."""
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return found[-1] if found else ""


def lines_with_locations(module) -> list[str]:
    """For each line of the module's text: the same line with its location, "" for a line that has
    none because it defines a map, before the module, or a resource, behind it.
    """
    placed = module.operation.get_asm(enable_debug_info=True, use_local_scope=True).split("\n")
    plain = str(module).split("\n")
    maps = next(at for at, line in enumerate(plain) if not line.startswith("#"))
    return [""] * maps + placed + [""] * (len(plain) - maps - len(placed))


def text_with_locations(module, layers: list[str]) -> str:
    """The text of an MLIR module whose locations have numbers of layers as lines."""
    plain = str(module).split("\n")
    for at, (line, full) in enumerate(zip(plain, lines_with_locations(module), strict=True)):
        found = _AT_END.match(full)
        numbers = _NUMBER.findall(found[1]) if found else []
        layer = layers[int(numbers[-1])] if numbers and int(numbers[-1]) < len(layers) else ""
        if layer and line.strip() and not line.rstrip().endswith(("{", ":")):
            name = layer.replace("\\", "\\\\").replace('"', '\\"')
            plain[at] = f'{line.rstrip()} loc("{name}"("-":{at + 1}:1))'
    return "\n".join(plain)
