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
    library,
    needed,
    part,
    setting,
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

    kind: Literal["best", "smooth", "published", "ascent"] = setting("best", "how people respond")
    temperature: Positive = setting(0.5, "of the smoothed step")
    eval_temperature: Positive | None = setting(None, "of judging; null: as in training")


class DifferingParameters(PopulationParameters):
    """The people of every cell of a sweep; they may differ."""

    never: Annotated[float, Field(ge=0, lt=1)] = library("share who never move", GRID)
    log_sd: NotNegative = library("spread of the logarithm of the others' prices", GRID)

    @model_validator(mode="after")
    def _one_temperature(self) -> Self:
        if (self.never or self.log_sd) and self.eval_temperature is not None:
            raise ValueError("people who differ are judged as trained: leave eval_temperature out")
        return self


class SamplingParameters(Parameters):
    """Which tables are read and how they are prepared."""

    datasets: list[str] = setting(["credit"], "the tables")
    batch_sizes: dict[str, Count] = library("per table, where it differs from training", SAMPLING)
    balance: bool = library("as many favourable as unfavourable rows", SAMPLING)
    max_rows: Count | None = library("rows drawn at random; null: all", SAMPLING)
    divide_by_root_d: bool = library("standardised features over the root of d", SAMPLING)
    skip_missing: bool = library("leave out, with a warning, tables that are not there", SAMPLING)


class SweepParameters(SamplingParameters):
    """Datasets × splits × seeds × strengths × costs for one population."""

    name: Name = setting("sweep", "folder of the results")
    axis: Literal["scale", "gamma", "steps", "strength"] = setting("scale", "drawn against this")
    datasets: Annotated[list[str], Field(min_length=1)] = setting(["credit"], "the tables")
    splits: Count = setting(3, "random splits")
    costs: Annotated[list[CostParameters], Field(min_length=1)] = part(
        lambda: [QuadraticCostParameters()], "what a move costs, one axis"
    )
    response: DifferingParameters = part(DifferingParameters, "the people")
    score: ScoreParameters = part(LinearScoreParameters, "the score to start from")
    steps: list[Count] = setting([], "lengths of history of a series, one axis")
    seeds: list[Seed] = setting([], "of training, one axis; none: one, that of the split")
    regulariser: RegulariserParameters = part(
        NoRegulariserParameters, "added to the strategic rule's risk"
    )
    strengths: list[NotNegative] = setting([], "of the regulariser, one axis")
    prune: bool = setting(False, "remove finished cells that are no longer asked for")
    training: TrainingParameters = part(TrainingParameters, "how to optimise")
    blind_training: TrainingParameters | None = setting(None, "of the blind rule; null: the same")

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
    rows: Annotated[int, Field(ge=8)] = library("of the table")
    features: Annotated[int, Field(ge=2)] = library("of the table")
    batch_sizes: Several[Count] = library("what varies")
    epochs: Count = library("of each run")


class RunTimesParameters(Parameters):
    """SERM, Figure 4: training by every way of finding people's response, timed."""

    describes: ClassVar = "countermove.experiments.serm.run_times:RunTimes"
    kind: Literal["run_times"]
    synthetic: SyntheticParameters = part(SyntheticParameters, "the fabricated table")
    datasets: list[str] = setting(["credit"], "the real tables")
    batch_sizes: dict[str, Count] = library("per table; else 64")
    epochs: Count = library("on real tables")
    scale: Positive = library("of the quadratic cost")
    temperature: Positive = library("of the smoothed step")
    learning_rate: Positive = library("of every run")
    max_rows: Count | None = setting(3000, "rows drawn at random; null: all")
    skip_missing: bool = library("leave out, with a warning, tables that are not there")


class StylisedParameters(Parameters):
    """SERM, Figure 3: costs chosen (flexible), costs unknown, or moves on a manifold."""

    describes: ClassVar = "countermove.experiments.serm.stylised:Stylised"
    kind: Literal["stylised"]
    picture: Literal["flexible", "unknown", "manifold"] = library("which of the three")
    repetitions: Count = library("tables and starts")
    rows: Annotated[int, Field(ge=50)] | None = library("people in each; null: as published")


class SharesParameters(Parameters):
    """Shares of the rows to train on, to stop and choose by, and to report on."""

    train: Probability = setting(0.5, "to train on")
    validation: Probability = setting(0.25, "to stop and choose by")
    test: Probability = setting(0.25, "to report on")

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

    lowest: Positive = needed("the first")
    highest: Positive = needed("the last")
    points: Count = setting(20, "how many")

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

    response: PopulationParameters = setting(PopulationParameters(), "the people")
    strengths: StrengthsParameters | Annotated[list[NotNegative], Field(min_length=1)] = setting(
        StrengthsParameters(lowest=1e-3, highest=0.3), "of the regulariser"
    )
    training: TrainingParameters = part(TrainingParameters, "how to optimise")
    epochs: Count | None = setting(None, "of strengths above 0; null: training.max_epochs")
    settle: bool | None = setting(
        None, "hard decisions settle the intercept; null: except for published"
    )

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
    regulariser: SocialParameters = part(
        lambda: BurdenParameters(kind="burden"), "the measure; its own strength is not used"
    )
    curves: Annotated[list[CurveParameters], Field(min_length=1)] = part(
        lambda: [CurveParameters()], "one per population"
    )
    datasets: Annotated[list[str], Field(min_length=1)] = setting(["credit"], "the tables")
    splits: Count = setting(1, "random splits")
    cost: CostParameters = part(QuadraticCostParameters, "of a move")
    tolerance: Annotated[float, Field(ge=0, lt=1)] = library("accuracy that may be given up")
    shares: SharesParameters = setting(SharesParameters(), "of the rows")
