"""The engine set up for recourse: who is a member, how far each goes, where the queries stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.bilevel import Bilevel
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.moves import Moves
from countermove.dynamics.queries import QueryUtility
from countermove.dynamics.recourse_result import Recourse
from countermove.dynamics.recourse_search import Search, best_found
from countermove.dynamics.recourse_setting import Reach, RecourseProblem
from countermove.errors import ParameterError
from countermove.people import ActionSet


@dataclass(frozen=True, eq=False)
class Stage:
    """The engine, and who is who in it.

    Its crowd holds the data subjects, copies of those who stay, and queries that move themselves
    but count nothing to the learner.

    Parameters
    ----------
    problem, reach
        Who asks for what; how far each may go.
    rows
        The participants: the engine's first members.
    engine
        Maximises the negative loss of the goals.
    place
        Where each query stands among the members, -1 for those who stay.
    """

    problem: RecourseProblem
    reach: Reach
    rows: Index
    engine: Bilevel
    place: Index

    @classmethod
    def of(
        cls, problem: RecourseProblem, reach: Reach, own: Reach, rows: Index, share: float
    ) -> Stage:
        """Set the stage; ``own`` is the queries' own reach, ``share`` the participation."""
        crowd = _with_stayers(problem.crowd, rows, share)
        place = _places(problem.places, rows)
        radii = np.full(len(rows), reach.budget)
        members = rows
        if own.budget > 0.0:
            _refuse_per_person(reach.actions)
            radii[place[place >= 0]] = own.budget
            alone = np.flatnonzero(place < 0)
            place[alone] = len(rows) + np.arange(len(alone))
            members = np.concatenate([rows, crowd.n + np.arange(len(alone))])
            radii = np.concatenate([radii, np.full(len(alone), own.budget)])
            crowd = Crowd(
                np.concatenate([crowd.X, problem.query[alone]]),
                np.concatenate([crowd.y, problem.goal[alone]]),
                np.concatenate([crowd.mass, np.zeros(len(alone))]),
            )
        allowed = None if reach.actions is None else continuous(reach.actions.of_rows(rows))
        space = Moves(crowd, members, ball=reach.ball(radii), actions=allowed)
        utility = QueryUtility(problem.goals, problem.query, problem.goal, problem.mass, place)
        return cls(problem, reach, rows, Bilevel(space, utility, problem.learner), place)

    def solve(self, search: Search, starts: list[Floats]) -> Recourse:
        """Climb from staying and from given moves of everybody, one row each."""
        found, converged = best_found(self.engine, starts, search)
        return self._told(found.eta, found.theta, "engine", converged)

    def sphere(self) -> Recourse:
        """Return one gradient per participant, stretched to the sphere."""
        at = self.engine.at(self.engine.space.stay(), self.problem.theta)
        eta = on_sphere(self.engine.gradient(at), self.reach)
        return self._told(eta, self.engine.at(eta, at.theta).theta, "sphere", False)

    def _query(self, eta: Floats) -> Floats:
        utility = self.engine.utility
        assert isinstance(utility, QueryUtility)
        return utility.at(self.engine.space.members_at(eta))

    def _told(self, eta: Floats, theta: Floats, method: str, converged: bool) -> Recourse:
        moves = np.zeros_like(self.problem.crowd.X)
        moves[self.rows] = eta[: len(self.rows)]
        shift = self._query(eta) - self.problem.query
        return Recourse(self.problem, moves, shift, theta, method, converged)


def _with_stayers(crowd: Crowd, rows: Index, share: float) -> Crowd:
    """Split each participant into one who takes part and one who stays."""
    if share == 1.0:
        return crowd
    mass = crowd.mass.copy()
    mass[rows] *= share
    return Crowd(
        np.concatenate([crowd.X, crowd.X[rows]]),
        np.concatenate([crowd.y, crowd.y[rows]]),
        np.concatenate([mass, (1.0 - share) * crowd.mass[rows]]),
    )


def _places(queries: Index, rows: Index) -> Index:
    """Return where each query stands among the participants, -1 for none."""
    where = {int(row): at for at, row in enumerate(rows)}
    return np.array([where.get(int(row), -1) for row in queries], dtype=np.intp)


def on_sphere(direction: Floats, reach: Reach) -> Floats:
    """Stretch each row to the edge of the ball."""
    size = reach.ball().size(direction)
    return direction * (reach.budget / np.where(size > 0.0, size, 1.0))[:, None]


def continuous(actions: ActionSet | None) -> ActionSet | None:
    """Return the set a continuous move uses: one-hot groups stay as they are."""
    return None if actions is None else actions.for_response()


def _refuse_per_person(actions: ActionSet | None) -> None:
    if actions is not None and not Reach(0.0, actions=actions).shared:
        bounds = (actions.lower, actions.upper, actions.min_value, actions.max_value)
        if any(end is not None and end.ndim == 2 for end in bounds):
            raise ParameterError(
                "queries who move besides others need bounds of shape (d,), the same for all; "
                "bounds per person name data subjects only"
            )
