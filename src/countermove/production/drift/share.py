"""How much of what changed is our own doing: the share of the shift that the response explains."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.production.drift.kernel_distance import (
    Singles,
    feature_map,
    noise_of,
    squared_distance,
)
from countermove.production.drift.samples import Three
from countermove.production.drift.terms import DriftTerms
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


def share_explained(three: Three, differs: bool, terms: DriftTerms, seed: int) -> ShareExplained:
    r"""Return the share of the shift from reference to observed that the response explains.

    .. math:: 1 - D^2(\text{observed}, \text{predicted}) / D^2(\text{observed}, \text{reference})

    with the unbiased kernel distance: like an R², 1 if people are where we said, 0 if the
    prediction is as far off as none, below 0 if it is further off.

    Parameters
    ----------
    three
        The samples.
    differs
        Whether observed and reference differ at all; a share of nothing is not told.
    terms
        Resamples and level: the interval is a percentile interval at one minus the level, an
        estimate without a finite-sample promise.
    seed
        Of features and resamples.
    """
    if not differs:
        return ShareExplained(None, None, None, "the new table does not differ from the reference")
    rng = generator(seed, "share of the shift")
    mapped = feature_map(three.reference.columns, rng)
    before, after, seen = (
        mapped(sample.columns) for sample in (three.reference, three.induced, three.observed)
    )
    shift = squared_distance(seen, before)
    if shift <= 0.0:
        reason = "the shift is too small to be told from the noise of two samples"
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
