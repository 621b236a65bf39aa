r"""Trade-off polylines of costs without cross terms.

For a price ``u`` per unit of score a person takes the action that solves

.. math:: \min_\delta\; \sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta) - u\,w\cdot\delta,
          \qquad lo \le \delta \le hi,

that is :math:`\delta_j = clip((u w_j - m \ell_j)/2q_j, lo_j, hi_j)` with one kink multiplier m.
"""

from __future__ import annotations

import numpy as np

from countermove.response._compile import jit
from countermove.response._polyline import fill_costs
from countermove.response._solutions import FINE, NOT_CONVERGED

CREEP = 1e-10
"""Relative step past a knot at which the next piece's active set is read off."""
MATCH = 1e-8
"""A piece is trusted when its predicted end and the solved end agree to this share."""


@jit
def insert_event(events, changes, count, u, change):  # type: ignore[no-untyped-def]
    """Insert an event into the sorted list."""
    k = count
    while k > 0 and events[k - 1] > u:
        events[k] = events[k - 1]
        changes[k] = changes[k - 1]
        k -= 1
    events[k] = u
    changes[k] = change
    return count + 1


@jit
def moving_window(w, q, lo, hi):  # type: ignore[no-untyped-def]
    """Return the prices at which one feature starts and stops moving."""
    near, far = (lo, hi) if w > 0.0 else (hi, lo)
    return 2.0 * q * near / w, 2.0 * q * far / w


@jit
def diagonal_knots(w, q, lo, hi, cap, events, changes, G, U):  # type: ignore[no-untyped-def]
    """Trace the polyline without a kink, up to price ``cap``; return ``(count, rate, start)``."""
    # Each feature starts and stops moving once. ``rate`` is the gain per price beyond the knots,
    # ``start`` the cost at price 0.
    count, listed, moving = 1, 0, 0
    rate, gain, start = 0.0, 0.0, 0.0
    for j in range(w.shape[0]):
        at_zero = min(max(0.0, lo[j]), hi[j])
        start += q[j] * at_zero * at_zero
        gain += w[j] * at_zero
        if w[j] == 0.0 or lo[j] == hi[j]:
            continue
        share = w[j] * w[j] / (2.0 * q[j])
        begin, end = moving_window(w[j], q[j], lo[j], hi[j])
        if begin <= 0.0 < end:
            rate += share
            moving += 1
        elif 0.0 < begin <= cap:
            listed = insert_event(events, changes, listed, begin, share)
        if 0.0 < end <= cap and end < np.inf:
            listed = insert_event(events, changes, listed, end, -share)
    G[0], U[0] = gain, 0.0
    for k in range(listed):
        if events[k] > U[count - 1]:
            gain += rate * (events[k] - U[count - 1])
            G[count], U[count] = gain, events[k]
            count += 1
        moving += 1 if changes[k] > 0.0 else -1
        rate = rate + changes[k] if moving > 0 else 0.0
    return count, rate, start


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
def trace_boxed_rows(w, q, lo, hi, cap, G, U, V, count, rate, status):  # type: ignore[no-untyped-def]
    """Trace everybody's polyline under a quadratic cost without a kink."""
    d = w.shape[0]
    events, changes = np.empty(2 * d), np.empty(2 * d)
    for i in range(lo.shape[0]):
        count[i], rate[i], start = diagonal_knots(
            w, q, lo[i], hi[i], cap, events, changes, G[i], U[i]
        )
        fill_costs(G[i], U[i], V[i], count[i], start)
        status[i] = FINE


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
def act_boxed_rows(w, q, lo, hi, price, action, reached, cost, rate):  # type: ignore[no-untyped-def]
    """Write everybody's action at their price, its gain and cost, and gain per price there."""
    for i in range(price.shape[0]):
        low, high = lo[i % lo.shape[0]], hi[i % hi.shape[0]]
        reached[i], cost[i], rate[i] = 0.0, 0.0, 0.0
        for j in range(w.shape[0]):
            free = price[i] * w[j] / (2.0 * q[j])
            move = min(max(free, low[j]), high[j])
            action[i, j] = move
            reached[i] += w[j] * move
            cost[i] += q[j] * move * move
            if low[j] < free < high[j]:
                rate[i] += w[j] * w[j] / (2.0 * q[j])


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
