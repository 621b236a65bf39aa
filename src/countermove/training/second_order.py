r"""The mean logistic loss after response, with its gradient and Hessian in weights and intercept.

.. math:: L(w, b) = \sum_k \omega_k \frac1n \sum_i c_{y_i} \log\bigl(1 + e^{-y_i z_{ik}}\bigr),
          \quad z_{ik} = w\cdot x_i + b + h_{ik}(w)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Index
from countermove.response._shared_curve import SharedCurve
from countermove.response.training_signal import OwnReach, Reach, SharedReach
from countermove.training._labels import counted
from countermove.training._logistic_rows import curve_rows, own_rows, shared_rows
from countermove.training.newton import Derivatives

PRIOR_SD = 2.5
"""Of a weight, in log-odds per standard deviation of its feature: a weakly informative normal prior
(Gelman, Jakulin, Pittau and Su, 2008). It is worth 0.16/n of half the squared weights in a mean
over n rows: small wide tables, whose classes a plane may separate, have one optimum at a sane
scale, and on thousands of rows the optimum is that of maximum likelihood."""


def logistic_derivatives(
    X: Floats,
    y: Floats,
    scores: Floats,
    kinds: Sequence[tuple[float, Reach]],
    class_weight: tuple[float, float] | None = None,
    width: float = 0.0,
) -> Derivatives:
    """Return them for people of several kinds, each with its share and reach.

    ``scores`` are those of people where they stand, (n,), the sizes of ``y`` how much they count;
    the parameters are the weights of the columns of ``X``, then the intercept. A ``width`` above
    zero puts the count of wrong decisions, smoothed over it, in the place of the logistic loss.
    """
    d, n = X.shape[1], counted(y)
    rows = _Rows(np.ascontiguousarray(X), np.sign(y), scores, _heed(y, class_weight), width)
    sums = _Sums(0.0, np.zeros(d + 1), np.zeros((d + 1, d + 1)))
    together: list[tuple[float, SharedReach | None]] = []
    for share, reach in kinds:
        if isinstance(reach, OwnReach):
            rows.add_own(sums, share, reach)
        else:
            together.append((share, reach))
    if together:
        rows.add_shared(sums, together)
    return Derivatives(sums.value / n, sums.gradient / n, sums.hessian / n)


def tangent_derivatives(
    tangents: Floats,
    y: Floats,
    after: Floats,
    class_weight: tuple[float, float] | None = None,
) -> Derivatives:
    """Return them from scores after response and their gradients alone, (n, p).

    How those gradients turn with the rule is left out of the Hessian.
    """
    losses, first, second = _weighted(np.sign(y), after, _heed(y, class_weight))
    n = counted(y)
    hessian = tangents.T @ (tangents * second[:, None]) / n
    return Derivatives(float(losses.sum()) / n, tangents.T @ first / n, hessian, exact=False)


def curve_derivatives(
    X: Floats,
    y: Floats,
    scores: Floats,
    curve: SharedCurve,
    class_weight: tuple[float, float] | None = None,
) -> Derivatives:
    """Return them for people who follow one curve; it may be steep, and optima several."""
    d, n = X.shape[1], counted(y)
    totals, sums = np.zeros((d + 4, d)), np.zeros(9)
    people = np.ascontiguousarray(X), np.sign(y), _heed(y, class_weight)
    value = curve_rows(*people, curve.width.value, curve.after(scores), totals, sums)
    along, turned = (np.append(part.gradient, 0.0) for part in (curve.width, curve.constant))
    gradient = np.append(totals[d + 1], sums[1]) + sums[4] * along + sums[5] * turned
    hessian = np.zeros((d + 1, d + 1))
    hessian[:d, :d] = totals[:d] + sums[4] * curve.width.hessian + sums[5] * curve.constant.hessian
    hessian[:d, d] = hessian[d, :d] = totals[d]
    hessian[d, d] = sums[0]
    # Of both mixed derivatives, the sums times the row and, in the intercept's place, alone.
    half = np.outer(np.append(totals[d + 2], sums[2]), along)
    half += np.outer(np.append(totals[d + 3], sums[3]) + sums[7] * along, turned)
    hessian += half + half.T
    hessian += sums[6] * np.outer(along, along) + sums[8] * np.outer(turned, turned)
    return Derivatives(value / n, gradient / n, hessian / n, kinked=True)


@dataclass
class _Sums:
    """Sums over people, the intercept's place the last."""

    value: float
    gradient: Floats
    hessian: Floats

    def add(self, totals: Floats, ends: Floats) -> None:
        """Add the products with rows, (d + 2, d) or more, and the sums of the derivatives."""
        d = totals.shape[1]
        self.gradient += np.append(totals[d + 1], ends[1])
        self.hessian[:d, :d] += totals[:d]
        self.hessian[:d, d] += totals[d]
        self.hessian[d, :d] += totals[d]
        self.hessian[d, d] += ends[0]


