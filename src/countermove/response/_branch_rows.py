r"""The branches of possible people, compiled: the best action of all of them.

In a branch histories are settled and it is known on which side of every premise a person is, hence
which rows are in force. The plain answer comes first: where it is possible it is the answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.people.feasible import APART
from countermove.response._compile import jit
from countermove.response._relation_rows import (
    ACTION,
    ALONG,
    CROSS,
    HI,
    LO,
    REACH,
    SLOPE,
    SQUARE,
    TOLERANCE,
    Y,
    act,
    judged,
    make_desk,
    part,
    peak_of,
    refine,
    settle,
    tangent,
    totals,
)


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


class BranchFound(NamedTuple):
    """The best action of everybody and its branch."""

    action: Floats  # (n, k)
    lo: Floats
    hi: Floats
    held: Mask  # (n, m) rows that hold the action back
    price: Floats  # (n,) infinite where nothing more can be had at any
    gain: Floats
    cost: Floats
    found: Mask  # whether there is one
    converged: Mask


@part
def whole_box(people, i, desk):  # type: ignore[no-untyped-def]
    """Put everything that any branch allows on the desk, rows aside."""
    for j in range(desk.columns.shape[1]):
        desk.columns[LO, j], desk.columns[HI, j] = people.low[i, j], people.high[i, j]
    for r in range(desk.rows.shape[1]):
        desk.on[r], desk.rows[Y, r] = False, 0.0


@part
def _side_of(away):  # type: ignore[no-untyped-def]
    """Return on which side of a premise's value a column stands."""
    return 0 if abs(away) <= APART else (1 if away > 0.0 else -1)


@part
def _listed(b, people, i, p, choice):  # type: ignore[no-untyped-def]
    """Return on which side of a premise the state of its block is."""
    block = b.block[p]
    for c in range(b.columns.shape[1]):
        if b.columns[block, c] == b.column[p]:
            return _side_of(people.change[i, choice[block], c] - people.value[i, p])
    return 1


@part
def _edge(value, step, side):  # type: ignore[no-untyped-def]
    """Return the first action beyond a premise's value."""
    if step == 0.0:
        return value + side * APART
    steps = value / step
    if side < 0:
        return (math.ceil(steps - APART) - 1.0) * step
    return (math.floor(steps + APART) + 1.0) * step


@jit
def _sided(b, people, i, side, desk):  # type: ignore[no-untyped-def]
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


@jit
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
    if not _sided(b, people, i, side, desk):
        return False
    for r in range(t.first.size - 1):
        p = b.rule[r]
        desk.on[r] = (
            p < 0
            or (_listed(b, people, i, p, choice) if b.block[p] >= 0 else b.sides[side, p]) == 0
        )
    return _tighten(t, people.offset[i], desk)


@jit
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


@jit
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


@part
def first_choice(b, choice):  # type: ignore[no-untyped-def]
    """Choose the first state of every block: the present one."""
    for block in range(b.columns.shape[0]):
        choice[block] = b.options[block]


@part
def next_choice(b, people, i, choice):  # type: ignore[no-untyped-def]
    """Choose the next states; return whether there were any left."""
    for block in range(b.columns.shape[0]):
        for o in range(choice[block] + 1, b.options[block + 1]):
            if people.allowed[i, o]:
                choice[block] = o
                return True
        choice[block] = b.options[block]
    return False


@part
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


@part
def _between(b, people, i, p, desk):  # type: ignore[no-untyped-def]
    """Return whether the action leaves a premise's value by less than a whole step."""
    if b.block[p] >= 0 or b.step[p] == 0.0:
        return False
    x, value = desk.columns[ACTION, b.column[p]], people.value[i, p]
    side = _side_of(x - value)
    return side != 0 and side * (x - _edge(value, b.step[p], side)) < -1e-9


@jit
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


