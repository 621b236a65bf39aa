"""When a challenger replaces the champion, and what a retraining looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from countermove.params.base import Parameters
from countermove.params.drift import DriftParameters
from countermove.params.recourse import Probability

if TYPE_CHECKING:
    from countermove.production.gates import Gate

Share = Annotated[float, Field(ge=0, le=1)]


class MinimumAccuracyParameters(Parameters):
    """See `countermove.production.gates.MinimumAccuracy`."""

    least: Share = 0.5
    failure_probability: Probability = 0.05


class RecourseCertificateParameters(Parameters):
    """See `countermove.production.gates.RecourseCertificate`."""

    largest_miss_rate: Share | None = None
    contradiction: Probability = 0.01


class GroupDisparityParameters(Parameters):
    """See `countermove.production.gates.GroupDisparity`."""

    measure: Literal["approval", "accuracy"] = "approval"
    tolerance: Share = 0.02
    largest: Share | None = None
    smallest: Annotated[int, Field(ge=1)] = 50


class TransferBoundParameters(Parameters):
    """See `countermove.production.gates.TransferBound`."""

    limit: Share = 0.5
    bound: Literal["worst_case_direct_upper", "direct_upper"] = "worst_case_direct_upper"


class ImprovementParameters(Parameters):
    """See `countermove.production.gates.Improvement`."""

    significance: Probability = 0.05
    over: Literal["each", "all"] = "each"


class FlipRateParameters(Parameters):
    """See `countermove.production.gates.FlipRate`."""

    largest: Share = 0.2


class CustomGateParameters(Parameters):
    """See `countermove.production.gates.CustomGate`."""

    function: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class GatesParameters(Parameters):
    """The gates of a promotion; null switches one off, ``custom`` adds your own."""

    minimum_accuracy: MinimumAccuracyParameters | None = MinimumAccuracyParameters()
    recourse_certificate: RecourseCertificateParameters | None = RecourseCertificateParameters()
    group_disparity: GroupDisparityParameters | None = GroupDisparityParameters()
    transfer_bound: TransferBoundParameters | None = TransferBoundParameters()
    improvement: ImprovementParameters | None = ImprovementParameters()
    flip_rate: FlipRateParameters | None = FlipRateParameters()
    custom: tuple[CustomGateParameters, ...] = ()

    def build(self) -> list[Gate]:
        """Return the gates that are on."""
        from countermove.production import gates

        kinds: dict[str, Any] = {
            "minimum_accuracy": gates.MinimumAccuracy,
            "recourse_certificate": gates.RecourseCertificate,
            "group_disparity": gates.GroupDisparity,
            "transfer_bound": gates.TransferBound,
            "improvement": gates.Improvement,
            "flip_rate": gates.FlipRate,
        }
        said = {name: getattr(self, name) for name in kinds}
        built = [kinds[name](**on.model_dump()) for name, on in said.items() if on is not None]
        return built + [gates.CustomGate(**each.model_dump()) for each in self.custom]


class MlflowParameters(Parameters):
    """Where MLflow is told of decisions; ``tracking_uri`` null: where MLFLOW_TRACKING_URI says."""

    tracking_uri: str | None = None
    experiment: str = "countermove"


class RetrainParameters(Parameters):
    """Parameters of the retrain pipeline.

    ``observed`` says what a batch shows: people ``after`` they could answer the deployed rule
    (they are set back before training), or ``before``. ``window`` trains on the last so many
    batches (null: all) beside the base table. ``wait_seconds`` is how long a run waits for
    another one to end before it leaves. ``drift`` are the terms of the drift report;
    ``stop_on_investigate`` blocks the run where it cannot explain what changed. ``mlflow`` (null:
    not at all) also logs each decision there; it needs the extra of that name.
    """

    observed: Literal["after", "before"] = "after"
    window: Annotated[int, Field(ge=1)] | None = None
    wait_seconds: Annotated[float, Field(ge=0)] = 0.0
    gates: GatesParameters = GatesParameters()
    drift: DriftParameters = DriftParameters()
    stop_on_investigate: bool = False
    mlflow: MlflowParameters | None = None
