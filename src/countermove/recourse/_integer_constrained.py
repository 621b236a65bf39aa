r"""The cheapest action on a linear score under A δ + b ≥ 0, exactly, for small lattices.

.. math:: \min \sum_j q_j\delta_j^2 \quad\text{s.t.}\quad w\cdot\delta \ge need,\; A\delta + b \ge 0

Whoever is served without A as well as with it is done. For the others a price per
constraint bounds the optimum from below, and only values whose reduced cost fits
into a gap above that bound are combined; the gap grows until it holds an answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.recourse._feasible import FeasibleActions
from countermove.recourse._integer_separable import (
    MOST_STATES,
    ROUNDING,
    BlockOptions,
    CheapestActions,
    action_of,
    at_price,
    cheapest_separable,
    options_within,
)
from countermove.recourse._linear import with_groups
from countermove.recourse._polytope import linear_step

ROUNDS, DOUBLINGS, HALVINGS = 3, 24, 30
"""Of the prices: passes over the constraints, and steps to bracket and to narrow each."""
FIRST_GAP, WIDER = 0.1, 4.0
"""First gap as a share of the bound, and by how much it grows."""
CERTAIN = 1e-6
"""A bound proves that nothing is left when it exceeds the most expensive action by this share."""


class LeastGains(NamedTuple):
    """What an action has to gain: slopes (rows, d) and least values (rows,) of one person."""

    slope: Floats
    least: Floats


def cheapest_constrained(
    feasible: FeasibleActions, slope: Floats, need: Floats, weights: Floats
) -> CheapestActions:
    r"""Return each person's cheapest action, exactly where it is not left unsolved."""
    action, none, unsolved = cheapest_separable(feasible, slope, need, weights)
    # Without A the optimum costs no more: where it meets A it is the answer.
    left = np.flatnonzero(~none & ~unsolved & ~feasible.meets(np.nan_to_num(action)))
    action[left] = np.nan
    none[left] = _relaxed_most(feasible.rows(left), slope[left]) < need[left] - CERTAIN
    left = left[~none[left]]
    columns = feasible.used
    small = feasible.rows(left).only(columns)
    if not left.size or small.A is None or small.b is None:
        return CheapestActions(action, none, unsolved)
    w, asked = slope[left][:, columns], need[left] - ROUNDING * (1.0 + np.abs(need[left]))
    least = np.column_stack([asked, -small.b])
    slopes = np.concatenate(
        [w[:, None], np.broadcast_to(small.A, (len(left), *small.A.shape))], axis=1
    )
    prices, bound = _prices(small, slopes, least, weights[columns])
    for i, row in enumerate(left.tolist()):
        one, asks = small.rows(np.array([i])), LeastGains(slopes[i], least[i])
        found, none[row] = _cheapest_of_one(one, asks, weights[columns], prices[i], bound[i])
        unsolved[row] = found is None and not none[row]
        if found is not None:
            action[row] = 0.0
            action[row, columns] = found
    return CheapestActions(action, none, unsolved)


def _relaxed_most(feasible: FeasibleActions, slope: Floats) -> Floats:
    """Return the most gain within bounds and constraints, whole numbers and groups relaxed."""
    if not len(slope) or feasible.A is None or feasible.b is None:
        return np.full(len(slope), np.inf)
    A, b = with_groups(feasible, feasible.A, feasible.b)
    most: Floats = (linear_step(slope, feasible.low, feasible.high, A, b) * slope).sum(axis=1)
    return most


