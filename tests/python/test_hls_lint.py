"""The lint over emitted text: a good design passes, and breaking one rule in it is found as that
rule.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from streamtensor import cli, workflow
from streamtensor.language import models
from streamtensor.language.decoder_step import StepShape
from streamtensor.progress import Progress

ROOT = Path(__file__).resolve().parents[2]

GOOD = """\
#include "hls_stream.h"
#include "hls_vector.h"
#ifndef ST_PROCESS
#define ST_PROCESS(f, ...) f(__VA_ARGS__)
#define ST_REGION_END()
#endif

typedef hls::vector<float, 16> f32x16;
enum { words = 8, layers = 4 };
static const int width = words * 16;

static float st_twice(float x)
{
#pragma HLS inline
    return x + x;
}

static void p_load(const f32x16 *m_w, hls::stream<f32x16> &out)
{
#pragma HLS inline off
    for (int i = 0; i < words; ++i) {
#pragma HLS pipeline II=1
        out.write(m_w[i]);
    }
}

static void p_split(hls::stream<f32x16> &in, hls::stream<float> &first, hls::stream<float> &side)
{
#pragma HLS inline off
    for (int i = 0; i < words; ++i) {
        f32x16 v = in.read();
        for (int l = 0; l < 16; ++l) {
#pragma HLS pipeline II=1
            first.write(v[l]);
            side.write(v[l]);
        }
    }
}

static void p_enter(hls::stream<float> &first, hls::stream<float> &again, hls::stream<float> &out)
{
#pragma HLS inline off
    for (int layer = 0; layer < layers; ++layer) {
        for (int i = 0; i < width; ++i) {
#pragma HLS pipeline II=1
            float v = 0.0f;
            if (layer == 0)
                v = first.read();
            else
                v = again.read();
            out.write(v);
        }
    }
}

static void p_layer(hls::stream<float> &in, hls::stream<float> &out)
{
#pragma HLS inline off
    float lane[16];
#pragma HLS array_partition variable=lane type=complete
    for (int layer = 0; layer < layers; ++layer) {
        for (int i = 0; i < width; ++i) {
#pragma HLS pipeline II=1 style=flp
            float v = in.read();
            for (int l = 0; l < 16; ++l) {
#pragma HLS unroll
                lane[l] = v;
            }
            out.write(st_twice(lane[3]));
        }
    }
}

static void p_leave(hls::stream<float> &in, hls::stream<float> &again, hls::stream<float> &out)
{
#pragma HLS inline off
    for (int layer = 0; layer < layers; ++layer) {
        for (int i = 0; i < width; ++i) {
#pragma HLS pipeline II=1 style=flp
            float v = in.read();
            if (layer == layers - 1)
                out.write(v);
            else
                again.write(v);
        }
    }
}

static void p_join(hls::stream<float> &side, hls::stream<float> &in, hls::stream<float, 2> \
(&out)[2])
{
#pragma HLS inline off
    for (int i = 0; i < width; ++i) {
#pragma HLS pipeline II=1
        float a = in.read();
        a += side.read();
        out[0].write(a);
        out[1].write(a);
    }
}

static void p_store(hls::stream<float> &in, float *m_y, int pos)
{
#pragma HLS inline off
    for (int i = 0; i < width; ++i) {
#pragma HLS pipeline II=1
        m_y[pos + i] = in.read();
    }
}

