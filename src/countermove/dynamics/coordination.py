r"""What coordination is worth: the best joint strategy against the selfish stable point.

.. math:: B = U(h^\sharp) - U(h^*), \qquad
          h^* \in \arg\max_h f(D_h, \theta^*), \quad \theta^* = A(D_{h^*})

The bounds of Theorems 6 and 12 are given with what they need: strong concavity of
the utility between the two strategies, which is checked, not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from countermove._types import Floats
from countermove.dynamics.bilevel import Bilevel, Point, Solution
from countermove.dynamics.mixing import Mixing
from countermove.dynamics.play import SelfishPoint, selfish_point

Kind = Literal["bound", "proxy"]

CHECKED = 21
"""Points between the two strategies at which the slope is taken to see how concave it is."""


@dataclass(frozen=True)
class AlignmentBound:
    """A bound on the benefit of coordination, or the number that would be one.

    Parameters
    ----------
    name
        The theorem.
    value
        The number; infinite where the utility was found not to be strongly concave.
    kind
        ``"bound"`` where what the theorem needs was checked, else ``"proxy"``: the number then
        ranks situations and promises nothing.
    why
        What was checked, or what is missing.
    """

    name: str
    value: float
    kind: Kind
    why: str


@dataclass(frozen=True, eq=False)
class Coordination:
    r"""The benefit of coordination and what bounds it.

    Parameters
    ----------
    best
        The best joint strategy found, :math:`h^\sharp`.
    selfish
        The selfish stable point, :math:`(h^*, \theta^*)`.
    benefit
        B, in units of utility.
    alignment
        :math:`\Phi = \langle E_{D^*}[\nabla u], E_{D^\sharp}[\nabla\ell]\rangle_{H^{*-1}}`, the
        second average including the learner's penalty and the people who do not take part.
        It is not above 0 where B > 0 and U is concave.
    steering
        The squared length of Theorem 12's vector, in the metric of the strategies (per member).
    distance
        :math:`|\eta^\sharp - \eta^*|` in the same metric.
    curvature
        The least :math:`-\partial^2 U` between the two strategies, per squared distance:
        the :math:`\gamma` of both theorems along this line.
    theorem_6, theorem_12
        The two bounds.
    """

    best: Solution
    selfish: SelfishPoint
    benefit: float
    alignment: float
    steering: float
    distance: float
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
    """Find both strategies and compare them.

    Parameters
    ----------
    problem
        Members, what they want, and the platform.
    starts, tolerance, max_steps, strict
        Of the searches: see `Bilevel.maximise`. The best joint strategy is also searched from
        the selfish one, so that the benefit found is never negative beyond rounding.
    """
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
    """Return the benefit and its bounds for two strategies already found.

    ``checked`` points between the two show how concave the utility is.
    """
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
