r"""Trade-off polylines with cross terms or extra constraints.

With :math:`H = 2M` and constraints :math:`G\delta + h \ge 0` the action at price u is
:math:`\delta = H^{-1}(u w + G^\top\lambda)`, and the multipliers solve
:math:`0 \le \lambda \perp P\lambda + u r + h \ge 0` with :math:`P = GH^{-1}G^\top`,
:math:`r = GH^{-1}w`: an active-set problem whose pieces are straight in u.
"""

from __future__ import annotations

import math

import numpy as np

from countermove.response._knots import CREEP, MATCH
from countermove.response._polyline import fill_costs
from countermove.response.compilation import jit
from countermove.response.reduction import FINE, INFEASIBLE, NOT_CONVERGED

ROUNDING = 1e-13
"""A constraint counts as violated, or as dependent on the active ones, beyond this share."""


@jit
def factor(P, active, count, L):  # type: ignore[no-untyped-def]
    """Write the Cholesky factor of the active block; return whether it is well conditioned."""
    for a in range(count):
        for b in range(a + 1):
            total = P[active[a], active[b]]
            for c in range(b):
                total -= L[a, c] * L[b, c]
            if a > b:
                L[a, b] = total / L[b, b]
            elif total <= ROUNDING * P[active[a], active[a]]:
                return False
            else:
                L[a, a] = math.sqrt(total)
    return True


@jit
def back_solve(L, count, right):  # type: ignore[no-untyped-def]
    """Solve ``L L' z = right`` in place."""
    for a in range(count):
        for c in range(a):
            right[a] -= L[a, c] * right[c]
        right[a] /= L[a, a]
    for a in range(count - 1, -1, -1):
        for c in range(a + 1, count):
            right[a] -= L[c, a] * right[c]
        right[a] /= L[a, a]


@jit
def drop(active, count, k, values):  # type: ignore[no-untyped-def]
    """Remove position ``k`` of the active list."""
    values[active[k]] = 0.0
    for a in range(k, count - 1):
        active[a] = active[a + 1]
    return count - 1


@jit
def settle(P, c, active, count, values, L, z):  # type: ignore[no-untyped-def]
    """Move to the minimiser over the active set, dropping multipliers that would turn negative."""
    while count > 0:
        if not factor(P, active, count, L):
            count = drop(active, count, count - 1, values)
            continue
        for a in range(count):
            z[a] = -c[active[a]]
        back_solve(L, count, z)
        step, blocking = 1.0, -1
        for a in range(count):
            if z[a] <= 0.0:
                now = values[active[a]]
                share = now / (now - z[a]) if now > 0.0 else 0.0
                if share <= step:
                    step, blocking = share, a
        for a in range(count):
            values[active[a]] += step * (z[a] - values[active[a]])
        if blocking < 0:
            return count
        count = drop(active, count, blocking, values)
    return count


@jit
def drop_dependent(P, active, count, new, values, L, z):  # type: ignore[no-untyped-def]
    """Free the active set from its dependence on constraint ``new``; -1 if that is infeasible."""
    if not factor(P, active, count, L):
        return -1
    for a in range(count):
        z[a] = P[active[a], new]
    back_solve(L, count, z)
    rest = P[new, new]
    for a in range(count):
        rest -= P[active[a], new] * z[a]
    if rest > ROUNDING * P[new, new]:
        return count
    step, blocking = np.inf, -1
    for a in range(count):
        if z[a] > ROUNDING and values[active[a]] / z[a] < step:
            step, blocking = values[active[a]] / z[a], a
    if blocking < 0:
        return -1
    for a in range(count):
        values[active[a]] = max(values[active[a]] - step * z[a], 0.0)
    values[new] = step
    return drop(active, count, blocking, values)


@jit
def multipliers(u, P, r, h, active, count, values, c, L, z):  # type: ignore[no-untyped-def]
    """Solve for the multipliers at price ``u``, warm; return the active count (-1: infeasible)."""
    size = h.shape[0]
    for i in range(size):
        c[i] = u * r[i] + h[i]
    count = settle(P, c, active, count, values, L, z)
    for _ in range(50 * (size + 1)):
        worst, new = 0.0, -1
        for i in range(size):
            if values[i] > 0.0 or not np.isfinite(h[i]):
                continue
            slackness, scale = c[i], abs(u * r[i]) + abs(h[i])
            for a in range(count):
                part = P[i, active[a]] * values[active[a]]
                slackness += part
                scale += abs(part)
            if slackness < -10.0 * ROUNDING * scale and slackness < worst:
                worst, new = slackness, i
        if new < 0:
            return count
        if P[new, new] <= 0.0:
            return -1
        count = drop_dependent(P, active, count, new, values, L, z)
        if count < 0:
            return -1
        active[count] = new
        count = settle(P, c, active, count + 1, values, L, z)
    return -2


