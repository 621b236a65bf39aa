r"""The fifth axis: what is added to the risk.

A regulariser carries its own strength and sees the score, the batch and the response. The social
ones are differentiable means over people that guide training; whether people are better off is
judged by hard measures (`countermove.learning.social`), because a smoothed one may move by
rescaling the score alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from countermove.errors import ParameterError
from countermove.response.base import NoResponse, Response
from countermove.response.reduction import slope_of
from countermove.response.response_set import rational
from countermove.response.step import smoothed_step
from countermove.scores import LinearScore, Score
from countermove.training import Derivatives
from countermove.training.curvature import linear_columns, value_and_gradient
from countermove.training.losses import mean_by_size


@runtime_checkable
class Regulariser(Protocol):
    """Anything with a strength and a differentiable penalty."""

    @property
    def strength(self) -> float:
        """Factor of the penalty; 0 switches it off."""

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the penalty of a batch, a scalar, before the strength.

        Where people were given weights, these are the sizes of ``y``.
        """


@dataclass(frozen=True)
class L2:
    r"""Half the squared length of the slope, :math:`\tfrac12\|\nabla_x s\|^2`; the bias is free."""

    kind: ClassVar[str] = "l2"
    strength: float = 1e-3

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the penalty; people and their response do not enter."""
        slope = score.slope()
        if slope is None:
            raise ParameterError("L2 needs a score with a slope; penalise its weights instead")
        return 0.5 * slope.square().sum()


def check_strength(strength: float) -> None:
    """Refuse a strength that is negative or not a finite number."""
    if not (math.isfinite(strength) and strength >= 0.0):
        raise ParameterError(
            f"the strength of a regulariser is a number ≥ 0, got {strength!r}; "
            "to reward instead of punish, negate the penalty"
        )


def looks_at_people(regulariser: Regulariser | None) -> bool:
    """Return whether a regulariser measures people's response rather than the score alone."""
    # A social measure says so itself. Where nobody moves it means nothing.
    return bool(getattr(regulariser, "about_people", False))


def described(regulariser: Regulariser | None) -> dict[str, Any]:
    """Return kind and arguments, JSON-ready; of a user's regulariser its class and strength."""
    if regulariser is None:
        return {"kind": "none"}
    named = {"kind": getattr(regulariser, "kind", type(regulariser).__name__)}
    held: Any = regulariser
    names = [field.name for field in fields(held)] if is_dataclass(held) else ["strength"]
    return named | {name: getattr(held, name) for name in names}


@dataclass(frozen=True)
class ExpectedUtility:
    r"""Minus the mean payoff of people, SERM (9).

    .. math:: R(s) = -\frac1n \sum_i \bigl[ h(x_i^{after}) - c(x_i, x_i^{after}) \bigr]

    :math:`h` is the decision as people see it (`Response.worth`): the smoothed step for
    smoothed responses, the hard decision for best responders. Their payoff
    :math:`1 - \min(2, \text{cheapest crossing})` is continuous in the rule all the same, and
    its gradient is exact almost everywhere: nothing is smoothed.

    Parameters
    ----------
    strength
        Factor of the penalty, in units of loss per unit of payoff.
    temperature
        Of the smoothed step, in units of distance, where nobody moves: without it the
        payoff of people who stay would have no gradient. Not used elsewhere.
    """

    kind: ClassVar[str] = "utility"
    about_people: ClassVar[bool] = True
    strength: float = 1e-2
    temperature: float = 0.5

    def __post_init__(self) -> None:
        check_strength(self.strength)
        _check_temperature(self.temperature)

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return minus the mean payoff of a batch."""
        return -self.measure(score, X, y, response)

    def measure(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the mean payoff, at most 1 (everybody approved where they stand)."""
        if isinstance(response, NoResponse):
            stay = smoothed_step(score(X) / (self.temperature * _unit(score, response)))
            return mean_by_size(stay, y)
        found = response.respond(score, X)
        payoff: Tensor = response.worth(score, score(found.x_new)) - found.cost
        return mean_by_size(payoff, y)


