"""PyTorch's results to compare designs with: the unmodified model with its own cache and masks."""

from dataclasses import dataclass

import torch

from .decoder_step import DecoderStep, StepShape
from .models import Model


@dataclass
class GreedyResult:
    """Greedy decoding of one prompt. Row t belongs to the step that reads text token t."""

    ids: list[int]  # new ids
    logits: torch.Tensor  # steps x vocabulary
    k: list[torch.Tensor]  # per layer: heads x steps x width
    v: list[torch.Tensor]


def greedy(
    model: Model, tensors: dict[str, torch.Tensor], prompt: list[int], new: int
) -> GreedyResult:
    """tensors: the values of all of the model's parameters and buffers."""
    from transformers import DynamicCache

    # without a configuration, also sliding layers keep every row
    ids, logits, cache, fresh = [], [], DynamicCache(), list(prompt)
    with torch.no_grad():
        for _ in range(new):
            out = torch.func.functional_call(
                model.module,
                tensors,
                kwargs=dict(input_ids=torch.tensor([fresh]), past_key_values=cache, use_cache=True),
            )
            cache = out.past_key_values
            logits.append(out.logits[0])
            fresh = [int(out.logits[0, -1].argmax())]
            ids += fresh
    return GreedyResult(
        ids,
        torch.cat(logits),
        [layer.keys[0] for layer in cache.layers],
        [layer.values[0] for layer in cache.layers],
    )


class ReferenceDesign:
    """Has the interface of a compiled design, and runs the exported step in PyTorch."""

    def __init__(
        self,
        module: torch.nn.Module,
        shape: StepShape,
        weights: dict[str, torch.Tensor] | None = None,
    ):
        """weights: values that replace the module's own, by name in the step."""
        self.step, self.shape, self.weights = DecoderStep(module, shape), shape, weights or {}
        self.reset()

    def reset(self) -> None:
        self.values = {
            name: torch.zeros(self.shape.cache_shape(name))
            for name in (*self.shape.cache_names(), *self.shape.state_names())
        }

    def write(self, name: str, value: torch.Tensor) -> None:
        self.values[name] = value.clone()

    def read(self, name: str) -> torch.Tensor:
        return self.values[name].clone()

    def row(self, name: str, position: int) -> torch.Tensor:
        return self.values[name][0, :, position]

    def times(self) -> tuple[float, float]:
        return 0.0, 0.0

    def can_continue(self, name: str) -> bool:
        return False

    def launch(self) -> None:
        names, scalars = (
            self.shape.cache_names(),
            [self.values[name] for name in self.shape.scalar_names()],
        )
        position, tokens = int(scalars[0]), self._tokens()
        past = [
            self.values[name] if self.shape.masks_past else self.values[name][:, :, :position]
            for name in names
        ]
        kept = [self.values[name] for name in self.shape.state_names()]
        with torch.no_grad():
            logits, *rows = torch.func.functional_call(
                self.step,
                self.weights,
                (
                    self.values["ids"],
                    *scalars,
                    past[: self.shape.layers],
                    past[self.shape.layers :],
                    *([kept] if kept else []),
                ),
            )
        self.values[self.shape.result_name()] = logits
        for name, row in zip(names, rows):
            self.values[name][:, :, position : position + tokens] = row[:, :, :tokens]
        self.values.update(zip(self.shape.state_names(behind=True), rows[len(names) :]))

    def launch_tokens(self, first: torch.Tensor, forced: torch.Tensor, steps: int) -> torch.Tensor:
        """The steps one by one, with the interface of Design.launch_tokens."""
        chunks = (
            list(forced.split(self.shape.tokens if self.shape.dynamic_tokens else 1))
            if len(forced)
            else []
        )
        text = []
        self.write("ids", first)
        for step in range(steps):
            self.launch()
            text.append(
                chunks[step]
                if step < len(chunks)
                else self.read(self.shape.result_name()).to(forced.dtype).reshape(1, -1)
            )
            self.values["positions"] += self._tokens()
            self.values["ids"][:, : len(text[-1])] = text[-1].T
            if self.shape.dynamic_tokens:
                self.values["tokens"][:] = len(text[-1])
        return torch.cat(text)

    def _tokens(self) -> int:
        return int(self.values["tokens"]) if self.shape.phase == "prefill" else 1
