r"""The best score a person can reach, whatever the threshold: :math:`m(x)`.

The order statistics of PARE are valid only because :math:`m` does not know the
threshold. This module is the one place where promises ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, shown
from countermove.people import ActionSet
from countermove.recourse._search import method_of
from countermove.recourse.recommend import best_reachable
from countermove.scores import Score
from countermove.scores.base import score_of, values

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
    method: str = "linear_program",
    largest_action: float | None = None,
) -> ReachFunction:
    """Return the function from people to the best score they can reach.

    Nobody is worse off than where they stand, even if they would have to come back
    inside the bounds to move at all.

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
    score = score_of(model)
    allowed = _actions_of(model, actions).narrowed(largest_action, score.n_features)

    def best(X: Floats) -> Floats:
        reached = best_reachable(score, X, method, allowed).score
        return np.maximum(values(score, X), reached)

    return best


def checked_people(X: Any, score: Score) -> Floats:
    """Return the rows as float64 after checking shape and finiteness."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != score.n_features:
        raise DataError(
            f"the score reads {score.n_features} features per person; expected shape "
            f"(n, {score.n_features}), got {rows.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise DataError(f"rows {shown(bad)} hold NaN or infinity; clean them first", rows=bad)
    return rows
