"""Advice in round numbers: amounts to a few significant digits, still approved, still allowed.

Every amount may end on one of the four nearest round values or where it was; all combinations
are tried on the model and on the feasible set, and the one with most round amounts, then the
cheapest, is kept.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.execution import in_turn
from countermove.people import ActionSet
from countermove.people.feasible import TOLERANCE, absent
from countermove.recourse.problem import SearchProblem
from countermove.scores.trees import TreeScore

TOGETHER = 4
"""Columns whose round values are tried in all combinations; further ones follow in turn."""
NEAR = (-1, 0, 1, 2)
"""Round values tried, counted from the one below: what one amount gives away another takes."""
NOT_ROUND = 1e6
"""What an amount that is not round counts, in units of the cost."""


def rounded(
    problem: SearchProblem, actions: ActionSet, action: Floats, digits: int, most_paid: float
) -> Floats:
    """Return the actions with their amounts in round numbers, where that is possible."""
    who = np.flatnonzero(~absent(action))
    result, part = action.copy(), problem.rows(who)
    amounts = np.flatnonzero((part.feasible.low < part.feasible.high).any(axis=0))
    together = [states.columns for states in part.feasible.listed]
    amounts = np.setdiff1d(amounts, np.concatenate([*together, np.zeros(0, np.intp)]))
    for start in in_turn(range(0, len(amounts), TOGETHER)):
        columns = amounts[start : start + TOGETHER]
        result[who] = _best_of(part, actions, result[who], columns, digits, most_paid)
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
    low, high = problem.feasible.low[:, columns], problem.feasible.high[:, columns]
    best, place = action.copy(), np.arange(len(columns))
    paid = problem.price(action)
    # Whoever is beyond the ceiling already has nothing to lose by round amounts.
    cap = np.where(paid > most_paid, np.inf, most_paid)
    worth = paid + NOT_ROUND * (~same[:, :, 1]).sum(axis=1)
    for choice in product(range(len(NEAR) + 1), repeat=len(columns)):
        values, chosen = options[:, place, choice], np.array(choice, np.intp)
        trial = action.copy()
        trial[:, columns] = values
        paid = problem.price(trial)
        # The last option is the value as it was, where a round one would be another.
        uneven = ((chosen == len(NEAR)) & ~same[:, :, 1]).sum(axis=1)
        wins = (paid + NOT_ROUND * uneven < worth) & (paid <= cap)
        wins &= ((values >= low - TOLERANCE) & (values <= high + TOLERANCE)).all(axis=1)
        who = np.flatnonzero(wins)
        if who.size:
            who = who[_surely_reaches(problem.rows(who), trial[who])]
            best[who], worth[who] = trial[who], (paid + NOT_ROUND * uneven)[who]
    return best


def _surely_reaches(problem: SearchProblem, action: Floats) -> Mask:
    """Return whose action reaches the target, on trees also if its last digits are others.

    A round number may lie on a split, such as 0, and the last digit of a unit then decides.
    """
    kept = problem.reaches(action)
    if isinstance(problem.score, TreeScore):
        digit = np.where(action == 0.0, 0.0, TOLERANCE * (1.0 + np.abs(problem.X)))
        for other in (action - digit, action + digit):
            kept &= problem.values(other) >= problem.target
    return kept


def _options(
    problem: SearchProblem, actions: ActionSet, action: Floats, columns: Index, digits: int
) -> tuple[Floats, Mask]:
    """Return round values and, last, the value as it was, (n, k, 5), and which equal that."""
    d = action.shape[1]
    unit = (np.ones(d) if actions.unit is None else actions.unit)[columns]
    offset = (np.zeros(d) if actions.offset is None else actions.offset)[columns]
    now = problem.X[:, columns] * unit + offset
    value = now + action[:, columns] * unit
    with np.errstate(divide="ignore"):
        power = np.floor(np.log10(np.abs(value))) - (digits - 1)
    step = problem.feasible.step[columns] * unit
    grid = np.maximum(np.where(np.isfinite(power), 10.0**power, 1.0), step)
    below = np.floor(value / grid + 1e-9)
    options = np.stack([*((below + k) * grid for k in NEAR), value], axis=2)
    # Whoever does not move a column leaves it; whole steps count from where the person stands.
    still = np.abs(action[:, columns]) <= TOLERANCE
    steps = (options - now[:, :, None]) / np.where(step > 0.0, step, 1.0)[:, None]
    off = (step > 0.0)[:, None] & (np.abs(steps - np.round(steps)) > 1e-6)
    options = np.where(off | still[:, :, None], value[:, :, None], options)
    moved = (options - now[:, :, None]) / unit[:, None]
    moved[:, :, -1] = action[:, columns]
    same = np.abs(options - value[:, :, None]) <= 1e-9 * (1.0 + np.abs(value[:, :, None]))
    return np.where(same, action[:, columns][:, :, None], moved), same
