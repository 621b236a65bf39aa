r"""Strategic empirical risk: the loss where people end up, not where they stand.

.. math:: \min_s\; \max_m \frac1n \sum_i \ell\bigl(y_i, s_m^{after}(x_i)\bigr) + \lambda R_m(s)

One response is the paper's objective, ``NoResponse`` is blind training, several
are robust training: the worst member, or a weighted mean of all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats, Mask
from countermove.errors import ParameterError
from countermove.learning.regularisers import Regulariser, penalty_derivatives
from countermove.people import Cost, WeightedQuadraticCost
from countermove.response import ScalarResponse
from countermove.response.base import Response
from countermove.response.population import Population
from countermove.response.response_set import discretised
from countermove.response.training_signal import constant_weights
from countermove.scores import Score
from countermove.training import Derivatives, Loss
from countermove.training._labels import mean_over
from countermove.training.curvature import refusal, risk_derivatives, smooth_maximum

if TYPE_CHECKING:
    import pandas as pd

SOFTER = tuple(2.0 ** -np.arange(0.0, 1.1, 0.25))
"""Temperatures, times the root of the least price, of the gentler steps that lead to a steep one.
At the first no score is lifted by more than 1.3 times the difference to the next, and six starts
end at one optimum (bench_fit); below about the last one the response jumps."""
HARDEST = 1e-3
"""Softness at which the worst of several responses is followed: its loss is off by no more than
this times the logarithm of their number."""


@dataclass(frozen=True)
class StrategicRisk:
    r"""Mean loss after response, over one response or robustly over several.

    Parameters
    ----------
    responses
        Whom to train against; at least one.
    loss_function
        Hinge or logistic, of the scores after response. The scores keep the
        scale of the weights (every response but ``published`` is unchanged when
        the score is multiplied), so the margin's scale is learned with them.
    regulariser
        Added to every member's loss with its strength, under that member's response.
    judged_by
        Responses whose worst accuracy stops training early; ``responses`` by default.
    weights
        Of the members, non-negative, summing to one; None takes the worst member.
    softness
        0: hard maximum of the members' mean losses. Positive: the smooth maximum
        :math:`\theta \log \sum_m e^{L_m/\theta}`.
    """

    responses: tuple[Response, ...]
    loss_function: Loss = field(default_factory=Loss)
    regulariser: Regulariser | None = None
    judged_by: tuple[Response, ...] = ()
    weights: tuple[float, ...] | None = None
    softness: float = 0.0

    def __post_init__(self) -> None:
        if not self.responses:
            raise ParameterError("a strategic risk needs at least one response")
        if self.weights is not None:
            check_weights(self.weights, len(self.responses))
        if not (math.isfinite(self.softness) and self.softness >= 0.0):
            raise ParameterError(f"softness is a number ≥ 0, got {self.softness!r}")

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the risk of a batch."""
        if len(self.responses) == 1:
            return self._alone(score, X, y, self.responses[0])
        losses = [self._alone(score, X, y, response) for response in self.responses]
        return self._joined(torch.stack(losses))

    def judge(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float]:
        """Return the lowest (or weighted mean) accuracy after response, and the risk."""
        members = self.judged_by or self.responses
        alone = len(members) == 1 and members == self.responses and self.regulariser is None
        if alone and not isinstance(members[0], Population):
            return self._judge_at_once(score, X, y)
        favourable = (y > 0).numpy()
        rows = X.detach().numpy()
        accuracies = [
            mean_over(right_chances(member, score, rows, favourable), y.numpy())
            for member in members
        ]
        with torch.no_grad():
            risk = float(self.loss(score, X, y))
        if self.weights is not None and len(self.weights) == len(members):
            return float(np.dot(self.weights, accuracies)), risk
        return min(accuracies), risk

    def _judge_at_once(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float]:
        """Read accuracy and loss off the same scores: one solve per person instead of two."""
        with torch.no_grad():
            after = self.responses[0].scores_after(score, X)
            right = (after >= 0.0) == (y > 0)
            return mean_over(right.numpy(), y.numpy()), float(self.loss_function(after, y))

    def refuses_newton(self, score: Score) -> str | None:
        """Say why the risk cannot be minimised by Newton's method; None: it can."""
        kinds = [kind for response in self.responses for _, kind in discretised(response)]
        return refusal(self.loss_function, kinds)

    def refuses_polish(self) -> str | None:
        """Say why gradients summed over parts of the rows lead to no optimum; None: they do."""
        if self.loss_function.name != "logistic":
            return f"the {self.loss_function.name} loss has kinks"
        if len(self.responses) > 1 and self.weights is None:
            return "the worst of several responses is no sum over parts"
        if any(response.name == "published" for response in self.responses):
            return "the published response has no gradient of its own"
        return None

    def softened(self) -> tuple[Self, ...]:
        """Return the risks of people who climb gentler steps, the gentlest first."""
        path = []
        for heat in SOFTER:
            gentle = tuple(_heated(response, heat) for response in self.responses)
            if any(new is not old for new, old in zip(gentle, self.responses, strict=True)):
                path.append(replace(self, responses=gentle, judged_by=()))
        return tuple(path)

    def second_order(self, score: Score, X: Tensor, y: Tensor) -> tuple[Derivatives, ...]:
        """Return each member's risk, or the weighted mean of all, with its derivatives."""
        if self.weights is not None:
            members = zip(self.weights, self.responses, strict=True)
            kinds = [(w * share, kind) for w, one in members for share, kind in discretised(one)]
            return (self._curved(score, X, y, kinds),)
        return tuple(self._curved(score, X, y, discretised(one)) for one in self.responses)

    def joined(self, means: Sequence[Derivatives]) -> Derivatives:
        """Return the only risk, or the worst, with its derivatives."""
        return means[0] if len(means) == 1 else smooth_maximum(means, self.softness or HARDEST)

    def _curved(
        self, score: Score, X: Tensor, y: Tensor, kinds: Sequence[tuple[float, Response]]
    ) -> Derivatives:
        """Return the derivatives of the mean risk over kinds of people, penalty included."""
        total = risk_derivatives(self.loss_function, score, X, y, kinds)
        if self.regulariser is None or self.regulariser.strength == 0.0:
            return total
        for share, response in kinds:
            penalty = penalty_derivatives(self.regulariser, score, X, y, response)
            total = total + penalty * (share * self.regulariser.strength)
        return total

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk of an epoch: some responses are solved more closely as epochs pass."""
        responses = tuple(response.for_epoch(epoch) for response in self.responses)
        same = all(new is old for new, old in zip(responses, self.responses, strict=True))
        return self if same else replace(self, responses=responses)

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some people of the sample: bounds of their own follow them.

        Of nobody in particular (mini-batches of rows in parts): histories by features alone.
        """
        if not len(rows):
            return self.with_windows(np.empty((0, 0)), None)
        responses = tuple(response.of_rows(rows) for response in self.responses)
        judges = tuple(response.of_rows(rows) for response in self.judged_by)
        pairs = zip((*responses, *judges), (*self.responses, *self.judged_by), strict=True)
        if all(new is old for new, old in pairs):
            return self
        return replace(self, responses=responses, judged_by=judges)

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> Self:
        """Return the risk of people whose histories are known (see `Response.with_windows`)."""
        return replace(
            self,
            responses=tuple(response.with_windows(X, windows) for response in self.responses),
            judged_by=tuple(response.with_windows(X, windows) for response in self.judged_by),
        )

    def with_cost(self, cost: Cost) -> Self:
        """Return the risk of the same behaviour at another cost."""
        return replace(
            self,
            responses=tuple(response.with_cost(cost) for response in self.responses),
            judged_by=tuple(response.with_cost(cost) for response in self.judged_by),
        )

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return nothing: only the score is learned."""
        return ()

    def settle(self) -> None:
        """Leave everything as it is: only the score is learned."""

    def _alone(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the risk if all people followed one response, penalty included."""
        if isinstance(response, Population):
            kinds = discretised(response)
            return torch.stack([w * self._alone(score, X, y, kind) for w, kind in kinds]).sum()
        risk = self.loss_function(response.scores_after(score, X), y)
        if self.regulariser is None or self.regulariser.strength == 0.0:
            return risk
        return risk + self.regulariser.strength * self.regulariser.penalty(score, X, y, response)

    def _joined(self, losses: Tensor) -> Tensor:
        """Return the worst, smoothly worst or weighted loss of the members."""
        if self.weights is not None:
            return losses @ losses.new_tensor(self.weights)
        if self.softness > 0.0:
            return self.softness * torch.logsumexp(losses / self.softness, dim=0)
        return losses.max()


def _heated(response: Response, heat: float) -> Response:
    """Return the response at a temperature at which its step is as gentle, where that is known."""
    if not (isinstance(response, ScalarResponse) and response.normalised and response.unit is None):
        return response
    cost = response.cost
    size = len(cost.weights) if isinstance(cost, WeightedQuadraticCost) else 1
    prices = constant_weights(cost, size)
    least = 0.0 if prices is None else heat / math.sqrt(float(prices.min()))
    return response if response.temperature >= least else response.at_temperature(least)


def right_chances(response: Response, score: Score, X: Floats, favourable: Mask) -> Floats:
    """Return everybody's chance of the decision their label asks for, after response."""
    chances = response.chance_after(score, X)
    right: Floats = np.where(favourable, chances, 1.0 - chances)
    return right


def check_weights(weights: tuple[float, ...], n_members: int) -> None:
    """Refuse weights that are no probability vector over the members."""
    if len(weights) != n_members:
        raise ParameterError(f"{n_members} members need as many weights, got {len(weights)}")
    if min(weights) < 0.0 or not math.isclose(sum(weights), 1.0, abs_tol=1e-9):
        raise ParameterError(f"weights are non-negative and sum to one, got {weights}")
