"""Colours can be distinguished in both themes (WCAG 2.2, success criterion 1.4.3)."""

import re
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest

TEXT = ("ink", "soft", "strategic", "blind", "good", "bad", "mark")
GROUNDS = ("page", "card", "tint", "warn", "grid")
STYLE = files("countermove.reporting").joinpath("assets", "page.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
    for block in re.findall(r":root[^{]*\{([^}]*)\}", STYLE)[:2]
)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_colour_stands_out_from_every_ground(theme):
    faint = {
        (text, ground): round(contrast(theme[text], theme[ground]), 2)
        for text, ground in product(TEXT, GROUNDS)
        if contrast(theme[text], theme[ground]) < 4.5
    }
    assert faint == {}


def test_both_themes_define_the_same_colours():
    assert set(LIGHT) == set(DARK)


def test_every_colour_a_figure_names_is_one_of_the_theme():
    folder = Path(str(files("countermove.reporting")))
    ours = [*folder.rglob("*.py"), folder / "assets" / "page.js"]
    named = {name for file in ours for name in re.findall(r"var:(\w+)", file.read_text())}
    assert named
    assert named <= set(LIGHT)
