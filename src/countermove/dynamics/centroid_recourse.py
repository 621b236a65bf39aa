r"""Collective recourse through class means, where only the means matter.

With a share :math:`\rho_c` of class c taking part, each with the same convex set of moves
S, the mean can go anywhere in :math:`\mu_c + \rho_c S`. One query wants the goal's mean as
near, and every other mean as far, as it can be: k separate problems.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.centroids import CentroidLearner
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.recourse_setting import Reach, RecourseProblem


@dataclass(frozen=True, eq=False)
class Reduced:
    """A crowd in which each class is two people: those who take part, and the rest.

    Parameters
    ----------
    crowd
        At most two rows per class, counting as the people they stand for.
    members
        Rows of ``crowd`` that stand for participants.
    codes
        The class of each such row.
    """

    crowd: Crowd
    members: Index
    codes: Index


def shares_by_class(learner: CentroidLearner, crowd: Crowd, mass: Floats) -> Floats:
    """Return the share of each class that takes part, shape (k,).

    ``mass`` is what each row counts as a participant, zero for the others.
    """
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


def closed_form_applies(problem: RecourseProblem, reach: Reach) -> bool:
    """Return whether one outside query meets moves with a known farthest point."""
    plain = reach.only_fixes and (reach.prices is None or reach.p != 2.0)
    boxed = reach.shared and reach.p == float("inf")
    outside = problem.m == 1 and bool((problem.places < 0).all())
    return isinstance(problem.learner, CentroidLearner) and outside and (plain or boxed)


def closed_form(problem: RecourseProblem, reach: Reach, shares: Floats) -> Floats:
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
