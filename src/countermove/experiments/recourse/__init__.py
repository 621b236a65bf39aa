"""The experiments of the recourse paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.recourse.grid import RecourseExperiment, TableCase
    from countermove.experiments.recourse.texts import TextExperiment
    from countermove.experiments.recourse.thresholds import (
        Fixed,
        HighestF1,
        NearestPrecision,
        Promise,
    )

__all__ = [
    "Fixed",
    "HighestF1",
    "NearestPrecision",
    "Promise",
    "RecourseExperiment",
    "TableCase",
    "TextExperiment",
]

_HOMES = {
    "TableCase": "grid",
    "Fixed": "thresholds",
    "HighestF1": "thresholds",
    "NearestPrecision": "thresholds",
    "Promise": "thresholds",
    "RecourseExperiment": "grid",
    "TextExperiment": "texts",
}
__getattr__ = lazy(__name__, _HOMES)
