"""The part of a page that separates natural drift from a response to our own rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from countermove.reporting.citing import Row
from countermove.reporting.rendering import figure_data, render
from countermove.reporting.words import MISSING

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SEEN, PREDICTED, ALARM = "#2b6cb0", "#7b8794", "#c53030"
AGAINST = {
    "against_reference": "people before they responded",
    "against_prediction": "where our response puts them",
    "against_estimate": "where people as estimated again would stand",
}
"""What a new table is compared with."""


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


def drift_section(report: Mapping[str, Any]) -> Markup:
    """Return the section: what to do, why, the figure, and every column's tests.

    Parameters
    ----------
    report
        A drift report as ``DriftReport.to_json`` gives it.

    Returns
    -------
    Markup
        HTML for a page that extends ``base.html``, whose script draws the figure.
    """
    section = render(
        "drift.html",
        recommendation=report["recommendation"],
        reasons=report["reasons"],
        comparisons=_comparisons(report),
        explained=_explained(report["share_explained"]),
        figure=figure_data(drift_figure(report)),
        sentences=report["words"].splitlines()[1:],
        columns=_columns(report),
        oddities=report["oddities"],
        certificate=report["certificate"]["words"],
    )
    return Markup(section)


def _comparisons(report: Mapping[str, Any]) -> list[Row]:
    """Return one line per comparison that was made."""
    return [
        (
            f"differs from {words}",
            "yes" if found["alarms"] else "not shown",
            f"{found['p_value']:.2g}",
            f"{found['joint_p_value']:.2g}",
            MISSING if found["labels"] is None else f"{found['labels']['p_value']:.2g}",
        )
        for key, words in AGAINST.items()
        if (found := report[key]) is not None
    ]


def _explained(share: Mapping[str, Any]) -> dict[str, Any]:
    """Return the share of the shift that our response explains, or why there is none."""
    if share["value"] is None:
        return {"value": None, "reason": share["reason"]}
    return {key: f"{share[key]:.0%}" for key in ("value", "low", "high")}


def _columns(report: Mapping[str, Any]) -> list[Row]:
    return [
        (
            column["name"],
            f"{column['observed']:+.3f}",
            f"{column['predicted']:+.3f}",
            f"{column['p_reference']:.2g}",
            f"{column['p_prediction']:.2g}",
        )
        for column in sorted(report["features"], key=_size, reverse=True)
    ]


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
