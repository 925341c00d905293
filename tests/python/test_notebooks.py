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


def shown(notebook) -> list[list[str]]:
    """The texts that each cell gives, without numbers and names of folders."""
    return [
        [
            re.sub(r"[-+\d.,e:%]+|/\S+", "", each.get("text") or each.data["text/plain"]).split(
                "\n"
            )[0]
            for each in cell.get("outputs", [])
            if each.get("name") != "stderr"
        ]
        for cell in notebook.cells
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
        expected[i] for i, cell in enumerate(notebook.cells[:-1]) if cell.source.endswith("design")
    )
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    assert shown(notebook) == expected
