"""Estimates with their intervals, from what is known of each person."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata

from countermove._types import Floats, Mask
from countermove.certificates.intervals import MeasuredShare
from countermove.transfer.optimal import difference

Estimate = dict[str, Any]
"""``value``, ``low``, ``high`` and ``n``; the ends are None where nothing is known of them."""


def share_estimate(hit: Floats | Mask, failure_probability: float) -> Estimate:
    """Return a share: exact (Clopper and Pearson) for yes and no, else of bounded chances."""
    if not len(hit):
        return {"value": None, "low": None, "high": None, "n": 0}
    found = MeasuredShare.of(hit, failure_probability)
    return _estimate(found.value, found.low, found.high, found.n)


def paired_difference(own: Floats, other: Floats, failure_probability: float) -> Estimate:
    """Return by how much more often the first is right than the second, on the same people."""
    if len(own) < 2:
        return {"value": None, "low": None, "high": None, "n": len(own)}
    found = difference(1.0 - other, 1.0 - own, failure_probability)
    return _estimate(found.value, found.low, found.high, found.n)


def ratio_estimate(hit: Floats, reference: Floats, failure_probability: float) -> Estimate:
    """Return a ratio of shares; each end of the interval may fail with half of the probability."""
    own, base = (share_estimate(values, failure_probability / 2.0) for values in (hit, reference))
    if not own["n"] or not base["value"]:
        return {"value": None, "low": None, "high": None, "n": own["n"]}
    high = own["high"] / base["low"] if base["low"] else None
    return _estimate(own["value"] / base["value"], own["low"] / base["high"], high, own["n"])


def mean_estimate(
    values: Floats, failure_probability: float, lowest: float = -math.inf
) -> Estimate:
    """Return a mean of values from ``lowest`` on, its interval by the normal distribution."""
    n = len(values)
    if n < 2:
        return {"value": float(values.mean()) if n else None, "low": None, "high": None, "n": n}
    mean = float(values.mean())
    radius = _z(failure_probability) * float(values.std(ddof=1)) / math.sqrt(n)
    return _estimate(mean, max(mean - radius, lowest), mean + radius, n)


def auc_estimate(scores: Floats, favourable: Mask, failure_probability: float) -> Estimate:
    """Return the area under the ROC curve with the interval of DeLong et al. (1988)."""
    parts = _placements(scores, favourable)
    if parts is None:
        return {"value": None, "low": None, "high": None, "n": len(scores)}
    radius = _z(failure_probability) * _deviation(*parts)
    value = float(parts[0].mean())
    return _estimate(value, max(value - radius, 0.0), min(value + radius, 1.0), len(scores))


def auc_difference(
    own: Floats, other: Floats, favourable: Mask, failure_probability: float
) -> Estimate:
    """Return by how much the first AUC is above the second, paired (DeLong et al. 1988)."""
    first, second = _placements(own, favourable), _placements(other, favourable)
    if first is None or second is None:
        return {"value": None, "low": None, "high": None, "n": len(own)}
    gaps = first[0] - second[0], first[1] - second[1]
    radius = _z(failure_probability) * _deviation(*gaps)
    value = float(gaps[0].mean())
    return _estimate(value, value - radius, value + radius, len(own))


def _placements(scores: Floats, favourable: Mask) -> tuple[Floats, Floats] | None:
    """Return each favourable person's share of others below, and each other's of those above."""
    up, down = scores[favourable], scores[~favourable]
    if len(up) < 2 or len(down) < 2 or not np.isfinite(scores).all():
        return None
    ranks = rankdata(scores)
    above = (ranks[favourable] - rankdata(up)) / len(down)
    below = 1.0 - (ranks[~favourable] - rankdata(down)) / len(up)
    return above, below


def _deviation(above: Floats, below: Floats) -> float:
    return math.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))


def _z(failure_probability: float) -> float:
    return float(norm.ppf(1.0 - failure_probability / 2.0))


def _estimate(value: float, low: float, high: float | None, n: int) -> Estimate:
    return {"value": value, "low": low, "high": high, "n": n}
