"""A rule in production: when it is replaced, whom it scores, what its people showed us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints, field_validator

from countermove.errors import ParameterError
from countermove.params.base import (
    Count,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Share,
    library,
    needed,
    part,
    setting,
)
from countermove.params.chain import SearchName

if TYPE_CHECKING:
    from countermove.production.gates import Gate

AtLeast50 = Annotated[int, Field(ge=50)]
BatchId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class MinimumAccuracyParameters(Parameters):
    """At least so many are judged rightly once people have responded."""

    describes: ClassVar = "countermove.production.gates:MinimumAccuracy"
    least: Share = library("share of the people")
    failure_probability: Probability = library("chance that the lower bound shown is wrong")


class RecourseCertificateParameters(Parameters):
    """The promise of recourse is there, is no weaker than asked, and the hold-out agrees."""

    describes: ClassVar = "countermove.production.gates:RecourseCertificate"
    largest_miss_rate: Share | None = library(
        "largest share without recourse that may be promised; null: the champion's"
    )
    contradiction: Probability = library("level of the test whether the hold-out contradicts it")


class GroupDisparityParameters(Parameters):
    """Groups of the sensitive columns do not drift further apart."""

    describes: ClassVar = "countermove.production.gates:GroupDisparity"
    measure: Literal["approval", "accuracy"] = library("gap in approval or in accuracy")
    tolerance: Share = library("by how much a gap may exceed the champion's")
    largest: Share | None = library("largest gap at all, also at a cold start; null: no limit")
    smallest: Count = library("people a group needs to count")


class TransferBoundParameters(Parameters):
    """The bound on the error after deployment is small enough."""

    describes: ClassVar = "countermove.production.gates:TransferBound"
    limit: Share = library("largest bound on the error")
    bound: Literal["worst_case_direct_upper", "direct_upper"] = library(
        "over all plausible responses (worst_case_direct_upper), or the one trained for"
    )


class ImprovementParameters(Parameters):
    """The challenger is better, and not by chance (exact paired test)."""

    describes: ClassVar = "countermove.production.gates:Improvement"
    significance: Probability = library("chance of promoting a challenger that is no better")
    over: Literal["each", "all"] = library("that chance per decision (each), or over all of them")


class FlipRateParameters(Parameters):
    """Not too many people get another decision than the champion's."""

    describes: ClassVar = "countermove.production.gates:FlipRate"
    largest: Share = library("share of the hold-out")


class OpenAdviceParameters(Parameters):
    """Not too much of the advice that is open would be broken."""

    describes: ClassVar = "countermove.production.gates:OpenAdvice"
    largest_share: Share = library("share of the open advice that could be judged")


class CustomGateParameters(Parameters):
    """A gate of your own."""

    describes: ClassVar = "countermove.production.gates:CustomGate"
    function: str = needed("your function, as package.module:name; it returns a GateResult")
    arguments: dict[str, Any] = library("handed to it by name")


class GatesParameters(Parameters):
    """The gates of a promotion; null switches one off."""

    minimum_accuracy: MinimumAccuracyParameters | None = part(
        MinimumAccuracyParameters, "Enough people are judged rightly once they have responded."
    )
    recourse_certificate: RecourseCertificateParameters | None = part(
        RecourseCertificateParameters, "The promise of recourse is there, and the hold-out agrees."
    )
    group_disparity: GroupDisparityParameters | None = part(
        GroupDisparityParameters, "Groups of the sensitive columns do not drift further apart."
    )
    transfer_bound: TransferBoundParameters | None = part(
        TransferBoundParameters, "The bound on the error after deployment is small enough."
    )
    improvement: ImprovementParameters | None = part(
        ImprovementParameters, "The challenger is better than the champion, and not by chance."
    )
    flip_rate: FlipRateParameters | None = part(
        FlipRateParameters, "Not too many people get another decision than the champion's."
    )
    open_advice: OpenAdviceParameters | None = part(
        OpenAdviceParameters, "Not too much advice that people may be following would be broken."
    )
    custom: tuple[CustomGateParameters, ...] = setting(
        (), "gates of your own, as in [{function: my_package.gates:check, arguments: {}}]"
    )

    def build(self, *args: Any, **given: Any) -> list[Gate]:
        """Return the gates that are on."""
        named = [getattr(self, name) for name in type(self).model_fields if name != "custom"]
        return [gate.build() for gate in (*named, *self.custom) if gate is not None]


