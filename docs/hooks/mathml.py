"""Write formulas as MathML when the pages are built, so that they need no script and no network."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<latex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)

ONE_WORD = re.compile(r"\\arg\s*\\(max|min)(?![a-zA-Z])")
"""Two operators to the converter, which knows no ``\\arg``; one to the reader."""


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(_mathml, content)


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match["open"] == "[" else "inline"
    latex = ONE_WORD.sub(r"\\operatorname{arg\1}", html.unescape(match["latex"]))
    formula = convert(latex, display=display)
    # On a narrow screen a long formula scrolls by itself instead of widening the page.
    return f'<div style="overflow-x: auto">{formula}</div>' if display == "block" else formula
