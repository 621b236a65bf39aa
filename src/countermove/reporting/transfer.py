"""The error before and after deployment: intervals a risk committee can read, and the theorems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countermove.reporting.citing import Citation, Cited, Row
from countermove.reporting.rendering import axis_label
from countermove.reporting.words import MISSING, called, number

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.reporting.page import Findings

READINGS = {
    "kept": ("moving changes no label", "circle", "#2b6cb0", 0.13),
    "follow": ("labels follow the features", "diamond-open", "#b7791f", -0.13),
}
"""How a reading of labels is called, drawn and coloured, and how far it is off its line."""
QUANTITIES = {
    "theorem_3_1": "error after deployment",
    "theorem_3_1_linear": "error after deployment, a low estimate",
    "theorem_3_2": "loss against the best threshold",
    "theorem_3_2_solved": "error after deployment",
    "theorem_3_3": "larger of the errors before and after",
    "corollary_3_4": "larger of the errors before and after",
    "theorem_4_2": "loss against the best threshold",
    "theorem_4_2_tighter": "loss against the best threshold",
    "theorem_4_6": "larger of the errors before and after",
    "proposition_4_7": "loss against the best threshold",
    "theorem_5_1": "loss against the best threshold",
    "theorem_5_1_sharper": "loss against the best threshold",
    "theorem_5_2": "larger of the errors before and after",
    "proposition_5_3": "distance of the induced label shares",
}
"""What every theorem bounds, in a reader's words."""
COLOURS = {"kept": "good", "follow": "mark"}


@dataclass(frozen=True)
class Line:
    """One interval of the figure: where it stands, and what it says."""

    place: float
    value: float
    low: float
    high: float


def titled(model: str) -> str:
    """Return what a rule is called in headings; an audited model is named by its threshold."""
    return f"{model} rule" if model in ("blind", "strategic") else f"model {model}"


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


def right_end(report: Mapping[str, Any]) -> float:
    """Return a little more than the largest end drawn."""
    ends: list[float] = [facts["source"]["high"] for facts in report["models"].values()]
    for model in report["models"]:
        for labels in report["terms"]["labels"]:
            ends += [line.high for line in lines(report, model, labels)]
    return min(1.0, 1.15 * max(ends))


def transfer_figure(report: Mapping[str, Any] | None) -> Figure:
    """Draw every predicted error with its interval, one panel per rule; a sentence without any."""
    from plotly.subplots import make_subplots

    if report is None:
        return _nothing_yet()
    models, names = list(report["models"]), line_names(report)
    titles = [titled(model) for model in models]
    figure = make_subplots(1, len(models), subplot_titles=titles, shared_yaxes=True)
    for column, model in enumerate(models, start=1):
        _draw_model(figure, report, model, column, len(names) - 1)
    share = 1.0 - report["terms"]["failure_probability"]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, zeroline=False)
    figure.update_xaxes(title="error", range=[0.0, right_end(report)], tickformat=".2f")
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
    figure.add_trace(_drawn_interval("before", "square", "#1f2933", [first], legend), 1, column)
    for labels in report["terms"]["labels"]:
        words, symbol, colour, _ = READINGS[labels]
        found = list(lines(report, model, labels))
        figure.add_trace(_drawn_interval(words, symbol, colour, found, legend), 1, column)
    # After the traces: plotly draws such a line only in a panel that holds something.
    dotted = {"color": "#7b8794", "dash": "dot"}
    figure.add_vline(before["value"], line=dotted, layer="below", row=1, col=column)


def _drawn_interval(name: str, symbol: str, colour: str, found: list[Line], legend: bool) -> Any:
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


def deployment_facts(found: Findings) -> dict[str, Any]:
    """Return the predicted errors, their figures, and the theorems that apply."""
    report = found.transfer
    if report is None:
        return {"transfer": None}
    cited = Cited("transfer_report.json", report)
    return {
        "transfer": cited,
        "verdict": cited.link("verdict", "words", by=str) if "verdict" in report else None,
        "sure": f"{1 - report['terms']['failure_probability']:.0%}",
        "predictions": [
            _prediction(cited, report, model, labels, response)
            for model in report["models"]
            for labels in report["terms"]["labels"]
            for response in report["stated"]
        ],
        "models": [
            {
                "name": model.replace(" ", "-"),
                "title": titled(model).capitalize(),
                "figure": _figure(report, model),
                "rows": _interval_rows(cited, report, model),
            }
            for model in report["models"]
        ],
        "height": 140 + 46 * len(line_names(report)),
        "theorems": _theorem_rows(cited, report),
        "refused": _refused(report),
    }


