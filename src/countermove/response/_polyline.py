r"""One person's trade-off as a polyline, and the solutions read off it.

``V(g)``, the least cost of gaining ``g`` score, is convex and its derivative, the
price ``u``, runs along a polyline of knots ``(g, u)`` for every cost here. Level
pieces are straight costs, upright ones kinks. Beyond the last knot the gain
grows at ``rate`` per unit of price (0: no more gain; infinite: level).
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response.compilation import jit
from countermove.response.reduction import FINE
from countermove.response.step import (
    INFLECTION,
    SMALL_STEP,
    TIGHT,
    bend,
    bend_root,
    concave_rise,
    convex_rise,
    half_bend,
    rise,
    rise_and_bend,
    step,
)

HIGHEST_RISE = math.sqrt(0.5)
"""Largest slope of the smoothed step: no price above sharpness times this is ever paid."""
ROOT_STEPS = 200
"""Cap of a bracketed root: bisection alone needs 60 to pass from any bracket to rounding."""


@jit
def excess(g, s, sharpness, g0, u0, lift):  # type: ignore[no-untyped-def]
    """Return the derivative of smoothed step minus cost at gain ``g`` on one piece."""
    return sharpness * rise(sharpness * (s + g)) - u0 - lift * (g - g0)


@jit
def root_of_excess(left, right, s, sharpness, g0, u0, lift):  # type: ignore[no-untyped-def]
    """Return the root between ``left`` (excess > 0) and ``right`` (<= 0), and if it converged."""
    # Newton's step where it stays inside the bracket, bisection elsewhere.
    g = 0.5 * (left + right)
    last = right - left
    for _ in range(ROOT_STEPS):
        risen, bent = rise_and_bend(sharpness * (s + g))
        value = sharpness * risen - u0 - lift * (g - g0)
        if value > 0.0:
            left = g
        else:
            right = g
        slope = sharpness * sharpness * bent - lift
        ahead = g - value / slope if slope < 0.0 else left - 1.0
        newton = left < ahead < right and abs(ahead - g) <= 0.5 * last
        if not newton:
            ahead = 0.5 * (left + right)
        last = abs(ahead - g)
        g = ahead
        small = last <= SMALL_STEP * (1.0 / sharpness + abs(g))
        if (newton and small) or right - left <= TIGHT * (abs(left) + abs(right)):
            return g, True
    return g, right - left <= 1e-10 * (1.0 + abs(g))


@jit
def dips(f_left, slope_left, f_right, slope_right, width):  # type: ignore[no-untyped-def]
    """Return whether a convex function can be negative between two ends where it is not."""
    # Its two end tangents bound it from below; their crossing is the lowest they allow.
    if slope_left >= 0.0 or slope_right <= 0.0:
        return False
    ahead = (f_right - f_left - slope_right * width) / (slope_left - slope_right)
    return f_left + slope_left * ahead <= 0.0


@jit
def peak_in_bend(left, right, f_left, f_right, s, sharpness, g0, u0, lift, convex):  # type: ignore[no-untyped-def]
    """Return a bracket of a local maximum that the signs at both ends do not show."""
    # Below the boundary the excess is convex, then concave: it has at most two zeros, parted by
    # its single extremum. That one is sought only where simple bounds leave the matter open.
    width = right - left
    if convex and (f_left <= 0.0 or f_left - lift * width > 0.0):
        return False, left, right
    if not convex and (f_right > 0.0 or f_right + lift * width <= 0.0):
        return False, left, right
    square, y_left, y_right = sharpness * sharpness, sharpness * (s + left), sharpness * (s + right)
    d_left, d_right = square * bend(y_left) - lift, square * bend(y_right) - lift
    # The concave part is the convex one upside down.
    sign = 1.0 if convex else -1.0
    if not dips(sign * f_left, sign * d_left, sign * f_right, sign * d_right, width):
        return False, left, right
    turn = bend_root(lift / square, y_left, y_right, convex) / sharpness - s
    value = excess(turn, s, sharpness, g0, u0, lift)
    return (value <= 0.0, left, turn) if convex else (value > 0.0, turn, right)


@jit
def far_end(low, s, sharpness, g0, u0, lift):  # type: ignore[no-untyped-def]
    """Return a gain beyond which the excess is negative: its step part falls to 0."""
    width = 1.0 / sharpness
    while excess(low + width, s, sharpness, g0, u0, lift) > 0.0 and width < 1e300:
        width *= 2.0
    return low + width


@jit
def part_end(part, right, s, sharpness):  # type: ignore[no-untyped-def]
    """Return where a piece leaves the convex (0), concave (1) and falling (2) part of the slope."""
    if part == 0:
        return min(right, -INFLECTION / sharpness - s)
    return min(right, -s) if part == 1 else right


@jit
def peak_on_piece(g0, right, u0, lift, v0, s, sharpness, first):  # type: ignore[no-untyped-def]
    """Return ``(gain, value, converged)`` of the highest (or first) local maximum on one piece."""
    # The value is minus infinity where the piece has none.
    best_g, best_value, best_ok = g0, -np.inf, False
    low, f_low = g0, excess(g0, s, sharpness, g0, u0, lift)
    for part in range(3):
        high = part_end(part, right, s, sharpness)
        if high <= low:
            continue
        if math.isinf(high):
            high = far_end(low, s, sharpness, g0, u0, lift)
        f_high = excess(high, s, sharpness, g0, u0, lift)
        found, left, end = f_low > 0.0 >= f_high, low, high
        if not found and part < 2:
            found, left, end = peak_in_bend(
                low, high, f_low, f_high, s, sharpness, g0, u0, lift, part == 0
            )
        if found:
            g, ok = root_of_excess(left, end, s, sharpness, g0, u0, lift)
            value = step(sharpness * (s + g)) - v0 - (u0 + 0.5 * lift * (g - g0)) * (g - g0)
            if value > best_value:
                best_g, best_value, best_ok = g, value, ok
            if first:
                break
        low, f_low = high, f_high
    return best_g, best_value, best_ok


@jit
def peak(G, U, V, count, rate, s, sharpness, first):  # type: ignore[no-untyped-def]
    r"""Return ``(gain, price, value, converged)`` of :math:`\max_g \sigma^*(s+g) - V(g)`."""
    # All local maxima are found, piece by piece, and the highest kept (the cheapest among
    # equals); with ``first``, the first one: where the convex-concave procedure ends when started
    # at x.
    best_g, best_u, best_value, best_ok = G[0], U[0], -np.inf, False
    for k in range(count):
        g0, u0, last = G[k], U[k], k == count - 1
        if (last and rate == 0.0) or (not last and G[k + 1] <= g0):
            # An upright piece: a kink, or nothing left to gain.
            g, ok, price = g0, True, sharpness * rise(sharpness * (s + g0))
            inside = price > u0 and (last or price <= U[k + 1])
            value = step(sharpness * (s + g0)) - V[k] if inside else -np.inf
        else:
            right = np.inf if last else G[k + 1]
            lift = 1.0 / rate if last else (U[k + 1] - u0) / (right - g0)
            g, value, ok = peak_on_piece(g0, right, u0, lift, V[k], s, sharpness, first)
            price = u0 + lift * (g - g0)
        if value > best_value:
            best_g, best_u, best_value, best_ok = g, price, value, ok
        if first and best_value > -np.inf:
            break
    return best_g, best_u, best_value, best_ok


@jit
def proxy_peak(G, U, count, rate, s, sharpness, pull):  # type: ignore[no-untyped-def]
    """Return gain and price of the concave proxy, ``pull`` the slope of its straight part."""
    # max pull g - sqrt((sharpness (s + g) - 1)² + 1)/2 - V(g): its derivative falls strictly, so
    # the one root is bracketed on the one piece it lies on.
    k = 0
    while k < count - 1:
        slope = pull + sharpness * concave_rise(sharpness * (s + G[k + 1]))
        if slope <= U[k + 1]:
            break
        k += 1
    g0, u0 = G[k], U[k]
    last = k == count - 1
    slope = pull + sharpness * concave_rise(sharpness * (s + g0))
    if slope <= u0 or (last and rate == 0.0) or (not last and G[k + 1] <= g0):
        return g0, max(slope, u0)
    lift = 1.0 / rate if last else (U[k + 1] - u0) / (G[k + 1] - g0)
    left = g0
    right = G[k + 1] if not last else g0 + 1.0 / sharpness
    while last and pull + sharpness * concave_rise(sharpness * (s + right)) > u0 + lift * (
        right - g0
    ):
        right = g0 + 2.0 * (right - g0)
        if right - g0 > 1e300:
            return np.inf, u0
    g = 0.5 * (left + right)
    for _ in range(ROOT_STEPS):
        y = sharpness * (s + g)
        value = pull + sharpness * concave_rise(y) - u0 - lift * (g - g0)
        if value > 0.0:
            left = g
        else:
            right = g
        ahead = g + value / (sharpness * sharpness * half_bend(y - 1.0) + lift)
        newton = left < ahead < right
        if not newton:
            ahead = 0.5 * (left + right)
        small = abs(ahead - g) <= SMALL_STEP * (1.0 / sharpness + abs(g))
        g = ahead
        if (newton and small) or right - left <= TIGHT * (abs(left) + abs(right)):
            break
    return g, u0 + lift * (g - g0)


@jit
def fill_costs(G, U, V, count, start):  # type: ignore[no-untyped-def]
    """Integrate the price along the knots into ``V``, from the cost ``start`` at the first."""
    V[0] = start
    for k in range(1, count):
        V[k] = V[k - 1] + 0.5 * (U[k - 1] + U[k]) * (G[k] - G[k - 1])


@jit
def price_of_gain(G, U, V, count, rate, target):  # type: ignore[no-untyped-def]
    """Return price and least cost of gaining ``target`` (infinite where out of reach)."""
    if target <= G[0]:
        return U[0], V[0]
    k = 0
    while k < count - 1 and G[k + 1] < target:
        k += 1
    ahead = target - G[k]
    if k < count - 1:
        u = U[k] + (U[k + 1] - U[k]) * (ahead / (G[k + 1] - G[k]))
    elif rate > 0.0:
        u = U[k] + ahead / rate
    else:
        return np.inf, np.inf
    return u, V[k] + 0.5 * (U[k] + u) * ahead


@jit
def gain_of_budget(G, U, V, count, rate, budget):  # type: ignore[no-untyped-def]
    """Return the largest gain, and its price, for a cost of at most ``budget`` (>= V[0])."""
    k = 0
    while k < count - 1 and V[k + 1] <= budget:
        k += 1
    last = k == count - 1
    if (last and rate == 0.0) or (not last and G[k + 1] <= G[k]):
        return G[k], U[k]
    lift = 1.0 / rate if last else (U[k + 1] - U[k]) / (G[k + 1] - G[k])
    left = budget - V[k]
    # Solve lift/2 d^2 + U d = left for d >= 0 in the form that never cancels.
    root = math.sqrt(U[k] * U[k] + 2.0 * lift * left)
    if root + U[k] <= 0.0:
        return (np.inf if last else G[k + 1]), U[k]
    ahead = 2.0 * left / (root + U[k])
    return G[k] + ahead, U[k] + lift * ahead


@jit
def peak_rows(G, U, V, count, rate, s, sharpness, first, factors, gain, price, ok):  # type: ignore[no-untyped-def]
    """Solve the smoothed step on everybody's polyline (one for all, if only one is given)."""
    # ``factors`` multiply the polyline's cost, for all or person by person; the price written is
    # that of the polyline as it is.
    own_U, own_V = np.empty(G.shape[1]), np.empty(G.shape[1])
    for i in range(s.shape[0]):
        k, factor = i % G.shape[0], factors[i % factors.shape[0]]
        for j in range(count[k]):
            own_U[j], own_V[j] = factor * U[k, j], factor * V[k, j]
        gain[i], own, _, ok[i] = peak(
            G[k], own_U, own_V, count[k], rate[k] / factor, s[i], sharpness, first
        )
        price[i] = own / factor


