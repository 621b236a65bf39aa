"""People whom a bound stops, under costs without cross terms: a block side by side.

Their price solves one equation along the clipped action. Newton's steps on it are
taken for all people of a block at once, feature by feature; each stands still once arrived.
Whoever does not arrive, or may have several local maxima, has the whole polyline traced. Under a
kink the one price that gains what is needed is sought person by person.
"""

from __future__ import annotations

import numpy as np

from countermove.response._compile import jit
from countermove.response._polyline import HIGHEST_RISE, peak, price_of_gain
from countermove.response._response_curve import LEFT_OVER
from countermove.response._score_and_box import make_buffers, row_box, row_of, trace_box
from countermove.response._separable_knots import kink_action, kink_multiplier, kink_slopes
from countermove.response._solutions import FINE
from countermove.response.step import rise_and_bend

BLOCK = 128
"""People side by side: their rows stay in the nearest cache."""
STEPS = 16
"""Newton's steps a block takes; four are usual."""
KINK_STEPS = 30
"""Newton's steps on the price under a kink, guarded by a bracket; five are usual."""
PREDICTED = 1e-14
"""Share of its size, in step units, by which a gain may differ from what was predicted."""

# Columns of a block lie in one array at fixed distances, so that the compiler sees that
# they do not overlap: column C of person p is ``work[C + p]``. Flags are 0 or 1.
PRICE, SCORE, MARGIN, GAINED, RATE, SPENT, START, FLOOR = range(0, 8 * BLOCK, BLOCK)
LEFT, RIGHT, AHEAD, SINGLE, SMALL, DONE, FEASIBLE = range(8 * BLOCK, 15 * BLOCK, BLOCK)


@jit
def make_stopped(d):  # type: ignore[no-untyped-def]
    """Allocate a block's boxes (turned: people lie side by side), columns and one polyline."""
    return np.empty((d, BLOCK)), np.empty((d, BLOCK)), np.empty(15 * BLOCK), make_buffers(d)


@jit
def load_boxes(X, who, m, bounds, slack, stopped):  # type: ignore[no-untyped-def]
    """Write the boxes of actions of the people ``who``, and whether each holds any action."""
    lower, upper, low, high, _ = bounds
    lo, hi, work, _ = stopped
    for p in range(m):
        i = who[p]
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        empty = 0
        for j in range(X.shape[1]):
            below, above = low[c, j] - X[i, j], high[e, j] - X[i, j]
            room = slack * (1.0 + abs(X[i, j]))
            # A place just outside its bounds is rounding, not a need to move.
            below = 0.0 if (below > 0.0) & (below <= room) else below
            above = 0.0 if (above < 0.0) & (above >= -room) else above
            least = lower[a, j] if lower[a, j] > below else below
            most = upper[b, j] if upper[b, j] < above else above
            lo[j, p], hi[j, p] = least, most
            empty |= not least <= most
        work[FEASIBLE + p] = 1.0 if empty == 0 else 0.0


@jit
def act_at(price, m, slope, weights, direction, stopped):  # type: ignore[no-untyped-def]
    """Write gain, gain per price and cost of everybody's clipped action at column ``price``."""
    lo, hi, work, _ = stopped
    for p in range(m):
        work[GAINED + p] = work[RATE + p] = work[SPENT + p] = 0.0
    for j in range(slope.shape[0]):
        along, score, weight = direction[j], slope[j], weights[j]
        for p in range(m):
            free = work[price + p] * along
            action = free if free > lo[j, p] else lo[j, p]
            action = action if action < hi[j, p] else hi[j, p]
            work[GAINED + p] += score * action
            work[SPENT + p] += weight * action * action
            work[RATE + p] += score * along if action == free else 0.0


