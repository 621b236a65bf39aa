"""Which measure of social good is traded against accuracy, for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from countermove.params.base import NotNegative, Parameters, Positive
from countermove.params.serm import (
    BurdenParameters,
    CostParameters,
    QuadraticCostParameters,
    SocialParameters,
    TrainingParameters,
)
from countermove.params.sweep import Count, PopulationParameters

if TYPE_CHECKING:
    from countermove.experiments.serm.tradeoff import Curve, TradeOff

Share = Annotated[float, Field(gt=0, lt=1)]


class SharesParameters(Parameters):
    """Shares of the rows to train on, to stop and choose by, and to report on."""

    train: Share = 0.5
    validation: Share = 0.25
    test: Share = 0.25

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = self.train + self.validation + self.test
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"the shares must sum to 1, they sum to {total:g}")
        return self


class NotNegativesParameters(Parameters):
    """``points`` strengths from ``lowest`` to ``highest``, each by the same factor larger."""

    lowest: Positive
    highest: Positive
    points: Count = 20

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
    """One population: its strengths (a list, or a range) and its training.

    ``epochs`` are those of every strength above 0 (None: ``training.max_epochs``). ``settle`` has
    hard decisions settle the intercept after training; None: except for ``published``.
    """

    response: PopulationParameters = PopulationParameters()
    strengths: NotNegativesParameters | Annotated[list[NotNegative], Field(min_length=1)] = (
        NotNegativesParameters(lowest=1e-3, highest=0.3)
    )
    training: TrainingParameters = Field(default_factory=TrainingParameters)
    epochs: Count | None = None
    settle: bool | None = None

    def build(self) -> Curve:
        """Return the curve."""
        from countermove.experiments.serm.tradeoff import Curve

        said = self.strengths
        strengths = said.build() if isinstance(said, NotNegativesParameters) else said
        settings: dict[str, Any] = self.training.model_dump()
        settings |= self.response.model_dump(exclude={"kind"}) | {"calibrate": self.settle}
        words = {None: "usual", True: "intercept settled", False: "intercept as trained"}
        return Curve(self.response.kind, strengths, settings, self.epochs, words[self.settle])


class TradeoffParameters(Parameters):
    """Accuracy against one measure: datasets × splits × populations × strengths.

    ``name`` is the folder of the results. ``tolerance`` is the accuracy a chosen point may give
    up. The strength of ``regulariser`` itself is not used.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "tradeoff"
    regulariser: SocialParameters = Field(default_factory=lambda: BurdenParameters(kind="burden"))
    curves: list[CurveParameters] = Field(default_factory=lambda: [CurveParameters()], min_length=1)
    datasets: list[str] = Field(["credit"], min_length=1)
    splits: Count = 1
    cost: CostParameters = Field(default_factory=QuadraticCostParameters)
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.01
    shares: SharesParameters = SharesParameters()
    batch_sizes: dict[str, Count] = Field({})
    balance: bool = True
    max_rows: Count | None = None
    divide_by_root_d: bool = True
    skip_missing: bool = False

    def build(self) -> TradeOff:
        """Return what to run."""
        from countermove.experiments.serm.tradeoff import TradeOff

        kept = {"datasets", "splits", "tolerance", "shares", "batch_sizes", "balance", "max_rows"}
        return TradeOff(
            **self.model_dump(include=kept | {"divide_by_root_d", "skip_missing"}),
            regulariser=self.regulariser.build(),
            curves=[curve.build() for curve in self.curves],
            cost=self.cost.build(),
        )
