"""How much of the shift our response explains: of all columns together, and feature by feature."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.production.drift._comparison import SCORE, DriftComparison
from countermove.production.drift._samples import DriftSamples
from countermove.production.drift.terms import DriftTerms
from countermove.production.drift.two_samples import (
    Singles,
    feature_map,
    noise_of,
    squared_distance,
)
from countermove.randomness import generator


@dataclass(frozen=True)
class ShareExplained:
    """The share with its bootstrap interval, clipped to [-1, 1]; None and a reason without one."""

    value: float | None
    low: float | None
    high: float | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the share, JSON-ready."""
        return asdict(self)


def share_explained(
    samples: DriftSamples, differs: bool, terms: DriftTerms, seed: int
) -> ShareExplained:
    r"""Return the share of the shift from reference to observed that the response explains.

    .. math:: 1 - D^2(\text{observed}, \text{predicted}) / D^2(\text{observed}, \text{reference})

    with the unbiased kernel distance: like an R², 1 if people are where we said, 0 if the
    prediction is as far off as none, below 0 if it is further off.
    """
    if not differs:
        return ShareExplained(None, None, None, "the new table does not differ from the reference")
    rng = generator(seed, "share of the shift")
    mapped = feature_map(samples.reference.columns, rng)
    before, after, seen = (
        mapped(sample.columns) for sample in (samples.reference, samples.induced, samples.observed)
    )
    shift = squared_distance(seen, before)
    if shift <= 0.0:
        reason = "the shift is too small to be distinguished from the noise of two samples"
        return ShareExplained(None, None, None, reason)
    value = 1.0 - squared_distance(seen, after) / shift
    drawn = _resampled(before, after, seen, terms.bootstrap, rng)
    low, high = np.quantile(drawn, [0.5 * terms.level, 1.0 - 0.5 * terms.level]).tolist()
    return ShareExplained(_clipped(value), _clipped(min(low, value)), _clipped(max(high, value)))


def _resampled(
    before: Singles, after: Singles, seen: Singles, number: int, rng: np.random.Generator
) -> Floats:
    """Return shares of resampled people; reference and prediction are resampled together."""
    noise = [noise_of(sample) for sample in (before, after, seen)]
    first, second = (_weights(len(sample), number, rng) for sample in (before, seen))
    old, predicted, new = first @ before, first @ after, second @ seen
    # A resample doubles the noise of a mean: its own, and the sample's.
    shift = np.sum((new - old) ** 2, axis=1, dtype=np.float64) - 2.0 * (noise[0] + noise[2])
    rest = np.sum((new - predicted) ** 2, axis=1, dtype=np.float64) - 2.0 * (noise[1] + noise[2])
    result: Floats = 1.0 - rest / np.where(shift > 0.0, shift, np.nan)
    result = np.where(np.isfinite(result), result, -1.0)
    return np.clip(result, -1.0, 1.0)


def _weights(n: int, number: int, rng: np.random.Generator) -> Singles:
    rows = rng.integers(0, n, size=(number, n))
    counts = np.stack([np.bincount(line, minlength=n) for line in rows])
    return (counts / n).astype(np.float32)


def _clipped(value: float) -> float:
    return min(1.0, max(-1.0, value))


CLEARLY = 3.0
"""Standard errors from which on a mean moved: then a share of its shift can be given."""


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
    samples: DriftSamples,
    units: Standardiser,
    against_reference: DriftComparison,
    against_prediction: DriftComparison,
) -> tuple[FeatureShift, ...]:
    """Return every feature's shift, and the score's."""
    before, after, seen = (
        sample.columns for sample in (samples.reference, samples.induced, samples.observed)
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
            foretold=_share_foretold(float(observed[j]), float(predicted[j]), float(error[j])),
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


def _share_foretold(observed: float, predicted: float, error: float) -> float | None:
    if abs(observed) <= CLEARLY * error or not math.isfinite(predicted / observed):
        return None
    return predicted / observed
