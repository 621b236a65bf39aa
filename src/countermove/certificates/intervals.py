"""What n independent rows say about a population, except with a stated probability.

The intervals every certificate is built from. Each takes the probability with which it
may fail; a caller that uses several at once divides it among them (union bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import NotEnoughRowsError, ParameterError

__all__ = [
    "MeasuredShare",
    "cells_radius",
    "distribution_function_radius",
    "lower_share",
    "mean_interval",
    "paired_interval",
    "per_cent",
    "share_interval",
    "upper_share",
]

Counts: TypeAlias = int | NDArray[np.integer]


def upper_share(count: Counts, n: Counts, failure_probability: float) -> Floats:
    r"""Return Clopper and Pearson's upper bounds on shares; 1 where nothing was counted.

    With ``count`` of ``n`` the true share is at most the :math:`1-\alpha` quantile of
    :math:`\mathrm{Beta}(\text{count}+1, n-\text{count})`, except with probability
    :math:`\alpha`.
    """
    from scipy.special import betaincinv

    _check(failure_probability)
    rest = np.maximum(np.asarray(n) - np.asarray(count), 0)
    bound = betaincinv(np.asarray(count) + 1.0, np.maximum(rest, 1), 1.0 - failure_probability)
    result: Floats = np.where(rest > 0, bound, 1.0)
    return result


def lower_share(count: Counts, n: Counts, failure_probability: float) -> Floats:
    """Return Clopper and Pearson's lower bounds on shares; 0 where nothing was counted."""
    rest = np.maximum(np.asarray(n) - np.asarray(count), 0)
    return 1.0 - upper_share(rest, n, failure_probability)


def share_interval(count: Counts, n: Counts, failure_probability: float) -> tuple[Floats, Floats]:
    """Return both bounds, each failing with half of the probability."""
    half = 0.5 * failure_probability
    return lower_share(count, n, half), upper_share(count, n, half)


def paired_interval(
    gained: int, lost: int, n: int, failure_probability: float
) -> tuple[float, float]:
    r"""Return Tango's score interval for a difference of two shares of the same n people.

    Of the n people ``gained`` count in the first share only, ``lost`` in the second only. The
    interval holds every :math:`\delta` with

    .. math:: |b - c - n\delta| \le z \sqrt{n (2 \hat q_\delta + \delta (1 - \delta))}

    where :math:`\hat q_\delta` is the likeliest chance of counting in the second share only, were
    :math:`\delta` the difference (Tango 1998). An approximation: where ten
    discordant people are expected or more, 95 % intervals of 60 people or more cover .945 to .965.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtri

    _check(failure_probability)
    _need(n, 1)
    z = -float(ndtri(0.5 * failure_probability))

    def beyond(delta: float, side: float) -> float:
        linear = (2 * n - gained + lost) * delta - gained - lost
        square = linear * linear + 8.0 * n * lost * delta * (1.0 - delta)
        variance = 0.5 * (math.sqrt(max(square, 0.0)) - linear) + n * delta * (1.0 - delta)
        return side * (gained - lost - n * delta) - z * math.sqrt(max(variance, 0.0))

    value, low, high = (gained - lost) / n, -1.0, 1.0
    # Where nobody is discordant the variance vanishes at the value itself.
    near = 1e-6 / n
    if lost < n:
        low = float(brentq(beyond, -1.0, value - near, args=(1.0,)))
    if gained < n:
        high = float(brentq(beyond, value + near, 1.0, args=(-1.0,)))
    return low, high


@dataclass(frozen=True)
class MeasuredShare:
    """A share of n people, at least 1, with its interval."""

    value: float
    low: float
    high: float
    level: float
    n: int

    @classmethod
    def of(cls, hit: Floats | Mask, failure_probability: float) -> MeasuredShare:
        """Measure it: exactly (Clopper and Pearson) for yes and no, else of bounded chances."""
        values = np.asarray(hit, dtype=np.float64)
        n, low, high = len(values), 0.0, 1.0
        if np.isin(values, (0.0, 1.0)).all():
            low, high = map(float, share_interval(int(values.sum()), n, failure_probability))
        elif n > 1:
            low, high = mean_interval(values, 0.0, 1.0, failure_probability)
        return cls(float(values.mean()), low, high, 1.0 - failure_probability, n)


def per_cent(value: float, digits: int = 1) -> str:
    """Return a share in per cent, as sentences of the JSON files write it.

    >>> per_cent(0.80666), per_cent(0.05, 0)
    ('80.7 %', '5 %')
    """
    return f"{100.0 * value:.{digits}f} %"


def distribution_function_radius(n: float, failure_probability: float) -> float:
    r"""Return how far an empirical distribution function strays at most, anywhere.

    .. math:: \epsilon = \sqrt{\log(2/\alpha) / 2n}

    (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant).
    """
    _check(failure_probability)
    _need(n, 1)
    return math.sqrt(math.log(2.0 / failure_probability) / (2.0 * n))


def cells_radius(n: int, cells: int, failure_probability: float) -> float:
    r"""Return how far shares of ``cells`` cells stray at most in total variation.

    .. math:: \tfrac12 \|\hat p - p\|_1 \le \sqrt{\log((2^K - 2)/\alpha) / 2n}

    (Weissman et al. 2003: a union over the :math:`2^K - 2` sets of cells).
    """
    _check(failure_probability)
    _need(n, 1)
    if cells < 2:
        return 0.0
    sets = cells * math.log(2.0) + math.log1p(-(2.0 ** (1 - cells)))
    return math.sqrt((sets - math.log(failure_probability)) / (2.0 * n))


def mean_interval(
    values: Floats, smallest: float, largest: float, failure_probability: float
) -> tuple[float, float]:
    r"""Return an interval for a mean of bounded values by their own variance.

    .. math:: |\bar v - \mu| \le \sqrt{2 \hat V \log(4/\alpha) / n}
        + 7 R \log(4/\alpha) / 3(n-1)

    with range :math:`R` and sample variance :math:`\hat V` (Maurer and Pontil 2009).
    """
    _check(failure_probability)
    n = len(values)
    _need(n, 2)
    if not smallest <= float(np.min(values)) <= float(np.max(values)) <= largest:
        raise ParameterError(
            f"values lie in [{np.min(values):g}, {np.max(values):g}]; "
            f"expected within [{smallest:g}, {largest:g}]"
        )
    log, width = math.log(4.0 / failure_probability), largest - smallest
    radius = math.sqrt(2.0 * float(np.var(values, ddof=1)) * log / n)
    radius += 7.0 * width * log / (3.0 * (n - 1))
    mean = float(np.mean(values))
    return max(mean - radius, smallest), min(mean + radius, largest)


def _check(failure_probability: float) -> None:
    if not 0.0 < failure_probability < 1.0:
        raise ParameterError(
            f"failure_probability must lie strictly between 0 and 1, got {failure_probability!r}"
        )


def _need(n: float, least: int) -> None:
    if n < least:
        raise NotEnoughRowsError(f"an interval needs at least {least} rows, got {n:g}")
