"""What an experiment of the look-ahead paper varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters, Positive
from countermove.params.lookahead_collective import (
    CoordinationParameters,
    ScalingParameters,
    SizeParameters,
)
from countermove.params.sweep import Count
from countermove.params.transfer_experiments import NotNegative, Seeds

if TYPE_CHECKING:
    from countermove.experiments.lookahead.importance import ImportanceExperiment
    from countermove.experiments.lookahead.people import LookaheadExperiment
    from countermove.experiments.lookahead.retraining import (
        BeliefsExperiment,
        RatesExperiment,
        RetrainingExperiment,
    )

Level = Annotated[int, Field(ge=0, le=50)]
Mixture = Annotated[dict[Level, NotNegative], Field(min_length=1)]
Mixtures = Annotated[tuple[Mixture, ...], Field(min_length=1)]


class RetrainingParameters(Parameters):
    """Figure 1: gaps between models retrained on mixtures of level-k people.

    ``solver: published`` fits as the paper's code does; ``exact`` to the last digits.
    """

    kind: Literal["figure_1"]
    mixtures: Mixtures = ({1: 0.9, 2: 0.1}, {1: 0.5, 2: 0.5}, {1: 0.1, 2: 0.9})
    response_strength: Positive = 0.5
    columns: tuple[str, ...] = ()
    rounds: Count = 25
    seeds: Seeds = Field(default=list(range(10)))
    solver: Literal["exact", "published"] = "exact"
    groups: Literal["drawn", "weights"] = "drawn"
    start: Literal["fitted", "published"] | None = None
    penalty: NotNegative | None = None
    penalise_intercept: bool = True

    def build(self) -> RetrainingExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.retraining import RetrainingExperiment

        return RetrainingExperiment(**self.model_dump(exclude={"kind"}))


class RatesParameters(Parameters):
    """Theorem 3 and Corollary 1, where part of the people respond."""

    kind: Literal["theorem_3"]
    mixtures: Mixtures | None = None
    response_strengths: Annotated[tuple[Positive, ...], Field(min_length=1)] = (10.0, 50.0)
    columns: tuple[str, ...] = ()
    respond_below: str | None = None
    rounds: Count = 40
    penalty: NotNegative | None = None
    penalise_intercept: bool = False

    def build(self) -> RatesExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.retraining import RATE_MIXTURES, RatesExperiment

        mixtures = self.mixtures or RATE_MIXTURES
        return RatesExperiment(**self.model_dump(exclude={"kind", "mixtures"}), mixtures=mixtures)


class BeliefsParameters(Parameters):
    """People who look ahead with a wrong penalty, or from a sample of rows."""

    kind: Literal["beliefs"]
    shares: Mixture = Field(default={2: 1.0})
    response_strength: Positive = 10.0
    columns: tuple[str, ...] = ()
    respond_below: str | None = None
    believed_penalties: tuple[Positive, ...] = (10.0, 100.0, 1000.0)
    believed_rows: tuple[Count, ...] = (1_000, 3_000, 10_000)
    seeds: Seeds = Field(default=list(range(5)))
    rounds: Count = 100

    def build(self) -> BeliefsExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.retraining import BeliefsExperiment

        return BeliefsExperiment(**self.model_dump(exclude={"kind"}))


class ImportanceParameters(Parameters):
    """Figure 5: the accuracy lost when one column is replaced by noise."""

    kind: Literal["figure_5"]
    columns: tuple[str, ...] = ()
    seeds: Seeds = Field(default=list(range(10)))
    test_share: Annotated[float, Field(gt=0, lt=1)] = 0.2

    def build(self) -> ImportanceExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.importance import ImportanceExperiment

        return ImportanceExperiment(**self.model_dump(exclude={"kind"}))


ExperimentParameters = Annotated[
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
    """One experiment on one table; ``name`` is the folder of its results.

    ``dataset`` is any dataset with a schema; ``preparation`` is ``paper`` (give-me-some-credit
    only, and its default) or ``chain``: cleaned as the chain does, and standardised.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "lookahead"
    dataset: str
    preparation: Literal["paper", "chain"] | None = None
    experiment: ExperimentParameters = RetrainingParameters(kind="figure_1")

    def build(self) -> LookaheadExperiment:
        """Return the experiment."""
        return self.experiment.build()
