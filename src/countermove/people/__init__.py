"""What a move costs and which moves are allowed."""

from countermove.people.actions import ActionSet
from countermove.people.costs import (
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
    cost_from_description,
)

__all__ = [
    "ActionSet",
    "ConicCost",
    "Cost",
    "LinearCost",
    "MahalanobisCost",
    "MixtureCost",
    "QuadraticCost",
    "WeightedQuadraticCost",
    "cost_from_description",
]
