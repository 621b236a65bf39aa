"""The branches of a person's search, compiled: what is left to decide in each of them.

A branch lies on one side of every premise (so it is known which rows are in force) and on one
side of the cost's kink (so the cost is smooth); columns without a choice are decided here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.people.feasible import APART
from countermove.response.compilation import part
from countermove.response.exact._bound import ExactCase, best_value

CONTINUOUS = 1.0
"""Place of continuous columns in the order of items, after all others."""


class SharedTables(NamedTuple):
    """What all people of a search share."""

    rows: Floats  # (m, k); the first is replaced by each person's slope
    square: Floats  # (k,)
    step: Floats
    blocked: Mask  # (k,) columns that belong to a block of options
    first: Index  # (blocks + 1,)
    columns: Index  # (blocks, width), padded with -1
    in_force: Mask  # (branches, m)
    linear: Floats  # (branches, k)
    side: Index  # (branches, premises): below the premise's value (-1), at it (0), above (1)
    premise: Index  # (premises,) its column


class PeopleTables(NamedTuple):
    """What differs between people."""

    slope: Floats  # (n, k)
    linear: Floats  # (n, k) price of a column's unit, beside that of the branch
    least: Floats  # (n, m)
    low: Floats  # (n, k)
    high: Floats
    change: Floats  # (n, o, width) what each option changes in its block's columns
    allowed: Mask  # (n, o)
    value: Floats  # (n, premises) the action that makes a premise true
    most: Floats  # (n,) the price from which an action is not worth knowing


@part
def least_of(values):  # type: ignore[no-untyped-def]
    """Return the place of the least value."""
    place = 0
    for i in range(values.size):
        if values[i] < values[place]:
            place = i
    return place


@part
def option_gains(shared, people, i, rows):  # type: ignore[no-untyped-def]
    """Return what each of a person's options gains in each row, shape (o, m)."""
    gain = np.zeros((people.allowed.shape[1], rows.shape[0]))
    for block in range(shared.columns.shape[0]):
        for o in range(shared.first[block], shared.first[block + 1]):
            for c in range(shared.columns.shape[1]):
                j = shared.columns[block, c]
                if j >= 0:
                    for r in range(rows.shape[0]):
                        gain[o, r] += rows[r, j] * people.change[i, o, c]
    return gain


@part
def branch_of(shared, people, i, b, rows, gain, got, answer):  # type: ignore[no-untyped-def]
    """Return one branch, how many items are discrete, and the cost of what is left no choice."""
    # Columns and blocks without a choice, or in no row, are decided here: in `got` and `answer`.
    k = shared.square.size
    low, high = people.low[i].copy(), people.high[i].copy()
    allowed, linear = people.allowed[i].copy(), shared.linear[b] + people.linear[i]
    on = shared.in_force[b]
    possible = _premises(shared, people, i, b, low, high, allowed)
    cost = np.zeros(allowed.size)
    spent = 0.0 if possible else np.inf
    for r in range(got.size):
        got[r] = 0.0
    items, coarse = np.zeros(answer.size, np.int64), np.zeros(answer.size)
    count = 0
    for block in range(shared.columns.shape[0]):
        only, choices, spread = _block(shared, people, i, block, linear, gain, allowed, cost)
        if choices == 0:
            spent = np.inf
        elif choices == 1:
            answer[k + block] = only
            spent += cost[only]
            for r in range(got.size):
                got[r] += gain[only, r]
        else:
            items[count], coarse[count] = k + block, -1e9 - spread
            count += 1
    for j in range(k):
        if shared.blocked[j]:
            continue
        if low[j] < high[j] and _in_a_row(rows, on, j):
            finest = CONTINUOUS if shared.step[j] == 0.0 else -abs(rows[0, j]) * shared.step[j]
            items[count], coarse[count] = j, finest
            count += 1
            continue
        x = best_value(-linear[j], shared.square[j], low[j], high[j], shared.step[j])
        answer[j] = x
        spent += (shared.square[j] * x + linear[j]) * x
        for r in range(got.size):
            got[r] += rows[r, j] * x
    ordered, discrete = _sorted(items, coarse, count)
    case = ExactCase(
        rows, people.least[i], on, shared.square, linear, low, high, shared.step,
        gain, cost, allowed, shared.first, ordered,
    )  # fmt: skip
    return case, discrete, spent


@part
def _in_a_row(rows, on, j):  # type: ignore[no-untyped-def]
    """Return whether a column counts in a row in force."""
    used = False
    for r in range(on.size):
        used = used or (on[r] and rows[r, j] != 0.0)
    return used


