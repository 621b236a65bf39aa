"""What people ask about recourse together: how much, how many, who, and at whose expense."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats
from countermove.dynamics.collective.moves import checked_participation, checked_rows
from countermove.dynamics.collective.recourse import individual, stage_of, taking_part, together
from countermove.dynamics.collective.recourse_problem import (
    CollectiveRecourseProblem,
    Reach,
    RecourseOutcome,
)
from countermove.dynamics.collective.recourse_search import RecourseSearch, shares_by_class
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import DataError, ParameterError, shown
from countermove.people import ActionSet

DOUBLINGS = 24
"""How often a budget is doubled before the goal is given up."""
FAR = 1e6
"""Projecting a direction this many budgets long gives the farthest allowed move along it."""


@dataclass(frozen=True)
class LeastBudgets:
    """Least budgets at which every query gets its goal; None where no budget looked at does."""

    # class means with p = 2: exact, at a tie of the two nearest means; otherwise a budget at which
    # the goal *was* reached (a lower one depends on the search)
    individual: float | None
    collective: float | None


def least_budgets(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    participants: Any = None,
    participation: float = 1.0,
    tolerance: float = 1e-3,
    search: RecourseSearch | None = None,
) -> LeastBudgets:
    """Return the least budgets at which the queries get what they want, alone and together.

    Parameters
    ----------
    problem
        Who asks for what.
    reach
        Norm, prices and actions; its budget (1 where it is 0) is where the search begins.
    participants, participation
        Who helps, see `together`.
    tolerance
        Relative width of the bracket at the end.
    search
        How long to look for moves at each budget; None: a hundred steps.
    """
    search = (
        RecourseSearch(max_steps=100, tolerance=1e-5, strict=False) if search is None else search
    )

    def alone(budget: float) -> bool:
        return bool(individual(problem, reach.at(budget), search).reached.all())

    def helped(budget: float) -> bool:
        at = reach.at(budget)
        found = together(problem, at, participants, participation, search=search)
        return bool(found.reached.all())

    start = reach.budget or 1.0
    if not _plain_means(problem, reach):
        return LeastBudgets(_least(alone, start, tolerance), _least(helped, start, tolerance))
    alone_exactly = _nearest_cell(problem)
    if problem.m == 1 and (problem.places < 0).all():
        return LeastBudgets(alone_exactly, _tie(problem, participants, participation))
    return LeastBudgets(alone_exactly, _least(helped, start, tolerance))


def _plain_means(problem: CollectiveRecourseProblem, reach: Reach) -> bool:
    plain = reach.p == 2.0 and reach.prices is None and reach.actions is None
    return plain and isinstance(problem.learner, CentroidLearner)


def _tie(
    problem: CollectiveRecourseProblem, participants: Any, participation: float
) -> float | None:
    """Return the budget at which the goal's mean is as near as the nearest other."""
    # Means move straight to and from the query, each by its share of participants: the budget is
    # max_c (r_g - r_c) / (rho_g + rho_c).
    learner, crowd = problem.learner, problem.crowd
    assert isinstance(learner, CentroidLearner)
    rows, share = checked_rows(participants, crowd), checked_participation(participation)
    shares = shares_by_class(learner, crowd, taking_part(crowd, rows, share))
    away = np.linalg.norm(problem.query[0] - learner.centroids(problem.theta), axis=1)
    goal = int(learner.codes(problem.goal)[0])
    behind = away[goal] - np.delete(away, goal)
    speed = shares[goal] + np.delete(shares, goal)
    if ((behind > 0.0) & (speed == 0.0)).any():
        return None
    moving = speed > 0.0
    return float(max(0.0, (behind[moving] / speed[moving]).max(initial=0.0)))


def _nearest_cell(problem: CollectiveRecourseProblem) -> float:
    r"""Return the distance to the goal's cell, :math:`|x - \mu_g| \le |x - \mu_c|`: half-spaces."""
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    means, distances = learner.centroids(problem.theta), []
    for query, code in zip(problem.query, learner.codes(problem.goal), strict=True):
        others = np.delete(np.arange(len(means)), code)
        A = 2.0 * (means[code] - means[others])
        b = A @ query - (means[code] ** 2).sum() + (means[others] ** 2).sum(axis=1)
        cell = ActionSet(A=A, b=b)
        distances.append(np.linalg.norm(cell.project(query[None, :], np.zeros((1, len(query))))))
    return float(max(distances))


