"""What happens retraining after retraining: people who look ahead, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.dynamics.balls import Ball
    from countermove.dynamics.bilevel import Bilevel
    from countermove.dynamics.centroids import CentroidLearner
    from countermove.dynamics.collective import Collective
    from countermove.dynamics.contraction import linearise, settle
    from countermove.dynamics.crowd import Crowd
    from countermove.dynamics.learners import LogisticLearner, RidgeLearner
    from countermove.dynamics.level_k import LevelKPopulation
    from countermove.dynamics.mean_learner import MeanLearner
    from countermove.dynamics.mixing import Mixing
    from countermove.dynamics.moves import Moves
    from countermove.dynamics.online_recourse import collective_recourse, individual_recourse
    from countermove.dynamics.populations import RespondingPopulation
    from countermove.dynamics.recourse_answers import (
        break_even,
        least_budgets,
        marginal_values,
        side_effects,
    )
    from countermove.dynamics.recourse_setting import Reach, recourse_problem
    from countermove.dynamics.retraining import Retraining, retrain_until_stable
    from countermove.dynamics.shift_audit import audit_shift
    from countermove.dynamics.torch_learner import TorchLearner
    from countermove.dynamics.trained import TrainedLearner
    from countermove.dynamics.utilities import (
        LossUtility,
        PenalisedLossUtility,
        TargetModelUtility,
        TargetPredictionUtility,
        Utility,
    )

__all__ = [
    "Ball",
    "Bilevel",
    "CentroidLearner",
    "Collective",
    "Crowd",
    "LevelKPopulation",
    "LogisticLearner",
    "LossUtility",
    "MeanLearner",
    "Mixing",
    "Moves",
    "PenalisedLossUtility",
    "Reach",
    "RespondingPopulation",
    "Retraining",
    "RidgeLearner",
    "TargetModelUtility",
    "TargetPredictionUtility",
    "TorchLearner",
    "TrainedLearner",
    "Utility",
    "audit_shift",
    "break_even",
    "collective_recourse",
    "individual_recourse",
    "least_budgets",
    "linearise",
    "marginal_values",
    "recourse_problem",
    "retrain_until_stable",
    "settle",
    "side_effects",
]

_HOMES = {
    "Ball": "balls",
    "Bilevel": "bilevel",
    "CentroidLearner": "centroids",
    "Collective": "collective",
    "Crowd": "crowd",
    "LevelKPopulation": "level_k",
    "LogisticLearner": "learners",
    "LossUtility": "utilities",
    "MeanLearner": "mean_learner",
    "Mixing": "mixing",
    "Moves": "moves",
    "PenalisedLossUtility": "utilities",
    "Reach": "recourse_setting",
    "RespondingPopulation": "populations",
    "Retraining": "retraining",
    "RidgeLearner": "learners",
    "TargetModelUtility": "utilities",
    "TargetPredictionUtility": "utilities",
    "TorchLearner": "torch_learner",
    "TrainedLearner": "trained",
    "Utility": "utilities",
    "audit_shift": "shift_audit",
    "break_even": "recourse_answers",
    "collective_recourse": "online_recourse",
    "individual_recourse": "online_recourse",
    "least_budgets": "recourse_answers",
    "linearise": "contraction",
    "marginal_values": "recourse_answers",
    "recourse_problem": "recourse_setting",
    "retrain_until_stable": "retraining",
    "settle": "contraction",
    "side_effects": "recourse_answers",
}

__getattr__ = lazy(__name__, _HOMES)
