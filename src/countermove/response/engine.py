"""People solved on their polylines, a chunk at a time.

Tracing and acting differ by kind of cost; reading the answer off a polyline does
not. Everything is row by row: chunks bound the memory, never change a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.people.actions import SLACK
from countermove.response.answer import Answer
from countermove.response.failures import FINE, INFEASIBLE, NOT_CONVERGED
from countermove.response.polyline import (
    HIGHEST_RISE,
    budget_rows,
    crossing_rows,
    peak_rows,
    proxy_rows,
)
from countermove.response.smoothing import price_rows
from countermove.response.trade import DENSE, KINKED, STRAIGHT, Trade

Ints = NDArray[np.int64]

CHUNK = 4096
"""People whose polylines are held at once."""


@dataclass(frozen=True)
class Act:
    """Actions with their gain, cost, gain per price and kink multiplier."""

    action: Floats
    reached: Floats
    cost: Floats
    rate: Floats
    multiplier: Floats


class Chunk:
    """Some people of a population: their boxes, and their polylines once traced.

    When everybody has the same box there is one polyline for all.
    """

    def __init__(self, trade: Trade, rows: Floats, who: NDArray[np.intp]) -> None:
        self.trade, self.rows, self.who = trade, rows[who], who
        lines = 1 if trade.shared else len(who)
        lo, hi, _, _ = boxes(trade, self.rows[:lines], who[:lines])
        self.lo, self.hi = lo, hi
        self.h = _offsets(trade, lo, hi, who[:lines]) if trade.kind == DENSE else np.empty((0, 0))
        d, m = len(trade.slope), len(trade.rows)
        knots = {KINKED: 6 * d + 128, DENSE: 6 * m + 128}.get(trade.kind, 2 * d + 4)
        self.G, self.U, self.V = (np.empty((lines, knots)) for _ in range(3))
        self.count, self.rate = np.empty(lines, np.int64), np.empty(lines)
        self.status = np.empty(lines, np.int64)

    def trace(self, cap: float, budget: float) -> Ints:
        """Trace the polylines up to a price or a cost; return how each person ended."""
        trade = self.trade
        out = (self.G, self.U, self.V, self.count, self.rate, self.status)
        if trade.kind == KINKED:
            from countermove.response.paths import trace_kinked_rows

            trace_kinked_rows(
                trade.slope, trade.weights, trade.kink, self.lo, self.hi, cap, budget, *out
            )
        elif trade.kind == DENSE:
            from countermove.response.dense import trace_dense_rows

            trace_dense_rows(*self._dense(), cap, budget, *out)
        elif trade.kind == STRAIGHT:
            from countermove.response.knapsack import trace_straight_rows

            trace_straight_rows(trade.slope, trade.kink, self.lo, self.hi, *out)
        else:
            from countermove.response.paths import trace_boxed_rows

            trace_boxed_rows(trade.slope, trade.weights, self.lo, self.hi, cap, *out)
        empty = (self.lo > self.hi).any(axis=1)
        self.status[empty] = INFEASIBLE
        self.count[self.status == INFEASIBLE] = 0
        return np.broadcast_to(self.status, len(self.who)).copy()

    def act(self, gain: Floats, price: Floats) -> Act:
        """Return everybody's action at a price (for the knapsack: of a gain)."""
        n, trade = len(price), self.trade
        act = Act(np.empty((n, len(trade.slope))), *(np.zeros(n) for _ in range(4)))
        out = (act.action, act.reached, act.cost, act.rate)
        if trade.kind == KINKED:
            from countermove.response.paths import act_kinked_rows

            act_kinked_rows(
                trade.slope, trade.weights, trade.kink, self.lo, self.hi, price, *out,
                act.multiplier,
            )  # fmt: skip
        elif trade.kind == DENSE:
            from countermove.response.dense import act_dense_rows

            act_dense_rows(*self._dense(), price, *out)
        elif trade.kind == STRAIGHT:
            from countermove.response.knapsack import act_straight_rows

            act_straight_rows(
                trade.slope, trade.kink, self.lo, self.hi, gain, price,
                act.action, act.cost, act.multiplier,
            )  # fmt: skip
            act.reached[:] = gain
        else:
            from countermove.response.paths import act_boxed_rows

            act_boxed_rows(trade.slope, trade.weights, self.lo, self.hi, price, *out)
        return act

    def stay(self) -> Act:
        """Return everybody's cheapest allowed action."""
        n = len(self.who)
        return self.act(np.broadcast_to(self.G[:, 0], n).copy(), np.zeros(n))

    @property
    def lines(self) -> tuple[Floats, Floats, Floats, Ints, Floats]:
        """The polylines."""
        return self.G, self.U, self.V, self.count, self.rate

    def place(self, action: Floats) -> Floats:
        """Return where an action leads, exactly inside the bounds on ``x_new``."""
        low, high = (_of(bound, self.who) for bound in (self.trade.low, self.trade.high))
        there = np.clip(self.rows + action, low, high)
        result: Floats = np.where(action != 0.0, there, self.rows)
        return result

    def _dense(self) -> tuple[object, ...]:
        trade = self.trade
        own = float(trade.slope @ trade.inverse @ trade.slope)
        return (
            trade.slope, own, trade.inverse, trade.rows, trade.matrix, trade.coupling,
            trade.pull, self.h,
        )  # fmt: skip


