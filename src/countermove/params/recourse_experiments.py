"""What an experiment of the recourse paper varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from countermove.params.base import Parameters, Positive, Probability
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.recourse.grid import Case, RecourseExperiment
    from countermove.experiments.recourse.thresholds import Rule

Weight = Annotated[float, Field(ge=0)]
Method = Literal["linear_program", "gradient", "integer_program", "causal", "exhaustive"]


class HighestF1Parameters(Parameters):
    """The threshold of the highest F1 on selection rows."""

    kind: Literal["highest_f1"]

    def build(self) -> Rule:
        """Return the rule."""
        from countermove.experiments.recourse.thresholds import HighestF1

        return HighestF1()


class PromiseParameters(Parameters):
    """The highest F1 among the thresholds that keep the promise."""

    kind: Literal["promise"]
    miss_rate: Probability = 0.05
    failure_probability: Probability = 0.05

    def build(self) -> Rule:
        """Return the rule."""
        from countermove.experiments.recourse.thresholds import Promise

        return Promise(self.miss_rate, self.failure_probability)


class PrecisionParameters(Parameters):
    """The threshold whose precision on selection rows is nearest to ``wanted``."""

    kind: Literal["precision"]
    wanted: Probability = 0.65

    def build(self) -> Rule:
        """Return the rule."""
        from countermove.experiments.recourse.thresholds import NearestPrecision

        return NearestPrecision(self.wanted)


class FixedParameters(Parameters):
    """The threshold ``at``."""

    kind: Literal["fixed"]
    at: Probability = 0.5

    def build(self) -> Rule:
        """Return the rule."""
        from countermove.experiments.recourse.thresholds import Fixed

        return Fixed(self.at)


RuleParameters = Annotated[
    HighestF1Parameters | PromiseParameters | PrecisionParameters | FixedParameters,
    Field(discriminator="kind"),
]


class RecourseTrainingParameters(Parameters):
    """The network and its training; what a table leaves out is the experiment's.

    ``class_weight`` gives the weights of the refused and of the favourable class in the
    loss of the labels (never in the recourse term), ``selection`` what epochs are chosen by.
    """

    hidden: tuple[Count, ...] | None = None
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    class_weight: tuple[Positive, Positive] | None = None
    selection: Literal["f1", "promised_f1", "loss", "accuracy"] | None = None
    learning_rate: Positive | None = None
    batch_size: Count | None = None
    max_epochs: Count | None = None
    patience: Count | None = None

    def build(self) -> dict[str, Any]:
        """Return the arguments of the classifier that were said."""
        said = self.model_dump(exclude_none=True)
        if self.class_weight is not None:
            said["class_weight"] = dict(zip((-1.0, 1.0), self.class_weight, strict=True))
        if self.max_epochs is not None and self.patience is None:
            said["patience"] = self.max_epochs
        return said


class CausesParameters(Parameters):
    """What a feature follows from; slopes are fitted on the training rows."""

    causes: list[str] = Field(min_length=1)


class CaseParameters(Parameters):
    """One table: the sizes of its parts, what people can change, groups, causes."""

    train: Count
    selection: Count
    calibration: Count
    test: Count
    actions: dict[str, Literal["up", "down", "both"]] = Field(min_length=1)
    training: RecourseTrainingParameters = RecourseTrainingParameters()
    group: str | None = None
    reference: str | None = None
    causal: dict[str, CausesParameters] | None = None

    def build(self) -> Case:
        """Return the case."""
        from countermove.experiments.recourse.grid import Case

        return Case(**self.model_dump(exclude={"training"}), settings=self.training.build())


GERMAN = CaseParameters(
    train=600,
    selection=200,
    calibration=100,
    test=100,
    actions={"credit_amount": "both", "age_years": "up"},
)
"""A table that comes along, for first steps; the paper's are in ``conf/paper``."""


class RecourseExperimentsParameters(Parameters):
    """Tables × splits × weights × sizes of actions, every rule and search in each cell.

    ``name`` is the folder of the results, ``axis`` what they are drawn against. With
    ``audited`` that search's actions are also tested, with noise and once more with each
    of the ``margins``; ``examples`` people per cell are shown with their advice.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "recourse_experiments"
    axis: Literal["recourse_weight", "largest_action", "threshold"] = "recourse_weight"
    cases: dict[str, CaseParameters] = Field({"german-recourse": GERMAN}, min_length=1)
    splits: list[Annotated[int, Field(ge=0)]] = Field([0, 21, 42], min_length=1)
    weights: list[Weight] = Field([0.0, 0.8], min_length=1)
    largest_actions: list[Positive] = Field([0.75], min_length=1)
    rules: list[RuleParameters] = Field([HighestF1Parameters(kind="highest_f1")], min_length=1)
    methods: list[Method] = Field(["linear_program", "gradient", "exhaustive"], min_length=1)
    promised_by: Method = "linear_program"
    audited: Method | None = None
    margins: list[Probability] = Field([])
    examples: Annotated[int, Field(ge=0)] = 0
    training: RecourseTrainingParameters = RecourseTrainingParameters()
    skip_missing: bool = False

    @property
    def datasets(self) -> list[str]:
        """The names of the tables."""
        return list(self.cases)

    def build(self) -> RecourseExperiment:
        """Return the experiment."""
        from countermove.experiments.recourse.grid import RecourseExperiment

        return RecourseExperiment(
            **self.model_dump(exclude={"name", "axis", "cases", "rules", "training"}),
            cases={name: case.build() for name, case in self.cases.items()},
            rules=[rule.build() for rule in self.rules],
            settings=self.training.build(),
        )
