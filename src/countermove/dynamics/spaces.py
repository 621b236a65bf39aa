r"""What a collective can do: spaces of strategies :math:`\eta \mapsto D_{h(\eta)}`.

A space knows the crowd that a strategy makes, which strategies are allowed, what
they cost, and how a change of strategy changes what members get at a fixed model
(own part) and what the learner sees (steering part).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.dynamics.utilities import Utility


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
        r"""Return :math:`\partial\,(v \cdot \nabla_\theta \mathrm{risk})/\partial\eta`.

        ``whole`` is the crowd the model was fitted to; its first rows are ``crowd_at(eta)``.
        """
