r"""The trade-off polyline of the linear cost: a knapsack filled by ratio.

Gaining most score for a cost of at most k is :math:`\max w\cdot\delta` subject to
:math:`\ell\cdot\delta \le k` and the box. All features start at their cheaper end;
those that buy score at a cost are then filled in order of score per cost.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response._compile import jit
from countermove.response._polyline import fill_costs
from countermove.response._solutions import FINE, UNBOUNDED

FILLED = 1e-13
"""A feature filled up to this share is full: what is missing is rounding."""
SAME_RATIO = 1e-12
"""Two features trade at one rate, so that swapping them gains nothing, within this share."""


@jit
def cheap_end(w, kink, lo, hi):  # type: ignore[no-untyped-def]
    """Return the cheaper end of a feature; at no cost, the end with more score; else staying."""
    if kink != 0.0:
        return lo if kink > 0.0 else hi
    if w != 0.0:
        return hi if w > 0.0 else lo
    return min(max(0.0, lo), hi)


@jit
def straight_base(w, kink, lo, hi, base):  # type: ignore[no-untyped-def]
    """Write the cheapest corner; return False when the response runs away."""
    best_ratio, sell_ratio = 0.0, np.inf
    for j in range(w.shape[0]):
        base[j] = cheap_end(w[j], kink[j], lo[j], hi[j])
        if w[j] * kink[j] > 0.0 and lo[j] < hi[j]:
            best_ratio = max(best_ratio, w[j] / kink[j])
        if math.isinf(base[j]):
            if kink[j] == 0.0 or w[j] * kink[j] < 0.0:
                return False
            # Giving up score here earns money without end: nothing may be worth buying with it.
            sell_ratio = min(sell_ratio, w[j] / kink[j])
            base[j] = min(max(0.0, lo[j]), hi[j])
    return best_ratio <= sell_ratio * (1.0 + SAME_RATIO)


@jit
def straight_order(w, kink, lo, hi, order):  # type: ignore[no-untyped-def]
    """List the features that buy score at a cost, most score per cost first; return how many."""
    items = 0
    for j in range(w.shape[0]):
        if w[j] * kink[j] > 0.0 and lo[j] < hi[j]:
            k = items
            while k > 0 and w[order[k - 1]] / kink[order[k - 1]] < w[j] / kink[j]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = j
            items += 1
    return items


@jit
def totals(w, kink, lo, hi, base):  # type: ignore[no-untyped-def]
    """Return gain and kink sum of the corner ``base``, then of the action nearest to staying."""
    gain, spent, stay_gain, stay_spent = 0.0, 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        still = min(max(0.0, lo[j]), hi[j])
        gain += w[j] * base[j]
        spent += kink[j] * base[j]
        stay_gain += w[j] * still
        stay_spent += kink[j] * still
    return gain, spent, stay_gain, stay_spent


@jit
def straight_knots(w, kink, lo, hi, base, order, G, U):  # type: ignore[no-untyped-def]
    """Trace the polyline; return ``(knots, rate, start, items, ok)`` and the items' ``order``."""
    if not straight_base(w, kink, lo, hi, base):
        return 1, 0.0, 0.0, 0, False
    items = straight_order(w, kink, lo, hi, order)
    gain, spent, stay_gain, stay_spent = totals(w, kink, lo, hi, base)
    start, free, count = max(0.0, spent), max(0.0, -spent), 0
    if stay_spent <= 0.0:
        G[0], U[0], count = stay_gain, 0.0, 1
    k = 0
    while k < items:
        # What the cheap corner earned pays for the best items: that gain is free.
        j = order[k]
        cost = abs(kink[j] * ((hi[j] if kink[j] > 0.0 else lo[j]) - base[j]))
        if cost > free:
            break
        free -= cost
        gain += cost * (w[j] / kink[j])
        k += 1
    if k < items:
        gain += free * (w[order[k]] / kink[order[k]])
    G[count], U[count] = max(gain, stay_gain) if count > 0 else gain, 0.0
    count += 1
    while k < items:
        j = order[k]
        cost = abs(kink[j] * ((hi[j] if kink[j] > 0.0 else lo[j]) - base[j])) - free
        ratio = w[j] / kink[j]
        G[count], U[count] = G[count - 1], 1.0 / ratio
        count += 1
        if math.isinf(cost):
            return count, np.inf, start, items, True
        G[count], U[count] = G[count - 1] + cost * ratio, 1.0 / ratio
        count += 1
        free = 0.0
        k += 1
    return count, 0.0, start, items, True


