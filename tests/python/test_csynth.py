"""The script of a design that compares the vendor's synthesis reports with the text, on reports in
the vendor's format: loops, clocks and bursts as promised, and each way in which they can be worse.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "runtime" / "hls" / "csynth.py"
TEXT = """\
typedef hls::vector<float, 16> f32x16;

static void p_load(const f32x16 *m, hls::stream<f32x16> &y)
{
	for (int i = 0; i < 8; i++) {
#pragma HLS pipeline II=1
		// modelled stages: 100
		y.write(m[i]);
	}
}

static void p_sum(hls::stream<f32x16> &x, hls::stream<float> &y)
{
	for (int j = 0; j < 2; j++) {
		for (int i = 0; i < 8; i++) {
#pragma HLS pipeline II=2 style=flp
			// modelled stages: 12
			y.write(x.read()[0]);
		}
	}
}

extern "C" void top(const f32x16 *m_w, const f32x16 *m_v)
{
#pragma HLS interface m_axi port=m_w bundle=m_w channel=0 max_read_burst_length=16
#pragma HLS interface m_axi port=m_v bundle=m_w channel=1 max_read_burst_length=16
#pragma HLS dataflow
	hls::stream<f32x16, 2> s_w("s_w");
	ST_PROCESS(p_load, m_w, s_w);
	ST_PROCESS(p_sum, s_w, s_y);
}
"""
REPORT = """\
<profile>
<ReportVersion><Version>2023.2</Version></ReportVersion>
<ModuleInformation>
<Module><Name>p_load</Name>
<PerformanceEstimates>
<SummaryOfTimingAnalysis><TargetClockPeriod>3.33</TargetClockPeriod>
<ClockUncertainty>0.90</ClockUncertainty><EstimatedClockPeriod>2.430</EstimatedClockPeriod>
</SummaryOfTimingAnalysis>
<SummaryOfLoopLatency><VITIS_LOOP_5_1><Name>VITIS_LOOP_5_1</Name><TripCount>8</TripCount>
<Latency>80</Latency><PipelineII>1</PipelineII><PipelineDepth>72</PipelineDepth>
<PipelineType>yes</PipelineType></VITIS_LOOP_5_1></SummaryOfLoopLatency>
</PerformanceEstimates></Module>
<Module><Name>p_sum_Pipeline_VITIS_LOOP_14_1_VITIS_LOOP_15_2</Name>
<PerformanceEstimates>
<SummaryOfTimingAnalysis><TargetClockPeriod>3.33</TargetClockPeriod>
<ClockUncertainty>0.90</ClockUncertainty><EstimatedClockPeriod>2.100</EstimatedClockPeriod>
</SummaryOfTimingAnalysis>
<SummaryOfLoopLatency><VITIS_LOOP_14_1_VITIS_LOOP_15_2>
<Name>VITIS_LOOP_14_1_VITIS_LOOP_15_2</Name><TripCount>16</TripCount>
<PipelineII>2</PipelineII><PipelineDepth>11</PipelineDepth><PipelineType>yes</PipelineType>
</VITIS_LOOP_14_1_VITIS_LOOP_15_2></SummaryOfLoopLatency>
</PerformanceEstimates></Module>
</ModuleInformation>
</profile>
"""
BURST = (
    '<VitisHLS:BurstInfo>\n<burst group="BURST_VERBOSE_PASSED" src_info="top.cpp:5:19" '
    'BundleName="m_w" VarName="m" LoopLoc="top.cpp:5:19" LoopName="VITIS_LOOP_5_1" Length="8" '
    'Direction="read"/>\n</VitisHLS:BurstInfo>\n'
)
TABLE = """\
* Inferred Burst Summary
+--------------+-----------+--------+-------+----------------+---------------+
| HW Interface | Direction | Length | Width | Loop           | Loop Location |
+--------------+-----------+--------+-------+----------------+---------------+
| m_axi_m_w    | read      | 8      | 512   | VITIS_LOOP_5_1 | top.cpp:5:19  |
+--------------+-----------+--------+-------+----------------+---------------+

* All M_AXI Variable Accesses
"""


def run(folder, *arguments, text=""):
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def design(tmp_path):
    (tmp_path / "top.cpp").write_text(TEXT)
    report = tmp_path / "csynth" / "top" / "solution" / "syn" / "report"
    report.mkdir(parents=True)
    (report / "csynth.xml").write_text(REPORT)
    (report / "burst.xml").write_text(BURST)
    return tmp_path, report


def compare(folder):
    return run(folder, "compare", "top.cpp", "csynth/top")


def test_as_promised(design):
    folder, report = design
    status, said = compare(folder)
    assert status == 0, said
    assert said.startswith("2 loops as promised, 0 not in the reports") and "1 bursts" in said
    (report / "burst.xml").unlink()
    assert "no report of bursts; 0 worse" in compare(folder)[1]
    (report / "csynth.rpt").write_text(TABLE)
    assert "1 bursts promised; 0 worse" in compare(folder)[1]


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        (
            "csynth.xml",
            "<PipelineII>2<",
            "<PipelineII>3<",
            "p_sum, line 15: II 3, promised 2",
        ),
        ("csynth.xml", "<PipelineDepth>11<", "<PipelineDepth>41<", "41 stages, modelled 12"),
        ("csynth.xml", ">2.430<", ">2.501<", "p_load: 2.50 ns, the clock leaves 2.43"),
        ("burst.xml", "VERBOSE_PASSED", "VERBOSE_MISSED", "no burst of m_w (m) in m_w"),
        ("burst.xml", "VITIS_LOOP_5_1", "VITIS_LOOP_15_1", "line 5: no burst of m_w (m) in m_w"),
        ("csynth.xml", "<PipelineII>1<", "<PipelineII>undef<", ""),
    ],
)
def test_worse(design, file, old, new, message):
    folder, report = design
    path = report / file
    assert path.read_text().count(old) >= 1
    path.write_text(path.read_text().replace(old, new))
    status, said = compare(folder)
    assert status == (1 if message else 0) and message in said, said


def test_nothing_to_compare(design):
    folder, report = design
    (report / "csynth.xml").unlink()
    assert compare(folder)[0] == 2
    assert run(folder)[0] == 2


def test_versions(design):
    folder, _ = design
    said = "****** v++ v{} (64-bit)\n"
    assert run(folder, "version", "top.cpp", text=said.format("2023.1"))[0] == 0
    status, text = run(folder, "version", "top.cpp", text=said.format("2022.2"))
    assert status == 2 and "2022.2 is too old: 2023.1 is needed" in text
    assert run(folder, "version", "top.cpp", text="nothing")[0] == 2
    (folder / "top.cpp").write_text(TEXT.replace(" channel=0", "").replace(" channel=1", ""))
    assert run(folder, "version", "top.cpp", text=said.format("2022.2"))[0] == 0


def test_one_process(design):
    folder, _ = design
    assert run(folder, "prepare", "top.cpp", "xcu55c", "300", "p_load") == (0, "")
    text = (folder / "csynth" / "p_load.cpp").read_text()
    assert "void csynth_p_load(const f32x16 *m, hls::stream<f32x16> &y)" in text
    assert "port=m bundle=m_w" in text and "mode=ap_fifo port=y" in text
    script = (folder / "csynth" / "p_load.tcl").read_text()
    assert "set_top csynth_p_load" in script and "create_clock -period 3.333" in script
    assert run(folder, "prepare", "top.cpp", "xcu55c", "300", "p_none")[0] == 2
