"""What a challenger must show before it replaces the champion."""

from countermove.production.gates.base import Case, CustomGate, Gate, GateResult, check_gates
from countermove.production.gates.builtin import (
    FlipRate,
    GroupDisparity,
    Improvement,
    MinimumAccuracy,
    OpenAdvice,
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
    "OpenAdvice",
    "RecourseCertificate",
    "TransferBound",
    "check_gates",
]
