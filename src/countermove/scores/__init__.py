"""The published score: what people see and respond to."""

from countermove.scores.base import Score, deciding
from countermove.scores.linear import LinearScore
from countermove.scores.mlp import MLPScore
from countermove.scores.nearest_centroid import NearestCentroidScore
from countermove.scores.partly_linear import PartlyLinearScore
from countermove.scores.recurrent import RecurrentScore
from countermove.scores.representation import RepresentationScore

__all__ = [
    "LinearScore",
    "MLPScore",
    "NearestCentroidScore",
    "PartlyLinearScore",
    "RecurrentScore",
    "RepresentationScore",
    "Score",
    "deciding",
]

__dir__ = __all__.copy
