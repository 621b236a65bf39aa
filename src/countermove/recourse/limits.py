"""Each person's limits beside their features, so that batches of one trainer carry both.

A row is ``x | low | high | b``: the box of the person's actions and, with linear
constraints, their offsets. Feasibility is settled once, before training.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from countermove.errors import ParameterError, shown
from countermove.people import ActionSet

Floats = NDArray[np.float64]

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

    One-hot columns stay and whole numbers move continuously, as in a response: the
    step of training is a subset of what recourse may do in the former case and a
    relaxation in the latter.

    Raises
    ------
    InfeasibleActionsError
        With the rows that have no allowed action.
    ParameterError
        When a feature can move without bound: the linearised problem has no answer.
    """
    allowed = actions.for_response()
    low, high = allowed.box(X)
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


def split_limits(rows: Tensor, n_features: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, low, high and offsets of rows made by `with_limits` (views)."""
    d = n_features
    return rows[:, :d], rows[:, d : 2 * d], rows[:, 2 * d : 3 * d], rows[:, 3 * d :]
