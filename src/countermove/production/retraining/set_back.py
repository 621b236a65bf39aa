"""People set back to where they stood, and rules fitted to them.

Whoever stands on the boundary of the rule of their time moved there, from one of a few places
along the way. How likely each place is depends on how many people stood there before, on how far
people move, and on the label: the expectation step of every fit uses all three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numba
import numpy as np
from scipy.special import expit

from countermove._types import Floats, Index, Mask
from countermove.errors import NotConvergedError
from countermove.production.retraining.reach import ReachModel

PLACES = 7
"""Places along the way that somebody on the boundary may have come from."""
RIDGE = 1.0
CLIPPED = 1e-3
"""Probabilities nearer to 0 or 1 count as this: no single person decides a comparison."""
LEAST_WEIGHT = 3e-3
HALVINGS = 12
LOOSE = 0.05
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class SetBackRows:
    """People of one table: where they were seen, and where they may have stood.

    Attributes
    ----------
    X
        Features as seen and a column of ones, shape (n, d + 1).
    y
        Labels, 1 favourable, else 0; shape (n,).
    moved
        Who stands on the boundary.
    way
        The move that crosses one unit of gap, and 0 for the ones, shape (d + 1,).
    steps
        Gaps that those on the boundary may have crossed, shape (places,).
    prior
        How likely each is without their label, shape (moved, places).
    """

    X: Floats
    y: Floats
    moved: Mask
    way: Floats
    steps: Floats
    prior: Floats

    @property
    def n(self) -> int:
        """How many people."""
        return len(self.y)

    def take(self, rows: Mask | Index) -> SetBackRows:
        """Return some of the people."""
        chosen = np.zeros(self.n, dtype=np.bool_)
        chosen[rows] = True
        among = chosen[self.moved]
        return replace(
            self,
            X=self.X[chosen],
            y=self.y[chosen],
            moved=self.moved[chosen],
            prior=self.prior[among],
        )

    def projected(self, theta: Floats) -> SetBackRows:
        """Return the people as one number each, their score before they moved."""
        way = np.array([float(self.way @ theta)])
        return replace(self, X=(self.X @ theta)[:, None], way=way)


def as_seen(X: Floats, y: Floats) -> SetBackRows:
    """Return people who had nothing to respond to."""
    ones = np.column_stack([X, np.ones(len(X))])
    still, steps = np.zeros(len(X), dtype=np.bool_), np.zeros(PLACES + 1)
    nobody = np.zeros((0, PLACES + 1))
    way = np.zeros(ones.shape[1])
    return SetBackRows(ones, (y > 0).astype(np.float64), still, way, steps, nobody)


def set_back(
    seen: SetBackRows,
    moved: Mask,
    way: Floats,
    people: ReachModel,
    width: float,
    mean: Floats,
    precision: Floats,
) -> SetBackRows:
    """Return people with the places where those on the boundary may have stood.

    ``way`` is the move that crosses one unit of gap, shape (d,); ``width`` that of the boundary in
    the same units: somebody may stand there by nature. ``mean`` and ``precision`` describe where
    people stand who have nothing to respond to.
    """
    edge = people.farthest
    steps = np.append(0.0, (np.arange(PLACES) + 0.5) / PLACES * edge)
    mass = np.append(width, people.chance(steps[1:]) * edge / PLACES)
    # Log-density of a Gaussian along the path back, up to a constant of the person.
    slope = (seen.X[moved, :-1] - mean) @ precision @ way
    curve = float(way @ precision @ way)
    logs = steps * slope[:, None] - 0.5 * steps**2 * curve + np.log(mass + 1e-12)
    prior = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior /= prior.sum(axis=1, keepdims=True)
    return replace(seen, moved=moved, way=np.append(way, 0.0), steps=steps, prior=prior)


def places(rows: SetBackRows, theta: Floats | None) -> Floats:
    """Return how likely each place is, with the labels as the rule theta predicts them."""
    if theta is None or not len(rows.prior):
        return rows.prior
    here = rows.X[rows.moved] @ theta
    p = expit(here[:, None] - rows.steps * float(rows.way @ theta))
    label = rows.y[rows.moved][:, None]
    found: Floats = rows.prior * np.where(label > 0.5, p, 1.0 - p)
    found /= found.sum(axis=1, keepdims=True)
    return found


def log_likelihood(rows: SetBackRows, theta: Floats) -> Floats:
    """Return everybody's log-probability of their label, over the places they may have stood at."""
    p = expit(rows.X @ theta)
    if len(rows.prior):
        here = rows.X[rows.moved] @ theta
        each = expit(here[:, None] - rows.steps * float(rows.way @ theta))
        p[rows.moved] = (rows.prior * each).sum(axis=1)
    p = np.clip(p, CLIPPED, 1.0 - CLIPPED)
    found: Floats = np.where(rows.y > 0.5, np.log(p), np.log1p(-p))
    return found


