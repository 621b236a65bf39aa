"""Experiments on recourse, drawn and tabled."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from countermove.reporting.page import STYLE, table

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


CELL = ("dataset", "recourse_weight", "largest_action", "rule")
SPREAD = "body { max-width: 76rem; } div.wide { overflow-x: auto; font-size: .85rem; }"
HIDDEN = ("splits", "seconds", "n", "balanced_accuracy")
"""Columns of the means that the page leaves to the CSV file."""


def recourse_page(figure: Figure, means: pd.DataFrame, examples: pd.DataFrame) -> str:
    """Return the page: the figure, every mean, and examples of advice if there are any."""
    title = escape(str(figure.layout.title.text))
    drawing = figure.to_html(full_html=False, include_plotlyjs=True)
    splits = int(means["splits"].max())
    shown = "" if examples.empty else f"<h2>Examples of advice</h2>{_examples(examples)}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{STYLE}{SPREAD}</style></head><body><h1>{title}</h1>
<p>Test rows, averaged over {splits} split{"s" if splits > 1 else ""}.</p>
{drawing}{_means(means)}{shown}
</body></html>
"""


def _means(means: pd.DataFrame) -> str:
    """Return a table of the means per dataset, one line per measure, one column per cell."""
    differs = means[list(CELL[1:])].ne(means[list(CELL[1:])].iloc[0]).any()
    varying = [axis for axis in CELL[1:] if differs[axis]] or ["recourse_weight"]
    parts = []
    for name, part in means.groupby("dataset", sort=False):
        head = ["", *(_cell(part.loc[i], varying) for i in part.index)]
        rows = [
            [column.replace("_", " "), *(_number(value) for value in part[column])]
            for column in part.columns
            if column not in (*CELL, *HIDDEN) and part[column].notna().any()
        ]
        parts.append(f'<h2>{escape(str(name))}</h2><div class="wide">{table(head, rows)}</div>')
    return "".join(parts)


def _cell(row: pd.Series, varying: list[str]) -> str:
    return ", ".join(f"{NAMES.get(axis, '')}{row[axis]}" for axis in varying)


NAMES = {"recourse_weight": "λ = ", "largest_action": "δ max = "}


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"


def _examples(examples: pd.DataFrame) -> str:
    head = ("table", "λ", "person", "feature", "before", "after", "change")
    rows = [
        (
            str(row["dataset"]),
            f"{row['recourse_weight']:g}",
            str(row["person"]),
            str(row["feature"]),
            f"{row['before']:.3f}",
            f"{row['after']:.3f}",
            f"{row['change']:+.3f}",
        )
        for _, row in examples.iterrows()
    ]
    return table(head, rows)
