"""Estimating the people from data: how they responded to a rule, and what a move costs them."""

from countermove.learning.people_estimation._candidates import Noise
from countermove.learning.people_estimation.estimation import estimate_people, simulate_deployment
from countermove.learning.people_estimation.result import PeopleEstimate
from countermove.response.response_set import ConfidenceSet

__all__ = [
    "ConfidenceSet",
    "Noise",
    "PeopleEstimate",
    "estimate_people",
    "simulate_deployment",
]
