"""What a move costs and how people answer, by ``kind``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters

if TYPE_CHECKING:
    from countermove.people import Cost

Positive = Annotated[float, Field(gt=0)]


class QuadraticCostParameters(Parameters):
    """``scale`` times the squared length of the move, in standardised units."""

    kind: Literal["quadratic"] = "quadratic"
    scale: Positive = 1.0

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people import QuadraticCost

        return QuadraticCost(self.scale)


class WeightedQuadraticCostParameters(Parameters):
    """One price per feature, in the schema's order of model columns."""

    kind: Literal["weighted_quadratic"]
    weights: list[Positive]

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people import WeightedQuadraticCost

        return WeightedQuadraticCost(self.weights)


class MahalanobisCostParameters(Parameters):
    """A positive definite matrix of prices."""

    kind: Literal["mahalanobis"]
    matrix: list[list[float]]

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people import MahalanobisCost

        return MahalanobisCost(self.matrix)


class LinearCostParameters(Parameters):
    """``max(0, direction · move)``; needs bounds on what can be moved."""

    kind: Literal["linear"]
    direction: list[float]

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people import LinearCost

        return LinearCost(self.direction)


class MixtureCostParameters(Parameters):
    """``scale · ((1 − gamma) · linear + gamma · quadratic)``."""

    kind: Literal["mixture"]
    direction: list[float]
    gamma: Annotated[float, Field(gt=0, le=1)]
    scale: Positive = 1.0

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people import MixtureCost

        return MixtureCost(self.direction, self.gamma, self.scale)


class OwnCostParameters(Parameters):
    """A cost that your function makes: ``package.module:name`` and its arguments."""

    kind: Literal["own"]
    function: str
    arguments: dict[str, float | list[float] | str | bool] = Field(default_factory=dict)

    def build(self) -> Cost:
        """Return the cost."""
        from countermove.people.own import own_cost

        return own_cost(self.function, self.arguments)


CostParameters = Annotated[
    QuadraticCostParameters
    | WeightedQuadraticCostParameters
    | MahalanobisCostParameters
    | LinearCostParameters
    | MixtureCostParameters
    | OwnCostParameters,
    Field(discriminator="kind"),
]
