"""What people do for a query, and what the query gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.recourse_setting import RecourseProblem


@dataclass(frozen=True, eq=False)
class Recourse:
    """What people do for a query, and what the query gets.

    Parameters
    ----------
    problem
        Who asked for what.
    moves
        Moves of the data subjects, shape (n, d); zero for those who do not take part.
    query_moves
        Moves of the queries, shape (m, d).
    theta
        The model that results.
    method
        How the moves were found.
    converged
        Whether they are stationary, or no stretch of steps gains any more (closed forms are).
    """

    problem: RecourseProblem
    moves: Floats
    query_moves: Floats
    theta: Floats
    method: str
    converged: bool

    @property
    def query(self) -> Floats:
        """Where the queries stand in the end, shape (m, d)."""
        return self.problem.query + self.query_moves

    @property
    def loss_before(self) -> float:
        """The mean loss of the goals before anybody moved."""
        return self.problem.loss(self.problem.theta)

    @property
    def loss(self) -> float:
        """The mean loss of the goals in the end."""
        return self.problem.loss(self.theta, self.query)

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which queries get the decision they want, shape (m,)."""
        return self.problem.reached(self.theta, self.query)

    @property
    def decisions(self) -> list[Any]:
        """What the queries are given in the end, by the user's names."""
        return self.problem.named(self.problem.goals.decide(self.theta, self.query))
