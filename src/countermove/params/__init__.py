"""What the YAML may say: one pydantic model per group of parameters, each with ``build()``."""

from countermove.params.base import Parameters
from countermove.params.chain import (
    EvaluationParameters,
    ExecutionParameters,
    IngestParameters,
    RecourseParameters,
)
from countermove.params.collective import CollectiveParameters
from countermove.params.lookahead import LookaheadParameters
from countermove.params.production import (
    EstimatePeopleParameters,
    RetrainParameters,
    ScoreParameters,
)
from countermove.params.recourse_experiments import RecourseExperimentsParameters
from countermove.params.recourse_text import RecourseTextParameters
from countermove.params.run_times import RunTimesParameters
from countermove.params.serm import SermParameters
from countermove.params.stylised import StylisedParameters
from countermove.params.sweep import SweepParameters
from countermove.params.tradeoff import TradeoffParameters
from countermove.params.transfer_experiments import TransferExperimentsParameters

GROUPS: dict[str, type[Parameters]] = {
    "execution": ExecutionParameters,
    "ingest": IngestParameters,
    "serm": SermParameters,
    "recourse": RecourseParameters,
    "evaluation": EvaluationParameters,
    "sweep": SweepParameters,
    "run_times": RunTimesParameters,
    "stylised": StylisedParameters,
    "recourse_experiments": RecourseExperimentsParameters,
    "recourse_text": RecourseTextParameters,
    "transfer_experiments": TransferExperimentsParameters,
    "tradeoff": TradeoffParameters,
    "lookahead": LookaheadParameters,
    "estimate_people": EstimatePeopleParameters,
    "collective": CollectiveParameters,
    "retrain": RetrainParameters,
    "score": ScoreParameters,
}
"""The groups of ``conf/base/parameters_*.yml``; ``dataset`` and ``seed`` stand beside them."""

__all__ = [
    "GROUPS",
    "CollectiveParameters",
    "EstimatePeopleParameters",
    "EvaluationParameters",
    "ExecutionParameters",
    "IngestParameters",
    "LookaheadParameters",
    "Parameters",
    "RecourseExperimentsParameters",
    "RecourseParameters",
    "RecourseTextParameters",
    "RetrainParameters",
    "RunTimesParameters",
    "ScoreParameters",
    "SermParameters",
    "StylisedParameters",
    "SweepParameters",
    "TradeoffParameters",
    "TransferExperimentsParameters",
]
