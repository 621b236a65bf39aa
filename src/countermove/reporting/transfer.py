"""The error before and after deployment, as intervals a risk committee can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countermove.reporting.tables import called

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

READINGS = {
    "kept": ("moving changes no label", "circle", "#2b6cb0", 0.13),
    "follow": ("labels follow the features", "diamond-open", "#b7791f", -0.13),
}
"""How a reading of labels is called, drawn and coloured, and how far it is off its line."""


@dataclass(frozen=True)
class Line:
    """One interval of the figure: where it stands, and what it says."""

    place: float
    value: float
    low: float
    high: float


def line_names(report: Mapping[str, Any]) -> list[str]:
    """Return the lines of the figure from bottom to top."""
    stated = report["stated"]
    after = [
        f"after: {called(name)}{' (assumed)' if name in stated else ''}"
        for name in report["responses"]
        if name != "none"
    ]
    return ["any of these, or nobody moves", *reversed(after), "before deployment"]


def worst_bounds(report: Mapping[str, Any], model: str, labels: str) -> tuple[float, float]:
    """Return the certified ends of the error after deployment, whichever response is true."""
    found = {
        entry["name"]: entry["value"]
        for entry in report["bounds"]
        if entry["model"] == model
        and entry["labels"] == labels
        and entry["response"] == "worst case"
        and entry["kind"] == "certificate"
    }
    return found["worst_case_direct_lower"], found["worst_case_direct_upper"]


def lines(report: Mapping[str, Any], model: str, labels: str) -> Iterator[Line]:
    """Return a model's intervals under one reading of labels."""
    facts = report["models"][model]
    predicted = facts[labels]["predicted"]
    shift = READINGS[labels][3] if len(report["terms"]["labels"]) > 1 else 0.0
    shown = [name for name in report["responses"] if name != "none"]
    for place, name in enumerate(reversed(shown), start=1):
        found = predicted[name]
        yield Line(place + shift, found["value"], found["low"], found["high"])
    low, high = worst_bounds(report, model, labels)
    yield Line(shift, max(found["value"] for found in predicted.values()), low, high)


def transfer_figure(report: Mapping[str, Any] | None) -> Figure:
    """Draw every predicted error with its interval, one panel per rule; a sentence without any."""
    from plotly.subplots import make_subplots

    if report is None:
        return _nothing_yet()
    models, names = list(report["models"]), line_names(report)
    titles = [f"{model} rule" for model in models]
    figure = make_subplots(1, len(models), subplot_titles=titles, shared_yaxes=True)
    for column, model in enumerate(models, start=1):
        _draw_model(figure, report, model, column, len(names) - 1)
    share = 1.0 - report["terms"]["failure_probability"]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, zeroline=False)
    figure.update_xaxes(
        title="share judged wrongly", range=[0.0, right_end(report)], tickformat=".2f"
    )
    return figure.update_layout(
        template="plotly_white",
        title=f"Error before and after deployment, {report['dataset']} ({share:.0%} intervals)",
        legend={"orientation": "h", "y": -0.2},
        height=140 + 55 * len(names),
        margin={"l": 10, "r": 10},
    )


def _nothing_yet() -> Figure:
    from plotly.graph_objects import Figure

    words = "no transfer report yet: kedro run --pipeline=evaluation makes it"
    return (
        Figure().add_annotation(text=words, showarrow=False).update_layout(template="plotly_white")
    )


def _draw_model(
    figure: Figure, report: Mapping[str, Any], model: str, column: int, top: int
) -> None:
    """Add a model's panel: a line at the error before, and intervals for every reading."""
    before = report["models"][model]["source"]
    first = Line(top, before["value"], before["low"], before["high"])
    legend = column == 1
    figure.add_trace(_interval("before", "square", "#1f2933", [first], legend), 1, column)
    for labels in report["terms"]["labels"]:
        words, symbol, colour, _ = READINGS[labels]
        found = list(lines(report, model, labels))
        figure.add_trace(_interval(words, symbol, colour, found, legend), 1, column)
    # After the traces: plotly draws such a line only in a panel that holds something.
    dotted = {"color": "#7b8794", "dash": "dot"}
    figure.add_vline(before["value"], line=dotted, layer="below", row=1, col=column)


def _interval(name: str, symbol: str, colour: str, found: list[Line], legend: bool) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        name=name,
        x=[line.value for line in found],
        y=[line.place for line in found],
        mode="markers",
        showlegend=legend,
        marker={"symbol": symbol, "size": 10, "color": colour},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [line.high - line.value for line in found],
            "arrayminus": [line.value - line.low for line in found],
            "color": colour,
            "thickness": 2,
            "width": 5,
        },
        customdata=[(line.low, line.high) for line in found],
        hovertemplate="%{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>",
    )


def right_end(report: Mapping[str, Any]) -> float:
    """Return a little more than the largest end drawn."""
    ends: list[float] = [facts["source"]["high"] for facts in report["models"].values()]
    for model in report["models"]:
        for labels in report["terms"]["labels"]:
            ends += [line.high for line in lines(report, model, labels)]
    return min(1.0, 1.15 * max(ends))
