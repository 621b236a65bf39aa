r"""The cheapest action on a linear score, exactly, where features only meet in the score.

.. math:: \min \sum_j q_j\delta_j^2 \quad\text{s.t.}\quad w\cdot\delta \ge need

over a box with whole numbers and one-hot groups. One price of score, the same for
every feature, bounds the optimum from below (all people at once); only values whose
reduced cost fits between that bound and a repaired answer can be optimal, and those
few are combined with dominated ones dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.recourse._cheaper import cheapest_on_plane
from countermove.recourse._feasible import FeasibleActions

MOST_STATES = 200_000
"""Combinations beyond which a person is left to the mixed-integer program."""
DOUBLINGS, HALVINGS = 60, 60
ROUNDING = 1e-11


class CheapestActions(NamedTuple):
    """The cheapest actions (NaN without), who provably has none, and who was left unsolved."""

    action: Floats
    proven_none: Mask
    unsolved: Mask


class BlockOptions(NamedTuple):
    """What one block can do for one person: actions (k, columns), gains and costs (k,)."""

    columns: Index
    action: Floats
    gain: Floats
    cost: Floats


def cheapest_separable(
    feasible: FeasibleActions, slope: Floats, need: Floats, weights: Floats
) -> CheapestActions:
    r"""Return each person's cheapest action with :math:`w\cdot\delta \ge need`, exactly."""
    n = len(need)
    slope = np.broadcast_to(slope, (n, feasible.low.shape[1]))
    most = at_price(feasible, slope, weights, np.full(n, np.inf))
    slack = ROUNDING * (1.0 + np.abs(need))
    none: Mask = (most * slope).sum(axis=1) < need - slack
    action = np.full(slope.shape, np.nan)
    unsolved = np.zeros(n, bool)
    can = np.flatnonzero(~none)
    part, w, asked = feasible.rows(can), slope[can], need[can] - slack[can]
    price, start = _price(part, w, weights, asked, most[can])
    best = _repaired(part, w, weights, price, asked, start)
    gap = (weights * best**2).sum(axis=1) - _bound(part, w, weights, price, asked)
    for i, row in enumerate(can.tolist()):
        one = part.rows(np.array([i]))
        found = _combined(one, w[i], weights, float(price[i]), float(asked[i]), float(gap[i]))
        if found is None:
            unsolved[row] = True
        elif (weights * found**2).sum() < (weights * best[i] ** 2).sum():
            best[i] = found
    action[can] = best
    action[unsolved] = np.nan
    return CheapestActions(action, none, unsolved)


def at_price(feasible: FeasibleActions, slope: Floats, weights: Floats, price: Floats) -> Floats:
    r"""Return the allowed :math:`\arg\min \sum q_j\delta_j^2 - price\, w\cdot\delta`."""
    # An infinite price asks for the most gain.
    with np.errstate(invalid="ignore"):
        free = np.where(slope == 0.0, 0.0, price[:, None] * slope / (2.0 * weights))
    action = feasible.snap(np.clip(free, feasible.low, feasible.high))
    for group, chosen, choices in zip(
        feasible.groups, feasible.chosen, feasible.choices, strict=True
    ):
        gain, cost = _switches(feasible, slope, weights, group, chosen)
        with np.errstate(invalid="ignore"):
            worth = np.where(np.isinf(price)[:, None], gain, price[:, None] * gain - cost)
        wanted = np.where(choices, worth, -np.inf).argmax(axis=1)
        action[:, group] = feasible.switch(group, chosen, wanted)
    return action


def _switches(
    feasible: FeasibleActions, slope: Floats, weights: Floats, group: Index, chosen: Index
) -> tuple[Floats, Floats]:
    """Return gain and cost of each category of a group, both (n, k); none for staying."""
    rows = np.arange(len(chosen))
    worth = slope[:, group] / feasible.unit[group]
    fee = np.broadcast_to(weights[group] / feasible.unit[group] ** 2, worth.shape)
    cost = fee + fee[rows, chosen][:, None]
    cost[rows, chosen] = 0.0
    return worth - worth[rows, chosen][:, None], cost


