"""Promises to the refused: that they have recourse, and what it costs them at most.

PARE counts the approved, so approving nearly everybody keeps it; these promises do not. Refused
people are other people at every threshold: a fixed-sequence test finds those at which enough of
them have recourse. At a fixed threshold an order statistic of their costs bounds the price.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from countermove._types import Floats, Mask
from countermove.certificates import Assumption, Certificate, betting
from countermove.errors import CalibrationError
from countermove.people import ActionSet, Cost
from countermove.recourse.pare._calibration import (
    reached_by_most,
    smallest_calibration_size,
)
from countermove.recourse.pare.inputs import (
    COUNTING,
    INDEPENDENT,
    ClusterRows,
    ReachFunction,
    at_least,
    check_disjoint,
    check_level,
    checked_grid,
    confidence,
    numeric_rows,
    reach_of,
    reached_within,
)
from countermove.recourse.pare.sequence import SequencePromise, promise_of_misses
from countermove.recourse.problem import actions_of_model, probability_slope
from countermove.recourse.recommend import NOT_NEEDED, recommend
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model

FIXED_THRESHOLD = Assumption(
    "the score, the threshold and the actions were fixed before these rows were seen"
)
CLAIM = "of those refused, at least {share} have recourse"


def refused_people(
    scores: Floats, best: Floats, thresholds: Floats, slope: float = 1.0
) -> tuple[Mask, Mask]:
    """Return who is refused without recourse, and who is refused, each (thresholds, …)."""
    cuts = (logit(thresholds) / slope).reshape(-1, *([1] * scores.ndim))
    refused: Mask = scores < cuts
    missed: Mask = refused & (best < cuts)
    return missed, refused


def certify_refused(
    model: Any,
    X_calibration: Any,
    grid: ArrayLike,
    method: str = "auto",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
    clusters: ArrayLike | None = None,
) -> SequencePromise:
    r"""Find the thresholds at which enough of the refused have recourse.

    .. math:: P\bigl[\,\exists\,\theta \text{ passed}:\ P(m(x) < \theta \mid s(x) < \theta)
              > \text{miss rate}\,\bigr] \le \text{failure probability}

    Parameters
    ----------
    grid
        Thresholds in the order of the test, rising or falling, fixed without a look
        at the calibration rows. A low start refuses too few people for a test, a high
        one leaves too many without recourse: `refused_grid` finds a start on other rows.
    model, X_calibration, method, miss_rate, failure_probability, actions,
    largest_action, ids, trained_on, reach, clusters
        See `countermove.recourse.calibrate_pare`.
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    thresholds, score = checked_grid(grid), score_of(model)
    X = numeric_rows(X_calibration, score)
    check_disjoint(ids, trained_on, len(X))
    drawn = None if clusters is None else ClusterRows.drawn(clusters, len(X), ids)
    X = X if drawn is None else X[drawn.rows]
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    missed, refused = refused_people(
        values(score, X), search(X), thresholds, probability_slope(model)
    )
    return promise_of_misses(
        thresholds,
        missed[None],
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name="refused_miss_rate",
        claim=CLAIM + reached_within(search),
        counted=refused,
        clusters=drawn,
    )


def refused_grid(
    model: Any, X_selection: Any, grid: ArrayLike, miss_rate: float, *, reach: ReachFunction
) -> Floats:
    """Return the rising part of a grid from where the test has most power on other rows.

    Parameters
    ----------
    model
        What holds the score.
    X_selection
        People who are not calibrated on.
    grid
        Thresholds to start from.
    miss_rate
        Of the promise.
    reach
        From people to the best score they can reach, see `reach_of`.
    """
    thresholds = np.sort(checked_grid(grid))
    probe = certify_refused(model, X_selection, thresholds, miss_rate=miss_rate, reach=reach)
    return thresholds[int(np.argmin(probe.p_values)) :]


def refused_certificate(
    model: Any,
    X_calibration: Any,
    grid: ArrayLike,
    threshold: float,
    failure_probability: float,
    *,
    reach: ReachFunction,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    clusters: ArrayLike | None = None,
) -> Certificate:
    """Bound the share of the refused without recourse at any threshold of a grid.

    Clopper-Pearson at every threshold (clusters: bets on falling shares), Bonferroni over the
    grid: the bound holds at whichever of them is chosen, with whatever share the rows show.
    """
    check_level(failure_probability, "failure_probability")
    thresholds = checked_grid(grid)
    alone = certify_refused(
        model,
        X_calibration,
        np.array([threshold]),
        miss_rate=0.5,
        failure_probability=failure_probability / len(thresholds),
        ids=ids,
        reach=reach,
        clusters=clusters,
    )
    bound = alone.shared_bound(len(thresholds), failure_probability)
    reason = ""
    if not bound.applicable:
        people = f"{alone.n[0]} calibration people refused at {threshold:.4g}"
        none = alone.miss_share[0] == 1.0
        reason = f"none of the {people} has recourse" if none else f"{people} are too few"
    return replace(bound, name="refused_without_recourse", reason=reason)


