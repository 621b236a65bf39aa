"""The search for the cheapest action of one person after the other, compiled.

Every branch (which conditional rows are in force) starts with a bound; branches are
searched best bound first. Within one, items are decided from coarse to fine, each value in the
order of what it adds to the bound; the bound is raised again for what is left, and a value is
left out when it cannot beat the best action known. The last column is closed by an interval.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from countermove._types import Floats
from countermove.response.compilation import forget_stale_kernels, jit, part
from countermove.response.exact._bound import best_value, close_numbers, raise_bound
from countermove.response.exact._branches import (
    branch_of,
    least_of,
    most_expensive,
    most_left,
    option_gains,
    possible_still,
)

forget_stale_kernels(Path(__file__).parent)

FOUND, NONE, OPEN = 0, 1, 2
"""How a person's search ended; OPEN: not within its budget."""
QUICK_SWEEPS, FIRST_SWEEPS, SWEEPS = 1, 8, 3
"""Passes over the prices at a first look, at the start of a branch and inside."""
PRICED = 12
"""What raising a bound counts in the budget, where trying a value counts one."""
BETTER = 1e-10
"""An action is cheaper when it costs less by this share (and this much)."""


class Trail(NamedTuple):
    """The values under way, one entry per level."""

    bound: Floats
    spent: Floats
    got: Floats  # (levels, m)
    y: Floats  # (levels, m)
    most: Floats  # (levels, m) the most that items from here on can gain
    pull: Floats  # of the level's column
    floor: Floats  # the level's part of the bound
    up: Floats  # next value upwards, in steps
    down: Floats
    first: Floats  # ends of the level's range, in steps
    last: Floats
    chosen: Floats  # value, or option
    worth: Floats  # (levels, o) what is offered for options not yet tried


@jit
def cheapest_for_everyone(shared, people, budget, action, ended):  # type: ignore[no-untyped-def]
    """Write each person's cheapest action, shape (n, k), and how the search ended, shape (n,)."""
    for i in range(people.slope.shape[0]):
        ended[i] = cheapest_of_person(shared, people, i, budget, action[i])


@part
def cheapest_of_person(shared, people, i, budget, action):  # type: ignore[no-untyped-def]
    """Search one person's branches, best bound first."""
    n_branches, m = shared.in_force.shape
    rows = shared.rows.copy()
    for j in range(shared.square.size):
        rows[0, j] = people.slope[i, j]
    gain = option_gains(shared, people, i, rows)
    width = shared.square.size + shared.columns.shape[0]
    answer, best_answer, best = np.zeros(width), np.zeros(width), np.zeros(1)
    pull, worth = np.zeros(shared.square.size), np.zeros(gain.shape[0])
    bounds, prices = np.zeros(n_branches), np.zeros((n_branches, m))
    got, left = np.zeros(m), np.zeros(1, np.int64)
    best[0], left[0] = people.most[i], budget
    # Compiled code is made once per type, and a literal is a type of its own.
    start, few, many = np.int64(0), np.int64(QUICK_SWEEPS), np.int64(FIRST_SWEEPS)
    refined = np.zeros(n_branches, np.bool_)
    for b in range(n_branches):
        case, discrete, spent = branch_of(shared, people, i, b, rows, gain, got, answer)
        bounds[b] = np.inf
        if spent < np.inf and possible_still(case, got, most_left(case)[0]):
            top = most_expensive(case, spent)
            bound = raise_bound(case, start, spent, got, prices[b], top, few, pull, worth)
            if bound < top:
                bounds[b] = bound
    while True:
        b = least_of(bounds)
        if bounds[b] == np.inf or bounds[b] >= best[0] - BETTER * (1.0 + abs(best[0])):
            break
        case, discrete, spent = branch_of(shared, people, i, b, rows, gain, got, answer)
        if not refined[b]:
            # A quick bound first for all; a branch is looked at again before it is searched.
            refined[b] = True
            top = most_expensive(case, spent)
            bound = raise_bound(case, start, spent, got, prices[b], top, many, pull, worth)
            bounds[b] = max(bounds[b], bound) if bound < top else np.inf
            continue
        trail = _trail(case, discrete, spent, got, prices[b], bounds[b])
        _search(case, trail, discrete, best, left, answer, best_answer, pull, worth)
        bounds[b] = np.inf
        if left[0] < 0:
            return OPEN
    if best[0] == people.most[i]:
        return NONE
    _write(shared, people, i, best_answer, action)
    return FOUND


