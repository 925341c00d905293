"""What `generate` shows: text as it comes, and how fast it came."""
import sys
import time
from pathlib import Path

from . import core
from .generation import Decoder, Text


class Answer:
    """Streams new tokens to standard output: text with a tokenizer, else ids."""

    def __init__(self, decoder: Decoder, tokenizer, prompt: list[int], stops: list[str]):
        self._decoder, self._tokenizer, self._prompt = decoder, tokenizer, prompt
        self._text = Text(lambda ids: tokenizer.decode(ids, skip_special_tokens=True), prompt, stops) if tokenizer else None
        self.ids: list[int] = []
        self.ended_by: str | None = None   # "end token" or "stop text"
        self.seconds = 0.0                 # of all steps, those of the prompt included

    def write(self, new: int, choose, end, progress) -> None:
        if self._tokenizer:
            self._show(self._tokenizer.decode(self._prompt, skip_special_tokens=True))
        start = time.monotonic()
        for token in self._decoder.tokens(self._prompt, new, end, choose, progress):
            self.ids.append(token)
            if token in end:
                self.ended_by = "end token"
                break
            self._show(self._text.add(token) if self._text else f"{',' if len(self.ids) > 1 else ''}{token}")
            if self._text and self._text.stopped:
                self.ended_by = "stop text"
                break
        self.seconds = time.monotonic() - start
        self._show((self._text.rest() if self._text else "") + "\n")

    def steps(self) -> int:
        return len(self._prompt) + len(self.ids) - 1

    def _show(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def print_speed(design: Path, answer: Answer) -> None:
    report = design / "report.txt"
    if report.is_file():
        print(report.read_text().rstrip())
    if (design / "design.mlir").is_file():
        card = core.simulate(design)
        print(f"accelerator    {1000 / card['latency_ms']:.1f} tokens/s: {card['cycles']} cycles a token at {card['clock_mhz']:g} MHz (simulated)")
    if answer.seconds:
        print(f"this CPU       {answer.steps() / answer.seconds:.2f} tokens/s, the same design run on it (measured)")
