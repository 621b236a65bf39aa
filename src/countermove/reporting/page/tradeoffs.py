"""What a promise costs, and what a little accuracy buys people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countermove.reporting.numbers import number, share
from countermove.reporting.page.citing import CitedTable
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section, chart, grid
from countermove.reporting.page.markup import Markup, absent, joined, paragraph
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import called

if TYPE_CHECKING:
    import pandas as pd

BOUGHT = {"burden": "burden on deserving people", "recourse_all": "share approved in the end"}
"""Hard measures drawn against accuracy, on test rows."""
LISTED = 12
"""Rows of the frontier a table shows: every so many of them, the chosen one always."""


def tradeoffs_section(found: Findings) -> Section:
    """Return the section: promise against accuracy, then accuracy against social good."""
    parts = (
        Markup("<h3>Promise against accuracy</h3>"),
        *_frontier(found),
        Markup("<h3>Accuracy against social good</h3>"),
        *_curves(found),
    )
    return Section("tradeoffs", "What is traded against what", "Trade-offs", joined(parts))


def _frontier(found: Findings) -> list[Markup]:
    if found.frontier is None or found.calibration is None:
        return [absent("No threshold has been calibrated yet.", found.command("recourse"))]
    table = found.frontier.assign(promised_share=1.0 - found.frontier["miss_bound"])
    asked = 1.0 - found.calibration["terms"]["miss_rate"]
    chosen = float(found.calibration["threshold"])
    cited = CitedTable("recourse_frontier.csv", found.frontier)
    at = int((table["threshold"] - chosen).abs().to_numpy().argmin())
    lead = paragraph(
        "A lower bar on the probability leaves fewer people without a way to approval, and may "
        "decide worse. At every bar: how often the rule is right on validation rows once people "
        "have answered it, and the share of people that is sure to be approved or to have "
        f"recourse. The promise asked for is {share(asked, 0)}; the bar chosen is ",
        cited.link(at, "threshold"),
        ", with an accuracy of ",
        cited.link(at, "accuracy", by=share),
        " and ",
        cited.link(at, "approved", by=share),
        " approved.",
    )
    return [lead, _frontier_figure(table, cited, asked, chosen, at)]


def _frontier_figure(
    table: pd.DataFrame, cited: CitedTable, asked: float, chosen: float, at: int
) -> Markup:
    """Return both curves over the threshold, and a table of some of its rows."""
    x = [float(value) for value in table["threshold"]]
    curves = (
        ("promised_share", "surely approved or with recourse", "strategic", "solid", "diamond"),
        ("accuracy", "judged right", "good", "dash", "circle-open"),
    )
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": words,
            "x": x,
            "y": [float(value) for value in table[column]],
            "line": {"color": f"var:{colour}", "width": 2.5, "dash": dash},
            "hovertemplate": "bar %{x:.3f}: %{y:.1%}<extra>" + words + "</extra>",
        }
        for column, words, colour, dash, _ in curves
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "the bar chosen",
            "x": [chosen, chosen],
            "y": [float(table[column].iloc[at]) for column, *_ in curves],
            "marker": {"symbol": "star", "size": 14, "color": "var:mark"},
            "hovertemplate": "chosen: %{y:.1%}<extra></extra>",
        }
    )
    line = {"color": "var:soft", "dash": "dot", "width": 1.5}
    layout = {
        "xaxis": {"title": {"text": "bar on the probability"}},
        "yaxis": {"title": {"text": "share of people"}, "tickformat": ".0%"},
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": asked, "y1": asked}
            | {"line": line}
        ],
    }
    return chart(
        "frontier",
        "Promise and accuracy over the bar. Dotted: the promise asked for. Stars: the bar chosen.",
        "Accuracy, and the share surely approved or with recourse, at every bar.",
        {"data": data, "layout": layout},
        _frontier_table(cited, at),
    )


def _frontier_table(cited: CitedTable, at: int) -> Markup:
    """Return some rows of the frontier, the chosen one always among them."""
    step = max(1, -(-len(cited.table) // LISTED))
    listed = sorted({*range(0, len(cited.table), step), at})
    rows = [
        (
            joined((cited.link(i, "threshold"), " (chosen)" if i == at else "")),
            cited.link(i, "accuracy", by=share),
            cited.link(i, "miss_bound", by=lambda value: share(value, 2)),
            cited.link(i, "approved", by=share),
        )
        for i in listed
    ]
    head = ("bar", "judged right", "without a way, at most", "approved")
    return html_table(head, rows, "Promise and accuracy at some bars")


def _curves(found: Findings) -> list[Markup]:
    points = found.tradeoff
    if points is None or not (points["dataset"] == found.dataset).any():
        line = f"kedro run --pipeline=tradeoff --params tradeoff.datasets=[{found.dataset}]"
        return [absent("No trade-off curve has been drawn for this table.", line)]
    cited = CitedTable("../tradeoff/points.csv", points)
    rows = points.reset_index(drop=True)
    own = rows[rows["dataset"] == found.dataset]
    lead = paragraph(
        "Each point is a rule trained with another strength of a regulariser for people's good, "
        "measured on test rows. The star is the strength chosen on validation rows."
    )
    figures = [_curve(own, cited, measure) for measure in BOUGHT]
    return [lead, grid(figures)]


def _curve(own: pd.DataFrame, cited: CitedTable, measure: str) -> Markup:
    """Return one measure against accuracy, a line per population."""
    words = BOUGHT[measure]
    colours = ("strategic", "good", "bad", "mark", "blind")
    dashes = ("solid", "dash", "dot", "dashdot", "longdash")
    data: list[dict[str, Any]] = []
    many = len(set(own["split"])) > 1
    for i, (key, part) in enumerate(own.groupby(["split", "response", "training"], sort=False)):
        split, response, _ = key if isinstance(key, tuple) else (key, "", "")
        label = called(str(response)) + (f", split {split}" if many else "")
        look = {"color": f"var:{colours[i % 5]}", "dash": dashes[i % 5], "width": 2}
        data.append(_points(part, measure, label) | {"line": look})
        data.append(_points(part[part["chosen"]], measure, f"{label}, chosen") | _star())
    rows = [
        (
            f"{called(response)}, split {split}",
            cited.link(place, "strength", by=lambda value: number(value, ".4g")),
            cited.link(place, "test_accuracy", by=share),
            cited.link(place, f"test_{measure}"),
        )
        for place, response, split in zip(own.index, own["response"], own["split"], strict=True)
    ]
    layout = {
        "xaxis": {"title": {"text": "share judged right"}, "tickformat": ".1%", "nticks": 5},
        "yaxis": {"title": {"text": words}},
    }
    head = ("people", "strength", "judged right", words)
    table = html_table(head, rows, f"Accuracy against {words}")
    said = f"Accuracy against {words}, one point per strength."
    spec = {"data": data, "layout": layout}
    return chart(f"tradeoff-{measure}", f"Accuracy against {words}.", said, spec, table, 340)


def _points(part: pd.DataFrame, measure: str, label: str) -> dict[str, Any]:
    values = part[f"test_{measure}"].astype(float)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": part["test_accuracy"].astype(float).tolist(),
        "y": [None if value != value else value for value in values.tolist()],
        "marker": {"size": 7},
        "hovertemplate": "%{x:.1%}, %{y:.3f}<extra>" + label + "</extra>",
    }


def _star() -> dict[str, Any]:
    return {
        "mode": "markers",
        "marker": {"symbol": "star", "size": 14, "color": "var:mark"},
        "showlegend": False,
    }
