"""Recourse: what a refused person can do about it, and what can be promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy
from countermove.recourse.advice import Advice, Reached
from countermove.recourse.causal import CausalModel
from countermove.recourse.methods import Settings
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
from countermove.recourse.recommend import best_reachable, recommend
from countermove.recourse.words import advice_table, sentences

if TYPE_CHECKING:
    from countermove.recourse.classifier import RecourseClassifier
    from countermove.recourse.curves import curves_frame, recourse_curves, single_step
    from countermove.recourse.performance import best_f1

__all__ = [
    "Advice",
    "CausalModel",
    "GroupCalibration",
    "JointChoice",
    "PareCalibration",
    "People",
    "Reached",
    "RecourseClassifier",
    "SequencePromise",
    "Settings",
    "Terms",
    "advice_table",
    "best_f1",
    "best_reachable",
    "calibrate_after_response",
    "calibrate_pare",
    "calibrate_pare_by_group",
    "calibrate_threshold",
    "certify_refused",
    "choose_jointly",
    "choose_threshold",
    "curves_frame",
    "default_grid",
    "recommend",
    "recourse_curves",
    "refused_grid",
    "sentences",
    "single_step",
    "smallest_calibration_size",
    "smallest_group_size",
]

_HOMES = {
    "RecourseClassifier": "classifier",
    "best_f1": "performance",
    "curves_frame": "curves",
    "recourse_curves": "curves",
    "single_step": "curves",
}

__getattr__ = lazy(__name__, _HOMES)