@dataclass(frozen=True)
class _Rows:
    """People where they stand, and the loss."""

    X: Floats
    y: Floats
    scores: Floats
    heed: Floats  # how much each counts
    width: float

    def add_own(self, sums: _Sums, share: float, reach: OwnReach) -> None:
        """Add people who meet bounds of their own."""
        d = self.X.shape[1]
        totals, ends, bowl = np.zeros((d + 2, d)), np.zeros(2), np.zeros((d, d))
        sums.value += own_rows(
            self.X, self.y, self.scores, self.heed, share, reach.moved, reach.reach,
            reach.multiplier, reach.weight, reach.price, reach.free, reach.flat, self.width,
            totals, ends, bowl,
        )  # fmt: skip
        sums.add(totals, ends)
        sums.hessian[:d, :d] += bowl

    def add_shared(self, sums: _Sums, kinds: Sequence[tuple[float, SharedReach | None]]) -> None:
        """Add kinds whose tangents are x + m_i r for one r each: one Gram matrix serves all."""
        d = self.X.shape[1]
        nobody = SharedReach(np.zeros(1), 0.0, np.zeros(d), np.zeros((d, d)))
        moves = [nobody if reach is None else reach for _, reach in kinds]
        along, lengths, group = _lines(np.stack([reach.direction for reach in moves]))
        longest = max(len(reach.factor) for reach in moves)
        factors = np.stack([np.broadcast_to(reach.factor, longest) for reach in moves])
        # In units of the line's own step, so that kinds on one line add up.
        reaches = np.array([reach.reach for reach in moves]) / lengths
        shares = np.array([share for share, _ in kinds])
        totals, ends = np.zeros((d + 2 + len(along), d)), np.zeros(2)
        by_kind = np.zeros((len(kinds), 3))
        sums.value += shared_rows(
            self.X, self.y, self.scores, self.heed, shares, factors * lengths[:, None], reaches,
            group, self.width, totals, ends, by_kind,
        )  # fmt: skip
        sums.add(totals, ends)
        by_reach, crossed, square = by_kind.T
        lines = along[group]
        pull = totals[d + 2 :].T @ along
        bent = np.tensordot(by_reach / lengths, [reach.curvature for reach in moves], axes=1)
        sums.hessian[:d, :d] += pull + pull.T + bent + lines.T @ (square[:, None] * lines)
        sums.gradient[:d] += by_reach @ lines
        sums.hessian[:d, d] += crossed @ lines
        sums.hessian[d, :d] += crossed @ lines


def _lines(directions: Floats) -> tuple[Floats, Floats, Index]:
    """Return the distinct lines (G, d), and of every direction the length and number of its own."""
    sizes = np.linalg.norm(directions, axis=1)
    lengths = np.where(sizes > 0.0, sizes, 1.0)
    lines: list[Floats] = []
    group = np.zeros(len(directions), dtype=np.intp)
    for k, unit in enumerate(directions / lengths[:, None]):
        same = [g for g, line in enumerate(lines) if np.abs(line - unit).max() < 1e-14]
        group[k] = same[0] if same else len(lines)
        if not same:
            lines.append(unit)
    return np.stack(lines), lengths, group


def _heed(y: Floats, class_weight: tuple[float, float] | None) -> Floats:
    """Return how much everybody counts: the size of the label, times the weight of the class."""
    size: Floats = np.abs(y)
    return size if class_weight is None else size * np.where(y > 0, *class_weight[::-1])


def _weighted(y: Floats, after: Floats, heed: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the logistic loss of every person and its two derivatives, times what each counts."""
    odds = np.exp(-np.abs(after))
    margins = y * after
    losses = np.log1p(odds) + np.maximum(-margins, 0.0)
    likely = 1.0 / (1.0 + odds)  # of the class the score speaks for
    wrong = np.where(margins >= 0.0, odds, 1.0) * likely
    return losses * heed, -y * wrong * heed, odds * likely * likely * heed


def with_ridge(found: Derivatives, weights: Floats, n: float) -> Derivatives:
    """Add the prior's share in a mean over ``n`` rows; parameters after the weights are free."""
    d, ridge = len(weights), 1.0 / (PRIOR_SD**2 * n)
    gradient, hessian = found.gradient.copy(), found.hessian.copy()
    gradient[:d] += ridge * weights
    hessian[np.arange(d), np.arange(d)] += ridge
    value = found.value + 0.5 * ridge * float(weights @ weights)
    return Derivatives(value, gradient, hessian, found.exact, found.kinked)
