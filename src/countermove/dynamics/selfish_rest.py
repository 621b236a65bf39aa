r"""A platform whose other people answer the model: the paper's mixture (4).

.. math:: \theta = A\bigl(\alpha D_h + (1 - \alpha) D(\theta)\bigr)

The equilibrium that is differentiated is this performatively stable point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from countermove.dynamics.bilevel import Platform, refit
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import Learner
from countermove.dynamics.populations import Population
from countermove.errors import NotConvergedError, ParameterError, SolverError

Floats = NDArray[np.float64]

NUDGE = 1e-5
"""How far a model is nudged to see how the rest's answer changes, relative to its size."""


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
    linearised retraining, :math:`J = H (I - M)`. Its entries are central differences of the
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
        base = self.rest.base
        theta = self.learner.fit(self._joined(crowd, base)) if start is None else start
        for _ in range(self.max_rounds):
            whole = self.meet(crowd, theta)
            after = refit(self.learner, whole, theta)
            gap = float(np.abs(after - theta).max())
            theta = after
            if gap <= self.tolerance * (1.0 + float(np.abs(theta).max())):
                return theta, self.meet(crowd, theta)
        raise NotConvergedError(
            f"retraining beside a selfish rest has not settled after {self.max_rounds} rounds "
            f"(last change {gap:.2g}); a larger collective, a rest that answers less or a larger "
            "penalty steadies it"
        )

    def meet(self, crowd: Crowd, theta: Floats) -> Crowd:
        """Return the members and the rest's answer to ``theta``."""
        return self._joined(crowd, self.rest.answer(theta, self.learner))

    def adjoint(self, theta: Floats, whole: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} (I - M^\top)^{-1} v`."""
        system = np.eye(len(theta)) - self.linearised(theta, whole).T
        if np.linalg.cond(system) > 1e12:
            raise SolverError(
                "retraining beside the selfish rest neither settles nor departs along some "
                "direction, so that its answer to data is not determined; change the "
                "participation or the learner's penalty"
            )
        settled: Floats = np.linalg.solve(system, v).astype(np.float64)
        return self.learner.solve(theta, whole, settled)

    def linearised(self, theta: Floats, whole: Crowd) -> Floats:
        """Return M: how a change of the deployed model changes the retrained one, shape (p, p)."""
        columns = []
        for j in range(len(theta)):
            step = np.zeros_like(theta)
            step[j] = NUDGE * (1.0 + abs(float(theta[j])))
            ahead, behind = (
                self.learner.gradient(theta, self.rest.answer(theta + sign * step, self.learner))
                for sign in (1.0, -1.0)
            )
            slope = (1.0 - self.participation) * (ahead - behind) / (2.0 * step[j])
            columns.append(-self.learner.solve(theta, whole, slope))
        return np.column_stack(columns)

    def rate(self, theta: Floats, whole: Crowd) -> float:
        r"""Return the contraction of retraining near the stable point: M's spectral radius."""
        return float(np.abs(np.linalg.eigvals(self.linearised(theta, whole))).max())

    def _joined(self, crowd: Crowd, rest: Crowd) -> Crowd:
        return mixture([crowd, rest], [self.participation, 1.0 - self.participation])
