r"""The promises to people who have responded to the rule: they can, or they will, reach approval.

People move to the threshold, so at every threshold another population applies. The order
statistics of PARE are not valid then; a fixed-sequence test over thresholds is, whatever
the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from countermove._types import Floats, Mask
from countermove.certificates import Assumption, Certificate
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.people import ActionSet
from countermove.recourse.pare._calibration import check_enough, check_group_sizes
from countermove.recourse.pare.inputs import (
    ClusterRows,
    ReachFunction,
    check_disjoint,
    check_level,
    checked_grid,
    group_codes,
    numeric_rows,
    reach_of,
    reached_within,
)
from countermove.recourse.pare.sequence import SequencePromise, promise_of_misses
from countermove.recourse.problem import probability_slope
from countermove.response import NoResponse, Response, Responses
from countermove.response.ascent import ALLOWED_SHARE
from countermove.response.base import check_converged
from countermove.response.response_set import RobustResponse, members_of, redrawn
from countermove.scores import Score
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model

Promise = Literal["can", "will"]
"""People are approved or could be, as they are advised; or they are, by their own response."""

CLAIMS = {
    "can": (
        "recourse_miss_rate_after_response",
        "once people have answered the rule, at least {share} of them are approved or, from "
        "where they then stand, have recourse",
    ),
    "will": (
        "refusal_rate_after_response",
        "once people have answered the rule, at least {share} of them are approved",
    ),
    "still": (
        "recourse_miss_rate",
        "at least {share} of people like these are approved or have recourse",
    ),
}
"""Name and words of the promises; ``still``: of recourse, where nobody responds."""


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
        How they respond; one behaviour, not a robust set. Of a population one type per row
        is drawn, the same at every threshold.
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
    answers = _climbed(response, rule, X) if response.costly else None
    if answers is None:
        refused = ~response.decisions_after(rule, X)
    else:
        refused = values(rule, answers.x_new) < 0.0
    if not refused.any():
        return refused
    if answers is None and response.refused_stay(rule, X):
        return np.asarray(refused & (standing < cut))
    answers = response.respond(rule, X) if answers is None else answers
    # Only the refused who moved have another reach than before.
    elsewhere = refused & np.asarray(answers.moved)
    best = reach(np.where(elsewhere[:, None], answers.x_new, X)) if elsewhere.any() else standing
    missed: Mask = refused & (best < cut)
    return missed


def _climbed(response: Response, rule: Score, X: Floats) -> Responses[Floats]:
    """Return where people went, once for both questions; a few may have stopped on the way."""
    answers: Responses[Floats] = response.respond(rule, X, on_failure="mask")
    if np.count_nonzero(~answers.converged) > max(1.0, ALLOWED_SHARE * len(X)):
        check_converged(answers.converged, "raise")
    return answers


def calibrate_after_response(
    model: Any,
    X_calibration: Any,
    response: Response,
    grid: ArrayLike,
    method: str = "auto",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    groups: ArrayLike | None = None,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
    clusters: ArrayLike | None = None,
    promise: Promise = "can",
    population_failure: float = 0.0,
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
        Estimated people bring their confidence set: the promise holds over all of it, at its
        level as far as the set has its own, which it has as the number of observed people grows.
    promise
        Who is missed. ``"can"``: the refused without recourse from where they then stand,
        within the limits of ``reach``; of a population one type per row is drawn. ``"will"``:
        everybody whom their own response does not bring to approval, those who never move among
        them; of a population the chances of refusal are tested by betting.
    population_failure
        Chance that the truth is not between the members of ``response``, where these are
        corners of a confidence set: whoever is missed under one of them counts as missed. It
        is part of ``failure_probability``: the thresholds are tested at what is left (union
        bound). People who bring their confidence set say it themselves.
    grid
        Thresholds in the order of the test, rising or falling, fixed without a look
        at the calibration rows; rising ones start where nearly everybody is approved.
    groups
        The group of every calibration person, for a promise to each (Bonferroni).
    model, X_calibration, method, miss_rate, failure_probability, actions,
    largest_action, ids, trained_on, reach, clusters
        See `countermove.recourse.calibrate_pare`.
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    if promise not in get_args(Promise):
        raise UnknownNameError(
            f"no promise is called {promise!r}: {nearest(promise, get_args(Promise))}"
        )
    people, spent, assumed = _promised(response, failure_probability, population_failure)
    thresholds = checked_grid(grid)
    X = numeric_rows(X_calibration, score_of(standardised_model(model)[0]))
    check_disjoint(ids, trained_on, len(X))
    names, codes = group_codes(np.zeros(len(X)) if groups is None else groups, len(X))
    drawn = None if clusters is None else ClusterRows.drawn(clusters, len(X), ids)
    if drawn is not None:
        X, codes = X[drawn.rows], codes[drawn.rows]
    _check_sizes(
        names if groups is not None else [], codes, drawn, miss_rate, failure_probability - spent
    )
    missed: Mask | Floats
    if promise == "will":
        missed = refusal_chances(model, X, people, thresholds, together=spent > 0.0)
        within = ""
    else:
        search = reach_of(model, actions, method, largest_action) if reach is None else reach
        within = reached_within(search)
        missed = _missed(model, X, people, thresholds, search, "calibration rows", spent > 0.0)
    still = promise == "can" and isinstance(response, NoResponse)
    name, claim = CLAIMS["still" if still else promise]
    claim += within
    return promise_of_misses(
        thresholds,
        missed,
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name=name,
        claim=claim if groups is None else f"in each of {len(names)} groups, {claim}",
        assumptions=[assumed],
        codes=codes,
        parts=len(names),
        spent=spent,
        clusters=drawn,
    )


def _check_sizes(
    names: Sequence[str],
    codes: NDArray[np.intp],
    drawn: ClusterRows | None,
    miss_rate: float,
    failure_probability: float,
) -> None:
    """Refuse too few rows or clusters, in all or (where groups are named) in any group."""
    if drawn is not None:
        for code, name in enumerate(names or ("",)):
            level = failure_probability / max(len(names), 1)
            drawn.check_enough(miss_rate, level, codes == code, f"group {name!r}" if name else "")
    elif names:
        check_group_sizes(names, np.bincount(codes), miss_rate, failure_probability)
    else:
        check_enough(len(codes), miss_rate, failure_probability)


def refusal_chances(
    model: Any, X: Floats, response: Response, thresholds: Floats, together: bool = False
) -> Floats:
    """Return everybody's chance of refusal after their response, (members, thresholds, n)."""
    model, units = standardised_model(model)
    score, slope = score_of(model), probability_slope(model)
    rows, people = units.rows(X), members_of(units.response(response))
    rules = [score.at_threshold(float(p), slope) for p in thresholds]
    found = np.stack(
        [[1.0 - member.chance_after(rule, rows) for rule in rules] for member in people]
    )
    # A mean over people need not be largest at a corner; everybody's own chance is.
    return found.max(axis=0, keepdims=True) if together else found


