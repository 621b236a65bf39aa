"""Recourse by integer programming (Ustun et al.): proven cheapest on affine scores.

Costs that are a sum over features, with or without a kink, go to the compiled search; other
costs, and people it leaves unsolved, to HiGHS. A score that bends is replaced by its linear
model near the person, and every answer is checked on the score itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from countermove._types import Floats
from countermove.errors import NotConvergedError
from countermove.execution import in_turn
from countermove.people import Cost
from countermove.people.feasible import FeasibleActions, absent
from countermove.recourse import _linear
from countermove.recourse.mixed_integer import (
    GAP,
    SLACK,
    cheapest_action,
    cheapest_within,
    squares_of,
)
from countermove.recourse.problem import (
    Proposals,
    SearchProblem,
    Settings,
    fall_back,
    shortened,
    unproven,
)
from countermove.response.exact import cheapest_exact

ROUNDS = 6
"""How often a local model is rebuilt at the action it led to."""
AIM = 1e-10
"""Share of the need by which a polished action goes beyond it, so that rounding cannot undo it."""


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest action, proven so on affine scores; NaN where none was found."""
    if problem.slope is not None:
        need = problem.target - problem.values(problem.home) + problem.home @ problem.slope
        slope = np.broadcast_to(problem.slope, problem.X.shape)
        found = cheapest(problem, slope, need)
        # Whoever reaches the threshold but not the margin beyond it has recourse all the same.
        action = fall_back(problem, found.action, reach, settings)
        return Proposals(action, found.proven_none & absent(action), found.proven_cheapest)
    action = fall_back(problem, by_local_models(problem), reach, settings)
    return unproven(shortened(problem, action))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the best score reached: maximising a linear model is the linear program's climb."""
    return _linear.reach(problem, settings)


def cheapest(problem: SearchProblem, slope: Floats, need: Floats) -> Proposals:
    r"""Return the cheapest actions with :math:`w\cdot\delta \ge need`, with proofs."""
    n = len(problem.X)
    action, none, proven = np.full_like(problem.X, np.nan), np.zeros(n, bool), np.zeros(n, bool)
    left = np.arange(n)
    shape = problem.cost.canonical(problem.X.shape[1])
    if shape is not None and shape.weights is not None:
        weights = np.asarray(shape.weights.detach().numpy(), np.float64)
        kink = None if shape.kink is None else shape.kink.detach().numpy()
        action, none, unsolved = cheapest_exact(problem.feasible, slope, need, weights, kink)
        proven, left = ~none & ~unsolved, np.flatnonzero(unsolved)
    for i in in_turn(left.tolist()):
        feasible = problem.feasible.rows(np.array([i]))
        found, none[i] = _by_highs(feasible, problem.cost, slope[i], float(need[i]))
        action[i], proven[i] = np.nan if found is None else found, found is not None
    if shape is not None and shape.weights is None:
        # HiGHS computes with tolerances: what it calls cheapest, or none, is held against what the
        # compiled search finds at the squares of the columns alone.
        alone = np.ones(problem.X.shape[1])
        if shape.matrix is not None:
            alone = np.ascontiguousarray(np.diag(shape.matrix.detach().numpy()))
        other = cheapest_exact(problem.feasible, slope, need, alone).action
        price, least = problem.price_if_any(action), problem.price_if_any(other)
        wins = ~(price <= least * (1.0 + GAP) + 1e-9)
        action[wins], none[wins], proven[wins] = other[wins], False, False
    endless = (problem.feasible.open_low & (slope < 0.0)) | (
        problem.feasible.open_high & (slope > 0.0)
    )
    return Proposals(action, none & ~endless.any(axis=1), proven)


def _by_highs(
    feasible: FeasibleActions, cost: Cost, slope: Floats, need: float
) -> tuple[Floats | None, bool]:
    """Return one person's cheapest action that holds to the last digit, and whether none exists."""
    # (None, False): HiGHS found no such action and proved nothing.
    for margin in (0.0, 2.0 * SLACK * (1.0 + abs(need))):
        try:
            found = cheapest_action(feasible, cost, slope, need, margin)
        except NotConvergedError:
            return None, False
        if found is None:
            return None, margin == 0.0
        polished = _polished(feasible, cost, slope, need, found)
        for answer in (found,) if polished is None else (polished, found):
            if answer @ slope >= need and feasible.meets(answer[None])[0]:
                return answer, False
    return None, False


def _polished(
    feasible: FeasibleActions, cost: Cost, slope: Floats, need: float, found: Floats
) -> Floats | None:
    """Return the cheapest action with the whole steps and states of one that HiGHS found."""
    # What HiGHS misses by its tolerance, or a margin against that, is made up for exactly.
    snapped = feasible.snap(found[None])
    branch = feasible.branch_at(snapped)
    held = feasible.step > 0.0
    held[[int(j) for part in feasible.listed for j in part.columns]] = True
    low, high = (np.where(held, snapped, end) for end in (branch.low, branch.high))
    fixed = replace(branch, low=low, high=high)
    further = need + AIM * (1.0 + abs(need))
    return cheapest_within(squares_of(cost, len(found)), fixed, slope, further)


def by_local_models(problem: SearchProblem) -> Floats:
    """Solve the score's linear model, look where it leads, and make the model again there."""
    best = np.full_like(problem.X, np.nan)
    price = np.full(len(best), np.inf)
    centre = problem.home.copy()
    left = np.arange(len(best))
    for _ in in_turn(range(ROUNDS)):
        part = problem.rows(left)
        scores, slope = part.slopes(centre[left])
        need = part.target - scores + (slope * centre[left]).sum(axis=1)
        solved = cheapest(part, slope, need)
        # Where the model sees no recourse, look from its highest point instead.
        blind = absent(solved.action)
        action = np.where(blind[:, None], _linear.uphill(part.feasible, slope), solved.action)
        good, cost = part.reaches(action), part.price(action)
        wins = good & (cost < price[left] * (1.0 - 1e-9))
        best[left[wins]], price[left[wins]] = action[wins], cost[wins]
        moved = (np.abs(action - centre[left]) > 1e-9).any(axis=1)
        centre[left] = action
        left = left[moved & (wins | ~good)]
        if not left.size:
            break
    return best
