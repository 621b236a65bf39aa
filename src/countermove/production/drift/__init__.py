"""Drift that knows why: natural drift, or a response to our own rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.production.drift._samples import PeopleTable
    from countermove.production.drift.report import (
        DriftReport,
        drift_of_tables,
        drift_report,
        unexpected,
    )
    from countermove.production.drift.terms import DriftTerms

__all__ = [
    "DriftReport",
    "DriftTerms",
    "PeopleTable",
    "drift_of_tables",
    "drift_report",
    "unexpected",
]

_HOMES = {
    "DriftReport": "report",
    "DriftTerms": "terms",
    "PeopleTable": "_samples",
    "drift_of_tables": "report",
    "drift_report": "report",
    "unexpected": "report",
}

__getattr__ = lazy(__name__, _HOMES)
