"""The training signal of a linear score under a quadratic cost: one compiled call per batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from countermove.people import QuadraticCost, WeightedQuadraticCost
from countermove.people.actions import SLACK
from countermove.response.base import Floats, check_converged
from countermove.response.failures import raise_failures
from countermove.response.trade import reduce
from countermove.scores import LinearScore, Score

if TYPE_CHECKING:
    from countermove.response.scalar import ScalarResponse


@dataclass(frozen=True)
class PlainSignal:
    """What stays the same from batch to batch: how a plain quadratic cost is answered."""

    response: ScalarResponse
    weights: Floats

    def __call__(self, score: LinearScore, rows: Floats) -> Tensor:
        """Return the scores after the response, with gradients to weight and bias.

        The kernel gives each person's tangent; torch evaluates it, so that forward
        and backward passes are two matrix-vector products.
        """
        from countermove.response.training_rows import training_rows

        n, d = rows.shape
        response, plan = self.response, self.response.plan(d)
        bounds, (unbounded, _) = plan.bounds(n), plan.facts(n)
        own = 0.0 if response.normalised else 1.0
        rest, by_bias, by_weight = np.empty(n), np.empty(n), np.empty((n, d))
        status = np.empty(n, dtype=np.int64)
        training_rows(
            rows, score.weight.detach().numpy(), score.bias.item(), self.weights,
            plan.ones, plan.rising, plan.falling,
            bounds.lower, bounds.upper, bounds.min_value, bounds.max_value, not unbounded, SLACK,
            response.temperature, own if response.unit is None else response.unit,
            response.start == "stay", response.gradient == "last_proxy",
            rest, by_bias, by_weight, status,
        )  # fmt: skip
        if status.any():
            trade = reduce(score, response.cost, plan, n).trade
            check_converged(raise_failures(rows, status, trade), "raise")
        tangent = torch.addmv(torch.from_numpy(rest), torch.from_numpy(by_weight), score.weight)
        return torch.addcmul(tangent, torch.from_numpy(by_bias), score.bias)


def plain_signal(response: ScalarResponse, score: Score, X: Tensor) -> PlainSignal | None:
    """Return the one-call signal where it applies: plain costs, linear scores, no other gradient.

    The weights are read anew each time: a cost may be changed in place.
    """
    cost, plan = response.cost, response.plan(score.n_features)
    if not response.polish or type(score) is not LinearScore or X.requires_grad:
        return None
    if plan.actions.A is not None or not torch.is_grad_enabled():
        return None
    if isinstance(cost, QuadraticCost):
        if cost.scale.requires_grad:
            return None
        return PlainSignal(response, np.full(score.n_features, cost.scale.item()))
    if isinstance(cost, WeightedQuadraticCost) and not cost.weights.requires_grad:
        weights = cost.canonical(score.n_features).weights
        return None if weights is None else PlainSignal(response, weights.numpy())
    return None
