"""The figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.reporting.tables import accuracy_rows

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

BLIND, STRATEGIC = "#9aa5b1", "#00796b"


def accuracy_figure(metrics: Mapping[str, Any]) -> Figure:
    """Draw accuracy of the blind and the strategic rule under each kind of people."""
    from plotly.graph_objects import Bar, Figure, Layout

    rows = accuracy_rows(metrics)
    people = [name for name, *_ in rows]
    bars = [
        Bar(
            name=name,
            x=people,
            y=heights,
            marker_color=colour,
            text=heights,
            texttemplate="%{y:.3f}",
        )
        for name, colour, heights in (
            ("blind", BLIND, [blind for _, blind, _ in rows]),
            ("strategic", STRATEGIC, [strategic for *_, strategic in rows]),
        )
    ]
    layout = Layout(
        barmode="group",
        template="plotly_white",
        title=f"Accuracy on the test rows of {metrics['dataset']}",
        yaxis={"title": "share judged right", "range": [0, 1]},
        xaxis={"title": "how people answer the rule"},
    )
    return Figure(bars, layout)


RULES = {
    "benchmark": ("nobody moves, blind", "#1f2933", "dot"),
    "blind": ("blind", BLIND, "solid"),
    "shifted_blind": ("blind, bar raised by the reach", "#b7791f", "dash"),
    "bias_search": ("blind, best intercept", "#805ad5", "dash"),
    "hardt": ("Hardt et al.", "#c53030", "solid"),
    "strategic": ("strategic", STRATEGIC, "solid"),
}
"""How the rules of a comparison are called and drawn."""


def sweep_figure(cells: pd.DataFrame, axis: str, title: str) -> Figure:
    """Draw the mean accuracy of every rule over splits, one panel per dataset."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    names = list(dict.fromkeys(cells["dataset"]))
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True)
    for column, name in enumerate(names, start=1):
        means = cells[cells["dataset"] == name].groupby(axis).mean(numeric_only=True)
        for rule, (label, colour, dash) in RULES.items():
            if rule in means:
                line = Scatter(
                    x=means.index.tolist(),
                    y=means[rule].tolist(),
                    name=label,
                    legendgroup=rule,
                    showlegend=column == 1,
                    line={"color": colour, "dash": dash},
                )
                figure.add_trace(line, row=1, col=column)
        named = {"steps": "steps of history", "strength": "strength of the regulariser"}
        words = named.get(axis, f"{axis} of the cost")
        figure.update_xaxes(title=words, row=1, col=column)
    figure.update_yaxes(title="share judged right after response", row=1, col=1)
    return figure.update_layout(title=title, template="plotly_white")
