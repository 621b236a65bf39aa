"""What deployment will do to the error: predicted errors as intervals, and the theorems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.reporting._citing import Citation, Cited, Row
from countermove.reporting._rendering import axis_label
from countermove.reporting.numbers import MISSING, number
from countermove.reporting.tables import called
from countermove.reporting.transfer import READINGS, Line, line_names, lines, right_end

if TYPE_CHECKING:
    from countermove.reporting.page import Findings

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


def deployment_facts(found: Findings) -> dict[str, Any]:
    """Return the predicted errors, their figures, and the theorems that apply."""
    report = found.transfer
    if report is None:
        return {"transfer": None}
    cited = Cited("transfer_report.json", report)
    return {
        "transfer": cited,
        "sure": f"{1 - report['terms']['failure_probability']:.0%}",
        "predictions": [
            _prediction(cited, report, model, labels, response)
            for model in report["models"]
            for labels in report["terms"]["labels"]
            for response in report["stated"]
        ],
        "models": [
            {
                "name": model,
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
        "xaxis": {"title": {"text": "share judged wrongly"}, "tickformat": ".0%", "nticks": 6}
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
