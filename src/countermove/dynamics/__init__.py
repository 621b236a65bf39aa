"""What happens retraining after retraining: people who look ahead, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countermove.dynamics.centroids import CentroidLearner
    from countermove.dynamics.crowd import Crowd
    from countermove.dynamics.learners import LogisticLearner, RidgeLearner
    from countermove.dynamics.online_recourse import collective_recourse, individual_recourse
    from countermove.dynamics.recourse_answers import (
        break_even,
        least_budgets,
        marginal_values,
        side_effects,
    )
    from countermove.dynamics.recourse_setting import Reach, recourse_problem
    from countermove.dynamics.shift_audit import audit_shift

__all__ = [
    "CentroidLearner",
    "Crowd",
    "LogisticLearner",
    "Reach",
    "RidgeLearner",
    "audit_shift",
    "break_even",
    "collective_recourse",
    "individual_recourse",
    "least_budgets",
    "marginal_values",
    "recourse_problem",
    "side_effects",
]

_HOMES = {
    "CentroidLearner": "centroids",
    "Crowd": "crowd",
    "LogisticLearner": "learners",
    "Reach": "recourse_setting",
    "RidgeLearner": "learners",
    "audit_shift": "shift_audit",
    "break_even": "recourse_answers",
    "collective_recourse": "online_recourse",
    "individual_recourse": "online_recourse",
    "least_budgets": "recourse_answers",
    "marginal_values": "recourse_answers",
    "recourse_problem": "recourse_setting",
    "side_effects": "recourse_answers",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use: learners need torch, which is slow to import."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'countermove.dynamics' has no attribute {name!r}")
    return getattr(import_module(f"countermove.dynamics.{_HOMES[name]}"), name)
