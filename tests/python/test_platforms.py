"""Platform files: every figure has a source, and the figures add up to what the device and its
memory have.
"""

import json
from pathlib import Path

import pytest

from streamtensor import core

FOLDER = Path(__file__).parents[2] / "platforms"
FILES = sorted(FOLDER.glob("*.json"))

# The silicon, from the product tables (DS890, DS190): what no platform may exceed.
DEVICE = {
    "xcu55c-fsvh2892-2L-e": dict(lut=1_303_680, ff=2_607_360, bram18=4_032, uram=960, dsp=9_024),
    "xcu280-fsvh2892-2L-e": dict(lut=1_303_680, ff=2_607_360, bram18=4_032, uram=960, dsp=9_024),
    "xcvu9p-flga2104-2L-e": dict(lut=1_182_240, ff=2_364_480, bram18=4_320, uram=960, dsp=6_840),
    "xc7z020clg400-1": dict(lut=53_200, ff=106_400, bram18=280, uram=0, dsp=220),
}
DIES = {"xcvu9p-flga2104-2L-e": (1, 3)}  # a platform of one of the device's three dies
MEMORY = {  # bytes, GB/s of the whole memory that the platform's dies reach
    "u55c": (16 << 30, 460),
    "u280": (8 << 30, 460),
    "vu9p": (16 << 30, 19.2),
    "xc7z020": (1 << 30, 3.2),
}


def whole(name: str) -> dict:
    """A platform with what it takes from the one it is like."""
    own = json.loads((FOLDER / f"{name}.json").read_text())
    if "like" not in own:
        return own
    merged = whole(own["like"])
    for key, value in own.items():
        nested = isinstance(value, dict) and "value" not in value
        merged[key] = {**merged.get(key, {}), **value} if nested else value
    return merged


def figures(node, path=""):
    """(path, holder) of every number; a holder says where it comes from."""
    if isinstance(node, dict) and "source" in node:
        yield path, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from figures(value, f"{path}.{key}")
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from figures(value, f"{path}[{i}]")
    elif isinstance(node, (int, float)):
        yield path, {}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_figure_has_a_source(file):
    missing = [
        path
        for path, holder in figures(json.loads(file.read_text()))
        if not str(holder.get("source", "")).strip()
    ]
    assert not missing


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_dies_fit_the_device(file):
    platform = whole(file.stem)
    has, of = DIES.get(platform["part"], (len(platform["dies"]), len(platform["dies"])))
    assert len(platform["dies"]) == has
    for key, most in DEVICE[platform["part"]].items():
        total = sum(die[key]["value"] for die in platform["dies"])
        assert total * of <= most * has, key
        assert total * of >= most * has * 0.8, f"{key}: more than a fifth of the device is missing"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_memory_adds_up(file):
    memory = whole(file.stem)["memory"]
    size, rate = MEMORY[file.stem]
    channels = memory["channels"]["value"]
    assert channels * memory["channel_bytes"]["value"] == size
    assert channels * memory["channel_gbps"]["value"] == pytest.approx(rate, rel=0.01)
    assert 0.5 <= memory["channel_efficiency"]["value"] <= 1
    assert 0 <= memory["die"]["value"] < len(whole(file.stem)["dies"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_compiler_says_what_a_platform_has(core_built, file):
    platform, said = whole(file.stem), core.run_json("platforms", "--platform", file.stem)
    assert said == [
        row for row in core.run_json("platforms") if row["name"] == file.stem
    ] and said == core.run_json("platforms", "--platform", str(file))
    assert (said[0]["part"], said[0]["ports"]) == (
        platform["part"],
        platform["ports"]["most"]["value"],
    )
    assert {key: said[0][key] for key in ("lut", "dsp", "bram18", "uram")} == {
        key: sum(die[key]["value"] for die in platform["dies"])
        for key in ("lut", "dsp", "bram18", "uram")
    }
