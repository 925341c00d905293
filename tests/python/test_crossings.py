"""Registers between dies: the Verilog keeps what the simulator promises, and crossings.py puts it
in front of the FIFOs of a kernel.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HLS = ROOT / "runtime" / "hls"
STC = os.environ.get("STC", ROOT / "build" / "stc")
KERNEL = "ip_repo/kernel_1_0/hdl/verilog/top_region_token.v"

# A FIFO of two words as the vendor's compiler instantiates it, between a writer that pauses at
# random unless EAGER and a reader that begins late and pauses at random.
TOP = """\
`timescale 1ns / 1ps
module top;
reg ap_clk = 0;
reg ap_rst_n_inv = 1;
wire   [15:0] p_load_U0_s_x_din;
wire    p_load_U0_s_x_write;
wire    p_sum_U0_s_x_read;
wire    s_x_full_n;
wire   [15:0] s_x_dout;
wire    s_x_empty_n;

top_fifo_w16_d2_S s_x_U(
    .clk(ap_clk),
    .reset(ap_rst_n_inv),
    .if_read_ce(1'b1),
    .if_write_ce(1'b1),
    .if_din(p_load_U0_s_x_din),
    .if_full_n(s_x_full_n),
    .if_write(p_load_U0_s_x_write),
    .if_dout(s_x_dout),
    .if_empty_n(s_x_empty_n),
    .if_read(p_sum_U0_s_x_read)
);

integer cycle = 0, sent = 0, taken = 0, first = -1, most = 0, wrong = 0;
reg may_write = 0, may_read = 0;
assign p_load_U0_s_x_din = sent;
assign p_load_U0_s_x_write = may_write & s_x_full_n & (sent < WORDS);
assign p_sum_U0_s_x_read = may_read & s_x_empty_n;
always #5 ap_clk = ~ap_clk;
always @(posedge ap_clk) begin
    cycle <= cycle + 1;
    ap_rst_n_inv <= cycle < 8;
    may_write <= cycle >= 32 && (EAGER || $urandom % 3 != 0);
    may_read <= cycle >= LATE && (EAGER || $urandom % 2 != 0);
    if (p_load_U0_s_x_write) begin
        if (sent == 0)
            first <= cycle;
        sent <= sent + 1;
    end
    if (p_sum_U0_s_x_read) begin
        if (s_x_dout != taken[15:0])
            wrong <= wrong + 1;
        if (taken == 0)
            $display("latency %0d", cycle - first);
        taken <= taken + 1;
    end
    most <= sent - taken > most ? sent - taken : most;
    if (taken == WORDS || cycle == 9999) begin
        $display("taken %0d wrong %0d most %0d cycles %0d", taken, wrong, most, cycle - first);
        $finish;
    end
end
endmodule

module top_fifo_w16_d2_S(input clk, input reset, input if_read_ce, input if_write_ce,
    input [15:0] if_din, output if_full_n, input if_write, output [15:0] if_dout,
    output if_empty_n, input if_read);
reg [15:0] word[0:1];
reg [1:0] count = 0;
wire push = if_write & if_full_n;
wire pop = if_read & if_empty_n;
assign if_full_n = count != 2;
assign if_empty_n = count != 0;
assign if_dout = word[count == 2];
always @(posedge clk) begin
    if (push) begin
        word[1] <= word[0];
        word[0] <= if_din;
    end
    count <= reset ? 2'd0 : count + push - pop;
end
endmodule
"""

# A process on die 0 starts one on die 2 three times, as the vendor's compiler writes it.
STARTS = """\
`timescale 1ns / 1ps
module top;
reg ap_clk = 0;
reg ap_rst_n_inv = 1;
wire    p_load_U0_start_write;
wire    p_sum_U0_ap_ready;
wire    p_sum_U0_ap_start;
wire    p_load_U0_ap_idle;
wire    p_sum_U0_ap_idle;
wire    ap_idle;
wire   [0:0] start_for_p_sum_U0_din;
wire    start_for_p_sum_U0_full_n;
wire   [0:0] start_for_p_sum_U0_dout;
wire    start_for_p_sum_U0_empty_n;

