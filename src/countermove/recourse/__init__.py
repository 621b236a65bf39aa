"""Recourse: what a refused person can do about it, and what can be promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy
from countermove.recourse.causal import CausalModel
from countermove.recourse.pare import (
    ChoiceRows,
    CostPromise,
    GroupCalibration,
    JointChoice,
    PareCalibration,
    PromiseTerms,
    SequencePromise,
    calibrate_after_response,
    calibrate_pare,
    calibrate_pare_by_group,
    calibrate_threshold,
    certify_cost,
    certify_refused,
    choose_jointly,
    choose_threshold,
    default_grid,
    refused_grid,
    smallest_calibration_size,
    smallest_group_size,
)
from countermove.recourse.problem import Settings, probability_slope
from countermove.recourse.reasons import (
    ApprovedPeople,
    Reasons,
    approved_people,
    reason_codes,
)
from countermove.recourse.recommend import Advice, Limits, Reached, best_reachable, recommend
from countermove.recourse.words import advice_table, sentences

if TYPE_CHECKING:
    from countermove.recourse.classifier import RecourseClassifier
    from countermove.recourse.objective import single_step
    from countermove.recourse.performance import best_f1

__all__ = [
    "Advice",
    "ApprovedPeople",
    "CausalModel",
    "ChoiceRows",
    "CostPromise",
    "GroupCalibration",
    "JointChoice",
    "Limits",
    "PareCalibration",
    "PromiseTerms",
    "Reached",
    "Reasons",
    "RecourseClassifier",
    "SequencePromise",
    "Settings",
    "advice_table",
    "approved_people",
    "best_f1",
    "best_reachable",
    "calibrate_after_response",
    "calibrate_pare",
    "calibrate_pare_by_group",
    "calibrate_threshold",
    "certify_cost",
    "certify_refused",
    "choose_jointly",
    "choose_threshold",
    "default_grid",
    "probability_slope",
    "reason_codes",
    "recommend",
    "refused_grid",
    "sentences",
    "single_step",
    "smallest_calibration_size",
    "smallest_group_size",
]

_HOMES = {
    "RecourseClassifier": "classifier",
    "best_f1": "performance",
    "single_step": "objective",
}

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
