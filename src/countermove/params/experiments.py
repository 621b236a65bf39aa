"""The experiments on people who look ahead or act together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from countermove.params.base import (
    Count,
    Name,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Seeds,
    Several,
    library,
    part,
    setting,
)

if TYPE_CHECKING:
    from countermove.experiments.collective.people import SubjectPreparation
    from countermove.experiments.collective.recourse import CollectiveExperiment
    from countermove.experiments.lookahead.people import LookaheadExperiment

Fraction = Annotated[float, Field(gt=0, le=1)]
Fractions = Several[Fraction]
Columns = tuple[str, ...]
Mixture = Annotated[dict[Annotated[int, Field(ge=0, le=50)], NotNegative], Field(min_length=1)]
Mixtures = Several[Mixture]
Norm = Annotated[
    Literal[1, 2, "inf"], BeforeValidator(lambda given: "inf" if given == float("inf") else given)
]
BUDGETS = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]


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
    response_strengths: Several[Positive] = library("people move by this times the weights")
    columns: Columns = library("what people change; none: all they can")
    respond_below: str | None = library(
        "people below its median respond; null: the second that divides them"
    )
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
    respond_below: str | None = library(
        "people below its median respond; null: the second that divides them"
    )
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
    penalties: Several[NotNegative] = library("in the members' utility")
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
    strengths: Several[float] = library("of the shift")
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
    experiment: LookaheadExperimentParameters = part(
        lambda: RetrainingParameters(kind="figure_1"), "what is run"
    )

    def build(self, *args: Any, **given: Any) -> LookaheadExperiment:
        """Return the experiment."""
        made: LookaheadExperiment = self.experiment.build()
        return made


class CodesParameters(Parameters):
    """Codes of a variational auto-encoder instead of the features (divided by their largest)."""

    describes: ClassVar = "countermove.training.autoencoder:VariationalAutoencoder"
    dimension: Count = library("of the codes")
    hidden: Several[Count] = library("widths of the layers")
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

    goal: str = setting("favourable", "the class hoped for")
    start: str = setting("unfavourable", "the class today")
    share: Annotated[float, Field(ge=0, lt=1)] = setting(0.25, "of the way")


OUTCOMES = {"1": "favourable", "-1": "unfavourable"}


class CollectiveParameters(Parameters):
    """Recourse alone and together over budgets, and the answers people ask for."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = setting(
        None, "folder of the results; null: the dataset"
    )
    dataset: str = Field(description="any dataset with a schema")
    label: str | None = setting(None, "column of the classes; null: the schema's outcome")
    features: list[str] | None = setting(None, "columns kept; null: all")
    subjects: Annotated[int, Field(ge=4)] | None = setting(
        None, "people drawn; null: all, or 2,000 of more than 6,000"
    )
    standardise: bool | None = setting(
        None, "centre and scale the features; null: yes, unless a label is named"
    )
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

        codes = None if self.codes is None else self.codes.build()
        scaled = self.label is None if self.standardise is None else self.standardise
        return SubjectPreparation(
            self.dataset, self.label, self.features, self.subjects, scaled, codes
        )

    def build(self, *args: Any, **given: Any) -> CollectiveExperiment:
        """Return the experiment."""
        from countermove.experiments.collective.recourse import CollectiveExperiment

        kept = {"absolute", "participation", "draws", "retrainings", "false_alarm", "budgets"}
        query = self.query.model_dump()
        if self.label is None:  # the schema's outcome may be called by its codes, too
            query |= {name: OUTCOMES.get(query[name], query[name]) for name in ("goal", "start")}
        return CollectiveExperiment(
            **self.model_dump(include=kept),
            **query,
            title=self.name or self.dataset,
            learner=self.learner.kind,
            learner_settings=self.learner.model_dump(exclude={"kind"}),
            answers_at=min(self.budget_of_answers, len(self.budgets) - 1),
            norm=float(self.norm),
        )
