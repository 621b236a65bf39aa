r"""From an action that works to a cheaper one that works.

Three moves, each checked on the true model: the cheapest point of the plane that
touches the score (exact for an affine score and a separable cost), undoing one
feature at a time, and walking back along the line towards doing nothing.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.people.feasible import FeasibleActions, absent
from countermove.recourse.problem import SearchProblem

PLANES = 2
HALVINGS = 5
CHEAPER = 1.0 - 1e-9
"""An action is cheaper when it costs less than this share of the other."""
BEYOND = 1e-10
"""Planes are met with this relative margin, above the rounding of a score."""


def cheaper(problem: SearchProblem, action: Floats) -> Floats:
    """Return actions that still reach the target and cost no more; NaN rows stay NaN."""
    who = np.flatnonzero(~absent(action))
    if not who.size:
        return action
    part = problem.rows(who)
    best = _walk_back(part, action[who])
    best = _touch(part, best)
    best = _undo(part, best)
    if part.feasible.discrete:
        best = _touch(part, best)
    result = action.copy()
    result[who] = best
    return result


def cheaper_of(problem: SearchProblem, first: Floats, second: Floats) -> Floats:
    """Return the cheaper of two actions per person; NaN where there is neither."""
    price = [
        np.where(absent(action), np.inf, problem.price(np.nan_to_num(action)))
        for action in (first, second)
    ]
    best: Floats = np.where((price[1] < price[0])[:, None], second, first)
    return best


def _accept(problem: SearchProblem, action: Floats, trial: Floats) -> Floats:
    """Take the trial where it reaches the target at a lower cost."""
    wins = problem.price(trial) < problem.price(action) * CHEAPER
    if wins.any():
        who = np.flatnonzero(wins)
        good = problem.rows(who).reaches(trial[who])
        action = action.copy()
        action[who[good]] = trial[who[good]]
    return action


def _walk_back(problem: SearchProblem, action: Floats) -> Floats:
    """Return the point nearest to home on the line from it that reaches the target."""
    near, far = np.zeros(len(action)), np.ones(len(action))
    best = action
    for _ in range(HALVINGS):
        share = 0.5 * (near + far)
        trial = problem.home + share[:, None] * (action - problem.home)
        if problem.feasible.discrete:
            trial = problem.feasible.snap(trial)
        good = problem.reaches(trial)
        best = np.where(good[:, None], trial, best)
        far, near = np.where(good, share, far), np.where(good, near, share)
    return best


def _touch(problem: SearchProblem, action: Floats) -> Floats:
    r"""Move to the cheapest point of the plane :math:`s + g\cdot(\delta' - \delta) = target`."""
    weights = _weights(problem, action.shape[1])
    if weights is None:
        return action
    for _ in range(1 if problem.slope is not None else PLANES):
        scores, gradient = problem.slopes(action)
        margin = BEYOND * (1.0 + np.abs(problem.target))
        need = problem.target + margin - scores + (gradient * action).sum(axis=1)
        plane = cheapest_on_plane(
            gradient, need, weights, problem.feasible.low, problem.feasible.high
        )
        for share in (1.0, 0.5):
            trial = action + share * (plane - action)
            if problem.feasible.discrete:
                trial = snap_uphill(problem.feasible, trial, gradient)
            action = _accept(problem, action, trial)
    return action


def snap_uphill(feasible: FeasibleActions, action: Floats, gradient: Floats) -> Floats:
    """Round whole numbers to the side of the higher score, groups to the nearest category."""
    step = np.where(feasible.step > 0.0, feasible.step, 1.0)
    steps = action / step
    up = np.where(gradient > 0.0, np.ceil(steps - 1e-9), np.floor(steps + 1e-9)) * step
    return feasible.snap(np.where(feasible.step > 0.0, up, action))


def _undo(problem: SearchProblem, action: Floats) -> Floats:
    """Take back one feature after the other where the target is still reached without it."""
    for block in problem.feasible.blocks:
        columns = list(block.columns)
        trial = action.copy()
        trial[:, columns] = problem.home[:, columns]
        action = _accept(problem, action, trial)
    return action


def _weights(problem: SearchProblem, n_features: int) -> Floats | None:
    """Return the price of each feature's square, None when the cost has no quadratic part."""
    shape = problem.cost.canonical(n_features)
    if shape is None:
        return None
    if shape.matrix is not None:
        diagonal: Floats = shape.matrix.detach().diagonal().numpy()
        return diagonal
    return None if shape.weights is None else np.asarray(shape.weights.detach().numpy())


def cheapest_on_plane(
    gradient: Floats, need: Floats, weights: Floats, low: Floats, high: Floats
) -> Floats:
    r"""Return the action in the box of least :math:`\sum_j q_j\delta_j^2` that gains ``need``."""
    # The solution is clip(t g_j / 2 q_j) for the least t >= 0 that meets the need, a piecewise
    # linear equation; where the need cannot be met, the corner of the highest gain.
    pull = gradient / (2.0 * weights)
    used = np.flatnonzero((pull != 0.0).any(axis=0) & (low < high).any(axis=0))
    still: Floats = np.clip(0.0, low, high)
    slope, pulled = gradient[:, used], pull[:, used]
    lo, hi = low[:, used], high[:, used]
    rest = need - (gradient * still).sum(axis=1) + (slope * still[:, used]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(pulled[:, None] != 0.0, np.stack([lo, hi], axis=1) / pulled[:, None], 0.0)
    ends = np.maximum(ends.reshape(len(need), -1), 0.0)
    ends = np.sort(np.hstack([np.zeros((len(need), 1)), ends]), axis=1)
    price = _meeting(ends, pulled, slope, lo, hi, rest)
    still[:, used] = np.clip(price[:, None] * pulled, lo, hi)
    return still


def _meeting(
    ends: Floats, pulled: Floats, slope: Floats, low: Floats, high: Floats, need: Floats
) -> Floats:
    """Return the price at which the gain meets the need, by bisection over the bends."""
    rows = np.arange(len(need))

    def gain(price: Floats) -> Floats:
        total: Floats = (np.clip(price[:, None] * pulled, low, high) * slope).sum(axis=1)
        return total

    first, last = np.zeros(len(need), np.intp), np.full(len(need), ends.shape[1] - 1)
    while (last - first > 1).any():
        middle = (first + last) // 2
        enough = gain(ends[rows, middle]) >= need
        first, last = np.where(enough, first, middle), np.where(enough, middle, last)
    below, above = ends[rows, first], ends[rows, last]
    left, right = gain(below), gain(above)
    rise = right - left
    share = np.where(rise > 0.0, (need - left) / np.where(rise > 0.0, rise, 1.0), 1.0)
    price: Floats = below + np.clip(share, 0.0, 1.0) * (above - below)
    return price