def _missed(
    model: Any,
    X: Floats,
    response: Response,
    thresholds: Floats,
    reach: ReachFunction,
    stage: str,
    together: bool,
) -> Mask:
    """Return who is missed after each response, (members, thresholds, n); types drawn by stage."""
    # ``together``: whoever is missed under any member; types are drawn alike for all.
    model, units = standardised_model(model)
    score, slope = score_of(model), probability_slope(model)
    rows, reached = units.rows(X), units.function(reach)
    found = np.stack(
        [
            missed_after_response(score, rows, member, thresholds, reach=reached, slope=slope)
            for member in members_of(redrawn(units.response(response), 0, stage))
        ]
    )
    return np.logical_or.reduce(found, keepdims=True) if together else found


def approval_certificate(
    model: Any,
    X_calibration: Any,
    response: Response,
    grid: ArrayLike,
    threshold: float,
    failure_probability: float,
    *,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    clusters: ArrayLike | None = None,
) -> Certificate:
    """Bound the share refused after response at whichever threshold of a grid is chosen.

    The worst member of a robust response counts; the failure probability is shared among the
    thresholds of the grid (Bonferroni).
    """
    check_level(failure_probability, "failure_probability")
    people, spent, assumed = _promised(response, failure_probability)
    thresholds = checked_grid(grid)
    X = numeric_rows(X_calibration, score_of(standardised_model(model)[0]))
    drawn = None if clusters is None else ClusterRows.drawn(clusters, len(X), ids)
    X = X if drawn is None else X[drawn.rows]
    name, claim = CLAIMS["will"]
    alone = promise_of_misses(
        np.array([threshold]),
        refusal_chances(model, X, people, np.array([threshold]), together=spent > 0.0),
        miss_rate=0.5,
        failure_probability=(failure_probability - spent) / len(thresholds),
        name=name,
        claim=claim,
        assumptions=[assumed],
        clusters=drawn,
    )
    bound = alone.shared_bound(len(thresholds), failure_probability)
    if bound.applicable:
        return bound
    reason = f"{len(X)} calibration people are too few to bound a share at {threshold:.4g}"
    return replace(bound, reason=reason)


def _promised(
    response: Response, failure_probability: float, population_failure: float = 0.0
) -> tuple[Response, float, Assumption]:
    """Return whom a promise must hold for, the chance that they are others, and how to say it."""
    said = f"people answer the rule as the response {response.name!r} says"
    held = response.confidence
    if held is not None:
        response, population_failure = RobustResponse(held.populations), 1.0 - held.level
        said = (
            f"people answer the rule as some {held.movers.name} responders do with {held.words}: "
            "the confidence set of the estimate that the run was given"
        )
    elif population_failure > 0.0:
        said = (
            f"people answer the rule as is possible between {len(members_of(response))} responses"
        )
    if not 0.0 <= population_failure < failure_probability:
        raise ParameterError(
            f"population_failure is part of failure_probability={failure_probability:g}: at least "
            f"0 and less than that, got {population_failure:.4g}; estimate people again with a "
            "confidence set of a higher level (kedro run --pipeline=estimate_people writes one for "
            "recourse.failure_probability), or promise with a larger failure_probability"
        )
    if population_failure > 0.0:
        # Estimates have a level in the limit only; of a set by hand its maker knows.
        how = (
            "at most" if held is None else "asymptotically (as the observed people grow in number)"
        )
        said += (
            f", a set that misses the truth with probability {how} {population_failure:.4g}; "
            "that is part of the level"
        )
    return response, population_failure, Assumption(said)


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
    names, codes = group_codes(np.zeros(len(X)) if groups is None else groups, len(X))
    people, spent, _ = _promised(response, 1.0)
    missed = _missed(model, X, people, thresholds, reach, "selection rows", spent > 0.0)
    shares = [missed[..., codes == code].mean(axis=-1) for code in range(len(names))]
    worst: Floats = np.max(shares, axis=(0, 1))
    return worst
