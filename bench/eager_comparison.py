"""Compares a design on this CPU with PyTorch eager in fp32.

    python bench/eager_comparison.py [--quant SCHEME] [--new N] [NAME]

The default model is GPT-2 124M, with random weights. Both sides decode greedily, each with its own
cache. They alternate token by token in one process with the same number of threads, so that other
load on the machine affects both. Prints the median time per token of each side, and the median of
the ratios of adjacent tokens.
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

from common import ROOT

sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from streamtensor import workflow
from streamtensor.language import models  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402
from streamtensor.language.generation import GREEDY_SAMPLER, Decoder  # noqa: E402
from streamtensor.progress import Progress  # noqa: E402

CONTEXT, PROMPT, WARM = 1024, 8, 2


class Eager:
    """The unmodified model, one token after another."""

    def __init__(self, module: torch.nn.Module):
        self.module, self.cache = module, DynamicCache()

    def step(self, token: int) -> torch.Tensor:
        return self.module(
            input_ids=torch.tensor([[token]]), past_key_values=self.cache, use_cache=True
        ).logits[0, -1]


def timed(work, *words) -> tuple[torch.Tensor, float]:
    start = time.perf_counter()
    logits = work(*words)
    return logits, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="gpt2", metavar="NAME")
    parser.add_argument("--quant", default="w4a8")
    parser.add_argument("--new", type=int, default=32)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    model = models.load(asked.name, search=False)
    shape = StepShape.of(model.config, "decode", CONTEXT, 1)
    prompt = torch.randint(
        model.config.vocab_size, (PROMPT,), generator=torch.Generator().manual_seed(0)
    ).tolist()
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        lowered = workflow.compile_files(
            model, shape, "u55c", Path(work) / "design", Progress(), asked.quant
        )
        eager, times = Eager(model.with_values()), []
        with workflow.open_design(Path(work) / "design", lowered, Progress()) as design:
            decoder, ids = Decoder(design, shape), list(prompt)
            for position in range(PROMPT + asked.new):
                found, mine = timed(lambda: decoder.step(ids[position], position).logits)
                _, other = timed(eager.step, ids[position])
                times.append((mine, other))
                ids += [GREEDY_SAMPLER(found)] if position + 1 == len(ids) else []
    times = times[WARM:]
    mine, other = (statistics.median(side) for side in zip(*times))
    ratio = statistics.median(a / b for a, b in times)
    print(
        f"{asked.name}, {torch.get_num_threads()} threads: design ({asked.quant}) "
        f"{1000 * mine:.1f} ms a token ({1 / mine:.1f} tokens/s), "
        f"PyTorch eager fp32 {1000 * other:.1f} ms ({1 / other:.1f} tokens/s), {ratio:.2f} "
        "times as long"
    )


if __name__ == "__main__":
    main()
