#!/usr/bin/env python3
"""Prints docs/reference/api.md, made of the docstrings of what users call; --write writes it."""

import dataclasses
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import streamtensor  # noqa: E402
from streamtensor import compare, design, layer_costs, report  # noqa: E402
from streamtensor.exploration import explore  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "api.md"
FUNCTIONS = (
    streamtensor.compile,
    streamtensor.load,
    streamtensor.explore,
    streamtensor.sensitivity,
    streamtensor.quantized,
    streamtensor.export,
    streamtensor.last_design,
)
CLASSES = (
    design.Design,
    report.Report,
    report.Kernel,
    report.Resources,
    compare.Comparison,
    compare.LayerDifference,
    layer_costs.Sensitivity,
    explore.Exploration,
    explore.Trial,
    streamtensor.Error,
)
HEAD = """# Python

Written by `tools/api_page.py --write` from the docstrings. Options that stand in `**options` are
those of [options.md](options.md). Every lower-case name below `streamtensor.` is imported with it;
`torch.compile(model, backend="streamtensor")` needs no import.

```python
{example}```
"""


def _signature(function) -> str:
    text = re.sub(r"<function .*? at .*?>", "…", str(inspect.signature(function)))
    text = re.sub(r"(-> |: )'([^']+)'", r"\1\2", text)
    return re.sub(r"\b(?:streamtensor|torch|pathlib|collections)\.[\w.]*\.|\bpathlib\.", "", text)


def _text(thing) -> str:
    return inspect.cleandoc(thing.__doc__ or "").partition(">>>")[0].strip()


def _comments(cls) -> dict[str, str]:
    """What the source says of each field: behind it, or in the lines above it."""
    found, above = {}, []
    for line in inspect.getsource(cls).splitlines():
        field, _, comment = (part.strip() for part in line.partition("#"))
        above += [comment] if comment and not field else []
        if field:
            name = field.partition(":")[0]
            found.setdefault(name, " ".join([*above, *([comment] if comment else [])]))
            above = []
    return found


def _fields(cls) -> str:
    told = _comments(cls)
    rows = []
    for each in dataclasses.fields(cls):
        kind = getattr(each.type, "__name__", "") if isinstance(each.type, type) else ""
        kind = kind if kind and "[" not in str(each.type) else re.sub(r"\w+\.", "", str(each.type))
        kind = kind.replace(" | ", " or ")  # a bar ends a cell
        if not each.name.startswith("_"):
            rows.append(f"| `{each.name}` | `{kind}` | {told.get(each.name, '')} |\n")
    return "\n| field | type | what it is |\n|---|---|---|\n" + "".join(rows)


def _members(cls) -> str:
    text = ""
    for name, each in vars(cls).items():
        if name.startswith("_") and name != "__call__":
            continue
        is_property = isinstance(each, property)
        function = each.fget if is_property else inspect.unwrap(getattr(each, "__func__", each))
        if not inspect.isfunction(function) or not function.__doc__:
            continue
        told = f"`.{name}`" if is_property else f"`.{name}{_signature(function)}`"
        text += f"\n{told}\n: {' '.join(_text(function).split())}\n"
    return text.replace(".__call__(self, ", "(").replace("(self, ", "(").replace("(self)", "()")


def page() -> str:
    text = HEAD.format(example=inspect.cleandoc(streamtensor.__doc__).partition("\n\n")[2] + "\n")
    for function in FUNCTIONS:
        text += f"\n## streamtensor.{function.__name__}\n\n"
        text += f"`{function.__name__}{_signature(function)}`\n\n{_text(function)}\n"
    for cls in CLASSES:
        text += f"\n## {cls.__name__}\n"
        if _text(cls) and not _text(cls).startswith(f"{cls.__name__}("):
            text += f"\n{_text(cls)}\n"
        text += _fields(cls) if dataclasses.is_dataclass(cls) else ""
        text += _members(cls)
    return text


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
