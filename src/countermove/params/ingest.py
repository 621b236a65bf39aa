"""How a raw table becomes standardised splits."""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from countermove.params.base import Parameters

Share = Annotated[float, Field(gt=0, lt=1)]


class SplitParameters(Parameters):
    """Shares of the rows; they sum to one."""

    train: Share = 0.5
    validation: Share = 0.15
    calibration: Share = 0.15
    test: Share = 0.2

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = sum(self.build().values())
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(
                f"the shares of train, validation, calibration and test must sum to 1, got {total}"
            )
        return self

    def build(self) -> dict[str, float]:
        """Return the shares by split."""
        return self.model_dump()


class IngestParameters(Parameters):
    """Parameters of the ingest pipeline.

    ``balance`` draws as many rows of the larger class as the smaller one has;
    ``max_rows`` caps the table after that; both as the SERM experiments do.
    ``divide_by_root_d`` divides standardised features by the root of their number.
    ``rows_per_part`` are held at once when a table is ingested in parts.
    """

    split: SplitParameters = SplitParameters()
    balance: bool = False
    max_rows: Annotated[int, Field(gt=0)] | None = None
    divide_by_root_d: bool = False
    rows_per_part: Annotated[int, Field(gt=0)] = 100_000
