"""Experiments on transferability, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


PUBLISHED, AGAIN, RIGHT, OTHER, DARK = "#c53030", "#dd9c3c", "#00796b", "#2b6cb0", "#1f2933"
"""Colours: as published, that on fresh draws, what holds, a second thing that holds, truth."""


def lemma_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw densities after response, one panel per threshold."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    thresholds = list(dict.fromkeys(cells["threshold"]))
    readings = list(dict.fromkeys(cells["reading"]))
    colours = dict(zip(readings, (RIGHT, PUBLISHED, AGAIN), strict=True))
    figure = make_subplots(
        rows=1, cols=len(thresholds), subplot_titles=[f"threshold {t:g}" for t in thresholds]
    )
    for column, threshold in enumerate(thresholds, start=1):
        panel = cells[cells["threshold"] == threshold]
        for reading in readings:
            part = panel[panel["reading"] == reading]
            drawn = _line(
                part["bin"],
                part["drawn"],
                f"drawn, lands up to {reading}",
                colours[reading],
                column == 1,
            )
            figure.add_trace(drawn.update(line={"shape": "hv"}), row=1, col=column)
        part = panel[panel["reading"] == readings[0]]
        for name, label, dash in (
            ("lemma", "Lemma A.3 as printed", "dot"),
            ("closed_form", "closed form with edges", "solid"),
        ):
            line = Scatter(
                x=part["bin"].tolist(),
                y=part[name].tolist(),
                name=label,
                legendgroup=name,
                showlegend=column == 1,
                line={"color": DARK, "dash": dash, "shape": "hv", "width": 1},
            )
            figure.add_trace(line, row=1, col=column)
        figure.update_xaxes(title="feature", row=1, col=column)
    return figure.update_yaxes(title="density after response", row=1, col=1)


def dag_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw differences and upper bounds per case and reading."""
    from plotly.graph_objects import Bar
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=1, cols=2, subplot_titles=("what h_S loses against h_T", "upper bounds on it")
    )
    where = [
        f"{case}, {reading}" for case, reading in zip(means["case"], means["reading"], strict=True)
    ]
    spread = (means["held_out_high"] - means["held_out_low"]) / 2
    for column, bars in enumerate(
        (
            (
                ("published", "least of 100 noisy errors, as published", PUBLISHED),
                ("published_again", "the same rules on fresh draws", AGAIN),
                ("held_out", "judged on other people, common random numbers", RIGHT),
            ),
            (
                ("published_upper", "as coded", PUBLISHED),
                ("upper", "Theorem 4.2 on cells, or 5.1", OTHER),
                ("upper_tighter", "tighter form", RIGHT),
            ),
        ),
        start=1,
    ):
        for name, label, colour in bars:
            bar = Bar(x=where, y=means[name].tolist(), name=label, marker_color=colour)
            if name == "held_out":
                bar.error_y = {"array": spread.tolist()}
            figure.add_trace(bar, row=1, col=column)
    return figure


