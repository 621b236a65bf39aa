"""Help without seeing the platform's learner: by a model of it, or by watching retrainings.

Both are judged by their regret: the loss they leave above what full sight would leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.learners import Learner
from countermove.dynamics.online_recourse import together
from countermove.dynamics.participants import checked_rows
from countermove.dynamics.recourse_result import Recourse
from countermove.dynamics.recourse_search import Search
from countermove.dynamics.recourse_setting import Reach, RecourseProblem
from countermove.errors import ParameterError, shown
from countermove.randomness import generator

Directions = Literal["any", "query"]


@dataclass(frozen=True, eq=False)
class BlindHelp:
    """What was done without seeing the learner.

    Parameters
    ----------
    recourse
        The moves, and what the true learner made of them.
    retrainings
        How many retrainings had to be watched.
    regret
        Its loss less that of the moves full sight finds; below zero where those are only local.
    """

    recourse: Recourse
    retrainings: int
    regret: float


def with_surrogate(
    problem: RecourseProblem,
    surrogate: Learner,
    reach: Reach,
    participants: Any = None,
    search: Search | None = None,
) -> BlindHelp:
    """Plan the moves against a learner of one's own, and let the true one judge them.

    Parameters
    ----------
    problem
        Who asks for what of the true learner.
    surrogate
        Stands for it; it reads the same labels.
    reach, participants, search
        See `together`.
    """
    imagined = replace(problem, learner=surrogate)
    planned = together(imagined, reach, participants, search=search)
    theta = problem.learner.fit(problem.crowd.moved(problem.crowd.X + planned.moves))
    real = Recourse(
        problem, planned.moves, planned.query_moves, theta, "surrogate", planned.converged
    )
    seen = together(problem, reach, participants, search=search)
    return BlindHelp(real, 0, real.loss - seen.loss)


def with_retrainings(
    problem: RecourseProblem,
    reach: Reach,
    retrainings: int = 400,
    participants: Any = None,
    directions: Directions = "any",
    probe: float = 0.1,
    seed: int = 0,
    search: Search | None = None,
) -> BlindHelp:
    r"""Find the moves by watching the query's loss after retrainings alone.

    Everybody of a class makes one move (which loses nothing where only class means matter). Moves
    are probed both ways along a random direction, and the difference of the losses is a slope:

    .. math:: g = \frac{D}{2h} (\ell(\Delta + h u) - \ell(\Delta - h u))\,u

    Steps shrink like :math:`1/\sqrt t`; the best moves watched are kept. The number D of unknowns
    sets how many retrainings it takes.

    Parameters
    ----------
    problem
        Who asks for what; the learner is only fitted.
    reach
        How far each may go.
    retrainings
        How many may be watched, at least 3.
    participants
        Rows or a mask; None: everybody.
    directions
        ``"any"``: each class may move anywhere, D = classes × features. ``"query"``: each moves to
        or from the (first) query only, D = classes; right for class means, a guess elsewhere.
    probe
        :math:`h`, as a share of the budget.
    seed
        Of the directions.
    search
        For the moves of full sight, which the regret compares with.
    """
    if retrainings < 3 or not 0.0 < probe < 1.0:
        raise ParameterError(
            f"expected retrainings >= 3 and a probe in (0, 1), got {retrainings} and {probe}"
        )
    if directions not in get_args(Directions):
        raise ParameterError(f"directions are {shown(get_args(Directions))}; got {directions!r}")
    rows = checked_rows(participants, problem.crowd)
    watched = _Watched(problem, reach, rows, directions)
    rng = generator(seed, "blind help")
    best = found = np.zeros((len(watched.classes), problem.crowd.d))
    best_loss, step, h = watched.loss(best), reach.budget, probe * reach.budget
    for t in range((retrainings - 1) // 2):
        u = watched.along(rng.normal(size=found.shape))
        u /= np.linalg.norm(u)
        tried = [watched.inside(found + sign * h * u) for sign in (1.0, -1.0)]
        losses = [watched.loss(moves) for moves in tried]
        slope = (losses[0] - losses[1]) * u
        size = float(np.linalg.norm(slope))
        for moves, loss in zip(tried, losses, strict=True):
            best, best_loss = (moves, loss) if loss < best_loss else (best, best_loss)
        if size > 0.0:
            found = watched.inside(found - step / np.sqrt(t + 1.0) * slope / size)
    seen = together(problem, reach, rows, search=search)
    recourse = watched.told(best)
    return BlindHelp(recourse, 1 + 2 * ((retrainings - 1) // 2), recourse.loss - seen.loss)


@dataclass(frozen=True, eq=False)
class _Watched:
    """A platform of which only the loss after a retraining is seen."""

    problem: RecourseProblem
    reach: Reach
    rows: NDArray[np.intp]
    directions: Directions

    @property
    def classes(self) -> Floats:
        return np.unique(self.problem.crowd.y)

    def along(self, by_class: Floats) -> Floats:
        """Keep of a direction what is asked for: all of it, or the part to and from the query."""
        if self.directions == "any":
            return by_class
        crowd = self.problem.crowd
        means = [
            crowd.of_rows(crowd.y == name).mean(crowd.X[crowd.y == name]) for name in self.classes
        ]
        gaps = self.problem.query[0] - np.array(means)
        units = gaps / np.maximum(np.linalg.norm(gaps, axis=1, keepdims=True), 1e-300)
        kept: Floats = by_class[:, :1] * units
        return kept

    def moves(self, by_class: Floats) -> Floats:
        crowd = self.problem.crowd
        moves = np.zeros_like(crowd.X)
        codes = np.searchsorted(self.classes, crowd.y[self.rows])
        wanted = by_class[codes]
        here = crowd.X[self.rows]
        moves[self.rows] = wanted if self.reach.shared else self.reach.project(here, wanted)
        return moves

    def inside(self, by_class: Floats) -> Floats:
        if not self.reach.shared:
            return by_class
        return self.reach.project(np.zeros_like(by_class), by_class)

    def told(self, by_class: Floats) -> Recourse:
        moves = self.moves(by_class)
        theta = self.problem.learner.fit(self.problem.crowd.moved(self.problem.crowd.X + moves))
        still = np.zeros_like(self.problem.query)
        return Recourse(self.problem, moves, still, theta, "retrainings", True)

    def loss(self, by_class: Floats) -> float:
        return self.told(by_class).loss
