"""Which moves are allowed: the one description of what a person can change.

Responses, recourse and collectives all read it. Bounds on the action and on
``x_new`` meet, person by person, in one box; linear constraints come on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats, Mask
from countermove.errors import ParameterError, shown
from countermove.people._action_arguments import (
    bound,
    check_order,
    check_shapes,
    constraints,
    filled,
    json_numbers,
    places_of,
    positions,
    schema_arguments,
    step_sizes,
    supply_prices,
    unknown_cells,
)
from countermove.people._units import Units, checked_moments, checked_units, not_converted
from countermove.people.action_box import (
    Bounds,
    allowed,
    directed_bounds,
    inequalities,
    nearest_action,
    own_box,
)
from countermove.people.costs import Cost, with_prices
from countermove.people.possible import Possible

if TYPE_CHECKING:
    import pandas as pd

    from countermove.data.schema import ModelFeature, Schema
    from countermove.data.standardise import Standardiser


class ActionSet:
    r"""The actions :math:`\delta = x' - x` a person may take.

    >>> from countermove import ActionSet
    >>> actions = ActionSet(only_increase=[0], immutable=[2], upper=[1.0, 1.0, 1.0])
    >>> actions.movable_among(3)
    array([ True,  True, False])

    .. math:: lower \le \delta \le upper,\quad min \le x + \delta \le max,\quad A\delta + b \ge 0

    Parameters
    ----------
    lower, upper
        Bounds on the action, shape (d,) or (n, d).
    min_value, max_value
        Bounds on ``x_new``, same shapes. A person beyond them has to come back.
    only_increase, only_decrease, immutable
        Features with a direction, or that never change: positions, or names of columns that are
        looked up in the table a classifier is fitted to.
    integer
        Features that move in whole steps, of one original unit unless ``steps`` says otherwise,
        by position or name. Recourse keeps the steps whole; responses relax them, except
        where a relation asks whether a column has a value: it is left by a whole step.
    groups
        Groups of one-hot columns, each a sequence of positions or names. Recourse moves a
        group jointly; a continuous response cannot keep it coherent and holds it fixed.
    A, b
        Extra constraints, shapes (m, d) and (m,) or (n, m).
    steps
        Size of a step in original units, by position or name as in ``integer``.
    possible
        Who can exist (`Possible`, or its description): what relations, histories and usual
        ranges leave of the actions.
    missing
        Cells that people may lack, each as (indicator, level, columns): whoever's indicator
        column is above the level has no value in the columns, and nothing there to move from.
    supply
        Indicators of cells that people can supply, among ``only_decrease``, with what the step
        from 1 to 0 costs; `priced` puts that into a cost.
    units
        Of bounds, ``A`` and ``b``. ``"standardised"``: 1 is one standard deviation of the
        training rows, and bounds on ``x_new`` count from their mean. ``"original"``: the
        columns' own; the set is used once `standardised` has converted it.
    """

    def __init__(
        self,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        min_value: ArrayLike | None = None,
        max_value: ArrayLike | None = None,
        only_increase: Iterable[int | str] = (),
        only_decrease: Iterable[int | str] = (),
        immutable: Iterable[int | str] = (),
        integer: Iterable[int | str] = (),
        groups: Iterable[Sequence[int | str]] = (),
        A: ArrayLike | None = None,
        b: ArrayLike | None = None,
        steps: Mapping[int | str, float] | None = None,
        units: Units = "standardised",
        possible: Possible | Mapping[str, Any] | None = None,
        missing: Iterable[tuple[int, float, Iterable[int]]] = (),
        supply: Mapping[int, float] | None = None,
    ) -> None:
        self.lower = bound(lower, "lower")
        self.upper = bound(upper, "upper")
        self.min_value = bound(min_value, "min_value")
        self.max_value = bound(max_value, "max_value")
        self.only_increase = positions(only_increase, "only_increase")
        self.only_decrease = positions(only_decrease, "only_decrease")
        self.immutable = positions(immutable, "immutable")
        self.integer = positions(integer, "integer")
        self.groups = tuple(positions(group, "groups") for group in groups)
        self.A, self.b = constraints(A, b)
        self.steps = dict(step_sizes(steps, self.integer))
        self.units = checked_units(units)
        self.possible = (
            Possible.from_description(possible) if isinstance(possible, Mapping) else possible
        )
        self.missing = unknown_cells(missing)
        self.supply = supply_prices(supply, self.only_decrease)
        self.unit: Floats | None = None
        self.offset: Floats | None = None
        self.columns: tuple[ModelFeature, ...] | None = None
        check_shapes(
            lower=self.lower,
            upper=self.upper,
            min_value=self.min_value,
            max_value=self.max_value,
            A=self.A,
        )
        check_order(self.lower, self.upper, "lower", "upper")
        check_order(self.min_value, self.max_value, "min_value", "max_value")

    @property
    def n_features(self) -> int | None:
        """Number of features where a bound or constraint fixes it, else None."""
        for array in (self.lower, self.upper, self.min_value, self.max_value, self.A, self.unit):
            if array is not None:
                return int(array.shape[-1])
        return None if self.possible is None else len(self.possible.low)

    @property
    def n_people(self) -> int | None:
        """Number of people with bounds of their own, None where all share theirs.

        Row i of such a bound belongs to person i of the table it was written for; whoever
        takes some rows of that table takes the same rows of the bounds (`of_rows`).
        """
        counts = {name: len(value) for name, value in self._per_person().items()}
        if self.possible is not None and self.possible.n_people is not None:
            counts["histories"] = self.possible.n_people
        if len(set(counts.values())) > 1:
            raise ParameterError(
                f"per-person bounds must list the same people, got {counts} rows; give each of "
                "them shape (n, d) for the same n, or (d,) for everybody"
            )
        return next(iter(counts.values()), None)

    @property
    def movable(self) -> Mask:
        """Which features may move, shape (d,)."""
        if self.n_features is None:
            raise ParameterError(
                "this ActionSet does not know its number of features; use movable_among(d)"
            )
        return self.movable_among(self.n_features)

    def movable_among(self, n_features: int) -> Mask:
        """Return which of ``n_features`` features may move."""
        down, up = self.directions(n_features)
        mask: Mask = down | up
        return mask

    def directions(self, n_features: int) -> tuple[Mask, Mask]:
        """Return which features may fall and which may rise, by direction alone (boxes ignored)."""
        self._check_width(n_features)
        down, up = np.ones(n_features, bool), np.ones(n_features, bool)
        down[list(self.only_increase + self.immutable)] = False
        up[list(self.only_decrease + self.immutable)] = False
        return down, up

    @property
    def named(self) -> tuple[str, ...]:
        """Names of columns that `of_columns` has yet to look up."""
        listed = [*self.only_increase, *self.only_decrease, *self.immutable, *self.integer]
        listed += [j for group in self.groups for j in group]
        return tuple(dict.fromkeys(j for j in listed if isinstance(j, str)))

    def of_columns(self, columns: Sequence[str]) -> ActionSet:
        """Return the set with names looked up among the columns of a table."""
        if not self.named:
            return self
        changes: dict[str, Any] = {
            name: places_of(getattr(self, name), columns, name)
            for name in _POSITIONS
            if name != "groups"
        }
        groups = [places_of(group, columns, "groups") for group in self.groups]
        steps = {places_of([j], columns, "steps")[0]: size for j, size in self.steps.items()}
        return self._copy(**changes, groups=groups, steps=steps)

    def of_rows(self, rows: ArrayLike) -> ActionSet:
        """Return the set of some people only: per-person bounds follow them (else itself)."""
        n = self.n_people
        if n is None:
            return self
        chosen = np.asarray(rows)
        if np.array_equal(chosen, np.arange(n)):
            return self  # what was made of everybody's bounds is kept
        outside = np.unique(chosen[(chosen < 0) | (chosen >= n)])
        if outside.size:
            raise ParameterError(
                f"the actions hold bounds of {n} people, but rows {shown(outside)} were asked "
                "for; list every person, or give bounds of shape (d,) for everybody"
            )
        own: dict[str, Any] = {name: value[chosen] for name, value in self._per_person().items()}
        if self.possible is not None:
            own["possible"] = self.possible.of_rows(chosen)
        return self._copy(**own)

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> ActionSet:
        """Return the set of people whose histories are known month by month.

        Parameters
        ----------
        X
            The people, shape (n, d), in the units of the set.
        windows
            The raw columns that the paths read, one row per person; people or columns that
            are missing keep what their features tell. None: nobody's are known (any more).
        """
        if self.possible is None or not self.possible.histories:
            return self
        if windows is None:
            forgotten = replace(self.possible, states=None)
            return self if self.possible.states is None else self.with_possible(forgotten)
        if windows.empty:
            return self
        return self.with_possible(self.possible.with_windows(X, windows))

    def unknown(self, X: Floats) -> Mask | None:
        """Return which cells nobody knows, shape (n, d); None if all are known."""
        if not self.missing:
            return None
        mask = np.zeros(np.shape(X), dtype=np.bool_)
        for indicator, above, columns in self.missing:
            lacking = np.flatnonzero(np.asarray(X)[:, indicator] > above)
            mask[np.ix_(lacking, np.array(columns))] = True
        return mask if mask.any() else None

    def for_people(self, X: ArrayLike) -> ActionSet:
        """Return the set of these people: who lacks a cell stands still there, by bounds."""
        obeyed = self.possible is not None and self.possible.in_responses
        if obeyed and self.possible is not None and not self.possible.only_ranges:
            return self  # its branches know of cells that nobody knows
        rows = np.asarray(X, dtype=np.float64)
        unknown = self.unknown(rows)
        if unknown is None:
            return self
        n, d = rows.shape
        held: dict[str, Any] = {"missing": ()}
        for name, free in (("lower", -np.inf), ("upper", np.inf)):
            bounds = np.broadcast_to(filled(getattr(self, name), free, n, d, name), (n, d))
            held[name] = np.where(unknown, 0.0, bounds)
        # Bounds on where people end up are no reason to move from a value that is none.
        for name, free in (("min_value", -np.inf), ("max_value", np.inf)):
            if getattr(self, name) is not None:
                bounds = np.broadcast_to(filled(getattr(self, name), free, n, d, name), (n, d))
                held[name] = np.where(unknown, free, bounds)
        return self._copy(**held)

    def with_possible(self, possible: Possible | None) -> ActionSet:
        """Return the set with another description of who can exist."""
        return self._copy(possible=possible)

    def holding(self, columns: Iterable[int]) -> ActionSet:
        """Return the set in which nobody moves these columns either."""
        held = {*self.immutable, *columns}
        return self if len(held) == len(self.immutable) else self._copy(immutable=sorted(held))

    def obeyed_in_responses(self, obeyed: bool = True) -> ActionSet:
        """Return the set whose relations, histories and usual ranges bind responses too.

        Responses then lead only to people who can exist, branch by branch; whole steps stay
        relaxed. Quadratic costs without cross terms are fast, other ones convex programs, and
        scores without a slope are climbed. Not ``obeyed``: responses relax them again.
        """
        if self.possible is None or self.possible.in_responses == obeyed:
            return self
        return self.with_possible(replace(self.possible, in_responses=obeyed))

    def within_steps(self, max_steps: int | None) -> ActionSet:
        """Return the set where nobody is asked for more steps along a history (None: any)."""
        if max_steps is None or self.possible is None:
            return self
        if int(max_steps) != max_steps or max_steps < 0:
            raise ParameterError(f"max_steps is a whole number of at least 0, got {max_steps!r}")
        return self.with_possible(replace(self.possible, max_steps=int(max_steps)))

    def check_people(self, n_rows: int, what: str) -> None:
        """Refuse per-person bounds that list other people than the ``n_rows`` rows of ``what``."""
        n = self.n_people
        if n is not None and n != n_rows:
            raise ParameterError(
                f"the actions hold bounds of {n} people but {what} are {n_rows} rows: row i of "
                "the bounds belongs to row i of the people. Give bounds of shape (d,) for "
                "everybody, or take the same rows of both (ActionSet.of_rows(rows)); in "
                "cross-validation only shared bounds can follow the folds"
            )

    def narrowed(self, largest_action: float | None, n_features: int) -> ActionSet:
        """Return the set with every feature's move held to ``largest_action`` either way.

        The limit is positive and in the units of the set; None leaves the set as it is. Supplying
        a missing cell is not limited.
        """
        if largest_action is None:
            return self
        if not largest_action > 0.0:
            raise ParameterError(f"largest_action is positive, got {largest_action!r}")
        limit = np.full(n_features, float(largest_action))
        limit[list(self.supply)] = np.inf  # a cell is supplied or not: that is no amount
        return self._copy(
            lower=-limit if self.lower is None else np.maximum(self.lower, -limit),
            upper=limit if self.upper is None else np.minimum(self.upper, limit),
        )

    def priced(self, cost: Cost) -> Cost:
        """Return the cost under which supplying a cell costs what ``supply`` says.

        A cost without a closed form prices the indicator's column itself.
        """
        if not self.supply:
            return cost
        if self.unit is None or self.offset is None:
            raise ParameterError("what supplying costs is known once `standardised` was called")
        steps = {j: (price, 1.0 / float(self.unit[j])) for j, price in self.supply.items()}
        return with_prices(cost.standardised(self.offset, self.unit), steps, len(self.unit))

    def without_supply(self) -> ActionSet:
        """Return the set of people who lack nothing that they could supply."""
        if not self.supply:
            return self
        held = (*self.immutable, *self.supply)
        falling = [j for j in self.only_decrease if j not in self.supply]
        return self._copy(immutable=held, only_decrease=falling, supply={})

    def for_response(self) -> ActionSet:
        """Return the set a continuous response uses: one-hot groups stay as they are.

        Relations, histories and ranges are relaxed, as whole steps are, unless
        `obeyed_in_responses` says otherwise.
        """
        possible = self.possible
        obeyed = possible if possible is not None and possible.in_responses else None
        if not self.groups and obeyed is possible:
            return self
        held = tuple(sorted({*self.immutable, *(j for group in self.groups for j in group)}))
        return self._copy(immutable=held, groups=(), possible=obeyed)

    def step_sizes(self, n_features: int) -> Floats:
        """Return the size of a step per feature, shape (d,), in original units.

        It is 1 unless given, also for features that move continuously.
        """
        self._check_width(n_features)
        sizes = np.ones(n_features)
        sizes[list(self.steps)] = list(self.steps.values())
        return sizes

    def bounds(self, n_rows: int, n_features: int) -> Bounds:
        """Return all bounds with directions folded in, each of shape (1, d) or (n, d)."""
        self._check_width(n_features)
        if self.units == "original":
            raise ParameterError(not_converted("this ActionSet"))
        return directed_bounds(self, n_rows, n_features)

    def box(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and highest action of every person and feature, each (n, d).

        Raises
        ------
        InfeasibleActionsError
            With the rows for which no action is allowed, not even staying.
        """
        return own_box(self, np.asarray(X, dtype=np.float64))

    def as_inequalities(self, X: Floats) -> tuple[Floats, Floats]:
        r"""Return ``(G, h)``, shapes (m, d) and (n, m), with the set as :math:`G\delta + h \ge 0`.

        A person without some bound has an infinite ``h`` there.
        """
        return inequalities(self, *self.box(X))

    def contains(self, X: Floats, action: Floats, tolerance: float = 1e-7) -> Mask:
        """Return, per person, whether the action is allowed (integers and groups included)."""
        return allowed(self, np.asarray(X, np.float64), np.asarray(action, np.float64), tolerance)

    def project(self, X: Floats, action: Floats) -> Floats:
        """Return the nearest allowed action (Euclidean), integers and groups relaxed."""
        return nearest_action(self, X, np.asarray(action, np.float64))

    def rescaled(self, scale: ArrayLike, mean: ArrayLike) -> ActionSet:
        """Return the same actions of rows ``(x - mean) / scale``; the result is standardised.

        It converts whatever the units were; `standardised` does so only where that is due.
        """
        unit, centre = np.asarray(scale, np.float64), np.asarray(mean, np.float64)
        other = self._copy(
            lower=None if self.lower is None else self.lower / unit,
            upper=None if self.upper is None else self.upper / unit,
            min_value=None if self.min_value is None else (self.min_value - centre) / unit,
            max_value=None if self.max_value is None else (self.max_value - centre) / unit,
            A=None if self.A is None else self.A * unit,
            possible=None if self.possible is None else self.possible.rescaled(unit, centre),
            missing=[(j, (a - centre[j]) / unit[j], columns) for j, a, columns in self.missing],
            units="standardised",
        )
        other.unit = unit if self.unit is None else unit * self.unit
        other.offset = (
            centre
            if self.offset is None
            else self.offset + centre * (1.0 if self.unit is None else self.unit)
        )
        return other

    def standardised(self, mean: ArrayLike, scale: ArrayLike) -> ActionSet:
        """Return the set in standardised units, converted at most once.

        Parameters
        ----------
        mean, scale
            Mean and standard deviation of the training rows, shape (d,): rows are
            ``(x - mean) / scale``.

        Returns
        -------
        ActionSet
            Bounds of a set in original units are converted; those of a standardised one
            stay, and it learns what a whole step and a one-hot column are in these units,
            unless it knows. Calling it again changes nothing.
        """
        centre, unit = checked_moments(mean, scale)
        self._check_width(len(unit))
        if self.units == "original":
            return self.rescaled(unit, centre)
        if self.unit is not None:
            return self
        other = self._copy()
        other.unit, other.offset = unit, centre
        return other

    def after_standardising(self, mean: ArrayLike, scale: ArrayLike) -> ActionSet:
        """Return the set of rows ``(x - mean) / scale``, for a caller who holds the rows ``x``.

        Bounds in standard deviations stay. A set in original units, and one that knows its rows
        (made by `from_schema` or `standardised`), is about ``x`` and is converted.
        """
        if self.unit is None:
            return self.standardised(mean, scale)
        return self.rescaled(*reversed(checked_moments(mean, scale)))

    @classmethod
    def from_schema(
        cls, schema: Schema, standardiser: Standardiser, possible: bool = True
    ) -> ActionSet:
        """Build the set of a schema's model columns, in the standardiser's units.

        Parameters
        ----------
        schema
            What the columns mean, and who can exist.
        standardiser
            The units, and the usual ranges of its training rows.
        possible
            Whether relations, histories and ranges hold; else each column by itself (but one
            that people lack and can supply is as assumed until they do).
        """
        arguments = schema_arguments(schema, standardiser)
        limits = Possible.from_schema(schema, standardiser, declared=possible)
        original = cls(**arguments, units="original", possible=limits)
        original.columns = schema.model_features()
        return original.standardised(standardiser.mean, standardiser.scale)

    def describe(self) -> dict[str, Any]:
        """Return JSON-ready constructor arguments (only those that say something)."""
        arguments: dict[str, Any] = {}
        for name in _ARRAYS:
            value = getattr(self, name)
            if value is not None:
                arguments[name] = json_numbers(value.tolist())
        for name in _POSITIONS:
            if getattr(self, name):
                arguments[name] = [
                    list(p) if isinstance(p, tuple) else p for p in getattr(self, name)
                ]
        if self.steps:
            arguments["steps"] = {str(j): size for j, size in self.steps.items()}
        if self.possible is not None:
            arguments["possible"] = self.possible.describe()
        if self.missing:
            arguments["missing"] = [[j, a, list(columns)] for j, a, columns in self.missing]
        if self.supply:
            arguments["supply"] = {str(j): price for j, price in self.supply.items()}
        return arguments if self.units == "standardised" else arguments | {"units": self.units}

    def __repr__(self) -> str:
        return f"ActionSet({', '.join(f'{k}={v}' for k, v in self.describe().items())})"

    def _copy(self, **changes: Any) -> ActionSet:
        names = (*_ARRAYS, *_POSITIONS, "steps", "units", "possible", "missing", "supply")
        arguments = {name: getattr(self, name) for name in names} | changes
        other = ActionSet(**arguments)
        other.unit, other.offset, other.columns = self.unit, self.offset, self.columns
        return other

    def _per_person(self) -> dict[str, Floats]:
        """Return the bounds and offsets that differ from person to person, by name."""
        given = {name: getattr(self, name) for name in _ARRAYS if name != "A"}
        return {
            name: value
            for name, value in given.items()
            if value is not None and value.ndim == 2 and len(value) > 1
        }

    def _check_width(self, n_features: int) -> None:
        if self.named:
            raise ParameterError(
                f"the actions name columns ({shown(self.named)}): they are looked up where a "
                "classifier is fitted to a table; elsewhere give positions, or call "
                "of_columns(names)"
            )
        known = self.n_features
        if known is not None and known != n_features:
            raise ParameterError(
                f"the actions describe {known} features but the people have {n_features}"
            )
        listed = [*self.only_increase, *self.only_decrease, *self.immutable, *self.integer]
        listed += [j for group in self.groups for j in group]
        outside = sorted({j for j in listed if j >= n_features})
        if outside:
            raise ParameterError(
                f"the actions name feature {shown(outside)} but the people have only {n_features}"
            )


def checked_actions(actions: Any, columns: Sequence[str] | None = None) -> ActionSet | None:
    """Return actions that are some, names looked up where columns are known; None stays."""
    if actions is not None and not isinstance(actions, ActionSet):
        raise ParameterError(
            "actions are an ActionSet, for example ActionSet(immutable=[0]), or None; got "
            f"{actions!r}"
        )
    return actions if actions is None or columns is None else actions.of_columns(columns)


_ARRAYS = ("lower", "upper", "min_value", "max_value", "A", "b")
_POSITIONS = ("only_increase", "only_decrease", "immutable", "integer", "groups")
