"""Which memory ports share an adapter in designs at full width, and what that leaves the PEs of
an engine.
"""

import json
import re
from dataclasses import replace

import pytest
from conftest import check_adapters, compile_with, roomier_card, stc

from streamtensor import core, workflow
from streamtensor.language import builtin_models, models
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress


def test_keys_and_values_that_one_channel_can_bring_leave_the_slices_theirs(
    core_built, tmp_path, monkeypatch
):
    """TinyLlama's come through the adapter of small operands; and where eight heads of queries
    share one of keys, kernels of attention are as wide as the state's words, so that nothing is
    turned between them.
    """
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "tinyllama-1.1b",
        builtin_models.BUILT_IN["tinyllama-1.1b"] | {"num_hidden_layers": 3},
    )
    model = models.load("tinyllama-1.1b", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "decode", 1024, 1), argmax=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    adapters, report = (
        check_adapters(tmp_path / "design"),
        json.loads((tmp_path / "design" / "report.json").read_text()),
    )
    manifest = json.loads((tmp_path / "design" / "manifest.json").read_text())
    read = {
        f"m_{buffer['name']}"
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state" and buffer["word_bytes"] == 64
    }
    small = next(
        {name for name, _, _ in ports}
        for ports in adapters.values()
        if "m_words_f32" in {name for name, _, _ in ports}
    )
    assert len(read) >= 8 and read <= small and report["ports"] == 32
    text = next((tmp_path / "design" / "hls").glob("*.cpp")).read_text()
    assert (
        max(
            int(most)
            for most in re.findall(
                r"port=\w+ bundle=m_shared_i64 .*num_read_outstanding=(\d+)", text
            )
        )
        <= 256
    )
    assert not re.search(
        r"bytes on chip k\d+_(p_q|weighted)_partition\d -> ",
        (tmp_path / "design" / "report.txt").read_text(),
    )


def test_keys_that_one_channel_can_bring_leave_the_slices_to_values(
    core_built, tmp_path, monkeypatch
):
    """Keys and values of Qwen2.5-0.5B are too many for the adapter of small operands: keys go
    there, and values come through as many ports as half of the adapters, one on each.
    """
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "qwen2.5-0.5b",
        builtin_models.BUILT_IN["qwen2.5-0.5b"] | {"num_hidden_layers": 3},
    )
    model = models.load("qwen2.5-0.5b", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "decode", 1024, 1), argmax=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    adapters, manifest = (
        check_adapters(tmp_path / "design"),
        json.loads((tmp_path / "design" / "manifest.json").read_text()),
    )
    states = [
        buffer
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state" and buffer["word_bytes"] == 64
    ]
    read = [
        {name for name, _, _ in ports} & {f"m_{buffer['name']}" for buffer in states}
        for ports in adapters.values()
    ]
    small = next(
        i
        for i, ports in enumerate(adapters.values())
        if "m_words_f32" in {name for name, _, _ in ports}
    )
    beside = [names for i, names in enumerate(read) if names and i != small]
    # of keys and of values, a port for the scales
    assert len(read[small]) == 5 and len(beside) == 17 and all(len(names) == 1 for names in beside)


