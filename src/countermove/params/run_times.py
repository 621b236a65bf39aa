"""What is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from countermove.params.base import Parameters, Positive
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.serm.run_times import RunTimes


class SyntheticParameters(Parameters):
    """The fabricated table on which the batch size varies."""

    rows: Annotated[int, Field(ge=8)] = 1024
    features: Annotated[int, Field(ge=2)] = 5
    batch_sizes: list[Count] = Field(default=[1, 2, 4, 8, 16, 32, 64, 128, 256], min_length=1)
    epochs: Count = 5


class RunTimesParameters(Parameters):
    """Training by every way of finding people's answers, on fabricated and on real tables."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "run_times"
    synthetic: SyntheticParameters = SyntheticParameters()
    datasets: list[str] = Field(["credit"])
    batch_sizes: dict[str, Count] = Field({})
    epochs: Count = 7
    scale: Positive = 1.0
    temperature: Positive = 0.5
    learning_rate: Positive = 0.1
    max_rows: Count | None = 3000
    skip_missing: bool = False

    def build(self) -> RunTimes:
        """Return what is timed."""
        from countermove.experiments.serm.run_times import RunTimes, Synthetic

        arguments = self.model_dump(exclude={"name", "synthetic"})
        return RunTimes(**arguments, synthetic=Synthetic(**self.synthetic.model_dump()))
