"""Compares the search for parallelism with published ones.

    python bench/parallelism_search.py [--small] [FILE.mlir ...]

For graphs that nobody tuned for (an MLP, a chain of 12 products, attention of two sizes, an
encoder) and each FILE: cycles of a launch with the default and with every --parallelism-search of
`stc compile`, simulated where that is fast, else modeled (m); DSPs; the error of the model; and
design points evaluated per second.
"""

import json
import sys
import tempfile
from pathlib import Path

from common import ROOT, script_arguments, stc

# the first: the default
SEARCHES = ["", "joint", "intensity", "neighbor", "uniform"]
POINTS = 2_000_000


def graphs(width: int) -> dict[str, str]:
    """Name -> MLIR of small graphs, whose widths are multiples of `width`."""
    sys.path.insert(0, str(ROOT / "python"))
    import torch

    import streamtensor

    nn = torch.nn

    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.ModuleList(
                nn.Linear(width * (1 + i % 3), width * (1 + (i + 1) % 3), bias=False)
                for i in range(12)
            )

        def forward(self, x):
            for step in self.steps:
                x = step(x)
            return x

    class Head(nn.Module):
        def __init__(self, inside: int, size: int):
            super().__init__()
            self.query, self.key, self.value = (
                nn.Linear(inside, size, bias=False) for _ in range(3)
            )
            self.scale = size**-0.5

        def forward(self, x):
            scores = self.query(x) @ self.key(x).transpose(-1, -2) * self.scale
            return torch.softmax(scores, -1) @ self.value(x)

    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.small, self.large = Head(width, 8), Head(width, width)
            self.out = nn.Linear(width + 8, width)

        def forward(self, x):
            return self.out(torch.cat([self.small(x), self.large(x)], -1))

    torch.manual_seed(0)
    mlp = nn.Sequential(
        nn.Linear(width, 4 * width),
        nn.GELU(),
        nn.Linear(4 * width, 2 * width),
        nn.ReLU(),
        nn.Linear(2 * width, width),
    )
    encoder = nn.TransformerEncoderLayer(
        width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
    )
    modules = {
        "mlp": (mlp, (1, width)),
        "chain": (Chain(), (8, width)),
        "mixture": (Mixture(), (16, width)),
        "encoder": (encoder, (1, 16, width)),
    }
    torch.backends.mha.set_fastpath_enabled(False)
    return {
        name: streamtensor.export(module.eval(), torch.zeros(shape)).text
        for name, (module, shape) in modules.items()
    }


def compiled(path: Path, folder: Path, *words: str) -> dict:
    try:
        stc("compile", path, "--platform", "u55c", "-o", folder, *words)
    except RuntimeError as error:
        raise SystemExit(f"{path}: {error}") from None
    return json.loads((folder / "report.json").read_text())


def stage(folder: Path, name: str) -> float:
    return sum(
        stage["seconds"]
        for stage in json.loads((folder / "timing.json").read_text())["stages"]
        if stage["name"] == name
    )


def compare(name: str, path: Path, folder: Path) -> dict[str, int]:
    """One line of the table; cycles by search."""
    cycles, cells = {}, []
    for search in SEARCHES:
        found = compiled(path, folder, *(["--parallelism-search", search] if search else []))
        model, simulated = found["cycles"]["model"], found["cycles"].get("simulated")
        cycles[search] = simulated or model
        model_error = f"{100 * (model / simulated - 1):+5.1f} %" if simulated else "m"
        cells.append(f"{cycles[search]:11} {found['resources']['dsp']:5} {model_error:>8}")
    least = min(cycles[search] for search in SEARCHES[2:])
    print(f"{name:24} | " + " | ".join(cells) + f" | {least / cycles['']:5.2f} x", flush=True)
    return cycles


def points_a_second(path: Path, folder: Path) -> float:
    compiled(path, folder, "--parallelism-search", "joint", "--parallelism-budget", "1")
    least = stage(folder, "form_streams")
    compiled(path, folder, "--parallelism-search", "joint", "--parallelism-budget", str(POINTS))
    return POINTS / (stage(folder, "form_streams") - least)


def main(arguments: list[str]) -> int:
    small = "--small" in arguments
    files = [Path(name) for name in arguments if not name.startswith("--")]
    with tempfile.TemporaryDirectory() as work:
        paths = [(file.stem, file) for file in files]
        for name, text in graphs(32 if small else 128).items():
            path = Path(work) / f"{name}.mlir"
            path.write_text(text)
            paths.insert(0, (name, path))
        print(
            f"{'cycles, DSP, model':24} | "
            + " | ".join(f"{search or 'compiler':26}" for search in SEARCHES)
            + " | against the best published"
        )
        cycles = [compare(name, path, Path(work) / "design") for name, path in paths]
        if not small:
            print(
                f"{points_a_second(paths[-1][1], Path(work) / 'design'):.0f} points a second "
                f"on {paths[-1][0]}"
            )
    return any(found[""] > 1.005 * min(found.values()) for found in cycles)


if __name__ == "__main__":
    sys.exit(main(script_arguments(__doc__, ("--small",))))
