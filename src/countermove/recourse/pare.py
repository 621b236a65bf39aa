r"""Probably approximately has recourse (PARE): a threshold with a promise.

Let :math:`p(x)` be the highest probability a person can reach by an allowed
action. Among n independent people, the (k+1)-th smallest :math:`p` is a
threshold that misses at most a share ``miss_rate`` of the population, except
with probability ``failure_probability``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from countermove.certificates import Assumption, Certificate
from countermove.errors import CalibrationError, DataError, ParameterError, shown


@dataclass(frozen=True)
class PareCalibration:
    """A threshold on the probability and what is promised at it.

    Parameters
    ----------
    threshold
        The rule: favourable iff the probability is at least this.
    bound
        The largest threshold the promise allows; ``threshold`` never exceeds it.
    certificate
        Upper bound on the share of people who cannot reach the threshold.
    """

    threshold: float
    bound: float
    certificate: Certificate


def smallest_calibration_size(miss_rate: float, failure_probability: float) -> int:
    r"""Return the least n for which a threshold exists.

    .. math:: (1 - \text{miss rate})^n \le \text{failure probability}
    """
    _check_level(miss_rate, "miss_rate")
    _check_level(failure_probability, "failure_probability")
    size = math.ceil(math.log(failure_probability) / math.log1p(-miss_rate))
    # The ceiling of a rounded quotient can be one off either way.
    while binom.cdf(0, size, miss_rate) > failure_probability:
        size += 1
    while size > 1 and binom.cdf(0, size - 1, miss_rate) <= failure_probability:
        size -= 1
    return size


def allowed_misses(n: int, miss_rate: float, failure_probability: float) -> int:
    r"""Return the largest k whose binomial tail stays within the failure probability.

    .. math:: \sum_{i \le k} \binom{n}{i} \epsilon^i (1-\epsilon)^{n-i} \le \alpha

    Raises
    ------
    CalibrationError
        When even k = 0 is too many: n is below `smallest_calibration_size`.
    """
    least = smallest_calibration_size(miss_rate, failure_probability)
    if n < least:
        raise CalibrationError(
            f"{n} calibration rows cannot promise a miss rate of {miss_rate} at failure "
            f"probability {failure_probability}; at least {least} are needed: enlarge the "
            "calibration split or ask for less"
        )
    k = int(binom.ppf(failure_probability, n, miss_rate))
    while binom.cdf(k, n, miss_rate) > failure_probability:
        k -= 1
    return k


def calibrate_threshold(
    reachable: NDArray[np.float64],
    *,
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    wanted: float = 0.5,
) -> PareCalibration:
    """Return the largest threshold up to ``wanted`` that keeps the promise.

    Parameters
    ----------
    reachable
        Highest probability each calibration person can reach, shape (n,); the
        rows are independent of those the score was trained and chosen on.
    miss_rate
        Tolerated share of the population without recourse.
    failure_probability
        Chance, over calibration samples, that the promise is wrong.
    wanted
        The threshold one would use without the promise.
    """
    _check_level(wanted, "wanted")
    bad = np.flatnonzero(~((reachable >= 0.0) & (reachable <= 1.0)))
    if bad.size:
        raise DataError(
            f"reachable probabilities must lie in [0, 1]; rows {shown(bad)} do not", rows=bad
        )
    k = allowed_misses(len(reachable), miss_rate, failure_probability)
    bound = float(np.partition(reachable, k)[k])
    return PareCalibration(
        threshold=min(wanted, bound),
        bound=bound,
        certificate=Certificate(
            name="recourse_miss_rate",
            value=miss_rate,
            direction="upper",
            kind="certificate",
            level=1.0 - failure_probability,
            n=len(reachable),
            assumptions=(
                Assumption("calibration rows are independent draws of the people to be judged"),
                Assumption("the score and the actions were fixed before these rows were seen"),
            ),
            reference="PARE: binomial tail of the calibration order statistics",
        ),
    )


def _check_level(value: float, name: str) -> None:
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}")