def test_keys_and_values_of_one_token_alone_hold_up_no_slice(core_built, tmp_path, monkeypatch):
    """Of up to 32 tokens, counted, keys of GPT-2 medium come through four ports side by side, and
    those of every second head through four others, and so do values: each four ride with a loader
    of four PEs, and the other fourteen, which have the rows that not all PEs have, with none.
    Tiles are small, and sixteen results come at once. There are 30 PEs, which read next to
    nothing but their rows, and of one token with little between the phases of a layer; each chain
    of them has its own scales.
    """
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "gpt2-medium",
        builtin_models.BUILT_IN["gpt2-medium"] | {"n_layer": 2},
    )
    compile_with(monkeypatch, tmp_path / "stc", "--kv-loaders 2")
    model = models.load("gpt2-medium", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    manifest = json.loads((tmp_path / "design" / "manifest.json").read_text())
    states = {
        buffer["name"]
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state"
        and buffer["word_bytes"] == 64
        and not buffer["segments"][0]["name"].endswith("scale")
    }
    adapters = [
        {name for name, _, _ in ports} for ports in check_adapters(tmp_path / "design").values()
    ]
    beside = [
        int(re.fullmatch(r"m_engine(\d+)", name)[1])
        for names in adapters
        if names & {f"m_{name}" for name in states}
        for name in names
        if re.fullmatch(r"m_engine\d+", name)
    ]
    assert len(states) == 16 and sorted(beside) == list(range(14, 30))
    design = (tmp_path / "design" / "design.mlir").read_text()
    assert (
        'symbol = "tokens", tile = 8 ' in design
        and "fifo<vector<16xf32>" in re.search(r"callee = @p\d+_collect} : (.*)", design)[1]
    )
    words = {
        int(buffer["name"][6:]): buffer["bytes"] // 64
        for buffer in manifest["buffers"]
        if re.fullmatch(r"engine\d+", buffer["name"])
    }
    # those that come in step: as many as the first of them has
    first = {number: 0 if number < 14 else number - (number - 14) % 4 for number in words}
    assert (
        all(words[number] == words[first[number]] for number in words)
        and words[0] > words[14] > words[18] == words[22] == words[26]
    )
    assert (
        sum(
            "m_engine" in name and name != "m_engine_scales" for names in adapters for name in names
        )
        == 30
    )
    assert words[0] < 1.007 * (2 * 12 * 1024**2 + 50257 * 1024) / 128 / 30
    loader = next(
        text
        for text in design.split('"func.func"')
        if re.search(r'sym_name = "p\d+_load_engine0"', text)
    )
    # of a launch of one tile, all in one nest, and of more
    assert (
        loader.count("{stream.layer}") == loader.count("{stream.layer, stream.layer_overlap}") == 1
    )
    done = stc(
        "simulate", tmp_path / "design", "--json", "--extent", "positions=0", "--extent", "tokens=1"
    )
    assert json.loads(done.stdout)["cycles"] < words[0] * 64 / (14.375 * 0.92 / 0.3) + 1000
    assert len(re.findall(r"callee = @p\d+_scale}", design)) == 3
    assert json.loads((tmp_path / "design" / "report.json").read_text())["clock_mhz"] == 300
    assert set(re.findall(r'name = "s_tokens_.*!stream.fifo<(i\d+), ', design)) == {"i8"}
    # biases of 3,072 and 4,096 numbers hold up no other operand
    assert re.findall(
        r'name = "s_words_\d+", stream.full_depth.*!stream.fifo<(.*), (\d+)>', design
    ) == [("vector<16xf32>", "192"), ("vector<16xf32>", "256")]


def test_keys_of_one_head_leave_the_slices_their_adapters(core_built, tmp_path, monkeypatch):
    """Gemma's one head of keys has more words than a PE has of weights: they are dealt out to
    four loaders of two ports, all of which ride with one loader of eight PEs, and so are values.
    There are 30 PEs, and products of attention share multipliers in pairs.
    """
    compile_with(monkeypatch, tmp_path / "stc", "--pes-per-port 1")
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "gemma-3-1b",
        builtin_models.BUILT_IN["gemma-3-1b"]
        | {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    )
    model = models.load("gemma-3-1b", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True),
        roomier_card(tmp_path),
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    manifest = json.loads((tmp_path / "design" / "manifest.json").read_text())
    states = {
        f"m_{buffer['name']}"
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state"
        and not buffer["segments"][0]["name"].endswith("scale")
    }
    beside = sorted(
        int(re.fullmatch(r"m_engine(\d+)", name)[1])
        for ports in check_adapters(tmp_path / "design").values()
        for name in {name for name, _, _ in ports}
        if {name for name, _, _ in ports} & states and re.fullmatch(r"m_engine\d+", name)
    )
    assert len(states) == 16 and beside == list(range(14, 30))
    assert re.findall(
        r"callee = @p\d+_load_engine(\d+)}", (tmp_path / "design" / "design.mlir").read_text()
    ) == ["0", "14", "22"]
    report = json.loads((tmp_path / "design" / "report.json").read_text())
    kernels, launches = (
        report["kernels"],
        {
            (launch["tokens"], launch["past_tokens"]): launch["model"]
            for launch in report["launches"]
        },
    )
    # one layer sees all rows then, the other half of them
    found = core.simulate(tmp_path / "design", None, {"positions": 1023, "tokens": 1})["cycles"]
    assert abs(launches[1, 1023] - found) < 0.02 * found
    # two keys of 256 numbers a cycle, which share multipliers, and two halves of values
    assert {
        (kernel["unroll"], kernel["dsp"]) for kernel in kernels if kernel["name"].endswith("_sums")
    } == {(512, 256), (256, 128)}


def test_words_that_are_dealt_out_wait_where_dies_have_room(core_built, tmp_path, monkeypatch):
    """Two PEs of each port of Gemma's unit take turns: what was brought ahead stands in as many
    words as every die has memory for, of URAMs and block RAMs.
    """
    compile_with(monkeypatch, tmp_path / "stc", "--pes-per-port 2 --clock 250")
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "gemma-3-1b",
        builtin_models.BUILT_IN["gemma-3-1b"]
        | {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    )
    model = models.load("gemma-3-1b", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    fifos = re.findall(
        r'name = "engine(?:_scales|\d+)_\d+", (?:stream.crossings = \d : i64, )?'
        r"stream.fixed_depth, (?:stream.in_layer, )?"
        r'(stream.interleaved_depth = 1024 : i64, )?.*?stream.storage = "(\w+)"} '
        r".*!stream.fifo<vector<\d+x\w+>, (\d+)>",
        (tmp_path / "design" / "design.mlir").read_text(),
    )
    assert {depth for dealt, _, depth in fifos if not dealt} == {"16"}
    depths = [int(depth) for dealt, _, depth in fifos if dealt]
    # converters for its few layers are deep too
    assert len(depths) == 66 and len(set(depths)) == 1 and depths[0] >= 2048
    dies = json.loads((tmp_path / "design" / "report.json").read_text())["dies"]
    assert all(
        die["uram"] <= 0.85 * die["available"]["uram"]
        and die["bram18"] <= 0.85 * die["available"]["bram18"]
        for die in dies
    )


def test_no_loader_has_the_last_rows_of_all_products(core_built, tmp_path, monkeypatch):
    """Rows of GPT-2 medium's products are no whole number for 60 PEs: products begin with
    different ones, so that their last rows come through different loaders. The adapter of scales,
    which are whole rows, brings no rows of states.
    """
    compile_with(monkeypatch, tmp_path / "stc", "--pes-per-port 2 --clock 250")
    model = models.load("gpt2-medium", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    manifest = json.loads((tmp_path / "design" / "manifest.json").read_text())
    words = {
        buffer["name"]: buffer["bytes"] // 64
        for buffer in manifest["buffers"]
        if re.fullmatch(r"engine(\d+|_scales)", buffer["name"])
    }
    scales, rows = words.pop("engine_scales"), sorted(set(words.values()))
    # two words of each group of a last row: of 32 groups in one product of a layer, and of eight in
    # three others
    assert rows[-1] - rows[0] <= 24 * 2 * 32 < scales - rows[0]
    states = {
        f"m_{buffer['name']}"
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state" and buffer["word_bytes"] == 64
    }
    adapters = [
        {name for name, _, _ in ports} for ports in check_adapters(tmp_path / "design").values()
    ]
    assert all(bool(names & states) != ("m_engine_scales" in names) for names in adapters)
    depth = re.findall(
        r"stream.interleaved_depth = 1024 : i64.*!stream.fifo<vector<\d+x\w+>, (\d+)>",
        (tmp_path / "design" / "design.mlir").read_text(),
    )
    # dies hold that many, if processes stand where they can
    assert len(set(depth)) == 1 and int(depth[0]) >= 2048


def test_what_has_no_adapter_of_its_own_travels_word_by_word(core_built, tmp_path, monkeypatch):
    """Keys and values of GPT-2 medium come through 32 ports: one for each PE and the scales,
    what is left on the adapter of small operands, so that no channel has two of them to bring.
    """
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "gpt2-medium",
        builtin_models.BUILT_IN["gpt2-medium"] | {"n_layer": 6},
    )
    model = models.load("gpt2-medium", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "decode", 1024, 1), argmax=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    adapters, report = (
        check_adapters(tmp_path / "design"),
        json.loads((tmp_path / "design" / "report.json").read_text()),
    )
    slices = [
        kernel
        for kernel in report["kernels"]
        if re.fullmatch(r"p\d+_load_engine\d+", kernel["name"])
    ]
    assert len(slices) == 30 and report["ports"] == 32 and report["clock_mhz"] == 300
    manifest = json.loads((tmp_path / "design" / "manifest.json").read_text())
    states = {
        buffer["name"]
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state" and buffer["word_bytes"] == 64
    }
    read = {f"m_{name}" for name in states}
    riders = [read & {name for name, _, _ in ports} for ports in adapters.values()]
    small = next(
        i
        for i, ports in enumerate(adapters.values())
        if "m_words_f32" in {name for name, _, _ in ports}
    )
    assert (
        all(len(names) <= 1 for i, names in enumerate(riders) if i != small)
        and 1 <= len(riders[small]) <= 4
        and sum(map(len, riders)) == len(read) > 32
    )
    text, design = (
        next((tmp_path / "design" / "hls").glob("*.cpp")).read_text(),
        (tmp_path / "design" / "design.mlir").read_text(),
    )
    under_way = {
        port: int(most)
        for port, most in re.findall(
            r"port=(\w+) bundle=m_shared_i64 .*num_read_outstanding=(\d+)", text
        )
    }
    assert max(under_way.values()) >= 64  # each port of many words has 32
    calls = [
        (set(operands.split(", ")), name)
        for operands, name in re.findall(r'"func.call"\(([^)]*)\) {callee = @p\d+_(\w+)}', design)
    ]
    words = next(operands for operands, name in calls if name == "load_words_f32")
    # no word as wide as the port's leaves the die
    assert {name for operands, name in calls if operands & words} == {"load_words_f32", "cast"}


def test_a_port_that_travels_word_by_word_keeps_step_with_its_loaders_others(
    core_built, tmp_path, monkeypatch
):
    """At 16,384 tokens one of 32 ports of Llama's keys and values finds no adapter of its own. It
    asks for as many words ahead as it needs: what a full cache adds is near what memory takes.
    """
    monkeypatch.setitem(
        builtin_models.BUILT_IN,
        "llama-3.2-1b",
        builtin_models.BUILT_IN["llama-3.2-1b"] | {"num_hidden_layers": 3},
    )
    model = models.load("llama-3.2-1b", search=False)
    source, design = tmp_path / "step.mlir", tmp_path / "design"
    shape = replace(StepShape.of(model.config, "decode", 16384, 1), argmax=True)
    source.write_text(model.lower(shape).text)
    stc("compile", source, "--quant", "w4a8", "-o", design)
    cycles = {
        position: json.loads(
            stc("simulate", design, "--json", f"--extent=positions={position}").stdout
        )["cycles"]
        for position in (127, 16383)
    }
    manifest = json.loads((design / "manifest.json").read_text())
    state_bytes = sum(
        buffer["bytes"]
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state"
    )
    # each of 32 channels brings 48 bytes a cycle
    assert cycles[16383] - cycles[127] < 1.6 * state_bytes / (32 * 48)


def test_keys_and_values_come_through_as_many_ports_as_there_are_adapters(core_built, tmp_path):
    """Keys and values of GPT-2 medium have a port beside each PE's weights and the scales; no
    adapter is alone, so three bring two. The first two PEs, which have the rows that not all have,
    have loaders of their own. Keys of a head are a run that waits for memory once; word by word,
    they take longer than that. No die is crowded at the clock of the platform.
    """
    model = models.load("gpt2-medium", search=False)
    workflow.compile_files(
        model,
        replace(StepShape.of(model.config, "prefill", 1024, 32), argmax=True, dynamic_tokens=True),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    manifest, report = (
        json.loads((tmp_path / "design" / name).read_text())
        for name in ("manifest.json", "report.json")
    )
    states = {
        f"m_{buffer['name']}": buffer["segments"][0]["name"]
        for buffer in manifest["buffers"]
        if buffer["segments"][0]["role"] == "state"
    }
    riders = {
        adapter: [states[name] for name, _, _ in ports if name in states]
        for adapter, ports in check_adapters(tmp_path / "design").items()
    }
    assert riders.pop("m_shared_i64") == []
    assert sorted(map(len, riders.values())) == 28 * [1] + 3 * [2]
    assert re.findall(
        r"callee = @p\d+_load_engine(\d+)}", (tmp_path / "design" / "design.mlir").read_text()
    ) == ["0", "2", "10", "18"]
    assert report["clock_mhz"] == 300 and all(
        die["bram18"] <= 0.8 * die["available"]["bram18"] for die in report["dies"]
    )
    # loaders whose loops are one datapath have bursts
    assert report["cycles"]["simulated"] < 1.05 * report["cycles"]["model"]
    done = stc(
        "simulate",
        tmp_path / "design",
        "--json",
        "--extent",
        "positions=511",
        "--extent",
        "tokens=1",
    )
    assert json.loads(done.stdout)["cycles"] < 178000, done.stderr


@pytest.mark.parametrize("name", ["qwen2.5-0.5b", "llama-3.2-1b"])
def test_a_prompt_alone_keeps_the_clock(core_built, name, tmp_path):
    """Slices that take eight tokens at a time need most DSP slices: what is beside them is
    narrower, not slower.
    """
    model = models.load(name, search=False)
    workflow.compile_files(
        model,
        StepShape.of(model.config, "prefill", 1024, 32),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    report = json.loads((tmp_path / "design" / "report.json").read_text())
    assert report["clock_mhz"] == 300 and sum(die["dsp"] for die in report["dies"]) < 0.8 * sum(
        die["available"]["dsp"] for die in report["dies"]
    )
