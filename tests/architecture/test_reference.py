"""The reference lists every public name, and its formulas are formulas."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
ROOMS = (
    *("people", "scores", "response", "training", "learning"),
    *("recourse", "transfer", "dynamics", "execution"),
)


def documented(room: str) -> list[str]:
    """Return the modules whose public names a page lists."""
    return re.findall(r"^::: ([\w.]+)$", (PAGES / f"{room}.md").read_text("utf-8"), re.MULTILINE)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in PAGES.glob("*.md"):
        assert f"reference/{page.name}" in navigation


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_documented_by_its_public_names(room):
    assert documented(room)[0] == f"countermove.{room}"
    module = importlib.import_module(f"countermove.{room}")
    for name in module.__all__:
        assert getattr(module, name).__doc__, f"{room}.{name} says nothing"


def test_formulas_of_docstrings_become_formulas_of_pages():
    sys.path.insert(0, str(ROOT / "docs" / "hooks"))
    try:
        from docstring_math import markdown
    finally:
        sys.path.pop(0)
    text = "One.\n\n.. math:: a = b, \\qquad\n          c = d\n\nThen :math:`x`, see :func:`f`.\n"
    assert markdown(text) == "One.\n\n\n$$ a = b, \\qquad c = d $$\n\n\nThen \\(x\\), see `f`.\n"
    assert markdown(".. math:: x") == "\n$$ x $$\n\n"
