"""The entries of a feature that say what becomes of a cell without a value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from countermove.data._schema_entries import number_entry, refuse, value_entry
from countermove.data.schema import (
    MISSING,
    MISSING_POLICIES,
    SUPPLY_PRICE,
    Feature,
    Kind,
    MissingCells,
    Value,
    value_text,
)
from countermove.errors import nearest

OWN_LEVEL = "own level"


def read_missing(
    content: Mapping[str, Any], kind: Kind, categories: tuple[str, ...], where: str
) -> MissingCells | None:
    """Read what stands in for a cell without a value; None: rows with one are set aside."""
    entry, key = content.get("missing"), f"{where}.missing"
    supply = content.get("supply", False)
    price = SUPPLY_PRICE
    if not isinstance(supply, bool):
        if not isinstance(supply, int | float) or not 0 < supply < math.inf:
            problem = "must be true, false or what it costs (a positive number)"
            refuse(f"{where}.supply", f"{problem}, not {supply!r}")
        supply, price = True, float(supply)
    if entry is None or entry == "refuse":
        if supply:
            refuse(f"{where}.supply", "is given, but rows without a value are set aside")
        return None
    fitting = {
        "numeric": ("median",),
        "integer": ("median",),
        "ordered": ("median", "mode"),
        "binary": ("mode",),
        "onehot": ("mode", OWN_LEVEL),
    }[kind]
    if entry in MISSING_POLICIES:
        if entry not in fitting:
            listed = ", ".join(("refuse", *fitting))
            refuse(key, f"is {entry!r}; a {kind} feature takes one of {listed}, or a value")
        if entry == OWN_LEVEL and MISSING in categories:
            refuse(
                key, f"is {entry!r}, but {MISSING!r} is a category already; give it as the value"
            )
        return MissingCells(entry, None, supply, price)
    return MissingCells(None, _stand_in(entry, kind, categories, key, fitting), supply, price)


def _stand_in(
    entry: object, kind: Kind, categories: tuple[str, ...], key: str, fitting: tuple[str, ...]
) -> Value:
    """Read the value that an empty cell means."""
    value = value_entry(entry, key)
    if categories:
        if value_text(value) not in categories:
            known = nearest(value_text(value), (*categories, "refuse", *fitting))
            refuse(key, f"is {value!r}, no category of the column; {known}")
        return value_text(value)
    number = number_entry(value, key)
    if number is None or (kind == "binary" and number not in (0, 1)):
        refuse(key, f"is {value!r}; expected 0 or 1")
    return number


def check_stand_in(feature: Feature, where: str) -> None:
    """Refuse a value for empty cells that the column cannot hold."""
    if feature.missing is None:
        return
    if feature.group is not None:
        refuse(
            f"{where}.missing", f"is given, but the column is one of the group {feature.group!r}"
        )
    value = feature.missing.value
    if value is None or feature.kind not in ("numeric", "integer"):
        return
    low = -math.inf if feature.min is None else feature.min
    high = math.inf if feature.max is None else feature.max
    if not low <= float(value) <= high:
        refuse(f"{where}.missing", f"is {value}, outside min and max")
    if feature.kind == "integer" and not float(value).is_integer():
        refuse(f"{where}.missing", f"is {value}, but the feature holds whole numbers")
