r"""The nearest point of a box cut by linear constraints, for many people at once.

The dual of :math:`\min \|\delta-y\|^2` over the box and :math:`A\delta+b\ge0` has one
multiplier per constraint; each is solved exactly in turn (a piecewise linear
equation), until all agree. Those who take too long get an exact solve of their own.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.errors import InfeasibleActionsError, shown

SWEEPS = 40
AGREED = 1e-10


def project(y: Floats, low: Floats, high: Floats, A: Floats | None, b: Floats | None) -> Floats:
    r"""Return :math:`\arg\min \|\delta - y\|` over the box and :math:`A\delta + b \ge 0`."""
    point: Floats = np.clip(y, low, high)
    if A is None or b is None:
        return point
    who = np.flatnonzero((point @ A.T + b < 0.0).any(axis=1))
    if not who.size:
        return point
    multipliers = np.zeros((len(who), len(A)))
    left = np.arange(len(who))
    for _ in range(SWEEPS):
        rows = who[left]
        before = multipliers[left].copy()
        for k in range(len(A)):
            pull = multipliers[left]
            pull[:, k] = 0.0
            multipliers[left, k] = _one_multiplier(
                y[rows] + pull @ A, low[rows], high[rows], A[k], b[rows, k]
            )
        move = np.abs(multipliers[left] - before).max(axis=1)
        left = left[~(move <= AGREED * (1.0 + np.abs(before).max(axis=1)))]
        if not left.size:
            break
    point[who] = np.clip(y[who] + np.nan_to_num(multipliers) @ A, low[who], high[who])
    for i in who[left].tolist():
        point[i] = _alone(y[i], low[i], high[i], A, b[i], i)
    return point


def _one_multiplier(y: Floats, low: Floats, high: Floats, a: Floats, b: Floats) -> Floats:
    r"""Return the least :math:`t\ge0` with :math:`a\cdot clip(y + t a) + b\ge0`, NaN if none."""
    used = np.flatnonzero(a)
    y, low, high, a = y[:, used], low[:, used], high[:, used], a[used]
    # The reach is piecewise linear in t and bends where a feature meets its bound.
    bends = np.maximum(np.concatenate([(low - y) / a, (high - y) / a], axis=1), 0.0)
    ends = np.sort(np.concatenate([np.zeros((len(y), 1)), bends], axis=1), axis=1)
    spots = np.clip(y[:, None] + ends[:, :, None] * a, low[:, None], high[:, None])
    reach = spots @ a + b[:, None]
    done = reach >= 0.0
    first = done.argmax(axis=1)
    rows = np.arange(len(y))
    here, before = first, np.maximum(first - 1, 0)
    rise = reach[rows, here] - reach[rows, before]
    share = np.where(rise > 0.0, -reach[rows, before] / np.where(rise > 0.0, rise, 1.0), 1.0)
    root = ends[rows, before] + share * (ends[rows, here] - ends[rows, before])
    answer: Floats = np.where(first == 0, 0.0, root)
    answer[~done.any(axis=1)] = np.nan
    return answer


def _alone(y: Floats, low: Floats, high: Floats, A: Floats, b: Floats, row: int) -> Floats:
    """Solve one person by least-distance programming (Lawson and Hanson, chapter 23)."""
    from countermove.people import ActionSet

    one = ActionSet(lower=low, upper=high, A=A, b=b)
    try:
        nearest: Floats = one.project(np.zeros((1, len(y))), y[None])[0]
    except InfeasibleActionsError as error:
        raise InfeasibleActionsError(
            f"the bounds and A δ + b ≥ 0 leave no action to the person in row {shown([row])}",
            rows=[row],
        ) from error
    return nearest
