"""What reports say of the loops of C, pragmas in it, and the exploration of a C function."""

import json

import pytest
from conftest import ROOT, stc

GEMM = ROOT / "examples/gemm.c"
TRIANGLE = """
void f(float y[12], const float x[12], const float A[12][12])
{
	for (int i = 0; i < 12; i++) {
		y[i] = x[i];
		for (int j = 0; j <= i; j++)
			y[i] += A[i][j] * x[j];
	}
}
"""
SWEEP = """
void f(float y[40], const float x[40])
{
	for (int i = 1; i < 40; i++)
		y[i] = y[i - 1] * x[i];
}
"""
# rows that need the rows above and, last, themselves
RECURRENCE = """
void f(float alpha, const float A[48][48], float B[48][48])
{
	for (int i = 0; i < 48; i++)
		for (int j = 0; j < 48; j++) {
			for (int k = 0; k <= i; k++)
				B[i][j] += A[i][k] * B[k][j];
			B[i][j] *= alpha;
		}
}
"""
# the factor of all lanes is one product
FACTOR = """
void f(float alpha, const float A[48][48], float C[48][48])
{
	for (int i = 0; i < 48; i++)
		for (int j = 0; j <= i; j++)
			for (int k = 0; k < 48; k++)
				C[i][j] += alpha * A[i][k] * A[j][k];
}
"""
# a factor of a sum of products
SYMMETRIC = """
void f(float alpha, const float A[64][64], const float B[64][64], float C[64][64])
{
	for (int i = 0; i < 64; i++)
		for (int j = 0; j <= i; j++)
			for (int k = 0; k < 64; k++)
				C[i][j] += alpha * (A[i][k] * B[j][k] + B[i][k] * A[j][k]);
}
"""
# sums in the order of C
COLUMNS = """
void f(float m[256], const float x[256][256])
{
	for (int j = 0; j < 256; j++) {
		m[j] = 0;
		for (int i = 0; i < 256; i++)
			m[j] += x[i][j];
	}
}
"""
# each value from nine neighbours, new ones among them
NEIGHBOURS = """
void f(float A[200][200])
{
	for (int t = 0; t < 20; t++)
		for (int i = 1; i < 199; i++)
			for (int j = 1; j < 199; j++)
				A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] +
					A[i][j - 1] + A[i][j] + A[i][j + 1] + A[i + 1][j - 1] +
					A[i + 1][j] + A[i + 1][j + 1]) * 0.125f;
}
"""
# rows that remember two values
FILTER = """
void f(float a, float y[64][64], const float x[64][64])
{
	float b = powf(2.0f, -a);
	for (int i = 0; i < 64; i++) {
		float before = 0, last = 0;
		for (int j = 0; j < 64; j++) {
			y[i][j] = x[i][j] + b * last + a * before;
			before = last;
			last = y[i][j];
		}
	}
}
"""
PRAGMAS = """
#define LANES 4
enum {{ BANKS = 8 }};
void f(float y[4096], float z[4096], const float x[4096])
{{
#pragma HLS ARRAY_PARTITION variable=x cyclic factor=BANKS/2 dim=1
	for (int i = 0; i < 4096; i++) {{
#pragma HLS UNROLL factor={factor}
#pragma HLS PIPELINE II=2*LANES
		y[i] = 2 * x[i];
	}}
	for (int i = 0; i < 4096; i++)
		z[i] = 3 * x[i];
}}
"""


def report_of(tmp_path, source, *words) -> dict:
    if isinstance(source, str):
        (tmp_path / "f.c").write_text(source)
        source = tmp_path / "f.c"
    words = ("--platform", "xc7z020", *words)
    done = stc("compile", source, "-o", tmp_path / "design", *words)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "design/report.json").read_text())