extern "C" void top(const f32x16 *m_w, float *m_y, float *m_z, int pos)
{
#pragma HLS interface m_axi port=m_w bundle=m_w offset=slave
#pragma HLS interface m_axi port=m_y bundle=m_y offset=slave
#pragma HLS interface m_axi port=m_z bundle=m_z offset=slave
#pragma HLS interface s_axilite port=pos
#pragma HLS interface s_axilite port=return
#pragma HLS dataflow
    hls::stream<f32x16, 16> s_w("s_w");
    hls::stream<float, 2> s_first("s_first");
    hls::stream<float, 600> s_side("s_side");
    hls::stream<float, 2> s_in("s_in");
    hls::stream<float, 2> s_out("s_out");
    hls::stream<float, width> s_again("s_again");
    hls::stream<float, 2> s_last("s_last");
    hls::stream<float, 2> s_y[2];
    ST_PROCESS(p_load, m_w, s_w);
    ST_PROCESS(p_split, s_w, s_first, s_side);
    ST_PROCESS(p_enter, s_first, s_again, s_in);
    ST_PROCESS(p_layer, s_in, s_out);
    ST_PROCESS(p_leave, s_out, s_again, s_last);
    ST_PROCESS(p_join, s_side, s_last, s_y);
    ST_PROCESS(p_store, s_y[0], m_y, pos);
    ST_PROCESS(p_store, s_y[1], m_z, pos);
    ST_REGION_END();
}
"""

LINK = """\
[connectivity]
nk=top:1:top_1
sp=top_1.m_w:HBM[0]
sp=top_1.m_y:HBM[1]
sp=top_1.m_z:HBM[2:3]
slr=top_1:SLR0
"""

EXTRA_PORTS = "".join(f", float *m_x{i}" for i in range(30))
PASS_THROUGH = "        out.write(m_w[i]);\n"

MUTATIONS = [
    ("A1", "    ST_REGION_END();", "    pos = pos + 1;\n    ST_REGION_END();"),
    (
        "A1",
        "    ST_PROCESS(p_load, m_w, s_w);",
        "    if (pos > 0)\n        ST_PROCESS(p_load, m_w, s_w);",
    ),
    ("A1", "    ST_REGION_END();", "    int n;\n    ST_REGION_END();"),
    ("A1", "    ST_REGION_END();", "    ST_PROCESS(p_nothing, pos);\n    ST_REGION_END();"),
    ("A2", "p_store, s_y[0], m_y, pos", "p_store, s_y[0], m_y, pos + 1"),
    ("A2", "p_store, s_y[0], m_y, pos", "p_store, s_y[0], m_y, 7"),
    (
        "A2",
        "float *m_y, int pos)\n{\n#pragma HLS inline",
        "float *m_y, unsigned pos)\n{\n#pragma HLS inline",
    ),
    ("A2", "hls::stream<float, 2> s_in(", "hls::stream<int, 2> s_in("),
    ("A2", "hls::stream<float, 2> s_y[2];", "hls::stream<float, 4> s_y[2];"),
    (
        "A3",
        "ST_PROCESS(p_layer, s_in, s_out);",
        "ST_PROCESS(p_layer, s_in, s_out);\n    ST_PROCESS(p_layer, s_in, s_last);",
    ),
    ("A3", "ST_PROCESS(p_layer, s_in, s_out);", "ST_PROCESS(p_layer, s_in, s_in);"),
    (
        "A4",
        "    ST_REGION_END();",
        '    hls::stream<float, 2> s_idle("s_idle");\n    ST_REGION_END();',
    ),
    ("A4", "    ST_PROCESS(p_store, s_y[1], m_z, pos);\n", ""),
    ("A6", "    ST_REGION_END();", "    float row[64];\n    ST_REGION_END();"),
    (
        "A8",
        "#pragma HLS inline off\n    for (int i = 0; i < words; ++i) {\n#pragma HLS pipeline",
        "#pragma HLS inline off\n    for (int i = 0; i < words; ++i) {\n#pragma HLS dataflow",
    ),
    (
        "A10",
        "        m_y[pos + i] = in.read();",
        "        m_y[pos + i] = in.read();\n        if (m_y[0] > 1.0f)\n            break;",
    ),
    (
        "A10",
        "    for (int i = 0; i < words; ++i) {\n#pragma",
        "    int i = 0;\n    while (i < words) {\n#pragma",
    ),
    (
        "A10",
        "for (int i = 0; i < words; ++i) {\n#pragma",
        "for (int i = 0; i < words && m_w; ++i) {\n#pragma",
    ),
    ("A10", PASS_THROUGH, PASS_THROUGH + "        i += 1;\n"),
    (
        "A10",
        "for (int l = 0; l < 16; ++l) {\n#pragma HLS unroll",
        "for (int l = 0; l < layer; ++l) {\n#pragma HLS unroll",
    ),
    ("A11", "hls::stream<float> &side)\n{\n#pragma HLS inline off", "hls::stream<float> &side)\n{"),
    ("A12", "p_layer(hls::stream<float> &in,", "p_layer(hls::stream<float> in,"),
    ("A12", "    hls::stream<float, 2> s_in(", "    static hls::stream<float, 2> s_in("),
    ("A12", 's_in("s_in")', "s_in"),
    (
        "A12",
        "static float st_twice",
        "struct bad { hls::stream<float> s; };\nstatic float st_twice",
    ),
    (
        "A16",
        "            float v = in.read();\n            for (int l",
        "            out.write(lane[3]);\n            float v = in.read();\n            for (int l",
    ),
    (
        "A17",
        "#pragma HLS pipeline II=1\n            float v = 0.0f;\n            if (layer == "
        "0)\n                v = first.read();",
        "#pragma HLS pipeline II=1\n            float v = 0.0f;\n            if (layer == "
        "0)\n                v = first.read() + 1.0f;",
    ),
    (
        "A17",
        "#pragma HLS pipeline II=1\n        out.write(m_w[i])",
        "#pragma HLS pipeline II=1 style=frp\n        out.write(m_w[i])",
    ),
    ("A22", "    float lane[16];", "    float lane[2048];"),
    ("A22", "variable=lane type=complete", "variable=lame type=complete"),
    ("A24", "    return x + x;", "    float *y = new float(x);\n    return *y;"),
    ("A24", "    return x + x;", "    return x > 1.0f ? st_twice(x - 1.0f) : x;"),
    ("A24", "    return x + x;", "    return std::exp(x);"),
    ("A24", "static float st_twice(float x)", "static float st_twice(float (*x)(float))"),
    ("B1", "hls::stream<float, 2> s_in(", "hls::stream<float> s_in("),
    ("B1", "hls::stream<float, 2> s_in(", "hls::stream<float, 1> s_in("),
    (
        "B1",
        "    ST_REGION_END();",
        "#pragma HLS stream variable=s_in depth=4\n    ST_REGION_END();",
    ),
    (
        "B3",
        "layer < layers; ++layer) {\n        for (int i = 0; i < width; ++i) {\n#pragma HLS "
        "pipeline II=1 style=flp\n            float v = in.read();\n            if",
        "layer < layers; ++layer) {\n        for (int i = 0; i < width - 1; ++i) {\n#pragma "
        "HLS pipeline II=1 style=flp\n            float v = in.read();\n            if",
    ),
    ("B3", "if (layer == layers - 1)", "if (layer == layers)"),
    ("B4", "typedef hls::vector<float, 16> f32x16;", "typedef hls::vector<float, 256> f32x16;"),
    (
        "B9",
        "            float v = in.read();\n            if",
        "            float v = in.empty() ? 0.0f : in.read();\n            if",
    ),
    ("B10", "out[1].write(a);", "out[i & 1].write(a);"),
    ("B10", "ST_PROCESS(p_store, s_y[1], m_z, pos);", "ST_PROCESS(p_store, s_y[pos], m_z, pos);"),
    ("C1", "#pragma HLS interface s_axilite port=return\n", ""),
    ("C1", "port=m_w bundle=m_w offset=slave", "port=m_w bundle=m_w"),
    ("C1", "#pragma HLS interface m_axi port=m_w bundle=m_w offset=slave\n", ""),
    ("C2", "bundle=m_z", "bundle=m_y"),
    ("C2", "bundle=m_z", "bundle=m_y channel=1"),
    (
        "C2",
        "bundle=m_y offset=slave\n#pragma HLS interface m_axi port=m_z bundle=m_z",
        "bundle=m_y channel=1 offset=slave\n#pragma HLS interface m_axi port=m_z bundle=m_y "
        "channel=1",
    ),
    ("C2", "p_store, s_y[1], m_z, pos", "p_store, s_y[1], m_y, pos"),
    ("C3", "typedef hls::vector<float, 16> f32x16;", "typedef hls::vector<float, 32> f32x16;"),
    ("C7", "float *m_z, int pos)", "float *m_z" + EXTRA_PORTS + ", int pos)"),
    ("C9", "m_z", "buffer"),
    ("C9", "m_z", "M_Y"),
    ("C9", "p_layer", "p_" + "x" * 200),
    ("C9", "s_last", "signal"),
    ("F5", "float *m_z, int pos)", "float *m_z, int pos, float scale)"),
]

LINK_MUTATIONS = [
    ("E4", "sp=top_1.m_w:HBM[0]\n", ""),
    ("E4", "sp=top_1.m_w:HBM[0]", "sp=top_1.m_v:HBM[0]"),
    ("E4", "sp=top_1.m_w:HBM[0]", "sp=top.m_w:HBM[0]"),
    ("E4", "HBM[0]", "HBM[32]"),
    ("E4", "HBM[2:3]", "HBM[3:2]"),
    ("E4", "nk=top:1:top_1", "nk=top:2:top_1"),
    ("E4", "nk=top:1:top_1", "nk=tap:1:top_1"),
    ("E4", "sp=top_1.m_y:HBM[1]", "sp=top_1.m_y:HBM[1]\nsp=top_1.m_y:HBM[4]"),
    ("E4", "slr=top_1:SLR0", "slr=top_1:SLR7"),
]


# A loop as long as a flag says, of words that are structs.
FLAGGED = """struct p_load_entry {
    int8_t more;
    int16_t place;
};

