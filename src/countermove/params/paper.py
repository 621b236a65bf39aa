"""The experiments of the papers that one pipeline runs, by ``paper.experiment.kind``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from countermove.params.axes import (
    BurdenParameters,
    CostParameters,
    QuadraticCostParameters,
    SocialParameters,
)
from countermove.params.base import (
    Count,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    library,
    needed,
    part,
    setting,
)
from countermove.params.experiments import (
    Name,
    PopulationParameters,
    SamplingParameters,
    Seed,
    Seeds,
    Strength,
)
from countermove.params.renamed import FOLDERS
from countermove.params.serm import TrainingParameters

if TYPE_CHECKING:
    from countermove.experiments import Experiment, Sources
    from countermove.experiments.recourse.grid import TableCase
    from countermove.experiments.serm.tradeoff import TradeOffCurve
    from countermove.recourse.text import Encoder

Method = Literal["linear_program", "gradient", "integer_program", "causal", "exhaustive"]
Candidates = Annotated[int, Field(ge=2)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Effect = Annotated[float, Field(ge=0, lt=1)]
Payoffs = tuple[NotNegative, NotNegative]


class ExperimentParameters(Parameters):
    """One kind of experiment."""

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        made: Experiment[Sources] = self.make()
        return made


class LemmaParameters(ExperimentParameters):
    """Transferability, Lemma A.3: where strategic people end up, under three readings."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:LemmaExperiment"
    kind: Literal["lemma"]
    thresholds: Annotated[tuple[Effect, ...], Field(min_length=1)] = library("of the rule")
    budget: Annotated[float, Field(gt=0, le=1)] = library("of the people")
    draws: Count = library("people per threshold and reading")
    bins: Count = library("of the histogram")


class DagParameters(ExperimentParameters):
    """Transferability, Figure 4: structural models, as in the paper and as released."""

    describes: ClassVar = "countermove.experiments.transfer.dag:DagExperiment"
    kind: Literal["dag"]
    cases: Annotated[tuple[Literal["CS1", "CS2", "TS1", "TS2"], ...], Field(min_length=1)] = (
        library("covariate and target shifts")
    )
    readings: Annotated[tuple[Literal["paper", "released"], ...], Field(min_length=1)] = library(
        "as written, as released"
    )
    seeds: Seeds = library("repetitions at the published size")
    candidates: Candidates = library("thresholds compared")
    large: Annotated[int, Field(ge=1_000)] = library("rows of the large sample")
    failure_probability: Probability = library("of the interval of the difference")


class LenderParameters(Parameters):
    """The lender's logistic regression; the released code has L2 with C = 1."""

    describes: ClassVar = "countermove.experiments.transfer.fico:Lender"
    penalty: Literal["l1", "l2"] = library("l1 or l2")
    inverse_strength: Positive = library("scikit-learn's C")


class DynamicsParameters(Parameters):
    """What a decision and an outcome do to a score."""

    describes: ClassVar = "countermove.experiments.transfer.fico:ScoreDynamics"
    decision_effect: Effect = library("of an approval")
    label_effect: Effect = library("of an outcome")


class FicoParameters(ExperimentParameters):
    """Transferability, Figures 3, 5 and 6: lenders × seeds × steps on people with a score."""

    describes: ClassVar = "countermove.experiments.transfer.fico:FicoExperiment"
    kind: Literal["fico"]
    lenders: Annotated[dict[str, LenderParameters], Field(min_length=1)] = Field(
        default_factory=lambda: {"plain": LenderParameters()}, description="by name"
    )
    dataset: str = library("table with score and race")
    seeds: Seeds = library("repetitions")
    steps: Count = library("realities, the first included")
    dynamics: DynamicsParameters = part(DynamicsParameters, "how scores answer")
    candidates: Candidates = library("thresholds compared")
    failure_probability: Probability = library("of the interval of the difference")

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        lenders = {name: lender.make() for name, lender in self.lenders.items()}
        made: Experiment[Sources] = self.make(lenders=lenders)
        return made


