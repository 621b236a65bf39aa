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
    Probability,
    Share,
)
from countermove.params.chain import SearchName

if TYPE_CHECKING:
    from countermove.production.gates import Gate

AtLeast50 = Annotated[int, Field(ge=50)]
BatchId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class MinimumAccuracyParameters(Parameters):
    """At least so many are judged rightly once people have responded."""

    describes: ClassVar = "countermove.production.gates:MinimumAccuracy"
    least: Share = 0.5
    failure_probability: Probability = 0.05


class RecourseCertificateParameters(Parameters):
    """The promise of recourse is there, is no weaker than asked, and the hold-out agrees."""

    describes: ClassVar = "countermove.production.gates:RecourseCertificate"
    largest_miss_rate: Share | None = None
    contradiction: Probability = 0.01


class GroupDisparityParameters(Parameters):
    """Groups of the sensitive columns do not drift further apart."""

    describes: ClassVar = "countermove.production.gates:GroupDisparity"
    measure: Literal["approval", "accuracy"] = "approval"
    tolerance: Share = 0.02
    largest: Share | None = None
    smallest: Count = 50


class TransferBoundParameters(Parameters):
    """The bound on the error after deployment is small enough."""

    describes: ClassVar = "countermove.production.gates:TransferBound"
    limit: Share = 0.5
    bound: Literal["worst_case_direct_upper", "direct_upper"] = "worst_case_direct_upper"


class ImprovementParameters(Parameters):
    """The challenger is better, and not by chance (exact paired test)."""

    describes: ClassVar = "countermove.production.gates:Improvement"
    significance: Probability = 0.05
    over: Literal["each", "all"] = "each"


class FlipRateParameters(Parameters):
    """Not too many people get another decision than the champion's."""

    describes: ClassVar = "countermove.production.gates:FlipRate"
    largest: Share = 0.35


class OpenAdviceParameters(Parameters):
    """Not too much of the advice that is open would be broken."""

    describes: ClassVar = "countermove.production.gates:OpenAdvice"
    largest_share: Share = 0.1


class CustomGateParameters(Parameters):
    """A gate of your own."""

    describes: ClassVar = "countermove.production.gates:CustomGate"
    function: str
    arguments: dict[str, Any] = {}


class GatesParameters(Parameters):
    """The gates of a promotion; null switches one off."""

    minimum_accuracy: MinimumAccuracyParameters | None = MinimumAccuracyParameters()
    recourse_certificate: RecourseCertificateParameters | None = RecourseCertificateParameters()
    group_disparity: GroupDisparityParameters | None = GroupDisparityParameters()
    transfer_bound: TransferBoundParameters | None = TransferBoundParameters()
    improvement: ImprovementParameters | None = ImprovementParameters()
    flip_rate: FlipRateParameters | None = FlipRateParameters()
    open_advice: OpenAdviceParameters | None = OpenAdviceParameters()
    custom: tuple[CustomGateParameters, ...] = ()

    def build(self, *args: Any, **given: Any) -> list[Gate]:
        """Return the gates that are on."""
        named = [getattr(self, name) for name in type(self).model_fields if name != "custom"]
        return [gate.build() for gate in (*named, *self.custom) if gate is not None]


class DriftParameters(Parameters):
    """How a new table is compared with what the deployed rule lets us expect."""

    describes: ClassVar = "countermove.production.drift:DriftTerms"
    level: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    permutations: Count = 999
    max_rows: AtLeast50 = 20000
    bootstrap: AtLeast50 = 200
    resolution: Probability = 0.001
    labels: Literal["kept", "follow"] = "kept"
    odd_share: Probability = 0.05


class FollowingParameters(Parameters):
    """Follow the world: judged on the newest labels, older people discounted."""

    describes: ClassVar = "countermove.production.retraining.policy:FollowingPolicy"
    kind: Literal["following"] = "following"
    yearly_false_promotions: Probability = 0.05
    monthly_false_promotions: Probability | None = 0.5
    propensities: bool = False


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

    tracking_uri: str | None = None
    experiment: str = "countermove"


class RetrainParameters(Parameters):
    """When a challenger replaces the champion, and what a retraining looks at."""

    observed: Literal["after", "before"] = "after"
    window: Count | None = None
    ready: Literal["none", "marker", "rows"] = "none"
    policy: PolicyParameters = FollowingParameters()
    wait_seconds: NotNegative = 0.0
    gates: GatesParameters = GatesParameters()
    drift: DriftParameters = DriftParameters()
    stop_on_investigate: bool = False
    mlflow: MlflowParameters | None = None


class ExplorationParameters(Parameters):
    """Refused people who are approved by draw."""

    describes: ClassVar = "countermove.production.scoring.exploring:ExplorationTerms"
    share: Probability = 0.02


class ScoreParameters(Parameters):
    """Which applicants are scored, and how advice is searched for."""

    describes: ClassVar = "countermove.recourse:recommend"
    batch: BatchId | None = None
    method: SearchName = "auto"
    open_advice_days: Count | None = 180
    challenger: str | None = None
    exploration: ExplorationParameters | None = None

    @field_validator("batch", mode="before")
    @classmethod
    def _whole_number(cls, batch: object) -> object:
        # `--params score.batch=7` arrives as a number.
        return str(batch) if isinstance(batch, int) and not isinstance(batch, bool) else batch

    def tried(self) -> dict[str, Any]:
        """Return the challenger and the terms of exploration."""
        explored = None if self.exploration is None else self.exploration.build()
        return {"challenger": self.challenger, "exploration": explored}

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

    model: str | None = None
    columns: tuple[str, ...] | None = None
    favourable: str | None = None
    threshold: Probability = 0.5

    @field_validator("favourable", mode="before")
    @classmethod
    def _label(cls, label: object) -> object:
        # `--params audit.favourable=0` arrives as a number.
        return str(label) if isinstance(label, int | float) else label

    def file(self) -> Path:
        """Return the path of the model; refuse to go on without one."""
        if self.model is None:
            raise ParameterError(
                "which model? Run with --params dataset=<dataset>,audit.model=<path of its file>"
            )
        return Path(self.model)


class EstimatePeopleParameters(Parameters):
    """How the people are estimated from a deployment."""

    describes: ClassVar = "countermove.learning.people_estimation.estimation:estimate_from_tables"
    matched: bool = True
    cost: Literal["auto", "quadratic", "weighted_quadratic"] = "auto"
    level: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