static void p_load_entries(hls::stream<p_load_entry> &entries)
{
#pragma HLS inline off
    for (int i = 0; i < words; ++i) {
#pragma HLS pipeline II=1
        entries.write(p_load_entry{(int8_t)(i + 1 < words), (int16_t)i});
    }
}

static void p_load(const f32x16 *m_w, hls::stream<f32x16> &out, hls::stream<p_load_entry> &entries)
{
#pragma HLS inline off
    bool more = true;
    while (more) {
#pragma HLS pipeline II=1
        p_load_entry entry = entries.read();
        out.write(m_w[entry.place]);
        more = entry.more > 0;
    }
}
"""


# Ports that ask for bursts, two of them in one bundle, and a memory of running sums.
OPTIONS = " depth=512 max_write_burst_length=16"
MEMORY = (
    GOOD.replace("bundle=m_w offset=slave", "bundle=m_w offset=slave max_read_burst_length=16")
    .replace("m_y bundle=m_y offset=slave", "m_y bundle=m_y channel=0 offset=slave" + OPTIONS)
    .replace("m_z bundle=m_z offset=slave", "m_z bundle=m_y channel=1 offset=slave" + OPTIONS)
    .replace(
        """    float lane[16];
#pragma HLS array_partition variable=lane type=complete
""",
        """    float lane[16];
