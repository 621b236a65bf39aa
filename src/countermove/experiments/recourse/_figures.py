"""Experiments on recourse, drawn and tabled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove.experiments._drawing import GREY, OCHRE, OTHER, PUBLISHED, RIGHT, VIOLET
from countermove.experiments.protocol import PageTable, page_table
from countermove.reporting.words import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from plotly.graph_objects import Figure, Scatter


LINES = {
    "f1": ("F1", OTHER),
    "accuracy": ("accuracy", GREY),
    "recourse_all_linear_program": ("approved or recourse, linear program", RIGHT),
    "recourse_all_gradient": ("approved or recourse, gradient", OCHRE),
    "recourse_neg_causal": ("recourse of the refused, causal", VIOLET),
    "disparity_gradient": ("reference group minus others, gradient", PUBLISHED),
}
"""What is drawn where it was measured: column, how it is called, colour."""


BROAD = {"recourse_all_linear_program": 5}
DASHES = ("solid", "dash", "dot", "dashdot")
AXES = {
    "recourse_weight": "weight of the recourse term, λ",
    "largest_action": "largest action, standard deviations",
    "threshold": "threshold",
}
CELL = ("dataset", "recourse_weight", "largest_action", "rule")
HIDDEN = ("splits", "seconds", "n", "balanced_accuracy")
"""Columns of the means that the page leaves to the CSV file."""
NAMES = {"recourse_weight": "λ = ", "largest_action": "δ max = "}
PER_ROW = 2
"""Panels side by side."""


def recourse_figure(cells: pd.DataFrame, axis: str) -> Figure:
    """Draw every measure, one panel per table; what else varies has a dash each."""
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
        height=300 * rows + 80 + below,
        margin={"b": below},
        legend={"orientation": "h", "yref": "container", "y": 0.0, "yanchor": "bottom"},
    )


def _lines(cells: pd.DataFrame, axis: str) -> list[tuple[str, pd.DataFrame]]:
    # Against the threshold the rules are the points of one line, not lines of their own.
    rest = [one for one in CELL[1:] if one != axis and (axis, one) != ("threshold", "rule")]
    differ = [one for one in rest if len(set(cells[one])) > 1]
    if not differ:
        return [("", cells)]
    return [(_cell(part.iloc[0], differ), part) for _, part in cells.groupby(differ, sort=False)]


def _traces(part: pd.DataFrame, axis: str, said: str, dash: str, first: bool) -> Iterator[Scatter]:
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


def means_tables(means: pd.DataFrame) -> Iterator[PageTable]:
    """Yield a table of the means per dataset, one line per measure, one column per cell."""
    differs = means[list(CELL[1:])].ne(means[list(CELL[1:])].iloc[0]).any()
    varying = [axis for axis in CELL[1:] if differs[axis]] or ["recourse_weight"]
    for name, part in means.groupby("dataset", sort=False):
        rows = [
            [column.replace("_", " "), *(number(value) for value in part[column])]
            for column in part.columns
            if column not in (*CELL, *HIDDEN) and part[column].notna().any()
        ]
        head = ["", *(_cell(part.loc[i], varying) for i in part.index)]
        yield page_table(str(name), head, rows)


def _cell(row: pd.Series, varying: list[str]) -> str:
    return ", ".join(f"{NAMES.get(axis, '')}{row[axis]}" for axis in varying)


def examples_table(examples: pd.DataFrame) -> PageTable:
    """Return the examples of advice as a table."""
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
    return page_table("Examples of advice", head, rows)
