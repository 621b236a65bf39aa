"""The promise of recourse group by group, at one common threshold.

A promise to everybody on average may be paid for by a small group. Here every
group is promised the same, and all promises hold at once (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermove.certificates import Certificate
from countermove.errors import CalibrationError, ParameterError
from countermove.people import ActionSet
from countermove.recourse._model import probability_slope
from countermove.recourse.pare._calibration import (
    at_least,
    pare_certificate,
    smallest_calibration_size,
    threshold_bound,
)
from countermove.recourse.pare._checks import check_disjoint, check_level, group_codes
from countermove.recourse.pare._reach import ReachFunction, checked_people, reach_of
from countermove.scores.base import score_of


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
    method: str = "linear_program",
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
    largest_action, ids, trained_on, reach
        See `countermove.recourse.calibrate_pare`.
    """
    if wanted is not None:
        check_level(wanted, "wanted")
    X = checked_people(X_calibration, score_of(model))
    check_disjoint(ids, trained_on, len(X))
    names, codes = group_codes(groups, len(X))
    sizes = np.bincount(codes, minlength=len(names))
    check_group_sizes(names, sizes, miss_rate, failure_probability)
    best = (reach_of(model, actions, method, largest_action) if reach is None else reach)(X)
    share = failure_probability / len(names)
    bounds = {
        name: threshold_bound(best[codes == code], miss_rate, share, probability_slope(model))
        for code, name in enumerate(names)
    }
    bound = min(bounds.values())
    certificates = {
        name: _certificate(column, name, len(names), int(size), miss_rate, failure_probability)
        for name, size in zip(names, sizes, strict=True)
    }
    return GroupCalibration(
        bound if wanted is None else min(wanted, bound), bound, bounds, certificates
    )


def _certificate(
    column: str,
    name: str,
    n_groups: int,
    n: int,
    miss_rate: float,
    failure_probability: float,
) -> Certificate:
    plain = pare_certificate(n, miss_rate, failure_probability)
    least = at_least(1.0 - miss_rate)
    return replace(
        plain,
        name=f"recourse_miss_rate[{column}={name}]",
        reference=f"{plain.reference}; Bonferroni over {n_groups} groups",
        words=(
            f"{plain.words.split(', ')[0]}, and in all {n_groups} groups at once, at least {least} "
            f"of people like these with {column} = {name} are approved or have recourse"
        ),
    )
