r"""One branch of a person's possible actions, compiled: a box cut by a few rows of few entries.

At a price u of score the action is the :math:`(u w_j + \sum_r y_r A_{rj})/2q_j` clipped to the box,
the multipliers y of the rows :math:`A\delta + b \ge 0` found by Newton's method on the dual; gain
and cost are then functions of the price alone, straight and quadratic between changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.response._dense_knots import cold_multipliers
from countermove.response.compilation import inlined, jit, lean
from countermove.response.reduction import FINE, INFEASIBLE, NOT_CONVERGED

TOLERANCE = 1e-12
"""Share of its size by which a row may be missed."""
ROUNDING = 1e-13
NEWTON, SWEEP = 32, 4
"""Steps on the multipliers at one price, before the slow but sure way; every fourth is a sweep."""

SLOPE, SQUARE, HALF = range(3)
LO, HI, ACTION, PULL, DRIFT, ALONG = range(6)
Y, SLACK, TURN = range(3)


class SparseRows(NamedTuple):
    """Rule, cost and rows; few arrays, since handing over one costs as much as a column."""

    cost: Floats  # (3, k): slope, price of a column's square, and half of one over that
    first: Index  # (m + 1,) where each row's entries start
    at: Index  # their columns
    entry: Floats
    coupling: Floats  # of bounds and rows, G H⁻¹ Gᵀ with G = (I, -I, A)
    pull: Floats  # G H⁻¹ w


class Desk(NamedTuple):
    """Where one person is worked on."""

    columns: Floats  # (6, k): the branch's box, action, pull, drift if nothing stops it, and dδ/du
    rows: Floats  # (3, m): multipliers, slacks, -dy/du
    on: Mask  # (m,) rows in force
    live: Index  # (m + 1,) the same listed, their number last
    active: Index
    matrix: Floats  # (m, m + 2): of the active rows, their own coupling, the right side
    slow: Floats  # (4, 2k + m + 1), what the slow way works on
    slow_active: Index
    slow_matrix: Floats


@jit
def make_desk(t):  # type: ignore[no-untyped-def]
    """Allocate it."""
    k, m = t.cost.shape[1], t.first.size - 1
    size = 2 * k + m + 1
    return Desk(
        np.zeros((6, k)), np.zeros((3, m)), np.zeros(m, np.bool_),
        np.zeros(m + 1, np.int64), np.zeros(m, np.int64),
        np.zeros((m, m + 2)), np.zeros((4, size)), np.zeros(size, np.int64), np.zeros((size, size)),
    )  # fmt: skip


@inlined
def list_live(desk):  # type: ignore[no-untyped-def]
    """List the rows in force."""
    count = 0
    for r in range(desk.on.size):
        if desk.on[r]:
            desk.live[count] = r
            count += 1
    desk.live[desk.on.size] = count


@inlined
def _pulled(u, t, desk):  # type: ignore[no-untyped-def]
    """Write what price and multipliers pull every column by."""
    for j in range(t.cost.shape[1]):
        desk.columns[PULL, j] = u * t.cost[SLOPE, j]
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        if desk.rows[Y, r] > 0.0:
            for e in range(t.first[r], t.first[r + 1]):
                desk.columns[PULL, t.at[e]] += desk.rows[Y, r] * t.entry[e]


@inlined
def _clip(t, desk):  # type: ignore[no-untyped-def]
    """Write the action that the pull gives."""
    for j in range(t.cost.shape[1]):
        # Rounding off a bound is no way to leave it.
        x, lo, hi = desk.columns[PULL, j], desk.columns[LO, j], desk.columns[HI, j]
        x *= t.cost[HALF, j]
        near = ROUNDING * (1.0 + abs(x))
        desk.columns[ACTION, j] = lo if x <= lo + near else (hi if x >= hi - near else x)


@inlined
def place(u, t, desk):  # type: ignore[no-untyped-def]
    """Write the action at a price and the multipliers as they are."""
    _pulled(u, t, desk)
    _clip(t, desk)


@inlined
def check(t, offset, desk):  # type: ignore[no-untyped-def]
    """Write slacks and active rows; return how many are active and whether all is settled."""
    count, settled = 0, True
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        total, size = offset[r], 1.0 + abs(offset[r])
        for e in range(t.first[r], t.first[r + 1]):
            part = t.entry[e] * desk.columns[ACTION, t.at[e]]
            total += part
            size += abs(part)
        desk.rows[SLACK, r] = total
        short, priced = total < -TOLERANCE * size, desk.rows[Y, r] > 0.0
        settled &= not short and not (priced and total > TOLERANCE * size)
        if short or priced:
            desk.active[count] = r
            count += 1
    return count, settled


@inlined
def _fill(t, count, desk):  # type: ignore[no-untyped-def]
    """Write how the slacks of the active rows follow their multipliers: A_F A_Fᵀ / 2q."""
    for a in range(count):
        r = desk.active[a]
        for c in range(a, count):
            s, total = desk.active[c], 0.0
            for e in range(t.first[r], t.first[r + 1]):
                j = t.at[e]
                if desk.columns[LO, j] < desk.columns[ACTION, j] < desk.columns[HI, j]:
                    for f in range(t.first[s], t.first[s + 1]):
                        if t.at[f] == j:
                            total += t.entry[e] * t.entry[f] * t.cost[HALF, j]
            desk.matrix[a, c] = desk.matrix[c, a] = total


@inlined
def _back(count, column, matrix):  # type: ignore[no-untyped-def]
    """Solve the first rows, which are triangular by now, for a column in place."""
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            matrix[a, column] -= matrix[a, c] * matrix[c, column]
        matrix[a, column] /= matrix[a, a]


@lean
def _eliminate(count, matrix):  # type: ignore[no-untyped-def]
    """Solve in place for the last column; rows that depend on earlier ones get 0.

    Return the first such row, or -1; what of the rows before it makes it up is in the last column
    but one.
    """
    last, own, dependent = matrix.shape[1] - 1, matrix.shape[1] - 2, -1
    for a in range(count):
        matrix[a, own] = matrix[a, a]
    for a in range(count):
        # What is left of a row's coupling with itself, beside what it was before the others.
        if matrix[a, a] <= 1e-11 * matrix[a, own]:
            if dependent < 0:
                dependent = a
                for b in range(a):
                    matrix[b, own] = matrix[b, a]
                _back(a, own, matrix)
            for c in range(count):
                matrix[a, c] = matrix[c, a] = 0.0
            matrix[a, a], matrix[a, last] = 1.0, 0.0
            continue
        for b in range(a + 1, count):
            factor = matrix[b, a] / matrix[a, a]
            if factor != 0.0:
                for c in range(a, count):
                    matrix[b, c] -= factor * matrix[a, c]
                matrix[b, last] -= factor * matrix[a, last]
    _back(count, last, matrix)
    return dependent


@lean
def _act_slowly(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Find the multipliers by the dual active set over bounds and rows; return how that ended."""
    k, m = t.cost.shape[1], t.first.size - 1
    size = 2 * k + m
    h, values, c, z = desk.slow[0, :size], desk.slow[1, :size], desk.slow[2, :size], desk.slow[3]
    for j in range(k):
        h[j], h[k + j] = -desk.columns[LO, j], desk.columns[HI, j]
    for r in range(m):
        h[2 * k + r] = offset[r] if desk.on[r] else np.inf
    active = desk.slow_active
    count = cold_multipliers(u, t.coupling, t.pull, h, active, values, c, desk.slow_matrix, z)
    for r in range(m):
        desk.rows[Y, r] = values[2 * k + r] if count >= 0 else 0.0
    place(u, t, desk)
    for a in range(count):
        if active[a] < k:
            desk.columns[ACTION, active[a]] = desk.columns[LO, active[a]]
        elif active[a] < 2 * k:
            desk.columns[ACTION, active[a] - k] = desk.columns[HI, active[a] - k]
    check(t, offset, desk)
    return FINE if count >= 0 else (INFEASIBLE if count == -1 else NOT_CONVERGED)


