"""What the compiled kernels read: cost, actions and slope as plain arrays.

`Reduction` keeps the same quantities as tensors, so that gradients can flow back
into the score and the cost after the kernel has solved for everybody's price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats
from countermove.errors import CostError, ParameterError
from countermove.people import ActionSet, Cost
from countermove.people.actions import Bounds
from countermove.people.costs import CanonicalCost
from countermove.scores import LinearScore, Score

FREE, BOXED, KINKED, DENSE, STRAIGHT = range(5)
"""How the trade-off is traced: closed form, sorted bounds, kink, dual active set, knapsack."""


class Trade(NamedTuple):
    """Arrays of one population and one rule, as the kernels take them."""

    kind: int
    shared: bool
    slope: Floats
    weights: Floats
    kink: Floats
    lower: Floats
    upper: Floats
    low: Floats
    high: Floats
    matrix: Floats
    inverse: Floats
    rows: Floats
    coupling: Floats
    pull: Floats
    offsets: Floats


@dataclass(frozen=True)
class Reduction:
    """One rule met by one population.

    Parameters
    ----------
    trade
        The arrays for the kernels.
    slope, weights, matrix, kink
        The same as tensors with their graphs; None where the cost has no such part.
    plan
        What the actions say.
    bounded
        Whether something bounds a feature that moves.
    """

    trade: Trade
    plan: Plan
    bounded: bool
    slope: Tensor
    weights: Tensor | None
    matrix: Tensor | None
    kink: Tensor | None

    @property
    def bounds(self) -> tuple[Floats, Floats, Floats, Floats, bool]:
        """The bounds of actions and of places, and whether they matter."""
        trade = self.trade
        return trade.lower, trade.upper, trade.low, trade.high, self.bounded

    @property
    def unit(self) -> Tensor:
        """N(w), the score per unit of distance over the movable directions."""
        return self.plan.unit(self.slope)

    @property
    def unit_value(self) -> float:
        """The same as a number."""
        return float(np.linalg.norm(self.plan.usable(self.trade.slope)))


class Plan:
    """What a response knows of its actions before it meets a score; made once and kept.

    Parameters
    ----------
    actions
        The allowed actions.
    n_features
        Number of features.
    """

    def __init__(self, actions: ActionSet, n_features: int) -> None:
        self.actions = actions.for_response()
        down, up = self.actions.directions(n_features)
        self.down, self.up, self.moving = down, up, down | up
        self.all_free = bool(down.all() and up.all())
        self.all_move = bool(self.moving.all())
        self.ones = self.moving.astype(np.float64)
        self.rising, self.falling = up.astype(np.float64), down.astype(np.float64)
        self._tensors = tuple(torch.from_numpy(part) for part in (down, up, self.moving))
        parts = (actions.lower, actions.upper, actions.min_value, actions.max_value)
        self.per_person = any(part is not None and part.ndim == 2 for part in parts)
        self._bounds: dict[int, Bounds] = {}
        self._facts: dict[int, tuple[bool, bool]] = {}

    def facts(self, n_rows: int) -> tuple[bool, bool]:
        """Return whether nothing bounds a feature that moves, and whether all have one box."""
        bounds = self.bounds(n_rows)
        if id(bounds) not in self._facts:
            self._facts = {id(bounds): (_unbounded(bounds), _shared(bounds, self.actions))}
        return self._facts[id(bounds)]

    def bounds(self, n_rows: int) -> Bounds:
        """Return the bounds for so many people."""
        key = n_rows if self.per_person else 0
        if key not in self._bounds:
            self._bounds = {key: self.actions.bounds(n_rows, len(self.moving))}
        return self._bounds[key]

    def movable(self, slope: Tensor) -> Tensor:
        """Return the slope over the features that move."""
        return slope if self.all_move else slope * self._tensors[2]

    def usable(self, slope: Floats) -> Floats:
        """Return the slope where a person can move in its direction, zero elsewhere."""
        if self.all_free:
            return slope
        result: Floats = np.where(slope > 0.0, self.up, self.down) * slope
        return result

    def unit(self, slope: Tensor) -> Tensor:
        r"""Return :math:`\sup\{w\cdot\delta : \|\delta\|_2 \le 1\}` over movable directions.

        Of several slopes, shape (n, d), one each.
        """
        if not self.all_free:
            down, up, _ = self._tensors
            slope = slope * torch.where(slope > 0.0, up, down)
        norm: Tensor = torch.linalg.vector_norm(slope, dim=-1)
        return norm


def slope_of(score: Score) -> Tensor:
    """Return the score's slope; refuse scores that are not affine in what moves."""
    slope = score.slope()
    if slope is None:
        raise ParameterError(
            f"{type(score).__name__} has no slope: it is not affine in the features that move, so "
            "people's answer does not reduce to one number each and there is no N(w) to measure "
            "distance by. unit=<score per unit of distance> can stand for N(w), but nothing can "
            "stand for the slope: publish a score that is affine in what moves (LinearScore, or "
            "PartlyLinearScore, any network in the other features), or let people climb it "
            "(AscentResponse; RepresentationResponse for a RepresentationScore)"
        )
    return slope


