"""The compiled rows of costs without cross terms: one pass from features to response.

A block of people at a time, the problem is solved without its bounds; where that
solution is allowed it is the response, and only the others need more work. Nothing
is summed across people, so nobody's result depends on who else is there.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response._bounded_rows import (
    BLOCK,
    DONE,
    FEASIBLE,
    GAINED,
    MARGIN,
    PRICE,
    SCORE,
    SPENT,
    START,
    cross_kinked,
    cross_stopped,
    load_boxes,
    make_stopped,
    put_stopped,
    settle_stopped,
)
from countermove.response._compile import jit
from countermove.response._polyline import peak
from countermove.response._response_curve import follow_block, make_curve, make_grid
from countermove.response._score_and_box import row_of, row_score, safety
from countermove.response._solutions import FINE, INFEASIBLE, NOT_CONVERGED, NOT_FINITE, STOPPED
from countermove.response._unbounded_path import aim, unbounded_gain, unbounded_price
from countermove.response.step import rise


@jit
def make_block():  # type: ignore[no-untyped-def]
    """Allocate a block's columns: numbers, flags, people."""
    numbers = (
        np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    )  # fmt: skip
    return (
        numbers,
        (np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_)),
        np.empty(BLOCK, np.int64),
    )


@jit
def score_block(X, first, m, scores, weight, bias, s):  # type: ignore[no-untyped-def]
    """Write the scores of ``m`` people from row ``first``."""
    for p in range(m):
        s[p] = scores[first + p] if scores.shape[0] > 0 else row_score(X[first + p], weight, bias)


@jit
def place_block(X, first, m, u, path, bounds, as_action, write, out, spare, outside):  # type: ignore[no-untyped-def]
    """Write the free actions, or the places they lead to, and who may not take theirs."""
    lower, upper, low, high, bounded = bounds
    base = 0.0 if as_action else 1.0
    for p in range(m):
        i, price = first + p, u[p]
        k = 0 if price <= path.turn else 1
        row = out[i] if write else spare
        if not bounded:
            outside[p] = False
            for j in range(X.shape[1]):
                row[j] = base * X[i, j] + (price * path.along[k, j] + path.start[k, j])
            continue
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        wrong = 0
        for j in range(X.shape[1]):
            # No early exit: the whole row goes through the vector unit.
            action = price * path.along[k, j] + path.start[k, j]
            there = X[i, j] + action
            wrong |= (action < lower[a, j]) | (action > upper[b, j])
            wrong |= (there < low[c, j]) | (there > high[e, j])
            row[j] = base * X[i, j] + action
        outside[p] = wrong != 0


@jit
def free_crossings(  # type: ignore[no-untyped-def]
    X, first, m, s, weight, bias, known, slope, path, kinked, gains, margin, u, missed
):
    """Write everybody's price of crossing without bounds, zero for those who do not cross."""
    for p in range(m):
        margin[p], u[p], missed[p] = 0.0, 0.0, False
        if s[p] < 0.0:
            margin[p] = safety(X[first + p], weight, bias, s[p], known)
            if path.beyond > 0.0:
                ahead, spent = unbounded_price(path, margin[p] - s[p])
                u[p] = ahead if spent < gains[row_of(gains, first + p)] else 0.0
            if kinked and u[p] > 0.0:
                u[p], hit = aim(path, slope, margin[p] - s[p], margin[p], u[p])
                missed[p] = not hit


@jit
def best_rows(  # type: ignore[no-untyped-def]
    X, scores, weight, bias, slope, weights, kink, path, bounds, slack, gains, as_action, write,
    out, price, cost, multiplier, favoured, crossed, moved, status,
):  # fmt: skip
    """Solve the hard step in closed form: cross where that costs less than one's of ``gains``."""
    # ``gains`` has one number for everybody or one per person.
    d, known, kinked = X.shape[1], scores.shape[0] > 0, kink.shape[0] > 0
    numbers, (outside, missed), who = make_block()
    s, margin, u = numbers[:3]
    stopped, spare = make_stopped(d), np.empty(d)
    work = stopped[2]
    for first in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - first)
        score_block(X, first, m, scores, weight, bias, s)
        free_crossings(
            X, first, m, s, weight, bias, known, slope, path, kinked, gains, margin, u, missed
        )
        place_block(X, first, m, u, path, bounds, as_action, write, out, spare, outside)
        count = 0
        for p in range(m):
            i = first + p
            status[i] = FINE if math.isfinite(s[p]) else NOT_FINITE
            price[i] = u[p]
            _, cost[i], on_kink = unbounded_gain(path, u[p])
            if kinked:
                multiplier[i] = on_kink
            crossed[i] = moved[i] = u[p] > 0.0
            favoured[i] = (s[p] >= 0.0) | (u[p] > 0.0)
            if (outside[p] or missed[p]) and status[i] == FINE:
                status[i] = STOPPED
                who[count], work[SCORE + count], work[MARGIN + count] = i, s[p], margin[p]
                count += 1
        for p in range(count if kinked else 0):
            cross_kinked(
                X, who[p], work[SCORE + p], work[MARGIN + p], slope, weights, kink, bounds, slack,
                gains[row_of(gains, who[p])], stopped[3], as_action, write, out, price, cost,
                multiplier, favoured, crossed, moved, status,
            )  # fmt: skip
        if count and not kinked:
            best_stopped(
                X, who, count, slope, weights, path, bounds, slack, gains, stopped, as_action,
                write, out, price, cost, favoured, crossed, moved, status,
            )  # fmt: skip


