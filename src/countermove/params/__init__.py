"""What the YAML may say: one pydantic model per group of parameters, each with ``build()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.params.base import Parameters
    from countermove.params.chain import (
        EvaluationParameters,
        ExecutionParameters,
        IngestParameters,
        RecourseParameters,
    )
    from countermove.params.experiments import CollectiveParameters, LookaheadParameters
    from countermove.params.groups import GROUPS
    from countermove.params.paper import PaperParameters
    from countermove.params.production import (
        AuditParameters,
        EstimatePeopleParameters,
        RetrainParameters,
        ScoreParameters,
    )
    from countermove.params.serm import SermParameters
    from countermove.params.serm_experiments import SweepParameters

__all__ = [
    "GROUPS",
    "AuditParameters",
    "CollectiveParameters",
    "EstimatePeopleParameters",
    "EvaluationParameters",
    "ExecutionParameters",
    "IngestParameters",
    "LookaheadParameters",
    "PaperParameters",
    "Parameters",
    "RecourseParameters",
    "RetrainParameters",
    "ScoreParameters",
    "SermParameters",
    "SweepParameters",
]

_HOMES = {
    "GROUPS": "groups",
    "AuditParameters": "production",
    "CollectiveParameters": "experiments",
    "EstimatePeopleParameters": "production",
    "EvaluationParameters": "chain",
    "ExecutionParameters": "chain",
    "IngestParameters": "chain",
    "LookaheadParameters": "experiments",
    "PaperParameters": "paper",
    "Parameters": "base",
    "RecourseParameters": "chain",
    "RetrainParameters": "production",
    "ScoreParameters": "production",
    "SermParameters": "serm",
    "SweepParameters": "serm_experiments",
}

# The loader of settings lives here too, which every command imports.
__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
