"""Recourse: what a refused person can do about it, and what can be promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from countermove.recourse.pare import (
    PareCalibration,
    calibrate_threshold,
    smallest_calibration_size,
)
from countermove.recourse.reachable import largest_gain

if TYPE_CHECKING:
    from countermove.recourse.classifier import RecourseClassifier
    from countermove.recourse.curves import curves_frame, recourse_curves, single_step
    from countermove.recourse.performance import best_f1

__all__ = [
    "PareCalibration",
    "RecourseClassifier",
    "best_f1",
    "calibrate_threshold",
    "curves_frame",
    "largest_gain",
    "recourse_curves",
    "single_step",
    "smallest_calibration_size",
]

_ON_FIRST_USE = {
    "RecourseClassifier": "classifier",
    "best_f1": "performance",
    "curves_frame": "curves",
    "recourse_curves": "curves",
    "single_step": "curves",
}


def __getattr__(name: str) -> Any:
    """Load what is heavy to import on first use."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
