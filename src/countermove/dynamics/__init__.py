"""What happens retraining after retraining: people who look ahead, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.dynamics.collective.balls import Ball
    from countermove.dynamics.collective.bilevel import Bilevel
    from countermove.dynamics.collective.collective import Collective
    from countermove.dynamics.collective.moves import Moves
    from countermove.dynamics.collective.recourse import (
        collective_recourse,
        individual_recourse,
        together,
    )
    from countermove.dynamics.collective.recourse_analysis import (
        alternatives,
        break_even,
        least_budgets,
        marginal_values,
        side_effects,
    )
    from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
    from countermove.dynamics.collective.recourse_search import RecourseSearch
    from countermove.dynamics.collective.shift_audit import audit_shift
    from countermove.dynamics.collective.spaces import Mixing
    from countermove.dynamics.collective.utilities import (
        LossUtility,
        PenalisedLossUtility,
        TargetModelUtility,
        TargetPredictionUtility,
        Utility,
    )
    from countermove.dynamics.crowd import Crowd
    from countermove.dynamics.future import FutureTerms, RetrainingFuture, retraining_future
    from countermove.dynamics.learners.centroids import CentroidLearner
    from countermove.dynamics.learners.linear import LogisticLearner, RidgeLearner
    from countermove.dynamics.learners.network import TorchLearner, TrainedLearner
    from countermove.dynamics.retraining.loop import Retraining, retrain_until_stable
    from countermove.dynamics.retraining.populations import LevelKPopulation, RespondingPopulation
    from countermove.dynamics.retraining.stability import linearise, settle
    from countermove.dynamics.retraining.updates import (
        GradientDescent,
        PerformativeDescent,
        ProximalRiskMinimisation,
    )
    from countermove.dynamics.threat import CollectiveThreat, ThreatTerms, collective_threat

__all__ = [
    "Ball",
    "Bilevel",
    "CentroidLearner",
    "Collective",
    "CollectiveThreat",
    "Crowd",
    "FutureTerms",
    "GradientDescent",
    "LevelKPopulation",
    "LogisticLearner",
    "LossUtility",
    "Mixing",
    "Moves",
    "PenalisedLossUtility",
    "PerformativeDescent",
    "ProximalRiskMinimisation",
    "Reach",
    "RecourseSearch",
    "RespondingPopulation",
    "Retraining",
    "RetrainingFuture",
    "RidgeLearner",
    "TargetModelUtility",
    "TargetPredictionUtility",
    "ThreatTerms",
    "TorchLearner",
    "TrainedLearner",
    "Utility",
    "alternatives",
    "audit_shift",
    "break_even",
    "collective_recourse",
    "collective_threat",
    "individual_recourse",
    "least_budgets",
    "linearise",
    "marginal_values",
    "recourse_problem",
    "retrain_until_stable",
    "retraining_future",
    "settle",
    "side_effects",
    "together",
]

_HOMES = {
    "Ball": "collective.balls",
    "Bilevel": "collective.bilevel",
    "CentroidLearner": "learners.centroids",
    "Collective": "collective.collective",
    "CollectiveThreat": "threat",
    "Crowd": "crowd",
    "FutureTerms": "future",
    "GradientDescent": "retraining.updates",
    "LevelKPopulation": "retraining.populations",
    "LogisticLearner": "learners.linear",
    "LossUtility": "collective.utilities",
    "Mixing": "collective.spaces",
    "Moves": "collective.moves",
    "PenalisedLossUtility": "collective.utilities",
    "PerformativeDescent": "retraining.updates",
    "ProximalRiskMinimisation": "retraining.updates",
    "Reach": "collective.recourse_problem",
    "RecourseSearch": "collective.recourse_search",
    "RespondingPopulation": "retraining.populations",
    "Retraining": "retraining.loop",
    "RetrainingFuture": "future",
    "RidgeLearner": "learners.linear",
    "TargetModelUtility": "collective.utilities",
    "TargetPredictionUtility": "collective.utilities",
    "ThreatTerms": "threat",
    "TorchLearner": "learners.network",
    "TrainedLearner": "learners.network",
    "Utility": "collective.utilities",
    "alternatives": "collective.recourse_analysis",
    "audit_shift": "collective.shift_audit",
    "break_even": "collective.recourse_analysis",
    "collective_recourse": "collective.recourse",
    "collective_threat": "threat",
    "individual_recourse": "collective.recourse",
    "least_budgets": "collective.recourse_analysis",
    "linearise": "retraining.stability",
    "marginal_values": "collective.recourse_analysis",
    "recourse_problem": "collective.recourse_problem",
    "retrain_until_stable": "retraining.loop",
    "retraining_future": "future",
    "settle": "retraining.stability",
    "side_effects": "collective.recourse_analysis",
    "together": "collective.recourse",
}

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