@jit
def keep(i, u, desk, found, t):  # type: ignore[no-untyped-def]
    """Write down what is on the desk as person ``i``'s best action."""
    found.gain[i], found.cost[i] = totals(t, desk)
    found.price[i], found.found[i] = u, True
    for j in range(desk.columns.shape[1]):
        found.action[i, j], found.lo[i, j], found.hi[i, j] = (
            desk.columns[ACTION, j],
            desk.columns[LO, j],
            desk.columns[HI, j],
        )
    for r in range(desk.rows.shape[1]):
        found.held[i, r] = desk.on[r] and desk.rows[Y, r] > 0.0


@jit
def best_of(kind, target, room, limit, i, t, b, people, choice, desk, found):  # type: ignore[no-untyped-def]
    """Write person ``i``'s best action of all branches, if it is below the limit."""
    steep = 0.0
    for j in range(t.cost.shape[1]):
        one = t.cost[SLOPE, j]
        gains = people.high[i, j] > 0.0 if one > 0.0 else people.low[i, j] < 0.0
        steep += one * one / (2.0 * t.cost[SQUARE, j]) if gains else 0.0
    found.converged[i] = True
    if steep == 0.0:
        return
    start = target / steep if kind == CROSS else math.sqrt(2.0 * target / steep)
    offset = people.offset[i]
    whole_box(people, i, desk)
    value, u, ok = settle(kind, target, room, limit, start, steep, t, offset, desk)
    found.converged[i] = ok
    if value == np.inf:
        return
    if possible(t, b, people, i, desk):
        keep(i, u, desk, found, t)
        return
    start = min(u, 8.0 * start)
    first_choice(b, choice)
    more = True
    while more:
        narrow(t, b, people, i, -1, choice, desk)
        if _worth_it(kind, target, limit, start, t, offset, desk):
            for side in range(b.sides.shape[0]):
                if narrow(t, b, people, i, side, choice, desk):
                    value, u, ok = settle(kind, target, room, limit, start, steep, t, offset, desk)
                    found.converged[i] &= ok
                    if value < limit:
                        limit = value
                        keep(i, u, desk, found, t)
        more = next_choice(b, people, i, choice)


