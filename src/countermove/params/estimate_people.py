"""How the people are estimated from a deployment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters


class EstimatePeopleParameters(Parameters):
    """Parameters of the estimate.

    ``matched`` pairs people by the id of the schema; false takes the tables as two samples.
    ``cost`` is the shape of the cost (``auto``: weighted where the moves ask for it), ``level``
    that of the intervals.
    """

    matched: bool = True
    cost: Literal["auto", "quadratic", "weighted_quadratic"] = "auto"
    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
