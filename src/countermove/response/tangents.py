"""Along which directions a solved action may still move.

The tangent map T is the inverse Hessian of the cost restricted to moves that
keep every active bound, constraint and kink active.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.response.engine import Chunk, boxes
from countermove.response.trade import DENSE, KINKED, STRAIGHT, Trade


class Tangent(NamedTuple):
    """``T v`` per person, the multiplier of ``v`` on the kink, and what it pushes on the bounds."""

    moved: Floats
    kink: Floats
    edge: Floats


@dataclass(frozen=True)
class Along:
    """The tangent maps of a batch.

    Parameters
    ----------
    free
        Features strictly inside their bounds, shape (n, d).
    on_kink
        People whose action stays where ``kink . action = 0``.
    by_value
        Features stopped by a bound on ``x_new`` (which moves with x), shape (n, d).
    """

    trade: Trade
    chunk: Chunk
    price: Floats
    action: Floats
    free: Mask
    on_kink: Mask
    by_value: Mask

    def apply(self, vector: Floats) -> Tangent:
        """Return T times one vector per person, shape (n, d)."""
        if self.trade.kind == DENSE:
            from countermove.response.dense import tangent_rows

            moved, edge = np.empty_like(self.action), np.empty_like(self.action)
            trade, chunk = self.trade, self.chunk
            tangent_rows(
                trade.inverse, trade.rows, trade.coupling, trade.pull, chunk.h, self.price,
                np.ascontiguousarray(vector), moved, edge,
            )  # fmt: skip
            return Tangent(moved, np.zeros(len(moved)), edge)
        if self.trade.kind == STRAIGHT:
            return self._apply_straight(vector)
        inverse = self.free / (2.0 * self.trade.weights)
        kink = self.trade.kink
        share = np.zeros(len(vector))
        if self.trade.kind == KINKED:
            square = inverse @ (kink * kink)
            live = self.on_kink & (square > 0.0)
            share[live] = ((vector * inverse) @ kink)[live] / square[live]
        rest = vector - share[:, None] * kink
        return Tangent(rest * inverse, share, np.where(self.free, 0.0, rest))

    def edges(self, vector: Floats) -> Floats:
        """Return what a vector without free part pushes on the bounds."""
        if self.trade.kind in (DENSE, STRAIGHT):
            return self.apply(vector).edge
        return np.where(self.free, 0.0, vector)

    def _apply_straight(self, vector: Floats) -> Tangent:
        # A linear cost has no curvature: on the kink one feature makes up for the others.
        share = np.zeros(len(vector))
        pivot, has = self._pivot()
        live = has & self.on_kink
        rows = np.flatnonzero(live)
        share[rows] = vector[rows, pivot[rows]] / self.trade.kink[pivot[rows]]
        rest = vector - share[:, None] * self.trade.kink
        return Tangent(np.zeros_like(vector), share, np.where(self.free, 0.0, rest))

    def _pivot(self) -> tuple[NDArray[np.int64], Mask]:
        return self.free.argmax(axis=1), self.free.sum(axis=1) == 1

    def level(
        self,
        on_action: Floats | None,
        on_score: Floats,
        by_score: Floats,
        eta: Floats,
        rho: Floats,
        r: Floats,
    ) -> None:
        """Set the weights of people on a level piece: the limit of no curvature, in place.

        Their price is fixed by one feature's ratio; that feature takes up whatever
        keeps the score where the price wants it.
        """
        pivot, has = self._pivot()
        w = self.trade.slope
        for i in np.flatnonzero(has & ~self.on_kink & (w[pivot] != 0.0)):
            slope = w[pivot[i]]
            theta = 0.0 if on_action is None else on_action[i, pivot[i]] / slope
            total = theta + on_score[i]
            eta[i] = -theta
            rho[i] = 0.0 if np.isneginf(by_score[i]) else -total / by_score[i]
            r[i, pivot[i]] = rho[i] / slope
        many = self.free.sum(axis=1) > 1
        for i in np.flatnonzero(many & np.isneginf(by_score)):
            # A free crossing: the action is a share of the best free one and shrinks along itself.
            if on_action is not None:
                eta[i] = -(on_action[i] @ self.action[i]) / (w @ self.action[i])


def tangent_of(
    trade: Trade, rows: Floats, price: Floats, multiplier: Floats, action: Floats
) -> Along:
    """Read the active bounds and kinks off a solved batch."""
    everybody = np.arange(len(rows))
    chunk = Chunk(trade, rows, everybody)
    lo, hi, low_wins, high_wins = boxes(trade, rows, everybody)
    at_low, at_high = action <= lo, action >= hi
    free = ~(at_low | at_high)
    by_value = (at_low & low_wins) | (at_high & high_wins & ~at_low)
    on_kink = (multiplier > 0.0) & (multiplier < 1.0)
    return Along(trade, chunk, price, action, free, on_kink, by_value)