@part
def _worth_it(kind, target, limit, u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return whether the box on the desk, without rows, may hold anything below the limit."""
    act(u, t, offset, desk)
    gain, cost = totals(t, desk)
    return judged(kind, target, u, gain, cost)[2] < limit


@jit
def reach_branches(t, b, people, budget, found):  # type: ignore[no-untyped-def]
    """Write everybody's action of the most gain within their budget."""
    desk, choice = make_desk(t), np.zeros(b.columns.shape[0], np.int64)
    for i in range(people.low.shape[0]):
        spend = budget[i % budget.shape[0]]
        best_of(REACH, spend, 1e-14 * spend, 0.0, i, t, b, people, choice, desk, found)


@jit
def cross_branches(t, b, people, need, room, gains, who, found):  # type: ignore[no-untyped-def]
    """Write the cheapest action with the gain that each of ``who`` needs, if below their gains."""
    desk, choice = make_desk(t), np.zeros(b.columns.shape[0], np.int64)
    for i in who:
        most = gains[i % gains.shape[0]]
        best_of(CROSS, need[i], room[i], most, i, t, b, people, choice, desk, found)


@jit
def _home(t, b, people, i, choice, desk):  # type: ignore[no-untyped-def]
    """Put the branch that a person stands in on the desk; return its side of the premises."""
    first_choice(b, choice)
    for side in range(b.sides.shape[0]):
        stays = narrow(t, b, people, i, side, choice, desk)
        for j in range(t.cost.shape[1]):
            stays = stays and desk.columns[LO, j] <= 0.0 <= desk.columns[HI, j]
        if stays:
            return side
    return -1


@jit
def _highest(smooth, steep, i, t, b, people, choice, kept, desk, line, found):  # type: ignore[no-untyped-def]
    """Return side and price of the highest point of all branches, its states in ``kept``."""
    offset, best, u, at, more = people.offset[i], -np.inf, 0.0, -1, True
    first_choice(b, choice)
    while more:
        narrow(t, b, people, i, -1, choice, desk)
        value, _, _ = peak_of(smooth, False, steep, t, offset, desk, line)
        for side in range(b.sides.shape[0] if value > best else 0):
            if narrow(t, b, people, i, side, choice, desk):
                value, price, ok = peak_of(smooth, False, steep, t, offset, desk, line)
                found.converged[i] &= ok
                if value > best:
                    best, u, at = value, price, side
                    kept[:] = choice
        more = next_choice(b, people, i, choice)
    return at, u


@jit
def smooth_branches(t, b, people, scores, sharpness, first, factors, found):  # type: ignore[no-untyped-def]
    """Write where everybody's smoothed step is best; with ``first``, the first point at home."""
    desk, choice, steep = make_desk(t), np.zeros(b.columns.shape[0], np.int64), 0.0
    kept, line = choice.copy(), np.empty((3, 8 * t.cost.shape[1] + 64))
    for j in range(t.cost.shape[1]):
        steep += t.cost[SLOPE, j] * t.cost[SLOPE, j] / (2.0 * t.cost[SQUARE, j])
    for i in range(people.low.shape[0]):
        offset, smooth = people.offset[i], (scores[i], sharpness, factors[i % factors.shape[0]])
        if first:
            at = _home(t, b, people, i, kept, desk)
            _, u, found.converged[i] = peak_of(smooth, True, steep, t, offset, desk, line)
        else:
            whole_box(people, i, desk)
            _, u, ok = peak_of(smooth, False, steep, t, offset, desk, line)
            u = refine(u, smooth, t, offset, desk)
            if ok and possible(t, b, people, i, desk):
                keep(i, u, desk, found, t)
                continue
            at, u = _highest(smooth, steep, i, t, b, people, choice, kept, desk, line, found)
        narrow(t, b, people, i, at, kept, desk)
        keep(i, refine(u, smooth, t, offset, desk), desk, found, t)


@jit
def branch_tangents(t, found, vectors, moved):  # type: ignore[no-untyped-def]
    """Write how everybody's action follows one pull each, bounds and rows that hold it kept."""
    desk = make_desk(t)
    for i in range(vectors.shape[0]):
        desk.columns[LO], desk.columns[HI], desk.columns[ACTION] = (
            found.lo[i],
            found.hi[i],
            found.action[i],
        )
        desk.on[:] = found.held[i]
        for r in range(t.first.size - 1):
            desk.rows[Y, r] = 1.0 if found.held[i, r] else 0.0
        tangent(vectors[i], t, desk)
        moved[i] = desk.columns[ALONG]


@jit
def held_directions(A, free, held, price, kept):  # type: ignore[no-untyped-def]
    """Write f with Σ f fᵀ = V (A_F V)⁻¹ Vᵀ, V = A_Fᵀ / q, over the rows that hold everybody."""
    for i in range(held.shape[0]):
        count = 0
        for r in range(held.shape[1]):
            if not held[i, r]:
                continue
            whole, rest = 0.0, 0.0
            for j in range(price.size):
                kept[i, count, j] = A[r, j] / price[j] if free[i, j] else 0.0
                whole += price[j] * kept[i, count, j] ** 2
            for before in range(count):
                along = 0.0
                for j in range(price.size):
                    along += price[j] * kept[i, before, j] * kept[i, count, j]
                for j in range(price.size):
                    kept[i, count, j] -= along * kept[i, before, j]
            for j in range(price.size):
                rest += price[j] * kept[i, count, j] ** 2
            if rest <= 1e-12 * whole or whole == 0.0:
                kept[i, count] = 0.0
                continue
            kept[i, count] /= math.sqrt(rest)
            count += 1
