"""What the Python tests share: tiny models, a design made of PyTorch, and the comparison with
PyTorch's own decoding.
"""

import functools
import json
import logging
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import pytest  # noqa: E402
import torch  # noqa: E402

from streamtensor import core  # noqa: E402
from streamtensor.errors import Error  # noqa: E402
from streamtensor.language import models, reference  # noqa: E402
from streamtensor.language.decoder_step import StepShape  # noqa: E402
from streamtensor.language.generation import Decoder  # noqa: E402

logging.getLogger("torch").setLevel(logging.WARNING)  # its traces would bury a failure's own report
logging.getLogger("torch.__trace").setLevel(logging.WARNING)

SMALL = dict(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=97,
    max_position_embeddings=64,
)
FAMILIES = {
    "gpt2": dict(
        model_type="gpt2", n_layer=2, n_embd=128, n_head=4, vocab_size=512, n_positions=64
    ),
    "llama": dict(model_type="llama", **SMALL),
    "qwen2": dict(model_type="qwen2", **SMALL),
    "gemma3": dict(
        model_type="gemma3_text",
        head_dim=16,
        sliding_window=64,
        layer_types=["sliding_attention", "full_attention"],
        **SMALL,
    ),
    "mistral": dict(model_type="mistral", sliding_window=None, **SMALL),
}
TOLERANCE = 1e-4  # largest difference / largest reference value
NEW_TOKENS = 16


# a folder: of several runs side by side the first to come takes a file
SHARE = os.environ.get("STC_TEST_SHARE")
RUN_EARLY = ("test_quantized_design.py",)  # what takes long does not begin last


@functools.cache
def claim_test_file(name: str) -> bool:
    try:
        (Path(SHARE) / name).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return None if not SHARE or claim_test_file(item.path.name) else True  # done with it


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in RUN_EARLY)


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """folder_of(family): a folder with the configuration of a tiny model, without weights."""
    root = tmp_path_factory.mktemp("models")

    def make(family: str) -> Path:
        folder = root / family
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(FAMILIES[family]))
        return folder

    return make


@pytest.fixture(scope="session")
def core_built():
    """Skips the test on a tree whose compiler is not built."""
    try:
        core.find_file(core.COMPILER), core.find_file(core.LIBRARY)
    except Error as error:
        pytest.skip(str(error))


def stc(*arguments, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [core.find_file(core.COMPILER), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )


def host_of(folder: Path, program: Path) -> Path:
    """A design's own host program, built."""
    library, include = (
        core.find_file(core.LIBRARY).parent,
        Path(__file__).resolve().parents[2] / "include",
    )
    command = [
        "cc",
        "-std=c17",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        f"-I{include}",
        "-o",
        program,
        folder / "host" / "main.c",
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lstreamtensor",
    ]
    subprocess.run(command, check=True, timeout=60)
    return program


def compile_with(monkeypatch, path: Path, options: str) -> None:
    """The package compiles with these options as well, by a program at `path`."""
    path.write_text(
        f'#!/bin/sh\n[ "$1" != compile ] || set -- "$@" {options}\nexec '
        f'{core.find_file(core.COMPILER)} "$@"\n'
    )
    path.chmod(0o755)
    find = core.find_file
    monkeypatch.setattr(
        core, "find_file", lambda name: path if name == core.COMPILER else find(name)
    )


def roomier_card(folder: Path) -> str:
    """A card on which placement is no reason for fewer loaders."""
    platform = json.loads((ROOT / "platforms" / "u55c.json").read_text())
    platform["crossing_wires"]["value"] *= 4
    for die in platform["dies"]:
        for part in ("lut", "ff"):
            die[part]["value"] = die[part]["value"] * 13 // 10
    (folder / "card.json").write_text(json.dumps(platform))
    return str(folder / "card.json")


@dataclass
class Case:
    """One model with values, and prompts for it."""

    model: models.Model
    tensors: dict[str, torch.Tensor]
    shape: StepShape

    @classmethod
    def of(cls, folder: Path, context: int = 40) -> "Case":
        model = models.load(str(folder))
        tensors = {name: model.tensor(name) for name in model.tensors()}
        return cls(model, tensors, StepShape.of(model.config, "decode", context, 1))

    def prompt(self, seed: int) -> list[int]:
        return torch.randint(
            self.model.config.vocab_size, (16,), generator=torch.Generator().manual_seed(seed)
        ).tolist()


def small_case(
    folder: Path, family: str, context: int, tokens: int | None = None, **changes
) -> Case:
    """A small model in `folder`, its configuration with `changes`; its shape is decode's, or
    prefill's of so many tokens.
    """
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**FAMILIES[family], **changes}))
    case = Case.of(folder, context)
    return (
        replace(case, shape=StepShape.of(case.model.config, "prefill", context, tokens))
        if tokens
        else case
    )


class TorchDesign(reference.ReferenceDesign):
    """Behaves as a compiled decode design of the case."""

    def __init__(self, case: Case):
        weights = {f"model.{name}": value for name, value in case.tensors.items()}
        super().__init__(case.model.module, case.shape, weights)


