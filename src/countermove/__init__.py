"""Countermove: classifiers that count on people's answer to a published rule.

Importing the package costs nothing; public names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

__version__ = "0.1.0"

if TYPE_CHECKING:
    from countermove.learning.classifier import StrategicClassifier
    from countermove.learning.people_estimation.estimation import estimate_people
    from countermove.response.population import Population
    from countermove.scores.adopted import adopt, load, save

__all__ = [
    "Population",
    "StrategicClassifier",
    "__version__",
    "adopt",
    "estimate_people",
    "load",
    "save",
]

__getattr__ = lazy(
    __name__,
    {
        "Population": "response.population",
        "StrategicClassifier": "learning.classifier",
        "adopt": "scores.adopted",
        "load": "scores.adopted",
        "save": "scores.adopted",
        "estimate_people": "learning.people_estimation.estimation",
    },
)
