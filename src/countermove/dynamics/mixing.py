"""Members who spread over given answers: crowds that are linear in the strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from countermove._types import Floats
from countermove.dynamics.balls import project_to_simplex
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.spaces import Space
from countermove.dynamics.utilities import Utility
from countermove.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Mixing(Space):
    r"""Members spread over given answers: :math:`D_\eta = \sum_k \eta_k D_k`, :math:`\eta` shares.

    The crowd is linear in ``eta`` (the paper's Assumption 1), as Theorem 6 asks.

    Parameters
    ----------
    answers
        The crowds :math:`D_k`.
    rest
        Who does not take part; None: nobody.
    participation
        The members' share of everybody.
    """

    answers: Sequence[Crowd]
    rest: Crowd | None = None
    participation: float = 1.0
    metric: Floats = field(init=False)

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise ParameterError(f"mixing needs at least two answers, got {len(self.answers)}")
        if not 0.0 < self.participation <= 1.0 or (self.rest is None) != (
            self.participation == 1.0
        ):
            raise ParameterError(
                "participation lies in (0, 1], and is below 1 exactly where there is a rest; got "
                f"{self.participation} {'without' if self.rest is None else 'with'} a rest"
            )
        object.__setattr__(self, "metric", np.ones(len(self.answers)))

    def stay(self) -> Floats:
        """Return the even mixture: no answer is the truth more than another."""
        return np.full(len(self.answers), 1.0 / len(self.answers))

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return shares drawn evenly from the simplex."""
        return rng.dirichlet(np.ones(len(self.answers)))

    def project(self, eta: Floats) -> Floats:
        """Return the nearest shares."""
        return project_to_simplex(np.asarray(eta, dtype=np.float64))

    def members_at(self, eta: Floats) -> Crowd:
        """Return all answers, each counting with its share."""
        return Crowd(
            np.concatenate([answer.X for answer in self.answers]),
            np.concatenate([answer.y for answer in self.answers]),
            np.concatenate([s * a.mass for s, a in zip(eta, self.answers, strict=True)]),
        )

    def crowd_at(self, eta: Floats) -> Crowd:
        """Return the members' answers and the rest."""
        members = self.members_at(eta)
        if self.rest is None:
            return members
        shares = (self.participation * members.mass, (1.0 - self.participation) * self.rest.mass)
        return Crowd(
            np.concatenate([members.X, self.rest.X]),
            np.concatenate([members.y, self.rest.y]),
            np.concatenate(shares),
        )

    def cost(self, eta: Floats) -> float:
        """Return 0: an answer costs what its utility says."""
        return 0.0

    def cost_slope(self, eta: Floats) -> Floats:
        """Return zeros."""
        return np.zeros_like(eta)

    def own_slope(self, eta: Floats, theta: Floats, utility: Utility, learner: Learner) -> Floats:
        r"""Return :math:`E_{D_k}[u(z, \theta)]`."""
        return np.array([utility.value(theta, answer, learner) for answer in self.answers])

    def steering(
        self, eta: Floats, theta: Floats, whole: Crowd, v: Floats, learner: Learner
    ) -> Floats:
        r"""Return :math:`v \cdot E_{D_k}[\nabla_\theta\ell]` times the members' share."""
        share = float(whole.mass[: sum(answer.n for answer in self.answers)].sum())
        pulls = [v @ answer.mean(learner.row_gradients(theta, answer)) for answer in self.answers]
        return share * np.array(pulls)
