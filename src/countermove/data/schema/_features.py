"""The columns a score may read: their kinds, who may change them, what an empty cell means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from countermove.data.reading import Reading
from countermove.data.wording import Wording

Kind: TypeAlias = Literal["numeric", "integer", "binary", "ordered", "onehot"]
Change: TypeAlias = Literal["immutable", "up", "down", "both"]
Value: TypeAlias = str | int | float
Cause: TypeAlias = Literal["yes", "no", "unknown"]

KINDS: tuple[Kind, ...] = ("numeric", "integer", "binary", "ordered", "onehot")
CHANGES: tuple[Change, ...] = ("immutable", "up", "down", "both")
CAUSES: tuple[Cause, ...] = ("yes", "no", "unknown")

MISSING = "missing"
"""Name of the level that stands for a cell without a value: the model column ``<name>=missing``."""

MissingPolicy: TypeAlias = Literal["median", "mode", "own level"]
MISSING_POLICIES: tuple[MissingPolicy, ...] = ("median", "mode", "own level")

SUPPLY_PRICE = 0.01
"""What supplying a missing cell costs unless the schema says otherwise, in units of the cost."""


@dataclass(frozen=True)
class MissingCells:
    """What stands in for a cell without a value.

    Parameters
    ----------
    policy
        ``median`` or ``mode`` of the training rows, or ``own level``, a category of its own;
        None: ``value``.
    value
        The value that an empty cell means, for everybody.
    supply
        Whether people can supply the value; else nobody can do anything about it.
    price
        What supplying it costs, in units of the cost.
    """

    policy: MissingPolicy | None = None
    value: Value | None = None
    supply: bool = False
    price: float = SUPPLY_PRICE

    def to_entry(self) -> dict[str, Any]:
        """Return the entries as a schema file would hold them."""
        stands = self.policy if self.value is None else self.value
        if not self.supply:
            return {"missing": stands}
        return {"missing": stands, "supply": True if self.price == SUPPLY_PRICE else self.price}


def value_text(value: Value) -> str:
    """Return the one spelling of a value: ``1``, ``1.0`` and ``"1"`` all read ``1``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


@dataclass(frozen=True)
class ValueRange:
    """Where advice may lead within a feature's bounds.

    Parameters
    ----------
    declared
        Anywhere that ``min``, ``max`` and ``categories`` allow.
    low, high
        Ends in the feature's unit; an end that is None is the 1st (99th) percentile of the
        training rows, of categories the first (last) that occurs there.
    """

    declared: bool = False
    low: float | None = None
    high: float | None = None

    def to_entry(self) -> str | dict[str, float]:
        """Return the entry as a schema file would hold it."""
        ends = {"low": self.low, "high": self.high}
        given = {key: value for key, value in ends.items() if value is not None}
        return given or ("declared" if self.declared else "observed")


