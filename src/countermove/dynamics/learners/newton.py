"""Newton's method to the last digits, and linear systems known only through products.

SciPy's Newton methods stop up to 1e-8 away and take up to twice as long on small crowds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.errors import NotConvergedError, SolverError

FLAT = 1e-13
"""A Hessian whose smallest eigenvalue is below this share of its largest is singular."""
NEAR = 1e-6
"""A fit ends only where Newton's next step is below this share of the parameters."""
SETTLED = 1e-3
"""Steps below this share of the parameters leave the Hessian as it is."""
STALLED = 0.5
"""So close to the minimum every step lowers the gradient by more than this, but for rounding."""
HALVINGS = 60
"""How often a Newton step may be halved before the fit is given up."""


@dataclass(frozen=True)
class Local:
    """On demand a risk at one point, its gradient (p,) and its Hessian (p, p)."""

    risk: Callable[[], float]
    gradient: Callable[[], Floats]
    hessian: Callable[[], Floats]


def newton(
    at: Callable[[Floats], Local], start: Floats, *, tolerance: float, max_steps: int, name: str
) -> Floats:
    """Return the minimiser, each step halved until the risk falls; raise where none is found."""
    # It ends where the gradient is within the tolerance or down to rounding, and the next step is
    # small.
    theta = np.array(start, dtype=np.float64)
    here, risk, hessian, last, before = at(theta), None, None, np.inf, np.inf
    for _ in range(max_steps):
        gradient = here.gradient()
        worst = float(np.abs(gradient).max())
        # Once steps are small the Hessian hardly changes, and the last one serves.
        if hessian is None or last > SETTLED:
            hessian = here.hessian()
        step = solve_definite(hessian, gradient)
        last = float(np.abs(step).max() / (1.0 + np.abs(theta).max()))
        # Far out on separable classes the gradient vanishes too, but the step does not. Where
        # labels or features are large, a gradient that no longer falls is rounding.
        if last <= NEAR and (worst <= tolerance or worst >= STALLED * before):
            # One more step takes the model to rounding.
            return theta - step
        before = worst
        risk = here.risk() if risk is None else risk
        theta, here, risk = _descend(at, theta, risk, step, float(gradient @ step), name)
    raise NotConvergedError(
        f"the {name} learner's gradient is still {worst:.2g} after "
        f"{max_steps} Newton steps (tolerance {tolerance:.2g}): the classes may be "
        "separable, so that no minimiser exists; add a penalty, or allow more steps"
    )


def solve_definite(matrix: Floats, v: Floats) -> Floats:
    r"""Return :math:`H^{-1} v` for a positive definite H; name the flat direction of another."""
    values, vectors = np.linalg.eigh(matrix)
    if not values[0] > FLAT * max(float(values[-1]), np.finfo(np.float64).tiny):
        flat = int(np.argmax(np.abs(vectors[:, 0])))
        raise SolverError(
            f"the learner's Hessian is singular (eigenvalues from {values[0]:.2g} to "
            f"{values[-1]:.2g}; the flat direction is mostly parameter {flat}), so its response to "
            "data is not determined; give the learner a penalty > 0, on the intercept too if the "
            "flat direction is the intercept's, or drop columns that repeat each other"
        )
    scaled = (vectors.T @ v).T / values
    solution: Floats = vectors @ scaled.T
    return solution


def _descend(
    at: Callable[[Floats], Local],
    theta: Floats,
    risk: float,
    step: Floats,
    decrement: float,
    name: str,
) -> tuple[Floats, Local, float]:
    """Take the longest of the halved steps that does not raise the risk beyond rounding."""
    rounding = 4.0 * np.finfo(np.float64).eps * max(1.0, abs(risk))
    share = 1.0
    for _ in range(HALVINGS):
        point = theta - share * step
        there = at(point)
        risk_there = there.risk()
        if risk_there <= risk - 1e-4 * share * decrement + rounding:
            return point, there, risk_there
        share /= 2.0
    raise NotConvergedError(f"no step lowers the {name} learner's risk of {risk:.6g}")


