"""Greedy decoding on a decode design: one launch for each text token, prompt included."""
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import torch

from .decoder import Shape
from .design import Design
from .errors import Error


class Step(NamedTuple):
    position: int
    token: int            # what the step read
    logits: torch.Tensor  # vocabulary


class Decoder:
    def __init__(self, design: Design, shape: Shape):
        self.design, self.shape = design, shape

    def step(self, token: int, position: int) -> Step:
        self.design.write("ids", torch.tensor([[token]]))
        self.design.write("positions", torch.tensor([[position]]))
        self.design.write("mask", mask(self.shape.past, position))
        self.design.launch()
        return Step(position, token, self.design.read("logits").reshape(-1))

    def row(self, name: str, position: int) -> torch.Tensor:
        """What the design wrote into the state `name` at `position`: heads x width."""
        return self.design.read(name)[0, :, position]

    def steps(self, prompt: list[int], new: int) -> Iterator[Step]:
        """Decodes greedily from an empty cache; step i reads text token i, and the last `new` steps choose the new ones."""
        self.design.reset()
        token = prompt[0]
        for position in range(len(prompt) + new - 1):
            step = self.step(token, position)
            yield step
            following = position + 1
            token = prompt[following] if following < len(prompt) else int(step.logits.argmax())

    def generate(self, prompt: list[int], new: int, progress: Callable[[float], None] = lambda _: None,
                 end: Collection[int] = ()) -> list[int]:
        """At most `new` ids; one of `end` is the last."""
        ids, count = [], len(prompt) + new - 1
        for step in self.steps(prompt, new):
            progress((step.position + 1) / count)
            if step.position >= len(prompt) - 1:
                ids.append(int(step.logits.argmax()))
                if ids[-1] in end:
                    break
        return ids


def mask(past: int, position: int) -> torch.Tensor:
    """Additive: the rows before `position` and the new token's own slot, the last, are seen."""
    value = torch.full((1, 1, 1, past + 1), float("-inf"))
    value[..., :position] = 0
    value[..., past] = 0
    return value


def check_prompt(prompt: list[int], new: int, vocabulary: int, context: int) -> None:
    if not prompt:
        raise Error("the prompt is empty", "accepted is at least one token")
    wrong = next((token for token in prompt if not 0 <= token < vocabulary), None)
    if wrong is not None:
        raise Error(f"the prompt has the id {wrong}", f"accepted are ids from 0 to {vocabulary - 1}")
    if new < 1:
        raise Error(f"--max-new-tokens {new} is too few", "accepted is 1 or more")
    if len(prompt) + new > context:
        raise Error(f"{len(prompt)} prompt tokens and {new} new ones do not fit the context of {context}",
                    "a larger --context or a lower --max-new-tokens would fit")
