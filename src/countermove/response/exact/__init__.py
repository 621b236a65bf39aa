"""The cheapest action on an affine score, proven so, by one compiled search for all people."""

from __future__ import annotations

from countermove.response.exact.cheapest import CheapestActions, cheapest_exact, highest_gain

__all__ = ["CheapestActions", "cheapest_exact", "highest_gain"]
