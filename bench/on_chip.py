"""What a layer keeps on chip: python bench/on_chip.py FOLDER [MODEL ...]

FOLDER holds modules MODEL-PHASE-2.mlir (two layers at full width, as `streamtensor export` writes them). For each model and phase: bytes of converters,
accumulators, FIFOs, multi-reader buffers and the ring of one layer, as report.json has them, against what the layer's operators would hand on unfused,
before and after elementwise fusion.
"""

import json
import sys
import tempfile
from pathlib import Path

from common import stc

MODELS = ["gpt2m", "qwen", "tinyllama", "gemma", "mistral"]
PHASES = ["decode1024", "prefill32", "prefill128"]
KINDS = ["converters", "accumulators", "fifos", "buffers", "ring"]


def intermediates(module):
    """The key `intermediates` of the module's report, or the first line of why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        design = Path(folder) / "design"
        try:
            stc("compile", module, "--platform", "u55c", "-o", design)
        except RuntimeError as error:
            return None, str(error).splitlines()[0]
        return json.loads((design / "report.json").read_text())["intermediates"], None


def row(name, phase, found):
    """One line of the table."""
    sizes = " ".join(f"{found[kind] / 1024:9.1f}" for kind in KINDS)
    before, after = found["unfused_bytes"], found["unfused_after_elementwise_bytes"]
    held = found["converters"] + found["accumulators"]
    return (f"{name:10} {phase:11} {found['kernels_before']:4} {found['kernels_after']:4} {before / 1024:10.1f} {after / 1024:10.1f} {sizes}"
            f" {found['on_chip_bytes'] / 1024:10.1f} {100 * found['on_chip_bytes'] / before:7.1f} {100 * found['on_chip_bytes'] / after:7.1f} {100 * held / after:7.1f}")


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    folder = Path(arguments[0])
    print("KiB of one layer; held: converters + accumulators")
    print(f"{'model':10} {'phase':11} {'kernels':>9} {'unfused':>10} {'after ew':>10} " + " ".join(f"{kind[:9]:>9}" for kind in KINDS)
          + f" {'all':>10} {'% bef.':>7} {'% after':>7} {'% held':>7}")
    for name in arguments[1:] or MODELS:
        for phase in PHASES:
            module = folder / f"{name}-{phase}-2.mlir"
            if not module.exists():
                continue
            found, why = intermediates(module)
            print(row(name, phase, found) if found else f"{name:10} {phase:11} {why}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