@dataclass(frozen=True)
class CostPromise:
    """What recourse costs at most, for most of the refused.

    Parameters
    ----------
    cost
        In units of the cost that prices actions.
    share
        Of the refused, who surely have recourse at that price.
    certificate
        The claim; its value is ``cost``.
    """

    cost: float
    share: float
    certificate: Certificate


def certify_cost(
    model: Any,
    X_calibration: Any,
    threshold: float = 0.5,
    cost: Cost | None = None,
    method: str = "auto",
    share: float = 0.9,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    clusters: ArrayLike | None = None,
) -> CostPromise:
    r"""Return what recourse costs at most, for at least a share of the refused.

    With :math:`c_{(1)} \ge \dots \ge c_{(n)}` the costs of the refused, infinite for those
    without recourse, and :math:`k` from `allowed_misses`, the bound is :math:`c_{(k+1)}`:

    .. math:: P\bigl[\,P(c(x) \le c_{(k+1)} \mid \text{refused}) \ge \text{share}\,\bigr]
              \ge 1 - \text{failure probability}

    Parameters
    ----------
    X_calibration
        People on whom neither the model nor its threshold depends, shape (n, d).
    threshold
        The rule: favourable iff the probability is at least this.
    cost
        What a move costs; None: the squared length in standardised units.
    method
        How recourse is searched for: what the search does not find counts as infinite, and
        where it is not proven cheapest the bound is on what the search found.
    share, failure_probability
        How many of the refused are promised the price, and the chance that it is wrong.
    ids, trained_on
        Ids of these rows, and of all rows trained, selected or calibrated on.
    model, actions, largest_action, clusters
        See `countermove.recourse.calibrate_pare`.
    """
    inside, units = standardised_model(model)
    X = numeric_rows(X_calibration, score_of(inside))
    check_disjoint(ids, trained_on, len(X))
    allowed = actions_of_model(inside, units.actions(actions))
    allowed = allowed.narrowed(largest_action, X.shape[1])
    advice = recommend(inside, units.rows(X), method, threshold, allowed, units.cost(cost))
    refused = advice.status != NOT_NEEDED
    return cost_promise(advice.cost, refused, share, failure_probability, ids, clusters)


def cost_promise(
    costs: Floats,
    refused: Mask,
    share: float,
    failure_probability: float,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    clusters: ArrayLike | None = None,
) -> CostPromise:
    """Return the bound of `certify_cost` from people's costs, NaN for those without recourse."""
    check_level(share, "share")
    check_level(failure_probability, "failure_probability")
    drawn = None
    if clusters is not None:
        drawn = ClusterRows.drawn(clusters, len(costs), ids, refused, "the refused")
    rows = np.flatnonzero(refused) if drawn is None else drawn.rows
    least = smallest_calibration_size(1.0 - share, failure_probability)
    if len(rows) < least:
        raise CalibrationError(
            f"{len(rows)} refused people are too few to promise a price to {at_least(share)} of "
            f"the refused at failure probability {failure_probability:g}: at least {least} are "
            "needed; bring more rows or ask for less"
        )
    # To cost more than c is not to reach -c.
    best = np.where(np.isnan(costs[rows]), -np.inf, -costs[rows])
    most = -reached_by_most(best, 1.0 - share, failure_probability, drawn)
    if not np.isfinite(most):
        raise CalibrationError(
            f"no price can be promised to {at_least(share)} of the refused: "
            f"{np.count_nonzero(~np.isfinite(best))} of {len(best)} refused people have no "
            "recourse at any price; allow more actions or promise it to a smaller share"
        )
    return CostPromise(
        most, share, cost_certificate(most, len(rows), share, failure_probability, drawn)
    )


def cost_certificate(
    most: float | None,
    n: int,
    share: float,
    failure_probability: float,
    clusters: ClusterRows | None = None,
    reason: str = "",
) -> Certificate:
    """Return the promise of a price, or why there is none."""
    plain = clusters is None
    tail = "binomial tail of the order statistics of the costs"
    return Certificate(
        name="recourse_cost",
        value=most,
        direction="upper",
        kind="certificate",
        level=1.0 - failure_probability,
        n=n,
        assumptions=(INDEPENDENT if clusters is None else clusters.assumption, FIXED_THRESHOLD),
        reference=tail if plain else f"{betting.REFERENCE}, clusters as units",
        reason=reason,
        words=""
        if most is None
        else (
            f"{confidence(failure_probability)}, at least {at_least(share)} of the refused have "
            f"recourse costing at most {_at_most(most)}{'' if plain else COUNTING}"
        ),
    )


def _at_most(value: float) -> str:
    """Return a number with four digits, rounded up so that the claim is not stronger."""
    if value <= 0.0:
        return f"{value:.4g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit - 1e-9) * unit:.4g}"