def fico_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw differences (above) and bounds (below) over steps, one column per lender."""
    from plotly.subplots import make_subplots

    lenders = list(dict.fromkeys(means["lender"]))
    figure = make_subplots(
        rows=2, cols=len(lenders), subplot_titles=lenders, shared_xaxes=True, vertical_spacing=0.08
    )
    for column, lender in enumerate(lenders, start=1):
        part = means[means["lender"] == lender]
        for row, lines in enumerate((_DIFFERENCES, _BOUNDS), start=1):
            for name, label, colour in lines:
                line = _line(part["step"], part[name], label, colour, column == 1)
                if name == "expected":
                    line.line.dash = "dot"
                if name == "held_out":
                    width = ((part["held_out_high"] - part["held_out_low"]) / 2).tolist()
                    line.error_y = {"array": width}
                figure.add_trace(line, row=row, col=column)
        figure.update_xaxes(title="K", row=2, col=column)
    figure.update_yaxes(type="log", row=2)
    figure.update_yaxes(title="difference", row=1, col=1)
    figure.update_yaxes(title="bounds", row=2, col=1)
    return figure.update_layout(height=700)


_DIFFERENCES = (
    ("published", "above: difference as published (least of 100 noisy errors)", PUBLISHED),
    ("published_again", "the same rules on fresh draws", AGAIN),
    ("expected", "labels averaged out", DARK),
    ("held_out", "judged on other people, with interval", RIGHT),
)
_BOUNDS = (
    ("larger_error", "below: larger error of h_S", DARK),
    ("published_upper", "upper bound as coded", PUBLISHED),
    ("upper_tighter", "Theorem 4.2 on cells, tighter form", RIGHT),
    ("published_lower", "lower bound as coded", AGAIN),
    ("lower_3_3", "Theorem 3.3", OTHER),
)


def replicator_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw the gain against the accuracy of h_S (Figure 7), and the regulariser's two signs."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=1,
        cols=2,
        subplot_titles=("gain of the induced-optimal threshold", "App. F: accuracy once deployed"),
    )
    for (name, part), colour in zip(
        cells.groupby("utility", sort=False), (DARK, OTHER, RIGHT, AGAIN, PUBLISHED), strict=False
    ):
        points = Scatter(
            x=part["accuracy_source"].tolist(),
            y=part["gain_per_cent"].tolist(),
            text=[f"p = {share:g}" for share in part["share"]],
            mode="markers",
            name=str(name),
            marker={"color": colour, "size": 9},
        )
        figure.add_trace(points, row=1, col=1)
    last = cells[cells["utility"] == cells["utility"].iloc[-1]]
    for name, label, colour in (
        ("accuracy_source", "no regulariser", DARK),
        ("accuracy_best", "best possible", OTHER),
        ("accuracy_corrected", "regulariser, right sign", RIGHT),
        ("accuracy_published", "regulariser, sign as printed", PUBLISHED),
    ):
        figure.add_trace(_line(last["share"], last[name], label, colour, True), row=1, col=2)
    figure.update_xaxes(title="accuracy of h_S once deployed", row=1, col=1)
    figure.update_yaxes(title="gain, per cent", row=1, col=1)
    return figure.update_xaxes(
        title=f"share of label +1, utility “{cells['utility'].iloc[-1]}”", row=1, col=2
    )


def bandit_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw how far from the optimum every run ended."""
    from plotly.graph_objects import Box, Figure

    boxes = [
        Box(
            y=part["distance"].tolist(),
            name=f"{part['method'].iloc[0].replace('_', ' ')}, step {part['step'].iloc[0]:g}",
            boxpoints="all",
        )
        for _, part in cells.groupby(["method", "step"], sort=False)
    ]
    return Figure(boxes).update_yaxes(title="distance to the optimum", rangemode="tozero")


def tightness_figure(cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
    """Draw how close every bound came to the truth; beyond 1 it was violated."""
    from plotly.graph_objects import Bar, Figure

    names = [f"{b} ({s})" for b, s in zip(means["bound"], means["shift"], strict=True)]
    closest = means["closest"].fillna(0.0)
    bars = Bar(
        x=closest.clip(upper=3.0).tolist(),
        y=names,
        orientation="h",
        marker_color=[PUBLISHED if v else RIGHT for v in means["violations"]],
        text=[
            f"{v} of {n} violated"
            for v, n in zip(means["violations"], means["populations"], strict=True)
        ],
    )
    figure = Figure([bars]).add_vline(x=1.0, line_dash="dot")
    figure.update_yaxes(autorange="reversed").update_layout(height=600)
    return figure.update_xaxes(title="largest share of the bound that the truth reached (cut at 3)")


def _line(x: pd.Series, y: pd.Series, label: str, colour: str, shown: bool) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=x.tolist(),
        y=y.tolist(),
        name=label,
        legendgroup=label,
        showlegend=shown,
        line={"color": colour},
    )
