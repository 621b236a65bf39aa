"""Accuracy against social good, drawn and tabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countermove.experiments.protocol import PageTable, experiment_page, page_table
from countermove.reporting.words import called

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure


MEASURES = {
    "utility": ("utility", "mean payoff: decision (±1) minus cost"),
    "burden": ("burden", "mean least cost of approval, deserving people"),
    "recourse": ("recourse_all", "share approved at once or after their move"),
}
"""The hard measure of each kind and what its axis says."""
PARTS = {"validation": ("#9aa5b1", "circle"), "test": ("#00796b", "diamond")}
FRONT, CHOSEN = "#b7791f", "#c53030"
ABREAST = 3
"""Panels a page has room for side by side; more of them stand in pairs."""


def tradeoff_figure(points: pd.DataFrame, kind: str, title: str, tolerance: float) -> Figure:
    """Draw every strength as a point, one panel per population; buttons pick hard or smoothed.

    Points are means over splits; front and choice are those of the means, by validation rows
    (the rows ``all`` of the choices).
    """
    from plotly.subplots import make_subplots

    from countermove.learning.tradeoff import mark

    panels = list(points.groupby(["dataset", "response", "training"], sort=False))
    several = len(set(points["dataset"])) > 1
    names = [
        (f"{name}: " if several else "") + _people(str(response), str(training))
        for (name, response, training), _ in panels
    ]
    columns = len(panels) if len(panels) <= ABREAST else 2
    lines = -(-len(panels) // columns)
    figure = make_subplots(rows=lines, cols=columns, subplot_titles=names, vertical_spacing=0.15)
    hard, words = MEASURES[kind]
    for number, (_, own) in enumerate(panels):
        means = own.groupby("strength").mean(numeric_only=True).reset_index()
        own = mark(means, kind, tolerance)
        for traces, shown in ((_traces(own, hard), True), (_traces(own, "smoothed"), False)):
            for trace in traces:
                trace.visible, trace.showlegend = shown, number == 0
                figure.add_trace(trace, row=number // columns + 1, col=number % columns + 1)
    figure.update_xaxes(title="accuracy after response", tickformat=".3~f")
    figure.update_yaxes(title=words, col=1)
    return figure.update_layout(
        title=f"Accuracy against {kind} ({title})",
        template="plotly_white",
        height=120 + 400 * lines,
        legend={"orientation": "h", "y": -0.2 / lines},
        updatemenus=[_buttons(len(figure.data), len(panels), columns, words)],
    )


def tradeoff_page(
    points: pd.DataFrame, choices: pd.DataFrame, figure: Figure, kind: str, tolerance: float
) -> str:
    """Return a page: the figure, and what the chosen strength of every curve bought."""
    _, words = MEASURES[kind]
    joint = choices["split"] == "all"
    cut_off = int(points[["validation_cut_off", "test_cut_off"]].to_numpy().max())
    return experiment_page(
        [figure],
        [
            _choices_table("One strength for all splits, by their means", choices[joint], kind),
            _choices_table("Split by split", choices[~joint], kind),
        ],
        title=f"Accuracy against {kind}",
        lead="Every point is one rule, trained with another strength of the regulariser. The "
        f"strength chosen has the best hard measure ({words}) among those that give up at most "
        f"{tolerance:g} of accuracy, both judged on validation rows; the table reports test rows, "
        "without and with regularisation.",
        note="Deserving people whom no allowed move brings to approval are left out of the burden: "
        f"at most {cut_off} in any part. Smoothed measures can move by rescaling the score alone; "
        "judge by the hard ones.",
    )


def _choices_table(title: str, choices: pd.DataFrame, kind: str) -> PageTable:
    """Return what every choice bought on test rows."""
    hard, _ = MEASURES[kind]
    head = (
        *("people", "split", "strength", "accuracy, plain", "accuracy, chosen"),
        *(f"{kind}, plain", f"{kind}, chosen", "change"),
    )
    rows = [
        (
            f"{row['dataset']}: {_people(row['response'], row['training'])}",
            str(row["split"]),
            f"{row['strength']:.4g}",
            f"{row['test_accuracy_plain']:.3f}",
            f"{row['test_accuracy']:.3f}",
            *(
                f"{row[name]:.3f}".replace("-", "−")
                for name in (f"test_{hard}_plain", f"test_{hard}")
            ),
            f"{row['change']:+.3f} ({row['relative_change']:+.0%})".replace("-", "−"),
        )
        for _, row in choices.iterrows()
    ]
    return page_table(title, head, rows)


def _people(response: str, training: str) -> str:
    """Return a curve's people in words, and its training where that is not the usual one."""
    return called(response) + ("" if training == "usual" else f", {training}")


def _traces(own: pd.DataFrame, measure: str) -> list[Any]:
    """Return the points of both parts, the front and the choice, for one measure."""
    from plotly.graph_objects import Scatter

    hover = "strength %{customdata:.4g}<br>accuracy %{x:.3f}<br>measure %{y:.3f}"
    traces = [
        Scatter(
            x=own[f"{part}_accuracy"].tolist(),
            y=own[f"{part}_{measure}"].tolist(),
            customdata=own["strength"].tolist(),
            mode="markers",
            name=part,
            legendgroup=part,
            marker={"color": colour, "symbol": symbol, "size": 8},
            hovertemplate=hover,
        )
        for part, (colour, symbol) in PARTS.items()
    ]
    best = own[own["front"]].sort_values("validation_accuracy")
    line = Scatter(
        x=best["validation_accuracy"].tolist(),
        y=best[f"validation_{measure}"].tolist(),
        mode="lines",
        name="Pareto front (hard measure, validation)",
        legendgroup="front",
        line={"color": FRONT, "dash": "dot"},
        hoverinfo="skip",
    )
    chosen = own[own["chosen"]].iloc[0]
    star = Scatter(
        x=[float(chosen["test_accuracy"])],
        y=[float(chosen[f"test_{measure}"])],
        customdata=[float(chosen["strength"])],
        mode="markers",
        name="chosen on validation, test rows",
        legendgroup="chosen",
        marker={"color": CHOSEN, "symbol": "star", "size": 15},
        hovertemplate=hover,
    )
    return [line, *traces, star]


def _buttons(n_traces: int, n_panels: int, columns: int, words: str) -> dict[str, Any]:
    """Return the switch between hard and smoothed measures; the left axes say which."""
    half = n_traces // n_panels // 2
    hard = ([True] * half + [False] * half) * n_panels
    left = [f"yaxis{number or ''}.title.text" for number in (0, *range(3, n_panels + 1, 2))]
    left = left if columns == 2 else left[:1]
    axis = dict.fromkeys(left, words)
    smooth = dict.fromkeys(left, "smoothed measure (training steers by it)")
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1.0,
        "y": 1.0,
        "pad": {"b": 30},
        "yanchor": "bottom",
        "xanchor": "right",
        "buttons": [
            {"label": "hard", "method": "update", "args": [{"visible": hard}, axis]},
            {
                "label": "smoothed",
                "method": "update",
                "args": [{"visible": [not shown for shown in hard]}, smooth],
            },
        ],
    }
