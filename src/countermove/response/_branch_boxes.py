r"""The branches of possible people, compiled: the box and the rows of each.

In a branch histories are settled and it is known on which side of every premise a person is, hence
which rows are in force.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.people.feasible import APART
from countermove.response._relation_rows import (
    ACTION,
    ALONG,
    HALF,
    HI,
    LO,
    SLOPE,
    SQUARE,
    TOLERANCE,
    Y,
    list_live,
)
from countermove.response.compilation import inlined, lean


class BranchTables(NamedTuple):
    """What everybody shares beside the rows."""

    rule: Index  # (m,) the premise that puts a row in force, -1: always
    column: Index  # (p,) of each premise
    step: Floats  # (p,) by which its column leaves it, 0: by anything
    block: Index  # (p,) the listed block of its column, or -1
    sides: Index  # (s, p) below (-1), at (0) or above (1) the value of each premise
    options: Index  # (h + 1,) where each block's states start
    columns: Index  # (h, width) padded with -1


class BranchPeople(NamedTuple):
    """What differs between people."""

    low: Floats  # (n, k)
    high: Floats
    offset: Floats  # (n, m)
    value: Floats  # (n, p) the action that makes a premise true
    change: Floats  # (n, o, width)
    allowed: Mask  # (n, o)


@inlined
def whole_box(people, i, desk):  # type: ignore[no-untyped-def]
    """Put everything that any branch allows on the desk, rows aside."""
    for j in range(desk.columns.shape[1]):
        desk.columns[LO, j], desk.columns[HI, j] = people.low[i, j], people.high[i, j]
    for r in range(desk.rows.shape[1]):
        desk.on[r], desk.rows[Y, r] = False, 0.0
    desk.live[desk.on.size] = 0


@inlined
def _side_of(away):  # type: ignore[no-untyped-def]
    """Return on which side of a premise's value a column stands."""
    return 0 if abs(away) <= APART else (1 if away > 0.0 else -1)


@inlined
def _state_side(b, people, i, p, choice):  # type: ignore[no-untyped-def]
    """Return on which side of a premise the state of its block is."""
    block = b.block[p]
    for c in range(b.columns.shape[1]):
        if b.columns[block, c] == b.column[p]:
            return _side_of(people.change[i, choice[block], c] - people.value[i, p])
    return 1


@inlined
def _edge(value, step, side):  # type: ignore[no-untyped-def]
    """Return the first action beyond a premise's value."""
    if step == 0.0:
        return value + side * APART
    steps = value / step
    if side < 0:
        return (math.ceil(steps - APART) - 1.0) * step
    return (math.floor(steps + APART) + 1.0) * step


@lean
def sided(b, people, i, side, desk):  # type: ignore[no-untyped-def]
    """Narrow the box to a side of the premises; return whether any is left."""
    for p in range(b.column.size):
        j, value, where = b.column[p], people.value[i, p], b.sides[side, p]
        if b.block[p] >= 0:
            continue
        if where == 0:
            if value < desk.columns[LO, j] - APART or value > desk.columns[HI, j] + APART:
                return False
            desk.columns[LO, j] = desk.columns[HI, j] = min(
                max(value, desk.columns[LO, j]), desk.columns[HI, j]
            )
            continue
        edge = _edge(value, b.step[p], where)
        if where < 0:
            desk.columns[HI, j] = min(desk.columns[HI, j], edge)
        else:
            desk.columns[LO, j] = max(desk.columns[LO, j], edge)
        if desk.columns[LO, j] > desk.columns[HI, j]:
            return False
    return True


@lean
def narrow(t, b, people, i, side, choice, desk):  # type: ignore[no-untyped-def]
    """Put a branch on the desk: states, and a side of the premises (-1: any, without rows)."""
    whole_box(people, i, desk)
    for block in range(b.columns.shape[0]):
        for c in range(b.columns.shape[1]):
            j = b.columns[block, c]
            if j >= 0:
                desk.columns[LO, j] = desk.columns[HI, j] = people.change[i, choice[block], c]
    if side < 0:
        return True
    if not sided(b, people, i, side, desk):
        return False
    for r in range(t.first.size - 1):
        p = b.rule[r]
        desk.on[r] = (
            p < 0
            or (_state_side(b, people, i, p, choice) if b.block[p] >= 0 else b.sides[side, p]) == 0
        )
    left = _tighten(t, people.offset[i], desk)
    list_live(desk)
    return left


@lean
def _tighten(t, offset, desk):  # type: ignore[no-untyped-def]
    """Turn rows about one column into bounds, drop what always holds; say whether any is left."""
    again = True
    while again:
        again = False
        for r in range(t.first.size - 1):
            if not desk.on[r]:
                continue
            least, most, rest, open_ones, at = offset[r], offset[r], offset[r], 0, 0
            for e in range(t.first[r], t.first[r + 1]):
                j = t.at[e]
                below, above = t.entry[e] * desk.columns[LO, j], t.entry[e] * desk.columns[HI, j]
                least += min(below, above)
                most += max(below, above)
                if desk.columns[LO, j] < desk.columns[HI, j]:
                    open_ones, at = open_ones + 1, e
                else:
                    rest += below
            if most < -1e-9:
                return False
            if least >= 0.0 or open_ones == 0:
                desk.on[r] = False
            elif most <= 1e-12 or open_ones == 1:
                desk.on[r], again = False, True
                _settle_row(t, r, most, rest, at, desk)
    return True


