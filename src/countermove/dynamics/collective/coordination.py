r"""What coordination, one more participant, and a right picture of the learner are worth.

.. math:: B = U(h^\sharp) - U(h^*), \qquad
          h^* \in \arg\max_h f(D_h, \theta^*), \quad \theta^* = A(D_{h^*})

The bounds of Theorems 6 and 12 are given with what they need: strong concavity of
the utility between the two strategies, which is checked, not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.collective.bilevel import Bilevel, Point, Solution
from countermove.dynamics.collective.moves import Moves
from countermove.dynamics.collective.selfish import SelfishPoint, selfish_point
from countermove.dynamics.collective.spaces import Mixing
from countermove.dynamics.crowd import Crowd
from countermove.errors import ParameterError
from countermove.randomness import generator

if TYPE_CHECKING:
    from countermove.dynamics.collective.collective import Collective


Kind = Literal["bound", "proxy"]

CHECKED = 21
"""Points between the two strategies at which the slope is taken to see how concave it is."""


@dataclass(frozen=True)
class AlignmentBound:
    """A bound on the benefit of coordination, or the number that would be one."""

    name: str
    value: float  # infinite where the utility is not strongly concave
    kind: Kind  # a proxy ranks situations and promises nothing
    why: str  # what was checked, or what is missing


@dataclass(frozen=True, eq=False)
class Coordination:
    """The benefit of coordination and what bounds it."""

    best: Solution  # the best joint strategy found
    selfish: SelfishPoint  # the selfish stable point
    benefit: float  # in units of utility
    # <E_D*[grad u], E_D#[grad loss]> in the metric of the inverse Hessian, with the learner's
    # penalty and the people who do not take part; where U is concave and there is a benefit, <= 0
    alignment: float
    steering: float  # squared length of Theorem 12's vector, per member
    distance: float  # between the two strategies, in the same metric
    # least -U'' between the two strategies, per squared distance: gamma of both theorems
    curvature: float
    theorem_6: AlignmentBound
    theorem_12: AlignmentBound


def coordination(
    problem: Bilevel,
    starts: int = 1,
    tolerance: float = 1e-6,
    max_steps: int = 500,
    strict: bool = True,
) -> Coordination:
    """Find both strategies and compare them (see `Bilevel.maximise` for the search)."""
    # The joint strategy is also searched from the selfish one, so that the benefit is never
    # negative but for rounding.
    selfish = selfish_point(problem, tolerance=tolerance, max_steps=max_steps, strict=strict)
    found = [
        problem.maximise(None, starts, tolerance, max_steps, strict=False),
        problem.maximise(selfish.point.eta, 1, tolerance, max_steps, strict=strict),
    ]
    best = max(found, key=lambda solution: solution.value)
    return compare(problem, best, selfish)


def compare(
    problem: Bilevel, best: Solution, selfish: SelfishPoint, checked: int = CHECKED
) -> Coordination:
    """Return the benefit and its bounds for two strategies already found."""
    here, there = selfish.point, best.point
    metric = problem.space.metric
    step = there.eta - here.eta
    square = float(np.sum(metric * step**2))
    natural = problem.steered(here) / metric
    steering = float(np.sum(metric * natural**2))
    alignment = _alignment(problem, here, there)
    curvature = _curvature(problem, here, step, checked) / square if square > 0.0 else 0.0
    return Coordination(
        best=best,
        selfish=selfish,
        benefit=there.value - here.value,
        alignment=alignment,
        steering=steering,
        distance=square**0.5,
        curvature=curvature,
        theorem_6=_theorem_6(alignment, curvature, square, isinstance(problem.space, Mixing)),
        theorem_12=_theorem_12(steering, curvature, square),
    )


def _alignment(problem: Bilevel, here: Point, there: Point) -> float:
    # At the stable point the risk's gradient is zero, so the gradient at the other crowd is
    # the whole difference between the two: penalty and rest cancel.
    crowd = problem.facing.meet(problem.space.crowd_at(there.eta), here.theta)
    gradient = problem.learner.gradient(here.theta, crowd)
    return float(problem.leverage(here) @ gradient)


def _curvature(problem: Bilevel, here: Point, step: Floats, checked: int) -> float:
    """Return the least fall of the slope along the line, per unit of the line's length of 1."""
    slopes, theta = [], here.theta
    for share in np.linspace(0.0, 1.0, checked):
        point = problem.at(here.eta + share * step, theta)
        slopes.append(float(np.sum(problem.gradient(point) * step)))
        theta = point.theta
    return float(-np.diff(slopes).max() * (checked - 1))


def _theorem_6(alignment: float, curvature: float, square: float, linear: bool) -> AlignmentBound:
    name = "Theorem 6, normalised"
    if square == 0.0:
        return AlignmentBound(name, 0.0, "bound", "both strategies are the same")
    if not curvature > 0.0:
        return AlignmentBound(name, float("inf"), "proxy", _BENT)
    value = max(0.0, -alignment) ** 2 / (2.0 * curvature * square)
    if not linear:
        return AlignmentBound(name, value, "proxy", "the crowd is not linear in the strategy")
    return AlignmentBound(name, value, "bound", _CHECKED)


