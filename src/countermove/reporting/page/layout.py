"""The frame of the report: one document, its sections, and figures with a table behind each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Any

from countermove.reporting._rendering import asset, plotting_script
from countermove.reporting.page.markup import Markup, folded, html, joined

SHEET = "The numbers of this figure"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
)
"""What the page may do: nothing that leaves it."""


@dataclass(frozen=True)
class Section:
    """One part of the page: its anchor, its heading, its name in the contents, and its HTML."""

    anchor: str
    title: str
    short: str
    body: Markup

    def html(self) -> Markup:
        """Return the section as it stands in the page."""
        anchor = escape(self.anchor)
        head = f'<h2 id="{anchor}-title">{escape(self.title)}</h2>'
        return Markup(
            f'<section id="{anchor}" aria-labelledby="{anchor}-title">{head}{self.body}</section>'
        )


def chart(
    anchor: str, caption: str, said: str, spec: Mapping[str, Any], table: Markup, height: int = 320
) -> Markup:
    """Return a figure: the drawing, what it shows in words, its caption, and its numbers.

    Parameters
    ----------
    anchor
        Names the figure within the page.
    caption, said
        What stands below it, and what a screen reader says instead of it.
    spec
        ``data`` and ``layout`` for plotly; a colour ``var:<name>`` is that of the theme. What
        ``narrow`` holds replaces parts of the layout on a narrow screen.
    table
        The same numbers as a table.
    height
        In pixels.
    """
    return Markup(
        f'<figure class="chart" id="{escape(anchor)}">'
        f'<div class="plot" role="img" aria-label="{escape(said)}" style="min-height:{height}px">'
        f"</div>{embedded(dict(spec) | {'height': height}, 'plot-data')}"
        f"<figcaption>{html(caption)}</figcaption>{folded(SHEET, table)}</figure>"
    )


def embedded(content: Any, kind: str) -> Markup:
    """Return data for the page's script; no text in it can end the element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" class="{kind}">{text}</script>')


def grid(parts: Iterable[str]) -> Markup:
    """Return parts side by side where there is room."""
    return Markup(f'<div class="grid">{joined(parts)}</div>')


def lines_of(text: str, width: int = 22) -> str:
    """Return an axis label broken into lines, escaped for plotly, which reads a little HTML."""
    return "<br>".join(escape(line, quote=False) for line in wrap(text, width)) or " "


def document(title: str, lead: Markup, sections: Sequence[Section], foot: Markup) -> str:
    """Return the page: style, contents, sections, the plotting script once, and ours."""
    contents = "".join(
        f'<li><a href="#{escape(part.anchor)}">{escape(part.short)}</a></li>' for part in sections
    )
    body = "\n".join(part.html() for part in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<title>{escape(title)}</title>
<style>{asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<header><div class="inner">
<p class="brand">Countermove</p><h1>{escape(title)}</h1>{lead}
</div></header>
<div class="columns">
<nav aria-label="Sections of this report"><ol>{contents}</ol></nav>
<main id="main" tabindex="-1">
{body}
</main>
</div>
<footer><div class="inner">{foot}</div></footer>
<script type="text/plain" id="plotting">{plotting_script()}</script>
<script>{asset("page.js")}</script>
</body>
</html>
"""
