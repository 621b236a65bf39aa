"""Who asks for which decision, how far everybody may go, and what the queries get."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats, Index
from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.moves import home_branches, nearest_in_ball, within
from countermove.dynamics.collective.utilities import Goals, goals_of
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.people import ActionSet


@dataclass(frozen=True, eq=False)
class Reach:
    r"""How far one person may go, :math:`\{\delta : \|c \circ \delta\|_p \le \varepsilon\}`.

    Parameters
    ----------
    budget
        :math:`\varepsilon \ge 0`, in the units of the features times their prices.
    p
        1, 2 or infinity.
    prices
        :math:`c > 0`, what a unit of each feature costs, shape (d,); None: 1 for each.
    actions
        Which moves are allowed besides; everybody must be allowed to stay. Whether who can exist
        binds them says `ActionSet.obeyed_in_responses`.
    """

    budget: float
    p: float = 2.0
    prices: Floats | None = None
    actions: ActionSet | None = None

    def __post_init__(self) -> None:
        budget = float(self.budget)
        if not np.isfinite(budget) or budget < 0.0:
            raise ParameterError(f"a budget is a number >= 0, got {self.budget}")
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "p", float(self.p))
        if self.prices is not None:
            object.__setattr__(self, "prices", np.asarray(self.prices, dtype=np.float64))
        self.ball()

    def ball(self, radius: float | Floats | None = None) -> Ball:
        """Return the ball of moves, of another radius where one is given."""
        return Ball(self.budget if radius is None else radius, self.p, self.prices)

    def at(self, budget: float) -> Reach:
        """Return the same with another budget."""
        return replace(self, budget=budget)

    @property
    def shared(self) -> bool:
        """Whether everybody has the same moves, wherever they stand."""
        actions = self.actions
        if actions is None:
            return True
        ends = (actions.lower, actions.upper)
        return (
            actions.min_value is None
            and actions.max_value is None
            and actions.A is None
            and actions.for_response().possible is None
            and all(end is None or end.ndim == 1 for end in ends)
        )

    @property
    def only_fixes(self) -> bool:
        """Whether the actions hold some features fixed and say nothing else."""
        actions = self.actions
        if actions is None:
            return True
        bounds = (actions.lower, actions.upper, actions.min_value, actions.max_value, actions.A)
        directed = actions.only_increase or actions.only_decrease
        tied = actions.for_response().possible is not None
        return not (directed or tied) and all(end is None for end in bounds)

    def movable(self, d: int) -> NDArray[np.bool_]:
        """Return which of ``d`` features may move."""
        if self.actions is None:
            return np.ones(d, dtype=np.bool_)
        return self.actions.for_response().movable_among(d)

    def box(self, X: Floats) -> tuple[Floats | None, Floats | None]:
        """Return the bounds of everybody's moves, one-hot groups held fixed."""
        if self.actions is None:
            return None, None
        return self.actions.for_response().box(X)

    def project(self, X: Floats, moves: Floats) -> Floats:
        """Return the nearest allowed moves of people at ``X``."""
        columns = range(X.shape[1])
        home = home_branches(self.actions, X, columns)
        if home is None:
            return self.ball().project(moves, *self.box(X))
        return nearest_in_ball(
            moves, lambda at, who: within(home.rows(who), at, columns), self.ball()
        )


