"""Second derivatives of the mean loss after response, in the weights of a linear score.

Exact for the best response at a quadratic cost and where nobody moves; for smoothed responses
the gradient is exact and the curvature the part that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Index
from countermove.people import MahalanobisCost, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.response._shared_curve import SharedCurve
from countermove.response.base import Response
from countermove.response.reduction import slope_of
from countermove.response.training_signal import (
    LinearSignal,
    Reach,
    has_second_order,
    reach_of,
    training_signal,
)
from countermove.scores import LinearScore, Score
from countermove.training.losses import Loss
from countermove.training.newton import Derivatives
from countermove.training.second_order import (
    curve_derivatives,
    logistic_derivatives,
    tangent_derivatives,
)

Kinds = Sequence[tuple[float, Response]]


def refusal(loss: Loss, kinds: Sequence[Response]) -> str | None:
    """Say why the loss after these responses cannot be minimised by Newton's method."""
    if loss.name != "logistic":
        return f"the {loss.name} loss has kinks"
    for kind in kinds:
        if not (has_second_order(kind) or _is_smooth(kind)):
            return f"the response {kind.name!r} has no smooth scores to follow"
    return None


def _is_smooth(response: Response) -> bool:
    """Return whether scores after response follow the rule smoothly, jumps apart."""
    if type(response) is BestResponse:
        return isinstance(response.cost, QuadraticCost | WeightedQuadraticCost | MahalanobisCost)
    if not isinstance(response, ScalarResponse):
        return False
    return response.name == "smooth" and response.polish and response.gradient == "fixed_point"


def risk_derivatives(loss: Loss, score: Score, X: Tensor, y: Tensor, kinds: Kinds) -> Derivatives:
    """Return the mean logistic loss over kinds of people, each with its share."""
    rows, labels = X.numpy(), y.numpy()
    with torch.no_grad():
        scores, slope = score(X).numpy(), slope_of(score).numpy()
    known: list[tuple[float, Reach]] = []
    others: list[Derivatives] = []
    for share, response in kinds:
        curve = SharedCurve.of(response, slope, rows)
        if curve is not None:
            full = curve_derivatives(rows, labels, scores, curve, loss.class_weight)
            others.append(_of_columns(full, score) * share)
            continue
        reach = reach_of(response, slope, rows) if has_second_order(response) else "unknown"
        if isinstance(reach, str):
            others.append(_by_gradient(loss, score, X, y, response) * share)
        else:
            known.append((share, reach))
    if known:
        full = logistic_derivatives(rows, labels, scores, known, loss.class_weight)
        others.append(_of_columns(full, score))
    return sum(others[1:], start=others[0])


def smooth_maximum(members: Sequence[Derivatives], softness: float) -> Derivatives:
    r"""Return the derivatives of :math:`\theta \log \sum_m e^{L_m/\theta}`."""
    values = np.array([member.value for member in members])
    odds = np.exp((values - values.max()) / softness)
    shares = odds / odds.sum()
    gradients = np.stack([member.gradient for member in members])
    mean = shares @ gradients
    spread = (gradients - mean).T @ ((gradients - mean) * shares[:, None]) / softness
    curved = sum(
        (m.hessian * share for m, share in zip(members, shares, strict=True)), start=spread
    )
    value = float(values.max() + softness * np.log(odds.sum()))
    exact = all(member.exact for member in members)
    return Derivatives(value, mean, curved, exact, kinked=True)


def _by_gradient(loss: Loss, score: Score, X: Tensor, y: Tensor, response: Response) -> Derivatives:
    """Return loss and gradient after any differentiable response, with Gauss and Newton's part."""
    signal = None
    if isinstance(response, ScalarResponse):
        with torch.enable_grad():
            signal = training_signal(response, score, X)
    if isinstance(signal, LinearSignal):
        rest, by_bias, by_weight = (part.numpy() for part in signal.tangents(score, X.numpy()))
        linear = cast(LinearScore, score)
        with torch.no_grad():
            after = rest + by_weight @ linear.weight.numpy() + by_bias * linear.bias.item()
        tangents = np.column_stack([by_weight, by_bias])
        return tangent_derivatives(tangents, y.numpy(), after, loss.class_weight)
    with torch.no_grad():
        after = response.scores_after(score, X).numpy()
    value, gradient = value_and_gradient(score, lambda: loss(response.scores_after(score, X), y))
    still = np.column_stack([X.numpy()[:, linear_columns(score)], np.ones(len(y))])
    shape = tangent_derivatives(still, y.numpy(), after, loss.class_weight)
    return Derivatives(value, gradient, shape.hessian, exact=False)


def value_and_gradient(score: Score, function: Callable[[], Tensor]) -> tuple[float, Floats]:
    """Return a function's value and its gradient in weight and bias."""
    linear = cast(LinearScore, score)
    with torch.enable_grad():
        value = function()
        parts = torch.autograd.grad(
            value, (linear.weight, linear.bias), allow_unused=True, materialize_grads=True
        )
    return float(value.detach()), np.append(parts[0].numpy(), float(parts[1]))


def linear_columns(score: Score) -> Index:
    """Return the columns whose weights are trained."""
    columns = score.linear_columns()
    assert columns is not None
    return np.asarray(columns, dtype=np.intp)


def _of_columns(full: Derivatives, score: Score) -> Derivatives:
    """Return the derivatives in the weights that are trained, of those in all columns' weights."""
    columns = linear_columns(score)
    if len(columns) == score.n_features:
        return full
    kept = np.append(columns, score.n_features)
    parts = full.value, full.gradient[kept], full.hessian[np.ix_(kept, kept)]
    return Derivatives(*parts, full.exact, full.kinked)
