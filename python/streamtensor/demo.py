"""End-to-end demo: compiles GPT-2 (124M), runs the design and compares its tokens with
PyTorch's.
"""

import json
import time
from pathlib import Path

import torch

from . import core, output_folder, workflow
from .language import generation, models, reference
from .language.decoder_step import StepShape
from .progress import Progress

MODEL = "gpt2"
PROMPT = [464, 3290, 318, 257, 922, 1545, 286, 262, 10685, 290, 262, 2933, 618, 340, 29446, 13]
NEW_TOKENS = 16
OURS = {"design", "tokens.json"}


def run(output: Path, platform: str, seed: int, progress: Progress) -> bool:
    """Writes OUTPUT/design and OUTPUT/tokens.json; true if the tokens are equal to PyTorch's."""
    model = models.load(MODEL, seed, search=False)
    progress.note(f"{MODEL} with random weights (seed {seed}): both sides have the same ones")
    shape = StepShape.of(model.config, "decode", model.config.max_position_embeddings, 1)
    with output_folder.folder(output, OURS) as folder:
        lowered = workflow.compile_files(model, shape, platform, folder / "design", progress)
        with workflow.open_design(folder / "design", lowered, progress) as design:
            progress.stage("run the design")
            logits, ours, seconds = _decode(generation.Decoder(design, shape), progress)
            host, _ = design.times()
        progress.stage("run PyTorch")
        theirs = reference.greedy(
            model, {name: model.tensor(name) for name in model.tensors()}, PROMPT, NEW_TOKENS
        )
        error = float((logits - theirs.logits).abs().max() / theirs.logits.abs().max())
        result = {
            "model": MODEL,
            "seed": seed,
            "prompt": PROMPT,
            "streamtensor": ours,
            "pytorch": theirs.ids,
            "equal": ours == theirs.ids,
            "max_logit_error": error,
        }
        (folder / "tokens.json").write_text(json.dumps(result, indent=2) + "\n")
    _print(output, result, seconds, host)
    return result["equal"]


def _decode(
    decoder: generation.Decoder, progress: Progress
) -> tuple[torch.Tensor, list[int], float]:
    count, start, logits = len(PROMPT) + NEW_TOKENS - 1, time.monotonic(), []
    for step in decoder.steps(PROMPT, NEW_TOKENS):
        logits.append(step.logits)
        progress.update((step.position + 1) / count)
    ids = [int(row.argmax()) for row in logits[len(PROMPT) - 1 :]]
    return torch.stack(logits), ids, (time.monotonic() - start) / count


def _print(output: Path, result: dict, seconds: float, host: float) -> None:
    report = output / "design" / "report.txt"
    if report.is_file():
        print(report.read_text().rstrip())
    print(f"prompt         {result['prompt']}")
    print(f"design         {result['streamtensor']}")
    print(f"PyTorch        {result['pytorch']}")
    print(
        f"equal          {'yes' if result['equal'] else 'NO'}, "
        f"{len(set(result['streamtensor']))} distinct, "
        f"largest logit error {result['max_logit_error']:.1e} of the largest logit"
    )
    if (output / "design" / "design.mlir").is_file():
        card = core.simulate(output / "design")
        print(
            f"card           {card['latency_ms']:.2f} ms for each token, {card['cycles']} "
            f"cycles at {card['clock_mhz']:g} MHz (simulated)"
        )
    print(
        f"time           {seconds:.2f} s for each token, the design on this machine's CPU "
        "(measured)"
    )
    print(f"host           {1000 * host:.2f} ms of the last launch outside the device (measured)")