@lean
def _settle_row(t, r, most, rest, at, desk):  # type: ignore[no-untyped-def]
    """Fix the columns of a row that only its best corner meets, or bound its one open column."""
    if most <= 1e-12:
        for e in range(t.first[r], t.first[r + 1]):
            j = t.at[e]
            desk.columns[LO, j] = desk.columns[HI, j] = (
                desk.columns[HI, j] if t.entry[e] > 0.0 else desk.columns[LO, j]
            )
        return
    j, bound = t.at[at], -rest / t.entry[at]
    if t.entry[at] > 0.0:
        desk.columns[LO, j] = min(max(desk.columns[LO, j], bound), desk.columns[HI, j])
    else:
        desk.columns[HI, j] = max(min(desk.columns[HI, j], bound), desk.columns[LO, j])


@inlined
def _worth(u, t, j, lo, hi):  # type: ignore[no-untyped-def]
    """Return the most of u·gain - cost that a column has to give between two bounds."""
    pull = u * t.cost[SLOPE, j]
    x = min(max(pull * t.cost[HALF, j], lo), hi)
    return (pull - t.cost[SQUARE, j] * x) * x


@lean
def weigh(u, t, b, people, i, desk, worth):  # type: ignore[no-untyped-def]
    """Write the most of u·gain - cost of every side and of what every state adds to it."""
    # States and sides concern different columns, so that they add up; rows are left aside.
    whole_box(people, i, desk)
    whole = 0.0
    for j in range(t.cost.shape[1]):
        desk.columns[ALONG, j] = _worth(u, t, j, people.low[i, j], people.high[i, j])
        whole += desk.columns[ALONG, j]
    for side in range(b.sides.shape[0]):
        worth[side] = whole if sided(b, people, i, side, desk) else -np.inf
        for p in range(b.column.size):
            j = b.column[p]
            if b.block[p] < 0:
                # A column of two premises counts once: the first puts its box back.
                lo, hi = desk.columns[LO, j], desk.columns[HI, j]
                desk.columns[LO, j], desk.columns[HI, j] = people.low[i, j], people.high[i, j]
                worth[side] += _worth(u, t, j, lo, hi) - desk.columns[ALONG, j]
    for block in range(b.columns.shape[0]):
        for o in range(b.options[block], b.options[block + 1]):
            at = b.sides.shape[0] + o
            worth[at] = 0.0 if people.allowed[i, o] else -np.inf
            for c in range(b.columns.shape[1]):
                j, x = b.columns[block, c], people.change[i, o, c]
                if j >= 0:
                    worth[at] += _worth(u, t, j, x, x) - desk.columns[ALONG, j]


@inlined
def best_choice(b, worth, choice):  # type: ignore[no-untyped-def]
    """Choose the states that are worth most; return the side that is."""
    sides = b.sides.shape[0]
    for block in range(b.columns.shape[0]):
        choice[block] = b.options[block]
        for o in range(b.options[block], b.options[block + 1]):
            if worth[sides + o] > worth[sides + choice[block]]:
                choice[block] = o
    best = 0
    for side in range(sides):
        best = side if worth[side] > worth[best] else best
    return best


@inlined
def chosen_worth(b, worth, side, choice):  # type: ignore[no-untyped-def]
    """Return what a side and states are worth together."""
    total = worth[side]
    for block in range(b.columns.shape[0]):
        total += worth[b.sides.shape[0] + choice[block]]
    return total


@inlined
def first_choice(b, choice):  # type: ignore[no-untyped-def]
    """Choose the first state of every block: the present one."""
    for block in range(b.columns.shape[0]):
        choice[block] = b.options[block]


@inlined
def next_choice(b, people, i, choice):  # type: ignore[no-untyped-def]
    """Choose the next states; return whether there were any left."""
    for block in range(b.columns.shape[0]):
        for o in range(choice[block] + 1, b.options[block + 1]):
            if people.allowed[i, o]:
                choice[block] = o
                return True
        choice[block] = b.options[block]
    return False


@inlined
def _in_a_state(b, people, i, block, desk):  # type: ignore[no-untyped-def]
    """Return whether the action leads a block to one of its allowed states."""
    for o in range(b.options[block], b.options[block + 1]):
        same = people.allowed[i, o]
        for c in range(b.columns.shape[1]):
            j = b.columns[block, c]
            same &= j < 0 or abs(desk.columns[ACTION, j] - people.change[i, o, c]) <= 1e-9
        if same:
            return True
    return False


@inlined
def _between(b, people, i, p, desk):  # type: ignore[no-untyped-def]
    """Return whether the action leaves a premise's value by less than a whole step."""
    if b.block[p] >= 0 or b.step[p] == 0.0:
        return False
    x, value = desk.columns[ACTION, b.column[p]], people.value[i, p]
    side = _side_of(x - value)
    return side != 0 and side * (x - _edge(value, b.step[p], side)) < -1e-9


@lean
def possible(t, b, people, i, desk):  # type: ignore[no-untyped-def]
    """Return whether the action on the desk lies in some branch."""
    for block in range(b.columns.shape[0]):
        if not _in_a_state(b, people, i, block, desk):
            return False
    for p in range(b.column.size):
        if _between(b, people, i, p, desk):
            return False
    for r in range(t.first.size - 1):
        p, total, size = b.rule[r], people.offset[i, r], 1.0
        if p >= 0 and _side_of(desk.columns[ACTION, b.column[p]] - people.value[i, p]) != 0:
            continue
        for e in range(t.first[r], t.first[r + 1]):
            total += t.entry[e] * desk.columns[ACTION, t.at[e]]
            size += abs(t.entry[e] * desk.columns[ACTION, t.at[e]])
        if total < -TOLERANCE * size:
            return False
    return True