@part
def _trail(case, discrete, spent, got, y, bound):  # type: ignore[no-untyped-def]
    """Return room for the values under way, with the start of a branch in it."""
    m, o, levels = case.least.size, case.cost.size, discrete + 1
    trail = Trail(
        np.zeros(levels), np.zeros(levels), np.zeros((levels, m)), np.zeros((levels, m)),
        most_left(case), np.zeros(levels), np.zeros(levels), np.zeros(levels), np.zeros(levels),
        np.zeros(levels), np.zeros(levels), np.zeros(levels), np.zeros((levels, o)),
    )  # fmt: skip
    trail.bound[0], trail.spent[0] = bound, spent
    for r in range(m):
        trail.got[0, r], trail.y[0, r] = got[r], y[r]
    return trail


@part
def _search(case, trail, discrete, best, left, answer, best_answer, pull, worth):  # type: ignore[no-untyped-def]
    """Decide item after item; write a cheaper answer where there is one."""
    top = most_expensive(case, trail.spent[0])
    keep = (best, left, answer, best_answer, pull, worth)
    level = np.int64(0)
    if not _descend(case, trail, level, discrete, top, keep):
        level = np.int64(-1)
    while level >= 0 and left[0] >= 0:
        added = _next(case, trail, level)
        if trail.bound[level] + added >= min(top, best[0] - BETTER * (1.0 + abs(best[0]))):
            level -= 1
            continue
        left[0] -= 1
        _take(case, trail, level, answer)
        trail.bound[level + 1] = trail.bound[level] + added
        if _descend(case, trail, level + 1, discrete, top, keep):
            level += 1


@part
def _descend(case, trail, level, discrete, top, keep):  # type: ignore[no-untyped-def]
    """Return whether items are to be decided from a level on; close it where none is."""
    best, left, answer, best_answer, pull, worth = keep
    limit = min(top, best[0] - BETTER * (1.0 + abs(best[0])))
    spent, got, y = trail.spent[level], trail.got[level], trail.y[level]
    if not possible_still(case, got, trail.most[level]):
        return False
    numbers = case.items.size > discrete
    total = np.inf
    if level == discrete and not numbers:
        total = spent
    elif level == case.items.size - 1 and case.items[level] < case.square.size:
        j = case.items[level]
        x = _last_column(case, j, got)
        answer[j] = x
        total = spent + (case.square[j] * x + case.linear[j]) * x
    else:
        left[0] -= PRICED
        bound = raise_bound(case, level, spent, got, y, limit, np.int64(SWEEPS), pull, worth)
        trail.bound[level] = max(trail.bound[level], bound)
        if trail.bound[level] >= limit:
            return False
        if level < discrete:
            _enter(case, trail, level, pull, worth)
            return True
        total = close_numbers(case, level, spent, got, y, limit, pull, worth, answer)
        if np.isnan(total):
            left[0] = -1
    if total < limit:
        best[0] = total
        for place in range(answer.size):
            best_answer[place] = answer[place]
    return False


