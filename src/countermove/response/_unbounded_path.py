r"""The trade-off of a person without bounds, in closed form.

Under :math:`\sum_j q_j\delta_j^2 + \max(0, \ell\cdot\delta)` the action at price u is
:math:`\delta = (u w - m \ell)/2q`: on the kink :math:`\ell\cdot\delta = 0` up to one price, with
:math:`m = 1` beyond it. Two straight pieces, one if the kink never acts; where
they lead to is allowed, they are the solution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countermove._types import Floats
from countermove.response._compile import jit
from countermove.response._reduction import BOXED, FREE, KINKED, Reduction

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
    beyond = float(arrays.slope @ straight)
    kink = arrays.kink * moving if arrays.kind == KINKED else np.zeros_like(straight)
    still = np.zeros((2, len(straight)))
    pull, square = float(kink @ straight), float(kink @ (kink * inverse))
    if not pull > 0.0:
        # Whoever moves up the score moves down the kink, or along it: it never costs.
        along = np.vstack([straight, straight])
        return UnboundedPath(np.inf, np.inf, beyond, beyond, 0.0, 0.0, along, still)
    share = pull / square
    level = (arrays.slope - share * kink) * inverse
    rate = float(arrays.slope @ level)
    if rate <= FLAT * beyond:
        return None
    turn = 1.0 / share
    still[1] = -kink * inverse
    along = np.vstack([level, straight])
    return UnboundedPath(turn, turn * rate, rate, beyond, pull, share, along, still)


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
