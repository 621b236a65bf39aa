r"""The promise to people who have responded to the rule.

People move to the threshold, so at every threshold another population applies. The order
statistics of PARE are not valid then; a fixed-sequence test over thresholds is, whatever
the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from countermove._types import Floats, Mask
from countermove.certificates import Assumption
from countermove.people import ActionSet
from countermove.recourse._search import probability_slope
from countermove.recourse.pare._calibration import check_enough, check_group_sizes
from countermove.recourse.pare._inputs import (
    ReachFunction,
    check_disjoint,
    check_level,
    checked_grid,
    group_codes,
    numeric_rows,
    reach_of,
)
from countermove.recourse.pare._sequence import CountArray, SequencePromise, sequence_promise
from countermove.response import NoResponse, Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.base import score_of

CLAIMS = {
    True: (
        "recourse_miss_rate_after_response",
        "once people have answered the rule, at least {share} of them are approved or have "
        "recourse from where they then stand",
    ),
    False: (
        "recourse_miss_rate",
        "at least {share} of people like these are approved or have recourse",
    ),
}
"""Name and words of the promise, by whether people respond at all."""


def missed_after_response(
    score: Score,
    X: Floats,
    response: Response,
    thresholds: Floats,
    *,
    reach: ReachFunction,
    slope: float = 1.0,
) -> Mask:
    r"""Return who is neither approved nor has recourse once everybody has moved.

    With :math:`x_\theta` the response of the person at :math:`x` to the rule at
    threshold :math:`\theta`, missed is :math:`m(x_\theta) < \theta`, unless approved.

    Parameters
    ----------
    score
        The score, without a threshold.
    X
        People before they move, shape (n, d).
    response
        How they respond; one behaviour, not a robust set.
    thresholds
        On the probability, shape (t,).
    reach
        From people to the best score they can reach.

    Returns
    -------
    Mask
        Shape (t, n).
    """
    standing = reach(X)
    return np.stack(
        [
            _missed_at(score.at_threshold(float(p), slope), X, response, standing, reach, cut)
            for p, cut in zip(thresholds, logit(thresholds) / slope, strict=True)
        ]
    )


def _missed_at(
    rule: Score, X: Floats, response: Response, standing: Floats, reach: ReachFunction, cut: float
) -> Mask:
    refused = ~response.decisions_after(rule, X)
    if not refused.any():
        return refused
    answers = response.respond(rule, X)
    # Only the refused who moved have another reach than before.
    elsewhere = refused & np.asarray(answers.moved)
    best = reach(answers.x_new) if elsewhere.any() else standing
    missed: Mask = refused & (best < cut)
    return missed


def calibrate_after_response(
    model: Any,
    X_calibration: Any,
    response: Response,
    grid: ArrayLike,
    method: str = "linear_program",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    groups: ArrayLike | None = None,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
) -> SequencePromise:
    r"""Find the thresholds at which people who have responded are approved or have recourse.

    .. math:: P\bigl[\,\exists\,\theta \text{ passed}:\ P(x_\theta \text{ missed})
              > \text{miss rate}\,\bigr] \le \text{failure probability}

    Parameters
    ----------
    response
        How people respond (`NoResponse`: they are judged where they stand). Of a robust
        response every member is tested, and a threshold passes only if it passes under
        each: the promise holds for whichever is true, and costs no part of the level.
    grid
        Thresholds in the order of the test, rising or falling, fixed without a look
        at the calibration rows; rising ones start where nearly everybody is approved.
    groups
        The group of every calibration person, for a promise to each (Bonferroni).
    model, X_calibration, method, miss_rate, failure_probability, actions,
    largest_action, ids, trained_on, reach
        See `countermove.recourse.calibrate_pare`.
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    thresholds = checked_grid(grid)
    X = numeric_rows(X_calibration, score_of(model))
    check_disjoint(ids, trained_on, len(X))
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    names, codes = group_codes(np.zeros(len(X)) if groups is None else groups, len(X))
    if groups is None:
        check_enough(len(X), miss_rate, failure_probability)
    else:
        check_group_sizes(names, np.bincount(codes), miss_rate, failure_probability)
    counts, n = _counts(model, X, response, thresholds, codes, search)
    name, claim = CLAIMS[not isinstance(response, NoResponse)]
    return sequence_promise(
        thresholds,
        counts,
        n,
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name=name,
        claim=claim if groups is None else f"in each of {len(names)} groups, {claim}",
        assumptions=[Assumption(f"people answer the rule as the response {response.name!r} says")],
        parts=len(names),
    )


def miss_shares(
    model: Any,
    X: Floats,
    response: Response,
    thresholds: Floats,
    *,
    reach: ReachFunction,
    groups: ArrayLike | None = None,
) -> Floats:
    """Return the share missed at every threshold, of the worst group and response; no promise."""
    _, codes = group_codes(np.zeros(len(X)) if groups is None else groups, len(X))
    counts, n = _counts(model, X, response, thresholds, codes, reach)
    shares: Floats = (counts / n).max(axis=-1)
    return shares


def _counts(
    model: Any,
    X: Floats,
    response: Response,
    thresholds: Floats,
    codes: NDArray[np.intp],
    reach: ReachFunction,
) -> tuple[CountArray, CountArray]:
    """Return people missed and people counted, (thresholds, members of the response x groups)."""
    score, slope, n_groups = (
        score_of(model),
        probability_slope(model),
        int(codes.max(initial=0)) + 1,
    )
    missed = [
        missed_after_response(score, X, member, thresholds, reach=reach, slope=slope)
        for member in members_of(response)
    ]
    counts = np.concatenate([by_group(mask, codes, n_groups) for mask in missed], axis=-1)
    sizes = np.tile(np.bincount(codes, minlength=n_groups), len(missed))
    return counts, np.broadcast_to(sizes, counts.shape).astype(np.int64)


def by_group(missed: Mask, codes: NDArray[np.intp], n_groups: int) -> CountArray:
    """Return how many of each group are missed: from (…, n) to (…, groups)."""
    return np.stack(
        [np.count_nonzero(missed[..., codes == code], axis=-1) for code in range(n_groups)],
        axis=-1,
    ).astype(np.int64)