def test_transformations_are_those_of_the_design(core_built, tmp_path):
    report = report_of(tmp_path, GEMM)
    scale, product = report["loops"]
    assert scale["loops"] == ["i", "j"] and product["loops"] == ["i", "j", "k"]
    assert product["trips"] == [64, 48, 32] and product["perfectized"]
    assert not product["bounds_removed"] and not product["sequential"]
    assert sorted(product["permutation"]) == [0, 1, 2]
    kernels = {kernel["name"].split("_", 1)[1]: kernel for kernel in report["kernels"]}
    kernel = kernels[product["kernel"]]
    unrolled = product["unrolled"]
    assert unrolled[0] * unrolled[1] * unrolled[2] == kernel["unroll"] > 1
    assert product["ii"] == kernel["ii"] == 1
    assert all(tile % lanes == 0 for tile, lanes in zip(product["tiles"], unrolled))
    assert f"B cyclic factor={unrolled[1]} dim=2" in product["partitions"]
    text = (tmp_path / "design/report.txt").read_text()
    assert "Perm. Map" in text and f"B cyclic factor={unrolled[1]} dim=2" in text
    assert "Loops of C" in (tmp_path / "design/report.html").read_text()
    dump = tmp_path / "design/design.mlir"
    assert stc("check", dump).returncode == 0
    # what a dump says of loops may be anything
    strange = dump.read_text().replace('counters = ["i"', "counters = [7", 1)
    (tmp_path / "strange.mlir").write_text(strange.replace("line = 9 : i64", 'line = "x"', 1))
    words = ("--platform", "xc7z020", "--from", "bind_storage", "-o", tmp_path / "strange")
    assert stc("compile", tmp_path / "strange.mlir", *words).returncode in (0, 1)


def test_a_triangle_has_its_bounds_removed_and_is_counted(core_built, tmp_path):
    report = report_of(tmp_path, TRIANGLE)
    first, sum_row = report["loops"]
    assert sum_row["bounds_removed"] and not first["bounds_removed"]
    assert sum_row["iterations"] == 12 * 13 // 2 and first["iterations"] == 12
    cycles = sum(row["iterations"] * row["iteration_cycles"] for row in report["loops"])
    assert report["baseline"]["cycles"] == cycles
    # a load, a product, a sum and a store, one after the other
    costs = json.loads((ROOT / "platforms/xc7z020.json").read_text())["operators"]
    assert sum_row["iteration_cycles"] == 2 + sum(
        costs[name]["latency"] for name in ("arith.mulf", "arith.addf")
    ) + 1  # fmt: skip


def test_a_sequential_nest_keeps_its_bounds(core_built, tmp_path):
    (row,) = report_of(tmp_path, SWEEP)["loops"]
    assert row["sequential"] and not row["perfectized"] and not row["bounds_removed"]
    assert row["permutation"] == [0] and row["unrolled"] == [1] and row["ii"] > 1


def test_what_adds_to_a_row_itself_comes_apart(core_built, tmp_path):
    report = report_of(tmp_path, RECURRENCE, "--platform", "u280")
    for row in report["loops"]:
        assert row["sequential"] and max(row["unrolled"]) > 1 and row["ii"] == 1
    assert report["cycles"]["model"] * 40 < report["baseline"]["cycles"]


def test_what_is_the_same_in_all_lanes_takes_one_operator(core_built, tmp_path):
    words = ("--platform", "u280", "--kernel-dsp", "60", "--max-dsp", "60")
    report = report_of(tmp_path, FACTOR, *words)
    (row,) = report["loops"]
    # a factor for all, a product and a sum a lane: with a factor each there would be fewer lanes
    assert max(row["unrolled"]) > 60 // 8 and report["resources"]["dsp"] <= 60


def test_a_factor_is_multiplied_in_front_of_lanes(core_built, tmp_path):
    words = ("--platform", "u280", "--kernel-dsp", "96", "--max-dsp", "96", "--reassociate")
    report = report_of(tmp_path, SYMMETRIC, *words)
    (row,) = report["loops"]
    # two products and two sums a lane; with the factor's product there would be fewer lanes
    assert max(row["unrolled"]) > 96 // 13 and report["resources"]["dsp"] <= 96


