"""The experiments of the papers that one pipeline runs, by ``paper.experiment.kind``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from countermove.params.base import (
    Count,
    Name,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Seed,
    Seeds,
    Several,
)
from countermove.params.serm_experiments import (
    RunTimesParameters,
    StylisedParameters,
    TradeoffParameters,
)

if TYPE_CHECKING:
    from countermove.experiments import Experiment, Sources
    from countermove.experiments.recourse_text import Encoder

Method = Literal["auto", "linear_program", "gradient", "integer_program", "causal", "exhaustive"]
Candidates = Annotated[int, Field(ge=2)]
Effect = Annotated[float, Field(ge=0, lt=1)]
Payoffs = tuple[NotNegative, NotNegative]


class LemmaParameters(Parameters):
    """Transferability, Lemma A.3: where strategic people end up, under three readings."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:LemmaExperiment"
    kind: Literal["lemma"]
    thresholds: Several[Effect] = (0.5, 0.05, 0.95)
    budget: Annotated[float, Field(gt=0, le=1)] = 0.2
    draws: Count = 4000000
    bins: Count = 50


class DagParameters(Parameters):
    """Transferability, Figure 4: structural models, as in the paper and as released."""

    describes: ClassVar = "countermove.experiments.transfer.dag:DagExperiment"
    kind: Literal["dag"]
    cases: Several[Literal["CS1", "CS2", "TS1", "TS2"]] = ("CS1", "CS2", "TS1", "TS2")
    readings: Several[Literal["paper", "released"]] = ("paper", "released")
    seeds: Seeds = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    candidates: Candidates = 100
    large: Annotated[int, Field(ge=1_000)] = 200000
    failure_probability: Probability = 0.05


class LenderParameters(Parameters):
    """The lender's logistic regression; the released code has L2 with C = 1."""

    describes: ClassVar = "countermove.experiments.transfer.fico:Lender"
    penalty: Literal["l1", "l2"] = "l2"
    inverse_strength: Positive = 1.0


class DynamicsParameters(Parameters):
    """What a decision and an outcome do to a score."""

    describes: ClassVar = "countermove.experiments.transfer.fico:ScoreDynamics"
    decision_effect: Effect = 0.01
    label_effect: Effect = 0.0


class FicoParameters(Parameters):
    """Transferability, Figures 3, 5 and 6: lenders × seeds × steps on people with a score."""

    describes: ClassVar = "countermove.experiments.transfer.fico:FicoExperiment"
    kind: Literal["fico"]
    lenders: Annotated[dict[str, LenderParameters], Field(min_length=1)] = {
        "plain": LenderParameters()
    }
    dataset: str = "fico"
    seeds: Seeds = (0, 1, 2, 3, 4)
    steps: Count = 6
    dynamics: DynamicsParameters = DynamicsParameters()
    candidates: Candidates = 100
    failure_probability: Probability = 0.05


class ReplicatorParameters(Parameters):
    """Transferability, Figure 7 and App. F: utility matrices × initial shares of label +1.

    ``utilities`` maps a name to ``[[refused bad, accepted bad], [refused good, accepted good]]``.
    """

    describes: ClassVar = "countermove.experiments.transfer.minimise:ReplicatorExperiment"
    kind: Literal["replicator"]
    utilities: dict[str, tuple[Payoffs, Payoffs]] = {
        "accuracy": ((1.0, 0.0), (0.0, 1.0)),
        "accepted good thrive": ((0.5, 0.5), (0.2, 1.0)),
        "acceptance pays": ((0.3, 1.0), (0.2, 0.8)),
        "only accepted good thrive": ((0.2, 0.2), (0.2, 1.0)),
    }
    shares: Several[Probability] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    bounds: tuple[float, float] = (-5.0, 5.0)