def _theorem_12(steering: float, curvature: float, square: float) -> AlignmentBound:
    name = "Theorem 12"
    if square == 0.0:
        return AlignmentBound(name, 0.0, "bound", "both strategies are the same")
    if not curvature > 0.0:
        return AlignmentBound(name, float("inf"), "proxy", _BENT)
    return AlignmentBound(name, steering / (2.0 * curvature), "bound", _CHECKED)


_BENT = "the utility is not strongly concave between the two strategies"
_CHECKED = "strongly concave at the points checked between the two strategies"


@dataclass(frozen=True)
class Scaling:
    """How a strategy's utility changes with its participation."""

    participation: float  # share of the eligible people
    utility: float  # what members get
    # dU/d participation, exact; at a best strategy also that of the best utility (Proposition 8)
    slope: float
    psi: float  # -(1 - participation) times the slope: growing pays exactly where it is below 0
    # the paper's; has the sign of psi for certain only if all are eligible and the rest idle
    psi_published: float

    @property
    def worth_growing(self) -> bool:
        """Whether one more participant raises what members get."""
        return self.slope > 0.0


def scaling(collective: Collective, point: Point) -> Scaling:
    """Return the slope of a strategy's utility in the participation, at a strategy played."""
    problem, learner, theta = collective.problem, collective.learner, point.theta
    leverage = problem.leverage(point)
    members = problem.space.members_at(point.eta)
    joining = learner.gradient(theta, members)
    before = learner.gradient(
        theta,
        collective.eligible
        if collective.rest is None
        else collective.rest.answer(theta, collective.learner),
    )
    slope = -collective.eligible_share * float(leverage @ (joining - before))
    return Scaling(
        participation=float(collective.participation),
        utility=point.value,
        slope=slope,
        psi=-(1.0 - float(collective.participation)) * slope,
        psi_published=float(leverage @ joining),
    )


@dataclass(frozen=True, eq=False)
class Misjudgement:
    """A strategy made for a believed platform, played on the true one."""

    believed: Solution  # with the model and utility members expect
    best: Solution  # on the true platform
    realised: float  # what the believed strategy is worth there
    staying: float  # what it is worth there to do nothing

    @property
    def promised(self) -> float:
        """What members expected."""
        return self.believed.value

    @property
    def regret(self) -> float:
        """What the misjudgement costs; 0 at a best strategy."""
        return self.best.value - self.realised

    @property
    def share_kept(self) -> float:
        """The share of the attainable gain that is kept; below 0 staying would have been better."""
        gain = self.best.value - self.staying
        return (self.realised - self.staying) / gain if gain > 0.0 else float("nan")


def misjudged(truth: Bilevel, belief: Bilevel, **options: Any) -> Misjudgement:
    """Optimise on the believed platform and play on the true one (see `Bilevel.maximise`)."""
    believed = belief.maximise(**options)
    realised = truth.at(believed.eta)
    best = max(
        (truth.maximise(**options), truth.maximise(start=believed.eta, **options)),
        key=lambda solution: solution.value,
    )
    staying = truth.at(truth.space.stay(), realised.theta).value
    return Misjudgement(believed, best, realised.value, staying)


def known_from_sample(space: Moves, size: int, seed: int) -> Moves:
    """Return the members' moves among the people they know."""
    # Members know themselves and a sample of the others; a uniform move can be planned from a
    # sample of members and others alike. Both groups keep their share of everybody.
    if size < 1:
        raise ParameterError(f"a sample holds at least one person, got {size}")
    rng, inside = generator(seed, "believed people"), space.rows
    outside = np.setdiff1d(np.arange(space.crowd.n), inside)
    if not outside.size and not space.uniform:
        raise ParameterError(
            "everybody is a member and makes a move of their own: nobody is left to be known "
            "from a sample; let the move be uniform, or let some stay outside"
        )
    kept = np.arange(len(inside))
    if space.uniform:
        kept = np.sort(rng.choice(kept, min(size, len(kept)), replace=False))
    known = np.sort(rng.choice(outside, min(size, len(outside)), replace=False))
    crowd = _weighed(space.crowd, (inside, inside[kept]), (outside, known))
    return replace(
        space,
        crowd=crowd,
        participants=np.arange(len(kept)),
        actions=None if space.actions is None else space.actions.of_rows(kept),
        ball=None if space.ball is None else space.ball.of_rows(kept),
    )


def _weighed(crowd: Crowd, *groups: tuple[Index, Index]) -> Crowd:
    """Let the known rows of each group stand for the whole group."""
    mass, rows = crowd.mass, np.concatenate([known for _, known in groups])
    weight = np.concatenate(
        [
            mass[known] * (mass[whole].sum() / mass[known].sum()) if len(known) else mass[known]
            for whole, known in groups
        ]
    )
    return Crowd(crowd.X[rows], crowd.y[rows], weight)
