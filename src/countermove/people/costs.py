"""What a move costs.

Every closed-form cost is one canonical shape, a quadratic plus at most one
kink: ``action' H action / 2 + max(0, kink . action)``. Responses read that shape
and nothing else, so a new cost needs no new solver. The coefficients are per
standard deviation of the training rows, or per unit of the column (``units``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats
from countermove.errors import CostError, UnknownNameError, nearest
from countermove.people._cost_arguments import (
    Coefficient,
    check_positive_definite,
    positive,
    sized,
    tensor,
    vector,
)
from countermove.people._units import Units, checked_moments, checked_units, not_converted


@dataclass(frozen=True)
class CanonicalCost:
    """The shape the solvers read: ``sum_j q_j δ_j²`` (or ``δ' M δ``) plus ``max(0, l . δ)``."""

    weights: Tensor | None  # q, (d,), non-negative; None when ``matrix`` is given
    matrix: Tensor | None = None  # M, (d, d), symmetric positive definite
    kink: Tensor | None = None  # l, (d,)


class Cost(ABC):
    """A convex cost of moving from ``x`` to ``x_new``, zero when staying.

    ``units`` says what the coefficients are about: ``"standardised"``, a move of 1 is one
    standard deviation of the training rows; ``"original"``, it is one unit of the column.
    A cost in original units is priced and responded to once `standardised` has converted it.
    """

    kind: ClassVar[str]
    units: Units = "standardised"

    @abstractmethod
    def canonical(self, n_features: int) -> CanonicalCost | None:
        """Return the canonical shape, None when the cost has none (a conic cost)."""

    @abstractmethod
    def rescaled(self, scale: ArrayLike) -> Cost:
        """Return the cost of the same moves when features are divided by ``scale``, shape (d,).

        The result counts as standardised, whatever the units were: `standardised` converts
        where that is due, and only there.
        """

    def standardised(self, mean: ArrayLike, scale: ArrayLike) -> Cost:
        """Return the cost per standard deviation; one that is so already is returned unchanged.

        Parameters
        ----------
        mean, scale
            Mean and standard deviation of the training rows, shape (d,): rows are
            ``(x - mean) / scale``.
        """
        if self.units == "standardised":
            return self
        return self._converted(*checked_moments(mean, scale))

    def _converted(self, mean: Floats, scale: Floats) -> Cost:
        """Return the cost of rows ``(x - mean) / scale``; most costs see differences only."""
        return self.rescaled(scale)

    def _check_units(self) -> None:
        if self.units == "original":
            raise CostError(not_converted(repr(self)))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return ``kind`` and JSON-ready arguments."""

    def _described(self, **arguments: Any) -> dict[str, Any]:
        """Return the kind and the arguments; units only where they are not the usual ones."""
        units = {} if self.units == "standardised" else {"units": self.units}
        return {"kind": self.kind, **arguments, **units}

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


def checked_cost(cost: Any) -> Cost | None:
    """Return a cost that is one: a number is the scale of a quadratic cost, None stays."""
    if cost is None or isinstance(cost, Cost):
        return cost
    if isinstance(cost, int | float | np.number) and not isinstance(cost, bool):
        return QuadraticCost(float(cost))
    raise CostError(
        "a cost is a Cost, for example QuadraticCost(2.0), or its scale, for example 2.0; got "
        f"{cost!r}"
    )


class QuadraticCost(Cost):
    r""":math:`c(x, x') = t\,\|x' - x\|^2`.

    >>> import numpy as np
    >>> from countermove.people import QuadraticCost
    >>> QuadraticCost(2.0).price(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([4.])

    Parameters
    ----------
    scale
        The price factor :math:`t > 0`; a tensor may require a gradient.
    units
        ``"standardised"``: a move of one standard deviation of the training rows costs
        ``scale``. ``"original"``: a move of one unit of the column does; see `standardised`.
    """

    kind: ClassVar[str] = "quadratic"

    def __init__(self, scale: float | Tensor = 1.0, units: Units = "standardised") -> None:
        self._scale = positive(scale, "scale of a quadratic cost", dims=0)
        self.units = checked_units(units)

    @property
    def scale(self) -> Tensor:
        """The price factor, in the units of the rows."""
        self._check_units()
        return self._scale

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return equal weights."""
        return CanonicalCost(self.scale.expand(n_features))

    def rescaled(self, scale: ArrayLike) -> WeightedQuadraticCost:
        """Return the weighted cost with weights ``t * scale**2``."""
        return WeightedQuadraticCost(self._scale * vector(scale, "scale").square())

    def describe(self) -> dict[str, Any]:
        """Return the scale."""
        return self._described(scale=float(self._scale.detach()))

    def _times(self, factor: float) -> QuadraticCost:
        return QuadraticCost(self._scale * factor, self.units)


class WeightedQuadraticCost(Cost):
    r""":math:`c(x, x') = \sum_j q_j (x'_j - x_j)^2` with every :math:`q_j > 0`.

    >>> import numpy as np
    >>> from countermove.people import WeightedQuadraticCost
    >>> WeightedQuadraticCost([1.0, 3.0]).price(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([4.])
    """

    kind: ClassVar[str] = "weighted_quadratic"

    def __init__(self, weights: Coefficient, units: Units = "standardised") -> None:
        self.weights = positive(weights, "weights of a weighted quadratic cost", dims=1)
        self.units = checked_units(units)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the weights."""
        self._check_units()
        return CanonicalCost(sized(self.weights, n_features, "weights"))

    def rescaled(self, scale: ArrayLike) -> WeightedQuadraticCost:
        """Return weights times ``scale**2``."""
        return WeightedQuadraticCost(self.weights * vector(scale, "scale").square())

    def describe(self) -> dict[str, Any]:
        """Return the weights."""
        return self._described(weights=self.weights.tolist())

    def _times(self, factor: float) -> WeightedQuadraticCost:
        return WeightedQuadraticCost(self.weights * factor, self.units)


class MahalanobisCost(Cost):
    r""":math:`c(x, x') = (x'-x)^\top M (x'-x)` with :math:`M` symmetric positive definite.

    >>> import numpy as np
    >>> from countermove.people import MahalanobisCost
    >>> cost = MahalanobisCost([[1.0, 0.5], [0.5, 1.0]])
    >>> cost.price(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([3.])
    """

    kind: ClassVar[str] = "mahalanobis"

    def __init__(self, matrix: Coefficient, units: Units = "standardised") -> None:
        self.matrix = tensor(matrix, "matrix of a Mahalanobis cost")
        check_positive_definite(self.matrix.detach())
        self.units = checked_units(units)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the symmetric part of the matrix."""
        self._check_units()
        sized(self.matrix[0], n_features, "columns of the matrix")
        return CanonicalCost(None, matrix=0.5 * (self.matrix + self.matrix.T))

    def rescaled(self, scale: ArrayLike) -> MahalanobisCost:
        """Return ``scale_i * M_ij * scale_j``."""
        factor = vector(scale, "scale")
        return MahalanobisCost(self.matrix * factor[:, None] * factor[None, :])

    def describe(self) -> dict[str, Any]:
        """Return the matrix."""
        return self._described(matrix=self.matrix.tolist())

    def _times(self, factor: float) -> MahalanobisCost:
        return MahalanobisCost(self.matrix * factor, self.units)


class LinearCost(Cost):
    r""":math:`c(x, x') = \max(0, v \cdot (x' - x))`, the separable cost of Hardt et al.

    >>> import numpy as np
    >>> from countermove.people import LinearCost
    >>> LinearCost([1.0, 2.0]).price(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([3.])

    Moves along :math:`v \cdot \delta \le 0` are free, so a response exists only
    where the actions are bounded.
    """

    kind: ClassVar[str] = "linear"

    def __init__(self, direction: Coefficient, units: Units = "standardised") -> None:
        self.direction = vector(direction, "direction of a linear cost")
        self.units = checked_units(units)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return the kink alone."""
        self._check_units()
        return CanonicalCost(None, kink=sized(self.direction, n_features, "direction"))

    def rescaled(self, scale: ArrayLike) -> LinearCost:
        """Return the direction times ``scale``."""
        return LinearCost(self.direction * vector(scale, "scale"))

    def describe(self) -> dict[str, Any]:
        """Return the direction."""
        return self._described(direction=self.direction.tolist())

    def _times(self, factor: float) -> LinearCost:
        return LinearCost(self.direction * factor, self.units)


class MixtureCost(Cost):
    r""":math:`c = t\,[(1-\gamma)\max(0, v\cdot\delta) + \gamma \sum_j q_j \delta_j^2]`.

    >>> import numpy as np
    >>> from countermove.people import MixtureCost
    >>> MixtureCost([1.0, 2.0], gamma=0.5).price(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    array([2.5])

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
    units
        Of ``direction`` and ``weights``; see `Cost.units`.
    """

    kind: ClassVar[str] = "mixture"

    def __init__(
        self,
        direction: Coefficient,
        gamma: float | Tensor,
        scale: float | Tensor = 1.0,
        weights: Coefficient | None = None,
        units: Units = "standardised",
    ) -> None:
        self.direction = vector(direction, "direction of a mixture cost")
        self.gamma = tensor(gamma, "gamma of a mixture cost")
        if self.gamma.dim() != 0 or not 0.0 <= float(self.gamma.detach()) <= 1.0:
            raise CostError(f"gamma of a mixture cost lies in [0, 1], got {gamma!r}")
        self.scale = positive(scale, "scale of a mixture cost", dims=0)
        weights = torch.ones_like(self.direction.detach()) if weights is None else weights
        self.weights = positive(weights, "weights of a mixture cost", dims=1)
        self.units = checked_units(units)

    def canonical(self, n_features: int) -> CanonicalCost:
        """Return both parts, the quadratic one only if gamma is positive."""
        self._check_units()
        weights = self.scale * self.gamma * sized(self.weights, n_features, "weights")
        kink = self.scale * (1.0 - self.gamma) * sized(self.direction, n_features, "direction")
        share = float(self.gamma.detach())
        return CanonicalCost(weights if share > 0.0 else None, kink=kink if share < 1.0 else None)

    def rescaled(self, scale: ArrayLike) -> MixtureCost:
        """Return direction times ``scale`` and weights times ``scale**2``."""
        factor = vector(scale, "scale")
        return MixtureCost(
            self.direction * factor, self.gamma, self.scale, self.weights * factor.square()
        )

    def describe(self) -> dict[str, Any]:
        """Return direction, gamma, scale and weights."""
        return self._described(
            direction=self.direction.tolist(),
            gamma=float(self.gamma.detach()),
            scale=float(self.scale.detach()),
            weights=self.weights.tolist(),
        )

    def _times(self, factor: float) -> MixtureCost:
        return MixtureCost(
            self.direction, self.gamma, self.scale * factor, self.weights, self.units
        )


def with_prices(cost: Cost, steps: Mapping[int, tuple[float, float]], n_features: int) -> Cost:
    """Return the cost with prices of their own for some columns, whatever else moves.

    Parameters
    ----------
    cost
        Per standard deviation; one without a closed form is returned as it is.
    steps
        By column, what a step down costs and how long it is.
    n_features
        Number of columns.
    """
    shape = cost.canonical(n_features)
    if shape is None:
        return cost
    at = torch.tensor(list(steps))
    price, length = torch.tensor(list(steps.values()), dtype=torch.float64).T
    if shape.matrix is not None:
        others = torch.ones(n_features, dtype=torch.float64).index_fill(0, at, 0.0)
        own = torch.zeros(n_features, dtype=torch.float64).index_copy(0, at, price / length**2)
        return MahalanobisCost(shape.matrix * others[:, None] * others + torch.diag(own))
    if shape.weights is None:
        assert shape.kink is not None
        return LinearCost(shape.kink.index_copy(0, at, -price / length))
    weights = shape.weights.index_copy(0, at, price / length**2)
    if shape.kink is None:
        return WeightedQuadraticCost(weights)
    return MixtureCost(2.0 * shape.kink.index_fill(0, at, 0.0), 0.5, 1.0, 2.0 * weights)


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
