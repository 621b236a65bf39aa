r"""The compiled rows of costs without cross terms: one pass from features to response.

Under :math:`\sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta)` a person without bounds acts by
:math:`\delta = (u w - m \ell)/2q` at the price u: two straight pieces, one if the kink never acts.
A block of people at a time is solved so; where that is allowed it is the response, and only the
others need more work. Nothing is summed across people: nobody's result depends on the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from countermove._types import Floats
from countermove.response._bounded_rows import (
    BLOCK,
    DONE,
    FEASIBLE,
    GAINED,
    MARGIN,
    PRICE,
    SCORE,
    SPENT,
    START,
    cross_kinked,
    cross_stopped,
    load_boxes,
    make_stopped,
    put_stopped,
    row_of,
    row_score,
    safety,
    settle_stopped,
)
from countermove.response._polyline import peak
from countermove.response.compilation import jit
from countermove.response.reduction import (
    BOXED,
    FINE,
    FREE,
    INFEASIBLE,
    KINKED,
    NOT_CONVERGED,
    NOT_FINITE,
    STOPPED,
    Reduction,
)
from countermove.response.step import follow_block, make_curve, make_grid, rise

FLAT = 1e-6
"""On the kink, less than this share of the rate beyond it is rounding: no closed form then."""


class UnboundedPath(NamedTuple):
    """Two pieces: the action at price u is ``u * along[k] + start[k]``."""

    turn: float  # the price at which the kink is left; infinite without a second piece
    turn_gain: float  # the score gained there
    rate: float  # gain per price on the first piece
    beyond: float  # and on the second
    lost: float  # the second piece gains u * beyond - lost
    share: float  # kink multiplier per price on the first piece
    along: Floats  # (2, d)
    start: Floats  # (2, d)


def unbounded_path(reduction: Reduction) -> UnboundedPath | None:
    """Return the closed form of a cost without cross terms; None where there is none."""
    arrays, moving = reduction.arrays, reduction.plan.moving
    if arrays.kind not in (FREE, BOXED, KINKED):
        return None
    inverse = moving / (2.0 * arrays.weights)
    straight = arrays.slope * inverse
    kink = arrays.kink * moving
    pull, square = float(kink @ straight), float(kink @ (kink * inverse))
    if arrays.kind != KINKED or not pull > 0.0:
        # Whoever moves up the score moves down the kink, or along it: it never costs.
        return straight_path(arrays.slope, straight)  # type: ignore[no-any-return]
    beyond = float(arrays.slope @ straight)
    share = pull / square
    level = (arrays.slope - share * kink) * inverse
    rate = float(arrays.slope @ level)
    if rate <= FLAT * beyond:
        return None
    turn, along = 1.0 / share, np.vstack([level, straight])
    start = np.vstack([np.zeros_like(kink), -kink * inverse])
    return UnboundedPath(turn, turn * rate, rate, beyond, pull, share, along, start)


@jit
def straight_path(slope, direction):  # type: ignore[no-untyped-def]
    """Return the path of people who move along one direction, whatever the price."""
    rate, along = 0.0, np.empty((2, slope.shape[0]))
    for j in range(slope.shape[0]):
        rate += slope[j] * direction[j]
        along[0, j] = along[1, j] = direction[j]
    return UnboundedPath(np.inf, np.inf, rate, rate, 0.0, 0.0, along, np.zeros_like(along))


@jit
def unbounded_price(path, need):  # type: ignore[no-untyped-def]
    """Return price and least cost of gaining ``need`` > 0."""
    if need <= path.turn_gain:
        u = need / path.rate
        return u, 0.5 * u * need
    u = path.turn + (need - path.turn_gain) / path.beyond
    return u, 0.5 * path.turn * path.turn_gain + 0.5 * (path.turn + u) * (need - path.turn_gain)


@jit
def unbounded_gain(path, u):  # type: ignore[no-untyped-def]
    """Return gain, cost and kink multiplier at price ``u``."""
    if u <= path.turn:
        gained = path.rate * u
        return gained, 0.5 * u * gained, path.share * u
    gained = path.beyond * u - path.lost
    ahead = gained - path.turn_gain
    return gained, 0.5 * path.turn * path.turn_gain + 0.5 * (path.turn + u) * ahead, 1.0


@jit
def aim(path, slope, need, slack, u):  # type: ignore[no-untyped-def]
    """Correct a price by what its action misses of ``need``; return it and whether it hits."""
    # On the kink features pull against each other, so that the gain of the action as rounded may
    # miss by more than the safety margin ``slack``.
    for _ in range(4):
        k = 0 if u <= path.turn else 1
        reached = 0.0
        for j in range(slope.shape[0]):
            reached += slope[j] * (u * path.along[k, j] + path.start[k, j])
        miss = need - reached
        if -slack <= miss <= 0.5 * slack:
            return u, True
        u += miss / (path.rate if k == 0 else path.beyond)
    return u, False


@jit
def make_block():  # type: ignore[no-untyped-def]
    """Allocate a block's columns: numbers, flags, people."""
    numbers = (
        np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    )  # fmt: skip
    flags = (np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_), np.empty(BLOCK, np.bool_))
    return numbers, flags, np.empty(BLOCK, np.int64)


