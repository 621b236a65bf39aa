"""People solved on their polylines, a chunk at a time.

Tracing and acting differ by kind of cost; reading the solution off a polyline does
not. Everything is row by row: chunks bound the memory, never change a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.response._bounded_rows import box_rows
from countermove.response._dense_knots import act_dense_rows, trace_dense_rows
from countermove.response._knots import (
    act_kinked_rows,
    act_straight_rows,
    trace_kinked_rows,
    trace_straight_rows,
)
from countermove.response._polyline import (
    HIGHEST_RISE,
    act_boxed_rows,
    budget_rows,
    crossing_rows,
    peak_rows,
    proxy_rows,
    trace_boxed_rows,
)
from countermove.response.reduction import (
    DENSE,
    FINE,
    INFEASIBLE,
    KINKED,
    NOT_CONVERGED,
    STRAIGHT,
    KernelArrays,
    RowSolutions,
)
from countermove.response.step import price_rows

Ints = NDArray[np.int64]

CHUNK = 4096
"""People whose polylines are held at once."""


@dataclass(frozen=True)
class ChunkActions:
    """Actions with their gain, cost, gain per price and kink multiplier."""

    action: Floats
    reached: Floats
    cost: Floats
    rate: Floats
    multiplier: Floats


class Chunk:
    """Some people of a population: their boxes, and their polylines (one, if the box is shared)."""

    def __init__(self, arrays: KernelArrays, rows: Floats, who: Index) -> None:
        self.arrays, self.rows, self.who = arrays, rows[who], who
        lines = 1 if arrays.shared else len(who)
        self.lo, self.hi = boxes(arrays, self.rows[:lines], who[:lines])
        dense = arrays.kind == DENSE
        self.h = _offsets(arrays, self.lo, self.hi, who[:lines]) if dense else np.empty((0, 0))
        d, m = len(arrays.slope), len(arrays.rows)
        knots = {KINKED: 6 * d + 128, DENSE: 6 * m + 128}.get(arrays.kind, 2 * d + 4)
        self.G, self.U, self.V = (np.empty((lines, knots)) for _ in range(3))
        self.count, self.rate = np.empty(lines, np.int64), np.empty(lines)
        self.status = np.empty(lines, np.int64)

    def trace(self, cap: float, budget: float) -> Ints:
        """Trace the polylines up to a price or a cost; return how each person ended."""
        arrays = self.arrays
        out = (self.G, self.U, self.V, self.count, self.rate, self.status)
        if arrays.kind == KINKED:
            trace_kinked_rows(
                arrays.slope, arrays.weights, arrays.kink, self.lo, self.hi, cap, budget, *out
            )
        elif arrays.kind == DENSE:
            trace_dense_rows(*self._dense(), cap, budget, *out)
        elif arrays.kind == STRAIGHT:
            trace_straight_rows(arrays.slope, arrays.kink, self.lo, self.hi, *out)
        else:
            trace_boxed_rows(arrays.slope, arrays.weights, self.lo, self.hi, cap, *out)
        empty = (self.lo > self.hi).any(axis=1)
        self.status[empty] = INFEASIBLE
        self.count[self.status == INFEASIBLE] = 0
        return np.broadcast_to(self.status, len(self.who)).copy()

    def act(self, gain: Floats, price: Floats) -> ChunkActions:
        """Return everybody's action at a price (for the knapsack: of a gain)."""
        n, arrays = len(price), self.arrays
        act = ChunkActions(np.empty((n, len(arrays.slope))), *(np.zeros(n) for _ in range(4)))
        out = (act.action, act.reached, act.cost, act.rate)
        if arrays.kind == KINKED:
            act_kinked_rows(
                arrays.slope, arrays.weights, arrays.kink, self.lo, self.hi, price, *out,
                act.multiplier,
            )  # fmt: skip
        elif arrays.kind == DENSE:
            act_dense_rows(*self._dense(), price, *out)
        elif arrays.kind == STRAIGHT:
            act_straight_rows(
                arrays.slope, arrays.kink, self.lo, self.hi, gain, price,
                act.action, act.cost, act.multiplier,
            )  # fmt: skip
            act.reached[:] = gain
        else:
            act_boxed_rows(arrays.slope, arrays.weights, self.lo, self.hi, price, *out)
        return act

    def stay(self) -> ChunkActions:
        """Return everybody's cheapest allowed action."""
        n = len(self.who)
        return self.act(np.broadcast_to(self.G[:, 0], n).copy(), np.zeros(n))

    @property
    def lines(self) -> tuple[Floats, Floats, Floats, Ints, Floats]:
        """The polylines."""
        return self.G, self.U, self.V, self.count, self.rate

    def place(self, action: Floats) -> Floats:
        """Return where an action leads, exactly inside the bounds on ``x_new``."""
        low, high = (_of(bound, self.who) for bound in self.arrays.bounds[2:4])
        there = np.clip(self.rows + action, low, high)
        result: Floats = np.where(action != 0.0, there, self.rows)
        return result

    def _dense(self) -> tuple[object, ...]:
        arrays = self.arrays
        own = float(arrays.slope @ arrays.inverse @ arrays.slope)
        return (
            arrays.slope, own, arrays.inverse, arrays.rows, arrays.matrix, arrays.coupling,
            arrays.pull, self.h,
        )  # fmt: skip


