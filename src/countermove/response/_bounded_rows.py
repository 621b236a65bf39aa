"""One person's score and box, and the people whom a bound stops, under costs without cross terms.

A stopped person's price solves one equation along the clipped action. Newton's steps on it are
taken for all people of a block at once, feature by feature; each stands still once arrived.
Whoever does not arrive, or may have several local maxima, has the whole polyline traced. Under a
kink the one price that gains what is needed is sought person by person.
"""

from __future__ import annotations

import numpy as np

from countermove.people.action_box import SLACK
from countermove.response._knots import (
    kink_action,
    kink_multiplier,
    kink_slopes,
)
from countermove.response._polyline import (
    HIGHEST_RISE,
    diagonal_knots,
    fill_costs,
    peak,
    price_of_gain,
)
from countermove.response.compilation import jit
from countermove.response.reduction import FINE
from countermove.response.step import LEFT_OVER, rise_and_bend

EPSILON = 2.220446049250313e-16
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
def row_of(bound, i):  # type: ignore[no-untyped-def]
    """Return person ``i``'s row of a bound that may be shared."""
    return i if bound.shape[0] > 1 else 0


@jit
def action_range(x, lower, upper, low, high):  # type: ignore[no-untyped-def]
    """Return the least and the most by which one feature may move from ``x``."""
    # A place just outside its bounds is rounding, not a need to move. No branches: whole rows go
    # through the vector unit.
    below, above, room = low - x, high - x, SLACK * (1.0 + abs(x))
    below = 0.0 if (below > 0.0) & (below <= room) else below
    above = 0.0 if (above < 0.0) & (above >= -room) else above
    return (lower if lower > below else below), (upper if upper < above else above)


@jit
def row_box(x, i, bounds, lo, hi):  # type: ignore[no-untyped-def]
    """Write person ``i``'s box of actions; return whether it holds any action."""
    lower, upper, low, high = bounds[:4]
    a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
    empty = 0
    for j in range(x.shape[0]):
        lo[j], hi[j] = action_range(x[j], lower[a, j], upper[b, j], low[c, j], high[e, j])
        empty |= not lo[j] <= hi[j]
    return empty == 0


@jit
def box_rows(X, who, bounds):  # type: ignore[no-untyped-def]
    """Return the boxes of actions of the people ``who``, whose rows are ``X``."""
    lo, hi = np.empty_like(X), np.empty_like(X)
    for p in range(X.shape[0]):
        row_box(X[p], who[p], bounds, lo[p], hi[p])
    return lo, hi


@jit
def landing(x, action, low, high, as_action):  # type: ignore[no-untyped-def]
    """Return an action, or where it leads from ``x``, exactly inside the bounds on places."""
    there = x + action
    there = there if there > low else low
    there = there if there < high else high
    place = there if action != 0.0 else x
    return action if as_action else place


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
def make_stopped(d):  # type: ignore[no-untyped-def]
    """Allocate a block's boxes (turned: people lie side by side), columns and one polyline."""
    return np.empty((d, BLOCK)), np.empty((d, BLOCK)), np.empty(15 * BLOCK), make_buffers(d)


@jit
def load_boxes(X, who, m, bounds, stopped):  # type: ignore[no-untyped-def]
    """Write the boxes of actions of the people ``who``, and whether each holds any action."""
    lower, upper, low, high, _ = bounds
    lo, hi, work, _ = stopped
    for p in range(m):
        i = who[p]
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        empty = 0
        for j in range(X.shape[1]):
            least, most = action_range(X[i, j], lower[a, j], upper[b, j], low[c, j], high[e, j])
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
    """Write the clipped action, or the place it leads to."""
    lo, hi, work, _ = stopped
    a, b, u = row_of(low, i), row_of(high, i), work[PRICE + p]
    for j in range(X.shape[1]):
        action = u * direction[j]
        action = action if action > lo[j, p] else lo[j, p]
        action = action if action < hi[j, p] else hi[j, p]
        out[i, j] = landing(X[i, j], action, low[a, j], high[b, j], as_action)


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
    X, i, s, margin, slope, weights, kink, bounds, gain, buffers, as_action, write, solution
):
    """Solve the hard step for person ``i``; the status stays as it is if that is left open."""
    low, high = bounds[2], bounds[3]
    lo, hi, action = buffers[0], buffers[1], buffers[2]
    if not row_box(X[i], i, bounds, lo, hi):
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
    solution.status[i], solution.price[i], solution.multiplier[i] = FINE, u, m
    solution.cost[i], solution.favoured[i], solution.crossed[i] = spent, there | crosses, crosses
    a, b, moved = row_of(low, i), row_of(high, i), False
    for j in range(X.shape[1]):
        moved |= action[j] != 0.0
        if write:
            solution.out[i, j] = landing(X[i, j], action[j], low[a, j], high[b, j], as_action)
    solution.moved[i] = moved
