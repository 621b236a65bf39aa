"""The experiments of the SERM paper: sweeps, run times, pictures and trade-offs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from countermove.params.axes import (
    BurdenParameters,
    CostParameters,
    LinearScoreParameters,
    NoRegulariserParameters,
    QuadraticCostParameters,
    RegulariserParameters,
    ScoreParameters,
    SocialParameters,
)
from countermove.params.base import (
    Count,
    Name,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Seed,
    Several,
)
from countermove.params.serm import TrainingParameters

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.experiments.serm.sweep import Grid
    from countermove.experiments.serm.tradeoff import TradeOffCurve
    from countermove.learning.trees import TreeTraining
    from countermove.scores import Score

GRID = "countermove.experiments.serm.sweep:Grid"
SAMPLING = "countermove.experiments.tables:Sampling"


class PopulationParameters(Parameters):
    """The people of every cell."""

    kind: Literal["best", "smooth", "published", "ascent"] = "best"
    temperature: Positive = 0.5
    eval_temperature: Positive | None = None


class DifferingParameters(PopulationParameters):
    """The people of every cell of a sweep; they may differ."""

    never: Annotated[float, Field(ge=0, lt=1)] = 0.0
    log_sd: NotNegative = 0.0

    @model_validator(mode="after")
    def _one_temperature(self) -> Self:
        if (self.never or self.log_sd) and self.eval_temperature is not None:
            raise ValueError("people who differ are judged as trained: leave eval_temperature out")
        return self


class SamplingParameters(Parameters):
    """Which tables are read and how they are prepared."""

    datasets: list[str] = ["credit"]
    batch_sizes: dict[str, Count] = {}
    balance: bool = True
    max_rows: Count | None = None
    divide_by_root_d: bool = True
    skip_missing: bool = False


class SweepParameters(SamplingParameters):
    """Datasets × splits × seeds × strengths × costs for one population."""

    name: Name = "sweep"
    axis: Literal["scale", "gamma", "steps", "strength"] = "scale"
    datasets: Annotated[list[str], Field(min_length=1)] = ["credit"]
    splits: Count = 3
    costs: Annotated[list[CostParameters], Field(min_length=1)] = [QuadraticCostParameters()]
    response: DifferingParameters = DifferingParameters()
    score: ScoreParameters = LinearScoreParameters()
    steps: list[Count] = []
    seeds: list[Seed] = []
    regulariser: RegulariserParameters = NoRegulariserParameters()
    strengths: list[NotNegative] = []
    prune: bool = False
    training: TrainingParameters = TrainingParameters()
    blind_training: TrainingParameters | None = None

    @model_validator(mode="after")
    def _strengths_of_something(self) -> Self:
        if self.strengths and self.regulariser.kind == "none":
            raise ValueError("strengths are of a regulariser; name its kind, or leave them out")
        if self.axis == "strength" and not self.strengths:
            raise ValueError("axis 'strength' needs strengths to draw against")
        return self

    def build(self, *args: Any, **given: Any) -> Grid:
        """Return the grid."""
        from countermove.experiments.serm.sweep import Grid

        people = self.response.model_dump(include={"temperature", "eval_temperature"})
        kept = {"splits", "steps", "seeds", "strengths", "axis", "prune"}
        blind = self.blind_training
        return Grid(
            **self.model_dump(include=kept | set(SamplingParameters.model_fields)),
            costs=[cost.build() for cost in self.costs],
            response=self.response.kind,
            never=self.response.never,
            log_sd=self.response.log_sd,
            settings=self.training.model_dump() | people,
            blind={} if blind is None else blind.model_dump(),
            score=self._score,
            regulariser=self.regulariser.build(),
        )

    def _score(self, schema: Schema, seed: int) -> Score | TreeTraining | None:
        """Return the score to start from; what a schema calls immutable cannot move."""
        from countermove.people import ActionSet

        columns = enumerate(schema.model_features())
        held = [j for j, column in columns if column.change == "immutable"]
        return self.score.build(schema, ActionSet(immutable=held), seed)


class SyntheticParameters(Parameters):
    """The fabricated table on which the batch size varies."""

    describes: ClassVar = "countermove.experiments.serm.run_times:Synthetic"
    rows: Annotated[int, Field(ge=8)] = 1024
    features: Annotated[int, Field(ge=2)] = 5
    batch_sizes: Several[Count] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    epochs: Count = 5


class RunTimesParameters(Parameters):
    """SERM, Figure 4: training by every way of finding people's response, timed."""

    describes: ClassVar = "countermove.experiments.serm.run_times:RunTimes"
    kind: Literal["run_times"]
    synthetic: SyntheticParameters = SyntheticParameters()
    datasets: list[str] = ["credit"]
    batch_sizes: dict[str, Count] = {}
    epochs: Count = 7
    scale: Positive = 1.0
    temperature: Positive = 0.5
    learning_rate: Positive = 0.1
    max_rows: Count | None = 3000
    skip_missing: bool = False


