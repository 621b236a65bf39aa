"""How far a score can be raised by allowed actions, whatever they cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from countermove.errors import ParameterError, SolverError
from countermove.people import ActionSet
from countermove.people.actions import infeasible
from countermove.scores import Score

Floats = NDArray[np.float64]
OPTIMAL, UNBOUNDED = 0, 3  # statuses of scipy's linprog


def largest_gain(
    score: Score, actions: ActionSet, X: Floats, largest_action: float | None = None
) -> Floats:
    r"""Return :math:`\max_{\delta \in \Delta(x)} w \cdot \delta` per person, possibly infinite.

    One-hot and integer columns are treated as in a response: one-hot columns
    stay, integers move continuously.

    Parameters
    ----------
    score
        A score with a slope.
    actions
        What is allowed.
    X
        People, shape (n, d).
    largest_action
        No feature moves further than this, in standardised units; None: no such bound.
    """
    slope = score.slope()
    if slope is None:
        raise ParameterError(f"a {score.kind} score has no slope; its reach has no closed form")
    w = slope.detach().numpy()
    allowed = actions.for_response()
    low, high = allowed.box(X)
    limit = np.inf if largest_action is None else largest_action
    low, high = np.maximum(low, -limit), np.minimum(high, limit)
    stuck = np.flatnonzero((low > high).any(axis=1))
    if stuck.size:
        raise infeasible(stuck)
    if allowed.A is not None:
        return _by_linear_program(w, allowed, low, high)
    # A feature of weight zero gains nothing, even where nothing bounds it.
    moved = w != 0.0
    gains: Floats = (np.where(w > 0.0, high, low)[:, moved] * w[moved]).sum(axis=1)
    return gains


def _by_linear_program(w: Floats, actions: ActionSet, low: Floats, high: Floats) -> Floats:
    gains = np.empty(len(low))
    offsets = np.broadcast_to(np.asarray(actions.b), (len(low), len(np.asarray(actions.A))))
    for row, bounds in enumerate(np.stack([low, high], axis=2)):
        answer = linprog(-w, A_ub=-np.asarray(actions.A), b_ub=offsets[row], bounds=bounds)
        if answer.status == UNBOUNDED:
            gains[row] = np.inf
        elif answer.status == OPTIMAL:
            gains[row] = -answer.fun
        else:
            raise SolverError(f"the reach of row {row} was not found: {answer.message}", rows=[row])
    return gains
