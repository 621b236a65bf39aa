"""What an experiment of the transferability paper varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters, Positive, Probability
from countermove.params.sweep import Count

if TYPE_CHECKING:
    from countermove.experiments.transfer.bounds import LemmaExperiment, TightnessExperiment
    from countermove.experiments.transfer.dag import DagExperiment
    from countermove.experiments.transfer.experiment import TransferExperiment
    from countermove.experiments.transfer.fico import FicoExperiment
    from countermove.experiments.transfer.minimise import BanditExperiment, ReplicatorExperiment

NotNegative = Annotated[float, Field(ge=0)]
Row = tuple[NotNegative, NotNegative]
BanditMethod = Literal["one_point", "one_point_baseline", "two_point"]
Seeds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class LemmaParameters(Parameters):
    """Lemma A.3: where strategic people end up, under three readings of Setup 4."""

    kind: Literal["lemma"]
    thresholds: list[Annotated[float, Field(ge=0, lt=1)]] = Field([0.5, 0.05, 0.95], min_length=1)
    budget: Annotated[float, Field(gt=0, le=1)] = 0.2
    draws: Count = 4_000_000
    bins: Count = 50

    def build(self) -> LemmaExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.bounds import LemmaExperiment

        return LemmaExperiment(**self.model_dump(exclude={"kind"}))


class DagParameters(Parameters):
    """Figure 4: cases of the structural models, as in the paper and as released."""

    kind: Literal["dag"]
    cases: list[Literal["CS1", "CS2", "TS1", "TS2"]] = Field(
        ["CS1", "CS2", "TS1", "TS2"], min_length=1
    )
    readings: list[Literal["paper", "released"]] = Field(["paper", "released"], min_length=1)
    seeds: Seeds = Field(list(range(10)))
    candidates: Annotated[int, Field(ge=2)] = 100
    large: Annotated[int, Field(ge=1_000)] = 200_000
    failure_probability: Probability = 0.05

    def build(self) -> DagExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.dag import DagExperiment

        return DagExperiment(**self.model_dump(exclude={"kind"}))


class LenderParameters(Parameters):
    """The lender's logistic regression; the released code has L2 with C = 1."""

    penalty: Literal["l1", "l2"] = "l2"
    inverse_strength: Positive = 1.0


class DynamicsParameters(Parameters):
    """What a decision and an outcome do to a score."""

    decision_effect: Annotated[float, Field(ge=0, lt=1)] = 0.01
    label_effect: Annotated[float, Field(ge=0, lt=1)] = 0.0


class FicoParameters(Parameters):
    """Figures 3, 5 and 6: lenders × seeds × steps on people with a credit score."""

    kind: Literal["fico"]
    lenders: dict[str, LenderParameters] = Field({"plain": LenderParameters()}, min_length=1)
    dataset: str = "fico"
    seeds: Seeds = Field([0, 1, 2, 3, 4])
    steps: Count = 6
    dynamics: DynamicsParameters = DynamicsParameters()
    candidates: Annotated[int, Field(ge=2)] = 100
    failure_probability: Probability = 0.05

    def build(self) -> FicoExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.fico import FicoExperiment, Lender
        from countermove.experiments.transfer.score_dynamics import ScoreDynamics

        return FicoExperiment(
            **self.model_dump(exclude={"kind", "lenders", "dynamics"}),
            lenders={name: Lender(**said.model_dump()) for name, said in self.lenders.items()},
            dynamics=ScoreDynamics(**self.dynamics.model_dump()),
        )


class ReplicatorParameters(Parameters):
    """Figure 7 and App. F: utility matrices × initial shares of label +1.

    ``utilities`` maps a name to ``[[refused bad, accepted bad], [refused good, accepted good]]``.
    """

    kind: Literal["replicator"]
    utilities: dict[str, tuple[Row, Row]] | None = None
    shares: list[Probability] = Field(default=[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], min_length=1)
    bounds: tuple[float, float] = (-5.0, 5.0)

    def build(self) -> ReplicatorExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.minimise import ReplicatorExperiment

        return ReplicatorExperiment(**self.model_dump(exclude={"kind"}, exclude_none=True))


class BanditParameters(Parameters):
    """App. E.2: descents that only see the losses of deployed rules."""

    kind: Literal["bandit"]
    steps: dict[BanditMethod, Annotated[list[Positive], Field(min_length=1)]] | None = None
    deployments: Annotated[int, Field(ge=2)] = 20_000
    probe: Probability = 0.3
    radius: Positive = 5.0
    runs: Count = 10

    def build(self) -> BanditExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.minimise import BanditExperiment

        return BanditExperiment(**self.model_dump(exclude={"kind"}, exclude_none=True))


class TightnessParameters(Parameters):
    """App. G: every bound over the truth in random populations."""

    kind: Literal["tightness"]
    populations: Count = 2_000
    budget: Annotated[float, Field(gt=0, lt=0.5)] = 0.2

    def build(self) -> TightnessExperiment:
        """Return the experiment."""
        from countermove.experiments.transfer.bounds import TightnessExperiment

        return TightnessExperiment(**self.model_dump(exclude={"kind"}))


ExperimentParameters = Annotated[
    LemmaParameters
    | DagParameters
    | FicoParameters
    | ReplicatorParameters
    | BanditParameters
    | TightnessParameters,
    Field(discriminator="kind"),
]


class TransferExperimentsParameters(Parameters):
    """One experiment; ``name`` is the folder of its results."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "transfer_experiments"
    experiment: ExperimentParameters = ReplicatorParameters(kind="replicator")

    def build(self) -> TransferExperiment:
        """Return the experiment."""
        return self.experiment.build()