def reduce(score: Score, cost: Cost, plan: Plan, n_rows: int) -> Reduction:
    """Bring score, cost and actions to the arrays and tensors a response works with."""
    slope = slope_of(score)
    d = slope.shape[0]
    shape = cost.canonical(d)
    if shape is None:
        raise CostError(
            "a conic cost has no scalar reduction; use ConicResponse, or BestResponse with it"
        )
    usable = plan.movable(slope)
    bounds = plan.bounds(n_rows)
    unbounded, shared = plan.facts(n_rows)
    kind = _kind(shape, unbounded, plan.actions)
    plain = _plain(usable)
    weights = np.ones(d) if shape.weights is None else _plain(shape.weights)
    kink = np.zeros(d) if shape.kink is None else _plain(shape.kink)
    trade = Trade(
        kind,
        shared,
        plain,
        weights,
        kink,
        bounds.lower,
        bounds.upper,
        bounds.min_value,
        bounds.max_value,
        *_dense_parts(kind, shape.matrix, weights, plain, plan.moving, plan.actions),
    )
    _check_coefficients(trade)
    return Reduction(trade, plan, not unbounded, usable, shape.weights, shape.matrix, shape.kink)


def known_scores(score: Score, X: Tensor | Floats) -> tuple[Floats, Floats, float]:
    """Return ``(scores, weight, bias)``: weights for linear scores, else the scores themselves.

    The kernels form a linear score row by row, so that nobody's result depends on
    who else is in the batch; other scores are evaluated here.
    """
    if type(score) is LinearScore:
        return np.empty(0), _plain(score.weight), float(score.bias.detach())
    with torch.no_grad():
        values = score(torch.as_tensor(X).detach())
    return _plain(values), np.zeros(score.n_features), 0.0


def sharpness_of(temperature: float, unit: float) -> float:
    """Return score units to step units; a score nobody can raise keeps its own units."""
    return 1.0 / (temperature * unit) if unit > 0.0 else 1.0 / temperature


def _kind(shape: CanonicalCost, unbounded: bool, actions: ActionSet) -> int:
    if actions.A is not None and shape.kink is not None:
        raise CostError(
            "a linear or mixture cost with extra constraints A δ + b ≥ 0 has no scalar "
            "reduction; use ConicResponse"
        )
    if actions.A is not None or shape.matrix is not None:
        return DENSE
    if shape.weights is None:
        return STRAIGHT
    if shape.kink is not None:
        return KINKED
    return FREE if unbounded else BOXED


def _unbounded(bounds: Bounds) -> bool:
    held = (bounds.lower == 0.0) & (bounds.upper == 0.0)
    loose = np.isinf(bounds.lower) & np.isinf(bounds.upper)
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    return not by_value and len(held) == 1 and bool((held | loose).all())


def _shared(bounds: Bounds, actions: ActionSet) -> bool:
    """Return whether everybody has the same box and constraints, hence the same polyline."""
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    alone = len(bounds.lower) == len(bounds.upper) == 1
    return alone and not by_value and (actions.b is None or actions.b.ndim == 1)


_EMPTY = np.empty((0, 0))
_NO_DENSE = (_EMPTY, _EMPTY, _EMPTY, _EMPTY, np.empty(0), _EMPTY)


def _dense_parts(
    kind: int,
    matrix: Tensor | None,
    weights: Floats,
    slope: Floats,
    moving: NDArray[np.bool_],
    actions: ActionSet,
) -> tuple[Floats, ...]:
    if kind != DENSE:
        return _NO_DENSE
    d = len(slope)
    full = np.diag(weights) if matrix is None else _plain(matrix)
    inverse = np.zeros((d, d))
    block = np.ix_(moving, moving)
    if moving.any():
        inverse[block] = np.linalg.inv(2.0 * full[block])
    extra = np.empty((0, d)) if actions.A is None else actions.A
    offsets = np.empty((1, 0)) if actions.b is None else np.atleast_2d(actions.b)
    rows = np.vstack([np.eye(d), -np.eye(d), extra])
    coupling = rows @ inverse @ rows.T
    return full, inverse, rows, coupling, rows @ inverse @ slope, np.ascontiguousarray(offsets)


def _check_coefficients(trade: Trade) -> None:
    # One sum tells whether any weight is not finite, one minimum whether any is not positive.
    if not math.isfinite(trade.slope.sum()):
        raise ParameterError("the score's weights hold NaN or infinity")
    if not trade.weights.min() > 0.0:
        raise CostError(f"the weights of a quadratic cost must be positive, got {trade.weights}")


def _plain(tensor: Tensor) -> Floats:
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)
