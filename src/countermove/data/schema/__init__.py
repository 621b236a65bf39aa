"""What the columns of a table mean, written once.

A schema names the id, the label and its favourable value, the features with
their kind, unit, bounds and who may change them, and the sensitive columns that
audits need. Everything later (action sets, reports, checks) is derived from it.
"""

from __future__ import annotations

from countermove.data.schema._features import (
    CAUSES,
    CHANGES,
    KINDS,
    MISSING,
    MISSING_POLICIES,
    SUPPLY_PRICE,
    Cause,
    Change,
    Feature,
    Kind,
    MissingCells,
    ModelFeature,
    Value,
    ValueRange,
    value_text,
)
from countermove.data.schema._schema import (
    CLUSTER_PREFIX,
    GROUP_PREFIX,
    LABEL,
    QUARANTINE,
    ROW_ID,
    SHORTER,
    SOURCES,
    WINDOW_PREFIX,
    Label,
    Schema,
    Series,
    load_schema,
)

__all__ = [
    "CAUSES",
    "CHANGES",
    "CLUSTER_PREFIX",
    "GROUP_PREFIX",
    "KINDS",
    "LABEL",
    "MISSING",
    "MISSING_POLICIES",
    "QUARANTINE",
    "ROW_ID",
    "SHORTER",
    "SOURCES",
    "SUPPLY_PRICE",
    "WINDOW_PREFIX",
    "Cause",
    "Change",
    "Feature",
    "Kind",
    "Label",
    "MissingCells",
    "ModelFeature",
    "Schema",
    "Series",
    "Value",
    "ValueRange",
    "load_schema",
    "value_text",
]
