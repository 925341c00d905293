"""LeNet in int8 on an XC7Z020: the compiler's design beside an exhaustive search.

    lenet.py            prints the table
    lenet.py --write    writes bench/results/lenet.md

The space: of every layer the result channels (PE) and terms (SIMD, then rows, or rows and columns
of the window) that are computed at once, so many that they divide the layer's. The exhaustive one
looks at every combination, with two products of 8 bits a DSP, for the least interval. It knows no
windows, memories or casts, so no design with these DSPs is faster; the compiler's is simulated, and
pays for all of them. Published (HIDA, ASPLOS 2024): an expert's design makes 41.6 thousand images a
second, that of an exhaustive search of 210 hours 49.9, HIDA's 53.2.
"""

import itertools
import json
import sys
import tempfile
import time
from pathlib import Path

import cnn
import torch
from common import ROOT, print_rows, script_arguments, stc

import streamtensor
from streamtensor.checkpoints.weights import write

RESULTS = ROOT / "bench" / "results" / "lenet.md"
DSP, PLATFORM, MHZ = 209, "xc7z020", 100
LAUNCHES = (1, 16, 64)
# pixels, result channels, terms, dims of the window
LAYERS = {
    "conv1": (28 * 28, 6, 1, (5, 5)),
    "conv2": (10 * 10, 16, 6, (5, 5)),
    "linear1": (1, 120, 400, ()),
    "linear2": (1, 84, 120, ()),
    "linear3": (1, 10, 84, ()),
}


def divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def choices(pixels: int, channels: int, terms: int, window: tuple) -> list[tuple[int, int]]:
    """Cycles an image and DSPs of a layer, for each number of channels and terms at once."""
    taps = list(itertools.accumulate(window, lambda a, b: a * b))
    wide = [*divisors(terms), *(terms * each for each in taps)]
    whole = pixels * channels * terms * (taps[-1] if taps else 1)
    return [
        (whole // (pe * simd), -(-pe * simd // 2))
        for pe in divisors(channels)
        for simd in dict.fromkeys(wide)
    ]


def exhaustive(layers: list[list[tuple[int, int]]]) -> tuple[int, int, int]:
    """The least interval within the DSPs, the fewest DSPs for it, and the combinations."""
    *others, last = [torch.tensor(layer) for layer in layers]
    interval, taken = others[0].T
    for cycles, cost in (layer.T for layer in others[1:]):
        interval = torch.maximum(interval[:, None], cycles).flatten()
        taken = (taken[:, None] + cost).flatten()
    best = (sys.maxsize, 0)
    for cycles, cost in last.tolist():
        fits = taken + cost <= DSP
        if not fits.any():
            continue
        whole = interval[fits].clamp(min=cycles)
        least = whole.min()
        best = min(best, (int(least), int((taken[fits] + cost)[whole == least].min())))
    return *best, len(interval) * len(last)


def compiled(images: int, folder: Path) -> tuple[dict, float]:
    """The report of a launch of so many images, and the seconds of the compiler."""
    design, begin = folder / f"by{images}", time.monotonic()
    given = ["--weights", folder / "lenet.safetensors", "--images", images, "-o", design]
    given += ["--platform", PLATFORM, "--clock", MHZ, "--kernel-dsp", DSP]
    stc("compile", folder / "lenet.mlir", *given)
    return json.loads((design / "report.json").read_text()), time.monotonic() - begin


def export(folder: Path) -> None:
    torch.manual_seed(0)
    example = (torch.randn(1, 1, 28, 28),)
    network = cnn.lenet().eval().requires_grad_(False)
    found = streamtensor.export(streamtensor.quantized(network, example[0], [example]), example)
    (folder / "lenet.mlir").write_text(found.text)
    write(folder / "lenet.safetensors", found.weights, found.weights, found.weights.__getitem__)


def rows():
    begin = time.monotonic()
    interval, taken, seen = exhaustive([choices(*layer) for layer in LAYERS.values()])
    seconds = time.monotonic() - begin
    yield (
        f"| exhaustive, {seen:,} combinations | {interval:,} | – | {MHZ * 1e6 / interval:,.0f} | – "
        f"| {taken} | {seconds:.1f} |"
    )
    with tempfile.TemporaryDirectory() as name:
        export(Path(name))
        for images in LAUNCHES:
            report, seconds = compiled(images, Path(name))
            found = report["images"]
            interval = found.get("interval_cycles", found["latency_cycles"])
            yield (
                f"| ours, {images} a launch | {interval:,} | {found['latency_cycles']:,} | "
                f"{MHZ * 1e6 / interval:,.0f} | {found['per_s']:,.0f} | "
                f"{report['resources']['dsp']} | {seconds:.1f} |"
            )


def main() -> None:
    given = script_arguments(__doc__, ("--write",))
    lines = ["# LeNet", "", *__doc__.strip().splitlines()[5:], ""]
    lines += ["| | cycles a further image | one image | images/s | with launches | DSP | seconds |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for line in lines:
        print(line)
    print_rows(lines, rows(), RESULTS if "--write" in given else None)


if __name__ == "__main__":
    main()
