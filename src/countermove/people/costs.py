"""What a move costs.

Every closed-form cost is one canonical shape, a quadratic plus at most one
kink: ``action' H action / 2 + max(0, kink . action)``. Responses read that shape
and nothing else, so a new cost needs no new solver.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats
from countermove.errors import CostError, UnknownNameError, nearest

Coefficient = ArrayLike | Tensor


@dataclass(frozen=True)
class CanonicalCost:
    """The shape the solvers read: ``sum_j q_j δ_j²`` (or ``δ' M δ``) plus ``max(0, l . δ)``."""

    weights: Tensor | None  # q, (d,), non-negative; None when ``matrix`` is given
    matrix: Tensor | None = None  # M, (d, d), symmetric positive definite
    kink: Tensor | None = None  # l, (d,)


class Cost(ABC):
    """A convex cost of moving from ``x`` to ``x_new``, zero when staying."""

    kind: ClassVar[str]

    @abstractmethod
    def canonical(self, n_features: int) -> CanonicalCost | None:
        """Return the canonical shape, None when the cost has none (see `ConicCost`)."""

    @abstractmethod
    def rescaled(self, scale: ArrayLike) -> Cost:
        """Return the cost in standardised units, given this one in original units.

        Parameters
        ----------
        scale
            Original units per standardised unit, shape (d,).
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return ``kind`` and JSON-ready arguments."""

    def times(self, factor: float) -> Cost:
        """Return the cost under which every move costs ``factor`` > 0 times as much."""
        if not (math.isfinite(factor) and factor > 0.0):
            raise CostError(f"a cost is multiplied by a positive number, got {factor!r}")
        return self._times(factor)

    def _times(self, factor: float) -> Cost:
        raise CostError(
            f"{type(self).__name__} is no cost of this package: it cannot be multiplied"
        )

    @overload
    def price(self, X: Floats, X_new: Floats) -> Floats: ...
    @overload
    def price(self, X: Tensor, X_new: Tensor) -> Tensor: ...
    def price(self, X: Any, X_new: Any) -> Any:
        """Return what each person pays to move from the row of ``X`` to that of ``X_new``."""
        if isinstance(X, Tensor) or isinstance(X_new, Tensor):
            return self._price(torch.as_tensor(X_new) - torch.as_tensor(X))
        with torch.no_grad():
            action = torch.as_tensor(np.asarray(X_new, np.float64) - np.asarray(X, np.float64))
            return self._price(action).numpy()

    def _price(self, action: Tensor) -> Tensor:
        shape = self.canonical(action.shape[-1])
        if shape is None:
            raise CostError(f"{type(self).__name__} has no closed form to price actions with")
        total = action.new_zeros(action.shape[:-1])
        if shape.matrix is not None:
            total = total + ((action @ shape.matrix) * action).sum(-1)
        if shape.weights is not None:
            total = total + action.square() @ shape.weights
        if shape.kink is not None:
            total = total + (action @ shape.kink).clamp(min=0.0)
        return total

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.describe().items() if k != "kind")
        return f"{type(self).__name__}({arguments})"


class QuadraticCost(Cost):
    r""":math:`c(x, x') = t\,\|x' - x\|^2`.

    Parameters
    ----------
    scale
        The price factor :math:`t > 0`; a tensor may require a gradient.
    """

    kind: ClassVar[str] = "quadratic"

    def __init__(self, scale: float | Tensor = 1.0) -> None:
        self.scale = _positive(scale, "scale of a quadratic cost", dims=0)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return equal weights."""
        return CanonicalCost(self.scale.expand(n_features))

    def rescaled(self, scale: ArrayLike) -> WeightedQuadraticCost:
        """Return the weighted cost with weights ``t * scale**2``."""
        return WeightedQuadraticCost(self.scale * _vector(scale, "scale").square())

    def describe(self) -> dict[str, Any]:
        """Return the scale."""
        return {"kind": self.kind, "scale": float(self.scale.detach())}

    def _times(self, factor: float) -> QuadraticCost:
        return QuadraticCost(self.scale * factor)


class WeightedQuadraticCost(Cost):
    r""":math:`c(x, x') = \sum_j q_j (x'_j - x_j)^2` with every :math:`q_j > 0`."""

    kind: ClassVar[str] = "weighted_quadratic"

    def __init__(self, weights: Coefficient) -> None:
        self.weights = _positive(weights, "weights of a weighted quadratic cost", dims=1)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the weights."""
        return CanonicalCost(_sized(self.weights, n_features, "weights"))

    def rescaled(self, scale: ArrayLike) -> WeightedQuadraticCost:
        """Return weights times ``scale**2``."""
        return WeightedQuadraticCost(self.weights * _vector(scale, "scale").square())

    def describe(self) -> dict[str, Any]:
        """Return the weights."""
        return {"kind": self.kind, "weights": self.weights.tolist()}

    def _times(self, factor: float) -> WeightedQuadraticCost:
        return WeightedQuadraticCost(self.weights * factor)


