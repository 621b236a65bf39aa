r"""Newton's method on exact derivatives: linear scores are trained to the optimum.

Saddle-free: every eigenvalue of the Hessian counts by its size, so a step descends where the loss
is not convex (people with the favourable label who reach for it make it so). Where part of the
curvature is not known, it is learned from the gradients met on the way (symmetric rank one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from countermove._types import Floats

TOLERANCE = 1e-8
"""Largest entry of the gradient of the mean loss at which training has converged."""
SHARP = 1e-11
"""Where the Hessian is exact the last steps are nearly free: they go on to this, as far as rounding
lets them, so that rules from other starts and other cuts of the rows agree to about 1e-10."""
ENOUGH = 1e-4
"""Share of the decrease promised by the slope that a step must bring (Armijo)."""
SMALLEST = 1e-10
"""Eigenvalues count as at least this share of the largest."""
TRIALS, FEW = 40, 4
SHORTER = (0.1, 0.5)
"""A step that does not descend is cut to the lowest point of the parabola through what is known of
it, within these shares of its length."""
NOTHING = 1e-11
"""After a few trials a step whose slope promises less than this ends a descent: a jump or a kink of
the response is in the way, and the loss is as low as it gets."""
PATIENCE, STALLED = 8, 1e-9
"""So many steps that each lower the loss by less than this end a descent."""


@dataclass(frozen=True)
class Derivatives:
    """Value, gradient (p,) and Hessian (p, p) of a mean loss, or what is known of the latter."""

    value: float
    gradient: Floats
    hessian: Floats
    exact: bool = True  # whether the Hessian is all of it
    kinked: bool = False  # whether it is the worst of several functions

    def __add__(self, other: Derivatives) -> Derivatives:
        """Return the derivatives of the sum of both functions."""
        return Derivatives(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.exact and other.exact,
            self.kinked or other.kinked,
        )

    def __mul__(self, factor: float) -> Derivatives:
        """Return the derivatives of a multiple."""
        parts = (self.value * factor, self.gradient * factor, self.hessian * factor)
        return Derivatives(*parts, self.exact, self.kinked)

    @property
    def may_have_several_optima(self) -> bool:
        """Whether other starts may end elsewhere: the response jumps, or the worst one changes."""
        return self.kinked or not self.exact

    @property
    def norm(self) -> float:
        """The largest entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


Function: TypeAlias = Callable[[Floats], Derivatives]


class NewtonRun:
    """A descent, step by step."""

    def __init__(self, function: Function, start: Floats, tolerance: float = TOLERANCE) -> None:
        self.function, self.tolerance = function, tolerance
        self.point = np.array(start, dtype=np.float64)
        self.here = function(self.point)
        self.unknown = np.zeros_like(self.here.hessian)
        self.lowest, self.lowered, self.stuck = self.here.value, [1.0], False

    @property
    def converged(self) -> bool:
        """Whether the gradient is as small as asked for."""
        return self.here.norm <= self.tolerance

    @property
    def ended(self) -> str:
        """Why the descent is over; empty while it is not."""
        if self.here.norm <= self._aim or (self.stuck and self.converged):
            return f"converged: no entry of the gradient exceeds {self.tolerance:g}"
        if self.stuck:
            return (
                f"stopped where further steps do not lower the loss (gradient "
                f"{self.here.norm:.1e}): a jump or a kink of the response"
            )
        return ""

    @property
    def _aim(self) -> float:
        """The gradient at which to stop; callers who ask for less than convergence get that."""
        sharp = self.here.exact and self.tolerance == TOLERANCE
        return SHARP if sharp else self.tolerance

    def step(self) -> None:
        """Take one step, or find that none lowers the loss."""
        direction = self._direction()
        slope, length = float(self.here.gradient @ direction), 1.0
        longest = 4.0 * max(1.0, float(np.linalg.norm(self.point)))
        size = float(np.linalg.norm(direction))
        if size > longest:
            length = longest / size
        for trial in range(TRIALS):
            there = self.function(self.point + length * direction)
            if self._descends(there, ENOUGH * length * slope):
                break
            length *= _cut(there.value - self.here.value, length * slope)
            if trial == TRIALS - 1 or (trial >= FEW and -length * slope < NOTHING):
                self.stuck = True
                return
        self._move(length * direction, there)
        self.lowered = [*self.lowered[1 - PATIENCE :], self.lowest - there.value]
        self.lowest = there.value
        # Jumps of a response let the loss fall for ever by ever less.
        self.stuck = len(self.lowered) == PATIENCE and max(self.lowered) < STALLED

    def _direction(self) -> Floats:
        values, vectors = np.linalg.eigh(self.here.hessian + self.unknown)
        sizes = np.abs(values)
        sizes = np.maximum(sizes, max(SMALLEST * sizes.max(), np.finfo(np.float64).tiny))
        direction: Floats = -vectors @ ((vectors.T @ self.here.gradient) / sizes)
        return direction

    def _descends(self, there: Derivatives, wanted: float) -> bool:
        if not np.isfinite(there.value):
            return False
        if there.value <= self.here.value + wanted:
            return True
        # Below rounding of the loss only the gradient can show progress.
        level = 1e-13 * (1.0 + abs(self.here.value))
        return there.value <= self.here.value + level and there.norm < 0.5 * self.here.norm

    def _move(self, step: Floats, there: Derivatives) -> None:
        if not there.exact:
            # The secant of the gradients tells what the known curvature leaves out.
            missing = there.gradient - self.here.gradient - there.hessian @ step
            rest = missing - self.unknown @ step
            along = float(rest @ step)
            if abs(along) > 1e-8 * float(np.linalg.norm(rest) * np.linalg.norm(step)):
                self.unknown = self.unknown + np.outer(rest, rest) / along
        self.point, self.here = self.point + step, there


def _cut(rise: float, promised: float) -> float:
    """Return the share of its length that a step keeps, given what it brought and promised."""
    least, most = SHORTER
    bend = rise - promised
    lowest = -0.5 * promised / bend if np.isfinite(bend) and bend > 0.0 else most
    return min(max(lowest, least), most)


@dataclass(frozen=True)
class Minimum:
    """Where a descent ended."""

    point: Floats
    at: Derivatives
    steps: int
    converged: bool
    ended: str  # why


def minimise(
    function: Function, start: Floats, tolerance: float = TOLERANCE, max_steps: int = 100
) -> Minimum:
    """Descend until the gradient is small enough, no step helps, or the steps are used up."""
    run = NewtonRun(function, start, tolerance)
    steps = 0
    while not run.ended and steps < max_steps:
        run.step()
        steps += not run.stuck
    ended = run.ended or f"stopped after {max_steps} steps, gradient {run.here.norm:.1e}"
    return Minimum(run.point, run.here, steps, run.converged, ended)
