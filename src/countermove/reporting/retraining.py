"""A retraining on one page: what was decided, by which gates, and what had drifted."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from countermove.reporting.drift import drift_section
from countermove.reporting.page import STYLE, html_table
from countermove.reporting.tables import called

OUTCOMES = {
    "promoted": "The challenger is the new champion.",
    "kept": "The champion stays; the challenger is kept with the reasons against it.",
}
PASSED = {True: "passed", False: "refused", None: "does not apply"}


def retraining_page(decision: Mapping[str, Any], drift: Mapping[str, Any]) -> str:
    """Return the page of a decision and of the drift report made on the way."""
    facts = decision["facts"]
    gates = "".join(
        f"<li><strong>{escape(gate['name'])}</strong> {PASSED[gate['passed']]}: "
        f"{escape(gate['words'])}</li>"
        for gate in facts["gates"]
    )
    script, moved = "", f"<h2>Drift</h2><p>Not compared: {escape(drift.get('reason', ''))}.</p>"
    if drift["recommendation"] is not None:
        from plotly.offline import get_plotlyjs

        script, moved = f"<script>{get_plotlyjs()}</script>", drift_section(drift)
    title = f"Retraining {escape(decision['version'])}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{STYLE}</style>{script}</head>
<body><h1>{title}</h1>
<p>{OUTCOMES[decision["outcome"]]} Champion: {escape(str(decision["champion_after"]))}; before:
{escape(str(decision["champion_before"]))}.</p>
<h2>Gates</h2><ul>{gates}</ul>
<h2>Accuracy on the hold-out</h2>{_accuracies(facts["judgement"])}
<h2>New batches</h2>{_batches(facts["batches"])}
<h2>What was foretold, and what came</h2>{_outcomes(facts["outcomes"])}
{moved}
</body></html>
"""


def _accuracies(judged: Mapping[str, Any]) -> str:
    rules = list(judged["accuracy"])
    rows = [
        (called(response), *(f"{judged['accuracy'][rule][response]:.3f}" for rule in rules))
        for response in judged["accuracy"]["challenger"]
    ]
    return html_table(("how people answer", *rules), rows)


def _batches(batches: Mapping[str, Mapping[str, Any]]) -> str:
    new = {name: batch for name, batch in batches.items() if batch["new"]}
    if not new:
        return "<p>None: the first champion is made from the base table.</p>"
    counts = ("rows", "used", "waiting_for_label", "repeated")
    rows = [(name, *(f"{batch[key]:,}" for key in counts)) for name, batch in new.items()]
    return html_table(("batch", "rows", "used", "waiting for a label", "seen before"), rows)


def _outcomes(outcomes: list[Mapping[str, Any]]) -> str:
    if not outcomes:
        return "<p>No outcome has arrived for a forecast yet.</p>"
    rows = [
        (
            f"{outcome['batch']}, {outcome['claim']}",
            f"{outcome['forecast']:.3f}",
            f"{outcome['error']:.3f}",
            "held" if outcome["held"] else "not held",
            "contradicted" if outcome["contradicted"] else "not contradicted",
        )
        for outcome in outcomes
    ]
    return html_table(("batch and bound", "foretold", "error", "", ""), rows)
