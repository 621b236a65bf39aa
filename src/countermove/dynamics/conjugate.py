"""Linear systems known only through products: conjugate gradients that refuse flat directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from countermove._types import Floats
from countermove.dynamics.newton import FLAT
from countermove.errors import SolverError

EXACT = 1e-12
"""The residual ends below this share of the right-hand side."""


def solve_by_products(product: Callable[[Floats], Floats], v: Floats) -> Floats:
    r"""Return :math:`H^{-1} v` for a positive definite H.

    Parameters
    ----------
    product
        :math:`u \mapsto H u`.
    v
        The right-hand side, shape (p,).

    Raises
    ------
    SolverError
        Where a direction of no, or of negative, curvature is met, or rounding stops the descent.
    """
    solution, residual = np.zeros_like(v), v.copy()
    direction, square = residual.copy(), float(residual @ residual)
    goal, steepest = EXACT**2 * square, 0.0
    for _ in range(20 * len(v) + 50):
        if square <= goal:
            return solution
        bent = product(direction)
        curvature = float(direction @ bent) / float(direction @ direction)
        steepest = max(steepest, abs(curvature))
        if not curvature > FLAT * steepest:
            raise SolverError(
                f"the learner's Hessian is singular or not positive definite (curvature "
                f"{curvature:.2g} beside {steepest:.2g}), so its answer to data is not determined; "
                "give the learner a larger penalty"
            )
        length = square / float(direction @ bent)
        solution += length * direction
        residual -= length * bent
        before, square = square, float(residual @ residual)
        direction = residual + (square / before) * direction
    if square <= 1e6 * goal:
        return solution
    raise SolverError(
        f"conjugate gradients stopped at a residual of {square**0.5:.2g}: the learner's Hessian is "
        "close to singular; give the learner a larger penalty"
    )
