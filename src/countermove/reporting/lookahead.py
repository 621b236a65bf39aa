"""Experiments on people who look ahead: drawn, as a page, and as facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import TYPE_CHECKING, Any

from countermove.reporting.lookahead_collective import COLLECTIVE_DRAWN
from countermove.reporting.transfer_experiments import (
    AGAIN,
    DARK,
    OTHER,
    PUBLISHED,
    RIGHT,
    experiment_page,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from countermove.production.lookahead_table import LookaheadTable

COLOURS = (DARK, OTHER, RIGHT, AGAIN, PUBLISHED)


def lookahead_figure(kind: str, cells: pd.DataFrame, means: pd.DataFrame, title: str) -> Figure:
    """Draw an experiment by its kind."""
    return (
        DRAWN[kind](cells, means)
        .update_layout(
            title=title.replace("_", " ").capitalize().replace("Lookahead", "Look-ahead"),
            template="plotly_white",
            legend={"orientation": "h", "y": -0.2},
        )
    )  # fmt: skip


def lookahead_page(figure: Figure, means: pd.DataFrame) -> str:
    """Return a page with the figure and the table under it; small numbers keep their digits."""
    shown = means.copy()
    for column in shown.select_dtypes("float"):
        shown[column] = ["" if isnan(value) else f"{value:.4g}" for value in shown[column]]
    return experiment_page(figure, shown)


def lookahead_facts(
    people: LookaheadTable, means: pd.DataFrame, said: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return what was run, on whom, and what came out, JSON-ready (None for no number)."""
    import pandas as pd

    rows = means.astype(object).where(pd.notna(means), None)
    return {
        "experiment": dict(said["experiment"]),
        "name": said["name"],
        "dataset": said["dataset"],
        "preparation": said["preparation"],
        "people": people.crowd.n,
        "favourable": float(people.crowd.mean(people.crowd.y)),
        "columns": list(people.names),
        "seed": seed,
        "results": rows.to_dict("records"),
    }


def _figure_1(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the gaps over rounds on a logarithmic scale, with one standard deviation."""
    from plotly.graph_objects import Figure

    figure = Figure()
    for (mixture, part), colour in _coloured(means[means["gap_scaled"] > 0.0], "mixture"):
        line = _line(part["round"], part["gap_scaled"], str(mixture), colour)
        spread = part["gap_scaled_sd"].fillna(0.0)
        # A logarithmic axis has no room for a mean less its deviation where that is below 0.
        below = spread.clip(upper=0.9 * part["gap_scaled"])
        line.error_y = {
            "array": spread.tolist(), "arrayminus": below.tolist(), "symmetric": False,
            "thickness": 1,
        }  # fmt: skip
        figure.add_trace(line)
    figure.update_yaxes(
        type="log", exponentformat="power", title="gap over length of the first model",
    )  # fmt: skip
    return figure.update_xaxes(title="round").update_layout(height=600)


def _theorem_3(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw measured and predicted rates, and how far stable models lie from level 1's."""
    from plotly.graph_objects import Bar
    from plotly.subplots import make_subplots

    strengths = list(dict.fromkeys(means["response_strength"]))
    figure = make_subplots(
        rows=2, cols=len(strengths), shared_xaxes=True, vertical_spacing=0.08,
        subplot_titles=[f"response strength {value:g}" for value in strengths],
    )  # fmt: skip
    for column, strength in enumerate(strengths, start=1):
        part = means[means["response_strength"] == strength]
        where = part["mixture"].tolist()
        for name, label, colour in (
            ("measured", "above: last ratio of gaps", DARK),
            ("predicted", "predicted from level 1 (above 1: unstable)", OTHER),
            ("radius", "spectral radius at the stable model", RIGHT),
        ):
            bar = Bar(
                x=where, y=_numbers(part[name]), name=label, legendgroup=label,
                showlegend=column == 1, marker_color=colour, hovertext=part["status"].tolist(),
            )  # fmt: skip
            figure.add_trace(bar, row=1, col=column)
        apart = Bar(
            x=where, y=_numbers(part["distance"]),
            name="below: distance from level 1's stable model",
            legendgroup="apart", showlegend=column == 1, marker_color=PUBLISHED,
            hovertext=part["status"].tolist(),
        )  # fmt: skip
        figure.add_trace(apart, row=2, col=column)
    figure.update_yaxes(title="rate a round", row=1, col=1)
    figure.update_yaxes(title="distance", row=2, col=1)
    return figure.update_layout(height=750, barmode="group")


def _beliefs(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw how far wrong beliefs take the stable model, and what people gain."""
    from plotly.graph_objects import Bar
    from plotly.subplots import make_subplots

    names = [
        "right" if belief == "right"
        else f"{value:g} × penalty" if belief == "penalty" else f"{value:g} rows"
        for belief, value in zip(means["belief"], means["value"], strict=True)
    ]  # fmt: skip
    figure = make_subplots(
        rows=1, cols=2,
        subplot_titles=("distance from the stable model of people who know", "gain of a person"),
    )  # fmt: skip
    for column, (name, colour) in enumerate((("distance", DARK), ("gain", RIGHT)), start=1):
        bar = Bar(
            x=names, y=_numbers(means[name]), marker_color=colour, showlegend=False,
            error_y={"array": means[f"{name}_sd"].fillna(0.0).tolist()},
        )  # fmt: skip
        figure.add_trace(bar, row=1, col=column)
    return figure


def _figure_5(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the drops, with one standard deviation."""
    from plotly.graph_objects import Bar, Figure

    bars = Bar(
        x=means["drop"].tolist(), y=means["column"].tolist(), orientation="h",
        marker_color=OTHER, error_x={"array": means["drop_sd"].fillna(0.0).tolist()},
    )  # fmt: skip
    figure = Figure([bars]).update_yaxes(autorange="reversed")
    return figure.update_xaxes(title="test accuracy lost when the column is noise")


def _coloured(means: pd.DataFrame, by: str) -> zip[tuple[Any, str]]:
    groups = list(means.groupby(by, sort=False))
    return zip(groups, [COLOURS[i % len(COLOURS)] for i in range(len(groups))], strict=True)


def _line(x: pd.Series, y: pd.Series, label: str, colour: str) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=x.tolist(), y=y.tolist(), name=label, mode="lines+markers", line={"color": colour}
    )


def _numbers(values: pd.Series) -> list[float | None]:
    return [None if isnan(value) else float(value) for value in values.astype(float)]


DRAWN: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Figure]] = {
    "figure_1": _figure_1,
    "theorem_3": _theorem_3,
    "beliefs": _beliefs,
    "figure_5": _figure_5,
    **COLLECTIVE_DRAWN,
}
"""By kind of experiment."""
