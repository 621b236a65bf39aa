"""Transferability: what deployment does to the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countermove.transfer.bounds import all_bounds
    from countermove.transfer.chances import fit_chances
    from countermove.transfer.holdout import error_after_response_bound
    from countermove.transfer.induced import induce
    from countermove.transfer.optimal import suboptimality
    from countermove.transfer.report import TransferReport, TransferTerms, transfer_report
    from countermove.transfer.sample import Pair, Sample

__all__ = [
    "Pair",
    "Sample",
    "TransferReport",
    "TransferTerms",
    "all_bounds",
    "error_after_response_bound",
    "fit_chances",
    "induce",
    "suboptimality",
    "transfer_report",
]

_HOMES = {
    "Pair": "sample",
    "Sample": "sample",
    "TransferReport": "report",
    "TransferTerms": "report",
    "all_bounds": "bounds",
    "error_after_response_bound": "holdout",
    "fit_chances": "chances",
    "induce": "induced",
    "suboptimality": "optimal",
    "transfer_report": "report",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use: responses bring torch and numba."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"countermove.transfer.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'countermove.transfer' has no attribute {name!r}")