def solve_best(
    trade: Trade, rows: Floats, scores: Floats, margin: Floats, gain: float,
    as_action: bool, write: bool, who: NDArray[np.intp], answer: Answer,
) -> None:  # fmt: skip
    """Answer the hard step for the people ``who``: cross if that costs less than ``gain``."""
    for chunk, (s, slack) in _chunks(trade, rows, who, scores, margin):
        status = chunk.trace(np.inf, gain)
        answer.status[chunk.who] = status
        price, cost = np.empty(len(s)), np.empty(len(s))
        crossing_rows(*chunk.lines, slack - s, price, cost)
        there = s + chunk.G[:, 0] >= 0.0
        crosses = ~there & (cost < gain) & (status == FINE)
        answer.favoured[chunk.who] = there | crosses
        answer.crossed[chunk.who] = crosses
        if not write:
            continue
        stay = chunk.stay()
        act = _cross(chunk, s, slack, crosses, stay)
        price = np.where(crosses, price, 0.0)
        answer.price[chunk.who] = price
        answer.cost[chunk.who] = act.cost
        answer.moved[chunk.who] = (act.action != 0.0).any(axis=1)
        answer.multiplier[chunk.who] = np.where(crosses, act.multiplier, 0.0)
        answer.out[chunk.who] = act.action if as_action else chunk.place(act.action)


def _cross(chunk: Chunk, s: Floats, slack: Floats, crosses: Mask, stay: Act) -> Act:
    """Return the crossing actions; the aim is corrected by what the solved action missed.

    The knots carry rounding: three corrections bring the gain to within the safety margin.
    """
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


def solve_reach(trade: Trade, rows: Floats, gain: float, answer: Answer, reach: Floats) -> None:
    """Write everybody's largest affordable score gain, the action of it and its price."""
    for chunk, _ in _chunks(trade, rows, np.arange(len(rows))):
        answer.status[chunk.who] = chunk.trace(np.inf, gain)
        lines = len(chunk.G)
        most, price, spent = np.empty(lines), np.empty(lines), np.empty(lines, bool)
        budget_rows(*chunk.lines, gain, most, price, spent)
        act = chunk.act(most, price)
        reach[chunk.who] = act.reached
        answer.out[chunk.who] = act.action
        answer.multiplier[chunk.who] = act.multiplier
        answer.price[chunk.who] = np.where(spent, price, np.inf)


def solve_smooth(
    trade: Trade, rows: Floats, scores: Floats, sharpness: float, first: bool,
    as_action: bool, write: bool, who: NDArray[np.intp], answer: Answer, after: Floats,
) -> None:  # fmt: skip
    """Answer the smoothed step for the people ``who``."""
    cap = sharpness * HIGHEST_RISE * (1.0 + 1e-9)
    for chunk, (s,) in _chunks(trade, rows, who, scores):
        status = chunk.trace(cap, np.inf)
        gain, price, ok = np.empty(len(s)), np.empty(len(s)), np.empty(len(s), bool)
        peak_rows(*chunk.lines, s, sharpness, first, gain, price, ok)
        act = chunk.act(gain, price)
        if trade.kind in (KINKED, DENSE):
            act, price = _polish(chunk, s, sharpness, act, gain, price)
        status[(status == FINE) & ~ok] = NOT_CONVERGED
        answer.status[chunk.who] = status
        after[chunk.who] = s + act.reached
        answer.price[chunk.who], answer.cost[chunk.who] = price, act.cost
        answer.multiplier[chunk.who] = act.multiplier
        if write:
            answer.moved[chunk.who] = (act.action != 0.0).any(axis=1)
            answer.out[chunk.who] = act.action if as_action else chunk.place(act.action)