def solve_best(
    arrays: KernelArrays, rows: Floats, scores: Floats, margin: Floats, gains: Floats,
    as_action: bool, write: bool, who: Index, solution: RowSolutions,
) -> None:  # fmt: skip
    """Solve the hard step for the people ``who``: cross if that costs less than one's gain."""
    for chunk, (s, slack) in _chunks(arrays, rows, who, scores, margin):
        gain = _of(gains, chunk.who)
        status = chunk.trace(np.inf, float(gain.max()))
        solution.status[chunk.who] = status
        price, cost = np.empty(len(s)), np.empty(len(s))
        crossing_rows(*chunk.lines, slack - s, price, cost)
        there = s + chunk.G[:, 0] >= 0.0
        crosses = ~there & (cost < gain) & (status == FINE)
        solution.favoured[chunk.who] = there | crosses
        solution.crossed[chunk.who] = crosses
        if not write:
            continue
        stay = chunk.stay()
        act = _cross(chunk, s, slack, crosses, stay)
        price = np.where(crosses, price, 0.0)
        solution.price[chunk.who] = price
        solution.cost[chunk.who] = act.cost
        solution.moved[chunk.who] = (act.action != 0.0).any(axis=1)
        solution.multiplier[chunk.who] = np.where(crosses, act.multiplier, 0.0)
        solution.out[chunk.who] = act.action if as_action else chunk.place(act.action)


def _cross(
    chunk: Chunk, s: Floats, slack: Floats, crosses: Mask, stay: ChunkActions
) -> ChunkActions:
    """Return the crossing actions; the aim is corrected by what the solved action missed."""
    # The knots carry rounding: three corrections bring the gain to within the safety margin.
    target = slack - s
    aim = np.where(crosses, target, chunk.G[:, 0])
    price, cost = np.empty(len(s)), np.empty(len(s))
    act = stay
    for _ in range(6):
        crossing_rows(*chunk.lines, aim, price, cost)
        usable = crosses & np.isfinite(price)
        act = chunk.act(aim, np.where(usable, price, 0.0))
        miss = np.where(usable, target - act.reached, 0.0)
        late = (miss > 0.5 * slack) | (miss < -slack)
        if not late.any():
            break
        aim = aim + np.where(late, miss, 0.0)
    still = ~crosses
    act.action[still], act.cost[still] = stay.action[still], stay.cost[still]
    act.multiplier[still] = 0.0
    return act


def solve_reach(
    arrays: KernelArrays, rows: Floats, gains: Floats, solution: RowSolutions, reach: Floats
) -> None:
    """Write everybody's largest affordable score gain, the action of it and its price."""
    for chunk, _ in _chunks(arrays, rows, np.arange(len(rows))):
        budgets = _of(gains, chunk.who)
        solution.status[chunk.who] = chunk.trace(np.inf, float(budgets.max()))
        n = max(len(chunk.G), len(budgets))
        most, price, spent = np.empty(n), np.empty(n), np.empty(n, bool)
        budget_rows(*chunk.lines, budgets, most, price, spent)
        act = chunk.act(most, price)
        reach[chunk.who] = act.reached
        solution.out[chunk.who] = act.action
        solution.multiplier[chunk.who] = act.multiplier
        solution.price[chunk.who] = np.where(spent, price, np.inf)


