r"""What training reads of a response: the score after it and its derivatives in the weights.

Smoothed step, quadratic cost: one compiled call per batch gives everybody's tangent. A linear
score is its weights; any other score with a slope is a slope over what moves and a number.

Best response, scores linear in their weights: :math:`z_i = w\cdot x_i + b + h_i(w)` with the reach
:math:`h_i(w) = \max\{w\cdot\delta : \sum_j a_j\delta_j^2 \le \rho_i^2,\ \delta\ \text{allowed}\}`.
By the envelope theorem :math:`\nabla h_i = \delta_i`, and on the features :math:`F` that no bound
stops :math:`\nabla^2 h_i = \lambda_i (A_F^{-1} - u u^\top / u^\top A u)`, :math:`u = A_F^{-1} w_F`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index, Mask
from countermove.people import Cost, QuadraticCost, WeightedQuadraticCost
from countermove.people.action_box import Bounds
from countermove.response._bounded_rows import action_range, row_of
from countermove.response._rows import smooth_rows, straight_path
from countermove.response.base import GAIN, NoResponse, Response, check_converged
from countermove.response.best import BestResponse
from countermove.response.compilation import jit
from countermove.response.reduction import (
    INFEASIBLE,
    NOT_FINITE,
    ActionPlan,
    RowSolutions,
    as_array,
    raise_failures,
    slope_of,
)
from countermove.response.step import price_parts
from countermove.scores import LinearScore, Score

if TYPE_CHECKING:
    from countermove.response._branch_rows import BranchFound
    from countermove.response.smooth import ScalarResponse


@dataclass(frozen=True)
class LinearSignal:
    """What stays the same from batch to batch: the response and its plain quadratic cost."""

    response: ScalarResponse
    weights: Floats

    def __call__(self, score: Score, rows: Floats) -> Tensor:
        """Return the scores after the response, with gradients to weight and bias."""
        # The kernel gives each person's tangent; torch evaluates it, so that forward and backward
        # passes are two matrix-vector products.
        rest, by_bias, by_weight = self.tangents(score, rows)
        tangent = torch.addmv(rest, by_weight, slope_of(score))
        return torch.addcmul(tangent, by_bias, score.bias)

    def tangents(self, score: Score, rows: Floats) -> tuple[Tensor, Tensor, Tensor]:
        """Return each score after the response as rest + by_bias · b + by_weight · w."""
        known = (np.empty(0), as_array(slope_of(score)), score.bias.item())
        return _tangents(self, score, rows, known)


@dataclass(frozen=True)
class AffineSignal:
    """The same for a score with a slope: only the features it does not hold fixed are looked at."""

    response: ScalarResponse
    weights: Floats

    def __call__(self, score: Score, rows: Floats) -> Tensor:
        """Return the scores after the response, with gradients to slope and score."""
        moving = _not_fixed(score)
        slope, now = slope_of(score)[moving], score(torch.from_numpy(rows))
        known = (as_array(now), as_array(slope), 0.0)
        rest, by_score, by_slope = _tangents(self, score, rows, known, moving)
        return torch.addcmul(torch.addmv(rest, by_slope, slope), by_score, now)


Signal = LinearSignal | AffineSignal


def _tangents(
    signal: Signal,
    score: Score,
    rows: Floats,
    known: tuple[Floats, Floats, float],
    columns: Index | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `training_rows` writes about some columns (all): the rest and the derivatives."""
    response, n = signal.response, len(rows)
    plan = response.plan(rows.shape[1])
    *limits, bounded = plan.limits(n)
    X, masks, weights = rows, [plan.ones, plan.rising, plan.falling], signal.weights
    if columns is not None:
        X, *limits = (np.ascontiguousarray(part[:, columns]) for part in (rows, *limits))
        masks, weights = [part[columns] for part in masks], weights[columns]
    own = 0.0 if response.normalised else 1.0
    rest, by_score, by_slope = np.empty(n), np.empty(n), np.empty(X.shape)
    status = np.empty(n, dtype=np.int64)
    training_rows(
        X, *known, weights, *masks, *limits, bounded,
        response.temperature, own if response.unit is None else response.unit,
        response.start == "stay", response.gradient == "last_proxy",
        rest, by_score, by_slope, status,
    )  # fmt: skip
    if status.any():
        arrays = response.reduction(score, n).arrays
        check_converged(raise_failures(rows, status, arrays), "raise")
    return torch.from_numpy(rest), torch.from_numpy(by_score), torch.from_numpy(by_slope)


def _not_fixed(score: Score) -> Index:
    """Return the positions of the features the score does not hold fixed."""
    moving = np.ones(score.n_features, dtype=bool)
    moving[list(score.fixed)] = False
    return np.flatnonzero(moving)


