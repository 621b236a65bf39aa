r"""Recourse when one feature follows from another: abduction, action, prediction.

Each feature may follow from others, :math:`x_j = f_j(x_{parents}) + u_j`. What is unknown
about a person, :math:`u_j`, is read off where they stand; an action shifts a feature
and everything that follows from it moves along. Bounds hold for the actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.data.configuration import function_at, read_yaml
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, nearest, shown
from countermove.execution import in_turn
from countermove.recourse import _gradient, _linear
from countermove.recourse.problem import Proposals, SearchProblem, Settings, cheaper_of, unproven

Function = Callable[..., Tensor]

KEYS = ("causes", "function")


@dataclass(frozen=True)
class CausalEquation:
    """How one feature follows from others, in original units: by slopes or by a function."""

    child: int
    parents: tuple[int, ...]
    coefficients: Floats | None = None  # one per parent; None: to be fitted
    function: Function | None = None  # from the parents' columns, tensors (n,), to the child's


@dataclass(frozen=True)
class CausalModel:
    """A structural causal model with additive noise.

    Parameters
    ----------
    names
        The features, in the order of the columns.
    equations
        One per feature that follows from others, causes before effects.
    mean, scale
        Standardisation of the people it is applied to, original units.
    """

    names: tuple[str, ...]
    equations: tuple[CausalEquation, ...]
    mean: Floats
    scale: Floats

    @classmethod
    def from_mapping(
        cls,
        mapping: Mapping[str, Any],
        names: Sequence[str],
        standardiser: Standardiser | None = None,
    ) -> CausalModel:
        """Read a model from what its YAML file holds.

        .. code-block:: yaml

            duration_months: {causes: {credit_amount: 0.0024}}   # slope, original units
            installment_rate: {causes: [credit_amount]}          # slope fitted on data
            savings_status: {causes: [income], function: "mine.savings:predict"}

        Parameters
        ----------
        mapping
            Feature to its causes.
        names
            The features of the people, in order.
        standardiser
            Units of the people; None when they are in original units already.

        Raises
        ------
        ParameterError
            For an unknown feature or key, a function that cannot be found, or
            features that cause each other in a circle.
        """
        names = tuple(names)
        if not isinstance(mapping, Mapping):
            raise ParameterError(
                f"a causal model maps features to their causes, got {type(mapping).__name__}"
            )
        equations = [_equation(child, entry, names) for child, entry in mapping.items()]
        mean = np.zeros(len(names)) if standardiser is None else standardiser.mean
        scale = np.ones(len(names)) if standardiser is None else standardiser.scale
        return cls(names, _ordered(equations, names), mean, scale)

    @classmethod
    def from_file(
        cls, path: Path, names: Sequence[str], standardiser: Standardiser | None = None
    ) -> CausalModel:
        """Read a model from a YAML file."""
        return cls.from_mapping(read_yaml(Path(path)), names, standardiser)

    def after_standardising(self, mean: Floats, scale: Floats) -> CausalModel:
        """Return the model of rows ``(x - mean) / scale``, for a caller who holds ``x``."""
        return replace(self, mean=self.mean + self.scale * mean, scale=self.scale * scale)

    def fitted(self, X: Floats) -> CausalModel:
        """Return the model with the slopes it leaves open fitted by least squares.

        Parameters
        ----------
        X
            Training people, shape (n, d), in the model's units.
        """
        self.check_width(X.shape[1])
        original = np.asarray(X, np.float64) * self.scale + self.mean
        done = []
        for equation in self.equations:
            if equation.coefficients is None and equation.function is None:
                causes = original[:, list(equation.parents)]
                design = np.column_stack([causes, np.ones(len(causes))])
                answer, *_ = np.linalg.lstsq(design, original[:, equation.child], rcond=None)
                equation = CausalEquation(
                    equation.child, equation.parents, np.asarray(answer[:-1], np.float64)
                )
            done.append(equation)
        return CausalModel(self.names, tuple(done), self.mean, self.scale)

    @property
    def effect(self) -> Floats | None:
        r"""The matrix :math:`T` with :math:`x \oplus \delta = x + T\delta`; None if not linear."""
        if any(equation.function is not None for equation in self.equations):
            return None
        total = np.eye(len(self.names))
        for equation in self.equations:
            slope = _slopes(equation, self) * self.scale[list(equation.parents)]
            total[equation.child] += (
                slope @ total[list(equation.parents)] / self.scale[equation.child]
            )
        return total

    def consequences(self, X: Tensor, action: Tensor) -> Tensor:
        """Return people after an action and all that follows, shape (n, d), model's units."""
        scale, mean = torch.tensor(self.scale), torch.tensor(self.mean)
        before = X * scale + mean
        after = list((before + action * scale).unbind(1))
        old = before.unbind(1)
        for equation in self.equations:
            now = self._value(equation, after)
            then = self._value(equation, old)
            after[equation.child] = after[equation.child] + now - then
        moved: Tensor = (torch.stack(after, dim=1) - mean) / scale
        return moved

    def check_width(self, n_features: int) -> None:
        """Refuse people of another number of features."""
        if n_features != len(self.names):
            raise DataError(
                f"the causal model describes {len(self.names)} features ({shown(self.names)}) but "
                f"the people have {n_features}"
            )

    def _value(self, equation: CausalEquation, columns: Sequence[Tensor]) -> Tensor:
        causes = [columns[j] for j in equation.parents]
        if equation.function is not None:
            value = equation.function(*causes)
            if not isinstance(value, Tensor) or value.shape != causes[0].shape:
                raise ParameterError(
                    f"the function of {self.names[equation.child]!r} must return a tensor of one "
                    f"number per person, got {type(value).__name__}"
                )
            return value
        slopes = torch.tensor(_slopes(equation, self))
        return torch.stack(causes, dim=1) @ slopes