@inlined
def _own_multiplier(t, r, offset, desk):  # type: ignore[no-untyped-def]
    """Return the multiplier that meets a row, the others as they are; its own if none does."""
    before, y, first, end = desk.rows[Y, r], 0.0, t.first[r], t.first[r + 1]
    for _ in range(2 * (end - first) + 3):
        total, rate, ahead = offset, 0.0, np.inf
        for e in range(first, end):
            j, a = t.at[e], t.entry[e]
            lo, hi, pace = desk.columns[LO, j], desk.columns[HI, j], a * t.cost[HALF, j]
            x = (desk.columns[PULL, j] + (y - before) * a) * t.cost[HALF, j]
            total += a * min(max(x, lo), hi)
            near, far = (lo, hi) if a > 0.0 else (hi, lo)
            if (far - x) * a > 0.0 and lo < hi:
                inside = (x - near) * a >= 0.0
                rate += a * pace if inside else 0.0
                ahead = min(ahead, ((far if inside else near) - x) / pace)
        if total >= 0.0:
            return y
        if rate > 0.0 and -total <= rate * ahead:
            return y - total / rate
        if ahead == np.inf:
            return before
        y += ahead
    return y


@lean
def _sweep(t, offset, desk):  # type: ignore[no-untyped-def]
    """Meet one row after the other by its own multiplier."""
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        y = _own_multiplier(t, r, offset[r], desk)
        for e in range(t.first[r], t.first[r + 1]):
            desk.columns[PULL, t.at[e]] += (y - desk.rows[Y, r]) * t.entry[e]
        desk.rows[Y, r] = y