class BanditParameters(Parameters):
    """Transferability, App. E.2: descents that only see the losses of deployed rules."""

    describes: ClassVar = "countermove.experiments.transfer.minimise:BanditExperiment"
    kind: Literal["bandit"]
    steps: dict[
        Literal["one_point", "one_point_baseline", "two_point"],
        Several[Positive],
    ] = {"one_point": (0.0005,), "one_point_baseline": (0.0005, 0.0015), "two_point": (0.003,)}
    deployments: Annotated[int, Field(ge=2)] = 20000
    probe: Probability = 0.3
    radius: Positive = 5.0
    runs: Count = 10


class TightnessParameters(Parameters):
    """Transferability, App. G: every bound over the truth in random populations."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:TightnessExperiment"
    kind: Literal["tightness"]
    populations: Count = 2000
    budget: Annotated[float, Field(gt=0, lt=0.5)] = 0.2


class HighestF1Parameters(Parameters):
    """The threshold of the highest F1 on selection rows."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:HighestF1"
    kind: Literal["highest_f1"]


class PromiseParameters(Parameters):
    """The highest F1 among the thresholds that keep the promise."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:Promise"
    kind: Literal["promise"]
    miss_rate: Probability = 0.05
    failure_probability: Probability = 0.05


class PrecisionParameters(Parameters):
    """The threshold whose precision on selection rows is nearest to ``wanted``."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:NearestPrecision"
    kind: Literal["precision"]
    wanted: Probability = 0.65


class FixedParameters(Parameters):
    """The threshold ``at``."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:Fixed"
    kind: Literal["fixed"]
    at: Probability = 0.5


RuleParameters = Annotated[
    HighestF1Parameters | PromiseParameters | PrecisionParameters | FixedParameters,
    Field(discriminator="kind"),
]


class RecourseTrainingParameters(Parameters):
    """The network and its training; what is left out is the classifier's own.

    ``class_weight`` gives the weights of the refused and of the favourable class in the
    loss of the labels (never in the recourse term), ``selection`` what epochs are chosen by.
    """

    hidden: tuple[Count, ...] | None = None
    dropout: Effect | None = None
    class_weight: tuple[Positive, Positive] | None = None
    selection: Literal["f1", "promised_f1", "loss", "accuracy"] | None = None
    learning_rate: Positive | None = None
    batch_size: Count | None = None
    max_epochs: Count | None = None
    patience: Count | None = None

    def build(self, *args: Any, **given: Any) -> dict[str, Any]:
        """Return the arguments of the classifier that were set."""
        own = self.model_dump(exclude_none=True)
        if self.class_weight is not None:
            own["class_weight"] = dict(zip((-1.0, 1.0), self.class_weight, strict=True))
        if self.max_epochs is not None and self.patience is None:
            own["patience"] = self.max_epochs
        return own


class CausesParameters(Parameters):
    """What a feature follows from; slopes are fitted on the training rows."""

    causes: list[str] = Field(min_length=1)

    def build(self, *args: Any, **given: Any) -> dict[str, Any]:
        """Return what `CausalModel.from_mapping` reads."""
        return self.model_dump()


class CaseParameters(Parameters):
    """One table: the sizes of its parts, what people can change, groups, causes."""

    describes: ClassVar = "countermove.experiments.recourse.grid:TableCase"
    train: Count
    selection: Count
    calibration: Count
    test: Count
    actions: dict[str, Literal["up", "down", "both"]] = Field(min_length=1)
    training: RecourseTrainingParameters = RecourseTrainingParameters()
    group: str | None = None
    reference: str | None = None
    causal: dict[str, CausesParameters] | None = None


GERMAN = CaseParameters(
    train=600,
    selection=200,
    calibration=100,
    test=100,
    actions={"credit_amount": "both", "age_years": "up"},
)
"""A table that comes along, for first steps; the paper's are in ``conf/paper``."""


