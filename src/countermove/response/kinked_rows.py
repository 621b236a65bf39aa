"""People whom a bound stops under a cost with a kink: their crossing, without the polyline.

The clipped action at a price, with its kink multiplier, is the cheapest of its gain; so
the one price that gains what is needed is enough. Whoever is not brought there within
the safety margin is left to the traced polyline.
"""

from __future__ import annotations

import numpy as np

from countermove.response.failures import FINE
from countermove.response.paths import kink_action, kink_multiplier, kink_slopes
from countermove.response.plain_rows import row_box, row_of
from countermove.response.smoothing import jit

STEPS = 30
"""Newton's steps on the price, guarded by a bracket; five are usual."""


@jit
def price_to_gain(need, slack, w, q, kink, lo, hi, action):  # type: ignore[no-untyped-def]
    """Return ``(price, multiplier, cost, hit)`` of gaining ``need``; the action is written."""
    u, left, right = 0.0, 0.0, np.inf
    for _ in range(STEPS):
        m = kink_multiplier(u, w, q, kink, lo, hi)
        gained, cost = kink_action(u, m, w, q, kink, lo, hi, action)
        miss = need - gained
        if -slack <= miss <= 0.5 * slack:
            return u, m, cost, True
        if miss > 0.0:
            left = u
        else:
            right = u
        # Just past the price, so that a feature or the kink about to move counts.
        ahead = u * (1.0 + 1e-12) + 1e-300
        rate, _ = kink_slopes(ahead, kink_multiplier(ahead, w, q, kink, lo, hi), w, q, kink, lo, hi)
        if rate > 0.0 and left < u + miss / rate < right:
            u += miss / rate
        elif np.isfinite(right):
            u = 0.5 * (left + right)
        else:
            return u, m, cost, False
    return u, 0.0, 0.0, False


@jit
def cross_kinked(  # type: ignore[no-untyped-def]
    X, i, s, margin, slope, weights, kink, bounds, slack, gain, buffers, as_action, write, out,
    price, cost, multiplier, favoured, crossed, moved, status,
):  # fmt: skip
    """Answer the hard step for person ``i``; the status stays as it is if that is left open."""
    lower, upper, low, high, _ = bounds
    lo, hi, action = buffers[0], buffers[1], buffers[2]
    if not row_box(X[i], i, lower, upper, low, high, slack, lo, hi):
        return
    start = kink_multiplier(0.0, slope, weights, kink, lo, hi)
    gained, floor = kink_action(0.0, start, slope, weights, kink, lo, hi, action)
    there = s + gained >= 0.0
    u, m, spent, crosses = 0.0, 0.0, floor, False
    if not there:
        u, m, spent, hit = price_to_gain(margin - s, margin, slope, weights, kink, lo, hi, action)
        if not hit:
            return
        crosses = spent - floor < gain
        if not crosses:
            u, m, spent = 0.0, 0.0, floor
            kink_action(0.0, start, slope, weights, kink, lo, hi, action)
    status[i], price[i], cost[i], multiplier[i] = FINE, u, spent, m
    favoured[i], crossed[i], moved[i] = there | crosses, crosses, False
    a, b = row_of(low, i), row_of(high, i)
    for j in range(X.shape[1]):
        moved[i] |= action[j] != 0.0
        if write and as_action:
            out[i, j] = action[j]
        elif write:
            inside = min(max(X[i, j] + action[j], low[a, j]), high[b, j])
            out[i, j] = inside if action[j] != 0.0 else X[i, j]
