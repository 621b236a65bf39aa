r"""One branch of a person's possible actions, compiled: a box cut by a few rows of few entries.

At a price u of score the action is the :math:`(u w_j + \sum_r y_r A_{rj})/2q_j` clipped to the box,
the multipliers y of the rows :math:`A\delta + b \ge 0` found by Newton's method on the dual; gain
and cost are then functions of the price alone, straight and quadratic between changes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.response._compile import jit
from countermove.response._dense_knots import cold_multipliers
from countermove.response._knots import CREEP, MATCH
from countermove.response._polyline import HIGHEST_RISE, peak
from countermove.response.reduction import FINE, INFEASIBLE, NOT_CONVERGED
from countermove.response.step import rise_and_bend


def part(function: Any) -> Any:
    """Compile a small part of a kernel into the kernel itself."""
    return numba.njit(error_model="numpy", nogil=True, forceinline=True)(function)


REACH, CROSS = 0, 1
"""The most score for a budget, or the least cost of a gain."""
TOLERANCE = 1e-12
"""Share of its size by which a row may be missed."""
ROUNDING = 1e-13
NEWTON, TURNS = 12, 80
"""Steps on the multipliers at one price, before the slow but sure way; and prices tried."""

SLOPE, SQUARE = 0, 1
LO, HI, ACTION, PULL, DRIFT, ALONG = range(6)
Y, SLACK, TURN = range(3)


class SparseRows(NamedTuple):
    """Rule, cost and rows; few arrays, since handing over one costs as much as a column."""

    cost: Floats  # (2, k): slope, and price of a column's square
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
    active: Index
    matrix: Floats  # (m, m + 1)


@jit
def make_desk(t):  # type: ignore[no-untyped-def]
    """Allocate it."""
    k, m = t.cost.shape[1], t.first.size - 1
    return Desk(
        np.zeros((6, k)), np.zeros((3, m)), np.zeros(m, np.bool_), np.zeros(m, np.int64),
        np.zeros((m, m + 1)),
    )  # fmt: skip


@part
def _place(u, t, desk):  # type: ignore[no-untyped-def]
    """Write the action at a price and the multipliers as they are."""
    for j in range(t.cost.shape[1]):
        desk.columns[PULL, j] = u * t.cost[SLOPE, j]
    for r in range(t.first.size - 1):
        if desk.rows[Y, r] > 0.0:
            for e in range(t.first[r], t.first[r + 1]):
                desk.columns[PULL, t.at[e]] += desk.rows[Y, r] * t.entry[e]
    for j in range(t.cost.shape[1]):
        # Rounding off a bound is no way to leave it.
        x, lo, hi = desk.columns[PULL, j], desk.columns[LO, j], desk.columns[HI, j]
        x /= 2.0 * t.cost[SQUARE, j]
        near = ROUNDING * (1.0 + abs(x))
        desk.columns[ACTION, j] = lo if x <= lo + near else (hi if x >= hi - near else x)


@part
def _check(t, offset, desk):  # type: ignore[no-untyped-def]
    """Write slacks and active rows; return how many are active and whether all is settled."""
    count, settled = 0, True
    for r in range(t.first.size - 1):
        if not desk.on[r]:
            continue
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


@part
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
                            total += t.entry[e] * t.entry[f] / (2.0 * t.cost[SQUARE, j])
            desk.matrix[a, c] = desk.matrix[c, a] = total


@jit
def _eliminate(count, matrix):  # type: ignore[no-untyped-def]
    """Solve in place for the last column; rows that add nothing get 0. Return whether none does."""
    last, whole = matrix.shape[1] - 1, True
    for a in range(count):
        size = 1e-300
        for c in range(count):
            size = max(size, abs(matrix[a, c]))
        if matrix[a, a] <= 1e-11 * size or size <= 1e-290:
            whole = False
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
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            matrix[a, last] -= matrix[a, c] * matrix[c, last]
        matrix[a, last] /= matrix[a, a]
    return whole


@jit
def _act_slowly(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Find the multipliers by the dual active set over bounds and rows; return how that ended."""
    k, m = t.cost.shape[1], t.first.size - 1
    size = 2 * k + m
    h, values, c, z = np.empty(size), np.empty(size), np.empty(size), np.empty(size + 1)
    for j in range(k):
        h[j], h[k + j] = -desk.columns[LO, j], desk.columns[HI, j]
    for r in range(m):
        h[2 * k + r] = offset[r] if desk.on[r] else np.inf
    active, L = np.empty(size + 1, np.int64), np.empty((size + 1, size + 1))
    count = cold_multipliers(u, t.coupling, t.pull, h, active, values, c, L, z)
    for r in range(m):
        desk.rows[Y, r] = values[2 * k + r] if count >= 0 else 0.0
    _place(u, t, desk)
    for a in range(count):
        if active[a] < k:
            desk.columns[ACTION, active[a]] = desk.columns[LO, active[a]]
        elif active[a] < 2 * k:
            desk.columns[ACTION, active[a] - k] = desk.columns[HI, active[a] - k]
    _check(t, offset, desk)
    return FINE if count >= 0 else (INFEASIBLE if count == -1 else NOT_CONVERGED)


