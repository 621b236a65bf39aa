"""The best price of score in one branch, compiled: of a budget, a gain, the smoothed step."""

from __future__ import annotations

import math

import numpy as np

from countermove.response._knots import CREEP, MATCH
from countermove.response._polyline import HIGHEST_RISE, peak
from countermove.response._relation_rows import (
    ALONG,
    DRIFT,
    HALF,
    HI,
    LO,
    PULL,
    ROUNDING,
    SLACK,
    SLOPE,
    TURN,
    Y,
    act,
    check,
    place,
    rate_of,
    tangent,
    totals,
)
from countermove.response.compilation import inlined, lean
from countermove.response.reduction import FINE, INFEASIBLE, NOT_CONVERGED
from countermove.response.step import rise_and_bend

REACH, CROSS = 0, 1
"""The most score for a budget, or the least cost of a gain."""
TURNS = 80
"""Prices tried in a branch."""
EXHAUSTED = 9
"""How a search ended that found nothing more to be had at any price."""


@inlined
def _until_rows(t, desk):  # type: ignore[no-untyped-def]
    """Return the same for rows alone."""
    wait = np.inf
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
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


@lean
def until_change(t, desk):  # type: ignore[no-untyped-def]
    """Return by how much the price may rise until a bound or a row comes or goes."""
    wait = np.inf
    for j in range(t.cost.shape[1]):
        pace, x = desk.columns[DRIFT, j], desk.columns[PULL, j] * t.cost[HALF, j]
        if pace == 0.0 or desk.columns[LO, j] == desk.columns[HI, j]:
            continue
        for edge in (desk.columns[LO, j], desk.columns[HI, j]):
            ahead = (edge - x) / pace
            if ahead > 0.0:
                wait = min(wait, ahead)
    return min(wait, _until_rows(t, desk))


@lean
def _ceiling(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return more gain than any action of the branch has, by multipliers of the price alone."""
    # Those on the desk over the price, corrected so that nothing that is free is worth anything.
    tangent(desk.columns[PULL], t, desk)
    most, largest = 0.0, 0.0
    for j in range(t.cost.shape[1]):
        desk.columns[DRIFT, j] = t.cost[SLOPE, j]
        largest = max(largest, abs(t.cost[SLOPE, j]))
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        if desk.rows[Y, r] > 0.0:
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


@inlined
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


@inlined
def _lower(kind, low, high):  # type: ignore[no-untyped-def]
    """Return a price inside the bracket, or zero: the action there may gain too much as it is."""
    return 0.0 if low < 0.0 and kind == CROSS else 0.5 * (max(low, 0.0) + high)


@inlined
def _foresee(rise, t, desk):  # type: ignore[no-untyped-def]
    """Let the multipliers follow the price as they do here."""
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        if desk.rows[Y, r] > 0.0:
            desk.rows[Y, r] = max(desk.rows[Y, r] - desk.rows[TURN, r] * rise, 0.0)


@inlined
def lower_bound(kind, target, u, worth):  # type: ignore[no-untyped-def]
    """Return what no action of a branch is below, u·gain - cost being ``worth`` there at most."""
    return u * target - worth if kind == CROSS else -(worth + target) / u


@lean
def dual_worth(u, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return the most that u·gain - cost can be in the branch, by the multipliers on the desk."""
    place(u, t, desk)
    check(t, offset, desk)
    gain, cost = totals(t, desk)
    worth = u * gain - cost
    for one in range(desk.live[desk.on.size]):
        r = desk.live[one]
        worth += desk.rows[Y, r] * desk.rows[SLACK, r]
    return worth


@lean
def settle(kind, target, room, limit, u, steep, t, offset, desk):  # type: ignore[no-untyped-def]
    """Return value, price and how it ended in one branch; infinite: not below ``limit``."""
    # Least of the cost (CROSS), or of minus the gain (REACH). At any price the dual bounds it.
    low, high, value, aim = -1.0, np.inf, np.inf, target
    for _ in range(TURNS):
        ended = act(u, t, offset, desk)
        if ended != FINE:
            return np.inf, u, FINE if ended == INFEASIBLE else NOT_CONVERGED
        gain, cost = totals(t, desk)
        if lower_bound(kind, target, u, u * gain - cost) >= limit:
            return np.inf, u, FINE
        value, miss = (cost, target - gain) if kind == CROSS else (-gain, target - cost)
        if -room <= miss <= 0.5 * room or (miss < 0.0 and u == 0.0):
            return value, u, FINE
        low, high = (u, high) if miss > 0.0 else (low, u)
        rate = rate_of(t, desk)
        if rate <= 1e-13 * steep:
            # Nothing more is gained until something gives way; if nothing ever does, never.
            if miss > 0.0 and _ceiling(u, t, offset, desk) <= gain + 1e-11 * (1.0 + abs(gain)):
                return (np.inf if kind == CROSS else value), u, EXHAUSTED
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
    # A budget is met no better than the price of a feature of little weight tells costs apart; what
    # is gained by the rest of it is as little.
    near = 1e-9 * (1.0 + abs(target)) + (1e-15 * u if kind == REACH else 0.0)
    return value, u, FINE if abs(miss) <= near else NOT_CONVERGED


@lean
def foresee_more(u, t, desk):  # type: ignore[no-untyped-def]
    """Return a far higher price where nothing more can be had, the multipliers following."""
    rate_of(t, desk)
    _foresee(1e6 * u, t, desk)
    return u + 1e6 * u


@lean
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
        if desk.live[desk.on.size] == 0 and end > inside + stride:
            # Bounds alone: the gain is straight up to the next one.
            G[count], U[count] = gain + rate * (end - inside), end
            V[count] = V[count - 1] + 0.5 * (u + end) * (G[count] - G[count - 1])
            count, stride = count + 1, 8.0 * stride + CREEP * cap
            continue
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


@lean
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


@lean
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