@jit
def score_block(X, first, m, known, s):  # type: ignore[no-untyped-def]
    """Write the scores of ``m`` people from row ``first``."""
    scores, weight, bias = known
    for p in range(m):
        s[p] = scores[first + p] if scores.shape[0] > 0 else row_score(X[first + p], weight, bias)


@jit
def place_block(X, first, m, u, path, bounds, as_action, write, out, spare, outside):  # type: ignore[no-untyped-def]
    """Write the free actions, or the places they lead to, and who may not take theirs."""
    lower, upper, low, high, bounded = bounds
    base = 0.0 if as_action else 1.0
    for p in range(m):
        i, price = first + p, u[p]
        k = 0 if price <= path.turn else 1
        row = out[i] if write else spare
        if not bounded:
            outside[p] = False
            for j in range(X.shape[1]):
                row[j] = base * X[i, j] + (price * path.along[k, j] + path.start[k, j])
            continue
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        wrong = 0
        for j in range(X.shape[1]):
            # No early exit: the whole row goes through the vector unit.
            action = price * path.along[k, j] + path.start[k, j]
            there = X[i, j] + action
            wrong |= (action < lower[a, j]) | (action > upper[b, j])
            wrong |= (there < low[c, j]) | (there > high[e, j])
            row[j] = base * X[i, j] + action
        outside[p] = wrong != 0


@jit
def free_crossings(X, first, m, s, known, slope, path, kinked, gains, margin, u, missed):  # type: ignore[no-untyped-def]
    """Write everybody's price of crossing without bounds, zero for those who do not cross."""
    scores, weight, bias = known
    for p in range(m):
        margin[p], u[p], missed[p] = 0.0, 0.0, False
        if s[p] < 0.0:
            margin[p] = safety(X[first + p], weight, bias, s[p], scores.shape[0] > 0)
            if path.beyond > 0.0:
                ahead, spent = unbounded_price(path, margin[p] - s[p])
                u[p] = ahead if spent < gains[row_of(gains, first + p)] else 0.0
            if kinked and u[p] > 0.0:
                u[p], hit = aim(path, slope, margin[p] - s[p], margin[p], u[p])
                missed[p] = not hit


@jit
def best_rows(  # type: ignore[no-untyped-def]
    X, known, slope, weights, kink, path, bounds, gains, as_action, write, solution
):
    """Solve the hard step in closed form: cross where that costs less than one's of ``gains``."""
    # ``known`` is what `known_scores` returns; ``gains`` has one number for everybody or one per
    # person; ``kink`` is empty where the cost has none.
    kinked, status, price, cost = kink.shape[0] > 0, solution.status, solution.price, solution.cost
    numbers, (outside, missed, _), who = make_block()
    s, margin, u = numbers[:3]
    stopped, spare = make_stopped(X.shape[1]), np.empty(X.shape[1])
    work = stopped[2]
    for first in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - first)
        score_block(X, first, m, known, s)
        free_crossings(X, first, m, s, known, slope, path, kinked, gains, margin, u, missed)
        place_block(X, first, m, u, path, bounds, as_action, write, solution.out, spare, outside)
        count = 0
        for p in range(m):
            i = first + p
            status[i] = FINE if math.isfinite(s[p]) else NOT_FINITE
            price[i] = u[p]
            _, cost[i], on_kink = unbounded_gain(path, u[p])
            if kinked:
                solution.multiplier[i] = on_kink
            solution.crossed[i] = solution.moved[i] = u[p] > 0.0
            solution.favoured[i] = (s[p] >= 0.0) | (u[p] > 0.0)
            if (outside[p] or missed[p]) and status[i] == FINE:
                status[i] = STOPPED
                who[count], work[SCORE + count], work[MARGIN + count] = i, s[p], margin[p]
                count += 1
        for p in range(count if kinked else 0):
            cross_kinked(
                X, who[p], work[SCORE + p], work[MARGIN + p], slope, weights, kink, bounds,
                gains[row_of(gains, who[p])], stopped[3], as_action, write, solution,
            )  # fmt: skip
        if count and not kinked:
            load_boxes(X, who, count, bounds, stopped)
            cross_stopped(who, count, slope, weights, path.along[0], path.rate, gains, stopped)
            for p in range(count):
                i = who[p]
                crosses = work[DONE + p] > 0.0
                status[i] = FINE if work[FEASIBLE + p] > 0.0 else INFEASIBLE
                solution.crossed[i] = crosses
                solution.favoured[i] = crosses | (work[SCORE + p] + work[START + p] >= 0.0)
            write_stopped(X, who, count, path.along[0], bounds, stopped, as_action, write, solution)


