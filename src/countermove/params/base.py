"""What all parameter models share: unknown keys are refused, values do not change."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Parameters(BaseModel):
    """Base of every group of parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
