r"""Recourse alone and together: problems (2) and (3) of Creager and Zemel.

.. math:: \min_\delta \ell(g \mid x + \delta, \theta) \qquad \text{and} \qquad
          \min_\Delta \ell(g \mid x, \theta(\Delta)), \; \theta(\Delta) = A(X + \Delta, y)

Both run on the one engine (`bilevel`); class means have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats, Index
from countermove.dynamics.collective.bilevel import Bilevel, FixedModel
from countermove.dynamics.collective.moves import Moves, checked_participation, checked_rows
from countermove.dynamics.collective.recourse_problem import (
    CollectiveRecourseProblem,
    Reach,
    RecourseOutcome,
    recourse_problem,
)
from countermove.dynamics.collective.recourse_search import (
    RecourseSearch,
    best_found,
    closed_form,
    closed_form_applies,
    reduce_to_means,
    shares_by_class,
)
from countermove.dynamics.collective.utilities import QueryUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.people import ActionSet


@dataclass(frozen=True, eq=False)
class Stage:
    """The engine, and who is who in it."""

    problem: CollectiveRecourseProblem
    reach: Reach
    rows: Index  # participants, the first members of the engine's space
    engine: Bilevel
    place: Index  # where each query stands among the members, -1 for those who stay

    @classmethod
    def of(
        cls, problem: CollectiveRecourseProblem, reach: Reach, own: Reach, rows: Index, share: float
    ) -> Stage:
        """Set the stage; ``own`` is the queries' own reach, ``share`` the participation."""
        # Everybody: data subjects, copies of those who stay, and queries that move themselves but
        # count nothing to the learner.
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

    def solve(self, search: RecourseSearch, starts: list[Floats]) -> RecourseOutcome:
        """Climb from staying and from given moves of everybody, one row each."""
        found, converged = best_found(self.engine, starts, search)
        return self._outcome(found.eta, found.theta, "engine", converged)

    def sphere(self) -> RecourseOutcome:
        """Return one gradient per participant, stretched to the sphere."""
        at = self.engine.at(self.engine.space.stay(), self.problem.theta)
        eta = on_sphere(self.engine.gradient(at), self.reach)
        return self._outcome(eta, self.engine.at(eta, at.theta).theta, "sphere", False)

    def _query(self, eta: Floats) -> Floats:
        utility = self.engine.utility
        assert isinstance(utility, QueryUtility)
        return utility.at(self.engine.space.members_at(eta))

    def _outcome(self, eta: Floats, theta: Floats, method: str, converged: bool) -> RecourseOutcome:
        moves = np.zeros_like(self.problem.crowd.X)
        moves[self.rows] = eta[: len(self.rows)]
        shift = self._query(eta) - self.problem.query
        return RecourseOutcome(self.problem, moves, shift, theta, method, converged)


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


Method = Literal["auto", "closed_form", "means", "engine", "sphere"]
METHODS = ("auto", "closed_form", "means", "engine", "sphere")


def individual(
    problem: CollectiveRecourseProblem, reach: Reach, search: RecourseSearch | None = None
) -> RecourseOutcome:
    """Return what the queries can do alone, the model held fixed (problem (2))."""
    search = RecourseSearch(starts=4) if search is None else search
    people = Crowd(problem.query, problem.goal, problem.mass)
    allowed = continuous(reach.actions)
    if allowed is not None and (problem.places >= 0).all():
        allowed = allowed.of_rows(problem.places)
    space = Moves(people, ball=reach.ball(), actions=allowed)
    utility = QueryUtility(
        problem.goals, problem.query, problem.goal, problem.mass, np.arange(problem.m)
    )
    engine = Bilevel(space, utility, FixedModel(problem.learner, problem.theta))
    starts: list[Floats] = []
    if isinstance(problem.learner, CentroidLearner):
        # The loss is not convex in the features: start from the goal's centroid, too.
        means = problem.learner.centroids(problem.theta)
        starts.append(means[problem.learner.codes(problem.goal)] - problem.query)
    found, converged = best_found(engine, starts, search)
    still = np.zeros_like(problem.crowd.X)
    return RecourseOutcome(problem, still, found.eta, problem.theta, "engine", converged)


