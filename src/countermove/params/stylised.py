"""Which picture of section 4.4 of the SERM paper, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.serm.stylised import Stylised


class StylisedParameters(Parameters):
    """Costs chosen (``flexible``), costs ``unknown``, or moves on a ``manifold``."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "stylised"
    experiment: Literal["flexible", "unknown", "manifold"] = "flexible"
    repetitions: Count = 5
    rows: Annotated[int, Field(ge=50)] | None = None

    def build(self) -> Stylised:
        """Return the experiment."""
        from countermove.experiments.serm.stylised import Stylised

        return Stylised(**self.model_dump(exclude={"name"}))
