"""The highest score anyone could reach: where it is too low, recourse provably does not exist."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.recourse.linear_program import with_groups
from countermove.recourse.linear_step import linear_step
from countermove.recourse.problem import Problem


def block_gains(problem: Problem, slope: Floats) -> Floats:
    r"""Return the largest :math:`w\cdot\delta` of each block alone, shape (n, blocks)."""
    room = problem.room
    gains = np.empty((len(problem.X), len(room.blocks)))
    names = [tuple(group.tolist()) for group in room.groups]
    rows = np.arange(len(gains))
    for k, block in enumerate(room.blocks):
        if block.kind == "group":
            g = names.index(block.columns)
            worth = slope[room.groups[g]] / room.unit[room.groups[g]]
            best = np.where(room.choices[g], worth, -np.inf).max(axis=1)
            gains[:, k] = best - worth[room.chosen[g]]
            continue
        j = block.columns[0]
        gains[rows, k] = np.maximum(slope[j] * room.low[:, j], slope[j] * room.high[:, j])
        endless = room.open_high[:, j] if slope[j] > 0.0 else room.open_low[:, j]
        gains[:, k] = np.where(endless & (slope[j] != 0.0), np.inf, gains[:, k])
    return gains


def ceiling(problem: Problem, max_features: int | None = None) -> Floats:
    """Return an upper bound of the score any allowed action reaches, shape (n,).

    Infinite for scores that are not affine in the action. Without A δ + b ≥ 0 and
    for one feature at most or any number the bound is attained.
    """
    slope, room = problem.slope, problem.room
    if slope is None:
        return np.full(len(problem.X), np.inf)
    start = problem.values(problem.home) - problem.home @ slope
    # What moves without a choice (a person who has to come back) is in every action.
    forced = np.where(room.decided, 0.0, problem.home)
    gains = block_gains(problem, slope)
    if max_features is not None and max_features < gains.shape[1]:
        ranked = -np.sort(-gains, axis=1)
        total = ranked[:, :max_features].sum(axis=1) + np.minimum(ranked[:, max_features:], 0).sum(
            1
        )
    else:
        total = gains.sum(axis=1)
    bound: Floats = start + forced @ slope + total
    if room.A is None or room.b is None or np.isinf(bound).all():
        return bound
    A, b = with_groups(room, room.A, room.b)
    wide = np.broadcast_to(slope, problem.X.shape)
    relaxed = start + linear_step(wide, room.low, room.high, A, b) @ slope
    return np.where(np.isinf(bound), bound, np.minimum(bound, relaxed))
