"""Costs that are not settled: one coefficient of a cost, anywhere in a box.

The system may choose it (flexible costs), or not know it (unknown costs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats
from countermove.errors import ParameterError, shown
from countermove.people.costs import Cost

COEFFICIENTS = ("scale", "weights", "direction", "gamma", "matrix")
"""What a cost may be written in."""
POSITIVE = ("scale", "weights")
"""Coefficients that are prices: a move never earns money."""


@dataclass(frozen=True)
class CostBox:
    r"""The costs :math:`c_v` with :math:`l \le v \le u`, around a first one :math:`c_{v_0}`."""

    cost: Cost  # with a closed form, and v_0 as its coefficient
    coefficient: str  # "scale", "weights" or "direction"
    lower: ArrayLike  # one number for all entries, or one each
    upper: ArrayLike

    def __post_init__(self) -> None:
        if self.cost.units == "original":
            raise ParameterError(
                f"{self.cost!r} is in original units; a box holds standardised coefficients: put "
                "one around what cost.standardised(mean, scale) returns"
            )
        if not isinstance(getattr(self.cost, self.coefficient, None), Tensor):
            known = [
                name for name in COEFFICIENTS if isinstance(getattr(self.cost, name, None), Tensor)
            ]
            raise ParameterError(
                f"a {self.cost.kind} cost has no coefficient {self.coefficient!r}; "
                f"it has {', '.join(known)}"
            )
        for side in ("lower", "upper"):
            object.__setattr__(self, side, self._edge(side))
        self._check()

    @classmethod
    def around(cls, cost: Cost, coefficient: str, radius: float) -> CostBox:
        r"""Return the box :math:`\|v - v_0\|_\infty \le` ``radius``."""
        start = getattr(cost, coefficient).detach().numpy()
        return cls(cost, coefficient, start - radius, start + radius)

    @property
    def start(self) -> Tensor:
        """The coefficient of the first cost, :math:`v_0`."""
        value: Tensor = getattr(self.cost, self.coefficient)
        return value.detach().clone()

    @property
    def edges(self) -> tuple[Tensor, Tensor]:
        """Both ends of the box."""
        return torch.as_tensor(self.lower), torch.as_tensor(self.upper)

    def build(self, values: Tensor) -> Cost:
        """Return the cost with the coefficient at ``values``, which may require a gradient."""
        arguments: dict[str, Any] = self.cost.describe()
        del arguments["kind"]
        return type(self.cost)(**arguments | {self.coefficient: values})

    def ends(self) -> tuple[Cost, Cost]:
        """Return the costs at both ends: the cheapest and the most expensive moves of the box."""
        low, high = self.edges
        return self.build(low), self.build(high)

    def clamped(self, values: Tensor) -> Tensor:
        """Return the nearest point of the box."""
        return torch.clamp(values, *self.edges)

    def _edge(self, side: str) -> Floats:
        shape = tuple(getattr(self.cost, self.coefficient).shape)
        given = np.asarray(getattr(self, side), dtype=np.float64)
        if given.shape not in ((), shape):
            raise ParameterError(
                f"{side} is one number or has the shape {shape} of the {self.coefficient}, "
                f"got shape {given.shape}"
            )
        return np.array(np.broadcast_to(given, shape))

    def _check(self) -> None:
        low, high = np.atleast_1d(self.lower), np.atleast_1d(self.upper)
        start = np.atleast_1d(self.start.numpy())
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ParameterError(f"a box of costs has finite ends, got {low} and {high}")
        empty = np.flatnonzero(low > high)
        if len(empty):
            raise ParameterError(
                f"the box of costs is empty: lower exceeds upper in entries {shown(empty)} of the "
                f"{self.coefficient}; exchange them"
            )
        outside = np.flatnonzero((start < low) | (start > high))
        if len(outside):
            raise ParameterError(
                f"the box excludes the cost it starts from: entries {shown(outside)} of the "
                f"{self.coefficient} are {start[outside]}, the box goes from {low[outside]} to "
                f"{high[outside]}; widen it or start inside"
            )
        if self.coefficient in POSITIVE and float(low.min()) <= 0.0:
            raise ParameterError(
                f"the {self.coefficient} of a cost must be positive, the box reaches down to "
                f"{float(low.min()):g}; raise its lower end"
            )
