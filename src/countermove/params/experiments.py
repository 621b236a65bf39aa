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
    mixtures: Mixtures = ({1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9})
    response_strength: Positive = 0.5
    columns: Columns = ()
    rounds: Count = 25
    seeds: Seeds = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    solver: Literal["exact", "published"] = "exact"
    groups: Literal["drawn", "weights"] = "drawn"
    start: Literal["fitted", "published"] | None = None
    penalty: NotNegative | None = None
    penalise_intercept: bool = True


class RatesParameters(Parameters):
    """Theorem 3 and Corollary 1, where part of the people respond."""

    describes: ClassVar = "countermove.experiments.lookahead.retraining:RatesExperiment"
    kind: Literal["theorem_3"]
    mixtures: Mixtures | None = None
    response_strengths: Several[Positive] = (10.0, 50.0)
    columns: Columns = ()
    respond_below: str | None = None
    rounds: Count = 40
    penalty: NotNegative | None = None
    penalise_intercept: bool = False


class BeliefsParameters(Parameters):
    """People who look ahead with a wrong penalty, or from a sample of rows."""

    describes: ClassVar = "countermove.experiments.lookahead.retraining:BeliefsExperiment"
    kind: Literal["beliefs"]
    shares: Mixture = {2: 1.0}
    response_strength: Positive = 10.0
    columns: Columns = ()
    respond_below: str | None = None
    believed_penalties: tuple[Positive, ...] = (10.0, 100.0, 1000.0)
    believed_rows: tuple[Count, ...] = (1000, 3000, 10000)
    seeds: Seeds = (0, 1, 2, 3, 4)
    rounds: Count = 100


class ImportanceParameters(Parameters):
    """Figure 5: the accuracy lost when one column is replaced by noise."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:ImportanceExperiment"
    kind: Literal["figure_5"]
    columns: Columns = ()
    seeds: Seeds = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2


class CoordinationParameters(Parameters):
    """Figure 2: the benefit of coordination, by how much members mind the model's length."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:CoordinationExperiment"
    kind: Literal["figure_2"]
    columns: Columns = ()
    penalties: Several[NotNegative] = (
        0.0,
        0.1111111111111111,
        0.2222222222222222,
        0.3333333333333333,
        0.4444444444444444,
        0.5555555555555556,
        0.6666666666666666,
        0.7777777777777777,
        0.8888888888888888,
        1.0,
    )
    dropped: Columns = ()
    reach: Positive = 1.0
    copies: tuple[Positive, ...] = (1.0, 10.0, 100.0)
    max_steps: Count = 20
    published: bool = False


class SizeParameters(Parameters):
    """Figure 3: what collectives of each size gain against the learner."""

    describes: ClassVar = "countermove.experiments.lookahead.columns:SizeExperiment"
    kind: Literal["figure_3"]
    columns: Columns = ()
    participation: Fractions = (
        0.01,
        0.11888888888888888,
        0.22777777777777777,
        0.33666666666666667,
        0.44555555555555554,
        0.5544444444444444,
        0.6633333333333333,
        0.7722222222222221,
        0.8811111111111111,
        0.99,
    )
    seeds: Seeds = (0,)
    reach: Positive = 2.5
    dropped: Columns = ()
    max_steps: Count = 30
    tolerance: Positive = 0.0001
    published: bool = False


class ScalingParameters(Parameters):
    """Figure 4: fixed strategies at growing size."""

    describes: ClassVar = "countermove.experiments.lookahead.scaling:ScalingExperiment"
    kind: Literal["figure_4"]
    columns: Columns = ()
    strengths: Several[float] = (0.559, 0.34, 0.2159)
    participation: Fractions = (
        0.1,
        0.14684210526315788,
        0.1936842105263158,
        0.24052631578947367,
        0.2873684210526316,
        0.3342105263157895,
        0.3810526315789473,
        0.4278947368421052,
        0.4747368421052631,
        0.521578947368421,
        0.5684210526315789,
        0.6152631578947368,
        0.6621052631578946,
        0.7089473684210525,
        0.7557894736842105,
        0.8026315789473684,
        0.8494736842105263,
        0.8963157894736842,
        0.9431578947368421,
        0.99,
    )
    target_participation: Fraction = 0.3
    target_strength: float = 0.552
    dropped: Columns = ()
    outliers: Positive = 10.0
    published: bool = False
    trials: Count = 3


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

    name: Name = "lookahead"
    dataset: str = Field(description="any dataset with a schema")
    preparation: Literal["paper", "chain"] | None = None
    experiment: LookaheadExperimentParameters = RetrainingParameters(kind="figure_1")

    def build(self, *args: Any, **given: Any) -> LookaheadExperiment:
        """Return the experiment."""
        made: LookaheadExperiment = self.experiment.build()
        return made


class CodesParameters(Parameters):
    """Codes of a variational auto-encoder instead of the features (divided by their largest)."""

    describes: ClassVar = "countermove.experiments.collective.autoencoder:VariationalAutoencoder"
    dimension: Count = 10
    hidden: Several[Count] = (512, 512)
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 0.001
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    epochs: Count = 30
    batch_size: Count = 128


class CentroidParameters(Parameters):
    """Class means."""

    kind: Literal["centroid"]


class LogisticParameters(Parameters):
    """Logistic regression of two classes; the penalty leaves the intercept out."""

    kind: Literal["logistic"]
    penalty: NotNegative = 1e-2


class NetworkParameters(Parameters):
    """A network of two classes."""

    kind: Literal["network"]
    hidden: Annotated[list[Count], Field(min_length=1)] = [8]
    penalty: Positive = 1e-2


LearnerParameters = Annotated[
    CentroidParameters | LogisticParameters | NetworkParameters, Field(discriminator="kind")
]


class QueryParameters(Parameters):
    """A person between two class means, ``share`` of the way from ``start`` to ``goal``."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    goal: str = "favourable"
    start: str = "unfavourable"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.25


OUTCOMES = {"1": "favourable", "-1": "unfavourable"}


class CollectiveParameters(Parameters):
    """Recourse alone and together over budgets, and the answers people ask for."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    dataset: str = Field(description="any dataset with a schema")
    label: str | None = None
    features: list[str] | None = None
    subjects: Annotated[int, Field(ge=4)] | None = None
    standardise: bool | None = None
    codes: CodesParameters | None = None
    learner: LearnerParameters = CentroidParameters(kind="centroid")
    query: QueryParameters = QueryParameters()
    budgets: Annotated[list[NotNegative], Field(min_length=2)] = BUDGETS
    absolute: bool = False
    budget_of_answers: Annotated[int, Field(ge=1)] = 6
    norm: Norm = 2
    participation: Annotated[list[Fraction], Field(min_length=1)] = [0.1, 0.25, 0.5, 0.75, 1.0]
    draws: Count = 20
    retrainings: Annotated[int, Field(ge=3)] = 201
    false_alarm: Probability = 0.05

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
