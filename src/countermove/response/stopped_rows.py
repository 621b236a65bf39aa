"""People whom a bound stops, under quadratic costs without cross terms: a block side by side.

Their price solves one equation along the clipped action. Newton's steps on it are
taken for all people of a block at once, feature by feature; each stands still once arrived.
Whoever does not arrive, or may have several answers, has the whole polyline traced.
"""

from __future__ import annotations

import numpy as np

from countermove.response.curve import LEFT_OVER
from countermove.response.plain_rows import row_of, trace_box
from countermove.response.polyline import peak, price_of_gain
from countermove.response.smoothing import jit, rise_and_bend

STEPS = 16
"""Newton's steps a block takes; four are usual."""
FORETOLD = 1e-14
"""Share of its size, in step units, by which a gain may differ from what was foretold."""


@jit
def make_stopped(d, block):  # type: ignore[no-untyped-def]
    """Allocate a block's boxes, turned so that people lie side by side, and its columns."""
    columns = (
        np.empty(block), np.empty(block), np.empty(block), np.empty(block), np.empty(block),
        np.empty(block), np.empty(block), np.empty(block), np.empty(block), np.empty(block),
    )  # fmt: skip
    return np.empty((d, block)), np.empty((d, block)), columns


@jit
def load_boxes(X, who, m, lower, upper, low, high, slack, lo, hi, feasible):  # type: ignore[no-untyped-def]
    """Write the boxes of actions of the people ``who``, and whether each holds any action."""
    for p in range(m):
        i = who[p]
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        empty = 0
        for j in range(X.shape[1]):
            below, above = low[c, j] - X[i, j], high[e, j] - X[i, j]
            room = slack * (1.0 + abs(X[i, j]))
            # A place just outside its bounds is rounding, not a wish to move.
            below = 0.0 if (below > 0.0) & (below <= room) else below
            above = 0.0 if (above < 0.0) & (above >= -room) else above
            least = lower[a, j] if lower[a, j] > below else below
            most = upper[b, j] if upper[b, j] < above else above
            lo[j, p], hi[j, p] = least, most
            empty |= not least <= most
        feasible[p] = empty == 0


@jit
def act_at(u, m, slope, weights, direction, lo, hi, gained, rate, spent):  # type: ignore[no-untyped-def]
    """Write gain, gain per price and cost of everybody's clipped action at price ``u``."""
    for p in range(m):
        gained[p], rate[p], spent[p] = 0.0, 0.0, 0.0
    for j in range(slope.shape[0]):
        for p in range(m):
            free = u[p] * direction[j]
            action = free if free > lo[j, p] else lo[j, p]
            action = action if action < hi[j, p] else hi[j, p]
            gained[p] += slope[j] * action
            spent[p] += weights[j] * action * action
            rate[p] += slope[j] * direction[j] if action == free else 0.0


@jit
def one_box(lo, hi, p, buffers):  # type: ignore[no-untyped-def]
    """Copy one person's box into the buffers of a single polyline."""
    for j in range(lo.shape[0]):
        buffers[0][j], buffers[1][j] = lo[j, p], hi[j, p]


@jit
def cross_stopped(  # type: ignore[no-untyped-def]
    m, s, margin, slope, weights, direction, gain, stopped, buffers, u, favoured, crossed
):
    """Write the prices at which stopped people cross, zero for those who do not."""
    lo, hi, columns = stopped
    _, rate, spent, start, floor, right = columns[:6]
    for p in range(m):
        u[p] = 0.0
    act_at(u, m, slope, weights, direction, lo, hi, start, rate, floor)
    free = 0.0
    for j in range(slope.shape[0]):
        free += slope[j] * direction[j]
    for p in range(m):
        favoured[p], crossed[p] = s[p] + start[p] >= 0.0, False
        u[p] = (margin[p] - s[p]) / free if free > 0.0 else 0.0
        right[p] = np.inf
    arrive(m, s, margin, slope, weights, direction, stopped, u, favoured, crossed)
    for p in range(m):
        if favoured[p]:
            u[p], crossed[p] = 0.0, False
            continue
        cost = spent[p]
        if not crossed[p]:
            one_box(lo, hi, p, buffers)
            count, tail = trace_box(slope, weights, np.inf, buffers)
            u[p], cost = price_of_gain(*buffers[2:5], count, tail, margin[p] - s[p])
        crossed[p] = favoured[p] = cost - floor[p] < gain
        u[p] = u[p] if crossed[p] else 0.0


