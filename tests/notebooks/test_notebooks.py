"""The notebooks are small, stripped, ask one question each, and run."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import nbformat
import pytest

from countermove.data.fetch import fetch
from countermove.errors import CountermoveError

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SECONDS = 120
"""Allowed for one cell; a whole notebook takes about twenty seconds on a quiet machine."""


def read(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        nbformat.validate(notebook)
    return notebook


def test_there_is_one_for_every_question():
    assert NAMES == [
        "coordination",
        "cost_assumption",
        "first_strategic_classifier",
        "own_data",
        "own_model",
        "recourse_certificate",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_asks_one_question_in_few_cells(name):
    cells = read(name).cells
    titles = [
        line
        for cell in cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("#")
    ]
    assert len(titles) == 1
    assert re.fullmatch(r"# [^?]+\?", titles[0])
    assert len(cells) <= 12
    text = "\n".join(cell.source for cell in cells)
    assert re.search(r"\byou(r)?\b", text, re.IGNORECASE)
    assert not re.search(r"(^|[\s\"'(])/(home|root|tmp|work|usr)/", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stripped(name):
    notebook = read(name)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def fetched_adult(tmp_path_factory):
    """Return a folder of wheels from which adult can be read."""
    folder = tmp_path_factory.mktemp("wheels")
    try:
        fetch("adult", folder, folder)
    except CountermoveError as error:
        pytest.skip(f"the table adult cannot be fetched here: {error}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_something(name, tmp_path, tmp_path_factory, monkeypatch):
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if name == "own_model":
        monkeypatch.setenv("COUNTERMOVE_CACHE", str(fetched_adult(tmp_path_factory)))
    notebook = read(name)
    with warnings.catch_warnings():  # of the messaging library's own socket handling
        warnings.simplefilter("ignore")
        resources = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=SECONDS, resources=resources).execute()
    shown = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert {out.output_type for out in shown} <= {"execute_result", "display_data"}
    kinds = set().union(*(set(out.data) for out in shown))
    assert kinds & {"application/vnd.plotly.v1+json", "text/html"}, "no figure and no table"
    assert os.listdir(tmp_path) in ([], ["ipython"])
