"""The compiled rows of plain quadratic costs: one pass from features to answer.

The score is formed inside the row, so nobody's result depends on who else is in
the batch. The problem is solved without its bounds; where that answer is allowed
it is the answer, and only the others need their polyline.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response.curve import follow, make_curve
from countermove.response.failures import FINE, INFEASIBLE, NOT_CONVERGED, NOT_FINITE
from countermove.response.paths import diagonal_knots
from countermove.response.polyline import HIGHEST_RISE, fill_costs, peak, price_of_gain
from countermove.response.smoothing import jit, rise

EPSILON = 2.220446049250313e-16


@jit
def row_score(x, weight, bias):  # type: ignore[no-untyped-def]
    """Return the linear score of one row, always summed in the same order.

    Four running sums: one alone would wait for itself at every feature.
    """
    d = x.shape[0]
    first, second, third, fourth = bias, 0.0, 0.0, 0.0
    whole = d - d % 4
    for j in range(0, whole, 4):
        first += x[j] * weight[j]
        second += x[j + 1] * weight[j + 1]
        third += x[j + 2] * weight[j + 2]
        fourth += x[j + 3] * weight[j + 3]
    for j in range(whole, d):
        first += x[j] * weight[j]
    return (first + second) + (third + fourth)


@jit
def score_rows(X, weight, bias):  # type: ignore[no-untyped-def]
    """Return linear scores, each row summed on its own."""
    result = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        result[i] = row_score(X[i], weight, bias)
    return result


@jit
def safety(x, weight, bias, score, known):  # type: ignore[no-untyped-def]
    """Return a bound on the rounding of the score near ``x``, whatever the order of summation.

    A person who crosses aims this far inside, so that the published score of
    ``x_new`` is never negative by rounding.
    """
    even, odd = abs(bias) + 2.0 * abs(score), 0.0
    whole = x.shape[0] - x.shape[0] % 2
    for j in range(0, whole, 2):
        even += abs(x[j] * weight[j])
        odd += abs(x[j + 1] * weight[j + 1])
    for j in range(whole, x.shape[0]):
        even += abs(x[j] * weight[j])
    size = even + odd
    if known:
        return 1e-13 * (1.0 + size)
    return (2.0 * x.shape[0] + 8.0) * EPSILON * size


@jit
def safety_rows(X, weight, bias, scores, known, margin):  # type: ignore[no-untyped-def]
    """Write everybody's safety."""
    for i in range(X.shape[0]):
        margin[i] = safety(X[i], weight, bias, scores[i], known)


@jit
def free_rate_of(slope, direction):  # type: ignore[no-untyped-def]
    """Return the gain per price without bounds."""
    rate = 0.0
    for j in range(slope.shape[0]):
        rate += slope[j] * direction[j]
    return rate


@jit
def fits(x, i, u, direction, lower, upper, low, high):  # type: ignore[no-untyped-def]
    """Return whether the action ``u * direction`` is inside person ``i``'s box."""
    lower, upper = lower[i % lower.shape[0]], upper[i % upper.shape[0]]
    low, high = low[i % low.shape[0]], high[i % high.shape[0]]
    outside = 0
    for j in range(x.shape[0]):
        # No early exit: the whole row goes through the vector unit.
        action = u * direction[j]
        there = x[j] + action
        outside += (action < lower[j]) | (action > upper[j]) | (there < low[j]) | (there > high[j])
    return outside == 0


@jit
def shift(x, u, direction, as_action, out):  # type: ignore[no-untyped-def]
    """Write ``u * direction``, or the place it leads to."""
    if as_action:
        for j in range(x.shape[0]):
            out[j] = u * direction[j]
    elif u > 0.0:
        for j in range(x.shape[0]):
            out[j] = x[j] + u * direction[j]
    else:
        for j in range(x.shape[0]):
            out[j] = x[j]


@jit
def row_box(x, i, lower, upper, low, high, slack, lo, hi):  # type: ignore[no-untyped-def]
    """Write one person's box of actions; return whether it holds any action."""
    feasible = True
    for j in range(x.shape[0]):
        below = low[i % low.shape[0], j] - x[j]
        above = high[i % high.shape[0], j] - x[j]
        room = slack * (1.0 + abs(x[j]))
        below = 0.0 if 0.0 < below <= room else below
        above = 0.0 if -room <= above < 0.0 else above
        lo[j] = max(lower[i % lower.shape[0], j], below)
        hi[j] = min(upper[i % upper.shape[0], j], above)
        feasible &= lo[j] <= hi[j]
    return feasible


@jit
def make_buffers(d):  # type: ignore[no-untyped-def]
    """Allocate box, knots and events of one person."""
    knots = 2 * d + 4
    return (
        np.empty(d), np.empty(d), np.empty(knots), np.empty(knots), np.empty(knots),
        np.empty(2 * d), np.empty(2 * d),
    )  # fmt: skip


@jit
def trace_person(x, i, slope, weights, lower, upper, low, high, slack, cap, buffers):  # type: ignore[no-untyped-def]
    """Trace one person's polyline into the buffers; return knots, rate and feasibility."""
    lo, hi, G, U, V, events, changes = buffers
    if not row_box(x, i, lower, upper, low, high, slack, lo, hi):
        return 1, 0.0, False
    count, rate, start = diagonal_knots(slope, weights, lo, hi, cap, events, changes, G, U)
    fill_costs(G, U, V, count, start)
    return count, rate, True


