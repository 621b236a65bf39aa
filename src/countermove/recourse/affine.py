"""Recourse by integer programming (Ustun et al.): proven cheapest on affine scores.

Costs that are a sum over features, with or without a kink, go to the compiled search; other
costs, and people it leaves unsolved, to HiGHS. A score that bends is replaced by linear
models near the person, and every answer is checked on the score itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from countermove._types import Floats
from countermove.errors import NotConvergedError
from countermove.execution import in_turn
from countermove.people import Cost
from countermove.people.feasible import FeasibleActions, absent
from countermove.randomness import generator
from countermove.recourse import _linear
from countermove.recourse._cheaper import cheaper
from countermove.recourse.mixed_integer import (
    GAP,
    SLACK,
    cheapest_action,
    cheapest_within,
    squares_of,
)
from countermove.recourse.problem import Proposals, SearchProblem, Settings, fall_back, unproven
from countermove.response.exact import cheapest_exact

ROUNDS = 6
"""How often a local model is rebuilt at the action it led to."""
SAMPLES = 48
"""Actions drawn per person for the sampled local model."""
WIDTH = 0.75
"""Kernel width of the samples' weights, as a share of the box's diagonal."""
RIDGE = 1e-6
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
    best = np.full_like(problem.X, np.nan)
    price = np.full(len(best), np.inf)
    kinds = ("taylor", "sampled") if settings.local_model == "both" else (settings.local_model,)
    for kind in in_turn(kinds):
        action = _by_local_models(problem, kind)
        cost = problem.price_if_any(action)
        wins = cost < price
        best[wins], price[wins] = action[wins], cost[wins]
    return unproven(cheaper(problem, fall_back(problem, best, reach, settings)))


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


def _by_local_models(problem: SearchProblem, kind: str) -> Floats:
    """Solve a local linear model, look where it leads, and make the model again there."""
    best = np.full_like(problem.X, np.nan)
    price = np.full(len(best), np.inf)
    centre = problem.home.copy()
    left = np.arange(len(best))
    for round_ in in_turn(range(ROUNDS)):
        part = problem.rows(left)
        scores, slope = _local_model(part, centre[left], kind, round_)
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


def _local_model(
    problem: SearchProblem, centre: Floats, kind: str, round_: int
) -> tuple[Floats, Floats]:
    """Return the local model's value at the centre and its slope, shapes (n,) and (n, d)."""
    if kind == "taylor":
        return problem.slopes(centre)
    return _sampled(problem, centre, round_)


def _sampled(problem: SearchProblem, centre: Floats, round_: int) -> tuple[Floats, Floats]:
    """Fit a plane through the centre to the score at actions drawn around it."""
    feasible = problem.feasible
    columns = np.flatnonzero((feasible.low < feasible.high).any(axis=0))
    draws = generator(problem.seed, f"recourse samples {round_}")
    spread = 0.5**round_ * draws.uniform(-1.0, 1.0, size=(SAMPLES, len(columns)))
    width = (feasible.high - feasible.low)[:, columns]
    offset = spread * width[:, None]
    trials = np.repeat(centre[:, None], SAMPLES, axis=1)
    trials[:, :, columns] = np.clip(
        trials[:, :, columns] + offset,
        feasible.low[:, None, columns],
        feasible.high[:, None, columns],
    )
    shift = trials[:, :, columns] - centre[:, None, columns]
    here = problem.values(centre)
    rise = problem.values_of_each(trials) - here[:, None]
    scale = np.where(width > 0.0, width, 1.0)
    unit = shift / scale[:, None]
    weight = np.exp(-(unit**2).sum(axis=2) / (WIDTH**2 * len(columns) * 0.25 ** (round_)))
    normal = np.einsum("nsj,ns,nsk->njk", unit, weight, unit)
    normal += (
        RIDGE * np.eye(len(columns)) * (1.0 + np.trace(normal, axis1=1, axis2=2))[:, None, None]
    )
    right = np.einsum("nsj,ns,ns->nj", unit, weight, rise)
    slope = np.zeros_like(centre)
    slope[:, columns] = np.linalg.solve(normal, right[:, :, None])[:, :, 0] / scale
    return here, slope
