"""Every group of parameters by name."""

from __future__ import annotations

from countermove.params.base import Parameters
from countermove.params.chain import (
    EvaluationParameters,
    ExecutionParameters,
    IngestParameters,
    RecourseParameters,
)
from countermove.params.experiments import CollectiveParameters, LookaheadParameters
from countermove.params.paper import PaperParameters
from countermove.params.production import (
    AuditParameters,
    EstimatePeopleParameters,
    RetrainParameters,
    ScoreParameters,
)
from countermove.params.serm import SermParameters
from countermove.params.serm_experiments import SweepParameters

GROUPS: dict[str, type[Parameters]] = {
    "execution": ExecutionParameters,
    "ingest": IngestParameters,
    "serm": SermParameters,
    "recourse": RecourseParameters,
    "evaluation": EvaluationParameters,
    "sweep": SweepParameters,
    "paper": PaperParameters,
    "lookahead": LookaheadParameters,
    "estimate_people": EstimatePeopleParameters,
    "collective": CollectiveParameters,
    "retrain": RetrainParameters,
    "score": ScoreParameters,
    "audit": AuditParameters,
}
"""The groups of ``conf/base/parameters_*.yml``; ``dataset`` and ``seed`` stand beside them."""
