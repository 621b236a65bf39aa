"""Recourse by the linearised problem (Eq. 2), repeated and searched along the line.

One step to the best corner misses recourse that exists, because the score bends.
So the step is taken again from where it led, as far along the line as the true
score rises, and from several starts; what is found is then made cheaper.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.execution import in_turn, phase
from countermove.people.feasible import FeasibleActions, FeatureBlock
from countermove.randomness import generator
from countermove.recourse.polytope import linear_step, project
from countermove.recourse.problem import (
    Proposals,
    SearchProblem,
    Settings,
    fall_back,
    shortened,
    unproven,
)
from countermove.response.exact import highest_gain

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


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return an action per person that reaches the target, NaN where none was found."""
    action = np.full_like(problem.X, np.nan)
    _, gradient = problem.slopes(problem.home)
    corner = uphill(problem.feasible, gradient)
    good = problem.reaches(corner)
    action[good] = corner[good]
    return unproven(shortened(problem, fall_back(problem, action, reach, settings)))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score found, and that score; the target plays no part."""
    feasible = problem.feasible
    exact = feasible.A is None or not feasible.discrete or not feasible.convex
    if problem.slope is not None and exact:
        return climb(problem, problem.home)
    columns = problem.feasible.movable.sum()
    # In a small box every corner has been a start: only the way there is new.
    known = columns <= CORNERS and problem.feasible.A is None and not problem.feasible.discrete
    ways = [(_best_start(problem), FRACTIONS[1:] if known else FRACTIONS)]
    if columns > PLANE:
        ways.append((problem.home, FRACTIONS))
    (action, scores), *others = [climb(problem, *way) for way in in_turn(ways)]
    for other, other_scores in others:
        wins = other_scores > scores
        action[wins], scores[wins] = other[wins], other_scores[wins]
    with phase("one feature at a time", len(action)):
        return one_at_a_time(problem, action, scores, ends=bool(columns > CORNERS))


def _best_start(problem: SearchProblem) -> Floats:
    """Return the start of the highest score; doing nothing is one of them."""
    points = starts_of(problem)
    if (points[:, -1] != problem.home).any():  # In a symmetric box the centre is doing nothing.
        points = np.concatenate([problem.home[:, None], points], axis=1)
    best: Floats = points[np.arange(len(points)), problem.allowed_values(points).argmax(axis=1)]
    return best


def uphill(feasible: FeasibleActions, gradient: Floats) -> Floats:
    """Return the allowed action of the highest linearised score."""
    # Exact without rows; with those of A δ + b ≥ 0 alone, the relaxed maximiser rounded to the
    # lattice, which may then miss one (callers check); else the compiled search's.
    if not feasible.convex:
        return highest_gain(feasible, gradient, feasible.snap(np.zeros_like(gradient)))
    if feasible.A is not None and feasible.b is not None:
        A, b = with_groups(feasible, feasible.A, feasible.b)
        return feasible.snap_within(linear_step(gradient, feasible.low, feasible.high, A, b))
    step = linear_step(gradient, feasible.low, feasible.high)
    for part in feasible.listed:
        step[:, part.columns] = part.of(part.best(gradient))
    return step


def with_groups(feasible: FeasibleActions, A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Add that the bits of a group keep their sum, as two inequalities each."""
    rows = [A]
    for part in feasible.listed[: feasible.n_groups]:
        row = np.zeros((1, A.shape[1]))
        row[0, part.columns] = part.metric
        rows += [row, -row]
    return np.vstack(rows), np.hstack([b, np.zeros((len(b), 2 * feasible.n_groups))])


def climb(
    problem: SearchProblem, start: Floats, shares: Floats = FRACTIONS
) -> tuple[Floats, Floats]:
    """Repeat the linearised step from ``start``, by a share of it, while the score rises."""
    action = start.copy()
    scores = np.full(len(action), -np.inf)
    left, corner = np.arange(len(action)), action
    for turn in in_turn(range(ROUNDS)):
        part = problem.rows(left)
        here, gradient = part.slopes(action[left])
        scores[left] = here
        if turn == 0 or problem.slope is None:  # The slope of an affine score leads to one corner.
            corner = uphill(part.feasible, gradient)
        # Whoever stands in that corner already has nowhere to go.
        away = np.flatnonzero((corner != action[left]).any(axis=1))
        left = left[away]
        trial, best = _along(part.rows(away), action[left], corner[away], shares)
        rises = best > scores[left] + WORTH * (1.0 + np.abs(scores[left]))
        left, corner = left[rises], corner[away[rises]]
        action[left], scores[left] = trial[rises], best[rises]
        if not left.size or (problem.slope is not None and not problem.feasible.discrete):
            break
    return action, scores