@jit
def act(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Write the action at price ``u``, from the multipliers it finds; return how that ended."""
    last = desk.matrix.shape[1] - 1
    for _ in range(NEWTON):
        _place(u, t, desk)
        count, settled = _check(t, offset, desk)
        if settled:
            return FINE
        _fill(t, count, desk)
        for a in range(count):
            desk.matrix[a, last] = -desk.rows[SLACK, desk.active[a]]
        if not _eliminate(count, desk.matrix):
            break
        for a in range(count):
            r = desk.active[a]
            desk.rows[Y, r] = max(0.0, desk.rows[Y, r] + desk.matrix[a, last])
    # Steps that go round in circles, or rows that depend on each other.
    return _act_slowly(u, t, offset, desk)


@jit
def tangent(vector, t, desk):  # type: ignore[no-untyped-def]
    """Write what a pull along ``vector`` moves, and the multipliers that hold it back."""
    count, last = 0, desk.matrix.shape[1] - 1
    for r in range(t.first.size - 1):
        desk.rows[TURN, r] = 0.0
        if desk.on[r] and desk.rows[Y, r] > 0.0:
            desk.active[count] = r
            count += 1
    _fill(t, count, desk)
    for a in range(count):
        r, total = desk.active[a], 0.0
        for e in range(t.first[r], t.first[r + 1]):
            j = t.at[e]
            if desk.columns[LO, j] < desk.columns[ACTION, j] < desk.columns[HI, j]:
                total += t.entry[e] * vector[j] / (2.0 * t.cost[SQUARE, j])
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
        desk.columns[DRIFT, j] /= 2.0 * t.cost[SQUARE, j]
        free = desk.columns[LO, j] < desk.columns[ACTION, j] < desk.columns[HI, j]
        desk.columns[ALONG, j] = desk.columns[DRIFT, j] if free else 0.0


@part
def _until_rows(t, desk):  # type: ignore[no-untyped-def]
    """Return the same for rows alone."""
    wait = np.inf
    for r in range(t.first.size - 1):
        if not desk.on[r]:
            continue
        if desk.rows[Y, r] > 0.0:
            if desk.rows[TURN, r] > 0.0:
                wait = min(wait, desk.rows[Y, r] / desk.rows[TURN, r])
            continue
        pace = 0.0
        for e in range(t.first[r], t.first[r + 1]):
            pace += t.entry[e] * desk.columns[ALONG, t.at[e]]
        if pace < 0.0 and desk.rows[SLACK, r] > 0.0:
            wait = min(wait, -desk.rows[SLACK, r] / pace)
    return wait


@jit
def until_change(t, desk):  # type: ignore[no-untyped-def]
    """Return by how much the price may rise until a bound or a row comes or goes."""
    wait = np.inf
    for j in range(t.cost.shape[1]):
        pace, x = desk.columns[DRIFT, j], desk.columns[PULL, j] / (2.0 * t.cost[SQUARE, j])
        if pace == 0.0 or desk.columns[LO, j] == desk.columns[HI, j]:
            continue
        for edge in (desk.columns[LO, j], desk.columns[HI, j]):
            ahead = (edge - x) / pace
            if ahead > 0.0:
                wait = min(wait, ahead)
    return min(wait, _until_rows(t, desk))


@part
def totals(t, desk):  # type: ignore[no-untyped-def]
    """Return gain and cost of the action."""
    gain, cost = 0.0, 0.0
    for j in range(t.cost.shape[1]):
        gain += t.cost[SLOPE, j] * desk.columns[ACTION, j]
        cost += t.cost[SQUARE, j] * desk.columns[ACTION, j] * desk.columns[ACTION, j]
    return gain, cost


@part
def rate_of(t, desk):  # type: ignore[no-untyped-def]
    """Return by how much the gain follows the price; the tangent is on the desk then."""
    tangent(t.cost[SLOPE], t, desk)
    rate = 0.0
    for j in range(t.cost.shape[1]):
        rate += t.cost[SLOPE, j] * desk.columns[ALONG, j]
    return rate


@jit
def _ceiling(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return more gain than any action of the branch has, by multipliers of the price alone."""
    # Those on the desk over the price, corrected so that nothing that is free is worth anything.
    tangent(desk.columns[PULL], t, desk)
    most, largest = 0.0, 0.0
    for j in range(t.cost.shape[1]):
        desk.columns[DRIFT, j] = t.cost[SLOPE, j]
        largest = max(largest, abs(t.cost[SLOPE, j]))
    for r in range(t.first.size - 1):
        if desk.on[r] and desk.rows[Y, r] > 0.0:
            weight = (desk.rows[Y, r] - desk.rows[TURN, r]) / u
            if weight < -ROUNDING * largest:
                return np.inf
            most += weight * offset[r]
            for e in range(t.first[r], t.first[r + 1]):
                desk.columns[DRIFT, t.at[e]] += weight * t.entry[e]
    for j in range(t.cost.shape[1]):
        worth = desk.columns[DRIFT, j]
        if abs(worth) > ROUNDING * largest:
            most += max(worth * desk.columns[LO, j], worth * desk.columns[HI, j])
    return most


@part
def _ahead(kind, target, u, gain, cost, rate, low, high):  # type: ignore[no-untyped-def]
    """Return the next price to try: exact where no bound or row comes or goes in between."""
    if kind == CROSS:
        ahead = u + (target - gain) / rate
    else:
        square = u * u + 2.0 * (target - cost) / rate
        ahead = math.sqrt(square) if square > 0.0 else -1.0
    if max(low, 0.0) < ahead < high:
        return ahead
    return _lower(kind, low, high)


@part
def _lower(kind, low, high):  # type: ignore[no-untyped-def]
    """Return a price inside the bracket, or zero: the action there may gain too much as it is."""
    return 0.0 if low < 0.0 and kind == CROSS else 0.5 * (max(low, 0.0) + high)


@part
def _foresee(rise, t, desk):  # type: ignore[no-untyped-def]
    """Let the multipliers follow the price as they do here."""
    for r in range(t.first.size - 1):
        if desk.rows[Y, r] > 0.0:
            desk.rows[Y, r] = max(desk.rows[Y, r] - desk.rows[TURN, r] * rise, 0.0)


@part
def judged(kind, target, u, gain, cost):  # type: ignore[no-untyped-def]
    """Return the value to be least, what the target is missed by, and the dual's lower bound."""
    if kind == CROSS:
        return cost, target - gain, cost + u * (target - gain)
    return -gain, target - cost, -(gain + (target - cost) / u)


@jit
def settle(kind, target, room, limit, u, steep, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return value, price and whether it converged in one branch; infinite: not below ``limit``."""
    # Least of the cost (CROSS), or of minus the gain (REACH). At any price the dual bounds it.
    low, high, value, aim = -1.0, np.inf, np.inf, target
    for _ in range(TURNS):
        ended = act(u, t, offset, desk)
        if ended != FINE:
            return np.inf, u, ended == INFEASIBLE
        gain, cost = totals(t, desk)
        value, miss, bound = judged(kind, target, u, gain, cost)
        if bound >= limit:
            return np.inf, u, True
        if -room <= miss <= 0.5 * room or (miss < 0.0 and u == 0.0):
            return value, u, True
        low, high = (u, high) if miss > 0.0 else (low, u)
        rate = rate_of(t, desk)
        if rate <= 1e-13 * steep:
            # Nothing more is gained until something gives way; if nothing ever does, never.
            if miss > 0.0 and _ceiling(u, t, offset, desk) <= gain + 1e-11 * (1.0 + abs(gain)):
                return (np.inf if kind == CROSS else value), np.inf, True
            ahead = 8.0 * u + 1e-12 if miss > 0.0 else np.inf
            ahead = ahead if ahead < high else _lower(kind, low, high)
        else:
            ahead = _ahead(kind, aim, u, gain, cost, rate, low, high)
        if abs(ahead - u) <= 4e-16 * u:
            # As near as prices tell apart: aim further by what rounding takes.
            if kind == REACH or abs(miss) <= room:
                break
            aim, low, high, ahead = aim + miss, -1.0, np.inf, u * (1.0 + 1e-15)
        _foresee(ahead - u, t, desk)
        u = ahead
    return value, u, abs(miss) <= 1e-9 * (1.0 + abs(target))


@jit
def _trace(cap, steep, t, offset, desk, line):  # type: ignore[no-untyped-def]
    """Write the trade-off of gain, price and cost in a branch; return its knots and last rate."""
    G, U, V = line[0], line[1], line[2]
    ended = act(0.0, t, offset, desk)
    if ended != FINE:
        return 0, 0.0, ended == INFEASIBLE
    G[0], V[0] = totals(t, desk)
    U[0], count, stride = 0.0, 1, 0.0
    while count < G.size:
        u = U[count - 1]
        inside = u * (1.0 + CREEP) + CREEP * cap
        if act(inside, t, offset, desk) != FINE:
            return count, 0.0, False
        gain, rate = totals(t, desk)[0], rate_of(t, desk)
        rate = rate if rate > 1e-13 * steep else 0.0
        ceiling = np.inf
        if rate == 0.0:
            ceiling = _ceiling(inside, t, offset, desk)
            rate_of(t, desk)
        end = inside + until_change(t, desk)
        if u >= cap or end == np.inf or ceiling <= gain + 1e-11 * (1.0 + abs(gain)):
            return count, rate, True
        # At a corner that several bounds and rows hold, changes may come to nothing: stride on.
        end = max(end, inside + stride)
        reached, stride = gain, 8.0 * stride + CREEP * cap
        for _ in range(60):
            if act(end, t, offset, desk) != FINE:
                return count, 0.0, False
            reached, V[count] = totals(t, desk)
            off = abs(reached - gain - rate * (end - inside))
            if off <= MATCH * (abs(reached - gain) + abs(gain)) + 1e-14:
                break
            end, stride = 0.5 * (inside + end), 0.0
        G[count], U[count] = max(reached, G[count - 1]), end
        count += 1
    return count, 0.0, False


@jit
def peak_of(smooth, first, steep, t, offset, desk, line):  # type: ignore[no-untyped-def]
    """Return value and price of the smoothed step's best point in the branch on the desk."""
    (s, sharpness, factor), G, U, V = smooth, line[0], line[1], line[2]
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9) / factor
    count, rate, ok = _trace(cap, steep, t, offset, desk, line)
    if count == 0:
        return -np.inf, 0.0, ok
    for k in range(count):
        U[k], V[k] = factor * U[k], factor * V[k]
    _, price, value, found = peak(G, U, V, count, rate / factor, s, sharpness, first)
    return value, price / factor, ok and found


@jit
def refine(u, smooth, t, offset, desk):  # type: ignore[no-untyped-def]
    """Put the action at a price on the desk, the price improved by Newton's steps on itself."""
    s, sharpness, factor = smooth
    act(u, t, offset, desk)
    for _ in range(4):
        risen, bent = rise_and_bend(sharpness * (s + totals(t, desk)[0]))
        error = sharpness * risen / factor - u
        rate = rate_of(t, desk)
        slope = sharpness * sharpness * bent / factor * rate - 1.0
        if abs(error) <= 1e-15 * u or slope >= 0.0:
            break
        ahead = u - error / slope
        act(ahead, t, offset, desk)
        risen = rise_and_bend(sharpness * (s + totals(t, desk)[0]))[0]
        if not abs(sharpness * risen / factor - ahead) < abs(error):
            act(u, t, offset, desk)
            break
        u = ahead
    return u
