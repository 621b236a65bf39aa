"""What a move costs and which moves are allowed."""

from countermove.people.actions import ActionSet
from countermove.people.conic_cost import ConicCost
from countermove.people.costs import (
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

__dir__ = __all__.copy
