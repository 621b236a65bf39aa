"""The linear score."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.scores._layers import fold_standardising
from countermove.scores.base import Score


class LinearScore(Score):
    r""":math:`s(x) = w \cdot x + b`.

    Parameters
    ----------
    n_features
        Length of ``w``.
    generator
        Draws :math:`w_j, b \sim U(-1, 1)/\sqrt{d}` (the SERM experiments' start);
        without one, everything starts at zero.
    """

    kind: ClassVar[str] = "linear"

    def __init__(self, n_features: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        start = torch.zeros(n_features + 1, dtype=torch.float64)
        if generator is not None:
            start = torch.rand(n_features + 1, generator=generator, dtype=torch.float64) * 2 - 1
            start = start / n_features**0.5
        self.weight = nn.Parameter(start[:-1].clone())
        self.bias = nn.Parameter(start[-1].clone())

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return self.weight.shape[0]

    def forward(self, X: Tensor) -> Tensor:
        """Return ``X @ w + b``."""
        return X @ self.weight + self.bias

    def slope(self) -> Tensor:
        """Return the weights."""
        return self.weight

    def linear_columns(self) -> Sequence[int]:
        """Return all columns."""
        return range(self.n_features)

    def gradient(self, X: Tensor) -> Tensor:
        """Return the weights, for everybody."""
        return self.weight.detach().expand(len(X), -1)

    def before_standardising(self, mean: Floats, scale: Floats) -> LinearScore:
        """Return the linear score of the rows before they were standardised."""
        other = copy.deepcopy(self)
        fold_standardising(other.weight, other.bias, mean, scale)
        return other

    def describe(self) -> dict[str, Any]:
        """Return the number of features."""
        return {"n_features": self.n_features}
