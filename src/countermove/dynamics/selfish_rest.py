r"""A platform whose other people answer the model: the paper's mixture (4).

.. math:: \theta = A\bigl(\alpha D_h + (1 - \alpha) D(\theta)\bigr)

The equilibrium that is differentiated is this performatively stable point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.dynamics.bilevel import Platform
from countermove.dynamics.contraction import Linearisation, linearise
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import Learner
from countermove.dynamics.populations import Population
from countermove.dynamics.retraining import retrain_until_stable
from countermove.errors import NotConvergedError, ParameterError, SolverError

UNDETERMINED = 1e12
"""Condition of :math:`I - M` from which on a stable point is not determined by the data."""


@dataclass(frozen=True, eq=False)
class JoinedPopulation(Population):
    r"""Members who keep to a strategy, and a rest that answers the model: the mixture (4).

    Parameters
    ----------
    members
        The members as they report themselves.
    rest
        Everybody else.
    participation
        The members' share :math:`\alpha`.
    """

    members: Crowd
    rest: Population
    participation: float

    @property
    def base(self) -> Crowd:  # type: ignore[override]
        """Everybody while no model is deployed."""
        return self._joined(self.rest.base)

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return the members, first, and the rest's answer."""
        return self._joined(self.rest.answer(theta, learner))

    @property
    def first_level(self) -> Population:
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
    rest: Population
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
