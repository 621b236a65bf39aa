"""The experiments of the look-ahead paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.lookahead.coordination import CoordinationExperiment
    from countermove.experiments.lookahead.experiment import LookaheadExperiment, lookahead_facts
    from countermove.experiments.lookahead.importance import ImportanceExperiment
    from countermove.experiments.lookahead.people import LookaheadTable, lookahead_table
    from countermove.experiments.lookahead.retraining import (
        BeliefsExperiment,
        RatesExperiment,
        RetrainingExperiment,
    )
    from countermove.experiments.lookahead.scaling import ScalingExperiment
    from countermove.experiments.lookahead.size import SizeExperiment

__all__ = [
    "BeliefsExperiment",
    "CoordinationExperiment",
    "ImportanceExperiment",
    "LookaheadExperiment",
    "LookaheadTable",
    "RatesExperiment",
    "RetrainingExperiment",
    "ScalingExperiment",
    "SizeExperiment",
    "lookahead_facts",
    "lookahead_table",
]

_HOMES = {
    "BeliefsExperiment": "retraining",
    "CoordinationExperiment": "coordination",
    "ImportanceExperiment": "importance",
    "LookaheadExperiment": "experiment",
    "LookaheadTable": "people",
    "RatesExperiment": "retraining",
    "RetrainingExperiment": "retraining",
    "ScalingExperiment": "scaling",
    "SizeExperiment": "size",
    "lookahead_facts": "experiment",
    "lookahead_table": "people",
}
__getattr__ = lazy(__name__, _HOMES)
