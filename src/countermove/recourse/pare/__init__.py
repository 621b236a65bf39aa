"""Probably approximately has recourse (PARE): thresholds with a promise of recourse."""

from __future__ import annotations

from countermove.recourse.pare._calibration import (
    GroupCalibration,
    PareCalibration,
    calibrate_pare,
    calibrate_pare_by_group,
    calibrate_threshold,
    pare_certificate,
    smallest_calibration_size,
    smallest_group_size,
    threshold_bound,
)
from countermove.recourse.pare.after_response import (
    approval_certificate,
    calibrate_after_response,
    missed_after_response,
)
from countermove.recourse.pare.choice import (
    JointChoice,
    choose_jointly,
    choose_threshold,
    default_grid,
    measure_after_response,
)
from countermove.recourse.pare.inputs import (
    ROWS_PER_CLUSTER,
    ChoiceRows,
    PromiseTerms,
    ReachFunction,
    check_disjoint,
    reach_of,
)
from countermove.recourse.pare.refused import (
    CostPromise,
    certify_cost,
    certify_refused,
    cost_certificate,
    cost_promise,
    refused_certificate,
    refused_grid,
)
from countermove.recourse.pare.sequence import SequencePromise

__all__ = [
    "ROWS_PER_CLUSTER",
    "ChoiceRows",
    "CostPromise",
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
    "certify_cost",
    "certify_refused",
    "check_disjoint",
    "choose_jointly",
    "choose_threshold",
    "cost_certificate",
    "cost_promise",
    "default_grid",
    "measure_after_response",
    "missed_after_response",
    "pare_certificate",
    "reach_of",
    "refused_certificate",
    "refused_grid",
    "smallest_calibration_size",
    "smallest_group_size",
    "threshold_bound",
]
