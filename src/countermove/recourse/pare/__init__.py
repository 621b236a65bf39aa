"""Probably approximately has recourse (PARE): thresholds with a promise of recourse."""

from __future__ import annotations

from countermove.recourse.pare._after_response import (
    approval_certificate,
    calibrate_after_response,
    missed_after_response,
)
from countermove.recourse.pare._calibration import (
    GroupCalibration,
    PareCalibration,
    calibrate_pare,
    calibrate_pare_by_group,
    calibrate_threshold,
    smallest_calibration_size,
    smallest_group_size,
    threshold_bound,
)
from countermove.recourse.pare._choice import (
    choose_threshold,
    default_grid,
    measure_after_response,
)
from countermove.recourse.pare._inputs import ReachFunction, check_disjoint, reach_of
from countermove.recourse.pare._joint import ChoiceRows, JointChoice, PromiseTerms, choose_jointly
from countermove.recourse.pare._sequence import (
    SequencePromise,
    certify_refused,
    refused_certificate,
    refused_grid,
)

__all__ = [
    "ChoiceRows",
    "GroupCalibration",
    "JointChoice",
    "PareCalibration",
    "PromiseTerms",
    "ReachFunction",
    "SequencePromise",
    "approval_certificate",
    "calibrate_after_response",
    "calibrate_pare",
    "calibrate_pare_by_group",
    "calibrate_threshold",
    "certify_refused",
    "check_disjoint",
    "choose_jointly",
    "choose_threshold",
    "default_grid",
    "measure_after_response",
    "missed_after_response",
    "reach_of",
    "refused_certificate",
    "refused_grid",
    "smallest_calibration_size",
    "smallest_group_size",
    "threshold_bound",
]