def solve_smooth(
    arrays: KernelArrays, rows: Floats, scores: Floats, sharpness: float, first: bool,
    as_action: bool, write: bool, who: Index, solution: RowSolutions, factors: Floats,
) -> None:  # fmt: skip
    """Solve the smoothed step for the people ``who``, their costs multiplied by ``factors``."""
    # Where prices differ lines are traced to their end: nobody's depends on who else is there.
    alike = bool((factors == 1.0).all())
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9) if alike else np.inf
    for chunk, (s,) in _chunks(arrays, rows, who, scores):
        own = _of(factors, chunk.who)
        status = chunk.trace(cap, np.inf)
        gain, price, ok = np.empty(len(s)), np.empty(len(s)), np.empty(len(s), bool)
        peak_rows(*chunk.lines, s, sharpness, first, own, gain, price, ok)
        act = chunk.act(gain, price)
        if arrays.kind in (KINKED, DENSE):
            act, price = _polish(chunk, s, sharpness, own, act, gain, price)
        status[(status == FINE) & ~ok] = NOT_CONVERGED
        solution.status[chunk.who] = status
        solution.after[chunk.who] = s + act.reached
        solution.price[chunk.who], solution.cost[chunk.who] = price, act.cost * own
        solution.multiplier[chunk.who] = act.multiplier
        if write:
            solution.moved[chunk.who] = (act.action != 0.0).any(axis=1)
            solution.out[chunk.who] = act.action if as_action else chunk.place(act.action)


def _polish(
    chunk: Chunk, s: Floats, sharpness: float, factors: Floats, act: ChunkActions, gain: Floats,
    price: Floats,
) -> tuple[ChunkActions, Floats]:  # fmt: skip
    """Refine the price on the solved action itself, by Newton's steps that only improve."""
    for _ in range(4):
        wanted, bent = price_rows(sharpness, s + act.reached)
        error = wanted / factors - price
        slope = bent / factors * act.rate - 1.0
        open_rows = np.abs(error) > 1e-15 * price
        closer = np.where(slope < 0.0, price - error / np.minimum(slope, -1e-12), price)
        trial = chunk.act(gain, closer)
        new_error = price_rows(sharpness, s + trial.reached)[0] / factors - closer
        better = open_rows & (np.abs(new_error) < np.abs(error))
        if not better.any():
            break
        price = np.where(better, closer, price)
        act = chunk.act(gain, price)
    return act, price


def solve_proxy(
    arrays: KernelArrays, rows: Floats, scores: Floats, sharpness: float, last: Floats,
    who: Index, solution: RowSolutions,
) -> None:  # fmt: skip
    """Solve the concave proxy linearised at the scores ``last``, for the people ``who``."""
    for chunk, (s, at) in _chunks(arrays, rows, who, scores, last):
        solution.status[chunk.who] = chunk.trace(2.0 * sharpness, np.inf)
        gain, price = np.empty(len(s)), np.empty(len(s))
        proxy_rows(chunk.G, chunk.U, chunk.count, chunk.rate, s, sharpness, at, gain, price)
        act = chunk.act(gain, price)
        solution.after[chunk.who] = s + act.reached
        solution.price[chunk.who], solution.cost[chunk.who] = price, act.cost
        solution.multiplier[chunk.who] = act.multiplier
        solution.out[chunk.who] = act.action


def boxes(arrays: KernelArrays, rows: Floats, who: Index) -> tuple[Floats, Floats]:
    """Return the boxes of actions of the people ``who``, one row if all have the same."""
    if arrays.shared:
        return arrays.bounds[0], arrays.bounds[1]
    found: tuple[Floats, Floats] = box_rows(rows, who, arrays.bounds)
    return found


def _chunks(
    arrays: KernelArrays, rows: Floats, who: Index, *columns: Floats
) -> Iterator[tuple[Chunk, list[Floats]]]:
    for start in range(0, len(who), CHUNK):
        part = who[start : start + CHUNK]
        yield Chunk(arrays, rows, part), [column[part] for column in columns]


def _of(bound: Floats, who: Index) -> Floats:
    return bound if len(bound) == 1 else bound[who]


def _offsets(arrays: KernelArrays, lo: Floats, hi: Floats, who: Index) -> Floats:
    held = np.diag(arrays.inverse) == 0.0
    extra = np.broadcast_to(_of(arrays.offsets, who), (len(lo), arrays.offsets.shape[1]))
    h = np.hstack([np.where(held, np.inf, -lo), np.where(held, np.inf, hi), extra])
    return np.ascontiguousarray(h)