class ReplicatorParameters(ExperimentParameters):
    """Transferability, Figure 7 and App. F: utility matrices × initial shares of label +1.

    ``utilities`` maps a name to ``[[refused bad, accepted bad], [refused good, accepted good]]``.
    """

    describes: ClassVar = "countermove.experiments.transfer.minimise:ReplicatorExperiment"
    kind: Literal["replicator"]
    utilities: dict[str, tuple[Payoffs, Payoffs]] = library("matrices by name")
    shares: Annotated[tuple[Probability, ...], Field(min_length=1)] = library(
        "initial, of label +1"
    )
    bounds: tuple[float, float] = library("thresholds allowed")


class BanditParameters(ExperimentParameters):
    """Transferability, App. E.2: descents that only see the losses of deployed rules."""

    describes: ClassVar = "countermove.experiments.transfer.minimise:BanditExperiment"
    kind: Literal["bandit"]
    steps: dict[
        Literal["one_point", "one_point_baseline", "two_point"],
        Annotated[tuple[Positive, ...], Field(min_length=1)],
    ] = library("step lengths per method")
    deployments: Annotated[int, Field(ge=2)] = library("of a run")
    probe: Probability = library("how far beside the guess is looked")
    radius: Positive = library("of the guesses allowed")
    runs: Count = library("repetitions per method")


class TightnessParameters(ExperimentParameters):
    """Transferability, App. G: every bound over the truth in random populations."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:TightnessExperiment"
    kind: Literal["tightness"]
    populations: Count = library("random populations of either shift")
    budget: Annotated[float, Field(gt=0, lt=0.5)] = library("of the strategic people")


class SyntheticParameters(Parameters):
    """The fabricated table on which the batch size varies."""

    describes: ClassVar = "countermove.experiments.serm.run_times:Synthetic"
    rows: Annotated[int, Field(ge=8)] = library("of the table")
    features: Annotated[int, Field(ge=2)] = library("of the table")
    batch_sizes: Annotated[tuple[Count, ...], Field(min_length=1)] = library("what varies")
    epochs: Count = library("of each run")


class RunTimesParameters(ExperimentParameters):
    """SERM, Figure 4: training by every way of finding people's answers, timed."""

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


class StylisedParameters(ExperimentParameters):
    """SERM, Figure 3: costs chosen (flexible), costs unknown, or moves on a manifold."""

    describes: ClassVar = "countermove.experiments.serm.stylised:Stylised"
    kind: Literal["stylised"]
    picture: Literal["flexible", "unknown", "manifold"] = library("which of the three")
    repetitions: Count = library("tables and starts")
    rows: Annotated[int, Field(ge=50)] | None = library("people in each; null: as published")


class SharesParameters(Parameters):
    """Shares of the rows to train on, to stop and choose by, and to report on."""

    train: Fraction = setting(0.5, "to train on")
    validation: Fraction = setting(0.25, "to stop and choose by")
    test: Fraction = setting(0.25, "to report on")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.train + self.validation + self.test
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"the shares must sum to 1, they sum to {total:g}")
        return self


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

    def build(self) -> list[float]:
        """Return the strengths."""
        import numpy as np

        return [float(value) for value in np.geomspace(self.lowest, self.highest, self.points)]


class CurveParameters(Parameters):
    """One population: its strengths (a list, or a range) and its training."""

    response: PopulationParameters = setting(PopulationParameters(), "the people")
    strengths: StrengthsParameters | Annotated[list[Strength], Field(min_length=1)] = setting(
        StrengthsParameters(lowest=1e-3, highest=0.3), "of the regulariser"
    )
    training: TrainingParameters = part(TrainingParameters, "how to optimise")
    epochs: Count | None = setting(None, "of strengths above 0; null: training.max_epochs")
    settle: bool | None = setting(
        None, "hard decisions settle the intercept; null: except for published"
    )

    def build(self) -> TradeOffCurve:
        """Return the curve."""
        from countermove.experiments.serm.tradeoff import TradeOffCurve

        given = self.strengths
        strengths = given.build() if isinstance(given, StrengthsParameters) else given
        settings: dict[str, Any] = self.training.model_dump()
        settings |= self.response.model_dump(exclude={"kind"}) | {"calibrate": self.settle}
        words = {None: "usual", True: "intercept settled", False: "intercept as trained"}
        return TradeOffCurve(
            self.response.kind, strengths, settings, self.epochs, words[self.settle]
        )


