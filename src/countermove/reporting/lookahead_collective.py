"""Experiments on collectives that look ahead, drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from countermove.reporting.transfer_experiments import AGAIN, DARK, OTHER, PUBLISHED, RIGHT

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

COLOURS = (DARK, OTHER, RIGHT, AGAIN, PUBLISHED)


def _figure_2(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the benefit and its supremum over the penalty, and the alignment beside it."""
    from plotly.subplots import make_subplots

    alignment = "alignment, as published" if "steering" not in cells else "alignment Φ"
    figure = make_subplots(rows=1, cols=2, subplot_titles=("benefit of coordination", alignment))
    for colour, (name, part) in _coloured(cells, "moved"):
        figure.add_trace(_line(part, "penalty", "benefit", str(name), colour), row=1, col=1)
        if "benefit_supremum" in part:
            limit = _line(part, "penalty", "benefit_supremum", f"{name}: supremum", colour)
            figure.add_trace(limit.update(line={"dash": "dot"}, mode="lines"), row=1, col=1)
        turned = _line(part, "penalty", "alignment", str(name), colour).update(showlegend=False)
        figure.add_trace(turned, row=1, col=2)
    return figure.update_xaxes(title="weight of the model's squared length")


def _figure_3(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the gain (the utility, as published) over the size, on a logarithmic scale."""
    from plotly.graph_objects import Figure

    value = "gain" if "gain" in means else "utility"
    figure = Figure()
    for colour, (name, part) in _coloured(means, "moved"):
        line = _line(part, "participation", value, str(name), colour)
        figure.add_trace(line.update(error_y={"array": part[f"{value}_sd"].fillna(0.0).tolist()}))
        if "gain_of_all" in part:
            limit = _line(part, "participation", "gain_of_all", f"{name}: everybody", colour)
            figure.add_trace(limit.update(line={"dash": "dot"}, mode="lines"))
    titles = {"gain": "gain of a member's loss", "utility": "members' loss"}
    figure.update_yaxes(title=titles[value], type="log" if value == "gain" else "linear")
    return figure.update_xaxes(title="participation")


def _figure_4(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the alignment of a fixed strategy and the utility over the size."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("alignment Ψ", "utility of a member"))
    mean = cells.groupby(["strength", "participation"], as_index=False, sort=False).mean(
        numeric_only=True
    )
    for colour, (strength, part) in _coloured(mean, "strength"):
        label = f"strength {strength:g}"
        figure.add_trace(_line(part, "participation", "psi", label, colour), row=1, col=1)
        printed = _line(part, "participation", "psi_printed", f"{label}, as printed", colour)
        figure.add_trace(printed.update(line={"dash": "dot"}, mode="lines"), row=1, col=1)
        worth = _line(part, "participation", "utility", label, colour).update(showlegend=False)
        figure.add_trace(worth, row=1, col=2)
        stops = means.loc[means["strength"] == strength, "stops_paying_at"]
        if len(stops) and stops.iloc[0] == stops.iloc[0]:
            figure.add_vline(float(stops.iloc[0]), line={"color": colour, "dash": "dash"})
    figure.add_hline(0.0, line={"color": DARK, "width": 1}, row=1, col=1)
    return figure.update_xaxes(title="participation of those with the unfavourable outcome")


def _coloured(table: pd.DataFrame, by: str) -> list[tuple[str, Any]]:
    groups = list(table.groupby(by, sort=False))
    return [(COLOURS[i % len(COLOURS)], group) for i, group in enumerate(groups)]


def _line(part: pd.DataFrame, x: str, y: str, label: str, colour: str) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=part[x].tolist(),
        y=part[y].tolist(),
        name=label,
        mode="lines+markers",
        line={"color": colour},
    )


COLLECTIVE_DRAWN: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Figure]] = {
    "figure_2": _figure_2,
    "figure_3": _figure_3,
    "figure_4": _figure_4,
}
"""By kind of experiment."""
