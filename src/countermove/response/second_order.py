r"""The score after the best response with its first and second derivatives in the weights.

Of a score that is linear in its weights, :math:`z_i = w\cdot x_i + b + h_i(w)` with the reach
:math:`h_i(w) = \max\{w\cdot\delta : \sum_j a_j\delta_j^2 \le \rho_i^2,\ \delta\ \text{allowed}\}`.
By the envelope theorem :math:`\nabla h_i = \delta_i`, and on the features :math:`F` that no bound
stops :math:`\nabla^2 h_i = \lambda_i (A_F^{-1} - u u^\top / u^\top A u)`, :math:`u = A_F^{-1} w_F`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.people import QuadraticCost, WeightedQuadraticCost
from countermove.people.actions import SLACK, Bounds
from countermove.response._compile import jit
from countermove.response._reduction import as_array
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.response.base import GAIN, NoResponse, Response
from countermove.response.best import BestResponse
from countermove.scores import Score

ROUNDED = 1e-4
"""Reach is rounded off where nothing that moves has weight: its square is at least this square."""


@dataclass(frozen=True)
class SharedReach:
    r"""Everybody moves along one direction: :math:`h_i = m_i R(w)`."""

    factor: Floats  # m, (n,) or (1,)
    reach: float  # R
    direction: Floats  # its gradient, (d,)
    curvature: Floats  # its Hessian, (d, d)


@dataclass(frozen=True)
class OwnReach:
    """Everybody meets bounds of their own."""

    reach: Floats  # (n,)
    moved: Floats  # x + δ, (n, d)
    multiplier: Floats  # λ, zero where no budget binds, (n,)
    weight: Floats
    price: Floats  # the a of the cost, (d,)

    def curvature(self, X: Floats, by_score: Floats) -> Floats:
        """Return the sum over people of ``by_score`` times the Hessian of their reach, (d, d)."""
        total = np.zeros((X.shape[1], X.shape[1]))
        _add_curvature(X, self.moved, self.weight, self.price, self.multiplier, by_score, total)
        return total


Reach: TypeAlias = SharedReach | OwnReach | None
"""None: nobody moves."""


def has_second_order(response: Response) -> bool:
    """Say whether the derivatives are known: nobody moves, or the best response at plain cost."""
    if type(response) is NoResponse:
        return True
    if type(response) is not BestResponse or response.actions.A is not None:
        return False
    cost = response.cost
    if isinstance(cost, QuadraticCost):
        return not cost.scale.requires_grad
    return isinstance(cost, WeightedQuadraticCost) and not cost.weights.requires_grad


def reach_of(response: Response, weight: Floats, X: Floats) -> Reach | Literal["unknown"]:
    """Return the reach of people at ``X``, shape (n, d), under a rule of this slope.

    The response is one of those `has_second_order` names. ``"unknown"`` where somebody
    stands where nobody may stay: what they reach is no plain maximum.
    """
    if type(response) is NoResponse:
        return None
    d = len(weight)
    plan = response.plan(d)
    price = _prices(response, d)
    budget = _budgets(response, X)
    bounds = plan.bounds(len(X))
    if _only_directions(bounds):
        return _shared(plan, price, np.sqrt(budget), weight)
    limits = (bounds.lower, bounds.upper, bounds.min_value, bounds.max_value)
    moved, reach, multiplier = np.empty_like(X), np.empty(len(X)), np.empty(len(X))
    slope = weight * plan.ones
    if not _bounded(X, slope, price, budget, *limits, SLACK, moved, reach, multiplier):
        return "unknown"
    return OwnReach(reach, moved, multiplier, slope, price)


def gains_of(response: Response, score: Score, X: Tensor) -> Floats | None:
    """Return how much everybody can raise the score, (n,); None where that is not known here."""
    if not has_second_order(response):
        return None
    rows = np.ascontiguousarray(X.detach().numpy())
    reach = reach_of(response, as_array(slope_of(score)), rows)
    return reach.reach if isinstance(reach, OwnReach) else None


def _only_directions(bounds: Bounds) -> bool:
    """Return whether features are free, one-way or held, and nothing else bounds them."""
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    one_box = len(bounds.lower) == len(bounds.upper) == 1
    ways = (
        np.isin(bounds.lower, (0.0, -np.inf)).all() and np.isin(bounds.upper, (0.0, np.inf)).all()
    )
    return bool(one_box and ways and not by_value)


def _prices(response: Response, n_features: int) -> Floats:
    """Return the a of the cost Σ a_j δ_j², (d,)."""
    shape = response.cost.canonical(n_features)
    assert shape is not None
    assert shape.weights is not None
    return np.ascontiguousarray(shape.weights.detach().numpy())


def _budgets(response: Response, X: Floats) -> Floats:
    """Return what everybody can spend, (n,) or (1,)."""
    prices = response.prices(torch.from_numpy(X))
    return np.array([GAIN]) if prices is None else GAIN / prices.detach().numpy()


def _shared(plan: ActionPlan, price: Floats, factor: Floats, weight: Floats) -> SharedReach:
    usable = plan.usable(weight * plan.ones)
    along = usable / price
    reach = math.sqrt(float(usable @ along) + ROUNDED**2)
    direction = along / reach
    # At a weight of zero the feature's own derivative is that of the side on which it may move.
    either = (usable != 0.0) | ((weight == 0.0) & plan.moving)
    curvature = (np.diag(either / price) - np.outer(direction, direction)) / reach
    return SharedReach(factor, reach, direction, curvature)


@jit
def _rooms(x, w, lower, upper, low, high, slack, room):  # type: ignore[no-untyped-def]
    """Write how far every feature can go along the score; say whether the person may stay."""
    for j in range(x.shape[0]):
        rise = min(upper[j], high[j] - x[j])
        fall = min(-lower[j], x[j] - low[j])
        if rise < -slack or fall < -slack:
            return False
        room[j] = 0.0
        if w[j] > 0.0:
            room[j] = max(rise, 0.0)
        elif w[j] < 0.0:
            room[j] = max(fall, 0.0)
    return True


@jit
def _multiplier(budget, w, price, room):  # type: ignore[no-untyped-def]
    """Return the λ at which the moves min(λ|w|/a, room) use up the budget; 0: all rooms fit in."""
    everything, steepness = 0.0, 0.0
    for j in range(w.shape[0]):
        if room[j] > 0.0:
            everything += price[j] * room[j] * room[j]
            steepness += w[j] * w[j] / price[j]
    if everything <= budget:
        return 0.0
    # From below: what is stopped at a smaller multiplier is stopped at the true one, so every turn
    # stops one more feature or is the last.
    found = math.sqrt(budget / steepness)
    for _ in range(w.shape[0]):
        spent, free = 0.0, 0.0
        for j in range(w.shape[0]):
            if room[j] > 0.0:
                if found * abs(w[j]) >= room[j] * price[j]:
                    spent += price[j] * room[j] * room[j]
                else:
                    free += w[j] * w[j] / price[j]
        if free <= 0.0 or spent >= budget:
            break
        longer = math.sqrt((budget - spent) / free)
        if longer <= found:
            break
        found = longer
    return found


@jit
def _bounded(  # type: ignore[no-untyped-def]
    X, w, price, budget, lower, upper, low, high, slack, moved, reach, multiplier
):
    """Write everybody's place, gain and multiplier; say whether everybody may stay."""
    n, d = X.shape
    room = np.empty(d)
    for i in range(n):
        sides = (
            lower[i % lower.shape[0]], upper[i % upper.shape[0]],
            low[i % low.shape[0]], high[i % high.shape[0]],
        )  # fmt: skip
        if not _rooms(X[i], w, sides[0], sides[1], sides[2], sides[3], slack, room):
            return False
        found = _multiplier(budget[i % budget.shape[0]], w, price, room)
        gain = 0.0
        for j in range(d):
            action = room[j]
            if found > 0.0:
                action = min(action, found * abs(w[j]) / price[j])
            gain += abs(w[j]) * action
            moved[i, j] = X[i, j] + (action if w[j] > 0.0 else -action)
        reach[i], multiplier[i] = gain, found
    return True


@jit
def _add_curvature(X, moved, w, price, multiplier, by_score, total):  # type: ignore[no-untyped-def]
    """Add everybody's ``by_score`` times the Hessian of their reach."""
    n, d = X.shape
    u = np.empty(d)
    for i in range(n):
        if multiplier[i] == 0.0:
            continue
        square = 0.0
        for j in range(d):
            action = abs(moved[i, j] - X[i, j])
            step = multiplier[i] * abs(w[j]) / price[j]
            u[j] = w[j] / price[j] if action > 0.0 and action >= step * (1.0 - 1e-9) else 0.0
            square += u[j] * w[j]
        if square <= 0.0:
            continue
        share = by_score[i] * multiplier[i]
        for j in range(d):
            if u[j] != 0.0:
                total[j, j] += share / price[j]
                part = share * u[j] / square
                for k in range(d):
                    total[j, k] -= part * u[k]
