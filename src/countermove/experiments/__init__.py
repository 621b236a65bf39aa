"""The experiments of the papers: cells, their means, a figure and a page each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.protocol import Experiment, Measured, Sources

__all__ = ["Experiment", "Measured", "Sources"]

_HOMES = {"Experiment": "protocol", "Measured": "protocol", "Sources": "protocol"}
__getattr__ = lazy(__name__, _HOMES)
