"""What happens retraining after retraining: people who look ahead, alone or together."""

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
from countermove.dynamics.recourse_problem import Reach, recourse_problem
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
