"""Drift that knows why: natural drift, or an answer to our own rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.production.drift.report import DriftReport, drift_report, unexpected
    from countermove.production.drift.samples import Seen
    from countermove.production.drift.tables import drift_of_tables
    from countermove.production.drift.terms import DriftTerms

__all__ = ["DriftReport", "DriftTerms", "Seen", "drift_of_tables", "drift_report", "unexpected"]

_HOMES = {
    "DriftReport": "report",
    "DriftTerms": "terms",
    "Seen": "samples",
    "drift_of_tables": "tables",
    "drift_report": "report",
    "unexpected": "report",
}

__getattr__ = lazy(__name__, _HOMES)