def search(problem: SearchProblem, settings: Settings) -> Proposals:
    """Return recourse under the consequences: the cheaper of linear program and gradient."""
    ways = [how.search(problem, settings).action for how in in_turn((_linear, _gradient))]
    return unproven(cheaper_of(problem, *ways))


def reach(problem: SearchProblem, settings: Settings) -> tuple[Floats, Floats]:
    """Return the best score reached under the consequences."""
    return _linear.reach(problem, settings)


def _slopes(equation: CausalEquation, model: CausalModel) -> Floats:
    if equation.coefficients is None:
        raise ParameterError(
            f"the slopes of {model.names[equation.child]!r} are left open; call "
            "fitted(X_train) first, or write them as `causes: {name: slope}`"
        )
    return equation.coefficients


def _equation(child: str, entry: Any, names: tuple[str, ...]) -> CausalEquation:
    if not isinstance(entry, Mapping) or "causes" not in entry:
        raise ParameterError(
            f"the causal model says {entry!r} for {child!r}; expected `causes:` with a list of "
            "features or a mapping of features to slopes"
        )
    unknown = [key for key in entry if key not in KEYS]
    if unknown:
        raise ParameterError(f"{child!r} has an unknown key; {nearest(str(unknown[0]), KEYS)}")
    causes = entry["causes"]
    parents = tuple(_column(str(name), names, child) for name in causes)
    if not parents:
        raise ParameterError(f"{child!r} has no causes; leave it out of the causal model")
    slopes = None
    if isinstance(causes, Mapping):
        slopes = np.array([float(value) for value in causes.values()])
        if not np.isfinite(slopes).all():
            raise ParameterError(f"the slopes of {child!r} must be finite, got {dict(causes)!r}")
    function = function_at(str(entry["function"])) if "function" in entry else None
    return CausalEquation(_column(str(child), names, child), parents, slopes, function)


def _column(name: str, names: tuple[str, ...], child: str) -> int:
    if name not in names:
        raise ParameterError(
            f"the causal model names {name!r} (in the entry of {child!r}), which is no feature; "
            f"{nearest(name, names)}"
        )
    return names.index(name)


def _ordered(equations: list[CausalEquation], names: tuple[str, ...]) -> tuple[CausalEquation, ...]:
    """Return the equations with causes before effects, or name a circle."""
    left = {equation.child: equation for equation in equations}
    done: list[CausalEquation] = []
    while left:
        ready = [e for e in left.values() if not any(parent in left for parent in e.parents)]
        if not ready:
            raise ParameterError(f"the causal model goes in a circle: {_circle(left, names)}")
        done += ready
        left = {child: equation for child, equation in left.items() if equation not in ready}
    return tuple(done)


def _circle(left: Mapping[int, CausalEquation], names: tuple[str, ...]) -> str:
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(parent for parent in left[walk[-1]].parents if parent in left))
    circle = walk[walk.index(walk[-1]) :]
    return " → ".join(names[j] for j in reversed(circle))