#pragma HLS array_partition variable=lane type=complete
    float sums[16];
#pragma HLS dependence variable=sums type=inter direction=RAW distance=16 true
#pragma HLS bind_storage variable=sums type=ram_s2p impl=lutram
""",
    )
    .replace(
        "            out.write(st_twice(lane[3]));",
        """            const float sum = sums[i & 15] + v;
            sums[i & 15] = sum;
            out.write(st_twice(lane[3] + sum));""",
    )
)
IN_REGISTERS = (
    "bind_storage variable=sums type=ram_s2p impl=lutram",
    "array_partition variable=sums type=complete dim=0",
)
BY_HAND = """    int at = 0;
    for (int i = 0; i < words; ++i) {
#pragma HLS pipeline II=1
        out.write(m_w[at]);
        if (++at == words)
            at = 0;
"""
MEMORY_MUTATIONS = [
    ("C5", "out.write(m_w[i]);", "out.write(m_w[2 * i]);"),
    ("C5", "out.write(m_w[i]);", "out.write(m_w[words - i]);"),
    (
        "C5",
        "    for (int i = 0; i < words; ++i) {\n#pragma HLS pipeline II=1\n        "
        "out.write(m_w[i]);\n",
        BY_HAND,
    ),
    ("C5", "out.write(m_w[i]);", "out.write(i & 1 ? m_w[0] : m_w[i]);"),
    ("C5", "m_y[pos + i] = in.read();", "if (i > 0)\n            m_y[pos + i] = in.read();"),
    ("C6", "channel=1 offset=slave depth=512", "channel=1 offset=slave depth=256"),
    ("C6", "channel=1 offset=slave" + OPTIONS, "channel=1 offset=slave depth=512"),
    (
        "C6",
        "float *m_z, int pos)\n{\n#pragma HLS interface",
        "f32x16 *m_z, int pos)\n{\n#pragma HLS interface",
    ),
    ("D11", *IN_REGISTERS),
]


def flagged():
    start = GOOD.index("static void p_load(")
    code = GOOD[:start] + FLAGGED + GOOD[GOOD.index("\nstatic void p_split(") :]
    code = code.replace(
        "    ST_PROCESS(p_load, m_w, s_w);",
        "    ST_PROCESS(p_load_entries, s_entries);\n    ST_PROCESS(p_load, m_w, s_w, s_entries);",
    )
    return code.replace(
        '    hls::stream<float, 2> s_in("s_in");',
        '    hls::stream<float, 2> s_in("s_in");\n    hls::stream<p_load_entry, 4> '
        's_entries("s_entries");',
    )


def lint(folder, code, link):
    (folder / "hls").mkdir(exist_ok=True)
    (folder / "hls" / "top.cpp").write_text(code)
    if link is not None:
        (folder / "link.cfg").write_text(link)
    command = [sys.executable, ROOT / "tools" / "hls_lint.py", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def rules(result):
    assert result.stderr == ""
    return {line.split(": ")[1] for line in result.stdout.splitlines()}


def test_good_design_passes(tmp_path):
    result = lint(tmp_path, GOOD, LINK)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_good_design_compiles(tmp_path):
    (tmp_path / "top.cpp").write_text(GOOD)
    flags = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unknown-pragmas",
        f"-I{ROOT}/runtime/include",
    ]
    subprocess.run(["g++", *flags, "-fsyntax-only", tmp_path / "top.cpp"], check=True)


@pytest.mark.parametrize("branch, found", [("else {", set()), ("if (i) {", {"A16"})])
def test_a_read_in_the_other_branch_does_not_hold_a_write(tmp_path, branch, found):
    """One iteration writes or reads, where the branches exclude each other."""
    old = "            float v = in.read();\n"
    new = f"""            float v = 0.0f;
            if (i & 1) {{
                out.write(lane[3]);
            }} {branch}
                v = in.read();
            }}
