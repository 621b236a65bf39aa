"""The pictures of the documentation are what the code draws from what the code measures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
NAMES = sorted(path.stem for path in FOLDER.glob("*.svg"))
QUICK = ("move_map", "looking_ahead")
TOLERANCE = 0.01
"""Of an accuracy, a loss or a place; other machines round the last digits otherwise."""


@pytest.fixture(scope="module")
def make():
    sys.path.insert(0, str(FOLDER))
    try:
        import make
    finally:
        sys.path.pop(0)
    return make


def numbers(name):
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


def compare(now, then, where):
    """Assert that two measurements say the same, up to rounding."""
    if isinstance(then, dict):
        assert now.keys() == then.keys(), where
        for key in then:
            compare(now[key], then[key], f"{where}.{key}")
    elif isinstance(then, str) or (then and isinstance(then, list) and isinstance(then[0], str)):
        assert now == then, where
    else:
        np.testing.assert_allclose(now, then, atol=TOLERANCE, err_msg=where)


def test_every_picture_is_made_by_the_script(make):
    assert sorted(make.NAMES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_drawn_from_its_numbers(make, name):
    committed = (FOLDER / f"{name}.svg").read_text("utf-8")
    assert make.draw(name, numbers(name)) == committed, "run: python docs/pictures/make.py"
    assert len(committed) < 150_000
    root = ElementTree.fromstring(committed)
    assert root.find("{http://www.w3.org/2000/svg}title").text


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES],
)
def test_the_numbers_are_what_the_library_gives(make, name):
    compare(make.measure(name), numbers(name), name)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_shown_with_words(name):
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")]
    shown = [p for p in pages if f"pictures/{name}.svg" in p.read_text("utf-8")]
    assert shown, f"no page shows {name}"
