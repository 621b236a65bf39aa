"""Experiments on recourse, drawn and tabled."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from countermove.reporting.numbers import number
from countermove.reporting.page import STYLE, html_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from plotly.graph_objects import Figure, Scatter


LINES = {
    "f1": ("F1", "#2b6cb0"),
    "accuracy": ("accuracy", "#9aa5b1"),
    "recourse_all_linear_program": ("approved or recourse, linear program", "#00796b"),
    "recourse_all_gradient": ("approved or recourse, gradient", "#b7791f"),
    "recourse_neg_causal": ("recourse of the refused, causal", "#805ad5"),
    "disparity_gradient": ("reference group minus others, gradient", "#c53030"),
}
"""What is drawn where it was measured: column, how it is called, colour."""


BROAD = {"recourse_all_linear_program": 5}
DASHES = ("solid", "dash", "dot", "dashdot")
AXES = {
    "recourse_weight": "weight of the recourse term, λ",
    "largest_action": "largest action, standard deviations",
    "threshold": "threshold",
}
PER_ROW = 2
"""Panels side by side."""


def recourse_figure(cells: pd.DataFrame, axis: str, title: str) -> Figure:
    """Draw the mean over splits of every measure against ``axis``, with standard errors.

    One panel per table; what else varies (rule, weight, size of actions) has a dash each.
    """
    from plotly.subplots import make_subplots

    names = list(dict.fromkeys(cells["dataset"]))
    rows = -(-len(names) // PER_ROW)
    columns = min(len(names), PER_ROW)
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=names, vertical_spacing=0.3 / rows
    )
    lines = _lines(cells, axis)
    for panel, name in enumerate(names):
        place = {"row": panel // PER_ROW + 1, "col": panel % PER_ROW + 1}
        for position, (said, line) in enumerate(lines):
            part = line[line["dataset"] == name]
            for trace in _traces(part, axis, said, DASHES[position % len(DASHES)], panel == 0):
                figure.add_trace(trace, **place)
        figure.update_xaxes(title=AXES[axis], **place)
    below = 80 + 8 * (len(figure.data) // len(names))
    return figure.update_layout(
        title=title,
        template="plotly_white",
        height=300 * rows + 80 + below,
        margin={"b": below},
        legend={"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom"},
    )


def _lines(cells: pd.DataFrame, axis: str) -> list[tuple[str, pd.DataFrame]]:
    """Return the cells of each line and what tells it from the others, in words."""
    # Against the threshold the rules are the points of one line, not lines of their own.
    rest = [one for one in CELL[1:] if one != axis and (axis, one) != ("threshold", "rule")]
    differ = [one for one in rest if len(set(cells[one])) > 1]
    if not differ:
        return [("", cells)]
    return [(_cell(part.iloc[0], differ), part) for _, part in cells.groupby(differ, sort=False)]


def _traces(part: pd.DataFrame, axis: str, said: str, dash: str, first: bool) -> Iterator[Scatter]:
    """Yield the lines of one panel, one per measure that was taken."""
    from plotly.graph_objects import Scatter

    grouped = part.groupby(axis)
    for measure, (label, colour) in LINES.items():
        if measure not in part or part[measure].isna().all():
            continue
        mean = grouped[measure].mean()
        yield Scatter(
            x=mean.index.tolist(),
            y=mean.tolist(),
            error_y={"array": grouped[measure].sem().fillna(0.0).tolist(), "thickness": 1},
            name=f"{label}, {said}" if said else label,
            legendgroup=f"{measure} {said}",
            showlegend=first,
            # Searches that find the same lie on each other: the first is drawn broad.
            line={"color": colour, "dash": dash, "width": BROAD.get(measure, 2)},
        )


CELL = ("dataset", "recourse_weight", "largest_action", "rule")
SPREAD = "body { max-width: 76rem; } div.wide { overflow-x: auto; font-size: .85rem; }"
HIDDEN = ("splits", "seconds", "n", "balanced_accuracy")
"""Columns of the means that the page leaves to the CSV file."""


def recourse_page(figure: Figure, means: pd.DataFrame, examples: pd.DataFrame) -> str:
    """Return the page: examples of advice if there are any, the figure, and every mean."""
    title = escape(str(figure.layout.title.text))
    drawing = figure.to_html(full_html=False, include_plotlyjs=True)
    splits = int(means["splits"].max())
    shown = "" if examples.empty else f"<h2>Examples of advice</h2>{_examples(examples)}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{STYLE}{SPREAD}</style></head><body><h1>{title}</h1>
<p>Test rows, {f"averaged over {splits} splits" if splits > 1 else "one split"}.</p>
{shown}{drawing}{_means(means)}
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
            [column.replace("_", " "), *(number(value) for value in part[column])]
            for column in part.columns
            if column not in (*CELL, *HIDDEN) and part[column].notna().any()
        ]
        parts.append(
            f'<h2>{escape(str(name))}</h2><div class="wide">{html_table(head, rows)}</div>'
        )
    return "".join(parts)


def _cell(row: pd.Series, varying: list[str]) -> str:
    return ", ".join(f"{NAMES.get(axis, '')}{row[axis]}" for axis in varying)


NAMES = {"recourse_weight": "λ = ", "largest_action": "δ max = "}


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
    return html_table(head, rows)
