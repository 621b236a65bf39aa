"""What a sweep varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from countermove.params.base import Parameters
from countermove.params.people import CostParameters, Positive, QuadraticCostParameters
from countermove.params.serm import TrainingParameters

if TYPE_CHECKING:
    from countermove.production.sweep import Grid

Count = Annotated[int, Field(gt=0)]


class PopulationParameters(Parameters):
    """The people of every cell; ``eval_temperature`` None judges at ``temperature``."""

    kind: Literal["best", "smooth", "published"] = "best"
    temperature: Positive = 0.5
    eval_temperature: Positive | None = None


class SweepParameters(Parameters):
    """Datasets × splits × costs for one population.

    ``name`` is the folder of the results, ``axis`` the number of the cost they
    are drawn against.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "sweep"
    axis: Literal["scale", "gamma"] = "scale"
    datasets: list[str] = Field(["credit"], min_length=1)
    splits: Count = 3
    costs: list[CostParameters] = Field([QuadraticCostParameters()], min_length=1)
    response: PopulationParameters = PopulationParameters()
    training: TrainingParameters = TrainingParameters()
    batch_sizes: dict[str, Count] = Field({})
    balance: bool = True
    max_rows: Count | None = None
    divide_by_root_d: bool = True
    skip_missing: bool = False

    def build(self) -> Grid:
        """Return the grid."""
        from countermove.production.sweep import Grid

        people = self.response.model_dump(exclude={"kind"})
        settings: dict[str, Any] = self.training.model_dump() | people
        kept = {"datasets", "splits", "batch_sizes", "balance", "max_rows"}
        return Grid(
            **self.model_dump(include=kept | {"divide_by_root_d", "skip_missing"}),
            costs=[cost.build() for cost in self.costs],
            response=self.response.kind,
            settings=settings,
        )
