"""The parts of one person's row under quadratic costs: score, safety, box, polyline.

The score is formed inside the row, always summed in the same order, so nobody's
result depends on who else is in the batch.
"""

from __future__ import annotations

import numpy as np

from countermove.response._compile import jit
from countermove.response._polyline import fill_costs
from countermove.response._separable_knots import diagonal_knots

EPSILON = 2.220446049250313e-16


@jit
def row_score(x, weight, bias):  # type: ignore[no-untyped-def]
    """Return the linear score of one row, always summed in the same order."""
    # Four running sums: one alone would wait for itself at every feature.
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
    """Return a bound on the rounding of the score near ``x``, whatever the order of summation."""
    # A person who crosses aims this far inside, so that the published score of ``x_new`` is never
    # negative by rounding.
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
def row_of(bound, i):  # type: ignore[no-untyped-def]
    """Return person ``i``'s row of a bound that may be shared."""
    return i if bound.shape[0] > 1 else 0


@jit
def fits(x, i, u, direction, lower, upper, low, high):  # type: ignore[no-untyped-def]
    """Return whether the action ``u * direction`` is inside person ``i``'s box."""
    lower, upper = lower[row_of(lower, i)], upper[row_of(upper, i)]
    low, high = low[row_of(low, i)], high[row_of(high, i)]
    outside = 0
    for j in range(x.shape[0]):
        # No early exit: the whole row goes through the vector unit.
        action = u * direction[j]
        there = x[j] + action
        outside += (action < lower[j]) | (action > upper[j]) | (there < low[j]) | (there > high[j])
    return outside == 0


@jit
def row_box(x, i, lower, upper, low, high, slack, lo, hi):  # type: ignore[no-untyped-def]
    """Write one person's box of actions; return whether it holds any action."""
    feasible = True
    for j in range(x.shape[0]):
        below = low[row_of(low, i), j] - x[j]
        above = high[row_of(high, i), j] - x[j]
        room = slack * (1.0 + abs(x[j]))
        below = 0.0 if 0.0 < below <= room else below
        above = 0.0 if -room <= above < 0.0 else above
        lo[j] = max(lower[row_of(lower, i), j], below)
        hi[j] = min(upper[row_of(upper, i), j], above)
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
def trace_box(slope, weights, cap, buffers):  # type: ignore[no-untyped-def]
    """Trace the polyline of the box in the buffers; return its knots and the rate beyond."""
    lo, hi, G, U, V, events, changes = buffers
    count, rate, start = diagonal_knots(slope, weights, lo, hi, cap, events, changes, G, U)
    fill_costs(G, U, V, count, start)
    return count, rate


@jit
def trace_person(x, i, slope, weights, lower, upper, low, high, slack, cap, buffers):  # type: ignore[no-untyped-def]
    """Trace one person's polyline into the buffers; return knots, rate and feasibility."""
    if not row_box(x, i, lower, upper, low, high, slack, buffers[0], buffers[1]):
        return 1, 0.0, False
    count, rate = trace_box(slope, weights, cap, buffers)
    return count, rate, True


@jit
def make_all(d):  # type: ignore[no-untyped-def]
    """Allocate buffers and return them with their knots."""
    buffers = make_buffers(d)
    return buffers, buffers[2], buffers[3], buffers[4]