@dataclass(frozen=True, eq=False)
class CollectiveRecourseProblem:
    """People who want a decision of a model that is fitted to others, or to them as well."""

    crowd: Crowd  # the data subjects; labels as the learner reads them
    query: Floats  # features of the people who ask, shape (m, d)
    goal: Floats  # the class each wants, shape (m,)
    learner: Learner
    rows: Index | None = None  # which data subject each query is, -1 for none; None: nobody is
    weight: Floats | None = None  # how much each query counts, shape (m,)
    labels: tuple[Any, ...] | None = None  # names of the classes, in the order of their codes
    goals: Goals = field(init=False)
    theta: Floats = field(init=False)

    def __post_init__(self) -> None:
        query = np.atleast_2d(np.asarray(self.query, dtype=np.float64))
        if query.shape[1] != self.crowd.d or not len(query):
            raise DataError(
                f"a query has the {self.crowd.d} features of the people, got shape {query.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(query).all(axis=1))
        if bad.size:
            raise DataError(f"queries must be finite, not so in {shown(bad)}", rows=bad)
        goal = np.broadcast_to(np.asarray(self.goal, dtype=np.float64), (len(query),)).copy()
        weight = np.ones(len(query)) if self.weight is None else np.asarray(self.weight, float)
        if weight.shape != (len(query),) or not (weight > 0.0).all():
            raise ParameterError(f"weights of queries are numbers > 0, one each; got {weight}")
        goals = goals_of(self.learner)
        goals.check(goal)
        named = (
            ("query", query),
            ("goal", goal),
            ("weight", weight / weight.sum()),
            ("goals", goals),
            ("theta", self.learner.fit(self.crowd)),
        )
        for name, value in named:
            object.__setattr__(self, name, value)

    @property
    def m(self) -> int:
        """Number of queries."""
        return len(self.query)

    @property
    def mass(self) -> Floats:
        """How much each query counts, adding up to 1, shape (m,)."""
        return np.full(self.m, 1.0 / self.m) if self.weight is None else self.weight

    @property
    def places(self) -> Index:
        """Which data subject each query is, -1 for none, shape (m,)."""
        return np.full(self.m, -1, dtype=np.intp) if self.rows is None else self.rows

    def losses(self, theta: Floats, query: Floats | None = None) -> Floats:
        """Return the loss of each query's goal, shape (m,)."""
        return self.goals.losses(theta, self.query if query is None else query, self.goal)

    def loss(self, theta: Floats, query: Floats | None = None) -> float:
        """Return the weighted mean of the losses."""
        return float(self.mass @ self.losses(theta, query))

    def reached(self, theta: Floats, query: Floats | None = None) -> NDArray[np.bool_]:
        """Return which queries get the decision they want, shape (m,)."""
        where = self.query if query is None else query
        return np.asarray(self.goals.decide(theta, where) == self.goal)

    def named(self, codes: Floats) -> list[Any]:
        """Return classes by the user's names."""
        if self.labels is None:
            return [float(code) for code in codes]
        return [self.labels[int(code)] for code in codes]

    def refuse_reached(self) -> None:
        """Refuse queries that have what they want already."""
        there = np.flatnonzero(self.reached(self.theta))
        if there.size:
            raise ParameterError(
                f"query {shown(there)} has the decision it wants already; leave it out, or say "
                "allow_reached=True to keep it in the average",
                rows=there,
            )


def recourse_problem(
    X: ArrayLike,
    y: ArrayLike,
    query: ArrayLike | None,
    goal: Any,
    *,
    learner: Learner | None = None,
    weight: ArrayLike | None = None,
    query_rows: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    allow_reached: bool = False,
) -> CollectiveRecourseProblem:
    """Return the problem of people who want a decision, from arrays and any labels.

    Parameters
    ----------
    X, y
        The data subjects: features, shape (n, d), and labels of any kind, shape (n,).
    query
        Features of the people who ask, shape (m, d) or (d,); None: those of ``query_rows``.
    goal
        The label each wants, one for all or one each.
    learner
        Fits the model; labels reach it as codes 0, 1, … in sorted order. None: nearest centroid.
    weight
        How much each data subject counts, shape (n,); None: all alike.
    query_rows
        Which rows of ``X`` the queries are; -1 for those who are none.
    query_weight
        How much each query counts.
    allow_reached
        Whether queries may have what they want already.
    """
    people = np.asarray(X, dtype=np.float64)
    if np.shape(y) != people.shape[:1]:
        raise DataError(f"labels are one per row ({len(people)}), got shape {np.shape(y)}")
    names, codes = np.unique(np.asarray(y), return_inverse=True)
    wanted = np.ravel(np.asarray(goal))
    unknown = [str(g) for g in wanted if g not in names]
    if unknown:
        raise ParameterError(f"unknown goal class {shown(unknown)}; the labels are {shown(names)}")
    chosen = _learner(learner, len(names))
    rows = None if query_rows is None else np.atleast_1d(np.asarray(query_rows, dtype=np.intp))
    query = _of_data_subjects(query, rows, people)
    mass = None if weight is None else np.asarray(weight, float) / np.sum(np.asarray(weight, float))
    problem = CollectiveRecourseProblem(
        Crowd(people, codes.astype(np.float64), mass),
        np.asarray(query, dtype=np.float64),
        np.searchsorted(names, wanted).astype(np.float64),
        chosen,
        rows,
        None if query_weight is None else np.asarray(query_weight, dtype=np.float64),
        tuple(names.tolist()),
    )
    if not allow_reached:
        problem.refuse_reached()
    return problem


def _learner(learner: Learner | None, k: int) -> Learner:
    """Return the learner, or the one of class means, if it distinguishes ``k`` classes."""
    if k < 2:
        raise NotEnoughRowsError("everybody has the same label; a model needs at least two classes")
    if learner is None:
        return CentroidLearner(tuple(range(k)))
    if isinstance(learner, CentroidLearner) and learner.classes != tuple(range(k)):
        raise ParameterError(
            f"the labels have {k} classes, the learner {len(learner.classes)}; give it classes 0 "
            f"to {k - 1}, or leave it out"
        )
    if not isinstance(learner, CentroidLearner) and k != 2:
        raise ParameterError(
            f"a {learner.name} learner distinguishes two classes, the labels have {k}; ask for one "
            "class against the others (y == goal), or take class means"
        )
    return learner


def _of_data_subjects(query: ArrayLike | None, rows: Index | None, people: Floats) -> Floats:
    """Return the queries' features: given, or those of the data subjects they are."""
    n = len(people)
    if query is None and (rows is None or (rows < 0).any()):
        raise ParameterError(
            f"give the features of the queries, or query_rows among 0 to {n - 1}; got {rows}"
        )
    if rows is not None and ((rows < -1) | (rows >= n)).any():
        raise ParameterError(f"query_rows are among 0 to {n - 1}, or -1 for none; got {rows}")
    if query is None:
        return people[rows]
    asked = np.atleast_2d(np.asarray(query, dtype=np.float64))
    if rows is None:
        return asked
    if rows.shape != (len(asked),):
        raise ParameterError(f"query_rows are one per query ({len(asked)}), got {rows.shape}")
    other = np.flatnonzero((rows >= 0) & (asked != people[rows]).any(axis=1))
    if other.size:
        raise ParameterError(
            f"query {shown(other)} is given as a data subject but has other features; give the "
            "rows alone (query=None)",
            rows=other,
        )
    return asked


@dataclass(frozen=True, eq=False)
class RecourseOutcome:
    """What people do for a query, and what the query gets."""

    problem: CollectiveRecourseProblem
    moves: Floats  # of the data subjects, shape (n, d); zero for those who do not take part
    query_moves: Floats  # of the queries, shape (m, d)
    theta: Floats  # the model that results
    method: str  # how the moves were found
    converged: bool  # stationary, or no stretch of steps gains any more

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