@jit
def begin(m, slope, weights, direction, stopped):  # type: ignore[no-untyped-def]
    """Write gain and cost of the cheapest allowed actions, and open the brackets."""
    work = stopped[2]
    for p in range(m):
        work[LEFT + p] = work[DONE + p] = work[SMALL + p] = 0.0
    act_at(LEFT, m, slope, weights, direction, stopped)
    for p in range(m):
        work[START + p], work[FLOOR + p] = work[GAINED + p], work[SPENT + p]


@jit
def trace_alone(p, slope, weights, cap, stopped):  # type: ignore[no-untyped-def]
    """Trace the polyline of one person of the block; return its knots and the rate beyond."""
    lo, hi, _, buffers = stopped
    for j in range(lo.shape[0]):
        buffers[0][j], buffers[1][j] = lo[j, p], hi[j, p]
    return trace_box(slope, weights, cap, buffers)


@jit
def cross_stopped(who, m, slope, weights, direction, free, gains, stopped):  # type: ignore[no-untyped-def]
    """Replace the price by that of crossing, zero for those who do not; DONE marks who does."""
    # ``free`` is the gain per price without bounds.
    work, buffers = stopped[2], stopped[3]
    begin(m, slope, weights, direction, stopped)
    for p in range(m):
        work[PRICE + p] = (work[MARGIN + p] - work[SCORE + p]) / free if free > 0.0 else 0.0
        work[RIGHT + p] = np.inf
    arrive(m, slope, weights, direction, stopped)
    for p in range(m):
        crosses = False
        if work[SCORE + p] + work[START + p] < 0.0:
            cost = work[SPENT + p]
            if work[DONE + p] == 0.0:
                count, tail = trace_alone(p, slope, weights, np.inf, stopped)
                need = work[MARGIN + p] - work[SCORE + p]
                work[PRICE + p], cost = price_of_gain(*buffers[2:5], count, tail, need)
            crosses = cost - work[FLOOR + p] < gains[row_of(gains, who[p])]
        work[DONE + p] = 1.0 if crosses else 0.0
        work[PRICE + p] = work[PRICE + p] if crosses else 0.0
    act_at(PRICE, m, slope, weights, direction, stopped)


@jit
def arrive(m, slope, weights, direction, stopped):  # type: ignore[no-untyped-def]
    """Take Newton's steps to ``gain(u) = margin - s``, exact once on the right piece."""
    work = stopped[2]
    for _ in range(STEPS):
        act_at(PRICE, m, slope, weights, direction, stopped)
        waiting = 0
        for p in range(m):
            u, margin = work[PRICE + p], work[MARGIN + p]
            miss = margin - work[SCORE + p] - work[GAINED + p]
            done = (miss <= 0.5 * margin) & (miss >= -margin)
            left = u if miss > 0.0 else work[LEFT + p]
            right = work[RIGHT + p] if miss > 0.0 else u
            ahead = u + miss / work[RATE + p]
            ahead = ahead if (ahead > left) & (ahead < right) else 0.5 * (left + right)
            # Where nothing moves and nothing bounds the price the polyline is needed.
            lost = not ahead < np.inf
            there = work[SCORE + p] + work[START + p] >= 0.0
            work[LEFT + p], work[RIGHT + p] = left, right
            work[DONE + p] = 1.0 if done else 0.0
            work[PRICE + p] = u if done | lost else ahead
            waiting += not (done | lost | there)
        if waiting == 0:
            return


