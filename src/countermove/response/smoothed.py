"""What every response to a smoothed decision is built from: its temperature and its unit."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from countermove.errors import ParameterError
from countermove.people import ActionSet, Cost
from countermove.response.base import Response
from countermove.response.smoothing import smoothed_step
from countermove.response.trade import slope_of
from countermove.scores import Score

Start = Literal["global", "stay"]
Gradient = Literal["fixed_point", "last_proxy"]


class SmoothedResponse(Response):
    """The head `ScalarResponse` and `ConicResponse` share; they say what its arguments mean."""

    def __init__(
        self,
        cost: Cost | None,
        actions: ActionSet | None,
        temperature: float,
        start: Start,
        normalised: bool,
        gradient: Gradient,
        tolerance: float,
        max_iterations: int,
        unit: float | None,
    ) -> None:
        super().__init__(cost, actions)
        check_choice("start", start, Start)
        check_choice("gradient", gradient, Gradient)
        check_positive(temperature=temperature, tolerance=tolerance, max_iterations=max_iterations)
        if unit is not None:
            check_positive(unit=unit)
        self.temperature = float(temperature)
        self.start, self.normalised, self.gradient = start, bool(normalised), gradient
        self.tolerance, self.max_iterations = float(tolerance), int(max_iterations)
        self.unit = None if unit is None else float(unit)

    def worth(self, score: Score, after: Tensor) -> Tensor:
        r"""Return the smoothed step :math:`\sigma^*(s/(\tau N))`, with its gradient to the rule."""
        unit = torch.ones((), dtype=torch.float64)
        if self.unit is not None:
            unit = unit * self.unit
        elif self.normalised:
            plan = self.plan(score.n_features)
            own = plan.unit(plan.movable(slope_of(score)))
            unit = own if float(own.detach()) > 0.0 else unit
        return smoothed_step(after / (self.temperature * unit))

    def describe(self) -> dict[str, Any]:
        """Return the arguments, JSON-ready."""
        names = ("temperature", "start", "normalised", "gradient", "tolerance", "max_iterations")
        return super().describe() | {name: getattr(self, name) for name in (*names, "unit")}


def check_choice(what: str, value: Any, kind: Any) -> None:
    """Refuse a value that is none of a literal's."""
    if value not in get_args(kind):
        raise ParameterError(f"{what} is one of {get_args(kind)}, got {value!r}")


def check_positive(**values: float) -> None:
    """Refuse numbers that are not positive and finite."""
    for name, value in values.items():
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and np.isfinite(value) and value > 0):
            raise ParameterError(f"{name} must be a positive finite number, got {value!r}")
