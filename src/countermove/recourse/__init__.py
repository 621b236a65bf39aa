"""Recourse: what a refused person can do about it, and what can be promised."""

from countermove.recourse.advice import Advice, Reached
from countermove.recourse.causal import CausalModel
from countermove.recourse.methods import Settings
from countermove.recourse.pare import (
    PareCalibration,
    calibrate_threshold,
    smallest_calibration_size,
)
from countermove.recourse.reachable import largest_gain
from countermove.recourse.recommend import best_reachable, recommend
from countermove.recourse.words import advice_table, sentences

__all__ = [
    "Advice",
    "CausalModel",
    "PareCalibration",
    "Reached",
    "Settings",
    "advice_table",
    "best_reachable",
    "calibrate_threshold",
    "largest_gain",
    "recommend",
    "sentences",
    "smallest_calibration_size",
]