class MahalanobisCost(Cost):
    r""":math:`c(x, x') = (x'-x)^\top M (x'-x)` with :math:`M` symmetric positive definite."""

    kind: ClassVar[str] = "mahalanobis"

    def __init__(self, matrix: Coefficient) -> None:
        self.matrix = _tensor(matrix, "matrix of a Mahalanobis cost")
        _check_positive_definite(self.matrix.detach())

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the symmetric part of the matrix."""
        _sized(self.matrix[0], n_features, "columns of the matrix")
        return CanonicalCost(None, matrix=0.5 * (self.matrix + self.matrix.T))

    def rescaled(self, scale: ArrayLike) -> MahalanobisCost:
        """Return ``scale_i * M_ij * scale_j``."""
        factor = _vector(scale, "scale")
        return MahalanobisCost(self.matrix * factor[:, None] * factor[None, :])

    def describe(self) -> dict[str, Any]:
        """Return the matrix."""
        return {"kind": self.kind, "matrix": self.matrix.tolist()}

    def _times(self, factor: float) -> MahalanobisCost:
        return MahalanobisCost(self.matrix * factor)


class LinearCost(Cost):
    r""":math:`c(x, x') = \max(0, v \cdot (x' - x))`, the separable cost of Hardt et al.

    Moves along :math:`v \cdot \delta \le 0` are free, so a response exists only
    where the actions are bounded.
    """

    kind: ClassVar[str] = "linear"

    def __init__(self, direction: Coefficient) -> None:
        self.direction = _vector(direction, "direction of a linear cost")

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the kink alone."""
        return CanonicalCost(None, kink=_sized(self.direction, n_features, "direction"))

    def rescaled(self, scale: ArrayLike) -> LinearCost:
        """Return the direction times ``scale``."""
        return LinearCost(self.direction * _vector(scale, "scale"))

    def describe(self) -> dict[str, Any]:
        """Return the direction."""
        return {"kind": self.kind, "direction": self.direction.tolist()}

    def _times(self, factor: float) -> LinearCost:
        return LinearCost(self.direction * factor)


