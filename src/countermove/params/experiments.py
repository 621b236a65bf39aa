"""Sweeps, and the experiments on people who look ahead or act together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from countermove.params.axes import (
    CostParameters,
    LinearScoreParameters,
    NoRegulariserParameters,
    QuadraticCostParameters,
    RegulariserParameters,
    ScoreParameters,
)
from countermove.params.base import (
    Count,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    library,
    setting,
)
from countermove.params.serm import TrainingParameters

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.experiments.collective.people import SubjectPreparation
    from countermove.experiments.collective.recourse import CollectiveExperiment
    from countermove.experiments.lookahead.people import LookaheadExperiment
    from countermove.experiments.serm.sweep import Grid
    from countermove.scores import Score

Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
Seed = Annotated[int, Field(ge=0)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Fractions = Annotated[tuple[Fraction, ...], Field(min_length=1)]
Strength = Annotated[float, Field(ge=0)]
Columns = tuple[str, ...]
Mixture = Annotated[dict[Annotated[int, Field(ge=0, le=50)], NotNegative], Field(min_length=1)]
Mixtures = Annotated[tuple[Mixture, ...], Field(min_length=1)]
Norm = Annotated[
    Literal[1, 2, "inf"], BeforeValidator(lambda given: "inf" if given == float("inf") else given)
]
BUDGETS = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]
SAMPLING = "countermove.experiments.tables:Sampling"


def _quadratic() -> list[CostParameters]:
    return [QuadraticCostParameters()]


class PopulationParameters(Parameters):
    """The people of every cell."""

    kind: Literal["best", "smooth", "published", "ascent"] = setting("best", "how people answer")
    temperature: Positive = setting(0.5, "of the smoothed step")
    eval_temperature: Positive | None = setting(None, "of judging; null: as in training")


class SamplingParameters(Parameters):
    """Which tables are read and how they are prepared."""

    datasets: list[str] = setting(["credit"], "the tables")
    batch_sizes: dict[str, Count] = library("per table, where it differs from training", SAMPLING)
    balance: bool = library("as many favourable as unfavourable rows", SAMPLING)
    max_rows: Count | None = library("rows drawn at random; null: all", SAMPLING)
    divide_by_root_d: bool = library("standardised features over the root of d", SAMPLING)
    skip_missing: bool = library("leave out, with a warning, tables that are not there", SAMPLING)

    def sampling(self) -> dict[str, Any]:
        """Return the arguments of `Sampling`."""
        return self.model_dump(include=set(SamplingParameters.model_fields))


class SweepParameters(SamplingParameters):
    """Datasets × splits × seeds × strengths × costs for one population."""

    name: Name = setting("sweep", "folder of the results")
    axis: Literal["scale", "gamma", "steps", "strength"] = setting("scale", "drawn against this")
    datasets: Annotated[list[str], Field(min_length=1)] = setting(["credit"], "the tables")
    splits: Count = setting(3, "random splits")
    costs: list[CostParameters] = Field(
        default_factory=_quadratic, min_length=1, description="what a move costs, one axis"
    )
    response: PopulationParameters = setting(PopulationParameters(), "the people")
    score: ScoreParameters = Field(
        default_factory=LinearScoreParameters, description="the score to start from"
    )
    steps: list[Count] = setting([], "lengths of history of a series, one axis")
    seeds: list[Seed] = setting([], "of training, one axis; none: one, that of the split")
    regulariser: RegulariserParameters = Field(
        default_factory=NoRegulariserParameters, description="added to the strategic rule's risk"
    )
    strengths: list[Strength] = setting([], "of the regulariser, one axis")
    prune: bool = setting(False, "remove finished cells that are no longer asked for")
    training: TrainingParameters = Field(
        default_factory=TrainingParameters, description="how to optimise"
    )
    blind_training: TrainingParameters | None = setting(None, "of the blind rule; null: the same")

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
        kept = {"splits", "steps", "seeds", "strengths", "axis", "prune"}
        blind = self.blind_training
        return Grid(
            **self.sampling(),
            **self.model_dump(include=kept),
            costs=[cost.build() for cost in self.costs],
            response=self.response.kind,
            settings=self.training.model_dump() | people,
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


class RetrainingParameters(Parameters):
    """Figure 1: gaps between models retrained on mixtures of level-k people."""

    describes: ClassVar = "countermove.experiments.lookahead.retraining:RetrainingExperiment"
    kind: Literal["figure_1"]
    mixtures: Mixtures = library("shares by level")
    response_strength: Positive = library("people move by this times the weights")
    columns: Columns = library("what people change; none: all they can")
    rounds: Count = library("models trained after the first")
    seeds: Seeds = library("draws of who thinks how far")
    solver: Literal["exact", "published"] = library("exact, or as the paper's code fits")
    groups: Literal["drawn", "weights"] = library("everybody has one level, or counts at each")
    start: Literal["fitted", "published"] | None = library("the first model; null: as the solver")
    penalty: NotNegative | None = library("of the learner; null: 1/n")
    penalise_intercept: bool = library("whether the penalty counts the intercept")


class RatesParameters(Parameters):
    """Theorem 3 and Corollary 1, where part of the people respond."""

    describes: ClassVar = "countermove.experiments.lookahead.retraining:RatesExperiment"
    kind: Literal["theorem_3"]
    mixtures: Mixtures | None = library("shares by level; null: levels 0 to 3")
    response_strengths: Annotated[tuple[Positive, ...], Field(min_length=1)] = library(
        "people move by this times the weights"
    )
    columns: Columns = library("what people change; none: all they can")
    respond_below: str | None = library("people below its median respond; null: second column")
    rounds: Count = library("most models trained after the first")
    penalty: NotNegative | None = library("of the learner; null: 1/n")
    penalise_intercept: bool = library("whether the penalty counts the intercept")


class BeliefsParameters(Parameters):
    """People who look ahead with a wrong penalty, or from a sample of rows."""

    describes: ClassVar = "countermove.experiments.lookahead.retraining:BeliefsExperiment"
    kind: Literal["beliefs"]
    shares: Mixture = library("shares by level")
    response_strength: Positive = library("people move by this times the weights")
    columns: Columns = library("what people change; none: all they can")
    respond_below: str | None = library("people below its median respond; null: second column")
    believed_penalties: tuple[Positive, ...] = library("multiples of the true one")
    believed_rows: tuple[Count, ...] = library("rows people estimate the next model from")
    seeds: Seeds = library("draws of those rows")
    rounds: Count = library("most models trained after the first")


class ImportanceParameters(Parameters):
    """Figure 5: the accuracy lost when one column is replaced by noise."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:ImportanceExperiment"
    kind: Literal["figure_5"]
    columns: Columns = library("those replaced, one at a time; none: all")
    seeds: Seeds = library("splits into training and test people")
    test_share: Annotated[float, Field(gt=0, lt=1)] = library("share of test people")


