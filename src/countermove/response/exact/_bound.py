r"""Lower bounds of the cheapest action, and its continuous part, compiled.

With a price :math:`y_r \ge 0` on every row :math:`g_r\cdot\delta \ge h_r`, the least of
:math:`\sum_j q_j\delta_j^2 + c_j\delta_j + \sum_r y_r (h_r - g_r\cdot\delta)` over the lattice,
found item by item, is a lower bound whatever the prices. They are raised one row at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.response.compilation import part

STEPS = 60
"""Of the search for one price."""
LARGEST_PRICE = 1e15
ROUNDING = 1e-13
"""Share of its terms that a bound gives away to rounding."""
NEWTON = 60


class ExactCase(NamedTuple):
    """One person in one branch; an item is a column, or (from k on) a block of options."""

    rows: Floats  # (m, k) what each row gains by a unit of each column; the first is the score
    least: Floats  # (m,) what each row has to gain
    on: Mask  # (m,) the rows in force
    square: Floats  # (k,) price of a column's square, positive
    linear: Floats  # (k,) price of a column's unit
    low: Floats  # (k,)
    high: Floats
    step: Floats  # 0: any number
    gain: Floats  # (o, m) what each option gains in each row
    cost: Floats  # (o,)
    allowed: Mask  # (o,)
    first: Index  # (blocks + 1,) where each block's options start
    items: Index  # undecided items, coarse to fine, the continuous ones last


@part
def best_value(pull, square, low, high, step):  # type: ignore[no-untyped-def]
    """Return the allowed value of least ``square x² - pull x``."""
    x = pull / (2.0 * square)
    if step > 0.0:
        x = np.floor(x / step + 0.5) * step
    return min(max(x, low), high)


@part
def set_pulls(case, start, y, pull, worth):  # type: ignore[no-untyped-def]
    """Write what the prices offer for a unit of each column and for each option."""
    k, m = case.square.size, case.least.size
    for place in range(start, case.items.size):
        item = case.items[place]
        if item < k:
            total = -case.linear[item]
            for r in range(m):
                total += y[r] * case.rows[r, item]
            pull[item] = total
            continue
        for o in range(case.first[item - k], case.first[item - k + 1]):
            total = -case.cost[o]
            for r in range(m):
                total += y[r] * case.gain[o, r]
            worth[o] = total


@part
def _shift(case, start, r, change, pull, worth):  # type: ignore[no-untyped-def]
    """Change one row's price in what is offered."""
    if change == 0.0:
        return
    k = case.square.size
    for place in range(start, case.items.size):
        item = case.items[place]
        if item < k:
            pull[item] += change * case.rows[r, item]
        else:
            for o in range(case.first[item - k], case.first[item - k + 1]):
                worth[o] += change * case.gain[o, r]


@part
def _gained(case, start, r, price, pull, worth):  # type: ignore[no-untyped-def]
    """Return what a row gains when its price is added to the offers of the others."""
    k, total = case.square.size, 0.0
    for place in range(start, case.items.size):
        item = case.items[place]
        if item < k:
            g = case.rows[r, item]
            if g != 0.0:
                total += g * best_value(
                    pull[item] + price * g,
                    case.square[item],
                    case.low[item],
                    case.high[item],
                    case.step[item],
                )
            continue
        most, won = -np.inf, 0.0
        for o in range(case.first[item - k], case.first[item - k + 1]):
            offer = worth[o] + price * case.gain[o, r]
            if case.allowed[o] and offer > most:
                most, won = offer, case.gain[o, r]
        total += won
    return total


@part
def _price(case, start, r, need, guess, pull, worth):  # type: ignore[no-untyped-def]
    """Return the least price at which a row gains what it needs."""
    low, at_low = 0.0, _gained(case, start, r, 0.0, pull, worth)
    if at_low >= need:
        return 0.0
    high = guess
    if high <= 0.0:
        bend = 0.0
        for place in range(start, case.items.size):
            item = case.items[place]
            if item < case.square.size:
                bend += case.rows[r, item] ** 2 / (2.0 * case.square[item])
        high = (need - at_low) / bend if bend > 0.0 else 1.0
    at_high = _gained(case, start, r, high, pull, worth)
    while at_high < need:
        low, at_low, high = high, at_high, 3.0 * high
        if high > LARGEST_PRICE:
            return low
        at_high = _gained(case, start, r, high, pull, worth)
    for turn in range(STEPS):
        if high - low <= 1e-11 * high or at_high - need <= 1e-14 * (1.0 + abs(need)):
            break
        share = 0.5 if turn % 3 == 2 else (need - at_low) / (at_high - at_low)
        middle = low + min(max(share, 0.02), 0.98) * (high - low)
        at_middle = _gained(case, start, r, middle, pull, worth)
        if at_middle >= need:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return high


