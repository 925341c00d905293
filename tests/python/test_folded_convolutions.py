"""Random networks of integer convolutions, folded into a pipeline of channels-last stages: the
design's numbers are NumPy's, and its cycles those of the products that it builds.
"""

import json
import random
import re

import numpy as np
import pytest
from conftest import stc

TYPES = {np.dtype(np.int8): "i8", np.dtype(np.int32): "i32", np.dtype(np.float32): "f32"}
PRODUCT = """^bb0(%p: i8, %q: i8, %r: i32):
  %p2 = arith.extsi %p : i8 to i32
  %q2 = arith.extsi %q : i8 to i32
  %m = arith.muli %p2, %q2 : i32
  %t = arith.addi %r, %m : i32
  linalg.yield %t : i32"""
MAXIMUM = """^bb0(%p: i8, %q: i8, %r: i8):
  %m = arith.maxsi %r, %p : i8
  linalg.yield %m : i8"""
REQUANTIZE = """^bb0(%p: i32, %b: i32, %s: f32, %q: i8):
  %p1 = arith.addi %p, %b : i32
  %p2 = arith.sitofp %p1 : i32 to f32
  %y1 = arith.mulf %p2, %s : f32
  %y2 = math.roundeven %y1 : f32
  %y3 = arith.maximumf %y2, %low : f32
  %y4 = arith.minimumf %y3, %high : f32
  %y5 = arith.fptosi %y4 : f32 to i8
  linalg.yield %y5 : i8"""
ADD = """^bb0(%p: i8, %q: i8, %r: i8):
  %p2 = arith.extsi %p : i8 to i32
  %q2 = arith.extsi %q : i8 to i32
  %s = arith.addi %p2, %q2 : i32
  %a = arith.maxsi %s, %low32 : i32
  %b = arith.minsi %a, %high32 : i32
  %c = arith.trunci %b : i32 to i8
  linalg.yield %c : i8"""


def _type(array) -> str:
    return f"tensor<{''.join(f'{d}x' for d in array.shape)}{TYPES[array.dtype]}>"