class CoordinationParameters(Parameters):
    """Figure 2: the benefit of coordination, by how much members mind the model's length."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:CoordinationExperiment"
    kind: Literal["figure_2"]
    columns: Columns = library("those reported at will, one at a time; none: all that can change")
    penalties: Annotated[tuple[NotNegative, ...], Field(min_length=1)] = library(
        "in the members' utility"
    )
    dropped: Columns = library("columns left out")
    reach: Positive = library("how far a column may be moved, in deviations")
    copies: tuple[Positive, ...] = library("factors of the strategy that copies the score")
    max_steps: Count = library("of the search, at each penalty")
    published: bool = library("move and compute what the paper's code does")


class SizeParameters(Parameters):
    """Figure 3: what collectives of each size gain against the learner."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:SizeExperiment"
    kind: Literal["figure_3"]
    columns: Columns = library("those reported at will, one at a time; none: all that can change")
    participation: Fractions = library("shares of everybody")
    seeds: Seeds = library("draws of the members")
    reach: Positive = library("how far a column may be moved, in deviations")
    dropped: Columns = library("columns left out")
    max_steps: Count = library("of the search for the best strategy")
    tolerance: Positive = library("of the search for the best strategy")
    published: bool = library("move and compute what the paper's code does")


class ScalingParameters(Parameters):
    """Figure 4: fixed strategies at growing size."""

    describes: ClassVar = "countermove.experiments.lookahead.scaling:ScalingExperiment"
    kind: Literal["figure_4"]
    columns: Columns = library("those that members shift; none: all that can change")
    strengths: Annotated[tuple[float, ...], Field(min_length=1)] = library("of the shift")
    participation: Fractions = library("shares of people with the unfavourable outcome")
    target_participation: Fraction = library("size whose model members want")
    target_strength: float = library("strength whose model members want")
    dropped: Columns = library("columns left out")
    outliers: Positive = library("people this many deviations out are left out")
    published: bool = library("draw the members as the paper's code does")
    trials: Count = library("draws per cell, where members are drawn")


LookaheadExperimentParameters = Annotated[
    RetrainingParameters
    | RatesParameters
    | BeliefsParameters
    | ImportanceParameters
    | CoordinationParameters
    | SizeParameters
    | ScalingParameters,
    Field(discriminator="kind"),
]


