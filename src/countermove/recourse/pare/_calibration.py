r"""Probably approximately has recourse (PARE): a threshold with a promise.

Let :math:`m(x)` be the best score a person can reach by an allowed action. Of n
people, the (k+1)-th smallest :math:`m` is a threshold that misses at most a share
``miss_rate`` of all, except with probability ``failure_probability``. Promised to every
group at once (Bonferroni), it cannot be paid for by a small group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from scipy.stats import binom

from countermove._types import Floats
from countermove.certificates import Assumption, Certificate, betting
from countermove.certificates.betting import ratio_p_values
from countermove.errors import CalibrationError, DataError, ParameterError, shown
from countermove.execution import search_bar
from countermove.people import ActionSet
from countermove.recourse.pare.inputs import (
    COUNTING,
    INDEPENDENT,
    ROWS_PER_CLUSTER,
    ClusterRows,
    ReachFunction,
    at_least,
    check_disjoint,
    check_level,
    confidence,
    group_codes,
    numeric_rows,
    reach_of,
    reached_within,
)
from countermove.recourse.problem import probability_slope
from countermove.scores.base import score_of
from countermove.training._labels import refuse_weights
from countermove.training.units import as_rows

ROUNDING = 1e-10
"""A bound is lowered by this share of ``1 + |score|``: whoever stands exactly on it still
passes when the score is summed in another order (many people may stand there at once)."""
CLOSEST_TO_ONE = float(np.nextafter(1.0, 0.0))
TESTED_AT_ONCE = 256
"""Thresholds tested together: most promises end within the first so many."""
FIXED = Assumption("the score and the actions were fixed before these rows were seen")


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


@cache
def smallest_calibration_size(miss_rate: float, failure_probability: float) -> int:
    r"""Return the least n for which a threshold exists.

    >>> from countermove.recourse import smallest_calibration_size
    >>> smallest_calibration_size(miss_rate=0.05, failure_probability=0.05)
    59

    .. math:: (1 - \text{miss rate})^n \le \text{failure probability}
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    size = math.ceil(math.log(failure_probability) / math.log1p(-miss_rate))
    # The ceiling of a rounded quotient can be one off either way.
    while binom.cdf(0, size, miss_rate) > failure_probability:
        size += 1
    while size > 1 and binom.cdf(0, size - 1, miss_rate) <= failure_probability:
        size -= 1
    return size


def check_enough(n: int, miss_rate: float, failure_probability: float) -> None:
    """Refuse fewer calibration rows than any promise needs, naming how many that is."""
    least = smallest_calibration_size(miss_rate, failure_probability)
    if n < least:
        raise CalibrationError(
            f"{n} calibration rows cannot promise a miss rate of {miss_rate} at failure "
            f"probability {failure_probability}; at least {least} are needed: enlarge the "
            "calibration split or ask for less"
        )


@cache
def allowed_misses(n: int, miss_rate: float, failure_probability: float) -> int:
    r"""Return the largest k with :math:`P[\mathrm{Bin}(n, \epsilon) \le k] \le \alpha`."""
    check_enough(n, miss_rate, failure_probability)
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
    check_level(wanted, "wanted")
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
        certificate=pare_certificate(len(reachable), miss_rate, failure_probability),
    )


