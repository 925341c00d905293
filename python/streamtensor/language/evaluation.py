"""Measures quantization: perplexity on a text and agreement of the next tokens, against the model
in f32.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from .. import quantize
from ..errors import Error
from ..quantize import Scheme
from . import calibrate

CONTEXT = 512  # tokens per window, unless the model's limit is lower
CALIBRATION = 8  # windows at the beginning of the text, not used for evaluation


@dataclass
class Cost:
    exact: float  # perplexity in f32
    quantized: float  # perplexity with the scheme
    agreement: float  # fraction of positions with the same most likely next token
    tokens: int  # number of predicted tokens

    def rise(self) -> float:
        return self.quantized / self.exact - 1


def windows(ids: list[int], context: int) -> list[torch.Tensor]:
    """The text in pieces of `context` tokens, 1 x context each; the remainder at the end is
    dropped.
    """
    return [
        torch.tensor([ids[at : at + context]]) for at in range(0, len(ids) - context + 1, context)
    ]


def split(ids: list[int], context: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """(windows for calibration, windows for evaluation); at most a quarter is for calibration."""
    pieces = windows(ids, context)
    if len(pieces) < 2:
        raise Error(
            f"the text has {len(ids)} tokens",
            f"accepted are texts of {2 * context} or more, twice the context, or a lower --context",
        )
    count = max(1, min(CALIBRATION, len(pieces) // 4))
    return pieces[:count], pieces[count:]


def prompts(ids: list[int], context: int) -> list[torch.Tensor]:
    """Windows for calibration only: the first ones, or the whole text if it is shorter than a
    window.
    """
    if not ids:
        raise Error(
            "the text to calibrate with has no tokens", "accepted are a few paragraphs or more"
        )
    return windows(ids, context)[:CALIBRATION] or [torch.tensor([ids])]


def cost(
    module: torch.nn.Module,
    scheme: Scheme,
    method: str,
    calibration: Iterable[torch.Tensor],
    pieces: list[torch.Tensor],
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Cost, dict]:
    """The cost, and the integer weights it was measured with."""
    weights = calibrate.weights(
        module, scheme, method, calibration, lambda part: progress(part / 2)
    )
    found = compare(
        module,
        quantize.quantized_copy(module, scheme, weights),
        pieces,
        lambda part: progress((1 + part) / 2),
    )
    return found, weights


def compare(
    module, other, pieces: list[torch.Tensor], progress: Callable[[float], None] = lambda _: None
) -> Cost:
    """`other` against `module` on the same text."""
    losses, agreed, tokens = [0.0, 0.0], 0, 0
    with torch.no_grad():
        for i, ids in enumerate(pieces):
            both = [
                model(ids, use_cache=False).logits[0, :-1].double() for model in (module, other)
            ]
            for side, logits in enumerate(both):
                losses[side] += float(
                    torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum")
                )
            agreed += int((both[0].argmax(-1) == both[1].argmax(-1)).sum())
            tokens += ids.shape[1] - 1
            progress((i + 1) / len(pieces))
    exact, quantized = (
        float(torch.tensor(loss / tokens, dtype=torch.float64).exp()) for loss in losses
    )
    return Cost(exact, quantized, agreed / tokens, tokens)
