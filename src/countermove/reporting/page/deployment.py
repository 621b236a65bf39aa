"""What deployment will do to the error: predicted errors as intervals, and the theorems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countermove.reporting.numbers import number
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.layout import Section, chart, grid, lines_of
from countermove.reporting.page.markup import (
    Markup,
    absent,
    bullets,
    folded,
    joined,
    paragraph,
    unbroken,
)
from countermove.reporting.page.plain import html_table
from countermove.reporting.tables import called
from countermove.reporting.transfer import READINGS, Line, line_names, lines, right_end

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
TITLE = "What deployment will do to the error"


def deployment_section(found: Findings) -> Section:
    """Return the section, or the sentence in its place."""
    if found.transfer is None:
        missing = absent("The error after deployment is not known.", found.command("evaluation"))
        return Section("deployment", TITLE, "Deployment", missing)
    return Section("deployment", TITLE, "Deployment", transfer_body(found.transfer))


def transfer_body(report: Mapping[str, Any]) -> Markup:
    """Return the predicted errors, their figures, and the theorems that apply."""
    cited = Cited("transfer_report.json", report)
    sure = 1 - report["terms"]["failure_probability"]
    return joined(
        (
            paragraph(
                "Measured on ",
                cited.link("rows", "judged_on"),
                " test rows whose people's answer is simulated; bars and bins were chosen on ",
                cited.link("rows", "chosen_on"),
                f" validation rows. Every interval holds on its own with probability {sure:.0%}, "
                "if people answer as said.",
            ),
            _predictions(cited, report),
            grid(_figure(cited, report, model) for model in report["models"]),
            folded(
                "What the theorems allow",
                paragraph(
                    "What the theorems of the transferability paper allow, from the same rows. "
                    "They are wider than the intervals above, which count mistakes; those whose "
                    "assumptions the data refute give no number.",
                    kind="note",
                ),
                _theorems(cited, report),
            ),
            folded("Theorems that do not apply", bullets(_refused(report))),
        )
    )


def _predictions(cited: Cited, report: Mapping[str, Any]) -> Markup:
    """Return one line per rule, reading of labels and assumed response."""
    head = ("rule", "error before", "error after", "at most, whoever answers", "loss to best bar")
    rows = [
        _prediction(cited, report, model, labels, response)
        for model in report["models"]
        for labels in report["terms"]["labels"]
        for response in report["stated"]
    ]
    return html_table(head, rows, "Share judged wrongly before and after deployment")


def _prediction(
    cited: Cited, report: Mapping[str, Any], model: str, labels: str, response: str
) -> tuple[str, ...]:
    after = ("models", model, labels, "predicted", response)
    worst = _worst(report, model, labels)
    loss = ("models", model, labels, "best_threshold", response, "loss", "words")
    return (
        f"{_rule(report, model, response)}, {READINGS[labels][0]}",
        cited.link("models", model, "source", "value"),
        unbroken(
            cited.link(*after, "value"),
            " (",
            cited.link(*after, "low"),
            " to ",
            cited.link(*after, "high"),
            ")",
        ),
        joined(
            (
                cited.link("bounds", worst, "value"),
                f" ({called(report['models'][model][labels]['worst_response'])})",
            )
        ),
        cited.link(*loss, by=str),
    )


def _worst(report: Mapping[str, Any], model: str, labels: str) -> int:
    """Return where the certified upper end stands, whichever response is true."""
    return next(
        i
        for i, entry in enumerate(report["bounds"])
        if (entry["model"], entry["labels"], entry["response"]) == (model, labels, "worst case")
        and (entry["kind"], entry["name"]) == ("certificate", "worst_case_direct_upper")
    )


def _figure(cited: Cited, report: Mapping[str, Any], model: str) -> Markup:
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
            "ticktext": [lines_of(name, 26) for name in names],
            "range": [-0.6, len(names) - 0.4],
        },
        "shapes": [
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": dotted}
            | {"x0": source["value"], "x1": source["value"]}
        ],
    }
    title = f"{model.capitalize()} rule: error before and after deployment, with intervals."
    return chart(
        f"transfer-{model}",
        title,
        f"{title} The dotted line is the error before.",
        {"data": data, "layout": layout, "narrow": {"xaxis": {"nticks": 3}}},
        _intervals_table(cited, report, model),
        140 + 46 * len(names),
    )


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


def _intervals_table(cited: Cited, report: Mapping[str, Any], model: str) -> Markup:
    ends = ("value", "low", "high")
    rows: list[tuple[str, ...]] = [
        ("before deployment", *(cited.link("models", model, "source", end) for end in ends))
    ]
    for labels in report["terms"]["labels"]:
        for response in report["responses"]:
            path = ("models", model, labels, "predicted", response)
            label = f"{called(response)}, {READINGS[labels][0]}"
            rows.append((label, *(cited.link(*path, end) for end in ends)))
    caption = f"{model.capitalize()} rule: share judged wrongly"
    return html_table(("people", "error", "from", "to"), rows, caption)


def _theorems(cited: Cited, report: Mapping[str, Any]) -> Markup:
    """Return the applicable theorems, certificate beside estimate."""
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for i, entry in enumerate(report["bounds"]):
        if entry["name"] in QUANTITIES and entry["applicable"]:
            rule = _rule(report, entry["model"], entry["response"])
            key = (entry["name"], entry["reference"], rule, entry["labels"])
            side = "at most" if entry["direction"] == "upper" else "at least"
            found.setdefault((*key, side), {})[entry["kind"]] = i
    rows = [
        (
            reference,
            f"{QUANTITIES[name]}, {side}",
            rule,
            labels,
            *(_bound(cited, at.get(kind), side) for kind in ("estimate", "certificate")),
        )
        for (name, reference, rule, labels, side), at in found.items()
    ]
    head = ("bound", "on", "rule", "labels", "estimate", "certified")
    return html_table(head, rows, "Theorems that apply")


def _bound(cited: Cited, at: int | None, side: str) -> str:
    if at is None:
        return number(None)

    def told(value: float) -> str:
        empty = value >= 1.0 if side == "at most" else value <= 0.0
        return "says nothing" if empty else number(value)

    return cited.link("bounds", at, "value", by=told)


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