def training_signal(response: ScalarResponse, score: Score, X: Tensor) -> Signal | None:
    """Return the one-call signal where it applies: plain costs, scores with a slope; else None."""
    # Not where ``X`` or the cost wants a gradient or prices differ, nor where a bound holds what
    # the score holds fixed. The weights are read again each time: a cost may be changed in place.
    if not response.polish or X.requires_grad or not torch.is_grad_enabled():
        return None
    if response.prices(X) is not None:
        return None
    weights = constant_weights(response.cost, score.n_features)
    plan = response.plan(score.n_features)
    if weights is None or plan.actions.A is not None or plan.possible:
        return None
    if type(score) is LinearScore:
        return LinearSignal(response, weights)
    if score.slope() is None or _bounds_fixed(plan.bounds(len(X)), list(score.fixed)):
        return None
    return AffineSignal(response, weights)


def constant_weights(cost: Cost, n_features: int) -> Floats | None:
    """Return the weights of a plain quadratic cost that wants no gradient, else None."""
    if isinstance(cost, QuadraticCost) and not cost.scale.requires_grad:
        return np.full(n_features, cost.scale.item())
    if isinstance(cost, WeightedQuadraticCost) and not cost.weights.requires_grad:
        weights = cost.canonical(n_features).weights
        return None if weights is None else weights.numpy()
    return None


def _bounds_fixed(bounds: Bounds, fixed: list[int]) -> bool:
    """Return whether somebody has to move a feature the score holds fixed, or might have to."""
    must = (bounds.lower[:, fixed] > 0.0).any() or (bounds.upper[:, fixed] < 0.0).any()
    low, high = bounds.min_value[:, fixed], bounds.max_value[:, fixed]
    return bool(must or np.isfinite(low).any() or np.isfinite(high).any())


@jit
def unit_of(slope, up, down, temperature, unit):  # type: ignore[no-untyped-def]
    """Return the derivative of log N(w) in the slope and the sharpness (see `sharpness_of`)."""
    by_unit = np.zeros(slope.shape[0])
    if unit == 0.0:
        square = 0.0
        for j in range(slope.shape[0]):
            by_unit[j] = slope[j] * (up[j] if slope[j] > 0.0 else down[j])
            square += by_unit[j] * by_unit[j]
        unit = math.sqrt(square) if square > 0.0 else 1.0
        for j in range(slope.shape[0]):
            by_unit[j] /= unit * unit
    return by_unit, 1.0 / (temperature * unit)


@jit
def training_rows(  # type: ignore[no-untyped-def]
    X, scores, weight, bias, weights, moving, up, down, lower, upper, low, high, bounded,
    temperature, unit, first, proxy, rest, by_score, by_slope, status,
):  # fmt: skip
    """Write the score after the smoothed response as its tangent in slope and score."""
    # Person i's is ``rest[i] + by_slope[i] . weight + by_score[i] * s``, s the person's score where
    # scores are known, else the bias: its value and both derivatives at once. ``moving``, ``up``
    # and ``down`` are one where a feature may move, rise and fall; a ``unit`` of 0 asks for N(w),
    # which then has a derivative too.
    known, bounds = (scores, weight, bias), (lower, upper, low, high, bounded)
    n, d = X.shape
    linear, slope = scores.shape[0] == 0, weight * moving
    by_unit, sharpness = unit_of(slope, up, down, temperature, unit)
    path = straight_path(slope, slope / (2.0 * weights))
    price, cost, after, flags = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_)
    solution = RowSolutions(by_slope, price, cost, cost, after, flags, flags, flags, status)
    smooth_rows(
        X, known, slope, weights, False, path, bounds, sharpness, first, False, True, True, solution
    )
    for i in range(n):
        if status[i] == NOT_FINITE or status[i] == INFEASIBLE:
            continue
        rate = 0.0
        for j in range(d):
            # Where no bound stops it an action is exactly the price times its direction.
            along = path.along[0, j]
            rate += slope[j] * along if by_slope[i, j] == price[i] * along else 0.0
        by_after, by_last, by_sharpness = price_parts(sharpness, after[i], after[i], proxy)
        # With u = f(z) and rate R: dz = (ds + ... + R df)/(1 - R f').
        share = 1.0 / (1.0 - rate * by_after)
        by_score[i] = share * (1.0 + rate * by_last)
        sharper = rate * share * sharpness * by_sharpness
        rest[i] = after[i] - by_score[i] * (bias if linear else scores[i])
        for j in range(d):
            action, free = by_slope[i, j], price[i] * path.along[0, j]
            part = by_score[i] * action - sharper * by_unit[j]
            part += share * free if action == free else 0.0
            by_slope[i, j] = part * moving[j] + (by_score[i] * X[i, j] if linear else 0.0)
            rest[i] -= by_slope[i, j] * weight[j]


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
    # Where rows hold people too, else empty: the features nothing stops, (n, d), and the f of
    # T = A⁻¹ - Σ f fᵀ, the directions that rows rule out, (n, r, d).
    free: Mask = field(default_factory=lambda: np.empty((0, 0), bool))
    flat: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))

    def scores_nearby(self, rule: Score) -> Floats:
        """Return the scores after response to a rule nearby, to second order, where rows hold."""
        weight, bias = as_array(slope_of(rule)), rule.bias.item()
        away = weight - self.weight
        turned = (self.free @ (away * away / self.price)) - ((self.flat @ away) ** 2).sum(axis=1)
        turned -= (self._along @ away) ** 2 / self._steepness
        bent = 0.5 * self.multiplier * np.maximum(turned, 0.0)
        found: Floats = self.moved @ weight + bias + bent
        return found

    @cached_property
    def _along(self) -> Floats:
        """The u = T w of everybody, (n, d)."""
        held = np.einsum("nrd,nr->nd", self.flat, self.flat @ self.weight)
        along: Floats = self.free * (self.weight / self.price) - held
        return along

    @cached_property
    def _steepness(self) -> Floats:
        return np.maximum(self._along @ self.weight, np.finfo(np.float64).tiny)


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
    response = response.for_people(X)
    d = len(weight)
    plan = response.plan(d)
    price = _prices(response, d)
    budget = _budgets(response, X)
    slope = weight * plan.ones
    if plan.possible:
        return _possible_reach(plan, response, slope, X)
    bounds = plan.bounds(len(X))
    if only_directions(bounds):
        return _shared(plan, price, np.sqrt(budget), weight)
    moved, reach, multiplier = np.empty_like(X), np.empty(len(X)), np.empty(len(X))
    if not _bounded(X, slope, price, budget, plan.limits(len(X)), moved, reach, multiplier):
        return "unknown"
    return OwnReach(reach, moved, multiplier, slope, price)


