"""The notebooks of `examples` run from the first cell to the last, and have no outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
by_name = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@by_name
def test_has_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.extras
@by_name
def test_runs(path: Path) -> None:
    """Nothing raises, every plot makes a picture, and what is shown is HTML, no dump."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    plots = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            data = [output.data for output in cell.outputs if "data" in output]
            pictures = [one for one in data if "image/png" in one]
            assert len(pictures) == cell.source.count(".plot")
            plots += len(pictures)
            assert all(len(one.get("text/plain", "")) < 2_000 for one in data)
    assert plots >= 2
