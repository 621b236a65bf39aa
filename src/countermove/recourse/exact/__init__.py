"""The cheapest action on an affine score, proven so, by one compiled search for all people."""

from __future__ import annotations

from countermove.recourse.exact._cheapest import (
    CheapestActions,
    ListedStates,
    Premise,
    cheapest_exact,
)

__all__ = ["CheapestActions", "ListedStates", "Premise", "cheapest_exact"]