def _price(
    feasible: FeasibleActions, slope: Floats, weights: Floats, need: Floats, most: Floats
) -> tuple[Floats, Floats]:
    """Return the least price of score whose answer meets the need, and that answer."""
    low, high = np.zeros(len(need)), np.ones(len(need))
    for _ in range(DOUBLINGS):
        short = (at_price(feasible, slope, weights, high) * slope).sum(axis=1) < need
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        enough = (at_price(feasible, slope, weights, middle) * slope).sum(axis=1) >= need
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    answer = at_price(feasible, slope, weights, high)
    short = (answer * slope).sum(axis=1) < need
    answer[short] = most[short]
    return low, answer


def _bound(
    feasible: FeasibleActions, slope: Floats, weights: Floats, price: Floats, need: Floats
) -> Floats:
    """Return the Lagrangian lower bound of the optimum at a price."""
    action = at_price(feasible, slope, weights, price)
    spent: Floats = (weights * action**2).sum(axis=1)
    spent += price * (need - (action * slope).sum(axis=1))
    return spent


def _repaired(
    feasible: FeasibleActions,
    slope: Floats,
    weights: Floats,
    price: Floats,
    need: Floats,
    answer: Floats,
) -> Floats:
    """Return the cheaper of an answer and the short one with a single feature pushed further."""
    short = at_price(feasible, slope, weights, price)
    missing = need - (short * slope).sum(axis=1)
    best, cost = answer.copy(), (weights * answer**2).sum(axis=1)
    grouped = {int(j) for group in feasible.groups for j in group}
    for j in np.flatnonzero((feasible.low < feasible.high).any(axis=0)).tolist():
        if j in grouped:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            push = np.where(slope[:, j] != 0.0, np.maximum(missing, 0.0) / slope[:, j], 0.0)
        if feasible.step[j] > 0.0:
            steps = push / feasible.step[j]
            push = np.where(steps > 0.0, np.ceil(steps), np.floor(steps)) * feasible.step[j]
        trial = short.copy()
        trial[:, j] = np.clip(short[:, j] + push, feasible.low[:, j], feasible.high[:, j])
        spent = (weights * trial**2).sum(axis=1)
        wins = ((trial * slope).sum(axis=1) >= need) & (spent < cost)
        best[wins], cost[wins] = trial[wins], spent[wins]
    return best


def _combined(
    feasible: FeasibleActions, slope: Floats, weights: Floats, price: float, need: float, gap: float
) -> Floats | None:
    """Return one person's optimum among the values whose reduced cost fits into the gap."""
    options, numbers = options_within(feasible, slope, weights, price, max(gap, 0.0))
    options.sort(key=lambda option: len(option.gain))
    # Given all the others, the finest whole number is the least that meets the need.
    last = None if numbers.size or not options or options[-1].columns.size > 1 else options.pop()
    if any(len(option.gain) > MOST_STATES for option in options):
        return None
    gain, cost = np.zeros(1), np.zeros(1)
    picks = np.zeros((1, 0), np.intp)
    floor = 0.0
    for option in options:
        if len(gain) * len(option.gain) > MOST_STATES:
            return None
        floor += float((option.cost - price * option.gain).min())
        gain = (gain[:, None] + option.gain).ravel()
        cost = (cost[:, None] + option.cost).ravel()
        pick = np.tile(np.arange(len(option.gain)), len(picks))
        picks = np.column_stack([np.repeat(picks, len(option.gain), axis=0), pick])
        kept = _undominated(gain, cost, cost - price * gain - floor <= max(gap, 0.0) + 1e-9)
        gain, cost, picks = gain[kept], cost[kept], picks[kept]
    states = gain, cost, picks
    if last is not None:
        return _least_steps(feasible, slope, weights, need, states, options, int(last.columns[0]))
    return _finished(feasible, slope, weights, need, states, options, numbers)


