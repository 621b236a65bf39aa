"""Recourse on a black box: only asked for values, all people's questions of a round in one call.

First one column at a time and in pairs over a ladder of steps, then a population that crosses
and mutates; every answer is the model's own. Nothing is ever proven: who is not helped was not
found, which is not the same as having no recourse.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.people.feasible import FeasibleActions, absent
from countermove.randomness import generator
from countermove.recourse._search import Proposals, SearchProblem, Settings, unproven

LADDER = 8
"""Steps tried per column and direction."""
POPULATION = 24
SHRINK = 12
"""Halvings that bring an action back towards doing nothing."""


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest action met within ``settings.calls`` questions a person, NaN without."""
    best, _ = _climb(problem, settings, np.asarray(problem.target, np.float64))
    reached = best.copy()
    good = problem.reaches(np.nan_to_num(best)) & ~absent(best)
    reached[~good] = np.nan
    return unproven(_shrunk(problem, reached))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score met, and that score."""
    return _climb(problem, settings, np.full(len(problem.X), np.inf))


def _climb(problem: SearchProblem, settings: Settings, target: Floats) -> tuple[Floats, Floats]:
    """Return the best action met: at the target the cheapest, else the highest."""
    n = len(problem.X)
    target = np.broadcast_to(target, (n,))
    best, score = problem.home.copy(), problem.values(problem.home)
    asked = 1
    ways = _ladder(problem.feasible, problem.home)
    best, score = _take(problem, best, score, target, ways)
    asked += ways.shape[1]
    draws = generator(problem.seed, "black box")
    pool = np.repeat(best[:, None], POPULATION, axis=1)
    while asked + POPULATION <= settings.calls:
        pool = _next_generation(problem.feasible, pool, best, ways, draws)
        values = problem.allowed_values(pool)
        asked += POPULATION
        order = np.argsort(-_merit(problem, pool, values, target), axis=1)
        pool = np.take_along_axis(pool, order[:, :, None], axis=1)
        values = np.take_along_axis(values, order, axis=1)
        best, score = _better(problem, best, score, pool[:, 0], values[:, 0], target)
    return best, score


def _ladder(feasible: FeasibleActions, home: Floats) -> Floats:
    """Return actions that change one block of each person, (n, k, d)."""
    ways = []
    share = np.linspace(0.0, 1.0, LADDER + 1)[1:] ** 2
    for block in feasible.blocks:
        columns = list(block.columns)
        if block.kind == "listed":
            part = feasible.states_of(block)
            for state in range(part.allowed.shape[1]):
                there = home.copy()
                change = part.change[:, state]
                there[:, columns] = np.where(part.allowed[:, [state]], change, home[:, columns])
                ways.append(there)
            continue
        j = columns[0]
        for end in (feasible.low, feasible.high):
            for s in share:
                there = home.copy()
                there[:, j] = s * end[:, j]
                ways.append(feasible.snap(there))
    return np.stack(ways, axis=1) if ways else home[:, None]


def _take(
    problem: SearchProblem, best: Floats, score: Floats, target: Floats, ways: Floats
) -> tuple[Floats, Floats]:
    """Return the best of some actions and what was known."""
    values = problem.allowed_values(ways)
    first = _merit(problem, ways, values, target).argmax(axis=1)
    rows = np.arange(len(best))
    return _better(problem, best, score, ways[rows, first], values[rows, first], target)


def _merit(problem: SearchProblem, ways: Floats, values: Floats, target: Floats) -> Floats:
    """Return what is wanted most: first the target, then a low price, below it a high score."""
    n, k, d = ways.shape
    price = problem.repeated(k).price(ways.reshape(n * k, d)).reshape(n, k)
    reached = values >= target[:, None]
    top = np.where(np.isfinite(values), values, -1e18)
    return np.where(reached, 1e12 - price, top)


def _better(
    problem: SearchProblem, best: Floats, score: Floats, way: Floats, value: Floats, target: Floats
) -> tuple[Floats, Floats]:
    both = np.stack([best, way], axis=1)
    merit = _merit(problem, both, np.stack([score, value], axis=1), target)
    wins = merit[:, 1] > merit[:, 0]
    return np.where(wins[:, None], way, best), np.where(wins, value, score)


def _next_generation(
    feasible: FeasibleActions, pool: Floats, best: Floats, ways: Floats, draws: np.random.Generator
) -> Floats:
    """Return children: blocks of two parents or of a ladder's step, some moved a little."""
    n, k, d = pool.shape
    rows = np.arange(n)[:, None]
    mother = pool[rows, draws.integers(max(1, k // 3), size=(n, k))]
    father = ways[rows, draws.integers(ways.shape[1], size=(n, k))]
    child = mother.copy()
    for block in feasible.blocks:
        columns = list(block.columns)
        takes = draws.random((n, k)) < 0.3
        child[:, :, columns] = np.where(
            takes[:, :, None], father[:, :, columns], child[:, :, columns]
        )
        if block.kind != "listed":
            j = columns[0]
            width = (feasible.high - feasible.low)[:, [j]]
            near = draws.random((n, k)) < 0.5
            spread = np.where(near, 0.03, 0.2) * width * draws.standard_normal((n, k))
            child[:, :, j] += np.where(draws.random((n, k)) < 0.4, spread, 0.0)
    back = draws.random((n, k)) < 0.3  # nearer to doing nothing
    child = np.where(back[:, :, None], child * draws.uniform(0.5, 1.0, (n, k, 1)), child)
    child[:, 0] = best
    flat = feasible.repeated(k).snap(child.reshape(n * k, d))
    return flat.reshape(n, k, d)


def _shrunk(problem: SearchProblem, action: Floats) -> Floats:
    """Bring actions back towards doing nothing, block by block, as long as they work."""
    who = np.flatnonzero(~absent(action))
    if not who.size:
        return action
    part, best = problem.rows(who), action[who].copy()
    for block in part.feasible.blocks:
        columns = list(block.columns)
        near, far = np.zeros(len(best)), np.ones(len(best))
        for _ in range(SHRINK if block.kind != "listed" else 1):
            share = 0.5 * (near + far) if block.kind != "listed" else near
            trial = best.copy()
            trial[:, columns] = share[:, None] * action[who][:, columns]
            trial = part.feasible.snap(trial)
            good = part.reaches(trial) & (part.price(trial) <= part.price(best))
            best = np.where(good[:, None], trial, best)
            far, near = np.where(good, share, far), np.where(good, near, share)
    result = action.copy()
    result[who] = best
    return result
