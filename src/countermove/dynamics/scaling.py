r"""Whether a strategy is worth scaling up: Propositions 7 and 8.

.. math:: \frac{dU}{d\alpha} = -\,\partial_\theta f^\top J^{-1}\, m\,
          \bigl(E_{D_h}[\nabla\ell] - E_{D_0}[\nabla\ell]\bigr)

with :math:`D_0` the people the new members were before they joined. The paper's
:math:`\Psi` reads the first average alone, which is right only if anybody may join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from countermove.dynamics.bilevel import Point

if TYPE_CHECKING:
    from countermove.dynamics.collective import Collective


@dataclass(frozen=True)
class Scaling:
    r"""How a strategy's utility changes with its participation.

    Parameters
    ----------
    participation
        :math:`\alpha`, the share of the eligible people.
    utility
        What members get.
    slope
        :math:`dU/d\alpha`, exact; at a best strategy for this size it is also the slope of the
        best utility (Proposition 8, the envelope theorem).
    psi
        :math:`\Psi = -(1 - \alpha)\,dU/d\alpha`: growing pays exactly where it is below 0.
    psi_published
        The paper's :math:`\langle E_{D_h}[\nabla u], E_{D_h}[\nabla\ell]\rangle_{H^{-1}}`; it has
        the sign of `psi` for certain only where everybody is eligible and the rest is idle.
    """

    participation: float
    utility: float
    slope: float
    psi: float
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
