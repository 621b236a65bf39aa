"""What a sweep varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from countermove.params.base import NotNegative, Parameters, Positive
from countermove.params.serm import (
    CostParameters,
    LinearScoreParameters,
    NoRegulariserParameters,
    QuadraticCostParameters,
    RegulariserParameters,
    ScoreParameters,
    TrainingParameters,
)

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.experiments.serm.sweep import Grid
    from countermove.scores import Score

Count = Annotated[int, Field(gt=0)]


def _quadratic() -> list[CostParameters]:
    return [QuadraticCostParameters()]


class PopulationParameters(Parameters):
    """The people of every cell; ``eval_temperature`` None judges at ``temperature``."""

    kind: Literal["best", "smooth", "published", "ascent"] = "best"
    temperature: Positive = 0.5
    eval_temperature: Positive | None = None


class SweepParameters(Parameters):
    """Datasets × splits × seeds × strengths × costs for one population.

    ``name`` is the folder of the results, ``axis`` the number of the cost they
    are drawn against, or ``steps``, the lengths of history of a series, or ``strength``, that of
    the ``regulariser``. ``seeds`` are of training; none: one, that of the split.
    ``blind_training`` None trains the blind rule like the strategic one. ``prune`` removes the
    finished cells of this sweep's folder that it no longer asks for.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "sweep"
    axis: Literal["scale", "gamma", "steps", "strength"] = "scale"
    datasets: list[str] = Field(["credit"], min_length=1)
    splits: Count = 3
    costs: list[CostParameters] = Field(default_factory=_quadratic, min_length=1)
    response: PopulationParameters = PopulationParameters()
    score: ScoreParameters = LinearScoreParameters()
    steps: list[Count] = Field([])
    seeds: list[Annotated[int, Field(ge=0)]] = Field([])
    regulariser: RegulariserParameters = NoRegulariserParameters()
    strengths: list[NotNegative] = Field([])
    prune: bool = False
    training: TrainingParameters = Field(default_factory=TrainingParameters)
    blind_training: TrainingParameters | None = None
    batch_sizes: dict[str, Count] = Field({})
    balance: bool = True
    max_rows: Count | None = None
    divide_by_root_d: bool = True
    skip_missing: bool = False

    @model_validator(mode="after")
    def _strengths_of_something(self) -> Self:
        if self.strengths and self.regulariser.kind == "none":
            raise ValueError("strengths are of a regulariser; name its kind, or leave them out")
        if self.axis == "strength" and not self.strengths:
            raise ValueError("axis 'strength' needs strengths to draw against")
        return self

    def build(self) -> Grid:
        """Return the grid."""
        from countermove.experiments.serm.sweep import Grid

        people = self.response.model_dump(exclude={"kind"})
        settings: dict[str, Any] = self.training.model_dump() | people
        kept = {"datasets", "splits", "batch_sizes", "balance", "max_rows", "steps"}
        kept |= {"seeds", "strengths", "divide_by_root_d", "skip_missing"}
        blind = self.blind_training
        return Grid(
            **self.model_dump(include=kept),
            costs=[cost.build() for cost in self.costs],
            response=self.response.kind,
            settings=settings,
            blind={} if blind is None else blind.model_dump(),
            score=self._score,
            regulariser=self.regulariser.build(),
        )

    def _score(self, schema: Schema, seed: int) -> Score | None:
        """Return the score to start from; what a schema calls immutable cannot move."""
        from countermove.people import ActionSet

        columns = enumerate(schema.model_features())
        held = [j for j, column in columns if column.change == "immutable"]
        return self.score.build(schema, ActionSet(immutable=held), seed)