@dataclass
class Comparison:
    ids_equal: bool
    distinct: int
    logits: float  # largest difference / largest reference value
    rows: float  # the same over all new rows of K and V

    def good(self) -> bool:
        return self.ids_equal and self.logits <= TOLERANCE and self.rows <= TOLERANCE


def compare(design, case: Case, prompt: list[int], new: int = NEW_TOKENS) -> Comparison:
    """Decodes on `design` and holds every step's logits and new rows against PyTorch's own greedy
    decoding.
    """
    expected = reference.greedy(case.model, case.tensors, prompt, new)
    decoder, ids, logits, rows = Decoder(design, case.shape), [], 0.0, 0.0
    for step in decoder.steps(prompt, new):
        logits = max(
            logits, _difference(step.logits, expected.logits[step.position], expected.logits)
        )
        for name in case.shape.cache_names():
            kind, layer = name.split(".")
            reference_rows = getattr(expected, kind)[int(layer)]
            got = decoder.row(name, step.position)
            rows = max(rows, _difference(got, reference_rows[:, step.position], reference_rows))
        if step.position >= len(prompt) - 1:
            ids.append(int(step.logits.argmax()))
    return Comparison(ids == expected.ids, len(set(ids)), logits, rows)


def _difference(got, expected, scale) -> float:
    difference = float((got - expected).abs().max() / scale.abs().max())
    return difference if difference == difference else float("inf")


class Mutant:
    """A design with one fault; every other request goes through."""

    def __init__(self, design):
        self.design = design

    def __getattr__(self, name):
        return getattr(self.design, name)


class DroppedAppend(Mutant):
    def launch(self):
        before = {name: self.design.read(name) for name in ("k.0", "v.0")}
        self.design.launch()
        for name, value in before.items():
            self.design.write(name, value)


class FrozenPosition(Mutant):
    def write(self, name, value):
        self.design.write(name, torch.zeros_like(value) if name == "positions" else value)


class SwappedHeads(Mutant):
    def launch(self):
        self.design.launch()
        value = self.design.read("k.1")
        value[:, [0, 1]] = value[:, [1, 0]]
        self.design.write("k.1", value)


MUTANTS = (DroppedAppend, FrozenPosition, SwappedHeads)


def skip_layer(case: Case) -> None:
    """Zeroes what layer 1 of a GPT-2 adds to the residual, in the model that is compiled."""
    source, muted = case.model.source, ("h.1.attn.c_proj.weight", "h.1.mlp.c_proj.weight")

    class Muted:
        def tensor(self, name):
            value = source.tensor(name)
            return torch.zeros_like(value) if name.endswith(muted) else value

    case.model.source = Muted()


def slow_compiler(folder: Path, begins: str) -> Path:
    """A C++ compiler that takes a minute; first it runs this line of shell."""
    slow = folder / "slow"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) echo 1; exit 0;; esac\n{begins}\nexec sleep 60\n'
    )
    slow.chmod(0o755)
    return slow


def neighbours(place):
    """HBM[7], or HBM[7:8]"""
    first, last = re.fullmatch(r"HBM\[(\d+):?(\d*)\]", place).groups()
    return int(last or first) - int(first) <= 1


def check_adapters(design):
    """Ports that share an adapter: a channel each, one memory channel or two neighbours, equally
    wide, or with words that travel one by one; adapters as the report counts them, no more than can
    be linked.
    """
    text, adapters = next((design / "hls").glob("*.cpp")).read_text(), {}
    wide = {name for name in re.findall(r"typedef hls::vector<[^>]*> (\w+);", text)}
    types = dict(
        (name, kind)
        for kind, name in re.findall(r"(\w+) \*(m_\w+)", text[text.index('extern "C"') :])
    )
    places = dict(
        re.findall(r"^sp=\w+\.(m_\w+):(HBM\S+)$", (design / "hls" / "link.cfg").read_text(), re.M)
    )
    assert set(types) == set(places) and wide
    single = set(re.findall(r"m_axi port=(\w+) .*max_(?:read|write)_burst_length=2\b", text))
    for name, bundle, rest in re.findall(r"m_axi port=(\w+) bundle=(\w+)(.*)", text):
        adapters.setdefault(bundle, []).append(
            (name, re.search(r"channel=(\d+)", rest), re.search(r"bitwidth=(\d+)", rest)[1])
        )
    for ports in adapters.values():
        channels = [channel and channel[1] for _, channel, _ in ports]
        assert (
            channels == [None]
            if len(ports) == 1
            else sorted(set(channels), key=int) == [str(i) for i in range(len(set(channels)))]
        )
        assert (
            len({places[name] for name, _, _ in ports}) == len({bits for _, _, bits in ports}) == 1
        )
        assert {name for name, _, _ in ports} <= single or (
            neighbours(places[ports[0][0]])
            and len({types[name] in wide for name, _, _ in ports}) == 1
        )
    report = json.loads((design / "report.json").read_text())
    assert len(adapters) == report.get("kernel", report)["ports"] <= 32
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "hls_lint.py", design],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not re.search(r": (B[34]|C[1235679]|D11|E4): ", done.stdout), done.stdout
    return adapters
