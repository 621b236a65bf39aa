"""The part of the report page that foretells what deployment does to the error."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from countermove.reporting.page import html_table
from countermove.reporting.tables import called
from countermove.reporting.transfer import READINGS, worst_bounds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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


def transfer_section(report: Mapping[str, Any], figure: Figure) -> str:
    """Return the section: predicted errors, their figure, and the theorems that apply."""
    drawing = figure.to_html(full_html=False, include_plotlyjs=False)
    rows = report["rows"]
    return f"""<h2>What deployment will do to the error</h2>
<p>Measured on {rows["judged_on"]:,} test rows whose people's answer is simulated; thresholds and
bins were chosen on {rows["chosen_on"]:,} validation rows. Every interval holds on its own
with probability {1 - report["terms"]["failure_probability"]:.0%}, if people answer as said.</p>
{_predictions(report)}{drawing}
<details><summary>What the theorems allow</summary>
<p class="note">What the theorems of the transferability paper allow, from the same rows. They are
wider than the intervals above, which count mistakes; those whose assumptions the data refute
give no number.</p>
{_theorems(report)}</details>{_refused(report)}"""


def _predictions(report: Mapping[str, Any]) -> str:
    """Return one line per rule and reading of labels."""
    found = []
    for model, facts in report["models"].items():
        for labels in report["terms"]["labels"]:
            for name in report["stated"]:
                after = facts[labels]["predicted"][name]
                loss = facts[labels]["best_threshold"][name]["loss"]["words"]
                found.append(
                    (
                        f"{_rule(report, model, name)}, {READINGS[labels][0]}",
                        f"{facts['source']['value']:.3f}",
                        f"{after['value']:.3f} ({after['low']:.3f} to {after['high']:.3f})",
                        f"{worst_bounds(report, model, labels)[1]:.3f} "
                        f"({called(facts[labels]['worst_response'])})",
                        loss,
                    )
                )
    head = ("rule", "error before", "error after", "at most, whoever answers", "loss to best bar")
    return html_table(head, found)


def _theorems(report: Mapping[str, Any]) -> str:
    """Return the applicable theorems, certificate beside estimate."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for entry in report["bounds"]:
        if entry["name"] in QUANTITIES and entry["applicable"]:
            rule = _rule(report, entry["model"], entry["response"])
            key = (entry["name"], entry["reference"], rule, entry["labels"])
            side = "at most" if entry["direction"] == "upper" else "at least"
            found.setdefault((*key, side), {})[entry["kind"]] = entry["value"]
    return html_table(
        ("bound", "on", "rule", "labels", "estimate", "certified"),
        [
            (
                reference,
                f"{QUANTITIES[name]}, {side}",
                rule,
                labels,
                _number(values.get("estimate"), side),
                _number(values.get("certificate"), side),
            )
            for (name, reference, rule, labels, side), values in found.items()
        ],
    )


def _refused(report: Mapping[str, Any]) -> str:
    """Return why the other theorems give no number, each reason once."""
    reasons: dict[str, set[str]] = {}
    for entry in report["bounds"]:
        if entry["name"] in QUANTITIES and not entry["applicable"]:
            rule = _rule(report, entry["model"], entry["response"])
            line = f"{rule}, labels {entry['labels']}: {entry['reason']}"
            reasons.setdefault(line, set()).add(entry["reference"])
    items = "".join(
        f"<li>{escape(', '.join(sorted(names)))}: {escape(line)}</li>"
        for line, names in reasons.items()
    )
    return f"<details><summary>Theorems that do not apply</summary><ul>{items}</ul></details>"


def _rule(report: Mapping[str, Any], model: str, response: str) -> str:
    """Return a rule's name, with the response where several are assumed."""
    return model if len(report["stated"]) == 1 else f"{model}, {called(response)}"


def _number(value: float | None, side: str) -> str:
    if value is None:
        return "–"
    empty = value >= 1.0 if side == "at most" else value <= 0.0
    return "says nothing" if empty else f"{value:.3f}"
