r"""People who do not coordinate: members on their own, and a rest that answers the model.

Selfish members each climb their own utility at the model in force, as far as pays before the
refit: full answers of people whom a cost does not hold would jump from end to end.
Beside a selfish rest the model is the stable point of the paper's mixture (4),
:math:`\theta = A(\alpha D_h + (1 - \alpha) D(\theta))`, and that point is differentiated.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.dynamics.collective.bilevel import (
    REMEMBERED,
    Bilevel,
    Platform,
    Point,
    spectral_length,
    within_reach,
)
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import Learner
from countermove.dynamics.retraining.loop import retrain_until_stable
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.dynamics.retraining.stability import Linearisation, linearise
from countermove.errors import NotConvergedError, ParameterError, SolverError

HALVINGS = 12
"""Shorter steps tried before one that raises the members' wish to move is taken all the same."""


@dataclass(frozen=True, eq=False)
class SelfishPoint:
    """A selfish stable point.

    Parameters
    ----------
    point
        Strategy, model and utility.
    converged
        Whether no member wishes to move by more than the tolerance.
    residual
        The largest such move: the projected slope of a member's own utility, the model held fixed.
    residuals
        The same after each round.
    """

    point: Point
    converged: bool
    residual: float
    residuals: tuple[float, ...]


def selfish_point(
    problem: Bilevel,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 500,
    strict: bool = True,
    stride: float | None = None,
) -> SelfishPoint:
    """Return where members and learner rest when nobody coordinates.

    Parameters
    ----------
    problem
        Members, what they want, and the platform.
    start
        Where members start; None: nobody has moved.
    tolerance
        On a member's projected own slope.
    max_steps
        Rounds of moving and refitting.
    strict
        Raise where the play has not come to rest; else the point says so.
    stride
        How far a member moves at most before the learner refits. Where many points are stable
        (members who become indifferent stop anywhere), short strides lead to the one that
        members reach who are never surprised by the refit.

    Notes
    -----
    The point is stationary for every member; where a member's own utility is concave in its
    move, it is that member's best answer.
    """
    space = problem.space
    point = problem.at(space.stay() if start is None else space.project(start))
    slope = problem.own(point) / space.metric
    length = 1.0 / max(float(np.abs(slope).max()), 1e-3)
    residuals = [_residual(problem, point, slope)]
    recent, best = deque([residuals[0]], REMEMBERED), (residuals[0], point)
    while best[0] > tolerance and len(residuals) <= max_steps:
        after, slope_after = _round(problem, point, slope, length, max(recent), stride)
        length = spectral_length(after.eta - point.eta, slope_after - slope, space.metric)
        point, slope = after, slope_after
        residuals.append(_residual(problem, point, slope))
        recent.append(residuals[-1])
        best = min(best, (residuals[-1], point), key=lambda pair: pair[0])
    if strict and best[0] > tolerance:
        raise NotConvergedError(
            f"selfish members still wish to move by {best[0]:.2g} after {max_steps} rounds "
            f"(tolerance {tolerance:.2g}): there may be no stable point without lotteries; bound "
            "the moves more tightly, make them cost something, or take strict=False"
        )
    return SelfishPoint(best[1], best[0] <= tolerance, best[0], tuple(residuals))


def _round(
    problem: Bilevel,
    point: Point,
    slope: Floats,
    length: float,
    ceiling: float,
    stride: float | None,
) -> tuple[Point, Floats]:
    """Let everybody climb and the learner refit; shorter if that leaves them less content."""
    space = problem.space
    length = within_reach(length, point.eta, slope, stride)
    direction = space.project(point.eta + length * slope) - point.eta
    for halving in range(HALVINGS):
        after = problem.at(point.eta + 0.5**halving * direction, point.theta)
        slope_after = problem.own(after) / space.metric
        if _residual(problem, after, slope_after) <= ceiling:
            break
    return after, slope_after


def _residual(problem: Bilevel, point: Point, slope: Floats) -> float:
    return float(np.abs(problem.space.project(point.eta + slope) - point.eta).max())


