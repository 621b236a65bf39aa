"""Under which responses a rule is judged, and at what level."""

from __future__ import annotations

from countermove.params.base import Parameters
from countermove.params.recourse import Probability


class EvaluationParameters(Parameters):
    """Parameters of the evaluation.

    ``failure_probability`` is the chance that a bound computed on the test rows is wrong.
    """

    failure_probability: Probability = 0.05
