"""Each person's limits beside their features, so that batches of one trainer carry both.

A row is ``x | low | high | b``: the box of the person's actions and, with linear
constraints, their offsets. Feasibility is settled once, before training.
"""

from __future__ import annotations

import copy

import numpy as np
from torch import Tensor

from countermove._types import Floats
from countermove.errors import ParameterError, shown
from countermove.people import ActionSet

LARGEST_ACTION = 0.75
"""The recourse paper's limit on the change of a feature, in standard deviations."""


def usual_actions(n_features: int, largest: float = LARGEST_ACTION) -> ActionSet:
    """Return the paper's plain choice: every feature moves by at most ``largest``."""
    return ActionSet(lower=np.full(n_features, -largest), upper=np.full(n_features, largest))


def narrowed(actions: ActionSet, largest: float, n_features: int) -> ActionSet:
    """Return the actions that also change no feature by more than ``largest``."""
    if not largest > 0.0:
        raise ParameterError(f"the largest action must be positive, got {largest!r}")
    bound = np.full(n_features, float(largest))
    inner = copy.copy(actions)
    inner.lower = -bound if actions.lower is None else np.maximum(actions.lower, -bound)
    inner.upper = bound if actions.upper is None else np.minimum(actions.upper, bound)
    return inner


def with_limits(X: Floats, actions: ActionSet) -> Floats:
    r"""Return people with their limits, shape (n, 3d) or, with m constraints, (n, 3d + m).

    Whole numbers move continuously. One-hot columns change by one category at most;
    beside linear constraints they stay, as in a response.

    Raises
    ------
    InfeasibleActionsError
        With the rows that have no allowed action.
    ParameterError
        When a feature can move without bound: the linearised problem has no answer.
    """
    allowed = actions if actions.A is None else actions.for_response()
    low, high = allowed.box(X)
    low, high = _within_one_category(allowed, low, high)
    if allowed.A is None or allowed.b is None:
        unbounded = ~(np.isfinite(low) & np.isfinite(high))
        if unbounded.any():
            raise ParameterError(
                f"nothing bounds the actions of feature {shown(np.flatnonzero(unbounded.any(0)))} "
                f"for the people in rows {shown(np.flatnonzero(unbounded.any(1)))}; training for "
                "recourse needs lower and upper (or min_value and max_value) there",
                rows=np.flatnonzero(unbounded.any(1)),
            )
        return np.hstack([X, low, high])
    offsets = np.broadcast_to(allowed.b, (len(X), len(allowed.A)))
    return np.hstack([X, low, high, offsets])


def _within_one_category(actions: ActionSet, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bound one-hot columns by a whole category, which is all that a step can change."""
    columns = [j for group in actions.groups for j in group]
    reach = np.ones(len(columns)) if actions.unit is None else 1.0 / actions.unit[columns]
    low, high = low.copy(), high.copy()
    low[:, columns] = np.maximum(low[:, columns], -reach)
    high[:, columns] = np.minimum(high[:, columns], reach)
    return low, high


def split_limits(rows: Tensor, n_features: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, low, high and offsets of rows made by `with_limits` (views)."""
    d = n_features
    return rows[:, :d], rows[:, d : 2 * d], rows[:, 2 * d : 3 * d], rows[:, 3 * d :]