def calibrate_pare(
    model: Any,
    X_calibration: Any,
    method: str = "auto",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    wanted: float | None = None,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
    clusters: ArrayLike | None = None,
    sample_weight: None = None,
    verbose: int = 0,
) -> PareCalibration:
    r"""Return the largest threshold at which nearly everybody is approved or has recourse.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from countermove import ActionSet, StrategicClassifier, calibrate_pare
    >>> rule = StrategicClassifier(response="none").fit(X[::2], y[::2])
    >>> actions = ActionSet(lower=[-0.5] * 4, upper=[0.5] * 4)
    >>> 0.0 < calibrate_pare(rule, X[1::2], miss_rate=0.1, actions=actions).threshold < 1.0
    True

    With :math:`m_{(1)} \le \dots \le m_{(n)}` the best scores that calibration
    people reach, and :math:`k` from `allowed_misses`, the bound is
    :math:`\sigma(m_{(k+1)})`, never rounded up:

    .. math:: P\bigl[\,P(m(x) < m_{(k+1)}) \le \text{miss rate}\,\bigr]
              \ge 1 - \text{failure probability}

    Parameters
    ----------
    model
        A `Score`, a fitted classifier or a published model.
    X_calibration
        People used for nothing else, shape (n, d), standardised units.
    method
        How the best score is searched for; it never sees a threshold.
    miss_rate
        Tolerated share of the population that can neither pass nor reach the threshold.
    failure_probability
        Chance, over calibration samples, that the promise is wrong.
    actions
        What is allowed; None: the model's own, as for `countermove.recommend`.
    wanted
        The threshold one would use without the promise; None: the largest allowed.
    largest_action
        No feature moves further than this; None: no such bound.
    ids, trained_on
        Ids of the calibration rows, and of all rows trained or selected on: an
        overlap is refused.
    reach
        The function from people to their best score, in place of ``method``.
    clusters
        Whose rows belong together (a household, a firm), one id per row: rows of one cluster
        need not be independent, clusters must be. At most 5 rows of each are drawn at random,
        and the share promised counts these. Every threshold is tested by betting, rising, up
        to the first failure. None: rows are independent.
    sample_weight
        Refused: the promise counts people who were drawn alike.
    verbose
        Above 0: a progress bar on a terminal, with the time left; nothing where nobody watches.
    """
    refuse_weights(sample_weight, "calibrate_pare")
    if wanted is not None:
        check_level(wanted, "wanted")
    score = score_of(model)
    X = numeric_rows(as_rows(model, X_calibration), score)
    check_disjoint(ids, trained_on, len(X))
    drawn = None if clusters is None else ClusterRows.drawn(clusters, len(X), ids)
    X = X if drawn is None else X[drawn.rows]
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    with search_bar(verbose):
        best = search(X)
    slope = probability_slope(model)
    bound = threshold_bound(best, miss_rate, failure_probability, slope, drawn)
    return PareCalibration(
        threshold=bound if wanted is None else min(wanted, bound),
        bound=bound,
        certificate=pare_certificate(
            len(X), miss_rate, failure_probability, drawn, reached_within(search)
        ),
    )


def threshold_bound(
    best: Floats,
    miss_rate: float,
    failure_probability: float,
    slope: float = 1.0,
    clusters: ClusterRows | None = None,
) -> float:
    """Return the largest threshold that the best scores of calibration people allow."""
    bad = np.flatnonzero(np.isnan(best))
    if bad.size:
        raise DataError(f"the best score of rows {shown(bad)} is not a number", rows=bad)
    reached = reached_by_most(best, miss_rate, failure_probability, clusters)
    slack = ROUNDING * (1.0 + abs(reached)) if np.isfinite(reached) else 0.0
    lowest = reached - slack
    bound = min(float(expit(slope * lowest)), CLOSEST_TO_ONE)
    if bound <= 0.0:
        raise CalibrationError(
            f"no threshold above 0 leaves at most {miss_rate:.0%} of people without recourse: "
            f"{np.count_nonzero(best <= reached)} of {len(best)} calibration people reach no score "
            f"above {lowest:g}; allow more actions or a higher miss_rate, or add calibration rows"
        )
    # Probabilities close to 1 are far apart on the score's scale: never round up on that.
    while float(logit(bound)) / slope > reached - 0.5 * slack:
        bound = float(np.nextafter(bound, 0.0))
    return bound


def reached_by_most(
    values: Floats,
    miss_rate: float,
    failure_probability: float,
    clusters: ClusterRows | None = None,
) -> float:
    """Return the largest value that all people but a share ``miss_rate`` surely reach."""
    if clusters is None:
        k = allowed_misses(len(values), miss_rate, failure_probability)
        return float(np.partition(values, k)[k])
    clusters.check_enough(miss_rate, failure_probability)
    levels, sizes = np.unique(values), clusters.totals(np.ones(len(values)))
    # Between neighbouring values the same people are missed: all thresholds are tested, rising.
    # At the lowest nobody is, which is why it passes where there are enough clusters.
    for start in range(0, len(levels), TESTED_AT_ONCE):
        missed = clusters.totals(values < levels[start : start + TESTED_AT_ONCE, None])
        counts = np.broadcast_to(sizes, missed.shape)
        p_values = ratio_p_values(missed, counts, ROWS_PER_CLUSTER, miss_rate)
        failed = np.flatnonzero(p_values > failure_probability)
        if failed.size:
            return float(levels[start + failed[0] - 1])
    return float(levels[-1])


def pare_certificate(
    n: int,
    miss_rate: float,
    failure_probability: float,
    clusters: ClusterRows | None = None,
    within: str = "",
) -> Certificate:
    """Return what PARE promises, ``within`` what it is: it counts the approved as well."""
    plain = clusters is None
    return Certificate(
        name="recourse_miss_rate",
        value=miss_rate,
        direction="upper",
        kind="certificate",
        level=1.0 - failure_probability,
        n=n,
        assumptions=(INDEPENDENT if clusters is None else clusters.assumption, FIXED),
        reference="PARE: binomial tail of the calibration order statistics"
        if plain
        else f"PARE: {betting.REFERENCE}, clusters as units",
        words=(
            f"{confidence(failure_probability)}, at least {at_least(1.0 - miss_rate)} of people "
            f"like these are approved or have recourse{within}{'' if plain else COUNTING}"
        ),
    )


