r"""People who do not coordinate: members on their own, and a rest that responds to the model.

Selfish members each climb their own utility at the model in force, a step at a time before
each refit: full responses of people whom no cost holds back would jump from end to end.
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
    projected_slope,
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
"""Shorter steps tried before one that raises the residual is taken all the same."""


@dataclass(frozen=True, eq=False)
class SelfishPoint:
    """A selfish stable point."""

    point: Point
    converged: bool  # whether no member would move by more than the tolerance
    residual: float  # the largest such move: a member's own projected slope, the model held fixed
    residuals: tuple[float, ...]  # the same after each round


def selfish_point(
    problem: Bilevel,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 500,
    strict: bool = True,
    stride: float | None = None,
) -> SelfishPoint:
    """Return where members and learner rest when nobody coordinates; see `Bilevel.maximise`."""
    # The point is stationary for every member: its best response where its own utility is concave.
    # Where many points are stable (members who become indifferent stop anywhere), a short stride
    # per round leads to the one that members reach whom the refit never surprises.
    space = problem.space
    point = problem.at(space.stay() if start is None else space.project(start))
    slope = problem.own(point) / space.metric
    length = 1.0 / max(float(np.abs(slope).max()), 1e-3)
    residuals = [projected_slope(space, point.eta, slope)]
    recent, best = deque([residuals[0]], REMEMBERED), (residuals[0], point)
    while best[0] > tolerance and len(residuals) <= max_steps:
        after, slope_after = _round(problem, point, slope, length, max(recent), stride)
        length = spectral_length(after.eta - point.eta, slope_after - slope, space.metric)
        point, slope = after, slope_after
        residuals.append(projected_slope(space, point.eta, slope))
        recent.append(residuals[-1])
        best = min(best, (residuals[-1], point), key=lambda pair: pair[0])
    if strict and best[0] > tolerance:
        raise NotConvergedError(
            f"selfish members would still move by {best[0]:.2g} after {max_steps} rounds "
            f"(tolerance {tolerance:.2g}): there may be no stable point in pure strategies; "
            "bound the moves more tightly, make them cost something, or take strict=False"
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
    """Let everybody climb and the learner refit; shorter if that raises the residual."""
    space = problem.space
    length = within_reach(length, point.eta, slope, stride)
    direction = space.project(point.eta + length * slope) - point.eta
    for halving in range(HALVINGS):
        after = problem.at(point.eta + 0.5**halving * direction, point.theta)
        slope_after = problem.own(after) / space.metric
        if projected_slope(space, after.eta, slope_after) <= ceiling:
            break
    return after, slope_after


UNDETERMINED = 1e12
"""Condition of :math:`I - M` from which on a stable point is not determined by the data."""


@dataclass(frozen=True, eq=False)
class JoinedPopulation(PerformativePopulation):
    r"""Members who keep to a strategy, and a rest that responds to the model: the mixture (4)."""

    members: Crowd
    rest: PerformativePopulation
    participation: float

    @property
    def base(self) -> Crowd:  # type: ignore[override]
        """Everybody while no model is deployed."""
        return self._joined(self.rest.base)

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return the members, first, and the rest's response."""
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
    """The learner retrains on members and rest until neither changes."""

    learner: Learner
    rest: PerformativePopulation  # everybody who does not take part
    participation: float  # the members' share of everybody, in (0, 1)
    tolerance: float = 1e-10  # retraining has settled when no parameter changes by more
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
                "that responds less or a larger penalty may settle it"
            )
        return run.theta, joined.answer(run.theta, self.learner)

    def meet(self, crowd: Crowd, theta: Floats) -> Crowd:
        """Return the members and the rest's response to ``theta``."""
        return self.joined(crowd).answer(theta, self.learner)

    def joined(self, crowd: Crowd) -> JoinedPopulation:
        """Return members and rest as one population, to be retrained on."""
        return JoinedPopulation(crowd, self.rest, self.participation)

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} (I - M^\top)^{-1} v`, M the linearised retraining."""
        # M holds central differences of the rest's responses, which must change smoothly with the
        # model; a rest that jumps at a decision boundary has no such derivative.
        system = np.eye(len(theta)) - self.linearised(theta, whole).matrix.T
        if np.linalg.cond(system) > UNDETERMINED:
            raise SolverError(
                "retraining beside the selfish rest neither settles nor departs along some "
                "direction, so that its response to data is not determined; change the "
                "participation or the learner's penalty"
            )
        settled: Floats = np.linalg.solve(system, v).astype(np.float64)
        return self.learner.solve(theta, whole, settled)

    def linearised(self, theta: Floats, whole: Crowd) -> Linearisation:
        """Return how retraining acts near the stable model; ``whole`` is what it is fitted to."""
        members = whole.of_rows(np.arange(whole.n - self.rest.base.n))
        return linearise(self.learner, self.joined(members), theta)
