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
    library,
    part,
    setting,
)
from countermove.params.renamed import FOLDERS
from countermove.params.serm_experiments import (
    RunTimesParameters,
    StylisedParameters,
    TradeoffParameters,
)

if TYPE_CHECKING:
    from countermove.experiments import Experiment, Sources
    from countermove.recourse.text import Encoder

Method = Literal["auto", "linear_program", "gradient", "integer_program", "causal", "exhaustive"]
Candidates = Annotated[int, Field(ge=2)]
Effect = Annotated[float, Field(ge=0, lt=1)]
Payoffs = tuple[NotNegative, NotNegative]


class LemmaParameters(Parameters):
    """Transferability, Lemma A.3: where strategic people end up, under three readings."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:LemmaExperiment"
    kind: Literal["lemma"]
    thresholds: Several[Effect] = library("of the rule")
    budget: Annotated[float, Field(gt=0, le=1)] = library("of the people")
    draws: Count = library("people per threshold and reading")
    bins: Count = library("of the histogram")


class DagParameters(Parameters):
    """Transferability, Figure 4: structural models, as in the paper and as released."""

    describes: ClassVar = "countermove.experiments.transfer.dag:DagExperiment"
    kind: Literal["dag"]
    cases: Several[Literal["CS1", "CS2", "TS1", "TS2"]] = library("covariate and target shifts")
    readings: Several[Literal["paper", "released"]] = library("as written, as released")
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


class FicoParameters(Parameters):
    """Transferability, Figures 3, 5 and 6: lenders × seeds × steps on people with a score."""

    describes: ClassVar = "countermove.experiments.transfer.fico:FicoExperiment"
    kind: Literal["fico"]
    lenders: Annotated[dict[str, LenderParameters], Field(min_length=1)] = part(
        lambda: {"plain": LenderParameters()}, "by name"
    )
    dataset: str = library("table with score and race")
    seeds: Seeds = library("repetitions")
    steps: Count = library("realities, the first included")
    dynamics: DynamicsParameters = part(DynamicsParameters, "how scores change")
    candidates: Candidates = library("thresholds compared")
    failure_probability: Probability = library("of the interval of the difference")


class ReplicatorParameters(Parameters):
    """Transferability, Figure 7 and App. F: utility matrices × initial shares of label +1.

    ``utilities`` maps a name to ``[[refused bad, accepted bad], [refused good, accepted good]]``.
    """

    describes: ClassVar = "countermove.experiments.transfer.minimise:ReplicatorExperiment"
    kind: Literal["replicator"]
    utilities: dict[str, tuple[Payoffs, Payoffs]] = library("matrices by name")
    shares: Several[Probability] = library("initial, of label +1")
    bounds: tuple[float, float] = library("thresholds allowed")


class BanditParameters(Parameters):
    """Transferability, App. E.2: descents that only see the losses of deployed rules."""

    describes: ClassVar = "countermove.experiments.transfer.minimise:BanditExperiment"
    kind: Literal["bandit"]
    steps: dict[
        Literal["one_point", "one_point_baseline", "two_point"],
        Several[Positive],
    ] = library("step lengths per method")
    deployments: Annotated[int, Field(ge=2)] = library("of a run")
    probe: Probability = library("how far beside the guess is looked")
    radius: Positive = library("of the guesses allowed")
    runs: Count = library("repetitions per method")


class TightnessParameters(Parameters):
    """Transferability, App. G: every bound over the truth in random populations."""

    describes: ClassVar = "countermove.experiments.transfer.bounds:TightnessExperiment"
    kind: Literal["tightness"]
    populations: Count = library("random populations of either shift")
    budget: Annotated[float, Field(gt=0, lt=0.5)] = library("of the strategic people")


class HighestF1Parameters(Parameters):
    """The threshold of the highest F1 on selection rows."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:HighestF1"
    kind: Literal["highest_f1"]


class PromiseParameters(Parameters):
    """The highest F1 among the thresholds that keep the promise."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:Promise"
    kind: Literal["promise"]
    miss_rate: Probability = library("tolerated share without recourse")
    failure_probability: Probability = library("chance that the promise is wrong")


class PrecisionParameters(Parameters):
    """The threshold whose precision on selection rows is nearest to ``wanted``."""

    describes: ClassVar = "countermove.experiments.recourse.thresholds:NearestPrecision"
    kind: Literal["precision"]
    wanted: Probability = library("precision")


class FixedParameters(Parameters):
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
    axis: Literal["recourse_weight", "largest_action", "threshold"] = library("drawn against this")
    cases: Annotated[dict[str, CaseParameters], Field(min_length=1)] = setting(
        {"german-recourse": GERMAN}, "the tables"
    )
    splits: Seeds = library("seeds, one split and one start each")
    weights: Several[NotNegative] = library("of the recourse term")
    largest_actions: Several[Positive] = library("in deviations")
    rules: Annotated[list[RuleParameters], Field(min_length=1)] = setting(
        [HighestF1Parameters(kind="highest_f1")], "ways to choose the threshold"
    )
    methods: Several[Method] = library("searches, each measured")
    promised_by: Method = library("the search that promises are calibrated with")
    audited: Method | None = library("a search whose actions are tested against noise")
    margins: tuple[Probability, ...] = library("of probability, tested once more")
    examples: Seed = library("people per cell shown with their advice")
    training: RecourseTrainingParameters = setting(RecourseTrainingParameters(), "of every model")
    skip_missing: bool = library("leave out, with a warning, tables that are not there")


class MiniLMParameters(Parameters):
    """The sentence encoder of the extra ``countermove[text]``, or of a ``folder``."""

    kind: Literal["minilm"]
    folder: str | None = None

    def build(self, *args: Any, **given: Any) -> Callable[[], Encoder]:
        """Return what loads the encoder."""
        from functools import partial

        from countermove.recourse.text import MiniLM

        return partial(MiniLM, self.folder)


class HashedWordsParameters(Parameters):
    """Counts of words, which need no package."""

    kind: Literal["words"]
    n_features: Count = 1024

    def build(self, *args: Any, **given: Any) -> Callable[[], Encoder]:
        """Return what makes the encoder."""
        from functools import partial

        from countermove.recourse.text import HashedWords

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
    weights: Several[NotNegative] = library("of the recourse term")
    thresholds: Several[Literal["highest_f1"] | Probability] = library(
        "ways to choose the threshold"
    )
    training: TextTrainingParameters = setting(TextTrainingParameters(), "of every score")


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
    ] = part(lambda: ReplicatorParameters(kind="replicator"), "what is run")

    @property
    def title(self) -> str:
        """What figures are called: the folder of the results."""
        return self.name or FOLDERS[self.experiment.kind]

    def build(self, *args: Any, **given: Any) -> Experiment[Sources]:
        """Return the experiment."""
        made: Experiment[Sources] = self.experiment.build()
        return made