"""
    assert old in GOOD
    result = lint(tmp_path, GOOD.replace(old, new), LINK)
    assert rules(result) & {"A16"} == found, result.stdout


def test_a_loop_may_be_as_long_as_a_flag_says(tmp_path):
    result = lint(tmp_path, flagged(), LINK)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "rule, old, new",
    [
        ("A10", "    bool more = true;", "    int more = 1;"),
        ("A10", "while (more) {", "while (more && m_w) {"),
        ("B4", "int16_t place;", "word512 place;"),
        ("B4", "int16_t place;", "hls::vector<float, 256> place;"),
    ],
    ids=["no flag", "two conditions", "unknown", "wide"],
)
def test_what_is_no_flag_or_no_word_is_found(tmp_path, rule, old, new):
    result = lint(tmp_path, flagged().replace(old, new), LINK)
    assert rule in rules(result), result.stdout


@pytest.mark.parametrize(
    "rule, old, new", MUTATIONS, ids=[f"{r}-{i}" for i, (r, _, _) in enumerate(MUTATIONS)]
)
def test_broken_rule_is_found(tmp_path, rule, old, new):
    assert old in GOOD
    result = lint(tmp_path, GOOD.replace(old, new), LINK)
    assert result.returncode == 1
    assert rule in rules(result), result.stdout


@pytest.mark.parametrize("rule, old, new", [("", "", ""), *MEMORY_MUTATIONS])
def test_broken_memory_is_found(tmp_path, rule, old, new):
    assert old in MEMORY
    link = LINK.replace("HBM[2:3]", "HBM[1]")
    result = lint(tmp_path, MEMORY.replace(old, new) if old else MEMORY, link)
    assert rules(result) - {"A2"} == ({rule} if rule else set()), result.stdout


def test_one_register_is_no_file_of_registers(tmp_path):
    code = MEMORY.replace(*IN_REGISTERS).replace("sums[16]", "sums[1]")
    assert "D11" not in lint(tmp_path, code, LINK).stdout


def test_shift_registers_are_no_memories(tmp_path):
    """A rotation by constant indices waits for no selection; registers passed on by name do."""
    code = MEMORY.replace(*IN_REGISTERS)
    shifts = code.replace("sums[i & 15] + v", "sums[15] + v").replace(
        "            sums[i & 15] = sum;\n",
        "            for (int w = 15; w > 0; --w) {\n#pragma HLS unroll\n"
        "                sums[w] = sums[w - 1];\n            }\n            sums[0] = sum;\n",
    )
    assert lint(tmp_path, shifts, LINK.replace("HBM[2:3]", "HBM[1]")).stdout == ""


@pytest.mark.parametrize(
    "place, found",
    [
        ("i", set()),
        ("(i + (words - 5) / 3) + 1", set()),
        ("2 * i", {"C5"}),
        ("(i + 5) / 3", {"C5"}),
        ("words - (i + 1)", {"C5"}),
    ],
)
@pytest.mark.parametrize("called", [False, True])
def test_runs_are_found_in_branches_and_functions(tmp_path, called, place, found):
    """Only a condition inside the loop breaks a run."""
    start = MEMORY.index("static void p_load(")
    body = MEMORY.index("    for (int i = 0; i < words", start)
    end = MEMORY.index("\n}\n", body)
    loop = "    if (words > 0) {\n" + MEMORY[body:end] + "\n    }"
    head = MEMORY[start:body]
    code = MEMORY[:body] + loop + MEMORY[end:]
    if called:
        code = MEMORY[:start] + head.replace("p_load", "p_load_words") + loop + "\n}\n\n"
        code += head + "    p_load_words(m_w, out);" + MEMORY[end:]
    result = lint(tmp_path, code.replace("m_w[i]", f"m_w[{place}]"), LINK.replace("[2:3]", "[1]"))
    assert rules(result) == found, result.stdout


def test_words_that_travel_one_by_one_need_no_runs(tmp_path):
    """design.mlir says which ports the report does not call bursting."""
    port = 'stream.bundle = "y", stream.burst = 1 : i64, stream.port = "w"'
    (tmp_path / "design.mlir").write_text("{" + port + "}")
    code = MEMORY.replace("out.write(m_w[i]);", "out.write(m_w[2 * i]);")
    assert lint(tmp_path, code, LINK.replace("HBM[2:3]", "HBM[1]")).stdout == ""


@pytest.mark.parametrize(
    "declared, body, found",
    [
        ("[16]", "sums[i & 15] = v;", False),
        ("[16]", "sums[i & 15] = v; sums[(i + 1) & 15] = v;", True),
        ("[16]", "if (i > 0) sums[i & 15] = v; else sums[(i + 1) & 15] = v;", False),
        ("[16]", "sums[i & 15] = sums[(i + 1) & 15];", False),
        ("[16]", "sums[0] = sums[i & 15] + sums[(i + 1) & 15];", True),
        ("[2][16]", "sums[0][i & 15] = v; sums[1][i & 15] = v;", False),
        ("[2][16]", "sums[0][i & 15] = v; sums[i & 1][3] = v;", True),
        ("[2][2][16]", "sums[0][i & 1][3] = v; sums[1][i & 1][3] = v;", False),
        ("[2][2][16]", "sums[0][i & 1][3] = v; sums[i & 1][1][3] = v;", True),
        ("[16] cyclic", "sums[2 * i] = v; sums[2 * i + 1] = v;", False),
        ("[16] cyclic", "sums[i] = v; sums[i + 1] = v;", True),
        ("[16]", "for (int l = 0; l < 2; ++l) {\n#pragma HLS unroll\nsums[i + l] = v; }", True),
        ("[2][16]", "for (int l = 0; l < 2; ++l) {\n#pragma HLS unroll\nsums[l][i] = v; }", False),
    ],
)
def test_memories_have_one_port_each_way(tmp_path, declared, body, found):
    """Of branches one is taken; words of different banks do not meet."""
    shape, _, kind = declared.partition(" ")
    pragmas = [f"type=complete dim={d + 1}" for d in range(shape.count("[") - 1)]
    pragmas += [f"type={kind} factor=2"] if kind else []
    array = f"    float sums{shape};\n" + "".join(
        f"#pragma HLS array_partition variable=sums {pragma}\n" for pragma in pragmas
    )
    code = GOOD.replace("    float lane[16];", array + "    float lane[16];").replace(
        "            out.write(st_twice(lane[3]));",
        f"            {body}\n            out.write(st_twice(lane[3]));",
    )
    result = lint(tmp_path, code, LINK)
    assert rules(result) == ({"D4"} if found else set()), result.stdout


ONE = "if (++a == 9) { a = 0; b++; }"
CHAIN = "if (++a == n) { a = 0; if (++b == 9) { b = 0; c++; } }"
AHEAD = "if (last) { a = 0; last = n == 1; b++; } else { last = a == n; a++; }"


@pytest.mark.parametrize(
    "kind, body, clock, found",
    [
        ("int", ONE, 300, False),
        ("int", CHAIN, 300, True),
        ("int", CHAIN, 250, False),
        ("ap_uint<8>", CHAIN, 300, False),
        ("ap_uint<8>", CHAIN, 500, True),
        ("int", AHEAD, 300, False),
        ("ap_uint<8>", AHEAD, 500, False),
        ("int", "const int d = a + 1; if (d == n) { b = d + 1; }", 320, True),
        ("int", "if (v > 1.0f) { a++; }", 500, False),
    ],
)
def test_counters_take_a_cycle(tmp_path, kind, body, clock, found):
    """Paths through all counters of a nest are too long, what is known ahead is not; the Makefile
    says the clock.  Of what is no integer nothing is said.
    """
    declared = "".join(f"    {kind} {name} = 0;\n" for name in "abc")
    declared += "    const int n = words;\n    bool last = false;\n"
    code = GOOD.replace("    float lane[16];", declared + "    float lane[16];").replace(
        "            out.write(st_twice(lane[3]));",
        f"            {body}\n            out.write(st_twice(lane[3]));",
    )
    (tmp_path / "hls").mkdir()
    (tmp_path / "hls" / "Makefile").write_text(f"TOP = top\nFREQUENCY ?= {clock}\n")
    result = lint(tmp_path, code, LINK)
    assert rules(result) == ({"D9"} if found else set()), result.stdout


@pytest.mark.parametrize(
    "bits, trips, found",
    [
        (4, "16", False),
        (4, "st_min<int>(n, 16)", False),
        (4, "st_min<int>(n, 17)", True),
        (4, "st_min<int>(st_max<int>((int)word, 0) + 5, 28)", True),
        (5, "st_min<int>(st_max<int>((int)word, 0) + 5, 28)", False),
        (7, "(st_max<int>((int)word, 0))", False),
        (6, "(st_max<int>((int)word, 0))", True),
        (4, "16 - st_min<int>(n, 3)", False),
    ],
)
def test_counters_are_as_wide_as_what_they_count_to(tmp_path, bits, trips, found):
    """The most that a run-time count can be follows from its minima and from the word's type."""
    declared = f"""    const int n = (int)lane[0];
    const int8_t word = (int8_t)lane[1];
    const int trips = {trips};
    ap_uint<{bits}> at = 0;
    bool last = trips == 1;
    ap_uint<{bits}> before = trips - 2;
"""
    code = GOOD.replace("    float lane[16];", "    float lane[16];\n" + declared).replace(
        "            out.write(st_twice(lane[3]));",
        "            if (last) { at = 0; } else { last = at == before; at++; }\n"
        "            out.write(st_twice(lane[3]));",
    )
    result = lint(tmp_path, code, LINK)
    assert rules(result) == ({"D12"} if found else set()), result.stdout