@jit
def arrive(m, s, margin, slope, weights, direction, stopped, u, settled, done):  # type: ignore[no-untyped-def]
    """Take Newton's steps to ``gain(u) = margin - s``, exact once on the right piece.

    ``done`` tells who arrived within the safety margin; ``settled`` people are left out.
    """
    lo, hi, columns = stopped
    gained, rate, spent, _, _, right, left = columns[:7]
    for p in range(m):
        left[p] = 0.0
    for _ in range(STEPS):
        act_at(u, m, slope, weights, direction, lo, hi, gained, rate, spent)
        waiting = 0
        for p in range(m):
            miss = margin[p] - s[p] - gained[p]
            done[p] = (miss <= 0.5 * margin[p]) & (miss >= -margin[p])
            left[p] = u[p] if miss > 0.0 else left[p]
            right[p] = right[p] if miss > 0.0 else u[p]
            ahead = u[p] + miss / rate[p]
            inside = (ahead > left[p]) & (ahead < right[p])
            ahead = ahead if inside else 0.5 * (left[p] + right[p])
            # Where nothing moves and nothing bounds the price the polyline is needed.
            lost = ahead == np.inf
            u[p] = u[p] if done[p] | lost else ahead
            waiting += not (done[p] | settled[p] | lost)
        if waiting == 0:
            break


@jit
def settle_stopped(  # type: ignore[no-untyped-def]
    m, s, slope, weights, direction, sharpness, cap, curve, first, stopped, buffers, u, done
):
    """Write the prices at which stopped people answer the smoothed step, and who converged."""
    lo, hi, columns = stopped
    _, rate, spent, start, floor, right, left, most, alone = columns[:9]
    for p in range(m):
        left[p], right[p] = 0.0, cap
    act_at(right, m, slope, weights, direction, lo, hi, most, rate, spent)
    act_at(left, m, slope, weights, direction, lo, hi, start, rate, floor)
    for p in range(m):
        # Off the fold the objective bends one way only: there is a single answer.
        beyond = sharpness * (s[p] + start[p]) >= curve.high_fold
        short = sharpness * (s[p] + most[p]) <= curve.low_fold
        single = (curve.low_fold == curve.high_fold) | beyond | short
        alone[p], done[p] = (1.0 if single else 0.0), False
        u[p] = min(u[p], cap)
    balance(m, s, slope, weights, direction, sharpness, curve.c, stopped, u, done)
    for p in range(m):
        if not (done[p] and alone[p] > 0.0):
            one_box(lo, hi, p, buffers)
            count, tail = trace_box(slope, weights, cap, buffers)
            _, u[p], _, done[p] = peak(*buffers[2:5], count, tail, s[p], sharpness, first)


@jit
def balance(m, s, slope, weights, direction, sharpness, c, stopped, u, done):  # type: ignore[no-untyped-def]
    """Take Newton's steps to the price that equals the slope of the step where it leads to.

    A person has arrived when a step that leaves too little to matter gained what its
    rate foretold: no feature has started or stopped moving on the way.
    """
    lo, hi, columns = stopped
    gained, rate, spent, _, _, right, left, foretold, alone, small = columns
    for p in range(m):
        small[p] = 0.0
    for _ in range(STEPS):
        act_at(u, m, slope, weights, direction, lo, hi, gained, rate, spent)
        waiting = 0
        for p in range(m):
            risen, bent = rise_and_bend(sharpness * (s[p] + gained[p]))
            gap = sharpness * abs(gained[p] - foretold[p])
            done[p] |= (small[p] > 0.0) & (gap <= FORETOLD * (1.0 + sharpness * abs(gained[p])))
            miss = sharpness * risen - u[p]
            left[p] = u[p] if miss > 0.0 else left[p]
            right[p] = right[p] if miss > 0.0 else u[p]
            steep = 1.0 - sharpness * sharpness * bent * rate[p]
            ahead = u[p] + miss / steep
            newton = (steep > 0.0) & (ahead >= left[p]) & (ahead <= right[p])
            ahead = ahead if newton else 0.5 * (left[p] + right[p])
            move = sharpness * rate[p] * (ahead - u[p])
            near = abs(miss) <= 4e-16 * u[p]
            small[p] = 1.0 if newton & ((c * move * move <= LEFT_OVER * steep) | near) else 0.0
            foretold[p] = gained[p] + rate[p] * (ahead - u[p])
            u[p] = u[p] if done[p] else ahead
            waiting += not (done[p] | (alone[p] == 0.0))
        if waiting == 0:
            break


@jit
def put_stopped(  # type: ignore[no-untyped-def]
    X, i, p, u, slope, weights, direction, low, high, stopped, as_action, write, out
):
    """Write the clipped action, or the place it leads to; return gain, cost and who moved."""
    lo, hi = stopped[0], stopped[1]
    a, b = row_of(low, i), row_of(high, i)
    gained, cost, moved = 0.0, 0.0, False
    for j in range(X.shape[1]):
        action = min(max(u * direction[j], lo[j, p]), hi[j, p])
        gained += slope[j] * action
        cost += weights[j] * action * action
        moved |= action != 0.0
        if write and as_action:
            out[i, j] = action
        elif write:
            there = min(max(X[i, j] + action, low[a, j]), high[b, j])
            out[i, j] = there if action != 0.0 else X[i, j]
    return gained, cost, moved