@jit
def best_stopped(  # type: ignore[no-untyped-def]
    X, who, m, slope, weights, path, bounds, slack, gains, stopped, as_action, write, out, price,
    cost, favoured, crossed, moved, status,
):  # fmt: skip
    """Solve the hard step for the people of a block whom a bound stops."""
    work, direction = stopped[2], path.along[0]
    load_boxes(X, who, m, bounds, slack, stopped)
    cross_stopped(who, m, slope, weights, direction, path.rate, gains, stopped)
    for p in range(m):
        i = who[p]
        status[i] = FINE if work[FEASIBLE + p] > 0.0 else INFEASIBLE
        crossed[i] = work[DONE + p] > 0.0
        favoured[i] = crossed[i] | (work[SCORE + p] + work[START + p] >= 0.0)
        price[i], cost[i], moved[i] = work[PRICE + p], work[SPENT + p], work[SPENT + p] > 0.0
        if write:
            put_stopped(X, i, p, direction, bounds[2], bounds[3], stopped, as_action, out)


@jit
def two_knots(path):  # type: ignore[no-untyped-def]
    """Return the free path as a polyline of two knots."""
    turn_cost = 0.5 * path.turn * path.turn_gain
    return (
        np.array([0.0, path.turn_gain]), np.array([0.0, path.turn]), np.array([0.0, turn_cost])
    )  # fmt: skip


@jit
def free_prices(path, curves, grids, knots, sharpness, first, s, m, u, numbers, flags):  # type: ignore[no-untyped-def]
    """Write everybody's price without bounds, and who converged, into ``u`` and the first flag."""
    y0, y = numbers[3:]
    ok, second = flags
    for p in range(m):
        y0[p] = sharpness * s[p]
    single = math.isinf(path.turn)
    if not single and curves[1].low_fold < curves[1].high_fold:
        G, U, V = knots
        for p in range(m):
            _, u[p], _, ok[p] = peak(G, U, V, 2, path.beyond, s[p], sharpness, first)
        return
    follow_block(curves[0], grids[0], y0, m, y, ok)
    for p in range(m):
        u[p] = sharpness * rise(y[p])
    if single:
        return
    # The objective bends one way, so whoever passes the turn ends on the second piece.
    for p in range(m):
        y0[p] = sharpness * (s[p] - path.lost)
    follow_block(curves[1], grids[1], y0, m, y, second)
    for p in range(m):
        beyond = u[p] > path.turn
        ok[p] = second[p] if beyond else ok[p]
        u[p] = max(sharpness * rise(y[p]), path.turn) if beyond else u[p]


@jit
def smooth_rows(  # type: ignore[no-untyped-def]
    X, scores, weight, bias, slope, weights, path, bounds, slack, kinked, sharpness, first,
    as_action, write, out, after, price, cost, multiplier, moved, status,
):  # fmt: skip
    """Solve the smoothed step, by the curve all unbounded people share where it fits."""
    d, square = X.shape[1], sharpness * sharpness
    numbers, flags, who = make_block()
    s, u, ok = numbers[0], numbers[2], flags[0]
    outside = np.empty(BLOCK, np.bool_)
    curves = (make_curve(square * path.rate, first), make_curve(square * path.beyond, first))
    grids, knots = (make_grid(curves[0]), make_grid(curves[1])), two_knots(path)
    stopped, spare = make_stopped(d), np.empty(d)
    work = stopped[2]
    for start in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - start)
        score_block(X, start, m, scores, weight, bias, s)
        free_prices(path, curves, grids, knots, sharpness, first, s, m, u, numbers, flags)
        for p in range(m):
            u[p] = u[p] if (path.beyond > 0.0) & math.isfinite(s[p]) else 0.0
        place_block(X, start, m, u, path, bounds, as_action, write, out, spare, outside)
        count = 0
        for p in range(m):
            i = start + p
            status[i] = FINE if ok[p] else NOT_CONVERGED
            status[i] = status[i] if math.isfinite(s[p]) else NOT_FINITE
            price[i], moved[i] = u[p], u[p] > 0.0
            gained, cost[i], on_kink = unbounded_gain(path, u[p])
            if kinked:
                multiplier[i] = on_kink
            after[i] = s[p] + gained
            if outside[p] and status[i] != NOT_FINITE:
                status[i] = STOPPED
                who[count], work[SCORE + count], work[PRICE + count] = i, s[p], u[p]
                count += 1
        if count and not kinked:
            smooth_stopped(
                X, who, count, slope, weights, path, bounds, slack, sharpness, first, curves[0],
                stopped, as_action, write, out, after, price, cost, moved, status,
            )  # fmt: skip


@jit
def smooth_stopped(  # type: ignore[no-untyped-def]
    X, who, m, slope, weights, path, bounds, slack, sharpness, first, curve, stopped, as_action,
    write, out, after, price, cost, moved, status,
):  # fmt: skip
    """Solve the smoothed step for the people of a block whom a bound stops."""
    work, direction = stopped[2], path.along[0]
    load_boxes(X, who, m, bounds, slack, stopped)
    settle_stopped(m, slope, weights, direction, sharpness, curve, first, stopped)
    for p in range(m):
        i = who[p]
        status[i] = FINE if work[DONE + p] > 0.0 else NOT_CONVERGED
        status[i] = status[i] if work[FEASIBLE + p] > 0.0 else INFEASIBLE
        price[i], cost[i], moved[i] = work[PRICE + p], work[SPENT + p], work[SPENT + p] > 0.0
        after[i] = work[SCORE + p] + work[GAINED + p]
        if write:
            put_stopped(X, i, p, direction, bounds[2], bounds[3], stopped, as_action, out)