@pytest.mark.parametrize("rule, old, new", LINK_MUTATIONS)
def test_broken_link_is_found(tmp_path, rule, old, new):
    assert old in LINK
    result = lint(tmp_path, GOOD, LINK.replace(old, new))
    assert (result.returncode, rules(result)) == (1, {rule})


def test_missing_link_is_found(tmp_path):
    assert rules(lint(tmp_path, GOOD, None)) == {"E4"}


REGION = """\
static void p_load(const float *x, hls::stream<float> &y)
{
	y.write(x[0]);
}
static void p_sum(hls::stream<float> &x, hls::stream<float> &y)
{
	p_sum_datapath(x, y, 4);
}
static void p_sum_datapath(hls::stream<float> &x, hls::stream<float> &y, int n)
{
	y.write(x.read());
}
static void p_last(hls::stream<float> &x, hls::stream<float> &y)
{
	y.write(x.read());
}
static void p_store(hls::stream<float> &x, float *y)
{
	y[0] = x.read();
}
\thls::stream<float, 2> s_w("s_w");
\thls::stream<float, 2> s_s("s_s");
\thls::stream<float, 2> s_y("s_y");
\tST_PROCESS(p_load, m_w, s_w);
\tST_PROCESS(p_sum, s_w, s_s);
\tST_PROCESS(p_last, s_s, s_y);
\tST_PROCESS(p_store, s_y, m_y);
"""


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("", "", None),
        ("\tp_sum_U0\n", "", "p_sum_U0 is on no die"),
        ("\ts_s_U\n", "", "s_s_U is on no die"),
        ("\ts_s_U\n", "\ts_s_U\n\ts_s_U\n", "s_s_U is placed twice"),
        ("p_sum_U0", "p_sum_U1", "p_sum_U1 is no process or channel"),
        ("place 1 {\n", "place 1 {\n\ts_y_U\n", "s_y is on die 1, p_store_U0 on die 0"),
        ("\ts_w_cross_0\n", "", "s_w crosses dies [0, 1], and has registers on []"),
        ("\ts_w_cross_1\n", "", "s_w crosses dies [0, 1], and has registers on [0]"),
        (
            "place 1 {\n",
            "place 1 {\n\ts_w_cross_0\n",
            "s_w crosses dies [0, 1], and has registers on [1, 1]",
        ),
        ("\ts_s_U\n", "\ts_s_U\n\ts_s_cross_0\n", "s_s crosses dies [], and has registers on [1]"),
        ("place 1 {\n", "place 1 {\n\tp_store_U0\n", "memory ports are on several dies"),
        ("place 1 {\n", "place 1 {\n\tp_load_U0\n", "has no channel to read, and is not on die 0"),
        ("place 1 {\n", "place 1 {\n\t*_on_die_1\n", None),
    ],
)
def test_floorplan(tmp_path, old, new, message):
    sys.path.insert(0, str(ROOT / "tools"))
    import hls_floorplan

    dies = {
        0: ["p_load_U0", "p_store_U0", "s_y_U", "s_y_cross_1", "s_w_cross_0"],
        1: ["p_sum_U0", "s_w_U", "s_w_cross_1", "p_last_U0", "s_s_U", "s_y_cross_0"],
    }
    text = "".join(f"place {d} {{\n" + "".join(f"\t{c}\n" for c in dies[d]) + "}\n" for d in dies)
    assert old in text
    moved = text.replace("\t" + new.split("\t")[-1], "") if new.startswith("place") else text
    (tmp_path / "floorplan.tcl").write_text(moved.replace(old, new) if old else text)
    found = hls_floorplan.check_floorplan(tmp_path / "floorplan.tcl", REGION)
    assert {f.rule for f in found} == (set() if message is None else {"E5"})
    assert message is None or any(message in f.message for f in found), found


