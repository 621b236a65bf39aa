"""Which features moved, by how much, and how much of that our response foretold."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove.data.standardise import Standardiser
from countermove.production.drift.comparison import SCORE, Comparison
from countermove.production.drift.samples import Three

CLEARLY = 3.0
"""Standard errors from which on a mean moved: then a share of its shift can be told."""


@dataclass(frozen=True)
class FeatureShift:
    """One feature (the deployed score last): shifts of its mean, in units of its spread.

    ``observed`` and ``predicted`` count from the reference; ``error`` is the standard error of
    their difference; ``foretold`` is predicted over observed where the mean clearly moved;
    ``per_spread`` is the spread in original units. The p-values are those after Holm.
    """

    name: str
    observed: float
    predicted: float
    error: float
    foretold: float | None
    per_spread: float
    p_reference: float
    p_prediction: float
    moved: bool
    unexpected: bool

    def to_json(self) -> dict[str, Any]:
        """Return the shift, JSON-ready."""
        return asdict(self)


def feature_shifts(
    three: Three, units: Standardiser, against_reference: Comparison, against_prediction: Comparison
) -> tuple[FeatureShift, ...]:
    """Return every feature's shift, and the score's."""
    before, after, seen = (
        sample.columns for sample in (three.reference, three.induced, three.observed)
    )
    spread = before.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    observed = (seen.mean(axis=0) - before.mean(axis=0)) / spread
    predicted = (after.mean(axis=0) - before.mean(axis=0)) / spread
    error = np.sqrt(seen.var(axis=0) / len(seen) + after.var(axis=0) / len(after)) / spread
    original = np.append(units.scale, 1.0) * spread
    return tuple(
        FeatureShift(
            name=old.name,
            observed=float(observed[j]),
            predicted=float(predicted[j]),
            error=float(error[j]),
            foretold=_foretold(float(observed[j]), float(predicted[j]), float(error[j])),
            per_spread=float(original[j]),
            p_reference=old.adjusted,
            p_prediction=new.adjusted,
            moved=old.alarm,
            unexpected=new.alarm,
        )
        for j, (old, new) in enumerate(
            zip(against_reference.columns, against_prediction.columns, strict=True)
        )
    )


def shift_sentence(shift: FeatureShift) -> str:
    """Return what a feature did, in words."""
    unit = "spreads" if shift.name == SCORE else "standard deviations"
    text = f"{shift.name} moved by {shift.observed:+.2f} {unit}"
    if shift.foretold is None:
        return f"{text} (predicted {shift.predicted:+.2f}): its shape changed more than its mean"
    return f"{text}, of which we predicted {shift.predicted:+.2f}"


def _foretold(observed: float, predicted: float, error: float) -> float | None:
    if abs(observed) <= CLEARLY * error or not math.isfinite(predicted / observed):
        return None
    return predicted / observed
