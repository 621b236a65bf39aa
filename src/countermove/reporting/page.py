"""One HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from countermove.reporting.social import BY_GROUP, RULES, group_rows, social_rows
from countermove.reporting.tables import accuracy_rows, left_out_lines

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1f2933; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: left; padding: .35rem .9rem; border-bottom: 1px solid #d9e2ec; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.note { color: #52606d; }
"""

CLAIMS = {
    "recourse_miss_rate": "share of people without a way to approval",
    "recourse_miss_rate_after_response": (
        "share of people without a way to approval once they have answered the rule"
    ),
    "refused_miss_rate": "share of the refused without a way to approval, as asked",
    "refused_without_recourse": "share of the refused without a way to approval",
    "error_after_response": "share judged wrongly once people have moved",
}


def report_page(
    metrics: Mapping[str, Any],
    certificates: Iterable[Mapping[str, Any]],
    figure: Figure,
    sections: Iterable[str] = (),
) -> str:
    """Return the page: accuracy, what the rule asks of people, certificates, provenance.

    ``sections`` are further parts in HTML; their figures use the library of the first.
    """
    title = f"Countermove: {escape(metrics['dataset'])}"
    accuracy = html_table(
        ("how people answer", "blind", "strategic"),
        [
            (name, f"{blind:.3f}", f"{strategic:.3f}")
            for name, blind, strategic in accuracy_rows(metrics)
        ],
    )
    social = html_table(("once people have moved", *RULES), social_rows(metrics))
    groups = "".join(
        html_table((f"{measure} of", "people", *RULES), group_rows(metrics, measure))
        for measure in BY_GROUP
        if metrics["social"]["by_group"]
    )
    claims = html_table(
        ("claim", "bound", "holds with probability", "rows"),
        [claim_row(claim) for claim in certificates],
    )
    alone = metrics["accuracy"]["uncalibrated"]["strategic"]
    left_out = "".join(
        f'<p class="note">Not evaluated: {escape(line)}.</p>' for line in left_out_lines(metrics)
    )
    drawing = figure.to_html(full_html=False, include_plotlyjs=True)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>
<body><h1>{title}</h1>
<p>Accuracy on {metrics["rows"]["test"]:,} test rows, before and after people answer the rule.
The threshold on the probability is {metrics["threshold"]:.3f}; without the promise of recourse the
strategic rule would have been right for {alone:.3f} of the people once they had moved.</p>
{accuracy}{left_out}{drawing}
<h2>What the rule asks of people</h2>
<p>Once they have answered it as assumed; the calibrated rule is the one published.</p>
{social}
<h2>Who carries the burden</h2>{groups or "<p>No column of the table is marked sensitive.</p>"}
<h2>What is promised</h2>{claims}
{"".join(sections)}
<p class="note">Seed {metrics["seed"]}, data {metrics["data_hash"][:12]}, Countermove
{escape(metrics["versions"]["countermove"])}.</p>
</body></html>
"""


def figure_page(figure: Figure) -> str:
    """Return a page with one figure."""
    page: str = figure.to_html(full_html=True, include_plotlyjs=True)
    return page


def claim_row(claim: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return one line of the promises; a promise to one group names it in brackets."""
    kind, _, group = claim["name"].partition("[")
    what = CLAIMS[kind] + (f" ({group.removesuffix(']')})" if group else "")
    rows = f"{claim['n']:,}"
    if claim["value"] is None:
        return what, f"not promised: {claim['reason']}", "", rows
    side = "most" if claim["direction"] == "upper" else "least"
    return what, f"at {side} {claim['value']:.3f}", f"{claim['level']:.0%}", rows


def html_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table; every cell is escaped, all but the first are numbers."""
    header = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="number">{escape(cell)}</td>' if place else f"<td>{escape(cell)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{header}</tr>{body}</table>"
