"""The experiments of the SERM paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy

if TYPE_CHECKING:
    from countermove.experiments.serm.run_times import RunTimes, Synthetic
    from countermove.experiments.serm.stylised import Stylised
    from countermove.experiments.serm.sweep import Grid
    from countermove.experiments.serm.tradeoff import TradeOff, TradeOffCurve

__all__ = ["Grid", "RunTimes", "Stylised", "Synthetic", "TradeOff", "TradeOffCurve"]

_HOMES = {
    "TradeOffCurve": "tradeoff",
    "Grid": "sweep",
    "RunTimes": "run_times",
    "Stylised": "stylised",
    "Synthetic": "run_times",
    "TradeOff": "tradeoff",
}
__getattr__ = lazy(__name__, _HOMES)
