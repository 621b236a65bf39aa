"""Transferability: what deployment does to the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.transfer.bandit import bandit_descent
    from countermove.transfer.bounds import all_bounds
    from countermove.transfer.holdout import error_after_response_bound
    from countermove.transfer.induced import fit_chances, induce
    from countermove.transfer.minimise import ScoredPeople, minimise_induced_risk
    from countermove.transfer.optimal import suboptimality
    from countermove.transfer.report import TransferReport, TransferTerms, transfer_report
    from countermove.transfer.sample import Pair, Sample
    from countermove.transfer.shifts import Replicator, UniformResponse, shifted_pair
    from countermove.transfer.weights import reweighted_erm

__all__ = [
    "Pair",
    "Replicator",
    "Sample",
    "ScoredPeople",
    "TransferReport",
    "TransferTerms",
    "UniformResponse",
    "all_bounds",
    "bandit_descent",
    "error_after_response_bound",
    "fit_chances",
    "induce",
    "minimise_induced_risk",
    "reweighted_erm",
    "shifted_pair",
    "suboptimality",
    "transfer_report",
]

_HOMES = {
    "Pair": "sample",
    "Replicator": "shifts",
    "Sample": "sample",
    "ScoredPeople": "minimise",
    "TransferReport": "report",
    "TransferTerms": "report",
    "UniformResponse": "shifts",
    "all_bounds": "bounds",
    "bandit_descent": "bandit",
    "error_after_response_bound": "holdout",
    "fit_chances": "induced",
    "induce": "induced",
    "minimise_induced_risk": "minimise",
    "reweighted_erm": "weights",
    "shifted_pair": "shifts",
    "suboptimality": "optimal",
    "transfer_report": "report",
}

__getattr__ = lazy(__name__, _HOMES)
__dir__ = __all__.copy