@part
def _value(case, start, spent, got, y, pull, worth):  # type: ignore[no-untyped-def]
    """Return the bound that prices prove, less what rounding may have added."""
    k, total, size = case.square.size, spent, abs(spent)
    for place in range(start, case.items.size):
        item = case.items[place]
        if item < k:
            x = best_value(
                pull[item], case.square[item], case.low[item], case.high[item], case.step[item]
            )
            price = case.square[item] * x * x
            total += price - pull[item] * x
            size += price + abs(pull[item] * x)
            continue
        most = -np.inf
        for o in range(case.first[item - k], case.first[item - k + 1]):
            if case.allowed[o] and worth[o] > most:
                most = worth[o]
        total -= most
        size += abs(most)
    for r in range(case.least.size):
        paid = y[r] * (case.least[r] - got[r])
        total += paid
        size += abs(paid)
    return total - ROUNDING * size


@part
def raise_bound(case, start, spent, got, y, enough, sweeps, pull, worth):  # type: ignore[no-untyped-def]
    """Raise the prices row by row; return the bound for what is left from item ``start`` on."""
    set_pulls(case, start, y, pull, worth)
    rows = 0
    for r in range(case.least.size):
        rows += case.on[r]
    bound = -np.inf
    for _ in range(sweeps):
        for r in range(case.least.size):
            if case.on[r]:
                old = y[r]
                _shift(case, start, r, -old, pull, worth)
                y[r] = _price(case, start, r, case.least[r] - got[r], old, pull, worth)
                _shift(case, start, r, y[r], pull, worth)
        before, bound = bound, _value(case, start, spent, got, y, pull, worth)
        near = bound - before <= 1e-3 * (enough - bound) or bound - before <= 1e-12 * abs(bound)
        if rows <= 1 or bound >= enough or near:
            break
    set_pulls(case, start, y, pull, worth)
    return bound


@part
def _answer(case, start, y, pull, worth, x):  # type: ignore[no-untyped-def]
    """Write the continuous columns that prices lead to; return what they cost."""
    set_pulls(case, start, y, pull, worth)
    total = 0.0
    for place in range(start, case.items.size):
        j = case.items[place]
        x[j] = best_value(pull[j], case.square[j], case.low[j], case.high[j], 0.0)
        total += (case.square[j] * x[j] + case.linear[j]) * x[j]
    return total


@part
def _lacking(case, start, got, x, y, lack):  # type: ignore[no-untyped-def]
    """Write what each row lacks at x; return the most, by the row's size, and what is idly paid."""
    worst, idle = 0.0, 0.0
    for r in range(case.least.size):
        lack[r] = 0.0
        if case.on[r]:
            total, size = case.least[r] - got[r], 1.0 + abs(case.least[r]) + abs(got[r])
            for place in range(start, case.items.size):
                gained = case.rows[r, case.items[place]] * x[case.items[place]]
                total -= gained
                size += abs(gained)
            lack[r] = total
            worst, idle = max(worst, total / size), idle + y[r] * abs(total)
    return worst, idle


@part
def _newton_step(case, start, y, lack, x, step):  # type: ignore[no-untyped-def]
    """Write the Newton step of the active rows' prices, dependent rows left alone."""
    m = case.least.size
    matrix = np.zeros((m, m))
    active = np.zeros(m, np.bool_)
    for r in range(m):
        active[r] = case.on[r] and (y[r] > 0.0 or lack[r] > 0.0)
        step[r] = lack[r] if active[r] else 0.0
    for place in range(start, case.items.size):
        j = case.items[place]
        if case.low[j] < x[j] < case.high[j]:
            for r in range(m):
                for s in range(m if active[r] else 0):
                    both = case.rows[r, j] * case.rows[s, j] if active[s] else 0.0
                    matrix[r, s] += both / (2.0 * case.square[j])
    _eliminate(matrix, active, step)