def _possible_gains(plan: ActionPlan, response: Response, slope: Floats, X: Floats) -> BranchFound:
    """Return what people who stay possible can do for the score, each in their best branch."""
    price = _prices(response, len(slope))
    found = plan.people(X).reach(slope, price, _budgets(response, X))
    check_converged(found.converged, "raise")
    return found


def _possible_reach(plan: ActionPlan, response: Response, slope: Floats, X: Floats) -> OwnReach:
    """Return the same with what Newton's method reads of it."""
    found, people = _possible_gains(plan, response, slope, X), plan.people(X)
    price = _prices(response, len(slope))
    multiplier = np.where(np.isfinite(found.price), 0.5 * found.price, 0.0)
    free, flat = people.directions(found, price)
    moved = X + people.full(found.action)
    return OwnReach(found.gain, moved, multiplier, slope, price, free, flat)


def gains_of(response: Response, score: Score, X: Tensor) -> Floats | None:
    """Return how much everybody can raise the score, (n,); None where that is not known here."""
    if not has_second_order(response):
        return None
    rows, slope = np.ascontiguousarray(X.detach().numpy()), as_array(slope_of(score))
    plan = response.plan(len(slope), score.fixed)
    if plan.possible:
        return _possible_gains(plan, response, slope * plan.ones, rows).gain
    reach = reach_of(response, slope, rows)
    return reach.reach if isinstance(reach, OwnReach) else None


def reach_around(response: Response, score: Score, X: Floats) -> OwnReach | None:
    """Return what says how far people reach under rules near a linear one; None if nothing does."""
    # Only where people stay possible: elsewhere a reach costs no more than its neighbours'.
    if not (isinstance(score, LinearScore) and has_second_order(response)):
        return None
    plan = response.plan(score.n_features)
    if not plan.possible:
        return None
    return _possible_reach(plan, response, as_array(slope_of(score)) * plan.ones, X)


def only_directions(bounds: Bounds) -> bool:
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
def _bounded(X, w, price, budget, bounds, moved, reach, multiplier):  # type: ignore[no-untyped-def]
    """Write everybody's place, gain and multiplier; say whether everybody may stay."""
    lower, upper, low, high, _ = bounds
    n, d = X.shape
    room = np.empty(d)
    for i in range(n):
        a, b, c, e = row_of(lower, i), row_of(upper, i), row_of(low, i), row_of(high, i)
        forced = 0
        for j in range(d):
            least, most = action_range(X[i, j], lower[a, j], upper[b, j], low[c, j], high[e, j])
            forced |= (least > 0.0) | (most < 0.0)
            room[j] = (most if w[j] > 0.0 else -least) if w[j] != 0.0 else 0.0
        if forced != 0:
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