class MixtureCost(Cost):
    r""":math:`c = t\,[(1-\gamma)\max(0, v\cdot\delta) + \gamma \sum_j q_j \delta_j^2]`.

    Parameters
    ----------
    direction
        :math:`v`, shape (d,).
    gamma
        Share of the quadratic part, in [0, 1]; 0 is `LinearCost`, 1 quadratic.
    scale
        The price factor :math:`t > 0`.
    weights
        :math:`q`, all one by default.
    """

    kind: ClassVar[str] = "mixture"

    def __init__(
        self,
        direction: Coefficient,
        gamma: float | Tensor,
        scale: float | Tensor = 1.0,
        weights: Coefficient | None = None,
    ) -> None:
        self.direction = _vector(direction, "direction of a mixture cost")
        self.gamma = _tensor(gamma, "gamma of a mixture cost")
        if self.gamma.dim() != 0 or not 0.0 <= float(self.gamma.detach()) <= 1.0:
            raise CostError(f"gamma of a mixture cost lies in [0, 1], got {gamma!r}")
        self.scale = _positive(scale, "scale of a mixture cost", dims=0)
        weights = torch.ones_like(self.direction.detach()) if weights is None else weights
        self.weights = _positive(weights, "weights of a mixture cost", dims=1)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return both parts, the quadratic one only if gamma is positive."""
        weights = self.scale * self.gamma * _sized(self.weights, n_features, "weights")
        kink = self.scale * (1.0 - self.gamma) * _sized(self.direction, n_features, "direction")
        share = float(self.gamma.detach())
        return CanonicalCost(weights if share > 0.0 else None, kink=kink if share < 1.0 else None)

    def rescaled(self, scale: ArrayLike) -> MixtureCost:
        """Return direction times ``scale`` and weights times ``scale**2``."""
        factor = _vector(scale, "scale")
        return MixtureCost(
            self.direction * factor, self.gamma, self.scale, self.weights * factor.square()
        )

    def describe(self) -> dict[str, Any]:
        """Return direction, gamma, scale and weights."""
        return {
            "kind": self.kind,
            "direction": self.direction.tolist(),
            "gamma": float(self.gamma.detach()),
            "scale": float(self.scale.detach()),
            "weights": self.weights.tolist(),
        }

    def _times(self, factor: float) -> MixtureCost:
        return MixtureCost(self.direction, self.gamma, self.scale * factor, self.weights)


class ConicCost(Cost):
    """Any convex cost written in CVXPY.

    Parameters
    ----------
    build
        ``build(x, x_new, **parameters)`` returns a scalar CVXPY expression,
        convex in ``x_new`` (shape (d,)), zero at ``x_new = x``; ``x`` is a CVXPY
        parameter and must enter DPP-compliantly (affinely is always safe). An
        argument named ``action`` receives ``x_new - x`` free of ``x``: use it
        where the move is multiplied by a parameter.
    parameters
        Named coefficients handed to ``build`` as CVXPY parameters of the same
        shape; tensors may require a gradient.
    signs
        Optional sign of a parameter, ``"nonneg"`` or ``"nonpos"``, by name.
    """

    kind: ClassVar[str] = "conic"

    def __init__(
        self,
        build: Callable[..., Any],
        parameters: Mapping[str, Coefficient] | None = None,
        signs: Mapping[str, str] | None = None,
    ) -> None:
        self.build = build
        self.parameters = {k: _tensor(v, f"parameter {k}") for k, v in (parameters or {}).items()}
        self.signs = dict(signs or {})
        self.factor: Floats | None = None

    def canonical(self, n_features: int) -> None:
        """Return None: only the conic response reads this cost."""

    def rescaled(self, scale: ArrayLike) -> ConicCost:
        """Return the cost of ``scale * x``: original units, counted from the mean."""
        other = ConicCost(self.build, self.parameters, self.signs)
        factor = np.asarray(scale, dtype=np.float64)
        other.factor = factor if self.factor is None else self.factor * factor
        return other

    def describe(self) -> dict[str, Any]:
        """Return the dotted path of ``build`` and the parameters."""
        return {
            "kind": self.kind,
            "build": f"{self.build.__module__}:{self.build.__qualname__}",
            "parameters": {k: v.tolist() for k, v in self.parameters.items()},
        }

    def _price(self, action: Tensor) -> Tensor:
        raise CostError("a conic cost is priced by ConicResponse, which holds its expression")

    def _times(self, factor: float) -> ConicCost:
        build = self.build

        @functools.wraps(build)  # keeps the arguments that ``build`` asks for
        def multiplied(*given: Any, **named: Any) -> Any:
            return factor * build(*given, **named)

        other = ConicCost(multiplied, self.parameters, self.signs)
        other.factor = self.factor
        return other


KINDS: dict[str, type[Cost]] = {
    cost.kind: cost
    for cost in (QuadraticCost, WeightedQuadraticCost, MahalanobisCost, LinearCost, MixtureCost)
}


def cost_from_description(description: Mapping[str, Any]) -> Cost:
    """Rebuild a cost from what ``describe()`` returned (conic costs hold code: rebuild by hand)."""
    arguments = dict(description)
    kind = str(arguments.pop("kind", ""))
    if kind not in KINDS:
        raise UnknownNameError(f"no cost of kind {kind!r}; {nearest(kind, KINDS)}")
    return KINDS[kind](**arguments)


def _tensor(value: Coefficient, what: str) -> Tensor:
    tensor = (
        value.to(torch.float64)
        if isinstance(value, Tensor)
        else torch.tensor(np.asarray(value, dtype=np.float64))
    )
    if not bool(torch.isfinite(tensor.detach()).all()):
        raise CostError(f"the {what} must be finite, got {value!r}")
    return tensor


def _vector(value: Coefficient, what: str) -> Tensor:
    tensor = _tensor(value, what)
    if tensor.dim() != 1:
        raise CostError(f"the {what} is one number per feature, got shape {tuple(tensor.shape)}")
    return tensor


def _positive(value: Coefficient, what: str, dims: int) -> Tensor:
    tensor = _tensor(value, what)
    if tensor.dim() != dims:
        shape = "one number" if dims == 0 else "one number per feature"
        raise CostError(f"the {what} is {shape}, got shape {tuple(tensor.shape)}")
    if not bool((tensor.detach() > 0.0).all()):
        raise CostError(f"the {what} must be positive, got {value!r}; a move never earns money")
    return tensor


def _sized(value: Tensor, n_features: int, what: str) -> Tensor:
    if value.shape[0] != n_features:
        raise CostError(
            f"the cost has {value.shape[0]} {what} but the people have {n_features} features"
        )
    return value


def _check_positive_definite(matrix: Tensor) -> None:
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
