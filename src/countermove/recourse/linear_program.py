"""Recourse by the linearised problem (Eq. 2), repeated and searched along the line.

One step to the best corner misses recourse that exists, because the score bends.
So the step is taken again from where it led, as far along the line as the true
score rises, and from several starts; what is found is then made cheaper.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.randomness import generator
from countermove.recourse.cheaper import cheaper
from countermove.recourse.linear_step import linear_step
from countermove.recourse.methods import Found, Settings, fall_back, unproven
from countermove.recourse.problem import Problem
from countermove.recourse.projection import project
from countermove.recourse.room import Block, Room

__all__ = ["linear_step", "reach", "search"]


FRACTIONS = np.array([1.0, 0.4, 0.1])
"""Shares of the way to the corner that are tried; the last refines a flat top."""
ROUNDS = 12
CORNERS = 4
"""Up to so many movable columns every corner of the box is a start."""
STARTS = 12
"""Starts drawn in larger boxes, shared by all people (as shares of their own boxes)."""
PLANE = 2
"""Beyond so many movable columns a second climb, from doing nothing, is worth its time."""
LEVELS = 3
"""Values tried inside a feature's range when features are searched one at a time."""
WORTH = 1e-7
"""A gain of the score below this share is no progress."""


def search(problem: Problem, settings: Settings) -> Found:
    """Return an action per person that reaches the target, NaN where none was found."""
    action = np.full_like(problem.X, np.nan)
    _, gradient = problem.slopes(problem.home)
    corner = uphill(problem.room, gradient)
    good = problem.reaches(corner)
    action[good] = corner[good]
    return unproven(cheaper(problem, fall_back(problem, action, reach, settings)))


