"""Recourse: what a refused person can do about it, and what can be promised."""

from countermove.recourse.pare import (
    PareCalibration,
    calibrate_threshold,
    smallest_calibration_size,
)
from countermove.recourse.reachable import largest_gain

__all__ = [
    "PareCalibration",
    "calibrate_threshold",
    "largest_gain",
    "smallest_calibration_size",
]