@part
def _sorted(items, coarse, count):  # type: ignore[no-untyped-def]
    """Return the items from coarse to fine, and how many are discrete."""
    discrete = 0
    ordered = np.zeros(count, np.int64)
    for place in range(count):
        best = least_of(coarse[:count])
        ordered[place] = items[best]
        discrete += coarse[best] < CONTINUOUS
        coarse[best] = np.inf
    return ordered, discrete


@part
def _block(shared, people, i, block, linear, gain, allowed, cost):  # type: ignore[no-untyped-def]
    """Price a block's options; return one that is allowed, how many are, and their spread."""
    only, choices, least, most = 0, 0, np.inf, -np.inf
    for o in range(shared.first[block], shared.first[block + 1]):
        for c in range(shared.columns.shape[1]):
            j = shared.columns[block, c]
            if j >= 0:
                x = people.change[i, o, c]
                cost[o] += (shared.square[j] * x + linear[j]) * x
        if allowed[o]:
            only, choices = o, choices + 1
            least, most = min(least, gain[o, 0]), max(most, gain[o, 0])
    return only, choices, most - least


@part
def _narrow(shared, people, i, j, side, value, allowed):  # type: ignore[no-untyped-def]
    """Leave the options that put a block's column on one side of a value."""
    for block in range(shared.columns.shape[0]):
        for c in range(shared.columns.shape[1]):
            if shared.columns[block, c] == j:
                for o in range(shared.first[block], shared.first[block + 1]):
                    away = people.change[i, o, c] - value
                    where = 0 if abs(away) <= APART else (1 if away > 0.0 else -1)
                    allowed[o] = allowed[o] and where == side


@part
def _premises(shared, people, i, b, low, high, allowed):  # type: ignore[no-untyped-def]
    """Narrow the domains to a branch's side of every premise; return whether any is left."""
    for p in range(shared.premise.size):
        j, side, value = shared.premise[p], shared.side[b, p], people.value[i, p]
        if shared.blocked[j]:
            _narrow(shared, people, i, j, side, value, allowed)
            continue
        step = shared.step[j]
        at, unit, slack = (value / step, step, APART) if step > 0.0 else (value / APART, APART, 0.0)
        if side < 0:
            high[j] = min(high[j], (np.ceil(at - slack) - 1.0) * unit)
        elif side > 0:
            low[j] = max(low[j], (np.floor(at + slack) + 1.0) * unit)
        else:
            on_lattice = step == 0.0 or abs(at - np.floor(at + 0.5)) <= APART
            if not on_lattice or value < low[j] - APART or value > high[j] + APART:
                return False
            x = np.floor(at + 0.5) * unit if step > 0.0 else value
            low[j] = x
            high[j] = x
        if low[j] > high[j]:
            return False
    return True


@part
def most_left(case):  # type: ignore[no-untyped-def]
    """Return the most each row can gain from each item on, shape (items + 1, m)."""
    k, m = case.square.size, case.least.size
    most = np.zeros((case.items.size + 1, m))
    for place in range(case.items.size - 1, -1, -1):
        item = case.items[place]
        for r in range(m):
            top = -np.inf
            if item < k:
                top = max(case.rows[r, item] * case.low[item], case.rows[r, item] * case.high[item])
            else:
                for o in range(case.first[item - k], case.first[item - k + 1]):
                    if case.allowed[o]:
                        top = max(top, case.gain[o, r])
            most[place, r] = most[place + 1, r] + top
    return most


@part
def most_expensive(case, spent):  # type: ignore[no-untyped-def]
    """Return more than any action of the branch costs: a bound beyond proves there is none."""
    k, total = case.square.size, spent
    for item in case.items:
        if item < k:
            low, high = case.low[item], case.high[item]
            total += case.square[item] * max(low * low, high * high)
            total += max(case.linear[item] * low, case.linear[item] * high)
        else:
            top = -np.inf
            for o in range(case.first[item - k], case.first[item - k + 1]):
                if case.allowed[o]:
                    top = max(top, case.cost[o])
            total += top
    return total + 1e-6 * abs(total) + 1e-3


@part
def possible_still(case, got, most):  # type: ignore[no-untyped-def]
    """Return whether every row in force can still be met on its own."""
    for r in range(case.least.size):
        if case.on[r] and got[r] + most[r] < case.least[r]:
            return False
    return True