@inlined
def _further(t, offset, desk):  # type: ignore[no-untyped-def]
    """Return how far the dual falls along a way of multipliers (TURN) and their pulls (DRIFT)."""
    most, at = np.inf, 0.0
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        if desk.rows[TURN, r] < 0.0:
            most = min(most, -desk.rows[Y, r] / desk.rows[TURN, r])
    for _ in range(2 * t.cost.shape[1] + 1):
        fall, size, bend, ahead = 0.0, 0.0, 0.0, most - at
        for one in range(desk.live[desk.on.size]):
            r = desk.live[one]
            fall -= desk.rows[TURN, r] * offset[r]
            size += abs(desk.rows[TURN, r] * offset[r])
        for j in range(t.cost.shape[1]):
            pace = desk.columns[DRIFT, j] * t.cost[HALF, j]
            x = desk.columns[PULL, j] * t.cost[HALF, j] + at * pace
            lo, hi = desk.columns[LO, j], desk.columns[HI, j]
            fall -= desk.columns[DRIFT, j] * min(max(x, lo), hi)
            size += abs(desk.columns[DRIFT, j] * min(max(x, lo), hi))
            near, far = (lo, hi) if pace > 0.0 else (hi, lo)
            if (far - x) * pace > 0.0 and lo < hi:
                inside = (x - near) * pace >= 0.0
                bend += desk.columns[DRIFT, j] * pace if inside else 0.0
                ahead = min(ahead, ((far if inside else near) - x) / pace)
        if fall <= ROUNDING * size or ahead <= 0.0:
            break
        if fall < bend * ahead:
            return at + fall / bend
        if ahead == np.inf:
            break
        at += ahead
    return at


@inlined
def _step(t, count, desk):  # type: ignore[no-untyped-def]
    """Change the multipliers of the active rows by what was solved for."""
    last = desk.matrix.shape[1] - 1
    for a in range(count):
        r = desk.active[a]
        more = max(desk.matrix[a, last], -desk.rows[Y, r])
        desk.rows[Y, r] += more
        for e in range(t.first[r], t.first[r + 1]):
            desk.columns[PULL, t.at[e]] += more * t.entry[e]


@lean
def _give_way(dependent, t, offset, desk):  # type: ignore[no-untyped-def]
    """Let a row and those it depends on give way to each other; return whether any does."""
    # Nothing that is free feels it if their multipliers change together, so Newton's steps do not
    # see it: they change until a multiplier is gone or a bound lets go.
    own, slope = desk.matrix.shape[1] - 2, desk.rows[SLACK, desk.active[dependent]]
    for a in range(dependent):
        slope -= desk.matrix[a, own] * desk.rows[SLACK, desk.active[a]]
    for one in range(desk.live[desk.on.size]):
        desk.rows[TURN, desk.live[one]] = 0.0
    for j in range(t.cost.shape[1]):
        desk.columns[DRIFT, j] = 0.0
    for a in range(dependent + 1):
        r = desk.active[a]
        desk.rows[TURN, r] = -1.0 if a == dependent else desk.matrix[a, own]
        if slope < 0.0:
            desk.rows[TURN, r] = -desk.rows[TURN, r]
        for e in range(t.first[r], t.first[r + 1]):
            desk.columns[DRIFT, t.at[e]] += desk.rows[TURN, r] * t.entry[e]
    way = _further(t, offset, desk)
    for a in range(dependent + 1):
        r = desk.active[a]
        desk.rows[Y, r] = max(desk.rows[Y, r] + way * desk.rows[TURN, r], 0.0)
    for j in range(t.cost.shape[1]):
        desk.columns[PULL, j] += way * desk.columns[DRIFT, j]
    return way > 0.0