class Network:
    """linalg on images [batch, channels, height, width], and what NumPy makes of the same."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.body: list[str] = []
        self.arguments: dict[str, np.ndarray] = {}
        self.value: dict[str, np.ndarray] = {}

    def argument(self, array) -> str:
        name = f"a{len(self.arguments)}"
        self.arguments[name] = array
        self.value[f"%{name}"] = array
        return f"%{name}"

    def image(self, *shape) -> str:
        return self.argument(self.random.integers(-128, 128, shape).astype(np.int8))

    def generic(self, result, maps, loops, operands, code, start=None) -> str:
        name = f"%v{len(self.value)}"
        kinds = ", ".join('"reduction"' if loop in "cuv" else '"parallel"' for loop in loops)
        maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({each})>" for each in maps)
        types = ", ".join(_type(self.value[each]) for each in operands)
        self.body.append(f"{name}e = tensor.empty() : {_type(result)}")
        out = f"{name}e"
        if start:
            scalar = TYPES[result.dtype]
            self.body.append(
                f"{name}f = linalg.fill ins({start} : {scalar}) outs({out} : {_type(result)})"
                f" -> {_type(result)}"
            )
            out = f"{name}f"
        self.body.append(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
            f"ins({', '.join(operands)} : {types}) outs({out} : {_type(result)}) {{\n{code}\n}}"
            f" -> {_type(result)}"
        )
        self.value[name] = result
        return name

    def pad(self, x: str, by: int, number: int) -> str:
        if not by:
            return x
        name = f"%v{len(self.value)}"
        result = np.pad(self.value[x], ((0, 0), (0, 0), (by, by), (by, by)), constant_values=number)
        self.body.append(
            f"{name} = tensor.pad {x} low[0, 0, {by}, {by}] high[0, 0, {by}, {by}] {{\n"
            "^bb0(%a: index, %b: index, %c: index, %d: index):\n"
            f"  tensor.yield %{'zero' if not number else 'least'} : i8\n}}"
            f" : {_type(self.value[x])} to {_type(result)}"
        )
        self.value[name] = result
        return name

    def windows(self, x: str, kernel: int, stride: int, dilation: int):
        """Views of the image, one a place in the window."""
        image = self.value[x]
        size = [(extent - dilation * (kernel - 1) - 1) // stride + 1 for extent in image.shape[2:]]
        for u in range(kernel):
            for v in range(kernel):
                rows = slice(u * dilation, u * dilation + stride * (size[0] - 1) + 1, stride)
                columns = slice(v * dilation, v * dilation + stride * (size[1] - 1) + 1, stride)
                yield u, v, image[:, :, rows, columns].astype(np.int64)

    def convolution(self, x, channels, kernel=3, stride=1, padding=1, dilation=1) -> str:
        """channels None: depthwise."""
        x = self.pad(x, padding, 0)
        count = self.value[x].shape[1]
        shape = (channels or count, *([count] if channels else []), kernel, kernel)
        weight = self.random.integers(-128, 128, shape).astype(np.int8)
        sums = sum(
            np.einsum("ncyx,oc->noyx", part, weight[:, :, u, v].astype(np.int64))
            if channels
            else part * weight[None, :, u, v, None, None]
            for u, v, part in self.windows(x, kernel, stride, dilation)
        )
        at = f"y * {stride} + u * {dilation}, x * {stride} + v * {dilation}"
        maps = [f"n, c, {at}", "o, c, u, v"] if channels else [f"n, o, {at}", "o, u, v"]
        operands = [x, self.argument(weight)]
        loops = "noyxcuv" if channels else "noyxuv"
        name = self.generic(
            sums.astype(np.int32), [*maps, "n, o, y, x"], loops, operands, PRODUCT, "%zero32"
        )
        return self.requantize(name)

    def requantize(self, x: str) -> str:
        sums = self.value[x]
        count = sums.shape[1]
        bias = self.random.integers(-999, 999, count).astype(np.int32)
        scale = (self.random.uniform(0.5, 1, count) * 90 / np.abs(sums).max()).astype(np.float32)
        spread = (slice(None), *[None] * (sums.ndim - 2))
        scaled = (sums + bias[spread]).astype(np.float32) * scale[spread]
        result = np.clip(np.rint(scaled), -128, 127).astype(np.int8)
        operands = [x, self.argument(bias), self.argument(scale)]
        place = "n, o, y, x" if sums.ndim == 4 else "n, o"
        return self.generic(
            result, [place, "o", "o", place], place.replace(", ", ""), operands, REQUANTIZE
        )

    def maximum(self, x, kernel, stride, padding) -> str:
        x = self.pad(x, padding, -128)
        parts = [part for _, _, part in self.windows(x, kernel, stride, 1)]
        window = f"%w{len(self.value)}"
        self.body.append(f"{window} = tensor.empty() : tensor<{kernel}x{kernel}xi8>")
        self.value[window] = np.zeros((kernel, kernel), np.int8)
        maps = [f"n, o, y * {stride} + u, x * {stride} + v", "u, v", "n, o, y, x"]
        result = np.max(parts, 0).astype(np.int8)
        return self.generic(result, maps, "noyxuv", [x, window], MAXIMUM, "%least")

    def add(self, x, y) -> str:
        total = self.value[x].astype(np.int32) + self.value[y]
        result = np.clip(total, -128, 127).astype(np.int8)
        return self.generic(result, ["n, o, y, x"] * 3, "noyx", [x, y], ADD)

    def linear(self, x, channels) -> str:
        """Of the mean of each channel."""
        image = self.value[x]
        sums = image.astype(np.int32).sum((2, 3))
        code = PRODUCT.replace("%q: i8, ", "").replace("%q2 = arith.extsi %q : i8 to i32", "")
        code = code.replace("%m = arith.muli %p2, %q2 : i32", "").replace("%m", "%p2")
        pooled = self.requantize(
            self.generic(
                sums.astype(np.int32), ["n, o, u, v", "n, o"], "nouv", [x], code, "%zero32"
            )
        )
        return self.dense(pooled, channels)

    def dense(self, x, channels) -> str:
        numbers = self.value[x]
        weight = self.random.integers(-128, 128, (channels, numbers.shape[1])).astype(np.int8)
        total = numbers.astype(np.int32) @ weight.T.astype(np.int32)
        operands = [x, self.argument(weight)]
        maps = ["n, c", "o, c", "n, o"]
        return self.requantize(
            self.generic(total.astype(np.int32), maps, "noc", operands, PRODUCT, "%zero32")
        )

    def text(self, result: str) -> str:
        signature = ", ".join(
            f'%{name}: {_type(array)} {{stream.name = "{name}", '
            f'stream.role = "{"input" if name == "a0" else "weight"}"}}'
            for name, array in self.arguments.items()
        )
        constants = """%zero = arith.constant 0 : i8
