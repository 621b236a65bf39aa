r"""How fast retraining settles: measured, linearised, and as the theory promises it.

The theory (Perdomo et al. 2020, Theorem 3.5; look-ahead paper, Theorem 3) promises
:math:`\epsilon\beta/\gamma` a round. Its constants are estimated where the dynamics went,
its condition is checked and reported; it is sufficient, far from necessary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner, LinearLearner
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.errors import NotConvergedError, ParameterError

DIFFERENCE = 1e-5
"""How far a model is moved to see how people's response changes."""
NOISE = 1e-10
"""Gaps below this share of the model are rounding, and say nothing about a rate."""


@dataclass(frozen=True)
class MeasuredRate:
    """The rate at which models approached each other in the end."""

    rate: float | None  # last ratio of two gaps that are more than rounding; None if there is none
    # cosine between the two moves: near -1 they alternate around the stable model
    turn: float | None

    @property
    def signed(self) -> float | None:
        """The rate with the sign of the turn: the leading eigenvalue where it is real."""
        if self.rate is None or self.turn is None:
            return None
        return float(np.copysign(self.rate, self.turn))


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Retraining near a stable model, where it multiplies the distance to it by a matrix M."""

    matrix: Floats  # -H^-1 times the derivative of the gradient in the model people respond to
    radius: float  # the asymptotic rate; retraining is locally stable iff it is below 1
    norm: float  # the largest factor a single round can have


@dataclass(frozen=True)
class PromisedRate:
    """What Theorem 3 says, with the constants as estimated."""

    # how far people of level 1 move per unit of the model, the largest seen
    sensitivity: float | None
    # largest change of a person's gradient per unit of move; like the first a lower estimate
    smoothness: float | None
    strong_convexity: float  # as the learner's penalty guarantees it for every crowd
    # smallest eigenvalue of the Hessian on the last crowd; None without one
    curvature: float | None
    rate: float | None  # infinite without strong convexity, None where the constants are unknown

    @property
    def holds(self) -> bool:
        r"""Whether the condition :math:`\epsilon < \gamma/\beta` is met by the estimates."""
        if self.sensitivity is None or self.smoothness is None or self.rate is None:
            return False
        if self.sensitivity == 0.0:
            return True
        return self.sensitivity * self.smoothness < self.strong_convexity

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        if self.rate is None:
            return "the theory's constants are unknown: the learner only fits"
        constants = (
            f"sensitivity {self.sensitivity:.3g}, smoothness {self.smoothness:.3g}, "
            f"strong convexity {self.strong_convexity:.3g}"
        )
        if self.holds:
            return f"Theorem 3 promises a rate of at most {self.rate:.3g} a round ({constants})"
        if self.strong_convexity == 0.0:
            return (
                "Theorem 3 does not apply: the learner's penalty does not make its risk strongly "
                f"convex (no penalty, or none on the intercept); {constants}"
            )
        return (
            "Theorem 3 does not apply: sensitivity times smoothness is not below the strong "
            f"convexity ({constants}); its condition is sufficient, not necessary"
        )


def measured(thetas: Floats) -> MeasuredRate:
    """Return the rate and turn of the last two moves that are more than rounding."""
    moves = np.diff(thetas, axis=0)
    gaps = np.linalg.norm(moves, axis=1)
    floor = NOISE * (1.0 + np.linalg.norm(thetas[-1]))
    for t in range(len(gaps) - 1, 0, -1):
        if gaps[t] > floor and gaps[t - 1] > floor:
            cosine = float(moves[t] @ moves[t - 1] / (gaps[t] * gaps[t - 1]))
            return MeasuredRate(float(gaps[t] / gaps[t - 1]), cosine)
    return MeasuredRate(None, None)


def linearise(
    learner: Learner,
    population: PerformativePopulation,
    theta: Floats,
    difference: float = DIFFERENCE,
) -> Linearisation:
    """Return how retraining acts near a stable model; takes 2 p responses and no fit.

    Parameters
    ----------
    learner, population
        Who trains, and whom it meets.
    theta
        A stable model (elsewhere the matrix is that of one Newton step).
    difference
        Half the distance of the models compared.
    """
    if not learner.differentiable:
        raise ParameterError(f"a learner that only fits ({learner.name}) cannot be linearised")
    columns = [
        learner.gradient(theta, population.answer(theta + e, learner))
        - learner.gradient(theta, population.answer(theta - e, learner))
        for e in difference * np.eye(len(theta))
    ]
    crowd = population.answer(theta, learner)
    mixed = np.array(columns).T / (2.0 * difference)
    matrix = -np.column_stack([learner.solve(theta, crowd, column) for column in mixed.T])
    radius = float(np.abs(np.linalg.eigvals(matrix)).max())
    return Linearisation(matrix, radius, float(np.linalg.norm(matrix, 2)))


def settle(
    learner: Learner,
    population: PerformativePopulation,
    start: Floats,
    tolerance: float = 1e-10,
    max_steps: int = 50,
) -> Floats:
    r"""Return a stable model, also one that retraining would leave: Newton's method on the gap.

    .. math:: \theta \leftarrow \theta + (I - M)^{-1}\,(A(D(\theta)) - \theta)

    with M the linearisation. It finds a stable model near the start, not every one.

    Parameters
    ----------
    learner, population
        Who trains, and whom it meets.
    start
        Where to begin, shape (p,).
    tolerance
        Ends where a fit moves the model by at most this.
    max_steps
        Steps before it is given up.

    Raises
    ------
    NotConvergedError
        If no stable model is found.
    """
    theta = np.array(start, dtype=np.float64)
    for _ in range(max_steps):
        gap = learner.fit(population.answer(theta, learner), start=theta) - theta
        if np.linalg.norm(gap) <= tolerance:
            return theta
        matrix = linearise(learner, population, theta).matrix
        theta = theta + np.linalg.solve(np.eye(len(theta)) - matrix, gap)
    raise NotConvergedError(
        f"no stable model found in {max_steps} steps: a fit still moves the last one by "
        f"{np.linalg.norm(gap):.2g} (tolerance {tolerance:.2g}); try another start"
    )


def promise(learner: Learner, population: PerformativePopulation, thetas: Floats) -> PromisedRate:
    """Estimate the theory's constants along a trajectory, shape (T, p), and its rate."""
    gamma = learner.strong_convexity
    if not learner.differentiable:
        return PromisedRate(None, None, gamma, None, None)
    first, theta = population.first_level, thetas[-1]
    epsilon, moving = _sensitivity(learner, first, thetas)
    crowd = first.answer(theta, learner)
    models = (thetas[0], theta)
    beta = max(_smoothness(learner, crowd, model, moving) for model in models)
    slope = epsilon * beta
    single = 0.0 if slope == 0.0 else slope / gamma if gamma > 0.0 else float("inf")
    curvature = None
    if isinstance(learner, LinearLearner):
        last = population.answer(theta, learner)
        curvature = float(np.linalg.eigvalsh(learner.hessian(theta, last))[0])
    return PromisedRate(epsilon, beta, gamma, curvature, population.promised_rate(single))