def _prediction(
    cited: Cited, report: Mapping[str, Any], model: str, labels: str, response: str
) -> dict[str, Any]:
    """Return one rule's error before and after, under one reading of labels."""
    after = ("models", model, labels, "predicted", response)
    loss = ("models", model, labels, "best_threshold", response, "loss", "words")
    return {
        "rule": f"{_rule(report, model, response)}, {READINGS[labels][0]}",
        "before": cited.link("models", model, "source", "value"),
        "after": cited.link(*after, "value"),
        "low": cited.link(*after, "low"),
        "high": cited.link(*after, "high"),
        "worst": cited.link("bounds", _worst(report, model, labels), "value"),
        "worst_response": called(report["models"][model][labels]["worst_response"]),
        "loss": cited.link(*loss, by=str),
    }


def _worst(report: Mapping[str, Any], model: str, labels: str) -> int:
    """Return where the certified upper end stands, whichever response is true."""
    return next(
        i
        for i, entry in enumerate(report["bounds"])
        if (entry["model"], entry["labels"], entry["response"]) == (model, labels, "worst case")
        and (entry["kind"], entry["name"]) == ("certificate", "worst_case_direct_upper")
    )


def _figure(report: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return one rule's intervals."""
    names = line_names(report)
    source = report["models"][model]["source"]
    first = Line(len(names) - 1, source["value"], source["low"], source["high"])
    data = [_interval("before deployment", "square", "ink", [first])]
    for labels in report["terms"]["labels"]:
        words, symbol, *_ = READINGS[labels]
        data.append(_interval(words, symbol, COLOURS[labels], list(lines(report, model, labels))))
    dotted = {"color": "var:soft", "dash": "dot", "width": 1.5}
    layout = {
        "xaxis": {"title": {"text": "error"}, "tickformat": ".0%", "nticks": 6}
        | {"range": [0.0, right_end(report)]},
        "yaxis": {
            "tickvals": list(range(len(names))),
            "ticktext": [axis_label(name, 26) for name in names],
            "range": [-0.6, len(names) - 0.4],
        },
        "shapes": [
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": dotted}
            | {"x0": source["value"], "x1": source["value"]}
        ],
    }
    return {"data": data, "layout": layout, "narrow": {"xaxis": {"nticks": 3}}}


def _interval(label: str, symbol: str, colour: str, found: list[Line]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": [line.value for line in found],
        "y": [line.place for line in found],
        "marker": {"symbol": symbol, "size": 9, "color": f"var:{colour}"}
        | {"line": {"width": 2, "color": f"var:{colour}"}},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [line.high - line.value for line in found],
            "arrayminus": [line.value - line.low for line in found],
            "color": f"var:{colour}",
            "thickness": 2,
            "width": 5,
        },
        "customdata": [(line.low, line.high) for line in found],
        "hovertemplate": "%{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>",
    }


def _interval_rows(cited: Cited, report: Mapping[str, Any], model: str) -> list[Row]:
    ends = ("value", "low", "high")
    rows: list[Row] = [
        ("before deployment", *(cited.link("models", model, "source", end) for end in ends))
    ]
    for labels in report["terms"]["labels"]:
        for response in report["responses"]:
            path = ("models", model, labels, "predicted", response)
            label = f"{called(response)}, {READINGS[labels][0]}"
            rows.append((label, *(cited.link(*path, end) for end in ends)))
    return rows


def _theorem_rows(cited: Cited, report: Mapping[str, Any]) -> list[Row]:
    """Return the applicable theorems, certificate beside estimate."""
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for i, entry in enumerate(report["bounds"]):
        if entry["name"] in QUANTITIES and entry["applicable"]:
            rule = _rule(report, entry["model"], entry["response"])
            key = (entry["name"], entry["reference"], rule, entry["labels"])
            side = "at most" if entry["direction"] == "upper" else "at least"
            found.setdefault((*key, side), {})[entry["kind"]] = i
    return [
        (
            reference,
            f"{QUANTITIES[name]}, {side}",
            rule,
            labels,
            *(_bound(cited, at.get(kind), side) for kind in ("estimate", "certificate")),
        )
        for (name, reference, rule, labels, side), at in found.items()
    ]


def _bound(cited: Cited, at: int | None, side: str) -> str | Citation:
    if at is None:
        return MISSING

    def words(value: float) -> str:
        empty = value >= 1.0 if side == "at most" else value <= 0.0
        return "says nothing" if empty else number(value)

    return cited.link("bounds", at, "value", by=words)


def _refused(report: Mapping[str, Any]) -> list[str]:
    """Return why the other theorems give no number, each reason once."""
    reasons: dict[str, set[str]] = {}
    for entry in report["bounds"]:
        if entry["name"] in QUANTITIES and not entry["applicable"]:
            rule = _rule(report, entry["model"], entry["response"])
            line = f"{rule}, labels {entry['labels']}: {entry['reason']}"
            reasons.setdefault(line, set()).add(entry["reference"])
    return [f"{', '.join(sorted(names))}: {line}" for line, names in reasons.items()]


def _rule(report: Mapping[str, Any], model: str, response: str) -> str:
    """Return a rule's name, with the response where several are assumed."""
    return model if len(report["stated"]) == 1 else f"{model}, {called(response)}"