EXACT = 1e-12
"""The residual ends below this share of the right-hand side."""
DETERMINED = 1e-6
"""A larger residual of least squares, as a share of the right-hand side, is no solution."""


def descend_anywhere(
    risk: Callable[[Floats], float],
    gradient: Callable[[Floats], Floats],
    direction: Callable[[Floats, Floats], Floats],
    start: Floats,
    *,
    tolerance: float,
    max_steps: int,
) -> tuple[Floats, float]:
    """Return where damped Newton steps end on a risk that need not be convex, and its gradient."""
    # A step is kept where the risk falls, or, down at rounding, where the gradient does.
    theta = np.array(start, dtype=np.float64)
    here, slope = risk(theta), gradient(theta)
    for _ in range(max_steps):
        worst = float(np.abs(slope).max())
        if worst <= tolerance:
            break
        step = direction(theta, slope)
        decrement, rounding = float(slope @ step), 8.0 * np.finfo(np.float64).eps * max(1.0, here)
        for halving in range(HALVINGS):
            share = 0.5**halving
            there = theta - share * step
            risk_there = risk(there)
            if risk_there <= here - 1e-4 * share * decrement:
                break
            if risk_there <= here + rounding and np.abs(gradient(there)).max() < worst:
                break
        else:
            break
        theta, here, slope = there, risk_there, gradient(there)
    return theta, float(np.abs(slope).max())


def downhill(matrix: Floats, gradient: Floats) -> Floats:
    """Return the Newton step with every curvature taken as positive, so that it leads downhill."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.abs(values)
    floor = 1e-8 * max(float(size.max()), np.finfo(np.float64).tiny)
    step: Floats = vectors @ ((vectors.T @ gradient) / np.maximum(size, floor))
    return step


def downhill_by_products(product: Callable[[Floats], Floats], gradient: Floats) -> Floats:
    """Return a Newton step by conjugate gradients that stop where the curvature is negative."""
    size = float(np.linalg.norm(gradient))
    enough = min(0.1, size) * size
    step, residual = np.zeros_like(gradient), gradient.copy()
    towards, square = residual.copy(), size**2
    for _ in range(20 * len(gradient)):
        bent = product(towards)
        curvature = float(towards @ bent)
        if curvature <= FLAT * float(towards @ towards):
            return step if step.any() else gradient
        length = square / curvature
        step, residual = step + length * towards, residual - length * bent
        square, before = float(residual @ residual), square
        if square**0.5 <= enough:
            break
        towards = residual + square / before * towards
    return step


def least_squares(matrix: Floats, v: Floats) -> Floats:
    """Return the shortest u that minimises the residual of H u = v, H symmetric."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.abs(values)
    flat = size <= FLAT * max(float(size.max()), np.finfo(np.float64).tiny)
    inverse = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, values))
    solution: Floats = vectors @ (inverse * (vectors.T @ v))
    _refuse_undetermined(float(np.linalg.norm(matrix @ solution - v)), v)
    return solution


def solve_by_products(product: Callable[[Floats], Floats], v: Floats) -> Floats:
    """Return the least-squares solution of H u = v for a symmetric H, definite or not."""
    from scipy.sparse.linalg import LinearOperator, lsmr, minres

    system = LinearOperator((len(v), len(v)), matvec=product, rmatvec=product, dtype=np.float64)
    solution, _ = minres(system, v, rtol=EXACT, maxiter=20 * len(v) + 50)
    left = float(np.linalg.norm(product(solution) - v))
    if left > DETERMINED * float(np.linalg.norm(v)):
        # What conjugate directions do not reach, normal equations may.
        found = lsmr(system, v, atol=EXACT, btol=EXACT, maxiter=20 * len(v) + 50)
        solution, left = found[0], min(left, float(found[3]))
    _refuse_undetermined(left, v)
    return np.asarray(solution, dtype=np.float64)


def _refuse_undetermined(left: float, v: Floats) -> None:
    size = float(np.linalg.norm(v))
    if left > DETERMINED * size:
        raise SolverError(
            f"the learner's Hessian is singular, and {left / size:.2g} of what is asked lies in "
            "its flat directions: the response to data is not determined there; give the learner "
            "a larger penalty"
        )
