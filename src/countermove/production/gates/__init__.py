"""What a challenger must show before it replaces the champion."""

from countermove.production.gates.base import Case, Gate, GateResult, check_gates
from countermove.production.gates.comparing import FlipRate, GroupDisparity, Improvement
from countermove.production.gates.custom import CustomGate
from countermove.production.gates.standing import (
    MinimumAccuracy,
    RecourseCertificate,
    TransferBound,
)

__all__ = [
    "Case",
    "CustomGate",
    "FlipRate",
    "Gate",
    "GateResult",
    "GroupDisparity",
    "Improvement",
    "MinimumAccuracy",
    "RecourseCertificate",
    "TransferBound",
    "check_gates",
]
