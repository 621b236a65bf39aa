"""Advice in round numbers: amounts to a few significant digits, still approved, still allowed.

Every amount may end on the round value below, the one above or where it was; all combinations
are tried on the model and on the feasible set, and the one with most round amounts, then the
cheapest, is kept.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.people import ActionSet
from countermove.people.feasible import TOLERANCE, absent
from countermove.recourse._search import SearchProblem

TOGETHER = 4
"""Columns whose round values are tried in all combinations; further ones follow in turn."""
AT_ONCE = 2_000_000
"""Numbers held at once for the combinations."""
NOT_ROUND = 1e6
"""What an amount that is not round counts, in units of the cost."""


def rounded(
    problem: SearchProblem, actions: ActionSet, action: Floats, digits: int, most_paid: float
) -> Floats:
    """Return the actions with their amounts in round numbers, where that is possible."""
    who = np.flatnonzero(~absent(action))
    result = action.copy()
    amounts = np.flatnonzero((problem.feasible.low < problem.feasible.high).any(axis=0))
    together = [part.columns for part in problem.feasible.listed]
    amounts = np.setdiff1d(amounts, np.concatenate([*together, np.zeros(0, np.intp)]))
    size = max(1, AT_ONCE // (3**TOGETHER * action.shape[1]))
    for start in range(0, len(who), size):
        rows = who[start : start + size]
        part, best = problem.rows(rows), action[rows]
        for first in range(0, len(amounts), TOGETHER):
            columns = amounts[first : first + TOGETHER]
            best = _best_of(part, actions, best, columns, digits, most_paid)
        result[rows] = best
    return result


def _best_of(
    problem: SearchProblem,
    actions: ActionSet,
    action: Floats,
    columns: Index,
    digits: int,
    most_paid: float,
) -> Floats:
    """Return the best combination of round values of some columns."""
    options, same = _options(problem, actions, action, columns, digits)
    moving = ~same.all(axis=(0, 2))
    columns, options, same = columns[moving], options[:, moving], same[:, moving]
    if not len(columns):
        return action
    n, d = action.shape
    choices = np.array(list(product(range(3), repeat=len(columns))))
    trials = np.repeat(action[:, None], len(choices), axis=1)
    place = np.arange(len(columns))
    trials[:, :, columns] = options[:, place, choices]
    # The last option is the value as it was: it counts where a round one would have been another.
    uneven = ((choices == 2)[None] & ~same[:, None, :, 0]).sum(axis=2)
    flat, many = trials.reshape(-1, d), problem.repeated(len(choices))
    inside = (flat >= many.feasible.low - TOLERANCE) & (flat <= many.feasible.high + TOLERANCE)
    price = many.price(flat)
    cap = np.maximum(most_paid, np.repeat(problem.price(action), len(choices)))
    good = inside.all(axis=1) & (price <= cap) & many.reaches(flat)
    worth = np.where(good, price, np.inf).reshape(n, -1) + NOT_ROUND * uneven
    rows = np.arange(n)
    best = worth.argmin(axis=1)
    kept: Floats = np.where(np.isfinite(worth[rows, best])[:, None], trials[rows, best], action)
    return kept


def _options(
    problem: SearchProblem, actions: ActionSet, action: Floats, columns: Index, digits: int
) -> tuple[Floats, Mask]:
    """Return the values below, above and as it was, (n, k, 3), and which equal the last."""
    d = action.shape[1]
    unit = (np.ones(d) if actions.unit is None else actions.unit)[columns]
    offset = (np.zeros(d) if actions.offset is None else actions.offset)[columns]
    now = problem.X[:, columns] * unit + offset
    value = now + action[:, columns] * unit
    with np.errstate(divide="ignore"):
        power = np.floor(np.log10(np.abs(value))) - (digits - 1)
    step = problem.feasible.step[columns] * unit
    grid = np.maximum(np.where(np.isfinite(power), 10.0**power, 1.0), step)
    below = np.floor(value / grid + 1e-9) * grid
    above = np.ceil(value / grid - 1e-9) * grid
    options = np.stack([below, above, value], axis=2)
    # Whoever does not move a column leaves it; whole steps count from where the person stands.
    still = np.abs(action[:, columns]) <= TOLERANCE
    steps = (options - now[:, :, None]) / np.where(step > 0.0, step, 1.0)[:, None]
    off = (step > 0.0)[:, None] & (np.abs(steps - np.round(steps)) > 1e-6)
    options = np.where(off | still[:, :, None], value[:, :, None], options)
    moved = (options - now[:, :, None]) / unit[:, None]
    moved[:, :, 2] = action[:, columns]
    same = np.abs(options - value[:, :, None]) <= 1e-9 * (1.0 + np.abs(value[:, :, None]))
    return np.where(same, action[:, columns][:, :, None], moved), same
