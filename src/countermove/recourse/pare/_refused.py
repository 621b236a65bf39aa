r"""A promise to the refused alone: of those refused, so many have recourse.

PARE counts the approved, so approving nearly everybody keeps it. Here only the
refused count, at every threshold others of them, and the share missed,
:math:`P(m(x) < \theta \mid s(x) < \theta)`, need not be monotone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from countermove._types import Floats, Mask
from countermove.certificates import Certificate
from countermove.people import ActionSet
from countermove.recourse._model import probability_slope
from countermove.recourse.pare._calibration import INDEPENDENT, at_least, confidence
from countermove.recourse.pare._checks import check_disjoint, check_level, checked_grid
from countermove.recourse.pare._reach import ReachFunction, checked_people, reach_of
from countermove.recourse.pare._sequence import (
    BEFOREHAND,
    CountArray,
    SequencePromise,
    sequence_promise,
    upper_bounds,
)
from countermove.scores.base import score_of, values

CLAIM = "of those refused, at least {share} have recourse"


def refused_counts(
    scores: Floats, best: Floats, thresholds: Floats, slope: float = 1.0
) -> tuple[CountArray, CountArray]:
    """Return how many people are refused without recourse, and how many are refused."""
    cuts = logit(thresholds) / slope
    refused = [scores < cut for cut in cuts]
    missed = [below & (best < cut) for below, cut in zip(refused, cuts, strict=True)]
    return _counted(missed), _counted(refused)


def _counted(masks: list[Mask]) -> CountArray:
    return np.stack([np.count_nonzero(mask, axis=-1) for mask in masks], axis=-1).astype(np.int64)


def certify_refused(
    model: Any,
    X_calibration: Any,
    grid: ArrayLike,
    method: str = "linear_program",
    miss_rate: float = 0.05,
    failure_probability: float = 0.05,
    actions: ActionSet | None = None,
    *,
    largest_action: float | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    trained_on: Iterable[Any] | None = None,
    reach: ReachFunction | None = None,
) -> SequencePromise:
    r"""Find the thresholds at which enough of the refused have recourse.

    .. math:: P\bigl[\,\exists\,\theta \text{ passed}:\ P(m(x) < \theta \mid s(x) < \theta)
              > \text{miss rate}\,\bigr] \le \text{failure probability}

    Parameters
    ----------
    grid
        Thresholds in the order of the test, rising or falling, fixed without a look
        at the calibration rows. A low start refuses too few people to say anything,
        a high one too many to help: `refused_grid` finds one on other rows.
    model, X_calibration, method, miss_rate, failure_probability, actions,
    largest_action, ids, trained_on, reach
        See `countermove.recourse.calibrate_pare`.
    """
    check_level(miss_rate, "miss_rate")
    check_level(failure_probability, "failure_probability")
    thresholds, score = checked_grid(grid), score_of(model)
    X = checked_people(X_calibration, score)
    check_disjoint(ids, trained_on, len(X))
    search = reach_of(model, actions, method, largest_action) if reach is None else reach
    misses, n = refused_counts(values(score, X), search(X), thresholds, probability_slope(model))
    return sequence_promise(
        thresholds,
        misses[:, None],
        n[:, None],
        miss_rate=miss_rate,
        failure_probability=failure_probability,
        name="refused_miss_rate",
        claim=CLAIM,
    )


def refused_grid(
    model: Any, X_selection: Any, grid: ArrayLike, miss_rate: float, *, reach: ReachFunction
) -> Floats:
    """Return the rising part of a grid from where the test has most power on other rows.

    Parameters
    ----------
    X_selection
        People who are not calibrated on.
    grid
        Thresholds to start from.
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
) -> Certificate:
    """Bound the share of the refused without recourse at any threshold of a grid.

    Clopper-Pearson at every threshold, Bonferroni over the grid: the bound holds at
    whichever of them is chosen, with whatever share the rows show.
    """
    check_level(failure_probability, "failure_probability")
    thresholds, score = checked_grid(grid), score_of(model)
    X = checked_people(X_calibration, score)
    misses, n = refused_counts(
        values(score, X), reach(X), np.array([threshold]), probability_slope(model)
    )
    bound = float(upper_bounds(misses, n, failure_probability / len(thresholds))[0])
    claim = Certificate(
        name="refused_without_recourse",
        value=bound,
        direction="upper",
        kind="certificate",
        level=1.0 - failure_probability,
        n=int(n[0]),
        assumptions=(INDEPENDENT, BEFOREHAND),
        reference=f"Clopper and Pearson (1934), Bonferroni over {len(thresholds)} thresholds",
        words=(
            f"{confidence(failure_probability)}, at a threshold of {threshold:.4g}, of those "
            f"refused at least {at_least(1.0 - bound)} have recourse"
        ),
    )
    if bound < 1.0:
        return claim
    reason = f"none of the {n[0]} calibration people refused at {threshold:.4g} has recourse"
    return replace(claim, value=None, reason=reason, words="")
