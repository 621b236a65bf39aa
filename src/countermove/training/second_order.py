r"""The mean logistic loss after response, with its gradient and Hessian in weights and intercept.

.. math:: L(w, b) = \sum_k \omega_k \frac1n \sum_i c_{y_i} \log\bigl(1 + e^{-y_i z_{ik}}\bigr),
          \quad z_{ik} = w\cdot x_i + b + h_{ik}(w)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from countermove._types import Floats
from countermove.response._second_order import OwnReach, Reach, SharedReach
from countermove.training.newton import Derivatives

RIDGE = 1e-6
"""Of half the squared weights: the optimum is one point also where columns are collinear or the
classes are separable, and elsewhere moves by less than anybody can see."""


LossDerivatives: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]
"""From labels and scores to losses and their two derivatives in the score."""


def logistic_derivatives(
    X: Floats,
    y: Floats,
    scores: Floats,
    kinds: Sequence[tuple[float, Reach]],
    class_weight: tuple[float, float] | None = None,
    losses_of: LossDerivatives | None = None,
) -> Derivatives:
    """Return them for people of several kinds, each with its share and reach.

    ``scores`` are those of people where they stand, (n,); the parameters are the weights of the
    columns of ``X``, then the intercept. ``losses_of`` may put another loss in the place of the
    logistic one.
    """
    n, d = X.shape
    value, gradient, hessian = 0.0, np.zeros(d + 1), np.zeros((d + 1, d + 1))
    together: list[tuple[Floats, Floats, SharedReach | None]] = []
    for share, reach in kinds:
        after = scores if reach is None else scores + _gains(reach)
        losses, first, second = _weighted(y, after, class_weight, losses_of)
        value += share * float(losses.sum())
        first *= share
        second *= share
        if isinstance(reach, OwnReach):
            _add_own(gradient, hessian, X, reach, first, second)
        else:
            together.append((first, second, reach))
    if together:
        _add_shared(gradient, hessian, X, together)
    return Derivatives(value / n, gradient / n, hessian / n)


def tangent_derivatives(
    tangents: Floats,
    y: Floats,
    after: Floats,
    class_weight: tuple[float, float] | None = None,
) -> Derivatives:
    """Return them from scores after response and their gradients alone, (n, p).

    How those gradients turn with the rule is left out of the Hessian.
    """
    losses, first, second = _weighted(y, after, class_weight)
    n = len(y)
    hessian = tangents.T @ (tangents * second[:, None]) / n
    return Derivatives(float(losses.sum()) / n, tangents.T @ first / n, hessian, exact=False)


def _weighted(
    y: Floats,
    after: Floats,
    class_weight: tuple[float, float] | None,
    losses_of: LossDerivatives | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return the loss of every person and its two derivatives, class weights included."""
    found = (losses_of or _logistic)(y, after)
    if class_weight is None:
        return found
    heed = np.where(y > 0, class_weight[1], class_weight[0])
    losses, first, second = (part * heed for part in found)
    return losses, first, second


def _gains(reach: SharedReach | OwnReach) -> Floats:
    return reach.reach if isinstance(reach, OwnReach) else reach.factor * reach.reach


def _logistic(y: Floats, scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the loss and its two derivatives in the score."""
    odds = np.exp(-np.abs(scores))
    margins = y * scores
    losses = np.log1p(odds) + np.maximum(-margins, 0.0)
    likely = 1.0 / (1.0 + odds)  # of the class the score speaks for
    wrong = np.where(margins >= 0.0, odds, 1.0) * likely
    return losses, -y * wrong, odds * likely * likely


def _add_own(
    gradient: Floats, hessian: Floats, X: Floats, reach: OwnReach, first: Floats, second: Floats
) -> None:
    d = X.shape[1]
    moved = reach.moved
    gradient[:d] += moved.T @ first
    gradient[d] += first.sum()
    heavy = moved * second[:, None]
    hessian[:d, :d] += moved.T @ heavy + reach.curvature(X, first)
    cross = heavy.sum(axis=0)
    hessian[:d, d] += cross
    hessian[d, :d] += cross
    hessian[d, d] += second.sum()


def _add_shared(
    gradient: Floats,
    hessian: Floats,
    X: Floats,
    kinds: Sequence[tuple[Floats, Floats, SharedReach | None]],
) -> None:
    """Add kinds whose tangents are x + m_i r for one r: one Gram matrix serves them all."""
    n, d = X.shape
    first, second = np.zeros(n), np.zeros(n)
    for by_score, bend, reach in kinds:
        first += by_score
        second += bend
        if reach is None:
            continue
        by_reach = float((by_score * reach.factor).sum())
        gradient[:d] += by_reach * reach.direction
        hessian[:d, :d] += by_reach * reach.curvature
        bent = bend * reach.factor
        pull = np.outer(X.T @ bent, reach.direction)
        square = float((bent * reach.factor).sum())
        hessian[:d, :d] += pull + pull.T + square * np.outer(reach.direction, reach.direction)
        cross = float(bent.sum()) * reach.direction
        hessian[:d, d] += cross
        hessian[d, :d] += cross
    gradient[:d] += X.T @ first
    gradient[d] += first.sum()
    heavy = X * second[:, None]
    hessian[:d, :d] += X.T @ heavy
    cross = heavy.sum(axis=0)
    hessian[:d, d] += cross
    hessian[d, :d] += cross
    hessian[d, d] += second.sum()


def with_ridge(found: Derivatives, weights: Floats, ridge: float = RIDGE) -> Derivatives:
    """Add half the squared weights times ``ridge``; the parameters after the weights are free."""
    d = len(weights)
    gradient, hessian = found.gradient.copy(), found.hessian.copy()
    gradient[:d] += ridge * weights
    hessian[np.arange(d), np.arange(d)] += ridge
    value = found.value + 0.5 * ridge * float(weights @ weights)
    return Derivatives(value, gradient, hessian, found.exact)