def fit(
    tables: Sequence[SetBackRows],
    weights: Sequence[float | Floats],
    start: Floats,
    ridge: float = RIDGE,
    iterations: int = 12,
    tolerance: float = 4e-3,
    within: str | None = None,
) -> Floats:
    r"""Return the penalised maximum-likelihood rule of weighted people, from a start.

    .. math:: \max_\theta \sum_i \omega_i \ln \sum_k q_{ik}\, p(y_i \mid x_i - s_k u; \theta)
        - \tfrac{\lambda}{2}\|\theta\|^2

    by Newton steps on the expectation, halved until the objective rises: its gradient is exact,
    its curvature that of known places. ``within`` names what did not converge in the error.
    """
    theta, size = start.copy(), np.inf
    value, slope, curve = _derivatives(tables, weights, theta, ridge)
    for _ in range(iterations):
        step = np.linalg.solve(curve, slope)
        step *= min(1.0, 3.0 / max(float(np.abs(step).max()), 1e-12))
        for _ in range(HALVINGS):
            found = _derivatives(tables, weights, theta + step, ridge)
            if found[0] >= value - 1e-9 * abs(value):
                break
            step *= 0.5
        theta, (value, slope, curve) = theta + step, found
        size = float(np.abs(step).max())
        if size < tolerance:
            return theta
    if within is not None and not size < LOOSE:
        raise NotConvergedError(f"{within} did not converge: the last step was {size:.2g}")
    return theta


def _derivatives(
    tables: Sequence[SetBackRows], weights: Sequence[float | Floats], theta: Floats, ridge: float
) -> tuple[float, Floats, Floats]:
    """Return the objective, its gradient, and the curvature at the expected places."""
    value, slope = -0.5 * ridge * float(theta @ theta), -ridge * theta
    curve = np.zeros((len(theta), len(theta)))
    for rows, weight in zip(tables, weights, strict=True):
        each = np.ascontiguousarray(np.broadcast_to(np.asarray(weight, np.float64), (rows.n,)))
        about = (rows.X, rows.y, each, rows.moved, rows.way, rows.steps, rows.prior)
        value += _sum_up(*about, theta, slope, curve)
    return value, slope, curve + np.tril(curve, -1).T + ridge * np.eye(len(theta))


@numba.njit(cache=True, error_model="numpy", nogil=True)  # type: ignore[untyped-decorator]
def _sum_up(  # noqa: C901 - one compiled loop
    X: Floats, y: Floats, weight: Floats, moved: Mask, way: Floats, steps: Floats, prior: Floats,
    theta: Floats, slope: Floats, curve: Floats,
) -> float:  # fmt: skip
    """Add gradient and the lower half of the curvature, row by row; return the log-likelihood."""
    n, d = X.shape
    value = along = 0.0
    for j in range(d):
        along += way[j] * theta[j]
    chance, likely = np.empty(len(steps)), np.empty(len(steps))
    place = -1
    for i in range(n):
        if moved[i]:
            place += 1
        w = weight[i]
        if w == 0.0:
            continue
        z = 0.0
        for j in range(d):
            z += X[i, j] * theta[j]
        if not moved[i]:
            p = 1.0 / (1.0 + math.exp(-z))
            r, a = w * (y[i] - p), w * p * (1.0 - p)
            value += w * math.log(max(p if y[i] > 0.5 else 1.0 - p, TINY))
            for j in range(d):
                slope[j] += r * X[i, j]
                for k in range(j + 1):
                    curve[j, k] += a * X[i, j] * X[i, k]
            continue
        total = 0.0
        for k in range(len(steps)):
            p = 1.0 / (1.0 + math.exp(steps[k] * along - z))
            chance[k] = p
            likely[k] = prior[place, k] * (p if y[i] > 0.5 else 1.0 - p)
            total += likely[k]
        value += w * math.log(max(total, TINY))
        r0, r1, a0, a1, a2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(len(steps)):
            q = w * likely[k] / total
            r, a, s = q * (y[i] - chance[k]), q * chance[k] * (1.0 - chance[k]), steps[k]
            r0, r1 = r0 + r, r1 + r * s
            a0, a1, a2 = a0 + a, a1 + a * s, a2 + a * s * s
        for j in range(d):
            slope[j] += r0 * X[i, j] - r1 * way[j]
            for k in range(j + 1):
                crossed = X[i, j] * way[k] + way[j] * X[i, k]
                curve[j, k] += a0 * X[i, j] * X[i, k] - a1 * crossed + a2 * way[j] * way[k]
    return value


def sandwich(tables: Sequence[SetBackRows], weights: Sequence[Floats], theta: Floats) -> Floats:
    r"""Return the covariance of a fit, :math:`H^{-1} (\sum_i \omega_i^2 g_i g_i^\top) H^{-1}`."""
    curvature = _derivatives(tables, weights, theta, RIDGE)[2]
    spread = np.zeros_like(curvature)
    for rows, weight in zip(tables, weights, strict=True):
        p = expit(rows.X @ theta)
        slopes = (rows.y - p)[:, None] * rows.X
        if len(rows.prior):
            X, y = rows.X[rows.moved], rows.y[rows.moved][:, None]
            p = expit((X @ theta)[:, None] - rows.steps * float(rows.way @ theta))
            r = places(rows, theta) * (y - p)
            crossed = np.outer((r * rows.steps).sum(axis=1), rows.way)
            slopes[rows.moved] = r.sum(axis=1)[:, None] * X - crossed
        weighted = np.asarray(weight)[:, None] * slopes
        spread += weighted.T @ weighted
    inverse = np.linalg.inv(curvature)
    found: Floats = inverse @ spread @ inverse
    return found