@lean
def act(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Write the action at price ``u``, from the multipliers it finds; return how that ended."""
    last = desk.matrix.shape[1] - 1
    for turn in range(2 * NEWTON):
        if turn % NEWTON == 0:
            if turn > 0:
                # What was foreseen may be far off where a feature of little weight has its price.
                for r in range(desk.on.size):
                    desk.rows[Y, r] = 0.0
            # Later added to, not summed again: at such a price pulls are small differences of
            # large multipliers, whose rounding would move people off their rows.
            _pulled(u, t, desk)
        _clip(t, desk)
        count, settled = check(t, offset, desk)
        if settled:
            return FINE
        swept = turn % SWEEP == SWEEP - 1
        if not swept:
            _fill(t, count, desk)
            for a in range(count):
                desk.matrix[a, last] = -desk.rows[SLACK, desk.active[a]]
            dependent = _eliminate(count, desk.matrix)
            if dependent >= 0 and _give_way(dependent, t, offset, desk):
                continue
            swept = dependent >= 0
            _step(t, count, desk)
        if swept:
            # Steps that go round in circles, or rows that nothing gives way to yet.
            _sweep(t, offset, desk)
    return _act_slowly(u, t, offset, desk)


@lean
def tangent(vector, t, desk):  # type: ignore[no-untyped-def]
    """Write what a pull along ``vector`` moves, and the multipliers that hold it back."""
    count, last = 0, desk.matrix.shape[1] - 1
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        desk.rows[TURN, r] = 0.0
        if desk.rows[Y, r] > 0.0:
            desk.active[count] = r
            count += 1
    _fill(t, count, desk)
    for a in range(count):
        r, total = desk.active[a], 0.0
        for e in range(t.first[r], t.first[r + 1]):
            j = t.at[e]
            if desk.columns[LO, j] < desk.columns[ACTION, j] < desk.columns[HI, j]:
                total += t.entry[e] * vector[j] * t.cost[HALF, j]
        desk.matrix[a, last] = total
    _eliminate(count, desk.matrix)
    for j in range(vector.size):
        desk.columns[DRIFT, j] = vector[j]
    for a in range(count):
        r = desk.active[a]
        desk.rows[TURN, r] = desk.matrix[a, last]
        for e in range(t.first[r], t.first[r + 1]):
            desk.columns[DRIFT, t.at[e]] -= desk.rows[TURN, r] * t.entry[e]
    for j in range(vector.size):
        desk.columns[DRIFT, j] *= t.cost[HALF, j]
        free = desk.columns[LO, j] < desk.columns[ACTION, j] < desk.columns[HI, j]
        desk.columns[ALONG, j] = desk.columns[DRIFT, j] if free else 0.0


@inlined
def totals(t, desk):  # type: ignore[no-untyped-def]
    """Return gain and cost of the action."""
    gain, cost = 0.0, 0.0
    for j in range(t.cost.shape[1]):
        gain += t.cost[SLOPE, j] * desk.columns[ACTION, j]
        cost += t.cost[SQUARE, j] * desk.columns[ACTION, j] * desk.columns[ACTION, j]
    return gain, cost


@inlined
def rate_of(t, desk):  # type: ignore[no-untyped-def]
    """Return by how much the gain follows the price; the tangent is on the desk then."""
    tangent(t.cost[SLOPE], t, desk)
    rate = 0.0
    for j in range(t.cost.shape[1]):
        rate += t.cost[SLOPE, j] * desk.columns[ALONG, j]
    return rate