def individual_sphere(problem: CollectiveRecourseProblem, reach: Reach) -> RecourseOutcome:
    """Return the published shortcut: one gradient, stretched to the sphere (it may overshoot)."""
    _, slopes = problem.goals.slopes(problem.theta, problem.query, problem.goal)
    moves = on_sphere(-slopes, reach)
    still = np.zeros_like(problem.crowd.X)
    return RecourseOutcome(problem, still, moves, problem.theta, "sphere", False)


def together(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    participants: Any = None,
    participation: float = 1.0,
    individual_budget: float = 0.0,
    method: Method = "auto",
    search: RecourseSearch | None = None,
) -> RecourseOutcome:
    """Return what others can do for the queries through the retraining (problem (3)).

    Parameters
    ----------
    problem
        Who asks for what.
    reach
        How far each participant may go.
    participants
        Rows or a mask; None: everybody.
    participation
        Share of each participant's weight that takes part: 0.3 stands for three in ten people
        like each of them.
    individual_budget
        How far the queries themselves may go besides, with the same norm, prices and actions.
    method
        ``"closed_form"`` (nearest centroid, one outside query), ``"means"`` (nearest centroid,
        the engine on class means), ``"engine"`` (any learner), ``"sphere"`` (the published
        shortcut); ``"auto"`` takes the first that applies.
    search
        How long to look.
    """
    if method not in METHODS:
        raise UnknownNameError(f"no method {method!r}; {nearest(method, METHODS)}")
    rows = checked_rows(participants, problem.crowd)
    share = checked_participation(participation)
    own = Reach(individual_budget, reach.p, reach.prices, reach.actions)
    chosen = _chosen(problem, reach, own, method)
    if chosen == "closed_form":
        return _by_classes(problem, reach, rows, share)
    if chosen == "means":
        return _by_means(problem, reach, rows, share, search or RecourseSearch(starts=4))
    stage = Stage.of(problem, reach, own, rows, share)
    if chosen == "sphere":
        return stage.sphere()
    search = search or RecourseSearch()
    starts = []
    if reach.shared and (stage.place < 0).all():
        starts.append(_translated(problem, reach, len(rows), search))
    return stage.solve(search, starts)


def stage_of(problem: CollectiveRecourseProblem, reach: Reach, participants: Any = None) -> Stage:
    """Return the engine of some participants who help outside queries."""
    rows = checked_rows(participants, problem.crowd)
    return Stage.of(problem, reach, reach.at(0.0), rows, 1.0)


def collective_recourse(
    X: ArrayLike,
    y: ArrayLike,
    query: ArrayLike | None,
    goal: Any,
    *,
    budget: float,
    learner: Learner | None = None,
    norm: float = 2.0,
    prices: ArrayLike | None = None,
    actions: ActionSet | None = None,
    weight: ArrayLike | None = None,
    participants: Any = None,
    participation: float = 1.0,
    individual_budget: float = 0.0,
    query_rows: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    allow_reached: bool = False,
    method: Method = "auto",
    search: RecourseSearch | None = None,
) -> RecourseOutcome:
    r"""Return how data subjects can move so that the retrained model decides as a query wants.

    >>> import numpy as np
    >>> from countermove.dynamics import collective_recourse
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = (X[:, 0] > 0.0).astype(int)
    >>> found = collective_recourse(X, y, query=[-0.1, 0.0], goal=1, budget=0.5)
    >>> found.moves.shape
    (60, 2)

    .. math:: \min_\Delta \; \ell(g \mid x, \theta(\Delta)) \quad \text{with} \quad
        \theta(\Delta) = \arg\min_\theta \mathrm{risk}(\theta; X + \Delta, y), \quad
        \|c \circ \delta_i\|_p \le \varepsilon

    Under full participation of everybody, equal symmetric moves and a translation-equivariant
    learner (class means; a linear learner whose intercept is not penalised) the loss is never
    above that of `individual_recourse` with the same budget: everybody moves by the opposite of
    the query's own best move. That start is always tried.

    Parameters
    ----------
    X, y, query, goal, learner, weight, query_rows, query_weight, allow_reached
        See `recourse_problem`.
    budget, norm, prices, actions
        How far each may go, see `Reach`.
    participants, participation, individual_budget, method, search
        See `together`.

    References
    ----------
    Creager and Zemel, Online Algorithmic Recourse by Collective Action, problem (3).
    """
    problem = recourse_problem(
        X,
        y,
        query,
        goal,
        learner=learner,
        weight=weight,
        query_rows=query_rows,
        query_weight=query_weight,
        allow_reached=allow_reached,
    )
    reach = Reach(budget, norm, None if prices is None else np.asarray(prices, float), actions)
    return together(problem, reach, participants, participation, individual_budget, method, search)


