"""Compares designs of language models at full width with the quantized arithmetic in PyTorch.

    python bench/full_width_accuracy.py [--write] [--layers N] [NAME ...]

For each built-in family, two layers at full width with the real vocabulary and random weights are
compiled with --quant w4a8 for the U55C and run on the CPU:

    contractions: of layer 0 and the LM head, on the same input: bit-identical, or how many
        outputs differ
    tokens: of 32 greedy tokens after a prompt of 8, each side with its own cache, those that are
        PyTorch's. Another token is wrong if PyTorch's logit of its own token leads by more than
        the logits differ.
    equal steps: the 39 launches again, with PyTorch using the design's cache: those whose logits
        differ by at most 1e-3 of the largest, the largest difference, and the bytes of their new
        keys and values that differ
    chunks: four prefills of 16 tokens, in the same way: equal launches, and the tokens with at
        most 0.1 % differing bytes of new keys and values, by at most 1

A value on the boundary between two integers may round to either because of the last bit of f32;
from there on the two sides compute with different integers. PyTorch against itself, with embeddings
that differ in the last bit, shows how often that happens: the figures in brackets. A model passes
with no wrong token, identical contractions, and as many equal steps and chunk tokens as PyTorch
against itself, less a sixth.

--write updates these rows in docs/models.md. The exit status is 1 if a model fails.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from common import ROOT, Table, first_cell

sys.path.insert(0, str(ROOT / "python"))
# PyTorch's threads would spin while the design runs, half of the time that all takes
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

from streamtensor import (
    api,
    quantize,  # noqa: E402
    workflow,
)
from streamtensor.language import builtin_models, models
from streamtensor.language.decoder_step import StepShape  # noqa: E402
from streamtensor.language.reference import ReferenceDesign  # noqa: E402
from streamtensor.progress import Progress  # noqa: E402

NAMES = ["gpt2", "qwen2.5-0.5b", "tinyllama-1.1b", "llama-3.2-1b", "gemma-3-1b", "mistral-7b"]
CONTEXT, PROMPT, NEW, CHUNK = 1024, 8, 32, 16
SCHEME = "w4a8"
CHUNKS = 4
LOGITS = 1e-3  # of the largest: as much may they differ in an equal step
BYTES = 1e-3  # as large a part of a token's keys and values may differ, by 1
LAST_BIT = 2**-23
HEADINGS = [
    "model",
    "contractions",
    "tokens",
    "logits",
    "equal steps",
    "logits",
    "bytes",
    "equal chunks",
    "tokens",
]


def shortened(name: str, layers: int, last: str = "full_attention") -> models.Model:
    """The built-in model with fewer layers; of Gemma's all but the last one are sliding ones."""
    config = dict(builtin_models.BUILT_IN[name])
    config["n_layer" if config["model_type"] == "gpt2" else "num_hidden_layers"] = layers
    if config["model_type"] == "gemma3_text":
        config["layer_types"] = ["sliding_attention"] * (layers - 1) + [last]
    builtin_models.BUILT_IN[name] = config
    return models.load(name, search=False)


class Contractions(torch.nn.Module):
    """Some layers, each on the input of its width."""

    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.widths = sorted({quantize.matrix(layer).shape[1] for layer in layers})

    def forward(self, *inputs):
        return tuple(
            layer(inputs[self.widths.index(quantize.matrix(layer).shape[1])])
            for layer in self.layers
        )


def quantized_of(module: torch.nn.Module) -> torch.nn.Module:
    """As the scheme says; the integers are kept as f32, so that they are not converted in every
    launch.
    """
    made = quantize.quantized_copy(module, quantize.Scheme.parse(SCHEME))
    for layer in made.modules():
        if isinstance(layer, quantize.QuantizedLinear):
            layer.q = layer.q.float()
    return made


def as_linear(layer: torch.nn.Module) -> torch.nn.Linear:
    weight = quantize.matrix(layer).detach()
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], layer.bias is not None)
    made.weight.data = weight.contiguous()
    if layer.bias is not None:
        made.bias.data = layer.bias.detach().clone()
    return made


