r"""The mean logistic loss after response, with its gradient and Hessian in weights and intercept.

.. math:: L(w, b) = \sum_k \omega_k \frac1n \sum_i c_{y_i} \log\bigl(1 + e^{-y_i z_{ik}}\bigr),
          \quad z_{ik} = w\cdot x_i + b + h_{ik}(w)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from countermove._types import Floats
from countermove.response.second_order import OwnReach, Reach, SharedReach
from countermove.training._logistic_rows import mixed_rows
from countermove.training.newton import Derivatives

PRIOR_SD = 2.5
"""Of a weight, in log-odds per standard deviation of its feature: a weakly informative normal prior
(Gelman, Jakulin, Pittau and Su, 2008). It is worth 0.16/n of half the squared weights in a mean
over n rows: small wide tables, whose classes a plane may separate, have one optimum at a sane
scale, and on thousands of rows the optimum is that of maximum likelihood."""


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
    together: list[tuple[float, SharedReach | None]] = []
    for share, reach in kinds:
        if not isinstance(reach, OwnReach):
            together.append((share, reach))
            continue
        after = scores + reach.reach
        losses, first, second = _weighted(y, after, class_weight, losses_of)
        value += share * float(losses.sum())
        _add_own(gradient, hessian, X, reach, share * first, share * second)
    if together:
        rows = _mixed(y, scores, together, class_weight, losses_of)
        value += rows.value
        _add_shared(gradient, hessian, X, rows, together)
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


@dataclass(frozen=True)
class _MixedRows:
    """Sums over kinds who share a direction each: derivatives per person, and per kind."""

    value: float
    first: Floats  # (n,)
    second: Floats  # (n,)
    bent: Floats  # second derivative times factor, (n, K)
    sums: Floats  # of first times factor, of second times factor squared, (K, 2)


def _mixed(
    y: Floats,
    scores: Floats,
    kinds: Sequence[tuple[float, SharedReach | None]],
    class_weight: tuple[float, float] | None,
    losses_of: LossDerivatives | None,
) -> _MixedRows:
    n, number = len(y), len(kinds)
    nobody = np.zeros(1)
    factors = [nobody if reach is None else reach.factor for _, reach in kinds]
    reaches = np.array([0.0 if reach is None else reach.reach for _, reach in kinds])
    first, second, bent = np.zeros(n), np.zeros(n), np.empty((n, number))
    sums = np.zeros((number, 2))
    if losses_of is None:
        longest = max(len(factor) for factor in factors)
        stacked = np.stack([np.broadcast_to(factor, longest) for factor in factors])
        heed = np.ones(1)
        if class_weight is not None:
            heed = np.where(y > 0, class_weight[1], class_weight[0])
        shares = np.array([share for share, _ in kinds])
        value = mixed_rows(y, scores, heed, shares, stacked, reaches, first, second, bent, sums)
        return _MixedRows(float(value), first, second, bent, sums)
    value = 0.0
    for k, (share, _) in enumerate(kinds):
        after = scores + factors[k] * reaches[k]
        losses, slope, bend = _weighted(y, after, class_weight, losses_of)
        value += share * float(losses.sum())
        first += share * slope
        second += share * bend
        bent[:, k] = share * bend * factors[k]
        sums[k] = float((share * slope * factors[k]).sum()), float((bent[:, k] * factors[k]).sum())
    return _MixedRows(value, first, second, bent, sums)


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
    hessian[:d, :d] += reach.curvature(X, first)
    _add_gram(hessian, moved, second)


def _add_shared(
    gradient: Floats,
    hessian: Floats,
    X: Floats,
    rows: _MixedRows,
    kinds: Sequence[tuple[float, SharedReach | None]],
) -> None:
    """Add kinds whose tangents are x + m_i r for one r each: one Gram matrix serves them all."""
    d = X.shape[1]
    pulls, crossed = X.T @ rows.bent, rows.bent.sum(axis=0)
    for k, (_, reach) in enumerate(kinds):
        if reach is None:
            continue
        by_reach, square = rows.sums[k]
        gradient[:d] += by_reach * reach.direction
        pull = np.outer(pulls[:, k], reach.direction)
        hessian[:d, :d] += by_reach * reach.curvature + pull + pull.T
        hessian[:d, :d] += square * np.outer(reach.direction, reach.direction)
        cross = crossed[k] * reach.direction
        hessian[:d, d] += cross
        hessian[d, :d] += cross
    gradient[:d] += X.T @ rows.first
    gradient[d] += rows.first.sum()
    _add_gram(hessian, X, rows.second)


def _add_gram(hessian: Floats, rows: Floats, second: Floats) -> None:
    """Add the weighted Gram matrix of the rows, an intercept appended."""
    d = rows.shape[1]
    heavy = rows * second[:, None]
    hessian[:d, :d] += rows.T @ heavy
    cross = heavy.sum(axis=0)
    hessian[:d, d] += cross
    hessian[d, :d] += cross
    hessian[d, d] += second.sum()


def with_ridge(found: Derivatives, weights: Floats, n: int) -> Derivatives:
    """Add the prior's share in a mean over ``n`` rows; parameters after the weights are free."""
    d, ridge = len(weights), 1.0 / (PRIOR_SD**2 * n)
    gradient, hessian = found.gradient.copy(), found.hessian.copy()
    gradient[:d] += ridge * weights
    hessian[np.arange(d), np.arange(d)] += ridge
    value = found.value + 0.5 * ridge * float(weights @ weights)
    return Derivatives(value, gradient, hessian, found.exact)
