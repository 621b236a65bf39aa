"""Who asks for what, of which learner, and how far people may go for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from countermove.params.base import Parameters, Positive, Probability
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.collective.people import Preparation
    from countermove.experiments.collective.recourse import CollectiveExperiment

NotNegative = Annotated[float, Field(ge=0)]
BUDGETS = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5]
Norm = Annotated[
    Literal[1, 2, "inf"], BeforeValidator(lambda said: "inf" if said == float("inf") else said)
]
Share = Annotated[float, Field(gt=0, le=1)]


class CodesParameters(Parameters):
    """Codes of a variational auto-encoder instead of the features (divided by their largest)."""

    dimension: Count = 10
    hidden: list[Count] = Field([512, 512], min_length=1)
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: Positive = 1e-3
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
    hidden: list[Count] = Field([8], min_length=1)
    penalty: Positive = 1e-2


LearnerParameters = Annotated[
    CentroidParameters | LogisticParameters | NetworkParameters, Field(discriminator="kind")
]


class QueryParameters(Parameters):
    """A person between two class means, ``share`` of the way from ``start`` to ``goal``."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    goal: str = "1"
    start: str = "2"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.25


class CollectiveParameters(Parameters):
    """Recourse alone and together over budgets, and the answers people ask for.

    ``name`` is the folder of the results (None: the dataset). ``label`` is the column of the
    classes (None: the schema's own label, -1 and 1). ``budgets`` are shares of the distance
    between the means of start and goal unless ``absolute``; the answers are given at the
    ``budget_of_answers``, one of them by position from 0.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = None
    dataset: str = "digits"
    label: str | None = "digit"
    features: list[str] | None = None
    subjects: Annotated[int, Field(ge=4)] | None = None
    standardise: bool = False
    codes: CodesParameters | None = None
    learner: LearnerParameters = CentroidParameters(kind="centroid")
    query: QueryParameters = QueryParameters()
    budgets: list[NotNegative] = Field(BUDGETS, min_length=2)
    absolute: bool = False
    budget_of_answers: Annotated[int, Field(ge=1)] = 6
    norm: Norm = 2
    participation: list[Share] = Field([0.1, 0.25, 0.5, 0.75, 1.0], min_length=1)
    draws: Count = 20
    retrainings: Annotated[int, Field(ge=3)] = 201
    false_alarm: Probability = 0.05

    def prepare(self) -> Preparation:
        """Return how the people are prepared."""
        from countermove.experiments.collective.people import Preparation
        from countermove.training.autoencoder import VariationalAutoencoder

        codes = None if self.codes is None else VariationalAutoencoder(**self.codes.model_dump())
        return Preparation(
            self.dataset, self.label, self.features, self.subjects, self.standardise, codes
        )

    def build(self) -> CollectiveExperiment:
        """Return the experiment."""
        from countermove.experiments.collective.recourse import CollectiveExperiment

        return CollectiveExperiment(
            title=self.name or self.dataset,
            learner=self.learner.kind,
            learner_said=self.learner.model_dump(exclude={"kind"}),
            goal=self.query.goal,
            start=self.query.start,
            share=self.query.share,
            budgets=tuple(self.budgets),
            absolute=self.absolute,
            answers_at=min(self.budget_of_answers, len(self.budgets) - 1),
            norm=float(self.norm),
            participation=tuple(self.participation),
            draws=self.draws,
            retrainings=self.retrainings,
            false_alarm=self.false_alarm,
        )
