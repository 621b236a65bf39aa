"""Estimates with their intervals, from what is known of each person."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from countermove._types import Floats, Mask
from countermove.certificates.betting import clustered_interval
from countermove.certificates.intervals import MeasuredShare
from countermove.transfer.optimal import difference

Clusters: TypeAlias = NDArray[Any] | None
Estimate = dict[str, Any]
"""``value``, ``low``, ``high`` and ``n``; the ends are None where nothing is known of them."""
SMALLEST_GROUP = 30
"""People of a group below which no ratio is shown: the approval rate of so few is known to .19 at
best, and a fifth is what the four-fifths rule asks about."""
SMALLEST_CLASS = 20
"""People of each outcome below which an AUC has no interval: with fewer, 95 % cover below .93."""


def share_estimate(
    hit: Floats | Mask, failure_probability: float, clusters: Clusters = None
) -> Estimate:
    """Return a share: exact (Clopper and Pearson) for yes and no, else of bounded chances.

    Here and below ``clusters`` says whose rows belong together; these are then bet on as units.
    """
    if not len(hit):
        return {"value": None, "low": None, "high": None, "n": 0}
    if clusters is not None:
        ends = clustered_interval(hit, clusters, failure_probability)
        return _estimate(float(hit.mean()), *ends, len(hit))
    found = MeasuredShare.of(hit, failure_probability)
    return _estimate(found.value, found.low, found.high, found.n)


def paired_difference(
    own: Floats, other: Floats, failure_probability: float, clusters: Clusters = None
) -> Estimate:
    """Return by how much more often the first is right than the second, on the same people."""
    if len(own) < 2:
        return {"value": None, "low": None, "high": None, "n": len(own)}
    found = difference(1.0 - other, 1.0 - own, failure_probability, clusters)
    return _estimate(found.value, found.low, found.high, found.n)


def ratio_estimate(
    hit: Floats,
    reference: Floats,
    failure_probability: float,
    clusters: tuple[Clusters, Clusters] = (None, None),
) -> Estimate:
    """Return a ratio of shares; each end of the interval may fail with half of the probability."""
    own, base = (
        share_estimate(values, failure_probability / 2.0, some)
        for values, some in zip((hit, reference), clusters, strict=True)
    )
    if not own["n"] or not base["value"]:
        return {"value": None, "low": None, "high": None, "n": own["n"]}
    high = own["high"] / base["low"] if base["low"] else None
    return _estimate(own["value"] / base["value"], own["low"] / base["high"], high, own["n"])


def mean_estimate(
    values: Floats, largest: float, failure_probability: float, clusters: Clusters = None
) -> Estimate:
    """Return a mean of values in [0, ``largest``]; its interval, by betting, holds at every n."""
    n = len(values)
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0}
    units = np.arange(n) if clusters is None else clusters
    low, high = clustered_interval(values / largest, units, failure_probability)
    return _estimate(float(values.mean()), largest * low, largest * high, n)


def auc_estimate(scores: Floats, favourable: Mask, failure_probability: float | None) -> Estimate:
    """Return the area under the ROC curve; its ends are None below `SMALLEST_CLASS` or unasked.

    They are the outer ones of DeLong's interval on the logit scale, with Student's t for the
    smaller class, which is too short near 1, and of Newcombe's (2006, method 5), which is too
    short where one class spreads more than the other.
    """
    parts = _placements(scores, favourable)
    if parts is None:
        return {"value": None, "low": None, "high": None, "n": len(scores)}
    value, smaller = float(parts[0].mean()), min(map(len, parts))
    if failure_probability is None or smaller < SMALLEST_CLASS:
        return _estimate(value, None, None, len(scores))
    if np.ptp(scores) == 0.0:
        return _estimate(value, value, value, len(scores))
    if 0.0 < value < 1.0:
        radius = _radius(*parts, failure_probability) / (value * (1.0 - value))
        low, high = (float(expit(logit(value) + side * radius)) for side in (-1.0, 1.0))
    else:
        # So many pairs without a person in common are ranked alike.
        least = (0.5 * failure_probability) ** (1.0 / smaller)
        low, high = (least, 1.0) if value else (0.0, 1.0 - least)
    ends = _newcombe(value, len(parts[0]), len(parts[1]), failure_probability)
    return _estimate(value, min(low, ends[0]), max(high, ends[1]), len(scores))


def _newcombe(value: float, up: int, down: int, failure_probability: float) -> tuple[float, float]:
    """Return the areas from which ``value`` is a quantile away, were scores exponential."""
    from scipy.optimize import brentq

    z, others = float(norm.isf(0.5 * failure_probability)), 0.5 * (up + down) - 1.0

    def beyond(area: float) -> float:
        spread = 1.0 + others * ((1.0 - area) / (2.0 - area) + area / (1.0 + area))
        variance = area * (1.0 - area) * spread / (up * down)
        return (value - area) ** 2 - z * z * variance

    low = 0.0 if value == 0.0 else float(brentq(beyond, 0.0, value))
    return low, 1.0 if value == 1.0 else float(brentq(beyond, value, 1.0))


def auc_difference(
    own: Floats, other: Floats, favourable: Mask, failure_probability: float | None
) -> Estimate:
    """Return by how much the first AUC is above the second, paired (DeLong et al. 1988).

    The ends are None below `SMALLEST_CLASS`, or unasked.
    """
    first, second = _placements(own, favourable), _placements(other, favourable)
    if first is None or second is None:
        return {"value": None, "low": None, "high": None, "n": len(own)}
    gaps = first[0] - second[0], first[1] - second[1]
    value = float(gaps[0].mean())
    if failure_probability is None or min(map(len, gaps)) < SMALLEST_CLASS:
        return _estimate(value, None, None, len(own))
    radius = _radius(*gaps, failure_probability)
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


def _radius(above: Floats, below: Floats, failure_probability: float) -> float:
    deviation = math.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
    least = min(len(above), len(below)) - 1
    return float(student.ppf(1.0 - 0.5 * failure_probability, least)) * deviation


def _estimate(value: float, low: float | None, high: float | None, n: int) -> Estimate:
    return {"value": value, "low": low, "high": high, "n": n}