def individual_recourse(
    X: ArrayLike,
    y: ArrayLike,
    query: ArrayLike | None,
    goal: Any,
    *,
    budget: float,
    norm: float = 2.0,
    prices: ArrayLike | None = None,
    actions: ActionSet | None = None,
    method: Literal["engine", "sphere"] = "engine",
    search: RecourseSearch | None = None,
    **settings: Any,
) -> RecourseOutcome:
    """Return what the queries can do themselves while the model stays (problem (2)).

    Parameters are those of `collective_recourse`; the rest goes to `recourse_problem`.
    """
    problem = recourse_problem(X, y, query, goal, **settings)
    reach = Reach(budget, norm, None if prices is None else np.asarray(prices, float), actions)
    if method == "sphere":
        return individual_sphere(problem, reach)
    return individual(problem, reach, search)


def _chosen(problem: CollectiveRecourseProblem, reach: Reach, own: Reach, method: Method) -> str:
    """Return the method that applies, or refuse the one that was asked for."""
    centroid = isinstance(problem.learner, CentroidLearner)
    outside = bool((problem.places < 0).all()) and own.budget == 0.0
    closed = outside and closed_form_applies(problem, reach)
    means = centroid and outside and reach.shared
    if method == "auto":
        return "closed_form" if closed else "means" if means else "engine"
    if (method == "closed_form" and not closed) or (method == "means" and not means):
        raise ParameterError(
            f"method {method!r} needs a nearest-centroid learner, queries outside the data that "
            "do not move, and the same moves for everybody (a closed form also a single query, "
            'and no box unless the norm is infinite); take "engine"'
        )
    return method


def _by_classes(
    problem: CollectiveRecourseProblem, reach: Reach, rows: Index, share: float
) -> RecourseOutcome:
    mass = taking_part(problem.crowd, rows, share)
    assert isinstance(problem.learner, CentroidLearner)
    shares = shares_by_class(problem.learner, problem.crowd, mass)
    by_class = closed_form(problem, reach, shares)
    return _same_in_class(problem, rows, shares, by_class, "closed_form", converged=True)


def _by_means(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    rows: Index,
    share: float,
    search: RecourseSearch,
) -> RecourseOutcome:
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    mass = taking_part(problem.crowd, rows, share)
    small = reduce_to_means(learner, problem.crowd, mass)
    space = Moves(small.crowd, small.members, ball=reach.ball(), actions=continuous(reach.actions))
    utility = QueryUtility(problem.goals, problem.query, problem.goal, problem.mass)
    found, converged = best_found(Bilevel(space, utility, learner), [], search)
    by_class = np.zeros((len(learner.classes), problem.crowd.d))
    by_class[small.codes] = found.eta
    shares = shares_by_class(learner, problem.crowd, mass)
    return _same_in_class(problem, rows, shares, by_class, "means", converged)


def _same_in_class(
    problem: CollectiveRecourseProblem,
    rows: Index,
    shares: Floats,
    by_class: Floats,
    method: str,
    converged: bool,
) -> RecourseOutcome:
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    moves = np.zeros_like(problem.crowd.X)
    moves[rows] = by_class[learner.codes(problem.crowd.y)[rows]]
    theta = (learner.centroids(problem.theta) + shares[:, None] * by_class).ravel()
    still = np.zeros_like(problem.query)
    return RecourseOutcome(problem, moves, still, theta, method, converged)


def _translated(
    problem: CollectiveRecourseProblem, reach: Reach, n: int, search: RecourseSearch
) -> Floats:
    """Return everybody's opposite of the query's own best move."""
    alone = individual(problem, reach, RecourseSearch(2, seed=search.seed, strict=False))
    return np.tile(-problem.mass @ alone.query_moves, (n, 1))


def taking_part(crowd: Crowd, rows: Index, share: float) -> Floats:
    """Return what each row counts as a participant, shape (n,)."""
    mass = np.zeros(crowd.n)
    mass[rows] = share * crowd.mass[rows]
    return mass
