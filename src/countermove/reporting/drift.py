"""The part of a page that tells natural drift from an answer to our own rule."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from countermove.reporting.page import html_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SEEN, PREDICTED, ALARM = "#2b6cb0", "#7b8794", "#c53030"

ADVICE = {
    "keep": "Keep the rule: nothing happened that was not foreseen.",
    "retrain": "Retrain: something changed that is no answer to the rule.",
    "re-estimate costs": "Re-estimate the costs: people answer, but not as we say.",
    "investigate": "Investigate before anything else: what changed has no explanation yet.",
}


def drift_figure(report: Mapping[str, Any]) -> Figure:
    """Draw every column's shift as observed and as predicted, in standard deviations.

    Observed shifts carry two standard errors; columns that are not as predicted are red.
    """
    from plotly.graph_objects import Figure, Scatter

    # Largest at the top, which is where an axis of names ends.
    columns = sorted(report["features"], key=_size)
    names = [column["name"] for column in columns]
    figure = Figure()
    for column in columns:
        ends = [column["predicted"], column["observed"]]
        line = {"color": ALARM if column["unexpected"] else "#cbd2d9", "width": 2}
        figure.add_trace(
            Scatter(x=ends, y=[column["name"]] * 2, mode="lines", line=line, showlegend=False,
                    hoverinfo="skip")
        )  # fmt: skip
    figure.add_trace(
        Scatter(
            name="predicted by our response", x=[c["predicted"] for c in columns], y=names,
            mode="markers", marker={"symbol": "diamond-open", "size": 11, "color": PREDICTED},
        )
    )  # fmt: skip
    figure.add_trace(_observed(columns))
    figure.add_vline(0.0, line={"color": "#9aa5b1", "dash": "dot"}, layer="below")
    return figure.update_layout(
        template="plotly_white",
        title="Shift of every column since people saw the rule (red: not as predicted)",
        xaxis={"title": "shift of the mean, in standard deviations"},
        legend={"orientation": "h", "y": -0.2},
        height=180 + 26 * len(columns),
        margin={"l": 10, "r": 10},
    )


def drift_section(report: Mapping[str, Any]) -> str:
    """Return the section: what to do, why, the figure, and every column's tests."""
    drawing = drift_figure(report).to_html(full_html=False, include_plotlyjs=False)
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report["reasons"])
    sentences = "".join(f"<p>{escape(line)}</p>" for line in report["words"].splitlines()[1:])
    return f"""<h2>Drift: natural, or an answer to our rule?</h2>
<p><strong>{escape(ADVICE[report["recommendation"]])}</strong></p>
<ul>{reasons}</ul>
{_facts(report)}{drawing}
<details><summary>In words</summary>{sentences}</details>
<details><summary>Every column</summary>
<p class="note">Shifts in standard deviations; p-values are exact and adjusted for the number of
columns (Holm).</p>{_columns(report)}</details>{_oddities(report)}
<p class="note">{escape(report["certificate"]["words"])}.</p>"""


def _facts(report: Mapping[str, Any]) -> str:
    """Return one line per comparison, and the share explained."""
    against = (
        ("people before they answered", report["against_reference"]),
        ("where our response puts them", report["against_prediction"]),
        ("where people as estimated anew would stand", report["against_estimate"]),
    )
    lines = [
        (
            f"differs from {name}",
            "yes" if found["alarms"] else "not shown",
            f"{found['p_value']:.2g}",
            f"{found['joint_p_value']:.2g}",
            "–" if found["labels"] is None else f"{found['labels']['p_value']:.2g}",
        )
        for name, found in against
        if found is not None
    ]
    table = html_table(("new table", "verdict", "p, all tests", "p, joint", "p, labels"), lines)
    share = report["share_explained"]
    if share["value"] is None:
        return f'{table}<p class="note">Share explained: {escape(share["reason"])}.</p>'
    ends = f"{share['low']:.0%} to {share['high']:.0%}"
    return f"{table}<p>Our response explains {share['value']:.0%} of the shift ({ends}).</p>"


def _columns(report: Mapping[str, Any]) -> str:
    head = ("column", "observed", "predicted", "p, against before", "p, against predicted")
    return html_table(
        head,
        [
            (
                column["name"],
                f"{column['observed']:+.3f}",
                f"{column['predicted']:+.3f}",
                f"{column['p_reference']:.2g}",
                f"{column['p_prediction']:.2g}",
            )
            for column in sorted(report["features"], key=_size, reverse=True)
        ],
    )


def _oddities(report: Mapping[str, Any]) -> str:
    items = "".join(
        f"<li>{escape(odd['column'])}: {escape(odd['words'])}</li>" for odd in report["oddities"]
    )
    return f"<p>What no drift explains:</p><ul>{items}</ul>" if items else ""


def _observed(columns: list[Mapping[str, Any]]) -> Any:
    from plotly.graph_objects import Scatter

    colours = [ALARM if column["unexpected"] else SEEN for column in columns]
    return Scatter(
        name="observed (two standard errors)",
        x=[column["observed"] for column in columns],
        y=[column["name"] for column in columns],
        mode="markers",
        marker={"size": 9, "color": colours},
        error_x={
            "type": "data",
            "array": [2.0 * column["error"] for column in columns],
            "color": SEEN,
            "thickness": 1,
        },
        customdata=[column["p_prediction"] for column in columns],
        hovertemplate="%{x:+.3f}, p = %{customdata:.2g}<extra></extra>",
    )


def _size(column: Mapping[str, Any]) -> float:
    return max(abs(float(column["observed"])), abs(float(column["predicted"])))