top_start_for_p_sum_U0 start_for_p_sum_U0_U(
    .clk(ap_clk),
    .reset(ap_rst_n_inv),
    .if_read_ce(1'b1),
    .if_write_ce(1'b1),
    .if_din(start_for_p_sum_U0_din),
    .if_full_n(start_for_p_sum_U0_full_n),
    .if_write(p_load_U0_start_write),
    .if_dout(start_for_p_sum_U0_dout),
    .if_empty_n(start_for_p_sum_U0_empty_n),
    .if_read(p_sum_U0_ap_ready)
);

assign start_for_p_sum_U0_din = 1'b1;
assign p_sum_U0_ap_start = start_for_p_sum_U0_empty_n;
integer cycle = 0, given = 0, taken = 0, first = -1, begun = -1, rests = -1, busy = 0;
always #5 ap_clk = ~ap_clk;
assign p_load_U0_start_write = cycle >= 32 & start_for_p_sum_U0_full_n & given < 3;
assign p_load_U0_ap_idle = given == 0 | given == 3;
assign p_sum_U0_ap_ready = busy == 9;
assign p_sum_U0_ap_idle = ~p_sum_U0_ap_start;
always @(posedge ap_clk) begin
    cycle <= cycle + 1;
    ap_rst_n_inv <= cycle < 8;
    given <= given + p_load_U0_start_write;
    first <= p_load_U0_start_write && first < 0 ? cycle : first;
    begun <= p_sum_U0_ap_start && begun < 0 ? cycle : begun;
    busy <= p_sum_U0_ap_start && busy < 9 ? busy + 1 : 0;
    taken <= taken + p_sum_U0_ap_ready;
    rests <= taken == 3 && p_sum_U0_ap_idle && rests < 0 ? cycle : rests;
    if (cycle == 200)
        $display("latency %0d taken %0d", begun - first, taken);
    if (taken == 3 && ap_idle && cycle < 200) begin
        $display("idle %0d", cycle - rests);
        cycle <= 200;
    end
    if (cycle == 201)
        $finish;
end

assign ap_idle = (p_sum_U0_ap_idle & p_load_U0_ap_idle & (1'b0 ^ 1'b1));

endmodule

module top_start_for_p_sum_U0(input clk, input reset, input if_read_ce, input if_write_ce,
    input if_din, output if_full_n, input if_write, output if_dout, output if_empty_n,
    input if_read);
reg [1:0] count = 0;
assign if_full_n = count != 2;
assign if_empty_n = count != 0;
assign if_dout = 1'b1;
always @(posedge clk)
    count <= reset ? 2'd0 : count + (if_write & if_full_n) - (if_read & if_empty_n);
endmodule
"""
PLACES = "place 0 {\n\tp_load_U0\n\t*_on_die_0\n}\nplace 1 {\n}\nplace 2 {\n\tp_sum_U0\n}\n"


def floorplan(crossings):
    lines = (f"place {die} {{\n\ts_x_cross_{die}\n}}\n" for die in range(crossings + 1))
    return "# head\n" + "".join(lines)


def archive(folder, text):
    path = folder / "top.hw.xo"
    with zipfile.ZipFile(path, "w") as xo:
        xo.writestr("xo.xml", "<root/>")
        xo.writestr(KERNEL, text)
    return path


def patch(folder, path, text):
    (folder / "floorplan.tcl").write_text(text)
    command = [sys.executable, HLS / "crossings.py", path, folder / "floorplan.tcl"]
    return subprocess.run([*command, HLS / "st_crossing.v"], capture_output=True, text=True)


def kernel(path):
    with zipfile.ZipFile(path) as xo:
        assert xo.namelist() == ["xo.xml", KERNEL] and xo.read("xo.xml") == b"<root/>"
        return xo.read(KERNEL).decode()


def simulate(folder, crossings, words=500, eager=0, late=0):
    text = TOP.replace("WORDS", str(words)).replace("EAGER", str(eager)).replace("LATE", str(late))
    return run_patched(folder, text, floorplan(crossings))


def run_patched(folder, text, places):
    """The numbers that the kernel shows when it has its registers, by the word before each."""
    path = archive(folder, text)
    assert patch(folder, path, places).returncode == 0
    (folder / "top.v").write_text(kernel(path))
    subprocess.run(["iverilog", "-g2012", "-o", folder / "top", folder / "top.v"], check=True)
    shown = subprocess.run([folder / "top"], capture_output=True, text=True, check=True).stdout
    words = shown.split()
    return {
        words[i]: int(words[i + 1]) for i in range(0, len(words) - 1, 2) if words[i + 1].isdigit()
    }


@pytest.mark.skipif(not shutil.which("iverilog"), reason="iverilog is not installed")
@pytest.mark.parametrize("crossings", [1, 2, 3])
def test_words_cross_as_simulated(tmp_path, crossings):
    """The figures are those of src/predict/crossing.h."""
    latency = 2 * crossings + 1
    stores = (32 if crossings > 1 else 16) - 4 * crossings
    eager = simulate(tmp_path, crossings, eager=1)
    assert (eager["taken"], eager["wrong"]) == (500, 0)
    assert eager["latency"] == 1 + latency
    assert eager["cycles"] <= 500 + latency + 2, "a word a cycle"
    late = simulate(tmp_path, crossings, eager=1, late=200)
    assert (late["taken"], late["wrong"]) == (500, 0)
    assert late["most"] >= stores + 2, "the queue's words and the FIFO's"
    assert late["most"] <= (32 if crossings > 1 else 16) + 2
    mixed = simulate(tmp_path, crossings, words=2000)
    assert (mixed["taken"], mixed["wrong"]) == (2000, 0)


@pytest.mark.skipif(not shutil.which("iverilog"), reason="iverilog is not installed")
def test_starts_and_idle_cross_through_registers(tmp_path):
    channels = floorplan(2).removeprefix("# head\n")
    top = STARTS + TOP[TOP.index("module top_fifo_w16_d2_S") :]
    fifo = TOP[TOP.index("wire   [15:0] p_load") : TOP.index("integer cycle")]
    fifo += "assign p_load_U0_s_x_write = 0;\nassign p_sum_U0_s_x_read = 0;\n"
    top = top.replace("integer cycle = 0", fifo + "integer cycle = 0")
    shown = run_patched(tmp_path, top, PLACES + channels)
    assert shown["taken"] == 3 and shown["latency"] == 1 + 2 * 2 + 1, shown
    assert shown["idle"] == 2 * 2, "a register on either side of each boundary"
    text = (tmp_path / "top.v").read_text()
    for cell in ("start_for_p_sum_U0_cross_1_on_die_1", "idle_of_die_2_cross_3_on_die_0"):
        assert f" {cell}(" in text
    same = PLACES.replace("place 2 {", "place 0 {")
    assert patch(tmp_path, archive(tmp_path, top), same + channels).returncode == 0
    assert "_on_die_" not in kernel(tmp_path / "top.hw.xo")


def test_a_channel_that_is_not_found_leaves_the_archive(tmp_path):
    path = archive(tmp_path, TOP)
    before = path.read_bytes()
    result = patch(tmp_path, path, floorplan(1) + "place 0 {\n\ts_y_cross_0\n\ts_y_cross_1\n}\n")
    assert result.returncode == 1 and "s_y" in result.stderr and "s_x" not in result.stderr
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 2


def test_registers_are_put_once(tmp_path):
    path = archive(tmp_path, TOP)
    assert patch(tmp_path, path, floorplan(2)).returncode == 0
    once = kernel(path)
    assert once.count("s_x_cross_1(") == 1 and once.count("module st_crossing_exit") == 1
    assert ".if_din(p_load_U0_s_x_din)" in once.split("s_x_cross_0(")[1].split(");")[0]
    assert patch(tmp_path, path, floorplan(2)).returncode == 0
    assert kernel(path) == once


def cycles(design):
    shown = subprocess.run([STC, "simulate", design], capture_output=True, text=True, check=True)
    return int(re.search(r"one launch +(\d+) cycles", shown.stdout)[1])


def test_a_channel_between_dies_has_registers_that_take_cycles(tmp_path):
    """What stores the results, behind all others, moves two dies away."""
    model = ROOT / "tests" / "models" / "attention.mlir"
    subprocess.run([STC, "compile", model, "-o", tmp_path / "near"], check=True)
    text = (tmp_path / "near" / "design.mlir").read_text()
    fifo, name = re.search(
        r'"func.call"\(%\d+, (%\d+)\) \{callee = @(p\d+_store_\w+)', text
    ).groups()
    process = re.search(r"stream.die = 0 : i64, .*sym_name = \"" + name, text)
    text = text.replace(process[0], process[0].replace("die = 0", "die = 2"))
    far = tmp_path / "far.mlir"
    for crossings, message in (
        ("", "registers for 0 boundaries between dies, and crosses 2"),
        ("stream.crossings = 1 : i64, ", "registers for 1 boundaries"),
        ("stream.crossings = 2 : i64, ", ""),
    ):
        begin = f'{fifo} = "stream.fifo"() {{'
        assert begin in text
        far.write_text(text.replace(begin, begin + crossings))
        found = subprocess.run([STC, "check", far], capture_output=True, text=True)
        assert message in found.stderr and found.returncode == bool(message), found.stderr
    assert cycles(far) == cycles(tmp_path / "near") + 2 * 2 + 1