def test_several_dies_need_a_floorplan(tmp_path):
    (tmp_path / "hls").mkdir()
    (tmp_path / "hls" / "Makefile").write_text("TOP = top\nPART = xcu55c-fsvh2892-2L-e\n")
    link = LINK.replace("slr=top_1:SLR0\n", "")
    assert link != LINK and rules(lint(tmp_path, GOOD, link)) == {"E5"}
    assert lint(tmp_path, GOOD, LINK).stdout == ""


def test_ports_may_share_a_bundle_with_a_channel_each(tmp_path):
    code = GOOD.replace("port=m_y bundle=m_y", "port=m_y bundle=m_y channel=0").replace(
        "port=m_z bundle=m_z", "port=m_z bundle=m_y channel=1"
    )
    assert lint(tmp_path, code, LINK).stdout == ""


def test_finding_names_the_line(tmp_path):
    result = lint(
        tmp_path,
        GOOD.replace(
            "offset=slave\n#pragma HLS interface m_axi port=m_y",
            "\n#pragma HLS interface m_axi port=m_y",
        ),
        LINK,
    )
    line = (
        GOOD.splitlines().index("#pragma HLS interface m_axi port=m_w bundle=m_w offset=slave") + 1
    )
    assert result.stdout == f"{tmp_path}/hls/top.cpp:{line}: C1: m_w needs offset=slave\n"


