"""Recourse on a sum of trees: proven cheapest, by the search over the cells of its splits."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.execution import phase
from countermove.people import QuadraticCost
from countermove.people.feasible import absent
from countermove.recourse.problem import MARGIN, Proposals, SearchProblem, Settings, fall_back
from countermove.response.trees import cheapest_crossing, highest_score, priced_by_cell
from countermove.scores.trees import TreeScore

ROUNDING = 1e-13
"""Share by which a crossing goes beyond the threshold, so that the model itself sees it there."""


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest actions with proofs; NaN where there is none or none was found."""
    aim = np.broadcast_to(_aim(problem.target), len(problem.X))
    found = _cheapest(problem, aim + ROUNDING * (1.0 + np.abs(aim)), settings)
    # Who can only just reach the threshold is asked again, to the last digit.
    rest = np.flatnonzero(absent(found.action))
    if rest.size:
        part, short = problem.rows(rest), aim[rest] - ROUNDING * (1.0 + np.abs(aim[rest]))
        with phase("cheapest actions, to the last digit", len(rest)):
            exact = _cheapest(part, short, settings)
        action = fall_back(part, exact.action, reach, settings)
        found.action[rest], found.proven_cheapest[rest] = action, exact.proven_cheapest
        found.proven_none[rest] = exact.proven_none & absent(action)
    return found


def _cheapest(problem: SearchProblem, aim: Floats, settings: Settings) -> Proposals:
    """Return the cheapest actions to a score, with proofs."""
    found = cheapest_crossing(
        _trees(problem), problem.X, problem.feasible, problem.cost, aim, budget=settings.nodes
    )
    lost = absent(found.action)
    return Proposals(found.action, found.proven & lost, found.proven & ~lost)


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the actions of the highest score, and that score."""
    cost = problem.cost if priced_by_cell(problem.cost, problem.X.shape[1]) else QuadraticCost()
    found = highest_score(_trees(problem), problem.X, problem.feasible, cost, budget=settings.nodes)
    return found.action, problem.values(found.action)


def _trees(problem: SearchProblem) -> TreeScore:
    assert isinstance(problem.score, TreeScore)
    return problem.score


def _aim(target: float | Floats) -> Floats:
    """Return the score asked for, without the margin that searches on slopes aim beyond it."""
    beyond = np.asarray(target, np.float64)
    aim = (beyond - MARGIN) / np.where(beyond >= MARGIN, 1.0 + MARGIN, 1.0 - MARGIN)
    return np.asarray(aim)
