r"""A direction turned towards fewer wrong decisions: the annealed 0-1 loss.

.. math:: \min_{w, b} \frac1n \sum_i \sum_k \omega_k\, \sigma\bigl(-y_i z_{ik}/\tau\bigr)
          \quad\text{at}\quad w^\top C w = 1

with C the covariance of the rows, so that the width :math:`\tau` is in standard deviations of the
score; it falls from stage to stage, each started where the last one ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from countermove._types import Floats
from countermove.learning._populations import JudgedMembers
from countermove.learning.simple_rules import linear_score
from countermove.response.base import Response
from countermove.response.response_set import discretised
from countermove.response.training_signal import OwnReach, Reach, has_second_order, reach_of
from countermove.scores import LinearScore
from countermove.training import Derivatives
from countermove.training._labels import counted, is_weighted
from countermove.training.bounded_people import BoundedPeople
from countermove.training.newton import minimise
from countermove.training.second_order import logistic_derivatives

WIDTHS = (0.2, 0.05)
"""More stages, from 0.5 and over 0.1, end at rules as accurate on new rows in twice the time."""
CLOSE, STEPS = 1e-4, 8
"""Of every stage: a stage only has to lead to the next one."""


def annealed(score: LinearScore, people: JudgedMembers, X: Floats, y: Floats) -> LinearScore | None:
    """Return the turned rule; None where the response has no known curvature."""
    parts = people.weights or (1.0 / len(people.members),) * len(people.members)
    members = zip(parts, people.members, strict=True)
    mixed = [(part * share, kind) for part, one in members for share, kind in discretised(one)]
    if not all(has_second_order(kind) for _, kind in mixed):
        return None
    spread = _covariance(X, y) + 1e-9 * np.eye(X.shape[1])
    point = np.append(score.weight.detach().numpy(), score.bias.item())
    reaches = [(share, _reaches(kind, point[:-1], X)) for share, kind in mixed]
    for width in WIDTHS:
        size = math.sqrt(float(point[:-1] @ spread @ point[:-1]))
        if not size > 0.0:
            return None

        def function(at: Floats, width: float = width) -> Derivatives:
            kinds: list[tuple[float, Reach]] = []
            for share, reach_at in reaches:
                reach = reach_at(at[:-1])
                if isinstance(reach, str):
                    return Derivatives(math.nan, at, np.eye(len(at)))
                kinds.append((share, reach))
            scores = X @ at[:-1] + at[-1]
            return logistic_derivatives(X, y, scores, kinds, width=width) + _off_scale(at, spread)

        found = minimise(function, point / size, CLOSE, STEPS)
        if math.isnan(found.at.value):
            return None
        point = found.point
    return linear_score(point)


def _covariance(X: Floats, y: Floats) -> Floats:
    """Return the covariance of the rows, each counted by the size of its label."""
    if not is_weighted(y):
        return np.atleast_2d(np.cov(X.T))
    centred = X - np.average(X, axis=0, weights=np.abs(y))
    n = counted(y)
    return np.asarray((centred * np.abs(y)[:, None]).T @ centred / max(n - 1.0, 0.5 * n))


def _reaches(
    kind: Response, weight: Floats, X: Floats
) -> Callable[[Floats], Reach | Literal["unknown"]]:
    """Return what people reach as a function of the weights."""
    found = reach_of(kind, weight, X)
    if isinstance(found, OwnReach) and not kind.plan(X.shape[1]).possible:
        return BoundedPeople.of(kind, X, found).reach
    return lambda at: reach_of(kind, at, X)


def _off_scale(point: Floats, spread: Floats) -> Derivatives:
    """Return a quarter of the squared distance of the scores' variance from one."""
    weight = point[:-1]
    turned = spread @ weight
    off = float(weight @ turned) - 1.0
    hessian = np.zeros((len(point), len(point)))
    hessian[:-1, :-1] = off * spread + 2.0 * np.outer(turned, turned)
    return Derivatives(0.25 * off * off, np.append(off * turned, 0.0), hessian)