@dataclass(frozen=True)
class SocialBurden:
    r"""What a person with a favourable label must pay for approval, SERM (10).

    .. math:: R(s) = \frac{1}{|P|} \sum_{i \in P} \min_\delta
              \{ c(x_i, x_i + \delta) : s(x_i + \delta) \ge 0,\ \delta\ \text{allowed} \}

    :math:`P` holds the people of the batch with label +1 for whom such a move exists; the others
    have no price and are left out (`countermove.learning.social` counts them). Only the cost and
    the actions of a response enter, not how people behave; the score's scale plays no part.
    Closed form for every canonical cost, else a conic layer.

    Parameters
    ----------
    strength
        Factor of the penalty, in units of loss per unit of cost.
    unscaled
        Measure the squared distance :math:`\|\delta\|^2` instead of the cost, as the paper's
        experiments do: for ``QuadraticCost(t)`` the burden divided by :math:`t`.
    """

    kind: ClassVar[str] = "burden"
    about_people: ClassVar[bool] = True
    strength: float = 1e-2
    unscaled: bool = False

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the mean burden of a batch; zero where nobody in it counts."""
        return self.measure(score, X, y, response)

    def measure(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the mean burden, zero if nobody deserving can reach approval."""
        deserving = torch.nonzero(y > 0).squeeze(1)
        payers = rational(response, self.unscaled).of_rows(deserving)
        found = payers.crossing(score, X[deserving])
        size = y[deserving]
        payers_size = (found.possible * size).sum()
        return (found.cost * size).sum() / torch.where(payers_size > 0.0, payers_size, 1.0)


@dataclass(frozen=True)
class Recourse:
    r"""How many are refused and stay refused, smoothed (SERM, section 3.4).

    .. math:: R(s) = \frac1n \sum_i \operatorname{sig}\bigl(-a\,s(x_i)\bigr)\,
              \operatorname{sig}\bigl(-a\,s(x_i^{after})\bigr)

    Parameters
    ----------
    strength
        Factor of the penalty, in units of loss.
    temperature
        :math:`\tau`, in units of distance: :math:`a = 1/(\tau N)` with :math:`N` the
        score per unit of distance over the movable directions, so that rescaling the score
        gains nothing. Under the ``published`` response :math:`a = 1`, as published.
    raw
        Take the published :math:`a = 1` under every response (True) or under none
        (False); None as said above.
    """

    kind: ClassVar[str] = "recourse"
    about_people: ClassVar[bool] = True
    strength: float = 1e-2
    temperature: float = 0.5
    raw: bool | None = None

    def __post_init__(self) -> None:
        check_strength(self.strength)
        _check_temperature(self.temperature)

    def penalty(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return the smoothed share of a batch that is refused and stays refused."""
        raw = response.name == "published" if self.raw is None else self.raw
        unit = 1.0 if raw else self.temperature * _unit(score, response)
        before: Tensor = score(X)
        after = response.scores_after(score, X)
        return mean_by_size(torch.sigmoid(-before / unit) * torch.sigmoid(-after / unit), y)

    def measure(self, score: Score, X: Tensor, y: Tensor, response: Response) -> Tensor:
        """Return one minus the penalty: who is approved, or would be after moving, smoothed."""
        return 1.0 - self.penalty(score, X, y, response)


SocialRegulariser = ExpectedUtility | SocialBurden | Recourse
SOCIAL: dict[str, type[SocialRegulariser]] = {
    regulariser.kind: regulariser for regulariser in (ExpectedUtility, SocialBurden, Recourse)
}
"""The social regularisers by kind."""


def penalty_derivatives(
    regulariser: Regulariser, score: Score, X: Tensor, y: Tensor, response: Response
) -> Derivatives:
    """Return the penalty before its strength: exact for L2, else without its curvature."""
    p = len(linear_columns(score)) + 1
    if isinstance(regulariser, L2):
        weight = cast(LinearScore, score).weight.detach().numpy()
        hessian = np.eye(p)
        hessian[-1, -1] = 0.0
        return Derivatives(0.5 * float(weight @ weight), np.append(weight, 0.0), hessian)
    value, gradient = value_and_gradient(score, lambda: regulariser.penalty(score, X, y, response))
    return Derivatives(value, gradient, np.zeros((p, p)), exact=False)


def _unit(score: Score, response: Response) -> Tensor:
    """Return N(w), or one for a rule nobody can influence."""
    plan = response.plan(score.n_features)
    unit = plan.unit(plan.movable(slope_of(score)))
    return unit if float(unit.detach()) > 0.0 else torch.ones_like(unit)


def _check_temperature(temperature: float) -> None:
    if not temperature > 0.0:
        raise ParameterError(f"the temperature of a measure is positive, got {temperature!r}")
