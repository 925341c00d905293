"""Prints the output of `generate`: the text while it is generated, and the speed."""

import sys
import time
from pathlib import Path

from .. import core
from .decoder_step import StepShape
from .generation import BatchDecoder, Decoder, IncrementalText, LaunchResult


class AnswerStream:
    """Streams new tokens to standard output: as text with a tokenizer, else as ids."""

    sequences = 1

    def __init__(self, decoder: Decoder, tokenizer, prompt: list[int], stops: list[str]):
        self._decoder, self._tokenizer, self._prompt = decoder, tokenizer, prompt
        self._text = (
            IncrementalText(
                lambda ids: tokenizer.decode(ids, skip_special_tokens=True), prompt, stops
            )
            if tokenizer
            else None
        )
        self.ids: list[int] = []
        self.stop_reason: str | None = None  # "end token" or "stop text"
        self.seconds = 0.0  # seconds of all launches
        self.first = 0.0  # seconds up to the first new token
        self.launches: list[LaunchResult] = []

    def write(self, new: int, choose, end, progress) -> None:
        if self._tokenizer:
            self._show(self._tokenizer.decode(self._prompt, skip_special_tokens=True))
        start = time.monotonic()
        for token in self._decoder.tokens(
            self._prompt, new, end, choose, progress, self.launches.append
        ):
            self.first = self.first or time.monotonic() - start
            self.ids.append(token)
            if token in end:
                self.stop_reason = "end token"
                break
            self._show(
                self._text.add(token)
                if self._text
                else f"{',' if len(self.ids) > 1 else ''}{token}"
            )
            if self._text and self._text.stopped:
                self.stop_reason = "stop text"
                break
        self.seconds = time.monotonic() - start
        self._show((self._text.rest() if self._text else "") + "\n")

    def read(self) -> int:
        """Number of tokens that the design read."""
        return sum(step.count for step in self.launches)

    def launches_to_first_token(self) -> list[LaunchResult]:
        """The launches up to the first new token."""
        return self.launches[
            : 1
            + next((i for i, step in enumerate(self.launches) if step.first), len(self.launches))
        ]

    def _show(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


class BatchAnswers:
    """Answers to a batch of prompts, printed after all have ended."""

    sequences = property(lambda self: len(self._prompts))
    launches_to_first_token = AnswerStream.launches_to_first_token

    def __init__(self, batch: BatchDecoder, tokenizer, prompts: list[list[int]], stops: list[str]):
        self._batch, self._tokenizer, self._prompts = batch, tokenizer, prompts
        decode = tokenizer and (lambda ids: tokenizer.decode(ids, skip_special_tokens=True))
        self._texts = [
            IncrementalText(decode, prompt, stops) if tokenizer else None for prompt in prompts
        ]
        self._shown = [decode(prompt) if tokenizer else "" for prompt in prompts]
        self._ended = [False] * len(prompts)
        self.ids: list[list[int]] = []
        self.stop_reason: str | None = None
        self.seconds = self.first = 0.0
        self.launches: list[LaunchResult] = []

    def write(self, new: int, choose, end, progress) -> None:
        start = time.monotonic()
        for tokens in self._batch.tokens(
            self._prompts, new, choose, progress, self.launches.append
        ):
            self.first = self.first or time.monotonic() - start
            self.ids.append(tokens)
            for i, token in enumerate(tokens):
                if not self._ended[i]:
                    self._add(i, token, end)
            if all(self._ended):
                self.stop_reason = "their ends"
                break
        self.seconds = time.monotonic() - start
        for i, shown in enumerate(self._shown):
            print(f"[{i + 1}] {shown}{self._texts[i].rest() if self._texts[i] else ''}")

    def _add(self, i: int, token: int, end) -> None:
        if token in end:
            self._ended[i] = True
        elif self._texts[i]:
            self._shown[i] += self._texts[i].add(token)
            self._ended[i] = self._texts[i].stopped
        else:
            self._shown[i] += f"{',' if self._shown[i] else ''}{token}"

    def read(self) -> int:
        """Number of tokens that the design read."""
        return self.sequences * sum(step.count for step in self.launches)


def _simulate(design: Path, shapes: list[StepShape], step: LaunchResult) -> dict:
    """Simulates a launch with the number of cached rows that it had."""
    chunks = -(-step.rows // max(shape.tokens for shape in shapes))
    steps = chunks + step.count - step.rows
    extents = {
        **({"positions": step.position + 1 - step.count} if shapes[0].keys else {}),
        **({"tokens": step.rows} if shapes[0].dynamic_tokens else {}),
    }
    return core.simulate(
        design, step.phase if len(shapes) > 1 else None, extents, steps if steps > 1 else None
    )


def _sum_ms(design: Path, shapes: list[StepShape], launches: list[LaunchResult]) -> float:
    """Simulates the first and the last launch of each kind; the ones between grow linearly."""
    total = 0.0
    for kind in dict.fromkeys((step.phase, step.rows, step.count) for step in launches):
        same = [step for step in launches if (step.phase, step.rows, step.count) == kind]
        ends = [
            _simulate(design, shapes, step)["latency_ms"]
            for step in ([same[0], same[-1]] if len(same) > 1 else same)
        ]
        total += len(same) * sum(ends) / len(ends)
    return total


def _print_launches(
    design: Path, shapes: list[StepShape], answer: AnswerStream | BatchAnswers
) -> None:
    first, last, many = answer.launches_to_first_token(), answer.launches[-1], answer.sequences > 1
    print(
        f"first token    {_sum_ms(design, shapes, first):.2f} ms on the accelerator: "
        f"{len(first)} {'launches' if len(first) > 1 else 'launch'} for "
        f"{sum(step.count for step in first)} tokens{' a sequence' if many else ''} (simulated)"
    )
    total, made = _sum_ms(design, shapes, answer.launches), len(answer.ids)
    print(
        f"total          {total:.2f} ms on the accelerator: {len(answer.launches)} "
        f"{'launches' if len(answer.launches) > 1 else 'launch'} for {made} new tokens"
        f"{' of each sequence' if many else ''} (simulated)"
    )
    card = _simulate(design, shapes, last)
    rate = 1000 * last.count / card["latency_ms"]
    rates = (
        f"{rate:.1f} tokens/s of a sequence, {answer.sequences * rate:.1f} in all"
        if many
        else f"{rate:.1f} tokens/s"
    )
    cycles, whole = card["cycles"] // last.count, card["cycles"] / card["clock_mhz"] / 1000
    print(
        f"accelerator    {rates}: {cycles} cycles per token{' of all' if many else ''} at "
        f"{card['clock_mhz']:g} MHz after {last.position} others, and "
        f"{1000 * (card['latency_ms'] - whole) / last.count:.3g} us launch overhead: "
        f"{last.count} {'tokens' if last.count > 1 else 'token'} per launch (simulated)"
    )


def print_speed(design: Path, answer: AnswerStream | BatchAnswers, shapes: list[StepShape]) -> None:
    """Prints the head of the report and the measured speed. shapes: of the design's phases."""
    report = design / "report.txt"
    if report.is_file():
        print(report.read_text().partition("\n\nresources")[0].rstrip())
    if (design / "design.mlir").is_file():
        _print_launches(design, shapes, answer)
    if answer.seconds:
        print(
            f"this CPU       {answer.read() / answer.seconds:.2f} tokens/s, the same design "
            f"run on it; the first new token after {answer.first:.2f} s (measured)"
        )