def _polish(
    chunk: Chunk, s: Floats, sharpness: float, act: Act, gain: Floats, price: Floats
) -> tuple[Act, Floats]:
    """Refine the price on the solved action itself, by Newton's steps that only improve."""
    for _ in range(4):
        wanted, bent = price_rows(sharpness, s + act.reached)
        error = wanted - price
        slope = bent * act.rate - 1.0
        open_rows = np.abs(error) > 1e-15 * price
        closer = np.where(slope < 0.0, price - error / np.minimum(slope, -1e-12), price)
        trial = chunk.act(gain, closer)
        new_error = price_rows(sharpness, s + trial.reached)[0] - closer
        better = open_rows & (np.abs(new_error) < np.abs(error))
        if not better.any():
            break
        price = np.where(better, closer, price)
        act = chunk.act(gain, price)
    return act, price


def solve_proxy(
    trade: Trade, rows: Floats, scores: Floats, sharpness: float, last: Floats,
    who: NDArray[np.intp], answer: Answer, after: Floats,
) -> None:  # fmt: skip
    """Solve the concave proxy linearised at the scores ``last``, for the people ``who``."""
    for chunk, (s, at) in _chunks(trade, rows, who, scores, last):
        answer.status[chunk.who] = chunk.trace(2.0 * sharpness, np.inf)
        gain, price = np.empty(len(s)), np.empty(len(s))
        proxy_rows(chunk.G, chunk.U, chunk.count, chunk.rate, s, sharpness, at, gain, price)
        act = chunk.act(gain, price)
        after[chunk.who] = s + act.reached
        answer.price[chunk.who], answer.cost[chunk.who] = price, act.cost
        answer.multiplier[chunk.who] = act.multiplier
        answer.out[chunk.who] = act.action


def boxes(trade: Trade, rows: Floats, who: NDArray[np.intp]) -> tuple[Floats, Floats, Mask, Mask]:
    """Return everybody's box of actions and where a bound on ``x_new`` is the tighter one."""
    lower, upper = _of(trade.lower, who), _of(trade.upper, who)
    if trade.shared:
        never = np.zeros((1, rows.shape[1]), dtype=bool)
        return np.ascontiguousarray(lower), np.ascontiguousarray(upper), never, never
    slack = SLACK * (1.0 + np.abs(rows))
    below, above = _of(trade.low, who) - rows, _of(trade.high, who) - rows
    below = np.where((below > 0.0) & (below <= slack), 0.0, below)
    above = np.where((above < 0.0) & (above >= -slack), 0.0, above)
    low_wins, high_wins = below > lower, above < upper
    return np.maximum(lower, below), np.minimum(upper, above), low_wins, high_wins


def _chunks(
    trade: Trade, rows: Floats, who: NDArray[np.intp], *columns: Floats
) -> Iterator[tuple[Chunk, list[Floats]]]:
    for start in range(0, len(who), CHUNK):
        part = who[start : start + CHUNK]
        yield Chunk(trade, rows, part), [column[part] for column in columns]


def _of(bound: Floats, who: NDArray[np.intp]) -> Floats:
    return bound if len(bound) == 1 else bound[who]


def _offsets(trade: Trade, lo: Floats, hi: Floats, who: NDArray[np.intp]) -> Floats:
    held = np.diag(trade.inverse) == 0.0
    extra = np.broadcast_to(_of(trade.offsets, who), (len(lo), trade.offsets.shape[1]))
    h = np.hstack([np.where(held, np.inf, -lo), np.where(held, np.inf, hi), extra])
    return np.ascontiguousarray(h)
