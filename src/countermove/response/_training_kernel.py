"""The compiled rows of training: score after the smoothed response and its derivatives.

One pass per batch for quadratic costs without cross terms, bounds included:
strategic training then costs little more than blind training.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response._compile import jit
from countermove.response._polyline import HIGHEST_RISE, peak
from countermove.response._response_curve import follow, make_curve
from countermove.response._score_and_box import (
    fits,
    free_rate_of,
    make_all,
    row_score,
    trace_person,
)
from countermove.response._solutions import FINE, INFEASIBLE, NOT_CONVERGED, NOT_FINITE
from countermove.response.step import half_bend, rise


@jit
def derivatives(z, rate, sharpness, proxy):  # type: ignore[no-untyped-def]
    """Return the score's own derivative, the last point's, and that by log sharpness."""
    # With u = f(z) and rate R: dz = (ds + ... + R df)/(1 - R f').
    y = sharpness * z
    convex, concave = half_bend(y + 1.0), half_bend(y - 1.0)
    square = sharpness * sharpness
    bent = square * ((0.0 if proxy else convex) - concave)
    share = 1.0 / (1.0 - rate * bent)
    last = rate * share * square * convex if proxy else 0.0
    return share, last, rate * share * sharpness * (rise(y) + y * (convex - concave))


@jit
def unit_of(slope, up, down, temperature, unit):  # type: ignore[no-untyped-def]
    """Return the derivative of log N(w) in the slope and the sharpness (see `sharpness_of`)."""
    by_unit = np.zeros(slope.shape[0])
    if unit == 0.0:
        square = 0.0
        for j in range(slope.shape[0]):
            by_unit[j] = slope[j] * (up[j] if slope[j] > 0.0 else down[j])
            square += by_unit[j] * by_unit[j]
        unit = math.sqrt(square) if square > 0.0 else 1.0
        for j in range(slope.shape[0]):
            by_unit[j] /= unit * unit
    return by_unit, 1.0 / (temperature * unit)


@jit
def training_rows(  # type: ignore[no-untyped-def]
    X, weight, bias, weights, moving, up, down, lower, upper, low, high, bounded, slack,
    temperature, unit, first, proxy, rest, by_bias, by_weight, status,
):  # fmt: skip
    """Write the score after the response as its tangent in weight and bias."""
    # Person i's is ``rest[i] + by_weight[i] . weight + by_bias[i] * bias``: its value and both
    # derivatives at once. ``moving``, ``up`` and ``down`` are one where a feature may move, rise
    # and fall; a ``unit`` of 0 asks for N(w), which then has a derivative too.
    d = X.shape[1]
    slope = weight * moving
    by_unit, sharpness = unit_of(slope, up, down, temperature, unit)
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9)
    buffers, G, U, V = make_all(d)
    lo, hi = buffers[0], buffers[1]
    direction = slope / (2.0 * weights)
    free_rate = free_rate_of(slope, direction)
    curve = make_curve(sharpness * sharpness * free_rate, first)
    for i in range(X.shape[0]):
        s = row_score(X[i], weight, bias)
        status[i] = FINE if math.isfinite(s) else NOT_FINITE
        if status[i] != FINE:
            continue
        y, ok = follow(curve, sharpness * s)
        u = sharpness * rise(y) if free_rate > 0.0 else 0.0
        rate, gained = free_rate, free_rate * u
        free = not bounded or fits(X[i], i, u, direction, lower, upper, low, high)
        if not free:
            count, tail, feasible = trace_person(
                X[i], i, slope, weights, lower, upper, low, high, slack, cap, buffers
            )
            if not feasible:
                status[i] = INFEASIBLE
                continue
            _, u, _, ok = peak(G, U, V, count, tail, s, sharpness, first)
            rate, gained = 0.0, 0.0
            for j in range(d):
                action = u * direction[j]
                rate += slope[j] * direction[j] if lo[j] < action < hi[j] else 0.0
                gained += slope[j] * min(max(action, lo[j]), hi[j])
        status[i] = FINE if ok else NOT_CONVERGED
        share, last, sharper = derivatives(s + gained, rate, sharpness, proxy)
        by_bias[i] = share + last
        rest[i] = s + gained - by_bias[i] * bias
        for j in range(d):
            action = u * direction[j]
            inside = free or lo[j] < action < hi[j]
            moved = action if free else min(max(action, lo[j]), hi[j])
            by_slope = by_bias[i] * moved - sharper * by_unit[j]
            by_slope += share * u * direction[j] if inside else 0.0
            by_weight[i, j] = by_slope * moving[j] + by_bias[i] * X[i, j]
            rest[i] -= by_weight[i, j] * weight[j]
