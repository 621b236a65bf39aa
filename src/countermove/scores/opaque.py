"""Scores that can only be asked: a function from rows to probabilities, and torch modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.scores._links import Link
from countermove.scores.base import Score, rise_over_unit

WHOLE = 1e-10
"""What differs from a whole number by less, as a share, is one: standardising has added it."""


class OpaqueScore(Score):
    """Log-odds of a function nothing else is known of.

    Parameters
    ----------
    function
        From rows in original units, shape (n, d), to probabilities, shape (n,).
    mean, scale
        Of the rows that are read, ``(x - mean) / scale``.
    """

    kind: ClassVar[str] = "black_box"
    differentiable: ClassVar[bool] = False
    asked: int = 0
    """Rows asked for so far."""

    def __init__(self, function: Callable[[Floats], Floats], mean: Floats, scale: Floats) -> None:
        super().__init__()
        self.function = function
        self.mean, self.scale = np.array(mean, np.float64), np.array(scale, np.float64)
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same function with an intercept of its own."""
        other = type(self)(self.function, self.mean, self.scale)
        other.bias.data.copy_(self.bias.data)
        return other

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return len(self.mean)

    def forward(self, X: Tensor) -> Tensor:
        """Return the scores of the rows of ``X``; they have no gradient."""
        rows = X.detach().numpy() * self.scale + self.mean
        size = np.maximum(np.abs(self.mean), self.scale)
        whole = np.round(rows)
        rows = np.where(np.abs(rows - whole) <= WHOLE * size, whole, rows)
        self.asked += len(rows)
        found = Link("probability").log_odds(np.asarray(self.function(rows), np.float64))
        return torch.from_numpy(found + float(self.bias))

    def slope(self) -> None:
        """Return None: nothing is known of the function."""

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score and, for want of a gradient, its rise over one unit around the row."""
        return self(X), rise_over_unit(self, X.detach(), range(self.n_features))

    def before_standardising(self, mean: Floats, scale: Floats) -> OpaqueScore:
        """Return the same function as a score of the rows ``x`` of which this one reads z."""
        unit = self.scale / scale
        other = OpaqueScore(self.function, self.mean - mean * unit, unit)
        other.bias.data.copy_(self.bias.data)
        return other

    def describe(self) -> dict[str, Any]:
        """Refuse: a function is not stored."""
        raise ParameterError(
            "a black box is code, and models are stored without any; store what the model is made "
            "of (trees and linear rules can be adopted and saved)"
        )


class ModuleScore(Score):
    """A torch module of rows in original units, as log-odds with a gradient."""

    kind: ClassVar[str] = "torch"

    def __init__(self, module: nn.Module, n_features: int, sign: float, probability: bool) -> None:
        super().__init__()
        self.module, self.width = module.eval(), n_features
        self.sign, self.probability = sign, probability
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)
        self.dtype = next((p.dtype for p in module.parameters()), torch.float64)

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return self.width

    def forward(self, X: Tensor) -> Tensor:
        """Return the log-odds of the favourable label."""
        found: Tensor = self.module(X.to(self.dtype)).to(torch.float64)
        if found.ndim == 2 and found.shape[1] == 2:
            found = found[:, 1].logit(1e-15) if self.probability else found[:, 1] - found[:, 0]
        else:
            found = found.reshape(len(X))
            found = found.logit(1e-15) if self.probability else found
        return self.sign * found + self.bias

    def slope(self) -> None:
        """Return None: a module is not taken to be affine."""

    def describe(self) -> dict[str, Any]:
        """Refuse: a module is code."""
        raise ParameterError("a torch module is code, and models are stored without any")
