"""Learning a rule that accounts for people's response."""

from countermove.learning.baselines import bias_search, hardt_threshold, shifted_blind
from countermove.learning.chosen_costs import FlexibleCost, UnknownCost
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.evaluation import accuracy_after, sensitivity, usual_responses
from countermove.learning.objectives import StrategicRisk
from countermove.learning.pipelines import StrategicPipeline
from countermove.learning.regularisers import (
    L2,
    ExpectedUtility,
    Recourse,
    Regulariser,
    SocialBurden,
)
from countermove.learning.scoring import after_response
from countermove.learning.social import SocialMeasures, social_measures
from countermove.learning.tradeoff import trade_off
from countermove.learning.trees import TreeTraining

__all__ = [
    "L2",
    "ExpectedUtility",
    "FlexibleCost",
    "Recourse",
    "Regulariser",
    "SocialBurden",
    "SocialMeasures",
    "StrategicClassifier",
    "StrategicPipeline",
    "StrategicRisk",
    "TreeTraining",
    "UnknownCost",
    "accuracy_after",
    "after_response",
    "bias_search",
    "hardt_threshold",
    "sensitivity",
    "shifted_blind",
    "social_measures",
    "trade_off",
    "usual_responses",
]

__dir__ = __all__.copy
