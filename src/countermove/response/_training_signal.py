"""The training signal under a quadratic cost: one compiled call per batch.

A linear score is its weights. Any other score with a slope is the same seen by one
person: a slope over what moves, and an intercept of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from countermove._types import Floats, Index
from countermove.people import Cost, QuadraticCost, WeightedQuadraticCost
from countermove.people.actions import SLACK, Bounds
from countermove.response._reduction import as_array, make_reduction
from countermove.response._solutions import raise_failures
from countermove.response.action_plan import slope_of
from countermove.response.base import check_converged
from countermove.scores import LinearScore, Score

if TYPE_CHECKING:
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
        plan = self.response.plan(rows.shape[1])
        bounds, (unbounded, _) = plan.bounds(len(rows)), plan.facts(len(rows))
        parts = (bounds.lower, bounds.upper, bounds.min_value, bounds.max_value, not unbounded)
        masks = (plan.ones, plan.rising, plan.falling)
        rest, by_bias, by_weight, status = _tangents(
            self, rows, as_array(slope_of(score)), score.bias.item(), self.weights, masks, parts
        )
        _raise_failed(self.response, score, rows, status)
        return rest, by_bias, by_weight


@dataclass(frozen=True)
class AffineSignal:
    """The same for a score with a slope: only the features it does not hold fixed are looked at."""

    response: ScalarResponse
    weights: Floats

    def __call__(self, score: Score, rows: Floats) -> Tensor:
        """Return the scores after the response, with gradients to slope and score."""
        # Person i sees w·x + β_i with β_i = s(x_i) - w·x_i: the intercept enters the kernel as
        # one more feature, of weight one, that cannot move.
        n, d = rows.shape
        plan, moving = self.response.plan(d), _not_fixed(score)
        X, slope = torch.from_numpy(rows), slope_of(score)[moving]
        seen = X[:, moving]
        own = score(X) - seen @ slope
        bounds, (unbounded, _) = plan.bounds(n), plan.facts(n)
        parts = tuple(
            _extended(part[:, moving], 0.0)
            for part in (bounds.lower, bounds.upper, bounds.min_value, bounds.max_value)
        )
        parts[2][:, -1], parts[3][:, -1] = -np.inf, np.inf
        rest, by_own, by_slope, status = _tangents(
            self,
            np.column_stack([seen.numpy(), as_array(own)]),
            np.append(as_array(slope), 1.0),
            0.0,
            np.append(self.weights[moving], 1.0),
            tuple(np.append(m[moving], 0.0) for m in (plan.ones, plan.rising, plan.falling)),
            (*parts, not unbounded),
        )
        _raise_failed(self.response, score, rows, status)
        return torch.addcmul(torch.addmv(rest, by_slope[:, :-1], slope), by_own, own)


Signal = LinearSignal | AffineSignal


def _tangents(
    signal: Signal,
    rows: Floats,
    weight: Floats,
    bias: float,
    weights: Floats,
    masks: tuple[Floats, ...],
    bounds: tuple[Any, ...],
) -> tuple[Tensor, Tensor, Tensor, NDArray[np.int64]]:
    """Return what `training_rows` writes: the rest, both derivatives and how rows ended."""
    from countermove.response._training_kernel import training_rows

    n, d = rows.shape
    response = signal.response
    own = 0.0 if response.normalised else 1.0
    rest, by_bias, by_weight = np.empty(n), np.empty(n), np.empty((n, d))
    status = np.empty(n, dtype=np.int64)
    training_rows(
        rows, weight, bias, weights, *masks, *bounds, SLACK,
        response.temperature, own if response.unit is None else response.unit,
        response.start == "stay", response.gradient == "last_proxy",
        rest, by_bias, by_weight, status,
    )  # fmt: skip
    return torch.from_numpy(rest), torch.from_numpy(by_bias), torch.from_numpy(by_weight), status


def _raise_failed(
    response: ScalarResponse, score: Score, rows: Floats, status: NDArray[np.int64]
) -> None:
    if status.any():
        arrays = make_reduction(
            score, response.cost, response.plan(rows.shape[1]), len(rows)
        ).arrays
        check_converged(raise_failures(rows, status, arrays), "raise")


def _extended(part: Floats, value: float) -> Floats:
    """Return the bounds with one more feature."""
    return np.column_stack([part, np.full(len(part), value)])


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
    weights = _constant_weights(response.cost, score.n_features)
    plan = response.plan(score.n_features)
    if weights is None or plan.actions.A is not None:
        return None
    if type(score) is LinearScore:
        return LinearSignal(response, weights)
    if score.slope() is None or _bounds_fixed(plan.bounds(len(X)), list(score.fixed)):
        return None
    return AffineSignal(response, weights)


def _constant_weights(cost: Cost, n_features: int) -> Floats | None:
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