@jit
def cold_multipliers(u, P, r, h, active, values, c, L, z):  # type: ignore[no-untyped-def]
    """Solve for the multipliers from nothing."""
    count = 0
    for i in range(h.shape[0]):
        values[i] = 0.0
        count = min(count, i)
    return multipliers(u, P, r, h, active, count, values, c, L, z)


@jit
def dense_gain(u, own, r, values):  # type: ignore[no-untyped-def]
    """Return the score gain at price ``u``; ``own`` is the gain per price without constraints."""
    gain = u * own
    for i in range(r.shape[0]):
        gain += r[i] * values[i]
    return gain


@jit
def dense_piece(u, own, P, r, h, active, count, values, c, L, z):  # type: ignore[no-untyped-def]
    """Return gain per price on the piece that holds ``u``, and the price where it ends."""
    factor(P, active, count, L)
    for a in range(count):
        z[a] = -r[active[a]]
    back_solve(L, count, z)
    rate, wait = own, np.inf
    for a in range(count):
        rate += r[active[a]] * z[a]
        if z[a] < 0.0:
            wait = min(wait, -values[active[a]] / z[a])
    for i in range(h.shape[0]):
        if values[i] > 0.0 or not np.isfinite(h[i]):
            continue
        slackness, speed = c[i], r[i]
        for a in range(count):
            slackness += P[i, active[a]] * values[active[a]]
            speed += P[i, active[a]] * z[a]
        if speed < -1e-12 * abs(r[i]) and slackness > 0.0:
            wait = min(wait, -slackness / speed)
    if rate <= 1e-12 * own:
        rate = 0.0
    return rate, u + wait


@jit
def dense_knots(own, P, r, h, cap, budget, active, values, c, L, z, G, U):  # type: ignore[no-untyped-def]
    """Trace the polyline up to a price or a cost above the start; return ``(count, rate, ok)``."""
    # As with a kink, every knot is solved again and a piece halved until prediction and solution
    # agree.
    live = cold_multipliers(0.0, P, r, h, active, values, c, L, z)
    if live < 0:
        return 0, 0.0, False
    scale = 1.0
    for i in range(h.shape[0]):
        if r[i] != 0.0 and np.isfinite(h[i]) and h[i] != 0.0:
            scale = min(scale, abs(h[i] / r[i]))
    G[0], U[0] = dense_gain(0.0, own, r, values), 0.0
    count, rate, spent = 1, 0.0, 0.0
    while count < G.shape[0]:
        u = U[count - 1]
        inside = u * (1.0 + CREEP) + CREEP * scale
        live = multipliers(inside, P, r, h, active, live, values, c, L, z)
        if live < 0:
            return count, 0.0, False
        rate, end = dense_piece(inside, own, P, r, h, active, live, values, c, L, z)
        if u >= cap or spent > budget or not np.isfinite(end):
            return count, rate, True
        gain = dense_gain(inside, own, r, values)
        reached = gain
        for _ in range(60):
            live = multipliers(end, P, r, h, active, live, values, c, L, z)
            if live < 0:
                return count, 0.0, False
            reached = dense_gain(end, own, r, values)
            predicted = gain + rate * (end - inside)
            if abs(reached - predicted) <= MATCH * (abs(reached - gain) + abs(gain)) + 1e-14:
                break
            end = 0.5 * (inside + end)
        spent += 0.5 * (u + end) * (reached - G[count - 1])
        G[count], U[count] = max(reached, G[count - 1]), end
        count += 1
    return count, rate, False


@jit
def dense_action(u, inverse, rows, slope, matrix, values, push, action):  # type: ignore[no-untyped-def]
    """Write the action at price ``u`` from its multipliers; return its cost."""
    d = slope.shape[0]
    for j in range(d):
        push[j] = u * slope[j]
    for i in range(rows.shape[0]):
        if values[i] > 0.0:
            for j in range(d):
                push[j] += rows[i, j] * values[i]
    cost = 0.0
    for j in range(d):
        action[j] = 0.0
        for k in range(d):
            action[j] += inverse[j, k] * push[k]
    for j in range(d):
        for k in range(d):
            cost += action[j] * matrix[j, k] * action[k]
    return cost