@dataclass(frozen=True)
class Feature:
    """One column a score may read.

    Parameters
    ----------
    name
        The column.
    kind
        ``numeric``; ``integer``; ``binary`` (0 or 1, or two categories of which the
        second is 1); ``ordered`` (categories in their order, coded 0, 1, …);
        ``onehot`` (categories without an order, one model column each).
    change
        What the person may do about it: nothing, raise it, lower it, or both.
    unit
        Unit of the values, for people to read.
    min, max
        Bounds of the values, inclusive, in that unit; ``None`` is unbounded.
    step
        Smallest change that makes sense, in that unit; ``None`` is any.
    range
        Where advice may lead within the bounds; ``None`` is as observed in the training rows
        (`countermove.data.observed_ranges`).
    categories
        The values of a categorical column, as text.
    group
        For binary columns of a category that the table brings already expanded:
        the name they share. Exactly one of the group is 1 in every row.
    lag
        How many steps before the last one the value was observed (time series only).
    wording
        How it is called in front of people; ``None``: by the column's own name.
    causal
        Whether changing it changes the outcome itself, as the schema's author declares;
        ``None``: nothing is declared.
    reading
        How its cells are read; ``None``: as plain numbers and words.
    missing
        What stands in for a cell without a value; ``None``: rows with one are set aside.
    """

    name: str
    kind: Kind
    change: Change = "immutable"
    unit: str = ""
    min: float | None = None
    max: float | None = None
    step: float | None = None
    range: ValueRange | None = None
    categories: tuple[str, ...] = ()
    group: str | None = None
    lag: int = 0
    wording: Wording | None = None
    causal: Cause | None = None
    reading: Reading | None = None
    missing: MissingCells | None = None

    @property
    def own_level(self) -> bool:
        """Whether a cell without a value is a category of its own."""
        return self.missing is not None and self.missing.policy == "own level"

    @property
    def suppliable(self) -> bool:
        """Whether supplying a missing cell is an action: a category may have to be movable too."""
        # Leaving an own level is entering a category, and nobody enters one of an immutable column.
        if self.missing is None or not self.missing.supply:
            return False
        return not self.own_level or self.change != "immutable"

    @property
    def categorical(self) -> bool:
        """Whether the typed table holds this column as text."""
        return self.kind in ("ordered", "onehot")

    @property
    def column(self) -> str:
        """The column of the file it is read from."""
        return (self.reading.source if self.reading is not None else None) or self.name

    def to_mapping(self) -> dict[str, Any]:
        """Return the entry of this feature as a schema file would hold it."""
        entry: dict[str, Any] = {"kind": self.kind, "change": self.change}
        optional: dict[str, Any] = {
            "unit": self.unit,
            "min": self.min,
            "max": self.max,
            "step": self.step,
        }
        optional["group"] = self.group
        optional["range"] = None if self.range is None else self.range.to_entry()
        optional["causal"] = self.causal
        entry |= {key: value for key, value in optional.items() if value not in ("", None)}
        entry |= {} if self.wording is None else self.wording.to_entry()
        entry |= {} if self.reading is None else {"read": self.reading.to_entry()}
        entry |= {} if self.missing is None else self.missing.to_entry()
        return entry | ({"categories": list(self.categories)} if self.categories else {})

    def lagged(self, steps: int) -> Feature:
        """Return this feature as it was some steps earlier: ``<name>_t-<steps>``, a fact by now."""
        tail = f"_t-{steps}"
        group = None if self.group is None else self.group + tail
        fact = replace(self, name=self.name + tail, change="immutable", group=group, lag=steps)
        missing = None if self.missing is None else replace(self.missing, supply=False)
        return replace(fact, wording=None, causal=None, missing=missing)


@dataclass(frozen=True)
class ModelFeature:
    """One column of the design matrix.

    ``min`` and ``max`` bound the coded value (minus and plus infinity when the
    schema leaves them open); ``group`` names the one-hot columns of which exactly
    one is 1 (the source column, or the group the schema declares), else ``None``;
    ``indicator`` marks the column that is 1 where the cell had no value: nobody changes it, but
    whoever supplies the cell, where that is an action, takes it down to 0.
    """

    name: str
    source: str
    kind: Kind
    change: Change
    min: float
    max: float
    step: float | None
    group: str | None
    indicator: bool = False


def expanded(feature: Feature) -> list[ModelFeature]:
    """Return the model columns of one feature."""
    low = -math.inf if feature.min is None else float(feature.min)
    high = math.inf if feature.max is None else float(feature.max)
    step = feature.step
    if feature.kind in ("binary", "onehot"):
        low, high, step = 0.0, 1.0, 1.0
    elif feature.kind == "ordered":
        low, high, step = 0.0, float(len(feature.categories) - 1), 1.0
    elif feature.kind == "integer":
        step = 1.0 if step is None else step
    kind, change, name = feature.kind, feature.change, feature.name
    found = [ModelFeature(name, name, kind, change, low, high, step, feature.group)]
    if kind == "onehot":
        found = [
            ModelFeature(f"{name}={category}", name, kind, change, low, high, step, group=name)
            for category in feature.categories
        ]
    if feature.missing is not None:
        group = name if feature.own_level else None
        indicator: Change = "down" if feature.suppliable else "immutable"
        found.append(
            ModelFeature(f"{name}={MISSING}", name, "binary", indicator, 0.0, 1.0, 1.0, group, True)
        )
    return found
