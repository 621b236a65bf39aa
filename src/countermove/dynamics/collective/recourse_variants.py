"""Help over several retrainings, or without seeing the learner.

Help without seeing the learner is judged by its regret: the loss it leaves above that of the moves
found with the learner in sight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.collective.moves import checked_rows
from countermove.dynamics.collective.recourse import together
from countermove.dynamics.collective.recourse_problem import (
    CollectiveRecourseProblem,
    Reach,
    RecourseOutcome,
)
from countermove.dynamics.collective.recourse_search import RecourseSearch
from countermove.dynamics.crowd import Crowd, mixture
from countermove.errors import ParameterError, shown
from countermove.randomness import generator


@dataclass(frozen=True, eq=False)
class Round:
    """One retraining: what participants did in all until then, and what the queries got."""

    moves: Floats
    theta: Floats
    loss: float
    reached: NDArray[np.bool_]


def recourse_rounds(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    rounds: int,
    memory: float = 0.0,
    participants: Any = None,
    search: RecourseSearch | None = None,
) -> list[Round]:
    r"""Return what a collective reaches retraining after retraining.

    Before each retraining every participant may move once more within the reach, from where
    they are; the platform fits :math:`(1 - m)` new data and :math:`m` of what it fitted last.
    Each round is planned for itself.

    Parameters
    ----------
    problem
        Who asks for what; queries are not data subjects.
    reach
        How far each goes between two retrainings.
    rounds
        How many retrainings.
    memory
        :math:`m`, in [0, 1): the share of the training data that is old.
    participants
        Rows or a mask; None: everybody.
    search
        How long to look in each round.
    """
    if rounds < 1 or not 0.0 <= memory < 1.0:
        raise ParameterError(
            f"expected rounds >= 1 and a memory in [0, 1), got {rounds} and {memory}"
        )
    if (problem.places >= 0).any():
        raise ParameterError("several rounds are planned for queries outside the data only")
    rows, start = checked_rows(participants, problem.crowd), problem.crowd
    planned, X, old = [], start.X.copy(), start
    for _ in range(rounds):
        seen = mixture([start.moved(X), old], [1.0 - memory, memory])
        found = together(_again(problem, seen), reach, rows, search=search)
        X = X + found.moves[: start.n]
        old = mixture([start.moved(X), old], [1.0 - memory, memory])
        planned.append(Round(X - start.X, found.theta, found.loss, found.reached))
    return planned


def _again(problem: CollectiveRecourseProblem, crowd: Crowd) -> CollectiveRecourseProblem:
    return replace(problem, crowd=crowd, rows=None)


Directions = Literal["any", "query"]


@dataclass(frozen=True, eq=False)
class BlindHelp:
    """What was done without seeing the learner."""

    recourse: RecourseOutcome  # the moves, and what the true learner made of them
    retrainings: int  # how many had to be watched
    regret: float  # loss above that of the moves found with the learner in sight


def with_retrainings(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    retrainings: int = 400,
    participants: Any = None,
    directions: Directions = "any",
    probe: float = 0.1,
    seed: int = 0,
    search: RecourseSearch | None = None,
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
        For the moves found with the learner in sight, which the regret compares with.
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
    recourse = watched.outcome(best)
    return BlindHelp(recourse, 1 + 2 * ((retrainings - 1) // 2), recourse.loss - seen.loss)


@dataclass(frozen=True, eq=False)
class _Watched:
    """A platform of which only the loss after a retraining is seen."""

    problem: CollectiveRecourseProblem
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

    def outcome(self, by_class: Floats) -> RecourseOutcome:
        moves = self.moves(by_class)
        theta = self.problem.learner.fit(self.problem.crowd.moved(self.problem.crowd.X + moves))
        still = np.zeros_like(self.problem.query)
        return RecourseOutcome(self.problem, moves, still, theta, "retrainings", True)

    def loss(self, by_class: Floats) -> float:
        return self.outcome(by_class).loss
