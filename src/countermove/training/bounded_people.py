"""The reach of people who meet bounds of their own, under one rule after another.

What bounds them does not change from rule to rule: it is read once, and laid out so that the
multipliers of many people are found at the same time.
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

BLOCK = 512


@dataclass(frozen=True)
class BoundedPeople:
    """Best responders at a plain quadratic cost, all of them where they may stay."""

    X: Floats
    rise: Floats  # how far every feature can go up, (d, n)
    fall: Floats  # and down
    price: Floats  # the a of the cost Σ a_j δ_j², (d,)
    budget: Floats  # what they can spend, (n,)
    # Under the last rule: where the search starts, and room to write into.
    multiplier: Floats
    moved: Floats

    @classmethod
    def of(cls, response: Response, X: Floats, found: OwnReach) -> Self:
        """Read the people off a response whose reach was once found."""
        bounds = response.plan(X.shape[1]).bounds(len(X))
        rise = np.minimum(bounds.upper, bounds.max_value - X)
        fall = np.minimum(-bounds.lower, X - bounds.min_value)
        prices = response.prices(torch.from_numpy(X))
        budget = GAIN if prices is None else GAIN / prices.detach().numpy()
        up, down = (np.ascontiguousarray(np.maximum(room, 0.0).T) for room in (rise, fall))
        spare = np.broadcast_to(budget, len(X)).copy()
        return cls(X, up, down, found.price, spare, np.zeros(len(X)), np.empty_like(X))

    def reach(self, weight: Floats) -> OwnReach:
        """Return what everybody reaches under a rule of this slope; good until the next call."""
        people = (self.X, self.rise, self.fall, weight, self.price, self.budget)
        reach = np.empty(len(self.X))
        _reached(*people, self.moved, reach, self.multiplier)
        return OwnReach(reach, self.moved, self.multiplier, weight, self.price)


jit = numba.njit(cache=True, error_model="numpy", nogil=True)


@jit
def _start(rooms, w, price, budget, found, least):  # type: ignore[no-untyped-def]
    """Write the multipliers if nothing stopped, no true one is less; 0: the budget is for all."""
    size = len(found)
    everything, steepness = np.zeros(size), np.zeros(size)
    for j in range(len(w)):
        steep, row = w[j] * w[j] / price[j], rooms[j]
        for b in range(size):
            room = row[b]
            everything[b] += price[j] * room * room
            steepness[b] += steep if room > 0.0 else 0.0
    for b in range(size):
        least[b] = math.sqrt(budget[b] / steepness[b]) if steepness[b] > 0.0 else 0.0
        found[b] = 0.0 if everything[b] <= budget[b] else max(found[b], least[b])


@jit
def _improve(rooms, w, price, budget, found, least):  # type: ignore[no-untyped-def]
    """Put every multiplier where the features it does not stop use up the rest of the budget."""
    # Newton's method on what is spent, which is concave in the squared multiplier: after one step
    # it comes from below, and each step lets one more feature of somebody stop or is the last.
    size = len(found)
    spent, free, grew = np.zeros(size), np.zeros(size), 0
    for j in range(len(w)):
        steep, slope, row = w[j] * w[j] / price[j], abs(w[j]) / price[j], rooms[j]
        for b in range(size):
            room = row[b]
            stopped = found[b] * slope >= room
            spent[b] += price[j] * room * room if stopped else 0.0
            free[b] += 0.0 if stopped else steep
    for b in range(size):
        rest = budget[b] - spent[b] if free[b] > 0.0 else 0.0
        better = max(math.sqrt(rest / free[b]) if rest > 0.0 else 0.0, least[b])
        better = better if found[b] > 0.0 else 0.0
        grew += abs(better - found[b]) > 1e-14 * found[b]
        found[b] = better
    return grew > 0


@jit
def _reached(X, rise, fall, w, price, budget, moved, reach, multiplier):  # type: ignore[no-untyped-def]
    """Write everybody's place, gain and multiplier: moves are min(λ|w|/a, room)."""
    n, d = X.shape
    rooms, gain, least = np.zeros((d, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    for low in range(0, n, BLOCK):
        size = min(BLOCK, n - low)
        here = slice(low, low + size)
        for j in range(d):
            if w[j] != 0.0:
                rooms[j, :size] = rise[j, here] if w[j] > 0.0 else fall[j, here]
            else:
                rooms[j, :size] = 0.0
        found = multiplier[here]
        _start(rooms, w, price, budget[here], found, least)
        for _ in range(d + 2):
            if not _improve(rooms, w, price, budget[here], found, least):
                break
        gain[:size] = 0.0
        for j in range(d):
            slope, sign, row = abs(w[j]) / price[j], 1.0 if w[j] > 0.0 else -1.0, rooms[j]
            for b in range(size):
                room = row[b]
                action = min(room, found[b] * slope) if found[b] > 0.0 else room
                gain[b] += abs(w[j]) * action
                moved[low + b, j] = X[low + b, j] + sign * action
        reach[here] = gain[:size]
