"""Tables for every page, and the style and frame of the simple ones."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from countermove.reporting.page.markup import Markup, html

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1f2933; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; color: #52606d; padding-bottom: .35rem; }
th, td { text-align: left; padding: .35rem .9rem; border-bottom: 1px solid #d9e2ec; }
tbody th { font-weight: normal; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
.note { color: #52606d; }
"""


def html_table(head: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> Markup:
    """Return an HTML table: the first cell of a row is its heading, the others are numbers.

    Cells are escaped unless they are `Markup`. A table with a caption scrolls inside a box of
    its own that the keyboard reaches.
    """
    header = "".join(f'<th scope="col">{html(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{html(cell)}</td>'
            if place
            else f'<th scope="row">{html(cell)}</th>'
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    said = f"<caption><span>{escape(caption)}</span></caption>" if caption else ""
    table = f"<table>{said}<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    if not caption:
        return Markup(table)
    box = f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
    return Markup(f"{box}{table}</div>")


def figure_page(figure: Figure) -> str:
    """Return a page with one figure."""
    page: str = figure.to_html(full_html=True, include_plotlyjs=True)
    return page