@dataclass(frozen=True)
class GroupCalibration:
    """One threshold and a promise per group.

    Parameters
    ----------
    threshold
        The common rule: favourable iff the probability is at least this.
    bound
        The largest common threshold: the least of ``bounds``.
    bounds
        The largest threshold each group allows by itself.
    certificates
        One per group; together they hold at the level each of them names.
    """

    threshold: float
    bound: float
    bounds: dict[str, float]
    certificates: dict[str, Certificate]


def smallest_group_size(n_groups: int, miss_rate: float, failure_probability: float) -> int:
    """Return how many calibration rows every group needs (72 for two at .05/.05)."""
    if n_groups < 1:
        raise ParameterError(f"a promise by group needs at least one group, got {n_groups}")
    check_level(failure_probability, "failure_probability")
    return smallest_calibration_size(miss_rate, failure_probability / n_groups)


def check_group_sizes(
    names: Sequence[str], sizes: NDArray[np.intp], miss_rate: float, failure_probability: float
) -> None:
    """Refuse groups too small for a promise, naming each and the rows it needs."""
    least = smallest_group_size(len(names), miss_rate, failure_probability)
    small = [
        f"{name!r} has {size}" for name, size in zip(names, sizes, strict=True) if size < least
    ]
    if small:
        raise CalibrationError(
            f"a miss rate of {miss_rate} in each of {len(names)} groups at failure probability "
            f"{failure_probability} needs at least {least} calibration rows per group, but "
            f"{', '.join(small)}: enlarge the calibration split, join groups or ask for less"
        )


def calibrate_pare_by_group(
    model: Any,
    X_calibration: Any,
    groups: ArrayLike,
    method: str = "auto",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    column: str = "group",
    wanted: float | None = None,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
    clusters: ArrayLike | None = None,
) -> GroupCalibration:
    r"""Return the largest threshold that keeps the promise in every group.

    Each of the :math:`G` groups is calibrated at
    :math:`\text{failure probability}/G`; the least of their bounds is the common
    one. Given who belongs to which group, the promises hold together:

    .. math:: P\bigl[\,\forall g:\ P(m(x) < \theta \mid g) \le \text{miss rate}\,\bigr]
              \ge 1 - \text{failure probability}

    Parameters
    ----------
    groups
        The group of every calibration person, shape (n,).
    column
        What the groups are called, for the certificates.
    model, X_calibration, method, miss_rate, failure_probability, actions, wanted,
    largest_action, ids, trained_on, reach, clusters
        See `countermove.recourse.calibrate_pare`.
    """
    if wanted is not None:
        check_level(wanted, "wanted")
    X = numeric_rows(as_rows(model, X_calibration), score_of(model))
    check_disjoint(ids, trained_on, len(X))
    names, codes = group_codes(groups, len(X))
    if clusters is None:
        sizes = np.bincount(codes, minlength=len(names))
        check_group_sizes(names, sizes, miss_rate, failure_probability)
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    best = search(X)
    share, slope = failure_probability / len(names), probability_slope(model)
    bounds, certificates = {}, {}
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        drawn = None
        if clusters is not None:
            drawn = ClusterRows.drawn(clusters, len(X), ids, codes == code, f"{column} = {name}")
            rows = drawn.rows
        bounds[name] = threshold_bound(best[rows], miss_rate, share, slope, drawn)
        plain = pare_certificate(
            len(rows), miss_rate, failure_probability, drawn, reached_within(search)
        )
        certificates[name] = _of_group(plain, column, name, len(names))
    bound = min(bounds.values())
    return GroupCalibration(
        bound if wanted is None else min(wanted, bound), bound, bounds, certificates
    )


def _of_group(plain: Certificate, column: str, name: str, n_groups: int) -> Certificate:
    """Return the certificate of one group of several that share the level."""
    sure, claim = plain.words.split(", ", 1)
    whom = f"people like these with {column} = {name}"
    return replace(
        plain,
        name=f"recourse_miss_rate[{column}={name}]",
        reference=f"{plain.reference}; Bonferroni over {n_groups} groups",
        words=(
            f"{sure}, and in all {n_groups} groups at once, "
            f"{claim.replace('people like these', whom)}"
        ),
    )
