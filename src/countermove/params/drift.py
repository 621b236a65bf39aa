"""How a new table is compared with what the deployed rule lets us expect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters

if TYPE_CHECKING:
    from countermove.production.drift import DriftTerms


class DriftParameters(Parameters):
    """Parameters of the drift report.

    ``level`` is the probability of any alarm where people answer as modelled and nothing else
    changed; ``permutations`` and ``bootstrap`` are the effort of the tests and of the interval;
    ``max_rows`` are looked at of either table; differences below ``resolution`` spreads are
    rounding; ``labels`` are ``kept`` by those who move, or ``follow`` the features; a column is
    odd if more than ``odd_share`` of it lies beyond all that was expected.
    """

    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    permutations: Annotated[int, Field(ge=1)] = 999
    max_rows: Annotated[int, Field(ge=50)] = 20_000
    bootstrap: Annotated[int, Field(ge=50)] = 200
    resolution: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    labels: Literal["kept", "follow"] = "kept"
    odd_share: Annotated[float, Field(gt=0, lt=1)] = 0.05

    def build(self) -> DriftTerms:
        """Return the terms."""
        from countermove.production.drift import DriftTerms

        return DriftTerms(**self.model_dump())
