r"""Trade-off polylines of costs with a kink and no cross terms, the linear cost among them.

For a price ``u`` per unit of score a person takes the action that solves

.. math:: \min_\delta\; \sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta) - u\,w\cdot\delta,
          \qquad lo \le \delta \le hi,

that is :math:`\delta_j = clip((u w_j - m \ell_j)/2q_j, lo_j, hi_j)` with one kink multiplier m.
Without the square it is a knapsack: all features start at their cheaper end, and those that buy
score at a cost are filled in order of score per cost.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response._polyline import fill_costs
from countermove.response.compilation import jit
from countermove.response.reduction import FINE, NOT_CONVERGED, UNBOUNDED

CREEP = 1e-10
"""Relative step past a knot at which the next piece's active set is read off."""
MATCH = 1e-8
"""A piece is trusted when its predicted end and the solved end agree to this share."""


@jit
def kink_balance(u, m, w, q, kink, lo, hi):  # type: ignore[no-untyped-def]
    """Return ``kink . action`` at price ``u`` and multiplier ``m``, and minus its slope in m."""
    value, slope = 0.0, 0.0
    for j in range(w.shape[0]):
        free = (u * w[j] - m * kink[j]) / (2.0 * q[j])
        value += kink[j] * min(max(free, lo[j]), hi[j])
        if lo[j] < free < hi[j]:
            slope += kink[j] * kink[j] / (2.0 * q[j])
    return value, slope


@jit
def kink_multiplier(u, w, q, kink, lo, hi):  # type: ignore[no-untyped-def]
    r"""Return the largest m in [0, 1] with :math:`\ell\cdot\delta(u, m) \ge 0` (0 if none)."""
    # The left side falls in m and is made of straight pieces: Newton's step is exact on the right
    # piece, bisection guards it.
    scale = 0.0
    for j in range(w.shape[0]):
        scale += (abs(kink[j] * u * w[j]) + kink[j] * kink[j]) / (2.0 * q[j])
    rounding = 1e-15 * scale
    if kink_balance(u, 1.0, w, q, kink, lo, hi)[0] >= -rounding:
        return 1.0
    m, left, right = 0.0, 0.0, 1.0
    value, slope = kink_balance(u, m, w, q, kink, lo, hi)
    if value <= rounding:
        return 0.0
    for _ in range(200):
        ahead = m + value / slope if slope > 0.0 else 2.0
        if not left < ahead < right:
            if abs(ahead - m) <= 4e-16:
                return m
            ahead = 0.5 * (left + right)
        if abs(ahead - m) <= 1e-16 or right - left <= 1e-16:
            return ahead
        m = ahead
        value, slope = kink_balance(u, m, w, q, kink, lo, hi)
        if value >= 0.0:
            left = m
        else:
            right = m
    return m


@jit
def kink_action(u, m, w, q, kink, lo, hi, action):  # type: ignore[no-untyped-def]
    """Write the action at price ``u`` and multiplier ``m``; return its gain and cost."""
    gain, cost, along = 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        action[j] = min(max((u * w[j] - m * kink[j]) / (2.0 * q[j]), lo[j]), hi[j])
        gain += w[j] * action[j]
        cost += q[j] * action[j] * action[j]
        along += kink[j] * action[j]
    return gain, cost + max(0.0, along)


@jit
def kink_slopes(u, m, w, q, kink, lo, hi):  # type: ignore[no-untyped-def]
    """Return gain per price and multiplier per price on the piece that holds ``u``."""
    ww, wk, kk = 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        free = (u * w[j] - m * kink[j]) / (2.0 * q[j])
        if lo[j] < free < hi[j]:
            ww += w[j] * w[j] / (2.0 * q[j])
            wk += w[j] * kink[j] / (2.0 * q[j])
            kk += kink[j] * kink[j] / (2.0 * q[j])
    if 0.0 < m < 1.0 and kk > 0.0:
        return max(ww - wk * wk / kk, 0.0), wk / kk
    return ww, 0.0