@jit
def straight_action(gain, w, kink, lo, hi, base, order, items, action):  # type: ignore[no-untyped-def]
    """Write the cheapest action of that gain; return its cost and the ratio of the item in hand."""
    # Gains that cost nothing lie on the segment from staying to the best free action.
    reached, spent, stay_gain, stay_spent = totals(w, kink, lo, hi, base)
    for j in range(w.shape[0]):
        action[j] = base[j]
    ratio = 0.0
    for k in range(items):
        j = order[k]
        ratio = w[j] / kink[j]
        far = hi[j] if kink[j] > 0.0 else lo[j]
        width = far - base[j]
        need = max((gain - reached) / w[j] * kink[j], -spent, 0.0)
        whole = abs(width * kink[j])
        if whole * (1.0 - FILLED) > need:
            begun = need > FILLED * (abs(spent) + (whole if whole < np.inf else 0.0))
            need = need if begun else 0.0
            action[j] = base[j] + need / kink[j]
            action[j] = action[j] if abs(action[j]) > FILLED * abs(base[j]) else 0.0
            reached += need * ratio
            spent += need
            break
        action[j] = far
        reached += width * w[j]
        spent += width * kink[j]
    size = 0.0
    for j in range(w.shape[0]):
        size += abs(kink[j]) * (abs(base[j]) + abs(action[j]))
    if spent < -FILLED * size:
        ratio = 0.0
    ahead = reached - stay_gain
    share = (gain - stay_gain) / ahead if ahead > 0.0 else 0.0
    if stay_spent <= 0.0 and spent <= FILLED * size and share < 1.0 - FILLED:
        for j in range(w.shape[0]):
            still = min(max(0.0, lo[j]), hi[j])
            action[j] = still + max(share, 0.0) * (action[j] - still)
        return 0.0, ratio
    # Earnings that pay for a purchase exactly leave rounding, not a cost.
    return (spent if spent > FILLED * size else 0.0), ratio


@jit
def trace_straight_rows(w, kink, lo, hi, G, U, V, count, rate, status):  # type: ignore[no-untyped-def]
    """Trace everybody's polyline under a linear cost."""
    base, order = np.empty(w.shape[0]), np.empty(w.shape[0], np.int64)
    for i in range(lo.shape[0]):
        count[i], rate[i], start, _, ok = straight_knots(
            w, kink, lo[i], hi[i], base, order, G[i], U[i]
        )
        fill_costs(G[i], U[i], V[i], count[i], start)
        status[i] = FINE if ok else UNBOUNDED


@jit
def act_straight_rows(  # type: ignore[no-untyped-def]
    w, kink, lo, hi, gain, price, action, cost, multiplier
):
    """Write everybody's cheapest action of their gain, its cost and the kink multiplier."""
    base, order = np.empty(w.shape[0]), np.empty(w.shape[0], np.int64)
    for i in range(gain.shape[0]):
        low, high = lo[i % lo.shape[0]], hi[i % hi.shape[0]]
        straight_base(w, kink, low, high, base)
        items = straight_order(w, kink, low, high, order)
        cost[i], ratio = straight_action(gain[i], w, kink, low, high, base, order, items, action[i])
        multiplier[i] = 1.0 if cost[i] > 0.0 else min(price[i] * ratio, 1.0)
