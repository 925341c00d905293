"""report.html in a browser: it draws itself without an error, shows the figures of report.json, and
loads nothing. Pictures go to the build folder.
"""

import json
import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import small_case

from streamtensor import core, workflow
from streamtensor.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=8000",
    "--enable-logging=stderr",
]
MODELS = ("mlp", "cnn", "layers")

pytestmark = pytest.mark.usefixtures("core_built")
in_browser = pytest.mark.skipif(
    not BROWSER, reason="no chromium on this machine: tools/setup.sh chromium installs it"
)


def compile_design(mlir: Path, output: Path, *options, platform: str = "u55c") -> Path:
    done = subprocess.run(
        [
            core.find_file(core.COMPILER),
            "compile",
            mlir,
            "--platform",
            platform,
            "-o",
            output,
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return output


def browse(page: Path, profile: Path, *options, mark: str = "") -> str:
    done = subprocess.run(
        [
            BROWSER,
            *FLAGS,
            f"--user-data-dir={profile}",
            *options,
            f"{page.resolve().as_uri()}{mark}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    return done.stdout


class Page(HTMLParser):
    """What a test asks of a rendered page: its text, and the attributes of its elements."""

    def __init__(self, text: str):
        super().__init__()
        self.elements, self.words, self.hidden = [], [], None
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.hidden = tag if tag in ("script", "style", "noscript") else self.hidden

    def handle_endtag(self, tag):
        self.hidden = None if tag == self.hidden else self.hidden

    def handle_data(self, text):
        if not self.hidden:
            self.words.append(text)

    def all(self, tag: str, **attributes) -> list[dict]:
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]

    def drawn(self) -> bool:
        return self.elements[0][1].get("data-state") == "drawn"


def rendered(design: Path, tmp_path: Path, **how) -> Page:
    return Page(browse(design / "report.html", tmp_path / "profile", "--dump-dom", **how))


def data_of(design: Path) -> dict:
    return json.loads(
        re.search(
            r'<script type="application/json" id="report">(.*?)</script>',
            (design / "report.html").read_text(),
            re.S,
        )[1]
    )


@pytest.fixture(scope="module", params=MODELS)
def design(request, tmp_path_factory):
    return compile_design(
        ROOT / "tests" / "models" / f"{request.param}.mlir",
        tmp_path_factory.mktemp("report") / request.param,
    )


def test_holds_the_figures_of_report_json_and_a_consistent_graph(design):
    data, report = data_of(design), json.loads((design / "report.json").read_text())
    assert data["report"] == report
    processes, channels = data["graph"]["processes"], data["graph"]["channels"]
    assert [p["name"] for p in processes] == [k["name"] for k in report["kernels"]]
    assert sum(c["kind"] == "fifo" for c in channels) == report["fifos"]["count"]
    assert all(
        0 <= c["from"] < len(processes) and 0 <= c["to"] < len(processes) and c["from"] != c["to"]
        for c in channels
    )
    assert len({port["adapter"] for port in data["graph"]["ports"]}) == report["ports"]
    assert {p["kind"] for p in processes} <= {
        "kernel",
        "load",
        "store",
        "convert",
        "fork",
        "join",
        "cast",
        "move",
    }
    cycles = report["cycles"]["simulated"]
    assert max(p["end"] for p in processes) == cycles == data["model"]["simulated_cycles"]
    assert all(0 <= p["input"] + p["output"] + p["memory"] <= p["end"] for p in processes)
    assert all(0 < c["peak_occupancy"] <= c["depth"] for c in channels if c["words"])
    samples = data["model"]["samples"]
    assert (
        (samples - 1) * data["model"]["sample_cycles"]
        < cycles
        <= samples * data["model"]["sample_cycles"]
    )
    assert all(
        len(p["timeline"]) == samples and set(p["timeline"]) <= set("bimo.") for p in processes
    )
    assert all(
        p["timeline"][-1] in "." or p["end"] > (samples - 1) * data["model"]["sample_cycles"]
        for p in processes
    )
    assert all(
        len(c["occupancy"]) == samples and 0 <= c["peak_occupancy"] - max(c["occupancy"]) <= 1
        for c in channels
        if "occupancy" in c
    )
    assert sum("occupancy" in c for c in channels) == min(16, len(channels))
    assert all(sum(port["bytes_over_time"]) == port["bytes"] for port in data["graph"]["ports"])
    assert data["diagnosis"]["bottleneck"] in (design / "report.txt").read_text()
    products, made = (
        report["products"],
        data["model"]["products"] / (report["latency_ms"] * report["clock_mhz"] * 1e3),
    )
    assert (
        products["built"] == data["model"]["multipliers"]
        and products["used"] == pytest.approx(made, rel=1e-4)
        and products["source"] == "simulated"
    )
    assert f"of {products['built']} multipliers on average" in (design / "report.txt").read_text()


CHAIN = """
func.func @chain(%x: tensor<1x256xf32>, %a: tensor<256x1024xf32> {stream.role = "weight"}, %b: \
tensor<1024x256xf32> {stream.role = "weight"}) -> tensor<1x256xf32> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<1x1024xf32>
  %none = linalg.fill ins(%zero : f32) outs(%wide : tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %hidden = linalg.matmul ins(%x, %a : tensor<1x256xf32>, tensor<256x1024xf32>) outs(%none : \
tensor<1x1024xf32>) -> tensor<1x1024xf32>
  %narrow = tensor.empty() : tensor<1x256xf32>
  %empty = linalg.fill ins(%zero : f32) outs(%narrow : tensor<1x256xf32>) -> tensor<1x256xf32>
  %y = linalg.matmul ins(%hidden, %b : tensor<1x1024xf32>, tensor<1024x256xf32>) outs(%empty : \
tensor<1x256xf32>) -> tensor<1x256xf32>
  return %y : tensor<1x256xf32>
}
"""


def test_ports_that_share_the_memory(tmp_path):
    """On a board with one memory channel no port has it for itself: what all of them move is in the
    modeled cycles, and is said to be the limit.
    """
    (tmp_path / "chain.mlir").write_text(CHAIN)
    design = compile_design(tmp_path / "chain.mlir", tmp_path / "design", platform="vu9p")
    report = json.loads((design / "report.json").read_text())
    cycles = report["cycles"]
    assert cycles["simulated"] >= 2 * 256 * 1024 * 4 / (19.2 * 0.8 / 0.3)
    assert cycles["model"] == pytest.approx(cycles["simulated"], rel=0.03)
    assert 2 * 256 * 1024 * 4 / (19.2 * 0.8 / 0.3) <= cycles["lower_bound"] <= cycles["model"]
    text = (design / "report.txt").read_text()
    assert re.search(
        r"at least +\d+ cycles, .* ms    \(modeled, bandwidth of memory channel 0, shared by "
        r"\d+ memory ports\)",
        text,
    )
    assert re.search(
        r"bottleneck +memory: \d+ memory ports share channel 0, which is busy 9\d %", text
    )


def test_loads_nothing(design):
    page = (design / "report.html").read_text()
    code = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
    assert not re.findall(
        r"\bsrc\s*=|@import|url\((?!#)|fetch\(|XMLHttpRequest|import\(|<link"
        r"|https?://(?!www\.w3\.org/2000/svg)",
        code,
    )
    assert len(page) < 600_000


@in_browser
def test_draws_itself(design, tmp_path):
    page, data = rendered(design, tmp_path), data_of(design)
    report, graph = data["report"], data["graph"]
    assert page.drawn()
    assert (
        page.all("h1")
        and report["name"] in page.text
        and "simulated" in page.text
        and f"{report['cycles']['simulated']:,} cycles" in page.text
    )
    assert data["diagnosis"]["bottleneck"] in page.text
    converters = report["converters"]["count"]
    assert (
        f"{len(graph['processes'])} processes, {report['fifos']['count']} FIFOs and "
        f"{converters} converter{'s' * (converters != 1)};" in page.text
    )
    layers = [tag for tag, found in page.elements if found.get("data-chart") == "layers"]
    assert bool(layers) == ("is the slowest," in page.text) == ("images" in report)
    assert ("images/s" in page.text) == ("images" in report) == (report["name"] == "cnn")
    nodes = [
        found
        for tag, found in page.elements
        if tag == "g" and found.get("id", "").startswith("node-")
    ]
    kernels = [i for i, p in enumerate(graph["processes"]) if p["kind"] == "kernel"]
    assert {f"node-{i}" for i in kernels} <= {node["id"] for node in nodes}
    places = [tuple(map(float, re.findall(r"-?[\d.]+", node["transform"]))) for node in nodes]
    assert len(set(places)) == len(places), "nodes stand on one another"
    assert page.all("g", **{"data-edge": f"{kernels[0]}-{kernels[0]}"}) == []
    for chart in (
        "cycles",
        "timeline",
        "roofline",
        "channels",
        "bandwidth",
        "resources",
        "occupancy",
        "chip",
    ):
        assert any(found.get("data-chart") == chart for _, found in page.elements), chart
    assert bool(page.all("rect", **{"class": "group"})) == any(
        "layers" in p for p in graph["processes"]
    )
    assert bool(page.all("path", **{"class": "edge layer_feedback"})) == any(
        "enter" in p["name"] for p in graph["processes"]
    )
    headings = [found["id"] for found in page.all("h2")]
    assert (
        [a["href"][1:] + "-title" for a in page.all("a")] == headings
        and len(headings) == 10 + ("images" in report)
        and "NaN" not in page.text
        and "undefined" not in page.text
    )
    assert all(found.get("aria-label") for found in page.all("svg")), (
        "a drawing without a description"
    )
    assert not page.all("div", id="launches")


@in_browser
def test_picture(design, tmp_path):
    theme = "dark" if design.name == "cnn" else "light"
    picture = core.find_file(core.COMPILER).parent / f"report-{design.name}-{theme}.png"
    picture.unlink(missing_ok=True)
    browse(
        design / "report.html",
        tmp_path / "profile",
        "--window-size=1280,3000",
        f"--screenshot={picture}",
        mark=f"#{theme}",
    )
    data = picture.read_bytes()
    chunks, at = [], 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    pixels = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    assert (
        int.from_bytes(chunks[0][1][:4], "big") == 1280
        and sum(map(bool, pixels[::97])) > len(pixels) / 97 / 50
    ), "an empty picture"


@in_browser
def test_too_large_to_simulate_is_said(tmp_path):
    design = compile_design(
        ROOT / "tests" / "models" / "layers.mlir", tmp_path / "design", "--max-iterations", "1"
    )
    page, data = rendered(design, tmp_path), data_of(design)
    assert (
        "simulated" not in data["report"]["cycles"]
        and "simulated_cycles" not in data["model"]
        and data["report"]["products"]["source"] == "modeled"
    )
    assert (
        page.drawn()
        and "modeled" in page.text
        and "too large to simulate while compiling" in page.text
        and "NaN" not in page.text
    )


@pytest.fixture(scope="module")
def sharing(tmp_path_factory):
    """A design whose processes read through several pointers, of which many share a port; its time
    is modeled.
    """
    folder = tmp_path_factory.mktemp("sharing")
    case = small_case(folder / "gpt2", "gpt2", 64, 1)
    workflow.export_files(case.model, case.shape, folder, Progress())
    return compile_design(
        folder / "model.mlir", folder / "design", "--quant", "w4a8", "--max-iterations", "1"
    )


def test_pointers_that_share_a_port_are_one_and_all_their_bytes_are_counted(sharing):
    data = data_of(sharing)
    ports, count = data["graph"]["ports"], data["report"]["ports"]
    assert (
        len({port["adapter"] for port in ports}) == count < data["platform"]["ports"] < len(ports)
    )
    assert (
        f"memory ports    {count} of {data['platform']['ports']}"
        in (sharing / "report.txt").read_text()
    )
    assert "simulated_cycles" not in data["model"]
    assert sum(port["bytes"] for port in ports) == data["model"]["memory_bytes"]


@in_browser
def test_ports_of_the_report_are_shown(sharing, tmp_path):
    page, data = rendered(sharing, tmp_path), data_of(sharing)
    ports = data["graph"]["ports"]
    sent = re.search(
        r"Memory channels (\d+) of (\d+) ports, which (\d+) pointers share; ([\d.]+) kB a launch",
        page.text,
    )
    assert list(map(int, sent.groups()[:3])) == [
        data["report"]["ports"],
        data["platform"]["ports"],
        len(ports),
    ]
    assert float(sent[4]) == pytest.approx(data["model"]["memory_bytes"] / 1e3, rel=0.01)


@in_browser
def test_other_launches_than_the_longest_are_shown(tmp_path):
    design = compile_design(ROOT / "tests" / "models" / "chunk.mlir", tmp_path / "design")
    page, launches = rendered(design, tmp_path), data_of(design)["report"]["launches"]
    assert [(launch["tokens"], launch["past_tokens"]) for launch in launches] == [(3, 15)]
    shorter = page.text.partition("Other launches of the same design")[2].partition(
        "Where the cycles go"
    )[0]
    assert (
        page.drawn()
        and "one launch of 3 tokens" in page.text
        and f"modeled time of the launch above 3 15 {launches[0]['model']:,}" in shorter
        and page.all("div", id="launches")
    )


@in_browser
def test_a_deadlock_is_the_answer(tmp_path):
    compile_design(
        ROOT / "tests" / "models" / "layers.mlir",
        tmp_path / "whole",
        "--dump-dir",
        tmp_path / "dumps",
    )
    text = sorted((tmp_path / "dumps").glob("*.mlir"))[-1].read_text()
    shallow = tmp_path / "shallow.mlir"
    shallow.write_text(re.sub(r"(!stream\.fifo<\S+), \d+>", r"\1, 1>", text))
    design = compile_design(shallow, tmp_path / "design", "--from", "floorplan")
    page = rendered(design, tmp_path)
    assert json.loads((design / "report.json").read_text())["deadlock"] is True
    assert (
        page.drawn()
        and "it stops" in page.text
        and "waits for space in" in page.text
        and "tokens/s" not in page.text
    )


@in_browser
def test_names_cannot_break_out(tmp_path):
    strange = tmp_path / "a<!--<script>\"'&.mlir"
    shutil.copy(ROOT / "tests" / "models" / "mlp.mlir", strange)
    page = rendered(compile_design(strange, tmp_path / "design"), tmp_path)
    assert page.drawn() and "a<!--<script>\"'&" in page.text
