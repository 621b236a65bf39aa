"""The platform: learners that fit exactly, and say how their model responds to data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.dynamics.learners.centroids import CentroidLearner
    from countermove.dynamics.learners.linear import (
        Learner,
        LinearLearner,
        LogisticLearner,
        RidgeLearner,
    )
    from countermove.dynamics.learners.network import TorchLearner, TrainedLearner

__all__ = [
    "CentroidLearner",
    "Learner",
    "LinearLearner",
    "LogisticLearner",
    "RidgeLearner",
    "TorchLearner",
    "TrainedLearner",
]

_HOMES = {
    "CentroidLearner": "centroids",
    "Learner": "linear",
    "LinearLearner": "linear",
    "LogisticLearner": "linear",
    "RidgeLearner": "linear",
    "TorchLearner": "network",
    "TrainedLearner": "network",
}

__getattr__ = lazy(__name__, _HOMES)