def _sensitivity(
    learner: Learner, population: PerformativePopulation, thetas: Floats
) -> tuple[float, NDArray[np.intp]]:
    r"""Return the largest :math:`E|x_i(\theta) - x_i(\theta')| / |\theta - \theta'|`; who moves."""
    # People respond alike row by row, so the mean distance between their places bounds the
    # Wasserstein distance. Near the last model the bound is the mean norm of everybody's Jacobian.
    theta = thetas[-1]

    def places(model: Floats) -> Floats:
        crowd = population.answer(model, learner)
        return np.column_stack([crowd.X, crowd.y])

    ups = [places(theta + e) - places(theta - e) for e in DIFFERENCE * np.eye(len(theta))]
    jacobian = np.stack(ups, axis=-1) / (2.0 * DIFFERENCE)
    moving = np.flatnonzero(np.abs(jacobian).max(axis=(0, 2)) > 0.0)
    if not moving.size:
        return 0.0, moving
    mass = population.answer(theta, learner).mass
    largest = float(mass @ np.linalg.norm(jacobian[:, moving], 2, axis=(1, 2)))
    apart = float(np.linalg.norm(thetas[0] - theta))
    if apart > NOISE:
        moved = np.linalg.norm(places(theta) - places(thetas[0]), axis=1)
        largest = max(largest, float(mass @ moved) / apart)
    return largest, moving


def _smoothness(learner: Learner, crowd: Crowd, theta: Floats, moving: NDArray[np.intp]) -> float:
    r"""Return the largest :math:`|\partial_z \nabla_\theta \ell(z_i, \theta)|` over people."""
    if not moving.size:
        return 0.0
    counted = crowd.mass > 0.0
    pulled = [np.column_stack(learner.pull(theta, crowd, v)) for v in np.eye(len(theta))]
    mixed = np.stack([part[:, moving][counted] for part in pulled], axis=1)
    return float((np.linalg.norm(mixed, 2, axis=(1, 2)) / crowd.mass[counted]).max())
