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
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.errors import CostError, ParameterError
from countermove.people import ActionSet, Cost
from countermove.people.costs import CanonicalCost
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.scores import LinearScore, Score

FREE, BOXED, KINKED, DENSE, STRAIGHT = range(5)
"""How the trade-off is traced: closed form, sorted bounds, kink, dual active set, knapsack."""


class KernelArrays(NamedTuple):
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
    """One rule met by one population: arrays for the kernels, and tensors with their graphs."""

    arrays: KernelArrays
    plan: ActionPlan
    bounded: bool  # whether something bounds a feature that moves
    slope: Tensor
    weights: Tensor | None  # None where the cost has no such part
    matrix: Tensor | None
    kink: Tensor | None

    @property
    def bounds(self) -> tuple[Floats, Floats, Floats, Floats, bool]:
        """The bounds of actions and of places, and whether they matter."""
        arrays = self.arrays
        return arrays.lower, arrays.upper, arrays.low, arrays.high, self.bounded

    @property
    def unit(self) -> Tensor:
        """N(w), the score per unit of distance over the movable directions."""
        return self.plan.unit(self.slope)

    @property
    def unit_value(self) -> float:
        """The same as a number."""
        return float(np.linalg.norm(self.plan.usable(self.arrays.slope)))


def make_reduction(score: Score, cost: Cost, plan: ActionPlan, n_rows: int) -> Reduction:
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
    plain = as_array(usable)
    weights = np.ones(d) if shape.weights is None else as_array(shape.weights)
    kink = np.zeros(d) if shape.kink is None else as_array(shape.kink)
    arrays = KernelArrays(
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
    _check_coefficients(arrays)
    return Reduction(arrays, plan, not unbounded, usable, shape.weights, shape.matrix, shape.kink)


def known_scores(score: Score, X: Tensor | Floats) -> tuple[Floats, Floats, float]:
    """Return ``(scores, weight, bias)``: weights for linear scores, else the scores themselves."""
    # The kernels form a linear score row by row, so that nobody's result depends on who else is
    # in the batch; other scores are evaluated here.
    if type(score) is LinearScore:
        return np.empty(0), as_array(score.weight), float(score.bias.detach())
    with torch.no_grad():
        values = score(torch.as_tensor(X).detach())
    return as_array(values), np.zeros(score.n_features), 0.0


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


_EMPTY = np.empty((0, 0))
_NO_DENSE = (_EMPTY, _EMPTY, _EMPTY, _EMPTY, np.empty(0), _EMPTY)


def _dense_parts(
    kind: int,
    matrix: Tensor | None,
    weights: Floats,
    slope: Floats,
    moving: Mask,
    actions: ActionSet,
) -> tuple[Floats, ...]:
    if kind != DENSE:
        return _NO_DENSE
    d = len(slope)
    full = np.diag(weights) if matrix is None else as_array(matrix)
    inverse = np.zeros((d, d))
    block = np.ix_(moving, moving)
    if moving.any():
        inverse[block] = np.linalg.inv(2.0 * full[block])
    extra = np.empty((0, d)) if actions.A is None else actions.A
    offsets = np.empty((1, 0)) if actions.b is None else np.atleast_2d(actions.b)
    rows = np.vstack([np.eye(d), -np.eye(d), extra])
    coupling = rows @ inverse @ rows.T
    return full, inverse, rows, coupling, rows @ inverse @ slope, np.ascontiguousarray(offsets)


def _check_coefficients(arrays: KernelArrays) -> None:
    # One sum shows whether any weight is not finite, one minimum whether any is not positive.
    if not math.isfinite(arrays.slope.sum()):
        raise ParameterError("the score's weights hold NaN or infinity")
    if not arrays.weights.min() > 0.0:
        raise CostError(f"the weights of a quadratic cost must be positive, got {arrays.weights}")


def as_array(tensor: Tensor) -> Floats:
    """Return a tensor's numbers without its graph, contiguous."""
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float64)