@part
def _enter(case, trail, level, pull, worth):  # type: ignore[no-untyped-def]
    """Prepare a level's values: the order in which they are tried, and the range that is left."""
    k, item, got = case.square.size, case.items[level], trail.got[level]
    if item >= k:
        trail.floor[level] = np.inf
        for o in range(case.first[item - k], case.first[item - k + 1]):
            trail.worth[level, o] = worth[o] if case.allowed[o] else -np.inf
            if case.allowed[o]:
                trail.floor[level] = min(trail.floor[level], -worth[o])
        return
    low, high, step = case.low[item], case.high[item], case.step[item]
    x = best_value(pull[item], case.square[item], low, high, step)
    trail.pull[level] = pull[item]
    trail.floor[level] = (case.square[item] * x - pull[item]) * x
    for r in range(case.least.size):
        g = case.rows[r, item]
        if case.on[r] and g != 0.0:
            end = (case.least[r] - got[r] - trail.most[level + 1, r]) / g
            low, high = (max(low, end), high) if g > 0.0 else (low, min(high, end))
    trail.first[level] = np.ceil(low / step - 1e-9)
    trail.last[level] = np.floor(high / step + 1e-9)
    near = min(max(np.floor(x / step + 0.5), trail.first[level]), trail.last[level])
    trail.up[level] = near
    trail.down[level] = near - 1.0


@part
def _next(case, trail, level):  # type: ignore[no-untyped-def]
    """Choose the level's next value; return what it adds to the bound, infinite without one."""
    k, item = case.square.size, case.items[level]
    if item >= k:
        won, most = -1, -np.inf
        for o in range(case.first[item - k], case.first[item - k + 1]):
            if trail.worth[level, o] > most:
                won, most = o, trail.worth[level, o]
        if won < 0:
            return np.inf
        trail.worth[level, won] = -np.inf
        trail.chosen[level] = won
        return -most - trail.floor[level]
    square, pull, step = case.square[item], trail.pull[level], case.step[item]
    above, below = np.inf, np.inf
    if trail.up[level] <= trail.last[level]:
        x = trail.up[level] * step
        above = (square * x - pull) * x
    if trail.down[level] >= trail.first[level]:
        x = trail.down[level] * step
        below = (square * x - pull) * x
    if above <= below:
        trail.chosen[level] = trail.up[level] * step
        trail.up[level] += 1.0
    else:
        trail.chosen[level] = trail.down[level] * step
        trail.down[level] -= 1.0
    return min(above, below) - trail.floor[level]


@part
def _take(case, trail, level, answer):  # type: ignore[no-untyped-def]
    """Write the chosen value, what it costs and what it gains into the next level."""
    k, item, x = case.square.size, case.items[level], trail.chosen[level]
    answer[item] = x
    price = case.cost[int(x)] if item >= k else (case.square[item] * x + case.linear[item]) * x
    trail.spent[level + 1] = trail.spent[level] + price
    for r in range(case.least.size):
        gained = case.gain[int(x), r] if item >= k else case.rows[r, item] * x
        trail.got[level + 1, r] = trail.got[level, r] + gained
        trail.y[level + 1, r] = trail.y[level, r]


@part
def _last_column(case, j, got):  # type: ignore[no-untyped-def]
    """Return the cheapest value of the last column that meets every row, NaN without one."""
    low, high, step = case.low[j], case.high[j], case.step[j]
    for r in range(case.least.size):
        g, lack = case.rows[r, j], case.least[r] - got[r]
        if case.on[r] and g > 0.0:
            low = max(low, lack / g)
        elif case.on[r] and g < 0.0:
            high = min(high, lack / g)
        elif case.on[r] and lack > 0.0:
            return np.nan
    if step == 0.0:
        free = -case.linear[j] / (2.0 * case.square[j])
        return min(max(free, low), high) if low <= high else np.nan
    low, high = low / step, high / step
    low = np.ceil(low - 1e-12 * (1.0 + abs(low)))
    high = np.floor(high + 1e-12 * (1.0 + abs(high)))
    if low > high:
        return np.nan
    free = np.floor(0.5 + -case.linear[j] / (2.0 * case.square[j] * step))
    return min(max(free, low), high) * step


@part
def _write(shared, people, i, answer, action):  # type: ignore[no-untyped-def]
    """Write an answer, values and options, as an action."""
    k = shared.square.size
    for j in range(k):
        action[j] = answer[j]
    for block in range(shared.columns.shape[0]):
        o = int(answer[k + block])
        for c in range(shared.columns.shape[1]):
            if shared.columns[block, c] >= 0:
                action[shared.columns[block, c]] = people.change[i, o, c]