class DriftParameters(Parameters):
    """How a new table is compared with what the deployed rule lets us expect."""

    describes: ClassVar = "countermove.production.drift:DriftTerms"
    level: Annotated[float, Field(gt=0, lt=0.5)] = library(
        "chance of any alarm where people respond as modelled and nothing else changed"
    )
    permutations: Count = library("effort of the Monte-Carlo tests")
    max_rows: AtLeast50 = library("rows of either table that are looked at")
    bootstrap: AtLeast50 = library("resamples behind the interval of the share explained")
    resolution: Probability = library("differences below so many spreads of a column are rounding")
    labels: Literal["kept", "follow"] = library("kept by those who move, or follow the features")
    odd_share: Probability = library("a column is odd if more of it lies beyond all expected")


class FollowingParameters(Parameters):
    """Follow the world: judged on the newest labels, older people discounted."""

    describes: ClassVar = "countermove.production.retraining.policy:FollowingPolicy"
    kind: Literal["following"] = "following"
    yearly_false_promotions: Probability = library(
        "chance that a champion as good as its challengers is replaced within a year"
    )
    monthly_false_promotions: Probability | None = library(
        "the same within a month, for the pooled_months after a promotion, which showed that the "
        "world moves; null: as much is asked as ever"
    )
    evidence: Literal["likelihood", "e_value"] = library(
        "z of the newest looks, or e-values: valid whenever they are looked at, less powerful"
    )
    pooled_months: Positive = library("looks of how many months are taken together")
    discounts: tuple[Annotated[float, Field(gt=0, le=1)], ...] = library(
        "weights of people a month older, among which the newest labels choose"
    )
    trend: bool = library(
        "let them choose, too, among rules that are moved on to the newest month, as far as their "
        "people are old on average"
    )
    folds: Annotated[int, Field(ge=2)] = library(
        "of the newest labels, each predicted by rules fitted without it"
    )
    least_shift: Share = library(
        "smallest change of the threshold, as a share of the reach, that is made for its own sake"
    )
    propensities: bool = library(
        "where labels are of the approved only, weight people whom score.exploration approved by "
        "the inverse of their propensity"
    )


class FirstHoldoutParameters(Parameters):
    """Judge on the hold-out of the first run, and forget nothing."""

    kind: Literal["first_holdout"]

    def build(self) -> None:
        """Return None: there is no policy to follow."""


PolicyParameters = Annotated[
    FollowingParameters | FirstHoldoutParameters, Field(discriminator="kind")
]


class MlflowParameters(Parameters):
    """Where decisions are logged with MLflow."""

    tracking_uri: str | None = setting(None, "null: where MLFLOW_TRACKING_URI says")
    experiment: str = setting("countermove", "name of the experiment")


class RetrainParameters(Parameters):
    """When a challenger replaces the champion, and what a retraining looks at."""

    observed: Literal["after", "before"] = setting(
        "after",
        "what a batch shows: people after they could respond to the deployed rule (they are set "
        "back before training), or before",
    )
    window: Count | None = setting(
        None, "train on the last so many batches beside the base table; null: on all"
    )
    ready: Literal["none", "marker", "rows"] = setting(
        "none",
        "when a new batch is whole: none: once its file is there; marker: once <file>.ready is; "
        "rows: once that file also says how many rows there are",
    )
    policy: PolicyParameters = part(
        FollowingParameters, "How a challenger is made and what it is judged on."
    )
    wait_seconds: NotNegative = setting(0.0, "how long a run waits for another one to end")
    gates: GatesParameters = part(GatesParameters, "Gates of a promotion; null switches one off.")
    drift: DriftParameters = part(
        DriftParameters, "How a new table is compared with what the deployed rule lets us expect."
    )
    stop_on_investigate: bool = setting(
        False, "block the run where the drift report cannot explain what changed"
    )
    mlflow: MlflowParameters | None = setting(
        None, "also log decisions with MLflow (its extra is needed); null: not at all"
    )


