"""The coefficients of a cost, checked: finite, of the right shape, prices positive."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove.errors import CostError

Coefficient = ArrayLike | Tensor


def tensor(value: Coefficient, what: str) -> Tensor:
    """Return a coefficient as a finite float64 tensor; a tensor keeps its gradient."""
    made = (
        value.to(torch.float64)
        if isinstance(value, Tensor)
        else torch.tensor(np.asarray(value, dtype=np.float64))
    )
    if not bool(torch.isfinite(made.detach()).all()):
        raise CostError(f"the {what} must be finite, got {value!r}")
    return made


def vector(value: Coefficient, what: str) -> Tensor:
    """Return one number per feature."""
    made = tensor(value, what)
    if made.dim() != 1:
        raise CostError(f"the {what} is one number per feature, got shape {tuple(made.shape)}")
    return made


def positive(value: Coefficient, what: str, dims: int) -> Tensor:
    """Return a price, or one price per feature."""
    made = tensor(value, what)
    if made.dim() != dims:
        shape = "one number" if dims == 0 else "one number per feature"
        raise CostError(f"the {what} is {shape}, got shape {tuple(made.shape)}")
    if not bool((made.detach() > 0.0).all()):
        raise CostError(f"the {what} must be positive, got {value!r}; a move never earns money")
    return made


def sized(value: Tensor, n_features: int, what: str) -> Tensor:
    """Return the coefficients of so many features, or refuse another number of them."""
    if value.shape[0] != n_features:
        raise CostError(
            f"the cost has {value.shape[0]} {what} but the people have {n_features} features"
        )
    return value


def check_positive_definite(matrix: Tensor) -> None:
    """Refuse a matrix under which the cost is not convex, or a move is free."""
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        raise CostError(f"the matrix of a Mahalanobis cost is square, got {tuple(matrix.shape)}")
    if not torch.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12):
        raise CostError("the matrix of a Mahalanobis cost must be symmetric")
    smallest = float(torch.linalg.eigvalsh(matrix)[0])
    if smallest <= 0.0:
        raise CostError(
            "the matrix of a Mahalanobis cost must be positive definite (else the cost is not "
            f"convex or a move is free); its smallest eigenvalue is {smallest:.3g}"
        )