@jit
def write_stopped(X, who, m, direction, bounds, stopped, as_action, write, solution):  # type: ignore[no-untyped-def]
    """Write what was found for the people of a block whom a bound stops."""
    work = stopped[2]
    for p in range(m):
        i = who[p]
        solution.price[i], solution.cost[i] = work[PRICE + p], work[SPENT + p]
        solution.moved[i] = work[SPENT + p] > 0.0
        if write:
            put_stopped(X, i, p, direction, bounds[2], bounds[3], stopped, as_action, solution.out)


@jit
def free_prices(path, curves, grids, sharpness, first, m, numbers, flags):  # type: ignore[no-untyped-def]
    """Write everybody's price without bounds, and who converged, into ``u`` and the first flag."""
    s, _, u, y0, y = numbers
    ok, second, _ = flags
    single = math.isinf(path.turn)
    if not single and curves[1].low_fold < curves[1].high_fold:
        # The free path as a polyline of two knots.
        G, U = np.array([0.0, path.turn_gain]), np.array([0.0, path.turn])
        V = np.array([0.0, 0.5 * path.turn * path.turn_gain])
        for p in range(m):
            _, u[p], _, ok[p] = peak(G, U, V, 2, path.beyond, s[p], sharpness, first)
        return
    for p in range(m):
        y0[p] = sharpness * s[p]
    follow_block(curves[0], grids[0], y0, m, y, ok)
    for p in range(m):
        u[p] = sharpness * rise(y[p])
    if single:
        return
    # The objective bends one way, so whoever passes the turn ends on the second piece.
    for p in range(m):
        y0[p] = sharpness * (s[p] - path.lost)
    follow_block(curves[1], grids[1], y0, m, y, second)
    for p in range(m):
        beyond = u[p] > path.turn
        ok[p] = second[p] if beyond else ok[p]
        u[p] = max(sharpness * rise(y[p]), path.turn) if beyond else u[p]


@jit
def smooth_rows(  # type: ignore[no-untyped-def]
    X, known, slope, weights, kinked, path, bounds, sharpness, first, gridded, as_action, write,
    solution,
):  # fmt: skip
    """Solve the smoothed step, by the curve all unbounded people share where it fits."""
    # ``gridded``: tabulate first where people end, which pays for more than a few hundred.
    square, status, after = sharpness * sharpness, solution.status, solution.after
    numbers, flags, who = make_block()
    s, u, ok, outside = numbers[0], numbers[2], flags[0], flags[2]
    curve, single = make_curve(square * path.rate, first), math.isinf(path.turn)
    curves = (curve, curve if single else make_curve(square * path.beyond, first))
    grids = (make_grid(curves[0], gridded), make_grid(curves[1], gridded and not single))
    stopped, spare = make_stopped(X.shape[1]), np.empty(X.shape[1])
    work = stopped[2]
    for start in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - start)
        score_block(X, start, m, known, s)
        free_prices(path, curves, grids, sharpness, first, m, numbers, flags)
        for p in range(m):
            u[p] = u[p] if (path.beyond > 0.0) & math.isfinite(s[p]) else 0.0
        place_block(X, start, m, u, path, bounds, as_action, write, solution.out, spare, outside)
        count = 0
        for p in range(m):
            i = start + p
            status[i] = FINE if ok[p] else NOT_CONVERGED
            status[i] = status[i] if math.isfinite(s[p]) else NOT_FINITE
            solution.price[i], solution.moved[i] = u[p], u[p] > 0.0
            gained, solution.cost[i], on_kink = unbounded_gain(path, u[p])
            if kinked:
                solution.multiplier[i] = on_kink
            after[i] = s[p] + gained
            if outside[p] and status[i] != NOT_FINITE:
                status[i] = STOPPED
                who[count], work[SCORE + count], work[PRICE + count] = i, s[p], u[p]
                count += 1
        if count and not kinked:
            load_boxes(X, who, count, bounds, stopped)
            settle_stopped(count, slope, weights, path.along[0], sharpness, curve, first, stopped)
            for p in range(count):
                i = who[p]
                status[i] = FINE if work[DONE + p] > 0.0 else NOT_CONVERGED
                status[i] = status[i] if work[FEASIBLE + p] > 0.0 else INFEASIBLE
                after[i] = work[SCORE + p] + work[GAINED + p]
            write_stopped(X, who, count, path.along[0], bounds, stopped, as_action, write, solution)