@jit
def proxy_rows(G, U, count, rate, s, sharpness, last, gain, price):  # type: ignore[no-untyped-def]
    """Solve the concave proxy linearised at the score ``last`` on everybody's polyline."""
    for i in range(s.shape[0]):
        k = i % G.shape[0]
        pull = sharpness * convex_rise(sharpness * last[i])
        gain[i], price[i] = proxy_peak(G[k], U[k], count[k], rate[k], s[i], sharpness, pull)


@jit
def crossing_rows(G, U, V, count, rate, need, price, cost):  # type: ignore[no-untyped-def]
    """Write price and least cost, above the cheapest action's, of gaining ``need``."""
    for i in range(need.shape[0]):
        k = i % G.shape[0]
        price[i], spent = price_of_gain(G[k], U[k], V[k], count[k], rate[k], need[i])
        cost[i] = spent - V[k, 0]


@jit
def budget_rows(G, U, V, count, rate, budgets, gain, price, spent):  # type: ignore[no-untyped-def]
    """Write the largest gain for a budget above the cheapest action's cost, and its price."""
    # ``budgets``: one, or one per person. ``spent``: whether it is used up; where bounds stop a
    # person first, it is not.
    for i in range(gain.shape[0]):
        k = i % G.shape[0]
        total = V[k, 0] + budgets[i % budgets.shape[0]]
        gain[i], price[i] = gain_of_budget(G[k], U[k], V[k], count[k], rate[k], total)
        last = count[k] - 1
        spent[i] = not (rate[k] == 0.0 and gain[i] >= G[k, last] and V[k, last] < total)


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
