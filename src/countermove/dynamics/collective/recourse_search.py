r"""Searching for moves: closed forms for class means, else several starts and a way over kinks.

With a share :math:`\rho_c` of class c taking part, each with the same convex set of moves
S, the mean can go anywhere in :math:`\mu_c + \rho_c S`. One query wants the goal's mean as
near, and every other mean as far, as it can be: k separate problems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.collective.bilevel import Bilevel, Solution
from countermove.dynamics.collective.recourse_problem import CollectiveRecourseProblem, Reach
from countermove.dynamics.collective.spaces import PartialMoves
from countermove.dynamics.collective.utilities import CentroidGoals, QueryUtility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.centroids import CentroidLearner
from countermove.errors import NotConvergedError, ParameterError
from countermove.randomness import generator

STRETCH, STALLED = 50, 1e-7
"""Steps between looks at the gain, and the share of the value below which a gain is none."""
LADDER = (1e-2, 1e-4, 1e-6, 1e-8)
"""Softenings of the distances, as shares of the farthest goal's."""
ON_KINK = 5e-2
"""A query this near its goal's centroid, as such a share, sits on the kink."""
CYCLES = 6
"""How often each class moves in turn there, at most."""


@dataclass(frozen=True, eq=False)
class RecourseSearch:
    """How long and how closely to look.

    Parameters
    ----------
    starts
        Starts in all; those after the first are drawn at random.
    tolerance, max_steps
        See `Bilevel.maximise`.
    seed
        Of the random starts.
    strict
        Raise `NotConvergedError` where the search still gains when its steps are used up.
    """

    starts: int = 1
    tolerance: float = 1e-7
    max_steps: int = 2_000
    seed: int = 0
    strict: bool = True


def best_found(
    engine: Bilevel, starts: list[Floats], search: RecourseSearch
) -> tuple[Solution, bool]:
    """Climb from staying, random and given starts; return the best and whether the search ended."""
    if search.starts < 1:
        raise ParameterError(f"a search needs starts >= 1, got {search.starts}")
    rng = generator(search.seed, "recourse starts")
    begun = [engine.space.stay()] + [engine.space.drawn(rng) for _ in range(search.starts - 1)]
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    if isinstance(utility.goals, CentroidGoals):
        best, ended = _over_kinks(engine, begun, starts, search)
    else:
        best, ended = _by_stretches(engine, begun, starts, search)
    if search.strict and not ended:
        raise NotConvergedError(
            f"the search still gains after {search.max_steps} steps (projected gradient "
            f"{best.residual:.2g}, tolerance {search.tolerance:.2g}); allow more steps, a "
            "larger tolerance, or take what was found with RecourseSearch(strict=False)"
        )
    return best, ended


def _by_stretches(
    engine: Bilevel, begun: list[Floats], starts: list[Floats], search: RecourseSearch
) -> tuple[Solution, bool]:
    best = max((_climb(engine, eta, search) for eta in begun), key=lambda found: found[0].value)
    for start in starts:
        allowed = engine.space.project(start)
        if engine.at(allowed, best[0].theta).value > best[0].value:
            best = _climb(engine, allowed, search)
    return best