%least = arith.constant -128 : i8
%zero32 = arith.constant 0 : i32
%low = arith.constant -128.0 : f32
%high = arith.constant 127.0 : f32
%low32 = arith.constant -128 : i32
%high32 = arith.constant 127 : i32
"""
        output = f'{_type(self.value[result])} {{stream.name = "out", stream.role = "output"}}'
        return (
            f"func.func @main({signature}) -> ({output}) {{\n{constants}"
            + "\n".join(self.body)
            + f"\nreturn {result} : {_type(self.value[result])}\n}}\n"
        )


def _compiled(network, result, folder, *options):
    source = folder / "network.mlir"
    source.write_text(network.text(result))
    words = []
    for name, array in network.arguments.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--in", f"{name}={folder / name}.npy"]
    design = folder / "design"
    found = stc("compile", source, "-o", design, *options)
    assert found.returncode == 0, found.stderr
    found = stc("run", design, *words, "--out", f"out={folder / 'out'}.npy")
    assert found.returncode == 0, found.stderr
    assert np.load(folder / "out.npy").tobytes() == network.value[result].tobytes()
    return design


def _random_network(seed: int):
    choose = random.Random(seed)
    network = Network(seed)
    side = choose.choice([7, 9, 12])
    batch = choose.choice([1, 1, 2])
    x = network.image(batch, choose.choice([1, 3, 6]), side, side + choose.randint(0, 3))
    kernel = choose.choice([3, 3, 5])
    x = network.convolution(x, choose.choice([4, 6, 10]), kernel, choose.choice([1, 2]))
    for _ in range(choose.randint(1, 3)):
        kind = choose.choice(["plain", "point", "depthwise", "dilated", "maximum", "residual"])
        if kind == "plain":
            x = network.convolution(x, choose.choice([4, 7, 12]), kernel=choose.choice([2, 3]))
        elif kind == "point":
            x = network.convolution(x, choose.choice([5, 8]), 1, choose.choice([1, 2]), 0)
        elif kind == "depthwise":
            x = network.convolution(x, None)
        elif kind == "dilated":
            x = network.convolution(x, 6, padding=2, dilation=2)
        elif kind == "maximum":
            x = network.maximum(x, choose.choice([2, 3]), choose.choice([1, 2]), 1)
        else:
            x = network.add(network.convolution(x, network.value[x].shape[1]), x)
    if choose.random() < 0.5:
        x = network.linear(x, choose.choice([3, 10]))
    return network, x


@pytest.mark.parametrize("seed", range(5))
def test_random_networks(core_built, tmp_path, seed):
    network, result = _random_network(seed)
    dsp = random.Random(seed).choice([30, 90, 400])
    platform = ["u55c", "vu9p", "xc7z020"][seed % 3]
    dsp = min(dsp, 120) if platform == "xc7z020" else dsp  # it has 220
    options = ["--platform", platform, "--kernel-dsp", dsp]
    if seed % 2:
        options += ["--on-chip-memory", _least_memory(network, result, tmp_path, options) * 5 // 4]
    _compiled(network, result, tmp_path, *options)


def _least_memory(network, result, folder, options) -> int:
    source = folder / "network.mlir"
    source.write_text(network.text(result))
    found = stc("compile", source, "-o", folder / "none", *options, "--on-chip-memory", 1)
    return int(re.search(r"--on-chip-memory (\d+) is the minimum", found.stderr)[1])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_networks(core_built, tmp_path, seed):
    test_random_networks(core_built, tmp_path, seed)


def test_layers_run_at_once_and_more_images_cost_the_slowest_alone(core_built, tmp_path):
    """A layer of 16 by 16 channels at 16 x 16 takes 2,304 cycles with 256 products, which two of
    them in a row do not double; of four images each further one adds little more.
    """
    cycles = {}
    for layers, batch in [(1, 1), (2, 1), (2, 4)]:
        network = Network(layers)
        x = network.image(batch, 16, 16, 16)
        for _ in range(layers):
            x = network.convolution(x, 16)
        folder = tmp_path / f"{layers}x{batch}"
        folder.mkdir()
        design = _compiled(network, x, folder)
        cycles[layers, batch] = json.loads(stc("simulate", design, "--json").stdout)["cycles"]
    assert cycles[1, 1] < 1.3 * 2304
    assert cycles[2, 1] < 1.5 * 2304
    assert cycles[2, 4] - cycles[2, 1] < 3 * 1.15 * 2304


def test_few_channels_take_several_of_a_window(core_built, tmp_path):
    """A window of 7 x 7 pixels of 3 channels is 49 words; the design takes at least a row of it a
    cycle, of one channel and of channels apart as well, and the numbers are the same.
    """
    cycles = {}
    for name, channels, kernel, stride in [("stem", 3, 7, 2), ("gray", 1, 5, 1)]:
        network = Network(kernel)
        x = network.image(1, channels, 24, 24)
        x = network.convolution(x, 8, kernel, stride, kernel // 2)
        x = network.maximum(network.convolution(x, None), 3, 2, 1)
        folder = tmp_path / name
        folder.mkdir()
        design = _compiled(network, x, folder)
        cycles[name] = json.loads(stc("simulate", design, "--json").stdout)["cycles"]
    assert cycles["stem"] < 12 * 12 * 49 / 3
    assert cycles["gray"] < 24 * 24 * 25 / 3


def test_weights_that_do_not_fit_are_held_block_by_block(core_built, tmp_path):
    """The weights of three layers take 110,592 bytes; with less memory than that a block of
    channels is held at a time, which costs a stream of images nothing.
    """
    cycles = {}
    for memory, batch in [(1 << 20, 1), (1 << 20, 4), (100000, 1), (100000, 4)]:
        network = Network(batch)
        x = network.image(batch, 64, 5, 4)
        for _ in range(3):
            x = network.convolution(x, 64)
        folder = tmp_path / f"{memory}x{batch}"
        folder.mkdir()
        design = _compiled(network, x, folder, "--on-chip-memory", memory, "--kernel-dsp", 400)
        assert "spilled to memory" not in (design / "report.txt").read_text()
        cycles[memory, batch] = json.loads(stc("simulate", design, "--json").stdout)["cycles"]
    held, blocks = ((cycles[m, 4] - cycles[m, 1]) / 3 for m in (1 << 20, 100000))
    assert blocks < 1.2 * held


def test_an_image_waits_for_one_buffer_between_layers_in_blocks(core_built, tmp_path):
    """What pads a sum for the next layer passes it on in the order of its blocks: an image is
    turned once between two layers, in front of the one that takes it again for each block.
    """
    network = Network(3)
    x = network.convolution(network.image(1, 64, 5, 4), 64)
    x = network.add(network.convolution(network.convolution(x, 64), 64), x)
    design = _compiled(network, x, tmp_path, "--on-chip-memory", 90000, "--kernel-dsp", 400)
    assert json.loads(stc("simulate", design, "--json").stdout)["cycles"] < 12900


def test_no_fifo_holds_what_a_converter_sends_again(core_built, tmp_path):
    """Biases and scales are sent again for each pixel from a converter's memory: a FIFO of many of
    them holds nothing that is not there already, and memory is short for what has to wait.
    """
    network = Network(9)
    x = network.image(3, 16, 112, 112)
    for _ in range(5):
        x = network.add(network.convolution(network.convolution(x, 16), 16), x)
    source = tmp_path / "network.mlir"
    source.write_text(network.text(x))
    found = stc("compile", source, "-o", tmp_path / "design")
    assert found.returncode == 0, found.stderr
    text = (tmp_path / "design" / "design.mlir").read_text()
    depths = re.findall(r'"s_convert_\d+", stream.prefetch, stream.required_depth = (\d+)', text)
    assert depths and max(map(int, depths)) <= 32


def test_rows_that_a_window_skips_come_while_one_is_read(core_built, tmp_path):
    """A maximum of 3 x 3 that moves by two reads 9 of 4 words for each of 400 pixels."""
    network = Network(3)
    x = network.convolution(network.image(1, 16, 40, 40), 16, 1, 1, 0)
    x = network.maximum(x, 3, 2, 1)
    design = _compiled(network, x, tmp_path, "--kernel-dsp", 18)
    found = json.loads(stc("simulate", design, "--json").stdout)["processes"]
    busy = [each["busy"] for each in found if each["name"].endswith("_line_buffer")]
    assert 400 * 9 * 4 <= busy[-1] < 1.1 * 400 * 9 * 4


def test_dense_layers_are_stages_of_the_pipeline(core_built, tmp_path):
    """Weights of dense layers that do not fit are read again for each image where products take
    longer than that, so that a further image takes less than all layers one after the other.
    """
    cycles = {}
    for batch in (1, 4):
        network = Network(3)
        x = network.convolution(network.image(batch, 16, 24, 24), 32)
        x = network.linear(x, 512)
        for features in (1024, 512):
            x = network.dense(x, features)
        folder = tmp_path / str(batch)
        folder.mkdir()
        options = ["--on-chip-memory", 500000, "--kernel-dsp", 60]
        design = _compiled(network, x, folder, *options)
        cycles[batch] = json.loads(stc("simulate", design, "--json").stdout)["cycles"]
    assert (cycles[4] - cycles[1]) / 3 < 0.75 * cycles[1]


def test_a_board_with_two_ports_takes_weights_of_any_width(core_built, tmp_path):
    """Words of several widths come through the adapters that there are."""
    network = Network(5)
    x = network.image(1, 4, 9, 9)
    for channels in (6, 10, 8):
        x = network.convolution(x, channels)
    x = network.linear(x, 5)
    board = tmp_path / "board.json"
    ports = {"most": {"value": 2, "source": "test"}}
    board.write_text(json.dumps({"name": "board", "like": "u55c", "ports": ports}))
    design = _compiled(network, x, tmp_path, "--platform", board)
    assert "memory ports    2 of 2" in (design / "report.txt").read_text()


def test_a_layer_of_more_products_than_a_word_has_is_split(core_built, tmp_path):
    """A word has 1,024 weights at most: one stage of the first layer would take 1,152 cycles an
    image. Its parts have a reader that pads them, or one that takes windows of them.
    """
    for windows in (False, True):
        network = Network(3)
        x = network.convolution(network.image(3, 3, 12, 12), 32, 7, 1, 3)
        x = network.convolution(network.maximum(x, 2, 2, 0) if windows else x, 4)
        folder = tmp_path / str(windows)
        folder.mkdir()
        design = _compiled(network, x, folder)
        images = json.loads(stc("simulate", design, "--json").stdout)["images"]
        assert images["interval_cycles"] < 900