def _prices(
    feasible: FeasibleActions, slopes: Floats, least: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    r"""Return prices :math:`\lambda \ge 0` of the constraints, and the lower bound they prove."""
    # One constraint after the other gets the least price at which it is met. Any prices give
    # a bound; these give the tightest one along each coordinate.
    n, rows = least.shape
    prices, best, bound = np.zeros((n, rows)), np.zeros((n, rows)), np.full(n, -np.inf)
    one = np.ones(n)

    def gains(at: Floats) -> tuple[Floats, Floats]:
        pull = np.einsum("nk,nkd->nd", at, slopes)
        action = at_price(feasible, pull, weights, one)
        return action, np.einsum("nkd,nd->nk", slopes, action)

    for _ in range(ROUNDS):
        for k in range(rows):
            low, high = np.zeros(n), np.maximum(prices[:, k], 1e-3)
            trial = prices.copy()
            for _ in range(DOUBLINGS):
                trial[:, k] = high
                short = gains(trial)[1][:, k] < least[:, k]
                if not short.any():
                    break
                low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
            for _ in range(HALVINGS):
                trial[:, k] = 0.5 * (low + high)
                short = gains(trial)[1][:, k] < least[:, k]
                low, high = np.where(short, trial[:, k], low), np.where(short, high, trial[:, k])
            prices[:, k] = low
            action, gain = gains(prices)
            value = (weights * action**2).sum(axis=1) + (prices * (least - gain)).sum(axis=1)
            wins = value > bound
            best[wins], bound[wins] = prices[wins], value[wins]
    return best, bound


def _cheapest_of_one(
    feasible: FeasibleActions, asks: LeastGains, weights: Floats, prices: Floats, bound: float
) -> tuple[Floats | None, bool]:
    """Return one person's optimum, and whether there provably is none; (None, False): unsolved."""
    most_expensive = float(
        (weights * np.maximum(feasible.low[0] ** 2, feasible.high[0] ** 2)).sum()
    )
    scale = most_expensive + float(np.abs(prices) @ np.abs(asks.least))
    if bound > most_expensive + CERTAIN * (1.0 + scale):
        return None, True
    gap = FIRST_GAP * (1.0 + abs(bound))
    while True:
        solved = _within(feasible, asks, weights, prices, gap)
        if solved is None:
            return None, False
        found, cost = solved
        if cost - bound <= gap:
            return found, False
        if gap > most_expensive - bound + CERTAIN * (1.0 + scale):  # nothing was left out
            return (None, True) if np.isinf(cost) else (found, False)
        # An answer beyond the gap is still an upper bound: only what is cheaper remains.
        gap = WIDER * gap if np.isinf(cost) else cost - bound + ROUNDING * (1.0 + abs(cost))


def _within(
    feasible: FeasibleActions, asks: LeastGains, weights: Floats, prices: Floats, gap: float
) -> tuple[Floats, float] | None:
    """Return the cheapest action of a reduced cost within the gap, and its cost."""
    # An infinite cost: there is none. None: there are too many to combine.
    pull = prices @ asks.slope
    options, numbers = options_within(feasible, pull, weights, 1.0, gap)
    options.sort(key=lambda option: len(option.gain))
    alone = [option for option in options if option.columns.size == 1]
    if len(numbers) > 1:
        return None
    last = int(numbers[0]) if numbers.size else None
    if last is None and alone:
        finest = alone[-1]
        last = int(finest.columns[0])
        options = [option for option in options if option is not finest]
    states = _states(asks, options, gap)
    if states is None:
        return None
    gain, cost, picks = states
    value = np.zeros(len(cost))
    if last is not None:
        value, fits = _last(feasible, asks, gain, last)
        gain, cost = gain + value[:, None] * asks.slope[:, last], cost + weights[last] * value**2
        cost = np.where(fits, cost, np.inf)
    enough = (gain >= asks.least - ROUNDING * (1.0 + np.abs(asks.least))).all(axis=1)
    cost = np.where(enough, cost, np.inf)
    state = int(cost.argmin())
    best = action_of(len(pull), options, picks[state])
    if last is not None:
        best[last] = value[state]
    return best, float(cost[state])


def _states(
    asks: LeastGains, options: list[BlockOptions], gap: float
) -> tuple[Floats, Floats, Index] | None:
    """Return gains, costs and picks of all combinations within the gap; None when too many."""
    gain, cost = np.zeros((1, len(asks.least))), np.zeros(1)
    reduced, floor = np.zeros(1), 0.0
    picks = np.zeros((1, 0), np.intp)
    for option in options:
        count = len(option.gain)
        if len(cost) * count > MOST_STATES:
            return None
        saving = option.cost - option.gain
        floor += float(saving.min())
        reduced = (reduced[:, None] + saving).ravel()
        kept = np.flatnonzero(reduced - floor <= gap + 1e-9)
        before, pick = np.divmod(kept, count)
        reduced = reduced[kept]
        gain = gain[before] + option.action[pick] @ asks.slope[:, option.columns].T
        cost = cost[before] + option.cost[pick]
        picks = np.column_stack([picks[before], pick])
    return gain, cost, picks


def _last(feasible: FeasibleActions, asks: LeastGains, gain: Floats, j: int) -> tuple[Floats, Mask]:
    """Return the value of the last feature nearest to none that each state allows, if any."""
    step, slope = float(feasible.step[j]), asks.slope[:, j]
    lacking = asks.least - gain
    low, high = np.full(len(gain), feasible.low[0, j]), np.full(len(gain), feasible.high[0, j])
    for k in np.flatnonzero(slope).tolist():
        edge = lacking[:, k] / slope[k]
        low, high = (
            (np.maximum(low, edge), high) if slope[k] > 0.0 else (low, np.minimum(high, edge))
        )
    if step > 0.0:
        low, high = np.ceil(low / step - 1e-9) * step, np.floor(high / step + 1e-9) * step
    value: Floats = np.clip(0.0, low, np.maximum(low, high))
    return value, low <= high + ROUNDING * (1.0 + np.abs(high))
