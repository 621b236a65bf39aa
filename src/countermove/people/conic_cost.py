"""Prices without a closed form: any convex expression of CVXPY, solved by ``ConicResponse``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from countermove._types import Floats
from countermove.data.storage import object_digest
from countermove.errors import CostError
from countermove.people._cost_arguments import Coefficient, tensor
from countermove.people._units import Units, checked_units
from countermove.people.costs import Cost


class ConicCost(Cost):
    """Any convex cost written in CVXPY.

    >>> import cvxpy as cp
    >>> from countermove.people import ConicCost
    >>> cost = ConicCost(lambda x, x_new: cp.norm1(x_new - x))
    >>> cost.kind
    'conic'

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
    units
        Of what ``build`` receives: rows as they are standardised, or as the table has them.
    """

    kind: ClassVar[str] = "conic"

    def __init__(
        self,
        build: Callable[..., Any],
        parameters: Mapping[str, Coefficient] | None = None,
        signs: Mapping[str, str] | None = None,
        units: Units = "standardised",
    ) -> None:
        self.build = build
        self.parameters = {k: tensor(v, f"parameter {k}") for k, v in (parameters or {}).items()}
        self.signs = dict(signs or {})
        self.units = checked_units(units)
        self._factor: Floats | None = None

    @property
    def factor(self) -> Floats | None:
        """What rows are multiplied by before ``build`` sees them, shape (d,); None: by one."""
        self._check_units()
        return self._factor

    def canonical(self, n_features: int) -> None:
        """Return None: only the conic response reads this cost."""
        self._check_units()

    def rescaled(self, scale: ArrayLike) -> ConicCost:
        """Return the cost of ``scale * x``: original units, counted from the mean."""
        factor = np.asarray(scale, dtype=np.float64)
        return self._like(self.build, factor if self._factor is None else self._factor * factor)

    def describe(self) -> dict[str, Any]:
        """Return the dotted path of ``build``, a digest of its code, and the parameters."""
        return self._described(
            build=f"{self.build.__module__}:{self.build.__qualname__}",
            code=object_digest(self.build),
            parameters={k: v.tolist() for k, v in self.parameters.items()},
        )

    def _converted(self, mean: Floats, scale: Floats) -> ConicCost:
        # Such a cost may look at where people stand, not at the move alone: the mean counts.
        build = self.build

        @functools.wraps(build)  # keeps the arguments that ``build`` asks for
        def shifted(x: Any, x_new: Any, **named: Any) -> Any:
            return build(x + mean, x_new + mean, **named)

        return self._like(shifted, scale)

    def _price(self, action: Tensor) -> Tensor:
        self._check_units()
        raise CostError("a conic cost is priced by ConicResponse, which holds its expression")

    def _times(self, factor: float) -> ConicCost:
        build = self.build

        @functools.wraps(build)
        def multiplied(*given: Any, **named: Any) -> Any:
            return factor * build(*given, **named)

        return self._like(multiplied, self._factor, self.units)

    def _like(
        self, build: Callable[..., Any], factor: Floats | None, units: Units = "standardised"
    ) -> ConicCost:
        other = ConicCost(build, self.parameters, self.signs, units)
        other._factor = factor
        return other
