r"""What a collective can do: spaces of strategies :math:`\eta \mapsto D_{h(\eta)}`.

A space knows the crowd that a strategy makes, which strategies are allowed, what
they cost, and how a change of strategy changes what members get at a fixed model
(own part) and what the learner sees (steering part).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.collective.balls import project_to_simplex
from countermove.dynamics.collective.utilities import Utility
from countermove.dynamics.crowd import Crowd, mixture
from countermove.dynamics.learners import Learner
from countermove.errors import ParameterError


class Space(ABC):
    """Strategies of one collective; a strategy is one array ``eta``."""

    metric: Floats
    """What a squared unit of each entry of ``eta`` counts; broadcasts to it."""

    @abstractmethod
    def stay(self) -> Floats:
        """Return the strategy closest to reporting the truth."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return a random allowed strategy, to start a search from."""

    @abstractmethod
    def project(self, eta: Floats) -> Floats:
        """Return the nearest allowed strategy."""

    @abstractmethod
    def crowd_at(self, eta: Floats) -> Crowd:
        """Return everybody the learner sees."""

    @abstractmethod
    def members_at(self, eta: Floats) -> Crowd:
        """Return the members as they report themselves, their weights adding up to 1."""

    @abstractmethod
    def cost(self, eta: Floats) -> float:
        """Return what the strategy costs a member on average."""

    @abstractmethod
    def cost_slope(self, eta: Floats) -> Floats:
        """Return the derivative of the cost."""

    @abstractmethod
    def own_slope(self, eta: Floats, theta: Floats, utility: Utility, learner: Learner) -> Floats:
        r"""Return :math:`\partial f(D_{h(\eta)}, \theta)/\partial\eta` at a fixed model."""

    @abstractmethod
    def steering(
        self, eta: Floats, theta: Floats, whole: Crowd, v: Floats, learner: Learner
    ) -> Floats:
        r"""Return :math:`\partial\,(v \cdot \nabla_\theta \mathrm{risk})/\partial\eta`."""
        # `whole` is the crowd the model was fitted to; its first rows are `crowd_at(eta)`.


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
        return mixture([members, self.rest], [self.participation, 1.0 - self.participation])

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


@dataclass(frozen=True, eq=False)
class PartialMoves(Space):
    """The strategies of a space, bounded row by row, in which all rows but some are ``held``."""

    space: Space
    held: Floats
    rows: Index

    @property
    def metric(self) -> Floats:  # type: ignore[override]
        """Return that of the rows that move."""
        part: Floats = np.broadcast_to(self.space.metric, self.held.shape)[self.rows]
        return part

    def whole(self, eta: Floats) -> Floats:
        """Return everybody's strategy."""
        everybody = self.held.copy()
        everybody[self.rows] = eta
        return everybody

    def stay(self) -> Floats:
        """Return what was agreed."""
        part: Floats = self.held[self.rows]
        return part

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return a random strategy of those who move."""
        part: Floats = self.space.drawn(rng)[self.rows]
        return part

    def project(self, eta: Floats) -> Floats:
        """Return the nearest allowed strategy of those who move."""
        part: Floats = self.space.project(self.whole(eta))[self.rows]
        return part

    def crowd_at(self, eta: Floats) -> Crowd:
        """Return everybody the learner sees."""
        return self.space.crowd_at(self.whole(eta))

    def members_at(self, eta: Floats) -> Crowd:
        """Return all members."""
        return self.space.members_at(self.whole(eta))

    def cost(self, eta: Floats) -> float:
        """Return what everybody's strategy costs."""
        return self.space.cost(self.whole(eta))

    def cost_slope(self, eta: Floats) -> Floats:
        """Return its derivative in the rows that move."""
        part: Floats = self.space.cost_slope(self.whole(eta))[self.rows]
        return part

    def own_slope(self, eta: Floats, theta: Floats, utility: Utility, learner: Learner) -> Floats:
        """Return the slope at a fixed model in the rows that move."""
        part: Floats = self.space.own_slope(self.whole(eta), theta, utility, learner)[self.rows]
        return part

    def steering(
        self, eta: Floats, theta: Floats, whole: Crowd, v: Floats, learner: Learner
    ) -> Floats:
        """Return the slope through the model in the rows that move."""
        slope = self.space.steering(self.whole(eta), theta, whole, v, learner)
        part: Floats = slope[self.rows]
        return part
