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
    from countermove.learning.pipelines import StrategicPipeline
    from countermove.learning.scoring import after_response
    from countermove.people.actions import ActionSet
    from countermove.persistence import load, save
    from countermove.recourse.audit import audit
    from countermove.recourse.classifier import RecourseClassifier
    from countermove.recourse.pare import calibrate_pare
    from countermove.recourse.recommend import recommend
    from countermove.response.population import Population
    from countermove.scores.adopted import adopt
    from countermove.transfer.report import transfer_report

__all__ = [
    "ActionSet",
    "Population",
    "RecourseClassifier",
    "StrategicClassifier",
    "StrategicPipeline",
    "__version__",
    "adopt",
    "after_response",
    "audit",
    "calibrate_pare",
    "estimate_people",
    "load",
    "recommend",
    "save",
    "transfer_report",
]

_HOMES = {
    "ActionSet": "people",
    "Population": "response",
    "RecourseClassifier": "recourse",
    "StrategicClassifier": "learning",
    "StrategicPipeline": "learning",
    "adopt": "scores.adopted",
    "after_response": "learning",
    "audit": "recourse.audit",
    "calibrate_pare": "recourse",
    "estimate_people": "learning.people_estimation.estimation",
    "load": "persistence",
    "recommend": "recourse",
    "save": "persistence",
    "transfer_report": "transfer",
}

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