def test_processing_elements_send_on_what_they_have_read_everything_for(core_built, tmp_path):
    """Scales come back from what the chain of PEs computes: a PE sends activations on behind them,
    and the small language model of the examples keeps all rules.
    """
    model = models.load(str(ROOT / "examples" / "tiny-gpt2"))
    workflow.compile_files(
        model,
        StepShape.of(model.config, "decode", 64, 1),
        "u55c",
        tmp_path / "design",
        Progress(),
        "w4a8",
        values=False,
    )
    (text,) = (tmp_path / "design" / "hls").glob("top_*.cpp")
    assert "next_pe.write" in text.read_text()
    command = [sys.executable, ROOT / "tools" / "hls_lint.py", tmp_path / "design"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_write_may_follow_a_read_that_it_does_not_need(tmp_path):
    """The text itself waits for the word, so no schedule waits longer."""
    code = GOOD.replace("out.write(st_twice(lane[3]));", "out.write(st_twice(1.0f));")
    assert lint(tmp_path, code, LINK).stdout == ""


def test_flushing_pipelines_need_no_forwarder(tmp_path):
    """A cycle whose fed-back process computes is accepted once all of its pipelines flush."""
    code = GOOD.replace("v = again.read();", "v = again.read() + 1.0f;")
    assert rules(lint(tmp_path, code, LINK)) == {"A17"}
    flushed = code.replace(
        "II=1\n            float v = 0.0f;", "II=1 style=flp\n            float v = 0.0f;"
    )
    (tmp_path / "again").mkdir()
    assert lint(tmp_path / "again", flushed, LINK).stdout == ""


BLOCKS = """\
typedef float tile[64];
template <class T> static inline T st_add(T a, T b)
{
    return (T)(a + b);
}

static void p_fill(const float *m_x, hls::stream_of_blocks<tile> &out)
{
#pragma HLS inline off
    for (int b = 0; b < 4; ++b) {
        hls::write_lock<tile> block(out);
        for (int i = 0; i < 64; ++i) {
#pragma HLS pipeline II=1
            block[i] = m_x[b * 64 + i];
        }
    }
}

static void p_drain(hls::stream_of_blocks<tile> &in, float *m_y)
{
#pragma HLS inline off
    for (int b = 0; b < 4; ++b) {
        hls::read_lock<tile> block(in);
        for (int i = 0; i < 64; ++i) {
#pragma HLS pipeline II=1
            m_y[b * 64 + i] = st_add<float>(block[63 - i], 1.0f);
        }
    }
}

extern "C" void top(const float *m_x, float *m_y)
{
#pragma HLS interface m_axi port=m_x bundle=m_x offset=slave
#pragma HLS interface m_axi port=m_y bundle=m_y offset=slave
#pragma HLS interface s_axilite port=return
#pragma HLS dataflow
    hls::stream_of_blocks<tile, 2> s_tile;
    ST_PROCESS(p_fill, m_x, s_tile);
    ST_PROCESS(p_drain, s_tile, m_y);
    ST_REGION_END();
}
"""
ANY_BANK = "#pragma HLS array_partition variable=s_tile type=cyclic factor=2"
BLOCKS_LINK = "[connectivity]\nnk=top:1:top_1\nsp=top_1.m_x:HBM[0]\nsp=top_1.m_y:HBM[1]\n"


@pytest.mark.parametrize(
    "rule, old, new",
    [
        (None, "", ""),
        ("B1", "<tile, 2>", "<tile>"),
        ("B3", "b < 4; ++b) {\n        hls::read_lock", "b < 3; ++b) {\n        hls::read_lock"),
        (
            "A3",
            "    ST_REGION_END();",
            "    ST_PROCESS(p_drain, s_tile, m_y);\n    ST_REGION_END();",
        ),
        ("A4", "        hls::read_lock<tile> block(in);\n", "        tile block;\n"),
        ("D4", "block[63 - i], 1.0f", "block[63 - i], block[i]"),
        (None, "<tile, 2> s_tile;", "<tile, 2> s_tile;\n" + ANY_BANK),
        ("A22", "<tile, 2> s_tile;", "<tile, 2> s_tile;\n" + ANY_BANK.replace("_tile", "_til")),
        ("B1", "<tile, 2>", "<tile, 1>"),
    ],
)
def test_streams_of_blocks(tmp_path, rule, old, new):
    result = lint(tmp_path, BLOCKS.replace(old, new), BLOCKS_LINK)
    assert rules(result) >= ({rule} if rule else set())
    assert (result.stdout == "") == (rule is None), result.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "name, asked",
    [
        ("gpt2-medium", ()),
        ("qwen2.5-0.5b", ()),
        ("llama-3.2-1b", ("--batch", "4")),
        ("gpt2-medium", ("--phase", "both")),
        ("gemma-3-1b", ("--phase", "both")),
    ],
)
def test_language_models_keep_the_rules(core_built, tmp_path, name, asked):
    options = ["--quant", "w4a8", "--argmax", "--no-weights", "-o", str(tmp_path / "design")]
    assert cli.main(["compile", name, *options, *asked]) == 0
    command = [sys.executable, ROOT / "tools" / "hls_lint.py", tmp_path / "design"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