def options_within(
    feasible: FeasibleActions, slope: Floats, weights: Floats, price: float, gap: float
) -> tuple[list[BlockOptions], Index]:
    """Return the discrete blocks' values that can be optimal, and the continuous columns."""
    free = np.flatnonzero((feasible.low[0] < feasible.high[0]) | (feasible.low[0] != 0.0))
    grouped = {int(j) for group in feasible.groups for j in group}
    alone = [int(j) for j in free if int(j) not in grouped]
    options = []
    for j in (j for j in alone if feasible.step[j] > 0.0):
        centre, step = price * slope[j] / (2.0 * weights[j]), feasible.step[j]
        start = np.clip(np.round(centre / step) * step, feasible.low[0, j], feasible.high[0, j])
        worst = weights[j] * (start - centre) ** 2 + gap
        reach = np.sqrt(worst / weights[j]) + 1e-9
        first = max(np.round(feasible.low[0, j] / step), np.ceil((centre - reach) / step))
        last = min(np.round(feasible.high[0, j] / step), np.floor((centre + reach) / step))
        count = min(int(last - first) + 1, MOST_STATES + 1)
        values = (first + np.arange(count)) * step
        options.append(
            BlockOptions(np.array([j]), values[:, None], values * slope[j], weights[j] * values**2)
        )
    for group, chosen, choices in zip(
        feasible.groups, feasible.chosen, feasible.choices, strict=True
    ):
        gain, cost = _switches(feasible, slope[None], weights, group, chosen)
        kept = np.flatnonzero(choices[0])
        change = np.vstack([feasible.switch(group, chosen, np.array([k])) for k in kept])
        options.append(BlockOptions(group, change, gain[0, kept], cost[0, kept]))
    return options, np.array([j for j in alone if feasible.step[j] == 0.0], np.intp)


def _undominated(gain: Floats, cost: Floats, fits: Mask) -> Index:
    """Return the states that fit and are cheaper than every state of at least their gain."""
    who = np.flatnonzero(fits)
    order = who[np.lexsort((cost[who], -gain[who]))]
    least = np.minimum.accumulate(cost[order])
    first = np.ones(len(order), bool)
    first[1:] = cost[order][1:] < least[:-1]
    return order[first]


def _least_steps(
    feasible: FeasibleActions,
    slope: Floats,
    weights: Floats,
    need: float,
    states: tuple[Floats, Floats, NDArray[np.intp]],
    options: list[BlockOptions],
    j: int,
) -> Floats | None:
    """Return the best state, one whole number taken as far as the state still lacks."""
    gain, cost, picks = states
    low, high, step = feasible.low[0, j], feasible.high[0, j], feasible.step[j]
    still = float(np.clip(0.0, low, high))
    lacking = need - gain
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = lacking / (slope[j] * step) if slope[j] != 0.0 else np.zeros_like(gain)
    # Rounded to the side of more gain, allowing for the rounding of the division.
    far = np.ceil(steps - 1e-12) if slope[j] > 0.0 else np.floor(steps + 1e-12)
    value = np.maximum(still, far * step) if slope[j] > 0.0 else np.minimum(still, far * step)
    value = np.clip(value, low, high)
    enough = gain + value * slope[j] >= need - ROUNDING * (1.0 + abs(need))
    if not enough.any():
        return None
    state = int(np.where(enough, cost + weights[j] * value**2, np.inf).argmin())
    best = action_of(len(slope), options, picks[state])
    best[j] = value[state]
    return best


def _finished(
    feasible: FeasibleActions,
    slope: Floats,
    weights: Floats,
    need: float,
    states: tuple[Floats, Floats, NDArray[np.intp]],
    options: list[BlockOptions],
    numbers: Index,
) -> Floats | None:
    """Return the best state, its continuous features chosen for what it still lacks."""
    gain, cost, picks = states
    if numbers.size:
        k = len(gain)
        wide = [
            np.broadcast_to(part[numbers], (k, len(numbers)))
            for part in (slope, feasible.low[0], feasible.high[0])
        ]
        filled = cheapest_on_plane(wide[0], need - gain, weights[numbers], wide[1], wide[2])
        cost = cost + (weights[numbers] * filled**2).sum(axis=1)
        gain = gain + filled @ slope[numbers]
    enough = gain >= need - ROUNDING * (1.0 + abs(need))
    if not enough.any():
        return None
    state = int(np.where(enough, cost, np.inf).argmin())
    best = action_of(len(slope), options, picks[state])
    if numbers.size:
        best[numbers] = filled[state]
    return best


def action_of(n_features: int, options: list[BlockOptions], picks: Index) -> Floats:
    """Return the action of one state: each block's value picked."""
    action = np.zeros(n_features)
    for option, pick in zip(options, picks, strict=True):
        action[option.columns] = option.action[pick]
    return action
