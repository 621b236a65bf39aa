"""Between rows as they are given to a classifier and the standardised rows it is trained on.

Everything that takes a fitted classifier converts here, once, and works in standard deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.people import ActionSet, Cost
from countermove.people.actions import checked_actions
from countermove.people.costs import checked_cost
from countermove.response import Response
from countermove.scores import Score
from countermove.scores.base import values

LONGER = 30
"""Doublings of the last digit by which a move may grow so that rounding does not undo it."""
Found = TypeVar("Found")


@dataclass(frozen=True)
class RowUnits:
    """The units of the rows given; without a standardiser they are standardised already."""

    standardiser: Standardiser | None = None
    digits: int | None = None  # significant digits of actions as given; None: all
    columns: Sequence[str] = ()  # names of the rows' features, where a table has them

    def rows(self, X: Floats) -> Floats:
        """Return the rows in standardised units."""
        return X if self.standardiser is None else self.standardiser.transform(X)

    @overload
    def actions(self, given: ActionSet) -> ActionSet: ...
    @overload
    def actions(self, given: None) -> None: ...
    def actions(self, given: ActionSet | None) -> ActionSet | None:
        """Return actions in standardised units, names of columns looked up."""
        actions = checked_actions(given, self.columns)
        if self.standardiser is None or actions is None:
            return actions
        return actions.after_standardising(self.standardiser.mean, self.standardiser.scale)

    def actions_as_given(self, given: ActionSet) -> ActionSet:
        """Return actions in the units of the rows given, whole steps included."""
        given = given.of_columns(self.columns)
        if self.standardiser is None or given.unit is not None:
            return given
        mean, scale = self.standardiser.mean, self.standardiser.scale
        if given.units == "original":
            return given.standardised(np.zeros_like(mean), np.ones_like(scale))
        return given.standardised(mean, scale).rescaled(1.0 / scale, -mean / scale)

    @overload
    def cost(self, given: Cost) -> Cost: ...
    @overload
    def cost(self, given: None) -> None: ...
    def cost(self, given: Cost | None) -> Cost | None:
        """Return a cost per standard deviation; a number is the scale of a quadratic one."""
        cost = checked_cost(given)
        if self.standardiser is None or cost is None:
            return cost
        return cost.standardised(self.standardiser.mean, self.standardiser.scale)

    def response(self, given: Response) -> Response:
        """Return people who respond in standardised units."""
        if self.standardiser is None:
            return given
        return given.after_standardising(self.standardiser.mean, self.standardiser.scale)

    def function(self, of_rows: Callable[[Floats], Found]) -> Callable[[Floats], Found]:
        """Return a function of rows as one of standardised rows."""
        unit = self.standardiser
        return of_rows if unit is None else lambda rows: of_rows(unit.inverse(rows))

    def action_as_given(self, action: Floats) -> Floats:
        """Return an action in the units of the rows given."""
        if self.standardiser is None:
            return action
        return _rounded(self.standardiser.action_to_original(action), self.digits)

    def moved_as_given(self, X: Floats, rows: Floats, moved: Floats, inside: Score) -> Floats:
        """Return where people move to from ``X``, the standardised ``rows``, in its units.

        Whoever ``inside`` approves there is approved in these units too: rounding is made up for.
        """
        if self.standardiser is None:
            return moved
        action = self.action_as_given(moved - rows)
        x_new: Floats = X + action
        outside = inside.before_standardising(self.standardiser.mean, self.standardiser.scale)
        short = np.flatnonzero((values(inside, moved) >= 0.0) & (values(outside, x_new) < 0.0))
        for doubling in range(LONGER):
            if not short.size:
                break
            longer = 1.0 + 2.0**doubling * np.finfo(np.float64).eps
            x_new[short] = X[short] + longer * action[short]
            short = short[values(outside, x_new[short]) < 0.0]
        return x_new


def standardised_model(model: Any) -> tuple[Any, RowUnits]:
    """Return a model that reads standardised rows, and the units of the rows it was given.

    Scores, stored models and classifiers trained without standardising read their rows as is.
    """
    unit = getattr(model, "standardiser_", None)
    if not isinstance(unit, Standardiser):
        return model, RowUnits(columns=names_of(model))
    digits = getattr(model, "action_digits", None)
    return model.of_standardised_rows(), RowUnits(unit, digits, names_of(model))


def names_of(model: Any) -> tuple[str, ...]:
    """Return the names of a model's features; none where it was given arrays."""
    unit = getattr(model, "standardiser_", None)
    names = getattr(model, "feature_names_in_", ()) if unit is None else unit.names
    return tuple(map(str, names))


def _rounded(action: Floats, digits: int | None) -> Floats:
    """Return actions in so many significant digits: a whole step is whole again."""
    if digits is None:
        return action
    size = np.abs(action)
    known = np.isfinite(size) & (size > 0.0)
    # A whole number over a power of ten is the decimal number nearest to it.
    power = 10.0 ** np.maximum(digits - np.ceil(np.log10(np.where(known, size, 1.0))), 0.0)
    return np.where(known, np.round(action * power) / power, action)


def as_rows(model: Any, X: Any) -> Any:
    """Return people as rows of numbers: an adopted model's table has columns of categories."""
    encode = getattr(model, "encode", None)
    return X if encode is None else encode(X)
