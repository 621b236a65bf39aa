"""Recourse on a black box: only asked for values, within ``settings.calls`` rows a person.

Nothing is ever proven: who is not helped was not found, which is not the same as having no
recourse.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.recourse.problem import Proposals, SearchProblem, Settings, unproven
from countermove.response._asked import cheapest_asked, highest_asked


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return the cheapest action met, NaN without."""
    n = len(problem.X)
    target = np.broadcast_to(np.asarray(problem.target, np.float64), (n,))
    return unproven(cheapest_asked(problem, target, np.full(n, np.inf), settings.calls))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the action of the highest score met, and that score."""
    return highest_asked(problem, np.full(len(problem.X), np.inf), settings.calls)
