"""The reach of people who meet bounds of their own, under one rule after another.

What bounds them does not change from rule to rule: it is read once, and the multipliers of one rule
are where the search for those of the next begins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numba
import numpy as np
import torch

from countermove._types import Floats
from countermove.response.base import GAIN, Response
from countermove.response.training_signal import OwnReach


@dataclass(frozen=True)
class BoundedPeople:
    """Best responders at a plain quadratic cost, all of them where they may stay."""

    X: Floats
    rise: Floats  # how far every feature can go up, (n, d)
    fall: Floats  # and down
    price: Floats  # the a of the cost Σ a_j δ_j², (d,)
    budget: Floats  # what they can spend, (n,)
    # Under the last rule: where the search starts, and room to write into.
    multiplier: Floats
    moved: Floats

    @classmethod
    def of(cls, response: Response, X: Floats, found: OwnReach) -> Self:
        """Read the people off a response whose reach was once found."""
        bounds = response.for_people(X).plan(X.shape[1]).bounds(len(X))
        rise = np.minimum(bounds.upper, bounds.max_value - X)
        fall = np.minimum(-bounds.lower, X - bounds.min_value)
        prices = response.prices(torch.from_numpy(X))
        budget = GAIN if prices is None else GAIN / prices.detach().numpy()
        up, down = (np.maximum(room, 0.0) for room in (rise, fall))
        spare = np.broadcast_to(budget, len(X)).copy()
        return cls(X, up, down, found.price, spare, np.zeros(len(X)), np.empty_like(X))

    def reach(self, weight: Floats) -> OwnReach:
        """Return what everybody reaches under a rule of this slope; good until the next call."""
        people = (self.X, self.rise, self.fall, weight, self.price, self.budget)
        reach = np.empty(len(self.X))
        _reached(*people, self.moved, reach, self.multiplier)
        return OwnReach(reach, self.moved, self.multiplier, weight, self.price)


jit = numba.njit(cache=True, error_model="numpy", nogil=True, fastmath={"reassoc", "nsz"})


@jit
def _stopped(room, expense, reach, steep, found):  # type: ignore[no-untyped-def]
    """Return what the features spend that a multiplier stops, and how steep the others are."""
    spent, free = 0.0, 0.0
    for j in range(len(room)):
        stopped = found * reach[j] >= room[j]
        spent += expense[j] if stopped else 0.0
        free += 0.0 if stopped else steep[j]
    return spent, free


@jit
def _multiplier(room, expense, reach, steep, budget, found):  # type: ignore[no-untyped-def]
    """Return the λ at which the moves min(λ|w|/a, room) use up the budget; 0: all rooms fit in."""
    everything, steepness = 0.0, 0.0
    for j in range(len(room)):
        everything += expense[j]
        steepness += steep[j] if room[j] > 0.0 else 0.0
    if everything <= budget:
        return 0.0
    # If nothing stopped: no true one is less.
    least = math.sqrt(budget / steepness)
    found = max(found, least)
    # Newton's method on what is spent, which is concave in the squared multiplier: after one step
    # it comes from below, and each step lets one more feature stop or is the last.
    for _ in range(len(room) + 2):
        spent, free = _stopped(room, expense, reach, steep, found)
        rest = budget - spent if free > 0.0 else 0.0
        better = max(math.sqrt(rest / free) if rest > 0.0 else 0.0, least)
        same = abs(better - found) <= 1e-14 * found
        found = better
        if same:
            break
    return found


@jit
def _reached(X, rise, fall, w, price, budget, moved, reach, multiplier):  # type: ignore[no-untyped-def]
    """Write everybody's place, gain and multiplier: moves are min(λ|w|/a, room)."""
    n, d = X.shape
    room, expense, slope, steep = np.empty((4, d))
    for j in range(d):
        slope[j], steep[j] = abs(w[j]) / price[j], w[j] * w[j] / price[j]
    for i in range(n):
        for j in range(d):
            ahead = rise[i, j] if w[j] > 0.0 else fall[i, j]
            room[j] = ahead if w[j] != 0.0 else 0.0
            expense[j] = price[j] * room[j] * room[j]
        found, gain = _multiplier(room, expense, slope, steep, budget[i], multiplier[i]), 0.0
        for j in range(d):
            action = min(room[j], found * slope[j]) if found > 0.0 else room[j]
            gain += abs(w[j]) * action
            moved[i, j] = X[i, j] + (action if w[j] > 0.0 else -action)
        reach[i], multiplier[i] = gain, found