@jit
def kink_next(u, m, turn, w, q, kink, lo, hi):  # type: ignore[no-untyped-def]
    """Return the price at which the piece holding ``u`` ends (infinite: never)."""
    wait = np.inf
    along, along_rate = 0.0, 0.0
    for j in range(w.shape[0]):
        if lo[j] == hi[j]:
            along += kink[j] * lo[j]
            continue
        free = (u * w[j] - m * kink[j]) / (2.0 * q[j])
        speed = (w[j] - turn * kink[j]) / (2.0 * q[j])
        along += kink[j] * min(max(free, lo[j]), hi[j])
        if lo[j] < free < hi[j]:
            along_rate += kink[j] * speed
        for bound in (lo[j], hi[j]):
            if speed != 0.0 and np.isfinite(bound):
                time = (bound - free) / speed
                if time > 0.0:
                    wait = min(wait, time)
    if turn > 0.0:
        wait = min(wait, (1.0 - m) / turn)
    elif turn < 0.0:
        wait = min(wait, -m / turn)
    if (m <= 0.0 and along < 0.0 < along_rate) or (m >= 1.0 and along_rate < 0.0 < along):
        wait = min(wait, -along / along_rate)
    return u + wait


@jit
def smallest_event(w, q, kink, lo, hi):  # type: ignore[no-untyped-def]
    """Return the smallest price at which a feature alone would meet its kink or a bound."""
    least = np.inf
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            for size in (abs(kink[j]), 2.0 * q[j] * abs(lo[j]), 2.0 * q[j] * abs(hi[j])):
                if 0.0 < size < np.inf:
                    least = min(least, size / abs(w[j]))
    return least if least < np.inf else 1.0


@jit
def kink_knots(w, q, kink, lo, hi, cap, budget, action, G, U):  # type: ignore[no-untyped-def]
    """Trace the polyline with a kink, up to price ``cap`` or cost ``budget`` above the start."""
    # Each knot is solved again; a piece is halved until the end its active set predicts is the
    # end found, so a missed event cannot pass.
    scale = smallest_event(w, q, kink, lo, hi)
    G[0], start = kink_action(
        0.0, kink_multiplier(0.0, w, q, kink, lo, hi), w, q, kink, lo, hi, action
    )
    U[0] = 0.0
    count, rate, spent = 1, 0.0, 0.0
    while count < G.shape[0]:
        u = U[count - 1]
        inside = u * (1.0 + CREEP) + CREEP * scale
        m = kink_multiplier(inside, w, q, kink, lo, hi)
        rate, turn = kink_slopes(inside, m, w, q, kink, lo, hi)
        end = kink_next(inside, m, turn, w, q, kink, lo, hi)
        if u >= cap or spent > budget or not np.isfinite(end):
            return count, rate, start, True
        gain, _ = kink_action(inside, m, w, q, kink, lo, hi, action)
        for _ in range(60):
            ahead = kink_multiplier(end, w, q, kink, lo, hi)
            reached, _ = kink_action(end, ahead, w, q, kink, lo, hi, action)
            predicted = gain + rate * (end - inside)
            if abs(reached - predicted) <= MATCH * (abs(reached - gain) + abs(gain)) + 1e-14:
                break
            end = 0.5 * (inside + end)
        spent += 0.5 * (u + end) * (reached - G[count - 1])
        G[count], U[count] = max(reached, G[count - 1]), end
        count += 1
    return count, rate, start, False


@jit
def trace_kinked_rows(  # type: ignore[no-untyped-def]
    w, q, kink, lo, hi, cap, budget, G, U, V, count, rate, status
):
    """Trace everybody's polyline under a quadratic cost with a kink."""
    action = np.empty(w.shape[0])
    for i in range(lo.shape[0]):
        count[i], rate[i], start, ok = kink_knots(
            w, q, kink, lo[i], hi[i], cap, budget, action, G[i], U[i]
        )
        fill_costs(G[i], U[i], V[i], count[i], start)
        status[i] = FINE if ok else NOT_CONVERGED


@jit
def act_kinked_rows(  # type: ignore[no-untyped-def]
    w, q, kink, lo, hi, price, action, reached, cost, rate, multiplier
):
    """Write the same under a kink, and its multiplier."""
    for i in range(price.shape[0]):
        low, high = lo[i % lo.shape[0]], hi[i % hi.shape[0]]
        m = kink_multiplier(price[i], w, q, kink, low, high)
        reached[i], cost[i] = kink_action(price[i], m, w, q, kink, low, high, action[i])
        rate[i], _ = kink_slopes(price[i], m, w, q, kink, low, high)
        multiplier[i] = m


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
