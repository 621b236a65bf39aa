r"""Recourse alone and together: problems (2) and (3) of Creager and Zemel.

.. math:: \min_\delta \ell(g \mid x + \delta, \theta) \qquad \text{and} \qquad
          \min_\Delta \ell(g \mid x, \theta(\Delta)), \; \theta(\Delta) = A(X + \Delta, y)

Both run on the one engine (`bilevel`); class means have closed forms.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats, Index
from countermove.dynamics.bilevel import Bilevel
from countermove.dynamics.centroid_recourse import (
    closed_form,
    closed_form_applies,
    reduce_to_means,
    shares_by_class,
)
from countermove.dynamics.centroids import CentroidLearner
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.moves import Moves
from countermove.dynamics.participants import checked_participation, checked_rows
from countermove.dynamics.queries import QueryUtility, Unmoved
from countermove.dynamics.recourse_result import Recourse
from countermove.dynamics.recourse_search import Search, best_found
from countermove.dynamics.recourse_setting import Reach, RecourseProblem, recourse_problem
from countermove.dynamics.recourse_stage import Stage, continuous, on_sphere
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.people import ActionSet

Method = Literal["auto", "closed_form", "means", "engine", "sphere"]
METHODS = ("auto", "closed_form", "means", "engine", "sphere")


def individual(problem: RecourseProblem, reach: Reach, search: Search | None = None) -> Recourse:
    """Return what the queries can do alone, the model held fixed (problem (2)).

    The loss is not convex in the features of most models: besides ``search.starts`` (4 unless
    said) starts in all, a query of a nearest-centroid model starts from its goal's centroid.
    """
    search = Search(starts=4) if search is None else search
    people = Crowd(problem.query, problem.goal, problem.mass)
    allowed = continuous(reach.actions)
    if allowed is not None and (problem.places >= 0).all():
        allowed = allowed.of_rows(problem.places)
    space = Moves(people, ball=reach.ball(), actions=allowed)
    utility = QueryUtility(
        problem.goals, problem.query, problem.goal, problem.mass, np.arange(problem.m)
    )
    engine = Bilevel(space, utility, Unmoved(problem.learner, problem.theta))
    starts: list[Floats] = []
    if isinstance(problem.learner, CentroidLearner):
        means = problem.learner.centroids(problem.theta)
        starts.append(means[problem.learner.codes(problem.goal)] - problem.query)
    found, converged = best_found(engine, starts, search)
    still = np.zeros_like(problem.crowd.X)
    return Recourse(problem, still, found.eta, problem.theta, "engine", converged)


def individual_sphere(problem: RecourseProblem, reach: Reach) -> Recourse:
    """Return the published shortcut: one gradient, stretched to the sphere (it may overshoot)."""
    _, slopes = problem.goals.slopes(problem.theta, problem.query, problem.goal)
    moves = on_sphere(-slopes, reach)
    still = np.zeros_like(problem.crowd.X)
    return Recourse(problem, still, moves, problem.theta, "sphere", False)


def together(
    problem: RecourseProblem,
    reach: Reach,
    participants: Any = None,
    participation: float = 1.0,
    individual_budget: float = 0.0,
    method: Method = "auto",
    search: Search | None = None,
) -> Recourse:
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
        return _by_means(problem, reach, rows, share, search or Search(starts=4))
    stage = Stage.of(problem, reach, own, rows, share)
    if chosen == "sphere":
        return stage.sphere()
    search = search or Search()
    starts = []
    if reach.shared and (stage.place < 0).all():
        starts.append(_translated(problem, reach, len(rows), search))
    return stage.solve(search, starts)


def stage_of(problem: RecourseProblem, reach: Reach, participants: Any = None) -> Stage:
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
    search: Search | None = None,
) -> Recourse:
    r"""Return how data subjects can move so that the retrained model decides as a query wants.

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
    search: Search | None = None,
    **said: Any,
) -> Recourse:
    """Return what the queries can do themselves while the model stays (problem (2)).

    Parameters are those of `collective_recourse`; the rest goes to `recourse_problem`.
    """
    problem = recourse_problem(X, y, query, goal, **said)
    reach = Reach(budget, norm, None if prices is None else np.asarray(prices, float), actions)
    if method == "sphere":
        return individual_sphere(problem, reach)
    return individual(problem, reach, search)


def _chosen(problem: RecourseProblem, reach: Reach, own: Reach, method: Method) -> str:
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


def _by_classes(problem: RecourseProblem, reach: Reach, rows: Index, share: float) -> Recourse:
    mass = _taking_part(problem.crowd, rows, share)
    assert isinstance(problem.learner, CentroidLearner)
    shares = shares_by_class(problem.learner, problem.crowd, mass)
    by_class = closed_form(problem, reach, shares)
    return _same_in_class(problem, rows, shares, by_class, "closed_form", converged=True)


def _by_means(
    problem: RecourseProblem, reach: Reach, rows: Index, share: float, search: Search
) -> Recourse:
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    mass = _taking_part(problem.crowd, rows, share)
    small = reduce_to_means(learner, problem.crowd, mass)
    space = Moves(small.crowd, small.members, ball=reach.ball(), actions=continuous(reach.actions))
    utility = QueryUtility(problem.goals, problem.query, problem.goal, problem.mass)
    found, converged = best_found(Bilevel(space, utility, learner), [], search)
    by_class = np.zeros((len(learner.classes), problem.crowd.d))
    by_class[small.codes] = found.eta
    shares = shares_by_class(learner, problem.crowd, mass)
    return _same_in_class(problem, rows, shares, by_class, "means", converged)


def _same_in_class(
    problem: RecourseProblem,
    rows: Index,
    shares: Floats,
    by_class: Floats,
    method: str,
    converged: bool,
) -> Recourse:
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    moves = np.zeros_like(problem.crowd.X)
    moves[rows] = by_class[learner.codes(problem.crowd.y)[rows]]
    theta = (learner.centroids(problem.theta) + shares[:, None] * by_class).ravel()
    still = np.zeros_like(problem.query)
    return Recourse(problem, moves, still, theta, method, converged)


def _translated(problem: RecourseProblem, reach: Reach, n: int, search: Search) -> Floats:
    """Return everybody's opposite of the query's own best move."""
    alone = individual(problem, reach, Search(2, seed=search.seed, strict=False))
    return np.tile(-problem.mass @ alone.query_moves, (n, 1))


def _taking_part(crowd: Crowd, rows: Index, share: float) -> Floats:
    """Return what each row counts as a participant, shape (n,)."""
    mass = np.zeros(crowd.n)
    mass[rows] = share * crowd.mass[rows]
    return mass
