"""A score of columns that affine preprocessing makes, as one of people's own columns."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.scores.base import Score


class FoldedScore(Score):
    r""":math:`f\,s(Mx + c) + b`, with a factor that makes it log-odds."""

    kind: ClassVar[str] = "folded"
    matrix: Tensor
    shift: Tensor

    def __init__(self, inner: Score, matrix: Floats, shift: Floats, factor: float = 1.0) -> None:
        super().__init__()
        self.inner, self.factor = copy.deepcopy(inner), factor
        self.register_buffer("matrix", torch.from_numpy(np.array(matrix, dtype=np.float64)))
        self.register_buffer("shift", torch.from_numpy(np.array(shift, dtype=np.float64)))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)
        # A column is held fixed if a fixed column of the inner score is made of it.
        held = np.abs(np.asarray(matrix)[list(inner.fixed)]).sum(axis=0) > 0.0
        self.fixed = tuple(np.flatnonzero(held).tolist())
        self.eval()

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return self.matrix.shape[1]

    def forward(self, X: Tensor) -> Tensor:
        """Return the inner score of the transformed rows."""
        value: Tensor = self.factor * self.inner(X @ self.matrix.T + self.shift) + self.bias
        return value

    def slope(self) -> Tensor | None:
        """Return the inner slope per unit of people's columns, zero on those held fixed."""
        inner = self.inner.slope()
        if inner is None:
            return None
        slope = self.factor * inner @ self.matrix
        slope[list(self.fixed)] = 0.0
        return slope

    def describe(self) -> dict[str, Any]:
        """Refuse: preprocessing is only stored where it folds into a linear rule."""
        raise ParameterError(
            f"preprocessing in front of a {self.inner.kind} score is not stored; save the "
            "classifier without the pipeline"
        )
