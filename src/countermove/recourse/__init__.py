"""Recourse: what a refused person can do about it, and what can be promised."""

from countermove.recourse.pare import (
    PareCalibration,
    calibrate_pare,
    calibrate_threshold,
    smallest_calibration_size,
)
from countermove.recourse.pare_after_response import calibrate_after_response
from countermove.recourse.pare_choice import choose_threshold, default_grid
from countermove.recourse.pare_groups import (
    GroupCalibration,
    calibrate_pare_by_group,
    smallest_group_size,
)
from countermove.recourse.pare_joint import JointChoice, People, Terms, choose_jointly
from countermove.recourse.pare_refused import certify_refused, refused_grid
from countermove.recourse.pare_sequence import SequencePromise
from countermove.recourse.reachable import largest_gain

__all__ = [
    "GroupCalibration",
    "JointChoice",
    "PareCalibration",
    "People",
    "SequencePromise",
    "Terms",
    "calibrate_after_response",
    "calibrate_pare",
    "calibrate_pare_by_group",
    "calibrate_threshold",
    "certify_refused",
    "choose_jointly",
    "choose_threshold",
    "default_grid",
    "largest_gain",
    "refused_grid",
    "smallest_calibration_size",
    "smallest_group_size",
]