@jit
def put(x, i, u, weights, slope, low, high, buffers, as_action, write, out):  # type: ignore[no-untyped-def]
    """Write the clipped action, or the place it leads to; return gain, cost and who moved."""
    lo, hi = buffers[0], buffers[1]
    gained, cost, moved = 0.0, 0.0, False
    for j in range(x.shape[0]):
        action = min(max(u * slope[j] / (2.0 * weights[j]), lo[j]), hi[j])
        gained += slope[j] * action
        cost += weights[j] * action * action
        moved |= action != 0.0
        if write and as_action:
            out[i, j] = action
        elif write:
            there = min(max(x[j] + action, low[i % low.shape[0], j]), high[i % high.shape[0], j])
            out[i, j] = there if action != 0.0 else x[j]
    return gained, cost, moved


@jit
def best_plain_rows(  # type: ignore[no-untyped-def]
    X, scores, weight, bias, slope, weights, lower, upper, low, high, bounded, shared, slack,
    gain, as_action, write, out, price, cost, favoured, crossed, moved, status,
):  # fmt: skip
    """Answer the hard step in closed form: cross where that costs less than ``gain``."""
    known = scores.shape[0] > 0
    direction = slope / (2.0 * weights)
    rate = free_rate_of(slope, direction)
    buffers, G, U, V = make_all(X.shape[1])
    traced, count, tail, feasible = False, 1, 0.0, True
    for i in range(X.shape[0]):
        s = scores[i] if known else row_score(X[i], weight, bias)
        status[i] = FINE if math.isfinite(s) else NOT_FINITE
        favoured[i] = s >= 0.0
        margin, u = 0.0, 0.0
        if s < 0.0:
            margin = safety(X[i], weight, bias, s, known)
            if rate > 0.0 and (margin - s) * (margin - s) < 2.0 * rate * gain:
                u = (margin - s) / rate
        if not bounded or fits(X[i], i, u, direction, lower, upper, low, high):
            price[i], cost[i] = u, 0.5 * u * u * rate
            crossed[i] = moved[i] = u > 0.0
            favoured[i] |= u > 0.0
            if write:
                shift(X[i], u, direction, as_action, out[i])
            continue
        if status[i] != FINE:
            continue
        if not (traced and shared):
            count, tail, feasible = trace_person(
                X[i], i, slope, weights, lower, upper, low, high, slack, np.inf, buffers
            )
            traced = True
        if not feasible:
            status[i] = INFEASIBLE
            continue
        u, favoured[i] = 0.0, s + G[0] >= 0.0
        if not favoured[i]:
            ahead, spent = price_of_gain(G, U, V, count, tail, margin - s)
            crossed[i] = favoured[i] = spent - V[0] < gain
            u = ahead if favoured[i] else 0.0
        price[i] = u
        _, cost[i], moved[i] = put(
            X[i], i, u, weights, slope, low, high, buffers, as_action, write, out
        )


@jit
def make_all(d):  # type: ignore[no-untyped-def]
    """Allocate buffers and return them with their knots."""
    buffers = make_buffers(d)
    return buffers, buffers[2], buffers[3], buffers[4]


@jit
def smooth_plain_rows(  # type: ignore[no-untyped-def]
    X, scores, weight, bias, slope, weights, lower, upper, low, high, bounded, shared, slack,
    sharpness, first, as_action, write, out, after, price, cost, moved, status,
):  # fmt: skip
    """Answer the smoothed step, by the curve all unbounded people share where it fits."""
    known = scores.shape[0] > 0
    direction = slope / (2.0 * weights)
    rate = free_rate_of(slope, direction)
    curve = make_curve(sharpness * sharpness * rate, first)
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9)
    buffers, G, U, V = make_all(X.shape[1])
    traced, count, tail, feasible = False, 1, 0.0, True
    for i in range(X.shape[0]):
        s = scores[i] if known else row_score(X[i], weight, bias)
        status[i] = FINE if math.isfinite(s) else NOT_FINITE
        after[i] = s
        if status[i] != FINE:
            continue
        y, ok = follow(curve, sharpness * s)
        u = sharpness * rise(y) if rate > 0.0 else 0.0
        if not bounded or fits(X[i], i, u, direction, lower, upper, low, high):
            status[i] = FINE if ok else NOT_CONVERGED
            after[i], price[i], cost[i], moved[i] = s + rate * u, u, 0.5 * u * u * rate, u > 0.0
            if write:
                shift(X[i], u, direction, as_action, out[i])
            continue
        if not (traced and shared):
            count, tail, feasible = trace_person(
                X[i], i, slope, weights, lower, upper, low, high, slack, cap, buffers
            )
            traced = True
        if not feasible:
            status[i] = INFEASIBLE
            continue
        _, price[i], _, ok = peak(G, U, V, count, tail, s, sharpness, first)
        status[i] = FINE if ok else NOT_CONVERGED
        gained, cost[i], moved[i] = put(
            X[i], i, price[i], weights, slope, low, high, buffers, as_action, write, out
        )
        after[i] = s + gained
