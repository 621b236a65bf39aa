"""The cells behind the papers' pages are tables, and a page links to each of them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

PAPERS = Path(__file__).parents[2] / "docs" / "papers"
CELLS = sorted((PAPERS / "cells").glob("*.csv"))
LINKED = {
    name
    for page in PAPERS.glob("*.md")
    for name in re.findall(r"\(cells/(\w+\.csv)\)", page.read_text("utf-8"))
}


def test_every_table_of_cells_is_linked_and_there():
    assert {path.name for path in CELLS} == LINKED


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_the_cells_are_a_table(path):
    with path.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    assert rows
    assert {len(row) for row in rows} == {len(head)}
