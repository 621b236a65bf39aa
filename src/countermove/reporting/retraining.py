"""A retraining on one page: what was decided, by which gates, and what had drifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countermove.reporting._citing import Row
from countermove.reporting._rendering import render
from countermove.reporting.drift import drift_section
from countermove.reporting.words import called


def retraining_page(decision: Mapping[str, Any], drift: Mapping[str, Any]) -> str:
    """Return the page of a decision and of the drift report made on the way."""
    facts = decision["facts"]
    compared = drift["recommendation"] is not None
    return render(
        "retraining.html",
        **{key: decision[key] for key in ("version", "outcome")},
        **{key: decision[key] for key in ("champion_after", "champion_before")},
        gates=facts["gates"],
        rules=list(facts["judgement"]["accuracy"]),
        accuracy=_accuracies(facts["judgement"]["accuracy"]),
        batches=_batches(facts["batches"]),
        forecasts=_forecasts(facts["outcomes"]),
        drift=drift_section(drift) if compared else None,
        reason=drift.get("reason", ""),
    )


def _accuracies(accuracy: Mapping[str, Mapping[str, float]]) -> list[Row]:
    return [
        (called(response), *(f"{by_response[response]:.3f}" for by_response in accuracy.values()))
        for response in accuracy["challenger"]
    ]


def _batches(batches: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    counts = ("rows", "used", "waiting_for_label", "repeated")
    return [
        (name, *(f"{batch[key]:,}" for key in counts))
        for name, batch in batches.items()
        if batch["new"]
    ]


def _forecasts(outcomes: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [
        (
            f"{outcome['batch']}, {outcome['claim']}",
            f"{outcome['forecast']:.3f}",
            f"{outcome['error']:.3f}",
            "held" if outcome["held"] else "not held",
            "contradicted" if outcome["contradicted"] else "not contradicted",
        )
        for outcome in outcomes
    ]