def reach(problem: Problem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score found, and that score; the target plays no part."""
    exact = problem.room.A is None or not problem.room.discrete
    if problem.slope is not None and exact:
        return climb(problem, problem.home)
    columns = problem.room.movable.sum()
    # In a small box every corner has been a start: only the way there is new.
    known = columns <= CORNERS and problem.room.A is None and not problem.room.discrete
    action, scores = climb(problem, _best_start(problem), FRACTIONS[1:] if known else FRACTIONS)
    if columns > PLANE:
        other, other_scores = climb(problem, problem.home)
        wins = other_scores > scores
        action[wins], scores[wins] = other[wins], other_scores[wins]
    return one_at_a_time(problem, action, scores, ends=bool(columns > CORNERS))


def _best_start(problem: Problem) -> Floats:
    """Return the start of the highest score; doing nothing is one of them."""
    points = starts_of(problem)
    if (points[:, -1] != problem.home).any():  # In a symmetric box the centre is doing nothing.
        points = np.concatenate([problem.home[:, None], points], axis=1)
    n, k, d = points.shape
    meets = problem.room.repeated(k).meets(points.reshape(-1, d)).reshape(n, k)
    worth = np.where(meets, problem.values_of_each(points), -np.inf)
    best: Floats = points[np.arange(n), worth.argmax(axis=1)]
    return best


def uphill(room: Room, gradient: Floats) -> Floats:
    """Return the allowed action of the highest linearised score.

    Exact without A δ + b ≥ 0; with it, the relaxed maximiser rounded to the
    lattice, which may then miss a constraint (callers check).
    """
    if room.A is not None and room.b is not None:
        A, b = with_groups(room, room.A, room.b)
        return room.snap_within(linear_step(gradient, room.low, room.high, A, b))
    step = linear_step(gradient, room.low, room.high)
    for group, chosen, choices in zip(room.groups, room.chosen, room.choices, strict=True):
        gains = gradient[:, group] / room.unit[group]
        wanted = np.where(choices, gains, -np.inf).argmax(axis=1)
        rows = np.arange(len(step))
        tie = choices[rows, chosen] & (gains[rows, chosen] >= gains[rows, wanted])
        step[:, group] = room.switch(group, chosen, np.where(tie, chosen, wanted))
    return step


def with_groups(room: Room, A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Add that the bits of a group keep their sum, as two inequalities each."""
    rows = [A]
    for group in room.groups:
        row = np.zeros((1, A.shape[1]))
        row[0, group] = room.unit[group]
        rows += [row, -row]
    return np.vstack(rows), np.hstack([b, np.zeros((len(b), 2 * len(room.groups)))])


def climb(problem: Problem, start: Floats, shares: Floats = FRACTIONS) -> tuple[Floats, Floats]:
    """Repeat the linearised step from ``start``, by a share of it, while the score rises."""
    action = start.copy()
    scores = np.full(len(action), -np.inf)
    left = np.arange(len(action))
    for _ in range(ROUNDS):
        part = problem.rows(left)
        here, gradient = part.slopes(action[left])
        scores[left] = here
        corner = uphill(part.room, gradient)
        # Whoever stands in that corner already has nowhere to go.
        away = np.flatnonzero((corner != action[left]).any(axis=1))
        left = left[away]
        trial, best = _along(part.rows(away), action[left], corner[away], shares)
        rises = best > scores[left] + WORTH * (1.0 + np.abs(scores[left]))
        left = left[rises]
        action[left], scores[left] = trial[rises], best[rises]
        if not left.size or (problem.slope is not None and not problem.room.discrete):
            break
    return action, scores


def _along(
    problem: Problem, action: Floats, corner: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return the best of the points on the way to a corner, and its score."""
    trials = action[:, None] + shares[:, None] * (corner - action)[:, None]
    n, k, d = trials.shape
    many = problem.repeated(k)
    flat = trials.reshape(n * k, d)
    if problem.room.discrete:
        flat = many.room.snap(flat)
    if shares[0] == 1.0:
        flat[::k] = corner  # exactly, whatever rounding says
    worth = np.where(many.room.meets(flat), many.values(flat), -np.inf).reshape(n, k)
    best = worth.argmax(axis=1)
    rows = np.arange(n)
    return flat.reshape(n, k, d)[rows, best], worth[rows, best]


def starts_of(problem: Problem, count: int = STARTS) -> Floats:
    """Return starts per person, (n, k, d): the same shares of everybody's box."""
    columns = np.flatnonzero(problem.room.movable)
    if len(columns) <= CORNERS:
        ends = np.stack(np.meshgrid(*[[0.0, 1.0]] * len(columns), indexing="ij"), axis=-1)
        shares = np.vstack([ends.reshape(-1, len(columns)), np.full((1, len(columns)), 0.5)])
    else:
        draws = generator(problem.seed, "recourse starts")
        inner = draws.uniform(size=(count // 2, len(columns)))
        shares = np.vstack(
            [inner, np.round(draws.uniform(size=(count - len(inner), len(columns))))]
        )
    n, d = problem.X.shape
    spots = np.zeros((n, len(shares), d))
    low, high = problem.room.low, problem.room.high
    spots[:, :, columns] = low[:, None, columns] + shares * (high - low)[:, None, columns]
    many = problem.room.repeated(len(shares))
    flat = project(spots.reshape(-1, d), many.low, many.high, many.A, many.b)
    return many.snap_within(flat).reshape(spots.shape)


def one_at_a_time(
    problem: Problem, action: Floats, scores: Floats, ends: bool = True
) -> tuple[Floats, Floats]:
    """Improve each feature in turn over a few of its values; climb again where that helped.

    ``ends`` says whether the ends of its range are among the values.
    """
    action, scores = action.copy(), scores.copy()
    better = np.zeros(len(action), bool)
    rows = np.arange(len(action))
    for block in problem.room.blocks:
        trials = levels_of(problem.room, block, action, ends)
        n, k, d = trials.shape
        meets = problem.room.repeated(k).meets(trials.reshape(-1, d)).reshape(n, k)
        worth = np.where(meets, problem.values_of_each(trials), -np.inf)
        best = worth.argmax(axis=1)
        rises = worth[rows, best] > scores + WORTH * (1.0 + np.abs(scores))
        action[rises], scores[rises] = trials[rows, best][rises], worth[rows, best][rises]
        better |= rises
    who = np.flatnonzero(better)
    if who.size:
        action[who], scores[who] = climb(problem.rows(who), action[who])
    return action, scores


def levels_of(room: Room, block: Block, action: Floats, ends: bool) -> Floats:
    """Return ``action`` with one block at each of a few values, shape (n, k, d)."""
    if block.kind == "group":
        position = [tuple(group.tolist()) for group in room.groups].index(block.columns)
        group, choices = room.groups[position], room.choices[position]
        trials = np.repeat(action[:, None], len(group), axis=1)
        for k in range(len(group)):
            wanted = np.where(choices[:, k], k, room.chosen[position])
            change = room.switch(group, room.chosen[position], wanted)
            kept = choices[:, k, None]
            trials[:, k, group] = np.where(kept, change, action[:, group])
        return trials
    j = block.columns[0]
    low, high = room.low[:, j, None], room.high[:, j, None]
    shares = np.linspace(0.0, 1.0, LEVELS + 2)
    values = low + (shares if ends else shares[1:-1]) * (high - low)
    if block.kind == "whole":
        step = room.step[j]
        near = action[:, j, None] + np.array([-step, step])
        values = np.hstack([np.round(values / step) * step, near])
    trials = np.repeat(action[:, None], values.shape[1], axis=1)
    trials[:, :, j] = np.clip(values, low, high)
    return trials
