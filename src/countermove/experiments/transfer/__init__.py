"""The experiments of the transferability paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.transfer.bounds import LemmaExperiment, TightnessExperiment
    from countermove.experiments.transfer.dag import DagExperiment
    from countermove.experiments.transfer.fico import FicoExperiment, Lender
    from countermove.experiments.transfer.minimise import BanditExperiment, ReplicatorExperiment

__all__ = [
    "BanditExperiment",
    "DagExperiment",
    "FicoExperiment",
    "LemmaExperiment",
    "Lender",
    "ReplicatorExperiment",
    "TightnessExperiment",
]

_HOMES = {
    "BanditExperiment": "minimise",
    "DagExperiment": "dag",
    "FicoExperiment": "fico",
    "Lender": "fico",
    "LemmaExperiment": "bounds",
    "ReplicatorExperiment": "minimise",
    "TightnessExperiment": "bounds",
}
__getattr__ = lazy(__name__, _HOMES)