def _climb(engine: Bilevel, eta: Floats, search: RecourseSearch) -> tuple[Solution, bool]:
    """Climb until stationary, or until a stretch gains nothing."""
    best = _stretch(engine, eta, search)
    for _ in range(search.max_steps // STRETCH - 1):
        if best.converged:
            break
        found = _stretch(engine, best.eta, search)
        gained = found.value - best.value
        best = found if gained >= 0.0 else best
        if gained <= STALLED * (1.0 + abs(best.value)):
            return best, True
    return best, best.converged


def _over_kinks(
    engine: Bilevel, begun: list[Floats], starts: list[Floats], search: RecourseSearch
) -> tuple[Solution, bool]:
    """Climb with softened distances first, then with the distances themselves."""
    # A query on its goal's centroid sits on a kink of its loss, where no slope vanishes and every
    # step is short: there the search goes on class by class.
    scale = max(_distance(engine, begun[0]), 1e-3)
    soft = _softened(engine, LADDER[0] * scale)
    begun = begun + [engine.space.project(start) for start in starts]
    found = [_stretch(soft, eta, search) for eta in begun]
    # A start may be better than where softened distances lead from it.
    ends = [one.eta for one in found] + begun
    eta = max(ends, key=lambda end: engine.at(end).value)
    best, ended = replace(found[0], point=engine.at(eta)), True
    if _distance(engine, eta) > ON_KINK * scale:
        best, ended = _climb(engine, eta, search)
    # The climb itself may have led to the kink.
    if _distance(engine, best.eta) <= ON_KINK * scale:
        best, ended = _by_class(engine, best, scale, search), True
    return best, ended


def _by_class(engine: Bilevel, best: Solution, scale: float, search: RecourseSearch) -> Solution:
    """Let one class move at a time, ever less softened, until a cycle gains nothing."""
    # The stiff kink of the goal's class then no longer shortens the steps of the others.
    members = engine.space.members_at(best.eta)
    kinds = np.column_stack([members.y, members.mass > 0.0])
    blocks = [np.flatnonzero((kinds == kind).all(axis=1)) for kind in np.unique(kinds, axis=0)]
    for _ in range(CYCLES):
        before = best.value
        for rows in blocks:
            best = _one_block(engine, best, rows, scale, search)
        if best.value - before <= STALLED * 1e-2 * (1.0 + abs(before)):
            break
    return best


def _one_block(
    engine: Bilevel, best: Solution, rows: Index, scale: float, search: RecourseSearch
) -> Solution:
    eta = best.eta[rows]
    for share in LADDER:
        part = replace(
            _softened(engine, share * scale), space=PartialMoves(engine.space, best.eta, rows)
        )
        eta = _stretch(part, eta, search).eta
    space = PartialMoves(engine.space, best.eta, rows)
    there = engine.at(space.whole(eta), best.theta)
    return replace(best, point=there) if there.value > best.value else best


def _stretch(engine: Bilevel, eta: Floats, search: RecourseSearch) -> Solution:
    steps = min(STRETCH, search.max_steps)
    return engine.maximise(eta, tolerance=search.tolerance, max_steps=steps, strict=False)


def _softened(engine: Bilevel, softening: float) -> Bilevel:
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    assert isinstance(utility.goals, CentroidGoals)
    soft = replace(utility.goals, softening=softening)
    return replace(engine, utility=replace(utility, goals=soft))


def _distance(engine: Bilevel, eta: Floats) -> float:
    """Return how near the nearest query is to its goal's centroid."""
    utility = engine.utility
    assert isinstance(utility, QueryUtility)
    assert isinstance(utility.goals, CentroidGoals)
    learner = utility.goals.learner
    means = learner.centroids(engine.at(eta).theta)[learner.codes(utility.goal)]
    apart = utility.at(engine.space.members_at(eta)) - means
    return float(np.linalg.norm(apart, axis=1).min())


@dataclass(frozen=True, eq=False)
class Reduced:
    """A crowd in which each class is two people: those who take part, and the rest."""

    crowd: Crowd
    members: Index
    codes: Index


def shares_by_class(learner: CentroidLearner, crowd: Crowd, mass: Floats) -> Floats:
    """Return the share of each class that takes part, shape (k,); ``mass`` as participants."""
    inside = np.bincount(learner.codes(crowd.y), mass, len(learner.classes)).astype(np.float64)
    return inside / learner.masses(crowd)


def reduce_to_means(learner: CentroidLearner, crowd: Crowd, mass: Floats) -> Reduced:
    """Replace people by class means; exact when all participants have the same convex moves."""
    codes = learner.codes(crowd.y)
    X: list[Floats] = []
    y, weight, members, kept = [], [], [], []
    for code, name in enumerate(learner.classes):
        for taking_part, part in ((True, mass), (False, crowd.mass - mass)):
            own = np.where(codes == code, part, 0.0)
            total = float(own.sum())
            if total <= 1e-15:
                continue
            if taking_part:
                members.append(len(X))
                kept.append(code)
            X.append(own @ crowd.X / total)
            y.append(name)
            weight.append(total)
    counted = np.array(weight) / np.sum(weight)
    small = Crowd(np.array(X), np.array(y), counted)
    return Reduced(small, np.array(members, dtype=np.intp), np.array(kept, dtype=np.intp))


def closed_form_applies(problem: CollectiveRecourseProblem, reach: Reach) -> bool:
    """Return whether one outside query meets moves with a known farthest point."""
    plain = reach.only_fixes and (reach.prices is None or reach.p != 2.0)
    boxed = reach.shared and reach.p == float("inf")
    outside = problem.m == 1 and bool((problem.places < 0).all())
    return isinstance(problem.learner, CentroidLearner) and outside and (plain or boxed)


def closed_form(problem: CollectiveRecourseProblem, reach: Reach, shares: Floats) -> Floats:
    """Return the best move of each class's participants, shape (k, d)."""
    learner = problem.learner
    assert isinstance(learner, CentroidLearner)
    gaps = problem.query[0] - learner.centroids(problem.theta)
    goal = int(learner.codes(problem.goal)[0])
    moves: Floats = np.zeros(gaps.shape)
    for code, (gap, share) in enumerate(zip(gaps, shares, strict=True)):
        if share > 0.0:
            moves[code] = (_nearest if code == goal else _farthest)(reach, gap, float(share))
    return moves


def _nearest(reach: Reach, gap: Floats, share: float) -> Floats:
    r"""Return :math:`\arg\min_{\delta \in S} |gap - \rho\delta|`: the projection of gap / rho."""
    nearest: Floats = reach.project(np.zeros((1, len(gap))), gap[None, :] / share)[0]
    return nearest


def _farthest(reach: Reach, gap: Floats, share: float) -> Floats:
    r"""Return :math:`\arg\max_{\delta \in S} |gap - \rho\delta|`, at an extreme point of S."""
    free = reach.movable(len(gap))
    if not free.any():
        return np.zeros(len(gap))
    if reach.p == 2.0:
        length = float(np.linalg.norm(gap[free]))
        along = np.where(free, gap, 0.0) if length > 0.0 else np.eye(len(gap))[free.argmax()]
        return -reach.budget * along / (length or 1.0)
    candidates = _corner(reach, gap, share) if reach.p == float("inf") else _tips(reach, len(gap))
    away = np.linalg.norm(gap - share * candidates, axis=1)
    best: Floats = candidates[int(away.argmax())]
    return best


def _corner(reach: Reach, gap: Floats, share: float) -> Floats:
    """Return the corner of the box whose every coordinate is farthest."""
    ends = [
        reach.project(np.zeros((1, len(gap))), sign * np.full((1, len(gap)), np.finfo(float).max))
        for sign in (-1.0, 1.0)
    ]
    low, high = ends[0][0], ends[1][0]
    below = np.abs(gap - share * low) >= np.abs(gap - share * high)
    corner: Floats = np.where(below, low, high)[None, :]
    return corner


def _tips(reach: Reach, d: int) -> Floats:
    """Return the tips of the priced cross-polytope, shape (2 d, d)."""
    length = reach.budget / (np.ones(d) if reach.prices is None else reach.prices)
    tips = np.diag(length)[reach.movable(d)]
    return np.concatenate([tips, -tips])
