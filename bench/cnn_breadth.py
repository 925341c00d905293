"""Compiles networks of torchvision that the compiler does not know, in int8, for the U55C.

    cnn_breadth.py [NETWORK ...]     prints rows (default: of all networks)
    cnn_breadth.py --write           writes bench/results/cnn_breadth.md

Needs the package torchvision (`pip install --no-deps torchvision pillow`): only its Python code, so
that a build for another PyTorch does. Weights are random. Images have 64 x 64 pixels.
"""

import contextlib
import json
import tempfile
import time
from pathlib import Path

import torch
from common import ROOT, print_rows, script_arguments, stc

import streamtensor
from streamtensor.checkpoints.weights import write

RESULTS = ROOT / "bench" / "results" / "cnn_breadth.md"
SIDE, IMAGES = 64, (1, 4, 8)
NETWORKS = (
    "efficientnet_b0 regnet_y_400mf shufflenet_v2_x1_0 densenet121 googlenet squeezenet1_1 "
    "mnasnet1_0 mobilenet_v3_small convnext_tiny"
).split()
HEAD = [
    "# Networks of torchvision",
    "",
    f"int8, {SIDE} x {SIDE} pixels, U55C, simulated; a further image: of launches of "
    f"{IMAGES[1]} and {IMAGES[2]}. Used: products of an image in that time, of those built.",
    "`bench/cnn_breadth.py --write` makes the table.",
    "",
    "| network | one image | a further one | used | DSP | LUT k | compile s |",
    "|---|---|---|---|---|---|---|",
]


def network(name: str) -> torch.nn.Module:
    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):  # of detectors; compiled ones may be missing
        with contextlib.suppress(RuntimeError):
            library.define(f"{operator}(Tensor boxes, Tensor scores, float least) -> Tensor")
    from torchvision import models

    torch.manual_seed(0)
    more = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    return models.get_model(name, weights=None, **more).eval().requires_grad_(False)


def reports(name: str, folder: Path):
    """The report of a launch of each number of images, and the compiler's seconds."""
    image = torch.randn(1, 3, SIDE, SIDE)
    found = streamtensor.export(
        streamtensor.quantized(network(name), image, [(image,)]), (image,), names=["image"]
    )
    (folder / "network.mlir").write_text(found.text)
    write(folder / "network.safetensors", found.weights, found.weights, found.weights.__getitem__)
    for images in IMAGES:
        begin, design = time.monotonic(), folder / f"by{images}"
        given = ["--weights", folder / "network.safetensors", "--images", images]
        stc("compile", folder / "network.mlir", "-o", design, *given)
        yield json.loads((design / "report.json").read_text()), time.monotonic() - begin


def row(name: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            (one, seconds), (few, _), (many, _) = reports(name, Path(folder))
        except RuntimeError as error:
            return f"| {name} | refused: {str(error).splitlines()[0]} ||||||"
    cycles = [each["cycles"].get("simulated", each["cycles"]["model"]) for each in (few, many)]
    further = (cycles[1] - cycles[0]) / (IMAGES[2] - IMAGES[1])
    launch = few["clock_mhz"] * few["latency_ms"] * 1e3  # cycles with what the host adds
    products = few["products"]["used"] * launch / IMAGES[1]
    return (
        f"| {name} | {one['images']['latency_cycles']:,} | {further:,.0f} | "
        f"{products / further / few['products']['built']:.0%} | {few['resources']['dsp']:,} | "
        f"{few['resources']['lut'] / 1e3:.0f} | {seconds:.1f} |"
    )


def main() -> None:
    given = script_arguments(__doc__, ("--write",))
    names = [each for each in given if not each.startswith("-")] or NETWORKS
    print_rows(HEAD, map(row, names), RESULTS if "--write" in given else None)


if __name__ == "__main__":
    main()