@jit
def settle_stopped(m, slope, weights, direction, sharpness, curve, first, stopped):  # type: ignore[no-untyped-def]
    """Replace the price by that of the smoothed step's solution; DONE marks who converged."""
    work, buffers = stopped[2], stopped[3]
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9)
    begin(m, slope, weights, direction, stopped)
    for p in range(m):
        work[RIGHT + p] = cap
        work[PRICE + p] = min(work[PRICE + p], cap)
    act_at(RIGHT, m, slope, weights, direction, stopped)
    for p in range(m):
        # Off the fold the objective bends one way only: there is a single solution.
        beyond = sharpness * (work[SCORE + p] + work[START + p]) >= curve.high_fold
        short = sharpness * (work[SCORE + p] + work[GAINED + p]) <= curve.low_fold
        single = (curve.low_fold == curve.high_fold) | beyond | short
        work[SINGLE + p] = 1.0 if single else 0.0
    balance(m, slope, weights, direction, sharpness, curve.c, stopped)
    for p in range(m):
        if work[DONE + p] == 0.0 or work[SINGLE + p] == 0.0:
            count, tail = trace_alone(p, slope, weights, cap, stopped)
            s = work[SCORE + p]
            _, u, _, ok = peak(*buffers[2:5], count, tail, s, sharpness, first)
            work[PRICE + p], work[DONE + p] = u, (1.0 if ok else 0.0)
    act_at(PRICE, m, slope, weights, direction, stopped)


@jit
def balance(m, slope, weights, direction, sharpness, c, stopped):  # type: ignore[no-untyped-def]
    """Take Newton's steps to the price that equals the slope of the step where it leads to."""
    # A person has arrived when a step that leaves too little to matter gained what its rate
    # predicted: no feature has started or stopped moving on the way.
    work = stopped[2]
    for _ in range(STEPS):
        act_at(PRICE, m, slope, weights, direction, stopped)
        waiting = 0
        for p in range(m):
            u, gained, rate = work[PRICE + p], work[GAINED + p], work[RATE + p]
            risen, bent = rise_and_bend(sharpness * (work[SCORE + p] + gained))
            gap = sharpness * abs(gained - work[AHEAD + p])
            same = gap <= PREDICTED * (1.0 + sharpness * abs(gained))
            done = (work[DONE + p] > 0.0) | ((work[SMALL + p] > 0.0) & same)
            miss = sharpness * risen - u
            left = u if miss > 0.0 else work[LEFT + p]
            right = work[RIGHT + p] if miss > 0.0 else u
            steep = 1.0 - sharpness * sharpness * bent * rate
            ahead = u + miss / steep
            newton = (steep > 0.0) & (ahead >= left) & (ahead <= right)
            ahead = ahead if newton else 0.5 * (left + right)
            move = sharpness * rate * (ahead - u)
            small = (c * move * move <= LEFT_OVER * steep) | (abs(miss) <= 4e-16 * u)
            work[LEFT + p], work[RIGHT + p] = left, right
            work[SMALL + p] = 1.0 if newton & small else 0.0
            work[AHEAD + p] = gained + rate * (ahead - u)
            work[DONE + p] = 1.0 if done else 0.0
            work[PRICE + p] = u if done else ahead
            waiting += not (done | (work[SINGLE + p] == 0.0))
        if waiting == 0:
            return


@jit
def put_stopped(X, i, p, direction, low, high, stopped, as_action, out):  # type: ignore[no-untyped-def]
    """Write the clipped action, or the place it leads to, exactly inside its bounds."""
    lo, hi, work, _ = stopped
    a, b, u = row_of(low, i), row_of(high, i), work[PRICE + p]
    for j in range(X.shape[1]):
        action = u * direction[j]
        action = action if action > lo[j, p] else lo[j, p]
        action = action if action < hi[j, p] else hi[j, p]
        there = X[i, j] + action
        there = there if there > low[a, j] else low[a, j]
        there = there if there < high[b, j] else high[b, j]
        place = there if action != 0.0 else X[i, j]
        out[i, j] = action if as_action else place


@jit
def price_to_gain(need, slack, w, q, kink, lo, hi, action):  # type: ignore[no-untyped-def]
    """Return ``(price, multiplier, cost, hit)`` of gaining ``need``; the action is written."""
    u, left, right = 0.0, 0.0, np.inf
    for _ in range(KINK_STEPS):
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
    """Solve the hard step for person ``i``; the status stays as it is if that is left open."""
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
