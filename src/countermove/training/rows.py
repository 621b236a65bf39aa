"""What training reads: rows to learn from, rows to stop by, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.scores import Score
from countermove.training._labels import counted
from countermove.training.newton import Derivatives

if TYPE_CHECKING:
    import pandas as pd

Batch = tuple[Tensor, Tensor, Tensor]
"""Rows, labels and the rows' positions."""


class Verdict(NamedTuple):
    """Accuracy after response, loss and, where epochs are not chosen by accuracy, the merit."""

    accuracy: float
    loss: float
    merit: float | None = None


class Objective(Protocol):
    """What is minimised on the training rows and judged on the validation rows."""

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the differentiable loss of a batch."""

    def judge(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float] | Verdict:
        """Return accuracy after response and loss, and a merit if it decides; no gradients."""

    def for_epoch(self, epoch: int) -> Self:
        """Return the objective of an epoch counted from 0; most do not change."""

    def of_rows(self, rows: Tensor) -> Self:
        """Return the objective of some people of the sample; most do not change.

        ``rows`` are positions among the training rows followed by the validation rows.
        """

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return what is learned besides the score."""

    def settle(self) -> None:
        """Bring what is learned besides the score back to where it may be; after every step."""


@runtime_checkable
class HistoryObjective(Protocol):
    """An objective of people who may be known month by month."""

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> Self:
        """Return the objective of people at ``X`` with these months (None: unknown)."""


@runtime_checkable
class SecondOrderObjective(Objective, Protocol):
    """An objective that may know its curvature: a function of means over the rows."""

    def refuses_newton(self, score: Score) -> str | None:
        """Say why this score cannot be trained to the optimum; None: it can."""

    def refuses_polish(self) -> str | None:
        """Say why gradients summed over parts of the rows lead to no optimum; None: they do."""

    def second_order(self, score: Score, X: Tensor, y: Tensor) -> tuple[Derivatives, ...]:
        """Return means over rows, with derivatives in the linear columns' weights and the bias."""

    def joined(self, means: Sequence[Derivatives]) -> Derivatives:
        """Return the loss with its derivatives, of the means over all rows."""


@runtime_checkable
class SoftenedObjective(SecondOrderObjective, Protocol):
    """An objective that may have several optima, and softer ones that lead to one of them."""

    def softened(self) -> tuple[SecondOrderObjective, ...]:
        """Return softer objectives, the first with one optimum; empty where none is needed."""


@dataclass(frozen=True)
class TrainingRows:
    """Training and validation rows: ``X`` float64 (n, d), ``y`` float64 in {-1, +1}.

    Where people count differently, the sign of ``y`` is the label and its size the weight.
    """

    X: Tensor
    y: Tensor
    X_validation: Tensor
    y_validation: Tensor
    in_parts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, X, y in (
            ("training", self.X, self.y),
            ("validation", self.X_validation, self.y_validation),
        ):
            if X.ndim != 2 or y.shape != X.shape[:1]:
                raise ParameterError(
                    f"{name} rows must be X of shape (n, d) and y of shape (n,), "
                    f"got {tuple(X.shape)} and {tuple(y.shape)}"
                )
            if not len(X):
                raise NotEnoughRowsError(f"there are no {name} rows")

    @property
    def n(self) -> int:
        """Number of rows an epoch learns from."""
        return len(self.y)

    @property
    def counted(self) -> float:
        """How many people an epoch learns from: the sum of their weights."""
        return counted(self.y.numpy())

    def known(self) -> tuple[Tensor, Tensor]:
        """Return training and validation rows together; once, where they are the same."""
        if self.X_validation is self.X:
            return self.X, self.y
        return torch.cat([self.X, self.X_validation]), torch.cat([self.y, self.y_validation])

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Yield every training row once, in an order drawn from ``generator``."""
        order = torch.randperm(len(self.y), generator=generator)
        yield from zip(
            torch.split(self.X[order], size),
            torch.split(self.y[order], size),
            torch.split(order, size),
            strict=True,
        )

    def descend(self, objective: Objective, score: Score) -> float:
        """Add the gradient of the mean loss over all training rows; return that loss."""
        loss = objective.loss(score, self.X, self.y)
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def second_order(self, objective: SecondOrderObjective, score: Score) -> Derivatives:
        """Return the derivatives of the mean loss over all training rows."""
        return objective.joined(objective.second_order(score, self.X, self.y))

    def facts(self) -> Any:
        """Return what identifies the training rows besides those held here, JSON-ready."""
        return None