class LookaheadParameters(Parameters):
    """One experiment on one table."""

    name: Name = setting("lookahead", "folder of the results")
    dataset: str = Field(description="any dataset with a schema")
    preparation: Literal["paper", "chain"] | None = setting(
        None, "paper (give-me-some-credit only, and its default) or chain: cleaned, standardised"
    )
    experiment: LookaheadExperimentParameters = Field(
        default_factory=lambda: RetrainingParameters(kind="figure_1"), description="what is run"
    )

    def build(self) -> LookaheadExperiment:
        """Return the experiment."""
        made: LookaheadExperiment = self.experiment.make()
        return made


class CodesParameters(Parameters):
    """Codes of a variational auto-encoder instead of the features (divided by their largest)."""

    describes: ClassVar = "countermove.training.autoencoder:VariationalAutoencoder"
    dimension: Count = library("of the codes")
    hidden: Annotated[tuple[Count, ...], Field(min_length=1)] = library("widths of the layers")
    optimiser: Literal["adam", "sgd"] = library("adam or sgd")
    learning_rate: Positive = library("of the optimiser")
    momentum: Annotated[float, Field(ge=0, lt=1)] = library("of sgd")
    epochs: Count = library("passes over the rows")
    batch_size: Count = library("rows of a step")


class CentroidParameters(Parameters):
    """Class means."""

    kind: Literal["centroid"]


class LogisticParameters(Parameters):
    """Logistic regression of two classes; the penalty leaves the intercept out."""

    kind: Literal["logistic"]
    penalty: NotNegative = setting(1e-2, "of the weights")


class NetworkParameters(Parameters):
    """A network of two classes."""

    kind: Literal["network"]
    hidden: Annotated[list[Count], Field(min_length=1)] = setting([8], "widths of the layers")
    penalty: Positive = setting(1e-2, "of the weights")


LearnerParameters = Annotated[
    CentroidParameters | LogisticParameters | NetworkParameters, Field(discriminator="kind")
]


class QueryParameters(Parameters):
    """A person between two class means, ``share`` of the way from ``start`` to ``goal``."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    goal: str = setting("1", "the class hoped for")
    start: str = setting("2", "the class today")
    share: Annotated[float, Field(ge=0, lt=1)] = setting(0.25, "of the way")


class CollectiveParameters(Parameters):
    """Recourse alone and together over budgets, and the answers people ask for."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = setting(
        None, "folder of the results; null: the dataset"
    )
    dataset: str = setting("digits", "any dataset with a schema")
    label: str | None = setting("digit", "column of the classes; null: the schema's label")
    features: list[str] | None = setting(None, "columns kept; null: all")
    subjects: Annotated[int, Field(ge=4)] | None = setting(None, "people drawn; null: all")
    standardise: bool = setting(False, "centre and scale the features")
    codes: CodesParameters | None = setting(None, "short codes instead of features")
    learner: LearnerParameters = setting(CentroidParameters(kind="centroid"), "what retrains")
    query: QueryParameters = setting(QueryParameters(), "who asks for what")
    budgets: Annotated[list[NotNegative], Field(min_length=2)] = setting(
        BUDGETS, "shares of the distance between start and goal unless absolute"
    )
    absolute: bool = setting(False, "budgets in the units of the features")
    budget_of_answers: Annotated[int, Field(ge=1)] = setting(6, "position of the budget, from 0")
    norm: Norm = setting(2, "1, 2 or inf")
    participation: Annotated[list[Fraction], Field(min_length=1)] = setting(
        [0.1, 0.25, 0.5, 0.75, 1.0], "shares of people who take part"
    )
    draws: Count = setting(20, "how often participants are drawn")
    retrainings: Annotated[int, Field(ge=3)] = setting(201, "watched by who cannot see the learner")
    false_alarm: Probability = setting(0.05, "of the platform's audit")

    def prepare(self) -> SubjectPreparation:
        """Return how the people are prepared."""
        from countermove.experiments.collective.people import SubjectPreparation

        codes = None if self.codes is None else self.codes.make()
        return SubjectPreparation(
            self.dataset, self.label, self.features, self.subjects, self.standardise, codes
        )

    def build(self) -> CollectiveExperiment:
        """Return the experiment."""
        from countermove.experiments.collective.recourse import CollectiveExperiment

        kept = {"absolute", "participation", "draws", "retrainings", "false_alarm", "budgets"}
        return CollectiveExperiment(
            **self.model_dump(include=kept),
            **self.query.model_dump(),
            title=self.name or self.dataset,
            learner=self.learner.kind,
            learner_settings=self.learner.model_dump(exclude={"kind"}),
            answers_at=min(self.budget_of_answers, len(self.budgets) - 1),
            norm=float(self.norm),
        )