def contractions(module: torch.nn.Module) -> str:
    """Those of layer 0 and the LM head."""
    named = quantize.contractions(module)
    layers = [
        as_linear(layer)
        for name, layer in named.items()
        if ".0." in name or layer is quantize.head(module)
    ]
    both = Contractions(layers)
    inputs = [
        torch.randn(1, width, generator=torch.Generator().manual_seed(width))
        for width in both.widths
    ]
    made = [
        quantize.quantized_copy(torch.nn.Sequential(layer), quantize.Scheme.parse(SCHEME))
        for layer in layers
    ]
    expected = [
        layer(inputs[both.widths.index(source.weight.shape[1])])
        for layer, source in zip(made, layers)
    ]
    with api.compile(both, tuple(inputs), quant=SCHEME) as design:
        found = design(*inputs)
    differ = sum(int((a != b).sum()) for a, b in zip(found, expected))
    return (
        f"{len(layers)} equal"
        if differ == 0
        else f"WRONG: {differ} of {sum(b.numel() for b in expected)} outputs"
    )


class LaunchComparison:
    """What one side of PyTorch and the other find in the same launches."""

    def __init__(self, shape: StepShape):
        self.shape, self.largest = shape, 0.0
        # a launch: difference of logits; of bytes (which part, by how much at most); PyTorch's lead
        # where tokens differ
        self.off, self.bytes, self.margins = [], [], []
        self.tokens = 0  # that have equal keys and values

    def add(
        self,
        found: torch.Tensor,
        expected: torch.Tensor,
        rows: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        self.off.append(float((found - expected).abs().max()))
        self.largest = max(self.largest, float(expected.abs().max()))
        first, second = expected.topk(2).values.tolist()
        self.margins.append(
            first - second if int(found.argmax()) != int(expected.argmax()) else None
        )
        # tokens first
        differences = (
            torch.stack([(a.int() - b.int()).abs() for a, b in rows]).transpose(0, 3).flatten(1)
        )
        self.bytes.append((float((differences > 0).float().mean()), int(differences.max())))
        self.tokens += int(
            (((differences > 0).float().mean(1) <= BYTES) & (differences.amax(1) <= 1)).sum()
        )

    def token_mismatches(self, last: int) -> tuple[int, int]:
        """Of the last tokens, how many are not PyTorch's; and though PyTorch is sure."""
        margins = [margin for margin in self.margins[-last:] if margin is not None]
        return len(margins), sum(margin > max(self.off) for margin in margins)

    def equal(self) -> list[int]:
        return [i for i, off in enumerate(self.off) if off <= LOGITS * self.largest]

    def logits(self, launches=None) -> float:
        return (
            max(
                (self.off[i] for i in (range(len(self.off)) if launches is None else launches)),
                default=0.0,
            )
            / self.largest
        )

    def stored(self, launches) -> str:
        part, most = (
            sum(self.bytes[i][0] for i in launches) / max(1, len(launches)),
            max((self.bytes[i][1] for i in launches), default=0),
        )
        return f"{100 * part:.3f} %" + (f", by up to {most}" if most > 1 else "")


class SideBySide:
    """A design; PyTorch with a cache of its own; PyTorch with the design's cache; the same with
    other last bits.
    """

    def __init__(self, design, quantized: torch.nn.Module, shape: StepShape):
        self.design, self.shape = design, shape
        self.own, self.same = ReferenceDesign(quantized, shape), ReferenceDesign(quantized, shape)
        self.own_cache, self.step, self.control = (LaunchComparison(shape) for _ in range(3))
        self.caches_differ = False  # the caches differ
        self.embedding, self.noise = (
            quantized.get_input_embeddings(),
            torch.Generator().manual_seed(1),
        )

    def launch(self, ids: list[int], position: int) -> int:
        """PyTorch's next token."""
        rows = slice(position, position + len(ids))
        found, expected = self._run(self.design, ids, position), self._run(self.own, ids, position)
        design_rows = {
            name: self.design.read(name)[:, :, self.design.lead_rows(name) :][:, :, rows]
            for name in self.shape.cache_names()
        }
        self.own_cache.add(found, expected, self._bytes(design_rows, self.own, rows))
        expected_same = (
            self._run(self.same, ids, position)
            if self.caches_differ
            else self._copied(expected, rows)
        )
        self.step.add(found, expected_same, self._bytes(design_rows, self.same, rows))
        made = {
            name: quantize.round_rows(self.same.read(name)[:, :, rows], quantize.KV_LIMIT)[0]
            for name in design_rows
        }
        hook = self.embedding.register_forward_hook(
            lambda _, inputs, out: (
                out * (1 + LAST_BIT * torch.randn(out.shape, generator=self.noise))
            )
        )
        other = self._run(self.same, ids, position)
        hook.remove()
        self.control.add(other, expected_same, self._bytes(made, self.same, rows))
        for name in design_rows:
            for at in range(rows.start, rows.stop):
                self.same.values[name][0, :, at] = self.design.row(name, at)
        self.caches_differ |= self.step.bytes[-1][1] > 0
        return int(expected.argmax())

    def _copied(self, logits: torch.Tensor, rows: slice) -> torch.Tensor:
        """What PyTorch finds with the design's cache while its own has the same bytes."""
        for name in self.shape.cache_names():
            self.same.values[name][:, :, rows] = self.own.values[name][:, :, rows]
        return logits

    def _run(self, side, ids: list[int], position: int) -> torch.Tensor:
        side.write("ids", torch.tensor([ids]))
        side.write("positions", torch.tensor([[position]]))
        if self.shape.phase == "prefill":
            side.write("tokens", torch.tensor([[len(ids)]]))
        side.launch()
        return side.read("logits").reshape(-1)

    @staticmethod
    def _bytes(
        design_rows: dict, side: ReferenceDesign, rows: slice
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [
            (value, quantize.round_rows(side.read(name)[:, :, rows], quantize.KV_LIMIT)[0])
            for name, value in design_rows.items()
        ]


def opened(model: models.Model, shape: StepShape, folder: Path):
    lowered = workflow.compile_files(model, shape, "u55c", folder, Progress(), SCHEME)
    return workflow.open_design(folder, lowered, Progress())


def decode(model, quantized, shape: StepShape, folder: Path) -> SideBySide:
    """A prompt and PyTorch's answer, token by token."""
    ids = torch.randint(
        model.config.vocab_size, (PROMPT,), generator=torch.Generator().manual_seed(0)
    ).tolist()
    with opened(model, shape, folder) as design:
        sides = SideBySide(design, quantized, shape)
        for position in range(PROMPT + NEW - 1):
            token = sides.launch([ids[position]], position)
            ids += [token] if position + 1 == len(ids) else []
    return sides


def prefill(model, quantized, shape: StepShape, folder: Path) -> SideBySide:
    ids = torch.randint(
        model.config.vocab_size, (CHUNKS, CHUNK), generator=torch.Generator().manual_seed(0)
    ).tolist()
    with opened(model, shape, folder) as design:
        sides = SideBySide(design, quantized, shape)
        for i, chunk in enumerate(ids):
            sides.launch(chunk, i * CHUNK)
    return sides


def row(name: str, layers: int) -> tuple[str, bool]:
    start, model = time.monotonic(), shortened(name, layers)
    shapes = [StepShape.of(model.config, phase, CONTEXT, CHUNK) for phase in ("decode", "prefill")]
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="streamtensor-") as work:
        module = models.load(name, search=False).with_values()
        exact, quantized = contractions(module), quantized_of(module)
        del module
        sides = decode(model, quantized, shapes[0], Path(work) / "decode")
        chunk = prefill(model, quantized, shapes[1], Path(work) / "prefill")
    print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    (token_mismatches, wrong), equal, control, steps = (
        sides.own_cache.token_mismatches(NEW),
        sides.step.equal(),
        sides.control.equal(),
        len(sides.step.off),
    )
    tokens, expected = chunk.step.tokens, chunk.control.tokens
    good = (
        wrong == 0
        and len(equal) >= len(control) - steps // 6
        and tokens >= expected - CHUNKS * CHUNK // 6
        and "WRONG" not in exact
    )
    cells = [
        name,
        exact,
        f"{NEW - token_mismatches} of {NEW}" + (f", {wrong} WRONG" if wrong else ""),
        f"{sides.own_cache.logits():.0e}",
        f"{len(equal)} ({len(control)}) of {steps}",
        f"{sides.step.logits(equal):.0e}",
        sides.step.stored(equal),
        f"{len(chunk.step.equal())} ({len(chunk.control.equal())}) of {CHUNKS}",
        f"{tokens} ({expected}) of {CHUNKS * CHUNK}",
    ]
    return "| " + " | ".join(cells) + " |", good


def key(line: str) -> str | None:
    return name if (name := first_cell(line)) in NAMES else None


TABLE = Table("models.md", "full_width_accuracy.py", key)


def table(rows: dict[str, str]) -> str:
    return "\n".join(
        [
            "| " + " | ".join(HEADINGS) + " |",
            "|---" * len(HEADINGS) + "|",
            *(rows[name] for name in NAMES if name in rows),
        ]
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows, good = {}, True
    for name in options.names or NAMES:
        rows[name], reached = row(name, options.layers)
        print(rows[name], flush=True)
        good &= reached
        if options.write:
            TABLE.write(table({**TABLE.rows(), **rows}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
