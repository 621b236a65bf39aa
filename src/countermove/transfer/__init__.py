"""Transferability: what deployment does to the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.transfer.bounds import all_bounds
    from countermove.transfer.chances import fit_chances
    from countermove.transfer.holdout import error_after_response_bound
    from countermove.transfer.induced import induce
    from countermove.transfer.minimise import minimise_induced_risk
    from countermove.transfer.minimise_bandit import bandit_descent
    from countermove.transfer.minimise_weighted import reweighted_erm
    from countermove.transfer.optimal import suboptimality
    from countermove.transfer.replicator import Replicator, shifted_pair
    from countermove.transfer.report import TransferReport, TransferTerms, transfer_report
    from countermove.transfer.sample import Pair, Sample
    from countermove.transfer.uniform_response import UniformResponse

__all__ = [
    "Pair",
    "Replicator",
    "Sample",
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
    "Replicator": "replicator",
    "Sample": "sample",
    "TransferReport": "report",
    "TransferTerms": "report",
    "UniformResponse": "uniform_response",
    "all_bounds": "bounds",
    "bandit_descent": "minimise_bandit",
    "error_after_response_bound": "holdout",
    "fit_chances": "chances",
    "induce": "induced",
    "minimise_induced_risk": "minimise",
    "reweighted_erm": "minimise_weighted",
    "shifted_pair": "replicator",
    "suboptimality": "optimal",
    "transfer_report": "report",
}

__getattr__ = lazy(__name__, _HOMES)