class StylisedParameters(Parameters):
    """SERM, Figure 3: costs chosen (flexible), costs unknown, or moves on a manifold."""

    describes: ClassVar = "countermove.experiments.serm.stylised:Stylised"
    kind: Literal["stylised"]
    picture: Literal["flexible", "unknown", "manifold"] = "flexible"
    repetitions: Count = 5
    rows: Annotated[int, Field(ge=50)] | None = None


class SharesParameters(Parameters):
    """Shares of the rows to train on, to stop and choose by, and to report on."""

    train: Probability = 0.5
    validation: Probability = 0.25
    test: Probability = 0.25

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.train + self.validation + self.test
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"the shares must sum to 1, they sum to {total:g}")
        return self

    def build(self, *args: Any, **given: Any) -> dict[str, float]:
        """Return the shares by part."""
        return self.model_dump()


class StrengthsParameters(Parameters):
    """``points`` strengths from ``lowest`` to ``highest``, each by the same factor larger."""

    lowest: Positive
    highest: Positive
    points: Count = 20

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"lowest {self.lowest:g} is above highest {self.highest:g}")
        return self

    def build(self, *args: Any, **given: Any) -> list[float]:
        """Return the strengths."""
        import numpy as np

        return [float(value) for value in np.geomspace(self.lowest, self.highest, self.points)]


class CurveParameters(Parameters):
    """One population: its strengths (a list, or a range) and its training."""

    response: PopulationParameters = PopulationParameters()
    strengths: StrengthsParameters | Annotated[list[NotNegative], Field(min_length=1)] = (
        StrengthsParameters(lowest=1e-3, highest=0.3)
    )
    training: TrainingParameters = TrainingParameters()
    epochs: Count | None = None
    settle: bool | None = None

    def build(self, *args: Any, **given: Any) -> TradeOffCurve:
        """Return the curve."""
        from countermove.experiments.serm.tradeoff import TradeOffCurve

        asked = self.strengths
        strengths = asked.build() if isinstance(asked, StrengthsParameters) else asked
        settings: dict[str, Any] = self.training.model_dump()
        settings |= self.response.model_dump(exclude={"kind"}) | {"calibrate": self.settle}
        words = {None: "usual", True: "intercept settled", False: "intercept as trained"}
        return TradeOffCurve(
            self.response.kind, strengths, settings, self.epochs, words[self.settle]
        )


class TradeoffParameters(SamplingParameters):
    """Accuracy against one measure of social good: datasets × splits × populations × strengths."""

    describes: ClassVar = "countermove.experiments.serm.tradeoff:TradeOff"
    kind: Literal["tradeoff"] = "tradeoff"
    regulariser: SocialParameters = BurdenParameters(kind="burden")
    curves: Annotated[list[CurveParameters], Field(min_length=1)] = [CurveParameters()]
    datasets: Annotated[list[str], Field(min_length=1)] = ["credit"]
    splits: Count = 1
    cost: CostParameters = QuadraticCostParameters()
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.01
    shares: SharesParameters = SharesParameters()
