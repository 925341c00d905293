"""What the documents say is true: commands run, outputs match, paths exist, tables are those of the
code.
"""

import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGES.md", *sorted((ROOT / "docs").glob("*.md"))]
CORE = Path(os.environ.get("STC", ROOT / "build" / "stc")).parent
ANY = "…"  # in an output: any text; as a line of its own: any lines

sys.path.insert(0, str(ROOT / "tools"))
import attr_table  # noqa: E402
import op_table  # noqa: E402

from streamtensor import cli  # noqa: E402


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(block: str) -> list[tuple[str, str]]:
    """(command, its output) of every `$ ` line."""
    return [
        (part.partition("\n")[0], part.partition("\n")[2])
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]
    ]


SESSIONS = blocks((ROOT / "README.md").read_text(), "console")
MODELS = "bin/streamtensor "  # exports language models: a minute on a slow machine


def matches(expected: str, found: str) -> bool:
    """Is `found` what was promised?  Blanks count as one; ANY stands for any text."""
    parts = [r"\s+".join(map(re.escape, part.split())) for part in f" {expected} ".split(ANY)]
    return re.fullmatch(r"\s*" + r"[\s\S]*?\s*".join(parts) + r"\s*", found) is not None


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder that looks like the tree, with a build folder of its own."""
    folder = tmp_path_factory.mktemp("desk")
    for path in ROOT.iterdir():
        if path.name != "build" and path.name != ".git":
            (folder / path.name).symlink_to(path)
    (folder / "build").mkdir()
    (folder / "build" / "stc").symlink_to(CORE / "stc")
    return folder


def run(command: str, desk: Path) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "STREAMTENSOR_CORE": str(CORE),
        "XDG_CACHE_HOME": str(desk / "cache"),
        "PYTHONWARNINGS": "ignore",
    }
    return subprocess.run(
        command,
        shell=True,
        cwd=desk,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(i, marks=[pytest.mark.long] if MODELS in block else [])
        for i, block in enumerate(SESSIONS)
    ],
)
def test_readme_commands_do_what_it_shows(number, desk, core_built):
    """In the order of the page: a session may use what an earlier one made."""
    for command, output in commands(SESSIONS[number]):
        done = run(command, desk)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        assert matches(output, done.stdout), f"$ {command}\nshown:\n{output}\nfound:\n{done.stdout}"


def test_readme_shows_commands_that_are_accepted():
    shown = [command for block in SESSIONS for command, _ in commands(block)]
    assert len(shown) >= 10
    for words in (shlex.split(command) for command in shown if MODELS in command):
        cli._parser().parse_args(words[1:])
        assert (ROOT / words[2]).is_dir()


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:^    |`)make ([a-z_-]+)", page.read_text(), re.M)
    }
    assert {"demo", "test"} <= named
    inside_a_design = set(re.findall(r'"([a-z_]+):', (ROOT / "src/emit/makefile.c").read_text()))
    assert not named - targets - inside_a_design


def test_matching_can_fail():
    assert matches("a … c\n", "a b  c\n") and matches("…\nend\n", "x\ny\nend\n") and matches("", "")
    assert (
        not matches("a c\n", "a b c\n") and not matches("", "x") and not matches("a …\n", "b a c\n")
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_exist(page):
    text = page.read_text()
    links = [
        link
        for pair in re.findall(r"\[([^]]*)\]\(([^)#]+)\)", text)
        if "://" not in pair[1]
        for link in pair
        if "/" in link or link == pair[1]
    ]
    paths = re.findall(
        r"`((?:src|runtime|include|python|platforms|share|tests|tools|docs|examples|fuzz|"
        r"bench)/[\w./-]*)`",
        text,
    )
    missing = [link for link in links if not (page.parent / link).exists()] + [
        path
        for path in paths
        if not (ROOT / path).exists() and not re.search(r"[A-Z]{2}", Path(path).name)
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_functions_named_with_a_file_are_in_it(page):
    for name, path in re.findall(
        r"`(\w+)`\s+in\s+`((?:src|runtime|tests)/[\w./-]+)`", page.read_text()
    ):
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), f"{name} in {path}"


def test_passes_named_are_passes():
    passes = set(re.findall(r"PASS\((\w+),", (ROOT / "src/pipeline/passes.c").read_text()))
    for name in re.findall(
        r"--(?:from|stop-after) ([a-z_]+)", "".join(page.read_text() for page in PAGES)
    ):
        assert name in passes, name


def test_op_table_is_that_of_the_code():
    page = (ROOT / "docs/ir.md").read_text()
    assert op_table.page_with_table(page, (ROOT / "src/ir/ops.def").read_text()) == page, (
        "run tools/op_table.py --write"
    )
    assert len(re.findall(r"^\| ?`", page, re.M)) > 80


def test_attribute_table_is_that_of_the_code():
    page = (ROOT / "docs/ir.md").read_text()
    text = (ROOT / "src/ir/attrs.def").read_text()
    assert attr_table.page_with_table(page, text) == page, "run tools/attr_table.py --write"
    codes = {code for _, code, *_ in attr_table.keys(text)}
    assert len(codes) == len(re.findall(r"^KEY\(", text, re.M)) > 150
    written, read = attr_table.users()["STREAM_DIE"]
    assert written == {"floorplan", "process_builder"} and "link" in read


def test_docs_stay_short():
    for folder, most in (("docs", 88 * 1024), ("docs/decisions", 45_000)):
        assert sum(path.stat().st_size for path in (ROOT / folder).glob("*.md")) <= most, folder
    for path in PAGES:
        prose = re.sub(r"^(?:```.*?^```|[|].*?|    .*?)$", "", path.read_text(), flags=re.M | re.S)
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d+\. )", prose):
            assert len(paragraph.split()) <= 120, f"{path.name}: {paragraph[:60]}"


def test_keys_of_reports_are_those_of_the_code():
    """Members of the whole: two blanks in front."""
    written = {
        key
        for name in (
            "report/report_json",
            "report/report_images",
            "report/report_launches",
            "report/report_layer",
            "report/report_loops",
            "explore/phases",
        )
        for key in re.findall(
            r'(?:"|\\n)  \\"(\w+)\\": ',
            (ROOT / f"src/{name}.c").read_text().partition("report_timing")[0],
        )
    }
    written -= {"fits"}  # of `kernel`
    written |= set(
        re.findall(
            r'report_resources\(out, "(\w+)"', (ROOT / "src/report/report_json.c").read_text()
        )
    )
    table = (ROOT / "docs/report.md").read_text().partition("An entry of")[0]
    named = {
        key
        for first in re.findall(r"^\| (`.*?`) \|", table, re.M)
        for key in re.findall(r"`(\w+)`", first)
    }
    assert len(named) > 25 and named == written


def test_error_shown_is_the_error_given(tmp_path, core_built):
    """The example in docs/errors.md is a golden test's."""
    shown = re.search(
        r"\n    \$ stc compile dynamic.mlir.*\n((?:    .+\n)+)",
        (ROOT / "docs/errors.md").read_text(),
    )[1]
    (tmp_path / "dynamic.mlir").write_bytes(
        (ROOT / "tests/golden/errors/import/dynamic.mlir").read_bytes()
    )
    done = subprocess.run(
        [CORE / "stc", "compile", "dynamic.mlir", "--platform", "u55c", "-o", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stdout == "" and not (tmp_path / "out").exists()
    assert done.stderr == re.sub(r"^    ", "", shown, flags=re.M)


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs").glob("*.svg")), ids=lambda path: path.name
)
def test_pictures_are_legible_anywhere(picture):
    root = xml.parse(picture).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}title") is not None and root.find(f"{space}desc") is not None
    assert "prefers-color-scheme: dark" in root.find(f"{space}style").text