def test_sums_in_the_order_of_c_are_interleaved(core_built, tmp_path):
    report = report_of(tmp_path, COLUMNS, "--kernel-dsp", "4")
    assert [row["ii"] for row in report["loops"] if len(row["loops"]) == 2] == [1]


def test_lanes_that_wait_for_words_share_operators(core_built, tmp_path):
    report = report_of(tmp_path, NEIGHBOURS)
    (row,) = report["loops"]
    # nine words an iteration are more than the copies of A that have room give in a cycle
    assert 1 < row["ii"] < 9 and report["resources"]["dsp"] <= 220
    assert max(row["unrolled"]) > row["ii"]


def test_copies_take_no_cycles_and_scalars_few_operators(core_built, tmp_path):
    words = ("--platform", "u280", "--kernel-dsp", "60", "--max-dsp", "60")
    report = report_of(tmp_path, "#include <math.h>\n" + FILTER, *words)
    # a loop over the rows, not three, for each of 64 columns: the others have 35 thousand LUTs;
    # a power of pipelined operators takes 360 DSPs
    assert report["resources"]["lut"] < 28_000 and report["cycles"]["model"] < 6_900
    assert report["resources"]["dsp"] <= 60


@pytest.mark.parametrize("factor, lanes", [("LANES", 4), ("(LANES / 4)", 1), ("BANKS", 8)])
def test_pragmas_take_constants_and_are_kept(core_built, tmp_path, factor, lanes):
    report = report_of(tmp_path, PRAGMAS.format(factor=factor), "--platform", "u55c")
    wished, other = report["loops"]
    assert wished["unrolled"] == [lanes] and wished["asked_ii"] == 8 and "asked_ii" not in other
    assert wished["asked_partitions"] == ["x cyclic factor=4 dim=1"]
    cost = report.get("pragma_cost", {"cycles": 2, "without": 1})
    assert cost["without"] < cost["cycles"]
    if lanes == 1:
        assert 4096 < cost["cycles"] > 3 * cost["without"]


def test_a_c_function_is_explored(core_built, tmp_path, capsys):
    pytest.importorskip("optuna")
    from streamtensor import cli
    from streamtensor.exploration import design_trials, explore_report

    source = tmp_path / "f.c"
    source.write_text(TRIANGLE)
    words = ["explore", str(source), "--platform", "xc7z020", "-o", str(tmp_path / "e")]
    assert cli.main([*words, "--trials", "8"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[1:5] == ["ms", "DSP", "LUT", "BRAM18"]
    assert cli.main([*words, "--trials", "10", "--resume"]) == 0
    task = design_trials.task(TRIANGLE, {"platform": ["xc7z020"]}, None, source)
    study = design_trials.open_study(tmp_path / "e", task, True)
    trials = [trial for trial in design_trials.finished(study) if trial.values]
    front = {trial.number for trial in design_trials.pareto_front(study)}
    assert len(design_trials.finished(study)) == 10 and front
    rows = explore_report.baselines(study, trials)
    assert [row[0] for row in rows[1:]] == ["the C as it stands", *design_trials.HEURISTICS]
    assert rows[0][2] == "1" and all(float(row[2]) >= 1 for row in rows)
    places, shares, _ = explore_report._components(trials)
    assert len(places) == len(trials) and 1 >= sum(shares) >= shares[0] >= shares[1] > 0
    page = (tmp_path / "e/report.html").read_text()
    assert page.count('class="front"') == 4 * len(front)  # against three areas, and in the space
    assert "Perm. Map" in page and "Baselines" in page


def test_a_state_of_c_is_continued_only_with_the_same_function(core_built, tmp_path):
    state = tmp_path / "state.json"
    words = ("explore", GEMM, "--platform", "xc7z020", "--trials", "2", "-o", state)
    first = stc(*words)
    assert first.returncode == 0 and "BRAM18" in first.stdout
    other = stc(*words, "--resume", "--reassociate")
    assert other.returncode == 1 and "--reassociate" in other.stderr
    assert stc(*words, "--resume").returncode == 0
