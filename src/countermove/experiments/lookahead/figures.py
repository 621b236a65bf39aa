"""Experiments on people who look ahead: drawn, as a page, and as facts."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from countermove.experiments.transfer.figures import (
    AGAIN,
    DARK,
    OTHER,
    PUBLISHED,
    RIGHT,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


COLOURS = (DARK, OTHER, RIGHT, AGAIN, PUBLISHED)


def retraining_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
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


def rates_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
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


def beliefs_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
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


def importance_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
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


def coordination_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the benefit and its supremum over the penalty, and the alignment beside it."""
    from plotly.subplots import make_subplots

    alignment = "alignment, as published" if "steering" not in cells else "alignment Φ"
    figure = make_subplots(rows=1, cols=2, subplot_titles=("benefit of coordination", alignment))
    for (name, part), colour in _coloured(cells, "moved"):
        figure.add_trace(_line(part["penalty"], part["benefit"], str(name), colour), row=1, col=1)
        if "benefit_supremum" in part:
            limit = _line(part["penalty"], part["benefit_supremum"], f"{name}: supremum", colour)
            figure.add_trace(limit.update(line={"dash": "dot"}, mode="lines"), row=1, col=1)
        turned = _line(part["penalty"], part["alignment"], str(name), colour).update(
            showlegend=False
        )
        figure.add_trace(turned, row=1, col=2)
    return figure.update_xaxes(title="weight of the model's squared length")


def size_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the gain (the utility, as published) over the size, on a logarithmic scale."""
    from plotly.graph_objects import Figure

    value = "gain" if "gain" in means else "utility"
    figure = Figure()
    for (name, part), colour in _coloured(means, "moved"):
        line = _line(part["participation"], part[value], str(name), colour)
        figure.add_trace(line.update(error_y={"array": part[f"{value}_sd"].fillna(0.0).tolist()}))
        if "gain_of_all" in part:
            limit = _line(part["participation"], part["gain_of_all"], f"{name}: everybody", colour)
            figure.add_trace(limit.update(line={"dash": "dot"}, mode="lines"))
    titles = {"gain": "gain of a member's loss", "utility": "members' loss"}
    figure.update_yaxes(title=titles[value], type="log" if value == "gain" else "linear")
    return figure.update_xaxes(title="participation")


def scaling_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the alignment of a fixed strategy and the utility over the size."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("alignment Ψ", "utility of a member"))
    mean = cells.groupby(["strength", "participation"], as_index=False, sort=False).mean(
        numeric_only=True
    )
    for (strength, part), colour in _coloured(mean, "strength"):
        label = f"strength {strength:g}"
        figure.add_trace(_line(part["participation"], part["psi"], label, colour), row=1, col=1)
        printed = _line(part["participation"], part["psi_printed"], f"{label}, as printed", colour)
        figure.add_trace(printed.update(line={"dash": "dot"}, mode="lines"), row=1, col=1)
        worth = _line(part["participation"], part["utility"], label, colour).update(
            showlegend=False
        )
        figure.add_trace(worth, row=1, col=2)
        stops = means.loc[means["strength"] == strength, "stops_paying_at"]
        if len(stops) and stops.iloc[0] == stops.iloc[0]:
            figure.add_vline(float(stops.iloc[0]), line={"color": colour, "dash": "dash"})
    figure.add_hline(0.0, line={"color": DARK, "width": 1}, row=1, col=1)
    return figure.update_xaxes(title="participation of those with the unfavourable outcome")