def _along(
    problem: SearchProblem, action: Floats, corner: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return the best of the points on the way to a corner, and its score."""
    trials = action[:, None] + shares[:, None] * (corner - action)[:, None]
    n, k, d = trials.shape
    many = problem.repeated(k)
    flat = trials.reshape(n * k, d)
    if problem.feasible.discrete:
        flat = many.feasible.snap(flat)
    if shares[0] == 1.0:
        flat[::k] = corner  # exactly, whatever rounding says
    worth = np.where(many.feasible.meets(flat), many.values(flat), -np.inf).reshape(n, k)
    best = worth.argmax(axis=1)
    rows = np.arange(n)
    return flat.reshape(n, k, d)[rows, best], worth[rows, best]


def starts_of(problem: SearchProblem, count: int = STARTS) -> Floats:
    """Return starts per person, (n, k, d): the same shares of everybody's box."""
    columns = np.flatnonzero(problem.feasible.movable)
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
    low, high = problem.feasible.low, problem.feasible.high
    spots[:, :, columns] = low[:, None, columns] + shares * (high - low)[:, None, columns]
    many = problem.feasible.repeated(len(shares))
    flat = project(spots.reshape(-1, d), many.low, many.high, many.A, many.b)
    return many.snap_within(flat).reshape(spots.shape)


def one_at_a_time(
    problem: SearchProblem, action: Floats, scores: Floats, ends: bool = True
) -> tuple[Floats, Floats]:
    """Improve each feature in turn over a few of its values; climb again where that helped."""
    action, scores = action.copy(), scores.copy()
    better = np.zeros(len(action), bool)
    rows = np.arange(len(action))
    for block in in_turn(problem.feasible.blocks):
        trials = levels_of(problem.feasible, block, action, ends)
        worth = problem.allowed_values(trials)
        best = worth.argmax(axis=1)
        rises = worth[rows, best] > scores + WORTH * (1.0 + np.abs(scores))
        action[rises], scores[rises] = trials[rows, best][rises], worth[rows, best][rises]
        better |= rises
    who = np.flatnonzero(better)
    if who.size:
        action[who], scores[who] = climb(problem.rows(who), action[who])
    return action, scores


def levels_of(feasible: FeasibleActions, block: FeatureBlock, action: Floats, ends: bool) -> Floats:
    """Return ``action`` with one block at each of a few values, shape (n, k, d)."""
    if block.kind == "listed":
        part = feasible.states_of(block)
        trials = np.repeat(action[:, None], part.allowed.shape[1], axis=1)
        kept = part.allowed[:, :, None]
        trials[:, :, part.columns] = np.where(kept, part.change, trials[:, :, part.columns])
        return trials
    j = block.columns[0]
    low, high = feasible.low[:, j, None], feasible.high[:, j, None]
    shares = np.linspace(0.0, 1.0, LEVELS + 2)
    values = low + (shares if ends else shares[1:-1]) * (high - low)
    if block.kind == "whole":
        step = feasible.step[j]
        near = action[:, j, None] + np.array([-step, step])
        values = np.hstack([np.round(values / step) * step, near])
    trials = np.repeat(action[:, None], values.shape[1], axis=1)
    trials[:, :, j] = np.clip(values, low, high)
    return trials


def block_gains(problem: SearchProblem, slope: Floats) -> Floats:
    r"""Return the largest :math:`w\cdot\delta` of each block alone, shape (n, blocks)."""
    feasible = problem.feasible
    gains = np.empty((len(problem.X), len(feasible.blocks)))
    rows = np.arange(len(gains))
    for k, block in enumerate(feasible.blocks):
        if block.kind == "listed":
            part = feasible.states_of(block)
            worth = part.change @ slope[part.columns]
            gains[:, k] = np.where(part.allowed, worth, -np.inf).max(axis=1)
            continue
        j = block.columns[0]
        gains[rows, k] = np.maximum(slope[j] * feasible.low[:, j], slope[j] * feasible.high[:, j])
        endless = feasible.open_high[:, j] if slope[j] > 0.0 else feasible.open_low[:, j]
        gains[:, k] = np.where(endless & (slope[j] != 0.0), np.inf, gains[:, k])
    return gains


def highest_score(problem: SearchProblem, max_features: int | None = None) -> Floats:
    """Return an upper bound of the score any allowed action reaches, infinite if not affine."""
    # Without A δ + b ≥ 0, and for one feature at most or any number, the bound is attained.
    slope, feasible = problem.slope, problem.feasible
    if slope is None:
        return np.full(len(problem.X), np.inf)
    start = problem.values(problem.home) - problem.home @ slope
    # What moves without a choice (a person who has to come back) is in every action.
    forced = np.where(feasible.decided, 0.0, problem.home)
    gains = block_gains(problem, slope)
    if max_features is not None and max_features < gains.shape[1]:
        ranked = -np.sort(-gains, axis=1)
        total = ranked[:, :max_features].sum(axis=1) + np.minimum(ranked[:, max_features:], 0).sum(
            1
        )
    else:
        total = gains.sum(axis=1)
    bound: Floats = start + forced @ slope + total
    if feasible.A is None or feasible.b is None or np.isinf(bound).all():
        return bound
    A, b = with_groups(feasible, feasible.A, feasible.b)
    wide = np.broadcast_to(slope, problem.X.shape)
    relaxed = start + linear_step(wide, feasible.low, feasible.high, A, b) @ slope
    return np.where(np.isinf(bound), bound, np.minimum(bound, relaxed))
