"""Generates text on a design.

With a prefill phase, each launch reads one chunk of the prompt; else each launch reads one token. A
design that selects the token on the device runs several steps per launch. A design with a dynamic
token count also reads several chunks of a prompt per launch.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ..design import Design
from ..errors import Error
from .decoder_step import StepShape


class LaunchResult(NamedTuple):
    """What one launch read and returned."""

    position: int  # position of the last token that was read
    token: int  # that token, of the first sequence of a batch
    # vocabulary, or the id with argmax; one row per sequence of a batch; empty if the launch is
    # continued by another one
    logits: torch.Tensor
    count: int = 1  # tokens read per sequence
    # tokens read in chunks; each further step reads one token
    rows: int = 1
    phase: str = "decode"
    # tokens that the design selected in several steps, one id per sequence each
    new_tokens: tuple = ()
    first: bool = True  # whether it produced tokens after the prompt


@dataclass
class Sampler:
    """Selects a token from logits; temperature 0 is greedy."""

    temperature: float = 0.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0
    # changes the logits first
    rules: Callable[[torch.Tensor, list[int], int], torch.Tensor] | None = None

    def __post_init__(self):
        if not 0 <= self.temperature < math.inf:
            raise Error(
                f"--temperature {self.temperature:g} is "
                f"{'below zero' if self.temperature < 0 else 'no number'}",
                "accepted are 0 (greedy) and above",
            )
        if self.top_k < 0:
            raise Error(
                f"--top-k {self.top_k} is below zero", "accepted are 0 (all tokens) and above"
            )
        if not 0 < self.top_p <= 1:
            raise Error(
                f"--top-p {self.top_p:g} is outside what a probability can be",
                "accepted is above 0, up to 1",
            )
        self._generator = torch.Generator().manual_seed(self.seed)

    def __call__(self, logits: torch.Tensor, ids: Sequence[int] = (), prompt: int = 0) -> int:
        """logits: behind the text `ids`, which begins with a prompt of so many tokens."""
        if self.rules:
            logits = self.rules(logits, ids, prompt)
        if self.temperature == 0:
            return int(logits.argmax())
        values, ids = (logits.float() / self.temperature).sort(descending=True, stable=True)
        if self.top_k:
            values, ids = values[: self.top_k], ids[: self.top_k]
        probabilities = torch.softmax(values, -1)
        before = probabilities.cumsum(-1) - probabilities
        probabilities[before >= self.top_p] = 0  # the most likely token stays
        return int(ids[torch.multinomial(probabilities, 1, generator=self._generator)])


GREEDY_SAMPLER = Sampler()


TOKENS_PER_LAUNCH = 16  # amortizes the launch overhead, and text still appears quickly


def check_per_launch(tokens: int, argmax: bool) -> None:
    if tokens < 1:
        raise Error(f"--tokens-per-launch {tokens} is too few", "accepted is 1 or more")
    if tokens > 1 and not argmax:
        raise Error(
            f"--tokens-per-launch {tokens} needs a design that selects the token on the "
            "device (--argmax)",
            "accepted is 1: sampling needs the logits after every token",
        )


def check_states(per_launch: int, shape: StepShape) -> None:
    if per_launch > 1 and shape.state_keys:
        raise Error(
            f"--tokens-per-launch {per_launch}: a recurrent state passes from launch to launch",
            "accepted is 1",
        )


class Launcher:
    """Launches of a design for one sequence, or for a batch of aligned sequences."""

    def __init__(
        self, design: Design, shape: StepShape, chunk: StepShape | None = None, per_launch: int = 1
    ):
        """chunk: the shape of the prefill phase, if there is one; `shape` itself with a dynamic
        token count.

        per_launch: maximum steps per launch, if the design selects the tokens.
        """
        check_per_launch(per_launch, shape.argmax)
        check_states(per_launch, shape)
        self.design, self.shape, self.chunk, self.per_launch = (
            design,
            shape,
            shape if shape.dynamic_tokens else chunk,
            per_launch,
        )

    def _reset_design(self) -> None:
        self.design.reset()
        for name in self.shape.state_names():
            self.design.write(name, torch.zeros(self.shape.cache_shape(name)))

    def _next_launch(
        self, texts: list[list[int]], position: int, new: int, starts: list[int] | None = None
    ) -> LaunchResult:
        """Reads as much of the texts from `position` on as one launch can.

        new: number of tokens wanted after the texts.
        """
        width, left = self.chunk.tokens if self.chunk else 1, len(texts[0]) - position
        single_step = width > 1 and left > 1 and not self.shape.dynamic_tokens
        most = 1 if single_step else self.per_launch
        read = min(left, most * width)
        steps = min(most, -(-read // width) - 1 + new)
        return self._launch(
            [text[position : position + read][:width] for text in texts],
            [text[position : position + read][width:] for text in texts],
            position,
            steps,
            starts,
            left > width,
        )

    def _launch(
        self,
        pieces: list[list[int]],
        forced: list[list[int]],
        position: int,
        steps: int = 1,
        starts: list[int] | None = None,
        has_followers: bool = False,
    ) -> LaunchResult:
        """Runs one launch of `steps` steps.

        The first step reads the pieces. The next steps read the forced tokens: one per sequence and
        step, or with a dynamic token count as many as a step has rows. The remaining steps read the
        token that the design selected. has_followers: another launch reads the rest of the text.
        """
        count = len(pieces[0])
        phase, shape = ("prefill", self.chunk) if count > 1 else ("decode", self.shape)
        if self.chunk not in (None, self.shape):
            self.design.select_phase(phase)
        ids = torch.tensor([piece + [0] * (shape.tokens - count) for piece in pieces])
        has_followers = (
            has_followers
            and shape.dynamic_tokens
            and count == shape.tokens
            and self.design.can_continue("tokens")
        )
        scalars = {"positions": [position], "starts": starts, "tokens": [count + has_followers]}
        for name in shape.scalar_names():
            self.design.write(name, torch.tensor(scalars[name]).reshape(-1, 1))
        if steps == 1:
            self.design.write("ids", ids)
            self.design.launch()
            for old, new in zip(self.shape.state_names(), self.shape.state_names(behind=True)):
                self.design.write(old, self.design.read(new))
            logits = (
                torch.empty(len(pieces), 0)
                if has_followers
                else self.design.read(self.shape.result_name()).reshape(len(pieces), -1)
            )
            return LaunchResult(position + count - 1, pieces[0][-1], logits, count, count, phase)
        text = self.design.launch_tokens(ids, torch.tensor(forced, dtype=torch.long).T, steps)
        rows = count + (len(forced[0]) if self.shape.dynamic_tokens else 0)
        return LaunchResult(
            position + count + len(text) - 2,
            int(text[-2, 0]),
            text[-1:].T,
            count + len(text) - 1,
            rows,
            phase,
            tuple(text[len(forced[0]) :].tolist()),
        )


class Decoder(Launcher):
    """Decodes one sequence, and tracks the tokens in the cache: a common prefix with the last text
    is not computed again.
    """

    def __init__(
        self, design: Design, shape: StepShape, chunk: StepShape | None = None, per_launch: int = 1
    ):
        super().__init__(design, shape, chunk, per_launch)
        self.cached: list[int] = []
        if shape.state_keys:
            self.reset()

    def step(self, token: int, position: int) -> LaunchResult:
        """Decodes one token."""
        self.cached = self.cached[:position] + [token]
        step = self._launch([[token]], [[]], position)
        return step._replace(logits=step.logits.reshape(-1))

    def read(self, ids: list[int], new: int = 1) -> Iterator[LaunchResult]:
        """Launches until the cache holds these ids; the last one may decode up to `new` tokens
        after them.
        """
        cached = next(
            (i for i, (old, new) in enumerate(zip(self.cached, ids[:-1])) if old != new),
            min(len(self.cached), len(ids) - 1),
        )
        if self.shape.state_keys and cached < len(self.cached):
            self.reset()  # a recurrent state is that of all tokens that were read
            cached = 0
        while cached < len(ids):
            step = self._next_launch([ids], cached, new)
            cached += step.count
            self.cached = (ids + [token for (token,) in step.new_tokens])[:cached]
            yield step._replace(logits=step.logits.reshape(-1), first=cached >= len(ids))

    def row(self, name: str, position: int) -> torch.Tensor:
        """The row of the state `name` at `position`: heads x width."""
        return self.design.row(name, position)

    def steps(self, prompt: list[int], new: int) -> Iterator[LaunchResult]:
        """Greedy decoding from an empty cache, token by token.

        Step i reads text token i, and the last `new` steps select the new tokens.
        """
        self.reset()
        token = prompt[0]
        for position in range(len(prompt) + new - 1):
            step = self.step(token, position)
            yield step
            token = (
                prompt[position + 1]
                if position + 1 < len(prompt)
                else self._next(step, GREEDY_SAMPLER, prompt, len(prompt))
            )

    def tokens(
        self,
        prompt: list[int],
        new: int,
        end: Collection[int] = (),
        choose: Sampler = GREEDY_SAMPLER,
        progress: Callable[[float], None] = lambda _: None,
        launched: Callable[[LaunchResult], None] = lambda _: None,
    ) -> Iterator[int]:
        """Yields at most `new` new ids; ends after one of `end`."""
        ids = list(prompt)
        while len(ids) < len(prompt) + new:
            for step in self.read(ids, len(prompt) + new - len(ids)):
                launched(step)
                progress((step.position + 1) / (len(prompt) + new - 1))
            for token in [token for (token,) in step.new_tokens] or [
                self._next(step, choose, ids, len(prompt))
            ]:
                yield token
                if token in end:
                    return
                ids.append(token)

    def _next(self, step: LaunchResult, choose: Sampler, ids: list[int], prompt: int) -> int:
        return int(step.logits) if self.shape.argmax else choose(step.logits, ids, prompt)

    def reset(self) -> None:
        self._reset_design()
        self.cached = []


def check_prompt(
    prompt: list[int], new: int, vocabulary: int, context: int, limit: int | None = None
) -> int:
    """The maximum number of new tokens: `new`, or the rest of the context.

    limit: the maximum context of the model.
    """
    if not prompt:
        raise Error("the prompt is empty", "accepted is at least one token")
    wrong = next((token for token in prompt if not 0 <= token < vocabulary), None)
    if wrong is not None:
        raise Error(
            f"the prompt has the id {wrong}", f"accepted are ids from 0 to {vocabulary - 1}"
        )
    if new < 1:
        raise Error(f"--max-new-tokens {new} is too few", "accepted is 1 or more")
    if len(prompt) >= context:
        raise Error(
            f"{len(prompt)} prompt tokens leave no room in the context of {context}",
            "a shorter prompt would fit"
            + (f", or a larger --context, up to {limit}" if limit and limit > context else ""),
        )
    return min(new, context - len(prompt))


class BatchDecoder(Launcher):
    """Decodes several prompts in lockstep: each launch reads a token, or a chunk, of every
    sequence.

    Shorter prompts start at a later row.
    """

    def tokens(
        self,
        prompts: list[list[int]],
        new: int,
        choose: Sampler = GREEDY_SAMPLER,
        progress: Callable[[float], None] = lambda _: None,
        launched: Callable[[LaunchResult], None] = lambda _: None,
    ) -> Iterator[list[int]]:
        """Yields `new` times one new id per sequence."""
        length = max(map(len, prompts))
        rows = [[0] * (length - len(prompt)) + prompt for prompt in prompts]
        starts, cached = [length - len(prompt) for prompt in prompts], 0
        self._reset_design()
        while len(rows[0]) < length + new:
            while cached < len(rows[0]):
                step = self._next_launch(rows, cached, length + new - len(rows[0]), starts)
                cached += step.count
                launched(step._replace(first=cached >= len(rows[0])))
                progress(cached / (length + new - 1))
            for tokens in step.new_tokens or [
                [
                    int(logits)
                    if self.shape.argmax
                    else choose(logits, row[start:], length - start)
                    for logits, row, start in zip(step.logits, rows, starts)
                ]
            ]:
                yield tokens
                rows = [[*row, token] for row, token in zip(rows, tokens)]


class IncrementalText:
    """Decodes ids to text incrementally; withholds what may still change or begin a stop text."""

    def __init__(self, decode: Callable[[list[int]], str], prompt: list[int], stops: list[str]):
        self._decode, self._ids, self._stops = (
            decode,
            list(prompt),
            [stop for stop in stops if stop],
        )
        self._start = len(decode(self._ids))
        self._shown, self.stopped = self._start, False

    def add(self, token: int) -> str:
        self._ids.append(token)
        text = self._decode(self._ids)
        if text.endswith("\ufffd"):  # an incomplete character
            return ""
        found = [at for stop in self._stops if (at := text.find(stop, self._start)) >= 0]
        if found:
            self.stopped = True
            return self._show(text[: min(found)])
        return self._show(text[: len(text) - self._pending_stop_length(text)])

    def rest(self) -> str:
        return "" if self.stopped else self._show(self._decode(self._ids))

    def _pending_stop_length(self, text: str) -> int:
        """Number of last characters that may begin a stop text."""
        lengths = (
            n for stop in self._stops for n in range(1, len(stop)) if text.endswith(stop[:n])
        )
        return max(lengths, default=0)

    def _show(self, text: str) -> str:
        piece, self._shown = text[self._shown :], max(self._shown, len(text))
        return piece