@jit
def tangent(vector, inverse, rows, P, active, count, L, z, out):  # type: ignore[no-untyped-def]
    """Write ``T vector``: the inverse Hessian restricted to moves along the active constraints."""
    d = vector.shape[0]
    for j in range(d):
        out[j] = 0.0
        for k in range(d):
            out[j] += inverse[j, k] * vector[k]
    if count == 0 or not factor(P, active, count, L):
        return
    for a in range(count):
        z[a] = 0.0
        for j in range(d):
            z[a] += rows[active[a], j] * out[j]
    back_solve(L, count, z)
    for k in range(d):
        pushed = 0.0
        for a in range(count):
            pushed += rows[active[a], k] * z[a]
        if pushed != 0.0:
            for j in range(d):
                out[j] -= inverse[j, k] * pushed


@jit
def trace_dense_rows(  # type: ignore[no-untyped-def]
    w, own, inverse, rows, matrix, P, r, h, cap, budget, G, U, V, count, rate, status
):
    """Trace everybody's polyline; ``h`` holds one row of constants per person."""
    m = h.shape[1]
    active, L = np.empty(m + 1, np.int64), np.empty((m + 1, m + 1))
    values, c, z = np.empty(m), np.empty(m), np.empty(m + 1)
    push, action = np.empty(w.shape[0]), np.empty(w.shape[0])
    for i in range(h.shape[0]):
        count[i], rate[i], ok = dense_knots(
            own, P, r, h[i], cap, budget, active, values, c, L, z, G[i], U[i]
        )
        status[i] = FINE if ok else NOT_CONVERGED
        if count[i] == 0:
            status[i] = INFEASIBLE
            continue
        cold_multipliers(0.0, P, r, h[i], active, values, c, L, z)
        start = dense_action(0.0, inverse, rows, w, matrix, values, push, action)
        fill_costs(G[i], U[i], V[i], count[i], start)


@jit
def act_dense_rows(  # type: ignore[no-untyped-def]
    w, own, inverse, rows, matrix, P, r, h, price, action, reached, cost, rate
):
    """Write everybody's action at their price, its gain and cost, and gain per price there."""
    m, d = h.shape[1], w.shape[0]
    active, L = np.empty(m + 1, np.int64), np.empty((m + 1, m + 1))
    values, c, z, push = np.empty(m), np.empty(m), np.empty(m + 1), np.empty(d)
    for i in range(price.shape[0]):
        offsets = h[i % h.shape[0]]
        live = cold_multipliers(price[i], P, r, offsets, active, values, c, L, z)
        rate[i], _ = dense_piece(price[i], own, P, r, offsets, active, live, values, c, L, z)
        cost[i] = dense_action(price[i], inverse, rows, w, matrix, values, push, action[i])
        for a in range(live):
            # Active box rows hold exactly, so that they can be recognised as such.
            k = active[a]
            if k < d:
                action[i, k] = -offsets[k]
            elif k < 2 * d:
                action[i, k - d] = offsets[k]
        reached[i] = 0.0
        for j in range(d):
            reached[i] += w[j] * action[i, j]


@jit
def dense_tangent_rows(inverse, rows, P, r, h, price, vector, moved, edge):  # type: ignore[no-untyped-def]
    """Write T times one vector per person, and what the vector pushes on the box."""
    m, d = h.shape[1], vector.shape[1]
    active, L = np.empty(m + 1, np.int64), np.empty((m + 1, m + 1))
    values, c, z = np.empty(m), np.empty(m), np.empty(m + 1)
    for i in range(price.shape[0]):
        live = cold_multipliers(price[i], P, r, h[i % h.shape[0]], active, values, c, L, z)
        tangent(vector[i], inverse, rows, P, active, live, L, z, moved[i])
        for j in range(d):
            edge[i, j] = vector[i, j] if inverse[j, j] == 0.0 else 0.0
        for a in range(live):
            k = active[a]
            if k < d:
                edge[i, k] += z[a]
            elif k < 2 * d:
                edge[i, k - d] -= z[a]
