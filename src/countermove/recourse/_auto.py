"""The default: proven cheapest on trees and affine scores, a search by values or gradients else."""

from __future__ import annotations

from countermove._types import Floats
from countermove.recourse import _black_box, _gradient, _linear, _trees, affine
from countermove.recourse.problem import (
    Proposals,
    SearchProblem,
    Settings,
    fall_back,
    shortened,
    unproven,
)
from countermove.scores.opaque import OpaqueScore
from countermove.scores.trees import TreeScore


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest action known, NaN where none was found."""
    if isinstance(problem.score, TreeScore):
        return _trees.search(problem, settings)
    if isinstance(problem.score, OpaqueScore):
        return _black_box.search(problem, settings)
    if problem.slope is not None:
        return affine.search(problem, settings)
    action = _gradient.cheapest_met(problem, settings)
    return unproven(shortened(problem, fall_back(problem, action, reach, settings)))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the best score reached, whatever the target: what the search falls back to."""
    if isinstance(problem.score, TreeScore):
        return _trees.reach(problem, settings)
    if isinstance(problem.score, OpaqueScore):
        return _black_box.reach(problem, settings)
    return _linear.reach(problem, settings)