class TradeoffParameters(SamplingParameters):
    """Accuracy against one measure of social good: datasets × splits × populations × strengths."""

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
    tolerance: Annotated[float, Field(ge=0, lt=1)] = setting(0.01, "accuracy that may be given up")
    shares: SharesParameters = setting(SharesParameters(), "of the rows")

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        from countermove.experiments.serm.tradeoff import TradeOff

        return TradeOff(
            **self.sampling(),
            **self.model_dump(include={"splits", "tolerance", "shares"}),
            regulariser=self.regulariser.build(),
            curves=[curve.build() for curve in self.curves],
            cost=self.cost.build(),
        )


class ThresholdParameters(Parameters):
    """How the threshold is chosen on selection and calibration rows."""


class HighestF1Parameters(ThresholdParameters):
    """The threshold of the highest F1 on selection rows."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:HighestF1"
    kind: Literal["highest_f1"]


class PromiseParameters(ThresholdParameters):
    """The highest F1 among the thresholds that keep the promise."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:Promise"
    kind: Literal["promise"]
    miss_rate: Probability = library("tolerated share without recourse")
    failure_probability: Probability = library("chance that the promise is wrong")


class PrecisionParameters(ThresholdParameters):
    """The threshold whose precision on selection rows is nearest to ``wanted``."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:NearestPrecision"
    kind: Literal["precision"]
    wanted: Probability = library("precision")


class FixedParameters(ThresholdParameters):
    """The threshold ``at``."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:Fixed"
    kind: Literal["fixed"]
    at: Probability = setting(0.5, "probability from which people are approved")


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

    def build(self) -> dict[str, Any]:
        """Return the arguments of the classifier that were given."""
        given = self.model_dump(exclude_none=True)
        if self.class_weight is not None:
            given["class_weight"] = dict(zip((-1.0, 1.0), self.class_weight, strict=True))
        if self.max_epochs is not None and self.patience is None:
            given["patience"] = self.max_epochs
        return given


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

    def build(self) -> TableCase:
        """Return the case."""
        from countermove.experiments.recourse.grid import TableCase

        return TableCase(**self.model_dump(exclude={"training"}), settings=self.training.build())


GERMAN = CaseParameters(
    train=600,
    selection=200,
    calibration=100,
    test=100,
    actions={"credit_amount": "both", "age_years": "up"},
)
"""A table that comes along, for first steps; the paper's are in ``conf/paper``."""


class RecourseExperimentParameters(ExperimentParameters):
    """Recourse: tables × splits × weights × sizes of actions, every rule and search in each cell.

    With ``audited`` that search's actions are also tested, with noise and once more with each
    of the ``margins``; ``examples`` people per cell are shown with their advice.
    """

    describes: ClassVar = "countermove.experiments.recourse.grid:RecourseExperiment"
    kind: Literal["recourse"] = "recourse"
    axis: Literal["recourse_weight", "largest_action", "threshold"] = library("drawn against this")
    cases: Annotated[dict[str, CaseParameters], Field(min_length=1)] = setting(
        {"german-recourse": GERMAN}, "the tables"
    )
    splits: Seeds = library("seeds, one split and one start each")
    weights: Annotated[tuple[NotNegative, ...], Field(min_length=1)] = library(
        "of the recourse term"
    )
    largest_actions: Annotated[tuple[Positive, ...], Field(min_length=1)] = library("in deviations")
    rules: Annotated[list[RuleParameters], Field(min_length=1)] = setting(
        [HighestF1Parameters(kind="highest_f1")], "ways to choose the threshold"
    )
    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = library("searches, each measured")
    promised_by: Method = library("the search that promises are calibrated with")
    audited: Method | None = library("a search whose actions are tested against noise")
    margins: tuple[Probability, ...] = library("of probability, tested once more")
    examples: Seed = library("people per cell shown with their advice")
    training: RecourseTrainingParameters = setting(RecourseTrainingParameters(), "of every model")
    skip_missing: bool = library("leave out, with a warning, tables that are not there")

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        from countermove.experiments.recourse.grid import RecourseExperiment

        return RecourseExperiment(
            **self.model_dump(exclude={"kind", "cases", "rules", "training"}),
            cases={name: case.build() for name, case in self.cases.items()},
            rules=[rule.make() for rule in self.rules],
            settings=self.training.build(),
        )


