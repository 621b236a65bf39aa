"""The default: proven cheapest on trees and where the score is affine in what moves, else a search.

On a score that bends, local linear models and gradient both search and the cheaper action
wins: over three networks a mean of 0 to 1 % above the best of three methods, each alone 1 to 240 %.
"""

from __future__ import annotations

from countermove._types import Floats
from countermove.execution import in_turn
from countermove.recourse import _black_box, _gradient, _linear, _trees, affine
from countermove.recourse._cheaper import cheaper_of
from countermove.recourse.problem import Proposals, SearchProblem, Settings, unproven
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
    ways = [how.search(problem, settings).action for how in in_turn((affine, _gradient))]
    return unproven(cheaper_of(problem, *ways))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the best score reached, whatever the target: what the search falls back to."""
    if isinstance(problem.score, TreeScore):
        return _trees.reach(problem, settings)
    if isinstance(problem.score, OpaqueScore):
        return _black_box.reach(problem, settings)
    return _linear.reach(problem, settings)