def _least(holds: Callable[[float], bool], start: float, tolerance: float) -> float | None:
    """Return the least number at which something holds that holds from there on, by bisection."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, start
    for _ in range(DOUBLINGS):
        if holds(high):
            break
        low, high = high, 2.0 * high
    else:
        return None
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def break_even(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    participants: Any = None,
    tolerance: float = 1e-3,
    search: RecourseSearch | None = None,
) -> float | None:
    """Return the least participation at which the others do as well as the queries alone.

    None where not even all participants do.
    """
    alone = individual(problem, reach, search).loss

    def helps(share: float) -> bool:
        if share == 0.0:
            return alone >= problem.loss(problem.theta)
        return together(problem, reach, participants, share, search=search).loss <= alone

    if not helps(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > tolerance:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if helps(middle) else (middle, high)
    return high


def marginal_values(
    problem: CollectiveRecourseProblem, reach: Reach, participants: Any = None
) -> Floats:
    r"""Return what each person's help is worth: the loss one of them takes off, to first order.

    .. math:: \max_{\delta \in S_i} \; -\delta \cdot \frac{\partial}{\partial x_i}
              \ell(g \mid x, \theta(\Delta))\Big|_{\Delta = 0}

    Shape (n,); zero for those who do not take part. Exact for small budgets.
    """
    stage = stage_of(problem, reach, participants)
    gradient = stage.engine.gradient(stage.engine.at(stage.engine.space.stay(), problem.theta))
    size = np.linalg.norm(gradient, axis=1, keepdims=True)
    far = FAR * (reach.budget + 1e-12) * gradient / np.where(size > 0.0, size, 1.0)
    best = stage.engine.space.project(far)
    worth = np.zeros(problem.crowd.n)
    worth[stage.rows] = np.einsum("ij,ij->i", gradient, best)
    return worth


@dataclass(frozen=True)
class SideEffects:
    """What the new model does to the data subjects."""

    accuracy_before: float  # share of them decided as labelled, before
    accuracy: float  # once the model is refitted, people as they were
    accuracy_moved: float  # people where they have moved to
    changed: float  # share whose decision changed, people as they were
    mean_move: float  # mean Euclidean length of a participant's move
    by_group: Mapping[str, Mapping[str, float]]  # people, accuracy before and after, share changed


def side_effects(recourse: RecourseOutcome, groups: ArrayLike | None = None) -> SideEffects:
    """Return what recourse for a few does to everybody else.

    Parameters
    ----------
    recourse
        What was done.
    groups
        A group for each data subject, shape (n,); None: their labels.
    """
    problem = recourse.problem
    crowd, goals = problem.crowd, problem.goals
    before = goals.decide(problem.theta, crowd.X)
    after = goals.decide(recourse.theta, crowd.X)
    moved = goals.decide(recourse.theta, crowd.X + recourse.moves)
    named = np.asarray(problem.named(crowd.y) if groups is None else groups).astype(str)
    if named.shape != (crowd.n,):
        raise DataError(f"groups are one per data subject ({crowd.n}), got shape {named.shape}")
    lengths = np.linalg.norm(recourse.moves, axis=1)
    facts = {
        "people": np.ones(crowd.n),
        "accuracy_before": before == crowd.y,
        "accuracy": after == crowd.y,
        "changed": before != after,
    }
    by_group = {}
    for name in dict.fromkeys(named.tolist()):
        own = named == name
        mean = crowd.mass[own] / crowd.mass[own].sum()
        by_group[name] = {key: float(mean @ value[own]) for key, value in facts.items()}
        by_group[name]["people"] = float(own.sum())
    return SideEffects(
        accuracy_before=float(crowd.mean(before == crowd.y)),
        accuracy=float(crowd.mean(after == crowd.y)),
        accuracy_moved=float(crowd.mean(moved == crowd.y)),
        changed=float(crowd.mean(before != after)),
        mean_move=float(lengths[lengths > 0.0].mean()) if (lengths > 0.0).any() else 0.0,
        by_group=by_group,
    )


@dataclass(frozen=True, eq=False)
class Alternative:
    """One way to help: who moves, which features are left alone, what it leads to."""

    name: str
    recourse: RecourseOutcome


def alternatives(
    problem: CollectiveRecourseProblem,
    reach: Reach,
    n: int = 3,
    features: Sequence[str] | None = None,
    search: RecourseSearch | None = None,
) -> list[Alternative]:
    """Return ways to help that differ: in who moves, and in what they move.

    The best comes first; each further one is, of those at least half as good, the one whose moves
    differ most from those already listed (by angle).

    Parameters
    ----------
    problem
        Who asks for what.
    reach
        How far each may go.
    n
        How many.
    features
        Names of the features, for the names of the ways; None: numbers.
    search
        How long to look for each.
    """
    if n < 1:
        raise ParameterError(f"expected at least one alternative, got {n}")
    ways = [Alternative("everybody", together(problem, reach, search=search))]
    for code in np.unique(problem.crowd.y):
        name = f"only {problem.named(np.array([code]))[0]}"
        who = np.flatnonzero(problem.crowd.y == code)
        ways.append(Alternative(name, together(problem, reach, who, search=search)))
    used = np.abs(ways[0].recourse.moves).mean(axis=0)
    for count in (1, max(2, problem.crowd.d // 2)):
        spared = tuple(int(j) for j in np.argsort(-used)[:count])
        if len(spared) < problem.crowd.d:
            found = together(problem, _sparing(reach, spared), search=search)
            named = [str(j) if features is None else features[j] for j in spared]
            ways.append(Alternative(f"sparing {shown(named, cap=3)}", found))
    return _spread(ways, n)


def _sparing(reach: Reach, spared: tuple[int, ...]) -> Reach:
    actions = reach.actions or ActionSet()
    held = ActionSet(**{**actions.describe(), "immutable": (*actions.immutable, *spared)})
    held.unit, held.offset = actions.unit, actions.offset
    return Reach(reach.budget, reach.p, reach.prices, held)


def _spread(ways: list[Alternative], n: int) -> list[Alternative]:
    before = ways[0].recourse.loss_before
    ways = sorted(ways, key=lambda way: way.recourse.loss)
    best = before - ways[0].recourse.loss
    rest = [way for way in ways[1:] if before - way.recourse.loss >= 0.5 * best]
    chosen = [ways[0]]
    while rest and len(chosen) < n:
        farthest = max(rest, key=lambda way: min(_angle(way, other) for other in chosen))
        chosen.append(farthest)
        rest.remove(farthest)
    return chosen


def _angle(one: Alternative, other: Alternative) -> float:
    a, b = one.recourse.moves.ravel(), other.recourse.moves.ravel()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return 1.0 - float(a @ b) / size if size > 0.0 else 1.0
