"""A typed table in facts: who is in it, what its columns hold and who may change what."""

from __future__ import annotations

from typing import Any

import pandas as pd

from countermove.data.published import PUBLISHED, WITHOUT_FETCHING, Facts
from countermove.data.schema import LABEL, Feature, Schema

SAME = 5e-5
"""Shares of favourable outcomes are on record to four digits."""


def table_sheet(typed: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    """Return the data sheet of a typed table, JSON-ready.

    ``terms`` is None unless the table is, by its size and its outcomes, the one on record
    under its name: a user's own file may bear that name.
    """
    favourable = float((typed[LABEL] > 0).mean())
    known = _known(schema.name)
    same = known and len(typed) == known.rows and abs(favourable - known.favourable) < SAME
    return {
        "name": schema.name,
        "description": schema.description,
        "source": schema.source,
        "terms": known.terms if known and same else None,
        "rows": len(typed),
        "favourable_share": favourable,
        "label": schema.label.to_mapping(),
        "sensitive": list(schema.sensitive),
        "schema_digest": schema.digest(),
        "columns": [_column(feature, typed[feature.name]) for feature in schema.features],
    }


def _known(name: str) -> Facts | None:
    return PUBLISHED[name].facts if name in PUBLISHED else WITHOUT_FETCHING.get(name)


def _column(feature: Feature, values: pd.Series) -> dict[str, Any]:
    """Return what a column means and what it holds: its range, or its categories."""
    said = {"name": feature.name, "kind": feature.kind, "change": feature.change}
    said["unit"] = feature.unit
    if feature.categorical:
        counts = values.astype(str).value_counts()
        return said | {"values": {name: int(counts.get(name, 0)) for name in feature.categories}}
    numbers = values.astype(float)
    lowest, median, highest = (float(numbers.quantile(q)) for q in (0.0, 0.5, 1.0))
    return said | {"lowest": lowest, "median": median, "highest": highest}
