"""What happens retraining after retraining: people who look ahead, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countermove.dynamics.balls import Ball
    from countermove.dynamics.bilevel import Bilevel
    from countermove.dynamics.collective import Collective
    from countermove.dynamics.contraction import linearise, settle
    from countermove.dynamics.crowd import Crowd
    from countermove.dynamics.learners import LogisticLearner, RidgeLearner
    from countermove.dynamics.level_k import LevelKPopulation
    from countermove.dynamics.mean_learner import MeanLearner
    from countermove.dynamics.mixing import Mixing
    from countermove.dynamics.moves import Moves
    from countermove.dynamics.populations import RespondingPopulation
    from countermove.dynamics.retraining import Retraining, retrain_until_stable
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
    "Collective",
    "Crowd",
    "LevelKPopulation",
    "LogisticLearner",
    "LossUtility",
    "MeanLearner",
    "Mixing",
    "Moves",
    "PenalisedLossUtility",
    "RespondingPopulation",
    "Retraining",
    "RidgeLearner",
    "TargetModelUtility",
    "TargetPredictionUtility",
    "TorchLearner",
    "TrainedLearner",
    "Utility",
    "linearise",
    "retrain_until_stable",
    "settle",
]

_HOMES = {
    "Ball": "balls",
    "Bilevel": "bilevel",
    "Collective": "collective",
    "Crowd": "crowd",
    "LevelKPopulation": "level_k",
    "LogisticLearner": "learners",
    "LossUtility": "utilities",
    "MeanLearner": "mean_learner",
    "Mixing": "mixing",
    "Moves": "moves",
    "PenalisedLossUtility": "utilities",
    "RespondingPopulation": "populations",
    "Retraining": "retraining",
    "RidgeLearner": "learners",
    "TargetModelUtility": "utilities",
    "TargetPredictionUtility": "utilities",
    "TorchLearner": "torch_learner",
    "TrainedLearner": "trained",
    "Utility": "utilities",
    "linearise": "contraction",
    "retrain_until_stable": "retraining",
    "settle": "contraction",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use: learners bring torch."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"countermove.dynamics.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'countermove.dynamics' has no attribute {name!r}")