@part
def _eliminate(matrix, active, step):  # type: ignore[no-untyped-def]
    """Solve for the active rows; one that adds nothing to those before it gets no step."""
    m = step.size
    for r in range(m):
        whole = 1e-300
        for s in range(m):
            whole = max(whole, abs(matrix[r, s]))
        if not active[r] or matrix[r, r] <= 1e-13 * whole:
            active[r] = False
            step[r] = 0.0
            continue
        for s in range(m):
            if s != r and active[s] and matrix[s, r] != 0.0:
                factor = matrix[s, r] / matrix[r, r]
                for t in range(m):
                    matrix[s, t] -= factor * matrix[r, t]
                step[s] -= factor * step[r]
    for r in range(m):
        if active[r]:
            step[r] /= matrix[r, r]


@part
def _climb(case, start, spent, got, y, limit, trial, pull, worth):  # type: ignore[no-untyped-def]
    """Raise the prices row by row, then go on that way as long as the bound rises."""
    m = y.size
    before = y.copy()
    best = raise_bound(case, start, spent, got, y, limit, np.int64(3), pull, worth)
    stretch = 2.0
    for r in range(m):
        before[r] = y[r] - before[r]
    for _ in range(60):
        for r in range(m):
            trial[r] = max(0.0, y[r] + stretch * before[r])
        set_pulls(case, start, trial, pull, worth)
        value = _value(case, start, spent, got, trial, pull, worth)
        if value <= best or best >= limit:
            return
        best, stretch = value, 2.0 * stretch
        for r in range(m):
            y[r] = trial[r]


@part
def _advance(case, start, spent, got, y, here, step, trial, pull, worth):  # type: ignore[no-untyped-def]
    """Take as much of a step as raises the bound; return whether any does."""
    length = 1.0
    while length > 0.004:
        for r in range(y.size):
            trial[r] = max(0.0, y[r] + length * step[r])
        set_pulls(case, start, trial, pull, worth)
        if _value(case, start, spent, got, trial, pull, worth) > here:
            for r in range(y.size):
                y[r] = trial[r]
            return True
        length *= 0.5
    return False


@part
def _nearer(case, start, got, y, step, before, trial, pull, worth, x, lack):  # type: ignore[no-untyped-def]
    """Take a whole step if its answer lacks and idly pays less; return whether it does."""
    for r in range(y.size):
        trial[r] = max(0.0, y[r] + step[r])
    _answer(case, start, trial, pull, worth, x)
    worst, idle = _lacking(case, start, got, x, trial, lack)
    if worst + idle >= before:
        return False
    for r in range(y.size):
        y[r] = trial[r]
    return True


@part
def close_numbers(case, start, spent, got, y, limit, pull, worth, x):  # type: ignore[no-untyped-def]
    """Choose the continuous columns; return their cost with ``spent``, NaN if it is not proven."""
    # Prices whose answer meets every row, and pays for none that it exceeds, prove it cheapest;
    # prices that prove a bound beyond the limit, that it is not worth knowing (infinite).
    m = case.least.size
    lack, step, trial = np.zeros(m), np.zeros(m), np.zeros(m)
    for _ in range(NEWTON):
        total = spent + _answer(case, start, y, pull, worth, x)
        worst, idle = _lacking(case, start, got, x, y, lack)
        if worst <= 1e-13 and idle <= 1e-11 * (1.0 + abs(total)):
            return total
        here = _value(case, start, spent, got, y, pull, worth)
        if here >= limit:
            return np.inf
        _newton_step(case, start, y, lack, x, step)
        if _advance(case, start, spent, got, y, here, step, trial, pull, worth):
            continue
        # Close to the answer a step raises the bound by less than rounding gives away.
        if not _nearer(case, start, got, y, step, worst + idle, trial, pull, worth, x, lack):
            _climb(case, start, spent, got, y, limit, trial, pull, worth)
    return np.nan
