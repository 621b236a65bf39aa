"""The same cost, so many times as high: what a cost assumption changes."""

from __future__ import annotations

import functools
import math
from typing import Any

from countermove.errors import CostError
from countermove.people.costs import (
    ConicCost,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)


def times(cost: Cost, factor: float) -> Cost:
    r"""Return the cost under which every move costs ``factor`` times as much.

    .. math:: c_k(x, x') = k \, c(x, x')

    Parameters
    ----------
    cost
        Any cost of this package.
    factor
        :math:`k > 0`.
    """
    if not (math.isfinite(factor) and factor > 0.0):
        raise CostError(f"a cost is multiplied by a positive number, got {factor!r}")
    match cost:
        case QuadraticCost():
            return QuadraticCost(cost.scale * factor)
        case WeightedQuadraticCost():
            return WeightedQuadraticCost(cost.weights * factor)
        case MahalanobisCost():
            return MahalanobisCost(cost.matrix * factor)
        case LinearCost():
            return LinearCost(cost.direction * factor)
        case MixtureCost():
            return MixtureCost(cost.direction, cost.gamma, cost.scale * factor, cost.weights)
        case ConicCost():
            return _conic_times(cost, factor)
    raise CostError(f"{type(cost).__name__} is no cost of this package: it cannot be multiplied")


def _conic_times(cost: ConicCost, factor: float) -> ConicCost:
    """Return the multiplied expression; ``wraps`` keeps the arguments that ``build`` asks for."""

    @functools.wraps(cost.build)
    def dearer(*given: Any, **named: Any) -> Any:
        return factor * cost.build(*given, **named)

    other = ConicCost(dearer, cost.parameters, cost.signs)
    other.factor = cost.factor
    return other