class MiniLMParameters(Parameters):
    """The sentence encoder of the extra ``countermove[text]``, or of a ``folder``."""

    kind: Literal["minilm"]
    folder: str | None = None

    def build(self) -> Callable[[], Encoder]:
        """Return what loads the encoder."""

        def load() -> Encoder:
            from countermove.recourse.text import MiniLM

            return MiniLM(self.folder)

        return load


class HashedWordsParameters(Parameters):
    """Counts of words, which need no package."""

    kind: Literal["words"]
    n_features: Count = 1024

    def build(self) -> Callable[[], Encoder]:
        """Return what makes the encoder."""

        def make() -> Encoder:
            from countermove.recourse.text import HashedWords

            return HashedWords(self.n_features)

        return make


class TextTrainingParameters(Parameters):
    """Learning rate and epochs; no ``hidden`` layer is a linear score."""

    hidden: tuple[Count, ...] = ()
    dropout: Effect = 0.3
    learning_rate: Positive = 0.02
    batch_size: Count = 64
    max_epochs: Count = 40
    patience: Count = 10


class TextParameters(ExperimentParameters):
    """Recourse, Table 5: texts × splits × weights.

    ``dataset`` is a CSV or parquet file in ``data/01_raw``; ``favourable`` is the label authors
    hope for. ``wordnet`` is the folder of WordNet's files, None for where packages put them.
    """

    describes: ClassVar = "countermove.experiments.recourse.texts:TextExperiment"
    kind: Literal["text"] = "text"
    dataset: str = setting("film-reviews", "the file")
    text: str = library("column of the texts")
    label: str = library("column of the labels")
    favourable: str = library("the label hoped for")
    encoder: Annotated[MiniLMParameters | HashedWordsParameters, Field(discriminator="kind")] = (
        setting(MiniLMParameters(kind="minilm"), "what makes vectors")
    )
    wordnet: str | None = library("folder of WordNet")
    train: Count = setting(1_500, "sentences to learn from")
    selection: Count = setting(500, "sentences to choose by")
    test: Count = setting(500, "sentences to report on")
    candidates: Count = library("replacements per sentence that training looks at")
    splits: Seeds = library("seeds, one split and one start each")
    weights: Annotated[tuple[NotNegative, ...], Field(min_length=1)] = library(
        "of the recourse term"
    )
    thresholds: Annotated[tuple[Literal["highest_f1"] | Probability, ...], Field(min_length=1)] = (
        library("ways to choose the threshold")
    )
    training: TextTrainingParameters = setting(TextTrainingParameters(), "of every score")

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        from countermove.experiments.recourse.texts import TextExperiment

        return TextExperiment(
            **self.model_dump(exclude={"kind", "encoder", "training"}),
            encoder=self.encoder.build(),
            hidden=self.training.hidden,
            dropout=self.training.dropout,
            settings=self.training.model_dump(exclude={"hidden", "dropout"}),
        )


class PaperParameters(Parameters):
    """One experiment of a paper; the figures and tables of the papers are in ``conf/paper``."""

    name: Name | None = setting(None, "folder of the results; null: by the kind")
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
    ] = Field(
        default_factory=lambda: ReplicatorParameters(kind="replicator"), description="what is run"
    )

    @property
    def title(self) -> str:
        """What figures are called: the folder of the results."""
        return self.name or FOLDERS[self.experiment.kind]

    def build(self) -> Experiment[Sources]:
        """Return the experiment."""
        return self.experiment.build()