UNDETERMINED = 1e12
"""Condition of :math:`I - M` from which on a stable point is not determined by the data."""


@dataclass(frozen=True, eq=False)
class JoinedPopulation(PerformativePopulation):
    r"""Members who keep to a strategy, and a rest that answers the model: the mixture (4)."""

    members: Crowd
    rest: PerformativePopulation
    participation: float

    @property
    def base(self) -> Crowd:  # type: ignore[override]
        """Everybody while no model is deployed."""
        return self._joined(self.rest.base)

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return the members, first, and the rest's answer."""
        return self._joined(self.rest.answer(theta, learner))

    @property
    def first_level(self) -> PerformativePopulation:
        """The rest alone."""
        return self.rest.first_level

    def promised_rate(self, first: float) -> float:
        r"""Return Proposition 9's rate: :math:`1 - \alpha` times the rest's."""
        return (1.0 - self.participation) * self.rest.promised_rate(first)

    def _joined(self, rest: Crowd) -> Crowd:
        return mixture([self.members, rest], [self.participation, 1.0 - self.participation])


@dataclass(frozen=True, eq=False)
class SelfishRest(Platform):
    r"""The learner retrains on members and rest until neither changes.

    Parameters
    ----------
    learner
        Who retrains.
    rest
        Everybody who does not take part, and how they answer a model.
    participation
        The members' share :math:`\alpha` of everybody, in (0, 1).
    tolerance
        Retraining has settled when no parameter changes by more.
    max_rounds
        Rounds of retraining before it is given up.

    Notes
    -----
    With :math:`M = -H^{-1} (1-\alpha)\, \partial_\phi E_{D(\phi)}[\nabla\ell(\theta)]`, the
    linearised retraining, :math:`J = H (I - M)`. The entries of M are central differences of the
    rest's answers, which must therefore change smoothly with the model (a rest that jumps at a
    decision boundary has no such derivative).
    """

    learner: Learner
    rest: PerformativePopulation
    participation: float
    tolerance: float = 1e-10
    max_rounds: int = 200

    def __post_init__(self) -> None:
        if not 0.0 < self.participation < 1.0:
            raise ParameterError(
                "with a selfish rest the participation lies strictly between 0 and 1, got "
                f"{self.participation}; without a rest everybody takes part"
            )

    def settle(self, crowd: Crowd, start: Floats | None = None) -> tuple[Floats, Crowd]:
        """Return the performatively stable model by repeated retraining."""
        joined = self.joined(crowd)
        run = retrain_until_stable(
            self.learner,
            joined,
            start,
            rounds=self.max_rounds,
            tolerance=self.tolerance,
            theory=False,
        )
        if not run.stable:
            raise NotConvergedError(
                f"retraining beside a selfish rest is {run.words}; a larger collective, a rest "
                "that answers less or a larger penalty steadies it"
            )
        return run.theta, joined.answer(run.theta, self.learner)

    def meet(self, crowd: Crowd, theta: Floats) -> Crowd:
        """Return the members and the rest's answer to ``theta``."""
        return self.joined(crowd).answer(theta, self.learner)

    def joined(self, crowd: Crowd) -> JoinedPopulation:
        """Return members and rest as one population, to be retrained on."""
        return JoinedPopulation(crowd, self.rest, self.participation)

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} (I - M^\top)^{-1} v`."""
        system = np.eye(len(theta)) - self.linearised(theta, whole).matrix.T
        if np.linalg.cond(system) > UNDETERMINED:
            raise SolverError(
                "retraining beside the selfish rest neither settles nor departs along some "
                "direction, so that its answer to data is not determined; change the "
                "participation or the learner's penalty"
            )
        settled: Floats = np.linalg.solve(system, v).astype(np.float64)
        return self.learner.solve(theta, whole, settled)

    def linearised(self, theta: Floats, whole: Crowd) -> Linearisation:
        """Return how retraining acts near the stable model; ``whole`` is what it is fitted to."""
        members = whole.of_rows(np.arange(whole.n - self.rest.base.n))
        return linearise(self.learner, self.joined(members), theta)
