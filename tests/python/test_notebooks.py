"""The notebooks of examples/ run from their first cell to their last, without a network, and what
they show is what is kept in their files.
"""

import re

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

LONG = ("digits", "exploration")  # they build several designs
NAMES = sorted(path.stem for path in (ROOT / "examples").glob("*.ipynb"))


def plain(text: str) -> str:
    """Without numbers and names of folders."""
    return " ".join(re.sub(r"[-+\d.,e:%]+|/\S+", "", text).split())


def shown(notebook) -> list[list[str]]:
    """What each cell prints, which may come in any number of parts, and the first line of what else
    it gives.
    """
    return [
        [
            plain("".join(each.text for each in outputs if each.get("name") == "stdout")),
            *(plain(each.data["text/plain"].split("\n")[0]) for each in outputs if "data" in each),
        ]
        for outputs in (cell.get("outputs", []) for cell in notebook.cells)
    ]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.long] * (each in LONG)) for each in NAMES]
)
def test_a_notebook_shows_what_its_file_says(core_built, name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    path = ROOT / "examples" / f"{name}.ipynb"
    notebook = nbformat.read(path, 4)
    expected = shown(notebook)
    assert all(
        any(expected[i])
        for i, cell in enumerate(notebook.cells[:-1])
        if cell.source.endswith("design")
    )
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    assert shown(notebook) == expected
