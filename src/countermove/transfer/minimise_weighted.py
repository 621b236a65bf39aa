r"""Importance-reweighted training: the error after deployment, from rows before it (App. D).

:math:`E_{D(h)}[\ell] = E_S[w(h)\,\ell(h)]`, so every candidate rule can be judged on source
rows if its weights are known. The product is convex in :math:`h` only under conditions
(Prop. D.1), which are checked here rather than assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, ParameterError, shown

TOLERANCE = 1e-9
"""Rounding allowed in a comparison of weights, losses or their second differences."""


@dataclass(frozen=True)
class ReweightedMinimum:
    r"""The candidate with the smallest reweighted loss.

    Parameters
    ----------
    index
        Which candidate.
    risk
        Its reweighted loss.
    risks
        Of all candidates, shape (m,).
    mean_weights
        Of all candidates, shape (m,); 1 in expectation if the source covers the induced people.
    effective_rows
        :math:`(\sum w)^2 / \sum w^2` per candidate, shape (m,): how many rows really count.
    """

    index: int
    risk: float
    risks: Floats
    mean_weights: Floats
    effective_rows: Floats


def reweighted_erm(weights: Floats, losses: Floats) -> ReweightedMinimum:
    r"""Return which candidate rule has the smallest loss on the people it would induce.

    Parameters
    ----------
    weights
        :math:`w_{x_i}(h_j)`, not negative, shape (m, n): candidates by rows.
    losses
        :math:`\ell(h_j; x_i, y_i)`, shape (m, n).
    """
    weights, losses = np.asarray(weights, np.float64), np.asarray(losses, np.float64)
    if weights.shape != losses.shape or weights.ndim != 2:
        raise ParameterError(
            "weights and losses must both have shape (candidates, rows), got "
            f"{weights.shape} and {losses.shape}"
        )
    _refuse_negative(weights)
    means = weights.mean(axis=1)
    if np.any(means == 0.0):
        nobody = np.flatnonzero(means == 0.0)
        raise DataError(
            f"all weights of candidate(s) {shown(nobody)} are 0: the people they induce are "
            "nowhere among the source rows"
        )
    risks = (weights * losses).mean(axis=1)
    best = int(np.argmin(risks))
    return ReweightedMinimum(
        index=best,
        risk=float(risks[best]),
        risks=risks,
        mean_weights=means,
        effective_rows=weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1),
    )


@dataclass(frozen=True)
class ProductConvexity:
    """Whether weight times loss is convex in the rule, and whether Prop. D.1 says so.

    Parameters
    ----------
    not_negative
        Weights and losses are at least 0. The proposition needs it and does not say so.
    convex_weight, convex_loss
        Along the line of rules.
    same_direction
        Of any two rules the one with the larger weight has the larger loss (or equal).
    product_convex
        What the proposition concludes, looked at directly.
    """

    not_negative: bool
    convex_weight: bool
    convex_loss: bool
    same_direction: bool
    product_convex: bool

    @property
    def guaranteed(self) -> bool:
        """Whether all conditions hold, so that the product must be convex."""
        return self.not_negative and self.convex_weight and self.convex_loss and self.same_direction


def product_convexity(rules: Floats, weight: Floats, loss: Floats) -> ProductConvexity:
    r"""Check Prop. D.1 at one person, along a line of rules.

    If :math:`w(h)` and :math:`\ell(h)` are convex, not negative and
    :math:`(w(h) - w(h'))(\ell(h) - \ell(h')) \ge 0` for all :math:`h, h'`, then
    :math:`w\,\ell` is convex: the defect of the product on a chord is
    :math:`\alpha(1-\alpha)` times that difference, and replacing the two factors by their
    chords enlarges the product only where both are not negative.

    Parameters
    ----------
    rules
        Increasing positions on the line, shape (m,), m at least 3.
    weight, loss
        At a fixed person, as functions of the rule, shape (m,).
    """
    rules, weight, loss = (np.asarray(a, np.float64) for a in (rules, weight, loss))
    if rules.ndim != 1 or len(rules) < 3 or np.any(np.diff(rules) <= 0.0):
        raise ParameterError("rules must be at least 3 increasing positions on a line")
    if weight.shape != rules.shape or loss.shape != rules.shape:
        raise ParameterError(
            f"expected one weight and one loss per rule, got {weight.shape} and {loss.shape} "
            f"for {rules.shape}"
        )
    apart = (weight[:, None] - weight) * (loss[:, None] - loss)
    return ProductConvexity(
        not_negative=bool(weight.min() >= 0.0 and loss.min() >= 0.0),
        convex_weight=_convex(rules, weight),
        convex_loss=_convex(rules, loss),
        same_direction=bool(apart.min() >= -TOLERANCE),
        product_convex=_convex(rules, weight * loss),
    )


def _convex(positions: Floats, values: Floats) -> bool:
    slopes = np.diff(values) / np.diff(positions)
    return bool(np.all(np.diff(slopes) >= -TOLERANCE * max(1.0, float(np.abs(slopes).max()))))


def _refuse_negative(weights: Floats) -> None:
    wrong = np.argwhere(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(wrong):
        listed = shown(f"candidate {j}, row {i} ({weights[j, i]:g})" for j, i in wrong)
        raise DataError(
            f"weights must be finite and not negative, not so for {listed}", rows=wrong[:, 1]
        )
