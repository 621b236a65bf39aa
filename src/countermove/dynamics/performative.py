r"""Descent on the risk *after* response: where a platform that counts on the answer ends.

.. math:: PR(\theta) = \mathrm{risk}(\theta; D(\theta))

Its minimiser is not a stable point in general: there the next fit would move away, and
the risk after everybody has answered would rise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countermove._types import Floats
from countermove.dynamics.learners import Learner
from countermove.dynamics.populations import Population
from countermove.dynamics.updates import Deployment, Update, positive
from countermove.errors import ParameterError
from countermove.randomness import generator
from countermove.transfer.bandit import bandit_descent


def performative_risk(theta: Floats, learner: Learner, population: Population) -> float:
    """Return the risk of a model on the people who have answered it."""
    return learner.risk(theta, population.answer(theta, learner))


def performative_gradient(
    theta: Floats, learner: Learner, population: Population, difference: float = 1e-5
) -> Floats:
    r"""Return :math:`\nabla PR(\theta)`: the model's own part exactly, the people's by differences.

    .. math:: \nabla_\theta \mathrm{risk}(\theta; D(\theta))
              + \nabla_\varphi \mathrm{risk}(\theta; D(\varphi))\big|_{\varphi = \theta}

    The second part takes 2 p answers of the population, so any population will do; where people
    jump (a hard decision), it is the slope of the risk smoothed over ``difference``.
    """
    own = learner.gradient(theta, population.answer(theta, learner))
    through = [
        learner.risk(theta, population.answer(theta + e, learner))
        - learner.risk(theta, population.answer(theta - e, learner))
        for e in difference * np.eye(len(theta))
    ]
    return own + np.array(through) / (2.0 * difference)


@dataclass(frozen=True)
class PerformativeDescent(Update):
    r"""Performative gradient descent, :math:`\theta_{t+1} = \theta_t - \eta \nabla PR(\theta_t)`.

    Parameters
    ----------
    step
        :math:`\eta > 0`.
    difference
        How far the model is moved to see how people would answer; each round needs
        2 p such answers, so people must be at hand to ask (a simulation).
    """

    step: float = 0.1
    difference: float = 1e-5
    name: ClassVar[str] = "performative_descent"
    seeks_stability: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("step", self.step)
        positive("difference", self.difference)

    def next(self, now: Deployment) -> Floats:
        """Return the model after one step."""
        slope = performative_gradient(now.theta, now.learner, now.population, self.difference)
        return now.theta - self.step * slope


@dataclass(frozen=True)
class DerivativeFree(Update):
    r"""Descent that only sees the risks of deployed models (two-point estimates).

    Parameters
    ----------
    step, probe
        Step size, and how far models are moved to try them, in (0, 1).
    directions
        Random directions a round; each deploys two models.
    radius
        Models stay in a ball of this radius around 0.
    seed
        Of the directions.
    """

    step: float = 0.1
    probe: float = 0.05
    directions: int = 10
    radius: float = 100.0
    seed: int = 0
    name: ClassVar[str] = "derivative_free"
    seeks_stability: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("step", self.step)
        if not 0.0 < self.probe < 1.0 or self.directions < 1 or not self.radius > 0.0:
            raise ParameterError(
                "derivative-free descent needs probe in (0, 1), directions >= 1 and radius > 0; "
                f"got {self.probe}, {self.directions} and {self.radius}"
            )

    def next(self, now: Deployment) -> Floats:
        """Return the model after one step in every direction."""
        run = bandit_descent(
            lambda theta, _: performative_risk(theta, now.learner, now.population),
            now.theta,
            generator(self.seed, f"derivative-free round {now.round}"),
            method="two_point",
            deployments=2 * self.directions,
            step=self.step,
            probe=self.probe,
            radius=self.radius,
        )
        return run.rule
