"""What a report says, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from countermove.production.drift.comparison import Comparison
from countermove.production.drift.decision import Decision, Findings
from countermove.production.drift.feature_shifts import FeatureShift, shift_sentence
from countermove.production.drift.share import ShareExplained

SHOWN = 6
"""Features named one by one."""


def report_words(
    decision: Decision,
    findings: Findings,
    share: ShareExplained,
    shifts: Sequence[FeatureShift],
    level: float,
) -> str:
    """Return the verdict: what to do, what moved, what of it was our doing, what people pay."""
    lines = [f"Recommendation: {decision.recommendation}, because {'; '.join(decision.reasons)}."]
    lines.append(_tests(findings.against_reference, "people before they answered"))
    lines.append(_tests(findings.against_prediction, "where our response puts them"))
    lines.append(_share(share, level))
    moved = [shift for shift in shifts if shift.moved or shift.unexpected]
    moved.sort(key=lambda shift: min(shift.p_reference, shift.p_prediction))
    lines += [f"{shift_sentence(shift)}." for shift in moved[:SHOWN]]
    if len(moved) > SHOWN:
        lines.append(f"And {len(moved) - SHOWN} more columns.")
    lines.append(_people(findings))
    lines.append(_labels(findings.against_prediction))
    return "\n".join(line for line in lines if line)


def _tests(comparison: Comparison, against: str) -> str:
    p = f"p = {comparison.p_value:.2g}"
    if not comparison.alarms:
        return f"No difference from {against} is shown ({p})."
    names = {"joint": "all features together", "marginal": "single columns", "labels": "labels"}
    said = " and ".join(names[family] for family in comparison.alarms)
    return f"The new table differs from {against} in {said} ({p})."


def _share(share: ShareExplained, level: float) -> str:
    if share.value is None:
        return ""
    interval = f"{share.low:.0%} to {share.high:.0%}, {1.0 - level:.0%} interval"
    if share.value <= 0.0:
        return f"Our response explains nothing of the shift ({interval})."
    return f"Our response explains {share.value:.0%} of the shift ({interval})."


def _people(findings: Findings) -> str:
    found, people = findings.people.estimate, findings.people
    if found is None:
        return f"Costs were not estimated anew: {people.reason.rstrip('.')}."
    ours = "" if people.configured is None else f" Ours is {people.configured:.4g}."
    return found.verdict.replace("\n", " ") + ours


def _labels(comparison: Comparison) -> str:
    labels = comparison.labels
    if labels is None:
        return "Too few labels are known to judge P(y | score)."
    seen, said = labels.error_observed, labels.error_expected
    return (
        f"The rule judges {seen[0]:.1%} wrongly ({seen[1]:.1%} to {seen[2]:.1%}), expected "
        f"{said[0]:.1%}; labels given the score: p = {labels.p_value:.2g}."
    )
