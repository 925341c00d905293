"""Which tensors of a checkpoint each tensor of a model is made of, by transformers' own tables.

A table renames, stacks, splits or transposes: GPT-NeoX's `embed_out` is its `lm_head`, the experts
of a layer are one tensor.
"""

import copy
from collections.abc import Callable

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    dot_natural_key,
    rename_source_key,
)


class Names:
    """Of each tensor of a model: how it is made of tensors of a checkpoint."""

    def __init__(self, module: torch.nn.Module, shapes: dict[str, list[int]]):
        """shapes: of the tensors of the checkpoint, by name."""
        self._module = module
        self._sources: dict[str, list[tuple[str, str]]] = {}  # of a first target: pattern, name
        self._converters: dict[str, WeightConverter] = {}
        self._first: dict[str, str] = {}  # of a target, the first target of its conversion
        self._find(shapes)
        for first in self._converters:
            for target in self._convert(
                first, lambda name: torch.empty(shapes[name], device="meta")
            ):
                self._first[target] = first
        for first in self._sources:
            self._first.setdefault(first, first)

    def _find(self, shapes) -> None:
        tables = get_model_conversion_mapping(self._module)
        renamings = [table for table in tables if isinstance(table, WeightRenaming)]
        converters = [table for table in tables if isinstance(table, WeightConverter)]
        owner = {pattern: each for each in converters for pattern in each.source_patterns}
        wanted, base = self._module.state_dict(), self._module.base_model_prefix
        for name in sorted(shapes, key=dot_natural_key):
            target, pattern = rename_source_key(name, renamings, converters, base, wanted)
            if target not in wanted and name in wanted:
                target, pattern = rename_source_key(name, [], [], base, wanted)
            if target in wanted:
                self._sources.setdefault(target, []).append((pattern or name, name))
                if pattern:
                    self._converters.setdefault(target, owner[pattern])

    def __contains__(self, target: str) -> bool:
        return target in self._first

    def alias(self, target: str, source: str) -> None:
        """The tensor `target` is that of the name `source`."""
        self._first[target] = self._first[source]
        if self._first[source] not in self._converters:
            self._sources[target] = self._sources[source]
            self._first[target] = target

    def source(self, target: str) -> str | None:
        """The one tensor of the checkpoint that this one is as it stands."""
        first = self._first.get(target)
        if first is None or first in self._converters:
            return None
        return self._sources[first][-1][1]

    def tensor(self, target: str, read: Callable[[str], torch.Tensor]) -> torch.Tensor:
        name = self.source(target)
        return read(name) if name else self._convert(self._first[target], read)[target]

    def _convert(self, first: str, read) -> dict[str, torch.Tensor]:
        converter = copy.deepcopy(self._converters[first])
        for pattern, name in self._sources[first]:
            converter.add_tensor(first, name, pattern, lambda name=name: read(name))
        found = converter.convert(first, model=self._module, config=self._module.config)
        return {
            name: value[0] if isinstance(value, list) else value for name, value in found.items()
        }
