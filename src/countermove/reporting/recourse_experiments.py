"""Experiments on recourse, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

LINES = {
    "f1": ("F1", "#2b6cb0"),
    "accuracy": ("accuracy", "#9aa5b1"),
    "recourse_all_linear_program": ("approved or recourse, linear program", "#00796b"),
    "recourse_all_gradient": ("approved or recourse, gradient", "#b7791f"),
    "recourse_neg_causal": ("recourse of the refused, causal", "#805ad5"),
    "disparity_gradient": ("reference group minus others, gradient", "#c53030"),
}
"""What is drawn where it was measured: column, how it is called, colour."""


def recourse_figure(means: pd.DataFrame, axis: str, title: str) -> Figure:
    """Draw every measure against ``axis``, one panel per table, one dash per rule."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    names = list(dict.fromkeys(means["dataset"]))
    rules = list(dict.fromkeys(means["rule"]))
    dashes = ("solid", "dash", "dot", "dashdot")
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names)
    # Against the threshold the rules are the points of one line, not lines of their own.
    groups = [rules] if axis == "threshold" else [[rule] for rule in rules]
    for column, name in enumerate(names, start=1):
        for position, group in enumerate(groups):
            part = means[(means["dataset"] == name) & means["rule"].isin(group)].sort_values(axis)
            for measure, (label, colour) in LINES.items():
                if measure not in part:
                    continue
                trace = Scatter(
                    x=part[axis].tolist(),
                    y=part[measure].tolist(),
                    name=label if len(groups) == 1 else f"{label}, {group[0]}",
                    legendgroup=f"{measure}{position}",
                    showlegend=column == 1,
                    line={"color": colour, "dash": dashes[position % len(dashes)]},
                )
                figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(title=axis.replace("_", " "), row=1, col=column)
    return figure.update_layout(
        title=title, template="plotly_white", legend={"orientation": "h", "y": -0.2}
    )