class ChallengerParameters(Parameters):
    """A challenger that decides beside the champion."""

    describes: ClassVar = "countermove.production.draws:ChallengerTerms"
    version: str = library("of the registry, or newest: the newest kept since the last promotion")
    share: Probability | None = library(
        "of the applicants whom it decides for, drawn by id under COUNTERMOVE_DRAW_KEY; null: for "
        "nobody, its decisions are recorded"
    )


class ExplorationParameters(Parameters):
    """Refused people who are approved by draw."""

    describes: ClassVar = "countermove.production.draws:ExplorationTerms"
    share: Probability = library("of the refused, drawn by id under COUNTERMOVE_DRAW_KEY")
    most: Count = library("people of a batch at most")


class ScoreParameters(Parameters):
    """Which applicants are scored, and how advice is searched for."""

    describes: ClassVar = "countermove.recourse:recommend"
    batch: BatchId | None = setting(
        None, "id of the batch, the name of its file or folder; a run needs one"
    )
    method: SearchName = library(
        "how recourse is searched for: auto (proven cheapest where the score is affine), "
        "linear_program, gradient, integer_program or exhaustive"
    )
    open_advice_days: Count | None = setting(
        180,
        "days for which advice is honoured: whoever follows it is approved, also by a later "
        "champion; null: no register of open advice is kept",
    )
    challenger: ChallengerParameters | None = setting(
        None,
        "a version that decides beside the champion, as in {version: newest, share: 0.1}; share "
        "null: its decisions are only recorded; null: there is none",
    )
    exploration: ExplorationParameters | None = setting(
        None,
        "refused people who are approved by draw, as in {share: 0.02, most: 20}; null: nobody is",
    )

    @field_validator("batch", mode="before")
    @classmethod
    def _whole_number(cls, batch: object) -> object:
        # `--params score.batch=7` arrives as a number.
        return str(batch) if isinstance(batch, int) and not isinstance(batch, bool) else batch

    def tried(self) -> dict[str, Any]:
        """Return the terms of the challenger and of exploration."""
        given = {"challenger": self.challenger, "exploration": self.exploration}
        return {name: None if each is None else each.build() for name, each in given.items()}

    def named(self) -> str:
        """Return the id of the batch; refuse to go on without one."""
        if self.batch is None:
            raise ParameterError(
                "which applicants? Put them into data/01_raw/applicants/<dataset>/<batch id>.csv "
                "(or .parquet, or a folder of that name) and run with --params score.batch=<batch "
                "id>"
            )
        return self.batch


class AuditParameters(Parameters):
    """Which model is audited or adopted, and how its file is read."""

    model: str | None = setting(
        None,
        "path of the model's file (LightGBM text, XGBoost JSON or UBJSON, CatBoost JSON, ONNX, "
        "skops) or of the folder that save() made; a run needs one, and --params model=<path> is "
        "short for it",
    )
    columns: tuple[str, ...] | None = setting(
        None, "names of the columns the model reads, in its order; null: the file names them"
    )
    favourable: str | None = setting(
        None, "the model's label that people want; null: the second of its two"
    )
    trusted: tuple[str, ...] = setting((), "types of a skops file to trust beyond those it trusts")
    threshold: Probability = setting(0.5, "probability from which the model approves")

    @field_validator("favourable", mode="before")
    @classmethod
    def _label(cls, label: object) -> object:
        # `--params audit.favourable=0` arrives as a number.
        return str(label) if isinstance(label, int | float) else label

    def file(self) -> Path:
        """Return the path of the model; refuse to go on without one."""
        if self.model is None:
            raise ParameterError(
                "which model? Run with --params dataset=<dataset>,model=<path of its file>"
            )
        return Path(self.model)


class EstimatePeopleParameters(Parameters):
    """How the people are estimated from a deployment."""

    describes: ClassVar = "countermove.learning.people_estimation.estimation:estimate_from_tables"
    matched: bool = library("pair people by the schema's id; false takes the tables as two samples")
    cost: Literal["auto", "quadratic", "weighted_quadratic"] = library(
        "shape of the cost; auto: weighted where the moves ask for it"
    )
    level: Annotated[float, Field(ge=0.5, lt=1)] = library("level of the intervals")