class RecourseExperimentParameters(Parameters):
    """Recourse: tables × splits × weights × sizes of actions, every rule and search in each cell.

    With ``audited`` that search's actions are also tested, with noise and once more with each
    of the ``margins``; ``examples`` people per cell are shown with their advice.
    """

    describes: ClassVar = "countermove.experiments.recourse.grid:RecourseExperiment"
    kind: Literal["recourse"] = "recourse"
    axis: Literal["recourse_weight", "largest_action", "threshold"] = "recourse_weight"
    cases: Annotated[dict[str, CaseParameters], Field(min_length=1)] = {"german-recourse": GERMAN}
    splits: Seeds = (0, 21, 42)
    weights: Several[NotNegative] = (0.0, 0.8)
    largest_actions: Several[Positive] = (0.75,)
    rules: Annotated[list[RuleParameters], Field(min_length=1)] = [
        HighestF1Parameters(kind="highest_f1")
    ]
    methods: Several[Method] = ("linear_program", "gradient", "exhaustive")
    promised_by: Method = "linear_program"
    audited: Method | None = None
    margins: tuple[Probability, ...] = ()
    examples: Seed = 0
    training: RecourseTrainingParameters = RecourseTrainingParameters()
    skip_missing: bool = False


class MiniLMParameters(Parameters):
    """The sentence encoder of the extra ``countermove[text]``, or of a ``folder``."""

    kind: Literal["minilm"]
    folder: str | None = None

    def build(self, *args: Any, **given: Any) -> Callable[[], Encoder]:
        """Return what loads the encoder."""
        from functools import partial

        from countermove.experiments.recourse_text import MiniLM

        return partial(MiniLM, self.folder)


class HashedWordsParameters(Parameters):
    """Counts of words, which need no package."""

    kind: Literal["words"]
    n_features: Count = 1024

    def build(self, *args: Any, **given: Any) -> Callable[[], Encoder]:
        """Return what makes the encoder."""
        from functools import partial

        from countermove.experiments.recourse_text import HashedWords

        return partial(HashedWords, self.n_features)


class TextTrainingParameters(Parameters):
    """Learning rate and epochs; no ``hidden`` layer is a linear score."""

    hidden: tuple[Count, ...] = ()
    dropout: Effect = 0.3
    learning_rate: Positive = 0.02
    batch_size: Count = 64
    max_epochs: Count = 40
    patience: Count = 10

    def build(self, *args: Any, **given: Any) -> dict[str, Any]:
        """Return the network and the arguments of the trainer."""
        return self.model_dump()


class TextParameters(Parameters):
    """Recourse, Table 5: texts × splits × weights.

    ``dataset`` is a CSV or parquet file in ``data/01_raw``; ``favourable`` is the label authors
    hope for. ``wordnet`` is the folder that holds corpora/wordnet, None for where nltk looks.
    """

    describes: ClassVar = "countermove.experiments.recourse_text:TextExperiment"
    kind: Literal["text"] = "text"
    dataset: str = "film-reviews"
    text: str = "text"
    label: str = "label"
    favourable: str = "fresh"
    encoder: Annotated[MiniLMParameters | HashedWordsParameters, Field(discriminator="kind")] = (
        MiniLMParameters(kind="minilm")
    )
    wordnet: str | None = None
    train: Count = 1_500
    selection: Count = 500
    test: Count = 500
    candidates: Count = 10
    splits: Seeds = (0, 21, 42)
    weights: Several[NotNegative] = (0.0, 0.25, 0.8)
    thresholds: Several[Literal["highest_f1"] | Probability] = ("highest_f1",)
    training: TextTrainingParameters = TextTrainingParameters()


class PaperParameters(Parameters):
    """One experiment of a paper; the figures and tables of the papers are in ``conf/paper``."""

    name: Name | None = None
    experiment: Annotated[
        LemmaParameters
        | DagParameters
        | FicoParameters
        | ReplicatorParameters
        | BanditParameters
        | TightnessParameters
        | RunTimesParameters
        | StylisedParameters
        | TradeoffParameters
        | RecourseExperimentParameters
        | TextParameters,
        Field(discriminator="kind"),
    ] = ReplicatorParameters(kind="replicator")

    @property
    def title(self) -> str:
        """What figures are called: the folder of the results."""
        return self.name or self.experiment.kind

    def build(self, *args: Any, **given: Any) -> Experiment[Sources]:
        """Return the experiment."""
        made: Experiment[Sources] = self.experiment.build()
        return made
