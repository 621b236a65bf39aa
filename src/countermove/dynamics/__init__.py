"""What happens retraining after retraining: people who look ahead, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countermove.dynamics.contraction import linearise
    from countermove.dynamics.crowd import Crowd
    from countermove.dynamics.learners import LogisticLearner, RidgeLearner
    from countermove.dynamics.level_k import LevelKPopulation
    from countermove.dynamics.populations import RespondingPopulation
    from countermove.dynamics.retraining import Retraining, retrain_until_stable
    from countermove.dynamics.trained import TrainedLearner

__all__ = [
    "Crowd",
    "LevelKPopulation",
    "LogisticLearner",
    "RespondingPopulation",
    "Retraining",
    "RidgeLearner",
    "TrainedLearner",
    "linearise",
    "retrain_until_stable",
]

_HOMES = {
    "Crowd": "crowd",
    "LevelKPopulation": "level_k",
    "LogisticLearner": "learners",
    "RespondingPopulation": "populations",
    "Retraining": "retraining",
    "RidgeLearner": "learners",
    "TrainedLearner": "trained",
    "linearise": "contraction",
    "retrain_until_stable": "retraining",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use: learners bring torch."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"countermove.dynamics.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'countermove.dynamics' has no attribute {name!r}")
