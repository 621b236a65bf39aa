r"""What a promise of recourse is made from: levels, rows, ids, grids, groups, and the reach.

The order statistics of PARE are valid only because the best score a person can reach,
:math:`m(x)`, does not depend on the threshold. Promises ask for it here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats
from countermove.errors import DataError, ParameterError, shown
from countermove.people import ActionSet
from countermove.recourse._search import checked_people, method_of
from countermove.recourse.recommend import best_reachable
from countermove.scores import Score
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model


def check_level(value: float, name: str) -> None:
    """Refuse a probability that is not strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}")


def check_disjoint(
    ids: Sequence[Any] | NDArray[Any] | None, others: Iterable[Any] | None, n: int
) -> None:
    """Refuse calibration rows that appear twice or that were trained or selected on, by id."""
    if ids is None:
        if others is not None:
            raise ParameterError(
                "trained_on names rows but the calibration rows have no ids; pass ids as well, "
                "one per calibration row, so that an overlap can be found"
            )
        return
    named = [str(value) for value in ids]
    if len(named) != n:
        raise DataError(f"{n} calibration rows need as many ids, got {len(named)}")
    first: dict[str, int] = {}
    twice = [row for row, name in enumerate(named) if first.setdefault(name, row) != row]
    if twice:
        raise DataError(
            f"calibration rows appear twice: ids {shown(named[row] for row in twice)}; a promise "
            "counts independent people, so keep one row of each",
            rows=twice,
        )
    used = {str(value) for value in (() if others is None else others)}
    overlap = [row for row, name in enumerate(named) if name in used]
    if overlap:
        raise DataError(
            f"{len(overlap)} of {n} calibration rows were also trained or selected on: ids "
            f"{shown(named[row] for row in overlap)}; a promise needs rows used for nothing else",
            rows=overlap,
        )


def checked_grid(grid: ArrayLike) -> Floats:
    """Return the thresholds of a grid: in (0, 1), strictly rising or strictly falling."""
    # They are tested in the order given, fixed before the calibration rows are seen: a shuffled
    # grid is taken for a mistake.
    thresholds = np.atleast_1d(np.asarray(grid, dtype=np.float64))
    if thresholds.ndim != 1 or thresholds.size == 0:
        raise ParameterError("the grid of thresholds is empty; give at least one, in (0, 1)")
    outside = thresholds[~((thresholds > 0.0) & (thresholds < 1.0))]
    if outside.size:
        raise ParameterError(
            f"thresholds lie strictly between 0 and 1, the grid holds {shown(outside.tolist())}"
        )
    steps = np.diff(thresholds)
    if not ((steps > 0.0).all() or (steps < 0.0).all()):
        place = int(np.flatnonzero(np.sign(steps) != np.sign(steps[0]))[0]) if steps[0] else 0
        raise ParameterError(
            "the grid is tested in its order and must rise or fall throughout; it does not from "
            f"{thresholds[place]:g} to {thresholds[place + 1]:g}: sort it, each threshold once"
        )
    return thresholds


def group_codes(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the groups and the position of each person's."""
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise DataError(f"{n} people need one group each, got shape {values.shape}")
    # None and NaN are the values that are not equal to themselves or are nothing at all.
    missing = np.flatnonzero([value is None or value != value for value in values])
    if missing.size:
        raise DataError(
            f"rows {shown(missing)} have no group; name one, or leave these people out of the "
            "promise by group",
            rows=missing,
        )
    names, codes = np.unique([str(value) for value in values], return_inverse=True)
    return names.tolist(), codes


ReachFunction = Callable[[Floats], Floats]
"""From people, shape (n, d), to the best score each can reach, shape (n,)."""


def _actions_of(model: Any, actions: ActionSet | None) -> ActionSet:
    """Return the actions given, or those the model was trained with, or all."""
    if actions is not None:
        return actions
    held = getattr(model, "actions_", None)
    return held if isinstance(held, ActionSet) else ActionSet()


def reach_of(
    model: Any,
    actions: ActionSet | None = None,
    method: str = "auto",
    largest_action: float | None = None,
) -> ReachFunction:
    """Return the function from people to the best score they can reach, at least their own.

    It reads people as the model does, in the units a classifier was fitted in.

    Parameters
    ----------
    model
        What holds the score.
    actions
        What is allowed; None: the model's own, or everything.
    method
        How the best action is searched for.
    largest_action
        No feature moves further than this, in standardised units; None: no such bound.
    """
    method_of(method)
    model, units = standardised_model(model)
    score = score_of(model)
    allowed = _actions_of(model, units.actions(actions)).narrowed(largest_action, score.n_features)

    # Nobody is worse off than where they stand, even outside the bounds of their actions.
    def best(X: Floats) -> Floats:
        rows = units.rows(X)
        reached = best_reachable(score, rows, method, allowed).score
        return np.maximum(values(score, rows), reached)

    return best


def numeric_rows(X: Any, score: Score) -> Floats:
    """Return the rows as float64, columns of mixed types included, after checking them."""
    return checked_people(np.asarray(X, dtype=np.float64), score)
