"""What may be asked of a refused person, and how sure the promise is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from countermove.params.base import Parameters

Probability = Annotated[float, Field(gt=0, lt=1)]


class RecourseParameters(Parameters):
    """Parameters of the calibration of the threshold.

    ``largest_action`` bounds every feature's move, in standardised units, on top
    of what the schema says (the PARE experiments use 0.75; None adds no bound);
    ``threshold`` is the probability asked for unless the promise needs a lower one.
    """

    threshold: Probability = 0.5
    largest_action: Annotated[float, Field(gt=0)] | None = None
    miss_rate: Probability = 0.05
    failure_probability: Probability = 0.05
