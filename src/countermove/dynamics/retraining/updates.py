r"""How a platform turns the people it meets into its next model.

Repeated risk minimisation and gradient descent (Perdomo et al., 2020), risk minimisation held
near the last model, and descent on the risk *after* response, :math:`PR(\theta) =
\mathrm{risk}(\theta; D(\theta))`, whose minimiser is not a stable point in general.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner, LinearLearner
from countermove.dynamics.learners.newton import Local, newton
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.randomness import generator
from countermove.transfer.bandit import bandit_descent


@dataclass(frozen=True)
class DeployedModel:
    """A model as deployed, and the people who responded to it."""

    learner: Learner
    population: PerformativePopulation
    theta: Floats
    crowd: Crowd
    round: int = 0


class Update(ABC):
    """One way to the next model."""

    name: ClassVar[str]

    @abstractmethod
    def next(self, now: DeployedModel) -> Floats:
        """Return the next model."""


@dataclass(frozen=True)
class RiskMinimisation(Update):
    r""":math:`\theta_{t+1} = A(D(\theta_t))`: train again on everybody, moved."""

    name: ClassVar[str] = "risk_minimisation"

    def next(self, now: DeployedModel) -> Floats:
        """Return the fitted model."""
        return now.learner.fit(now.crowd, start=now.theta)


@dataclass(frozen=True)
class GradientDescent(Update):
    r""":math:`\theta_{t+1} = \theta_t - \eta\,\nabla_\theta\mathrm{risk}(\theta_t; D(\theta_t))`.

    Parameters
    ----------
    step
        :math:`\eta > 0`, in parameters per unit of gradient.
    """

    step: float = 0.1
    name: ClassVar[str] = "gradient_descent"

    def __post_init__(self) -> None:
        positive("step", self.step)

    def next(self, now: DeployedModel) -> Floats:
        """Return the model after one step."""
        return now.theta - self.step * now.learner.gradient(now.theta, now.crowd)


@dataclass(frozen=True)
class ProximalRiskMinimisation(Update):
    r"""Train again, but stay near the last model (RegRRM).

    .. math:: \theta_{t+1} = \arg\min_\theta \mathrm{risk}(\theta; D(\theta_t))
              + r\,|\theta - \theta_t|^2

    Its resting points are the stable points; it moves more slowly towards them and
    overshoots less.

    Parameters
    ----------
    strength
        :math:`r > 0`.
    """

    strength: float = 0.1
    name: ClassVar[str] = "proximal"

    def __post_init__(self) -> None:
        positive("strength", self.strength)

    def next(self, now: DeployedModel) -> Floats:
        """Return the minimiser, by Newton's method."""
        learner = now.learner
        if not isinstance(learner, LinearLearner):
            raise ParameterError(
                f"staying near the last model needs a learner with a known risk "
                f"(LogisticLearner, RidgeLearner); {learner.name!r} only fits"
            )
        risk, ridge = learner.local(now.crowd), 2.0 * self.strength

        def at(theta: Floats) -> Local:
            plain, away = risk(theta), theta - now.theta
            return Local(
                lambda: plain.risk() + self.strength * float(away @ away),
                lambda: plain.gradient() + ridge * away,
                lambda: plain.hessian() + ridge * np.eye(len(theta)),
            )

        return newton(
            at, now.theta, tolerance=learner.tolerance, max_steps=learner.max_steps,
            name=learner.name,
        )  # fmt: skip


def performative_risk(theta: Floats, learner: Learner, population: PerformativePopulation) -> float:
    """Return the risk of a model on the people who have responded to it."""
    return learner.risk(theta, population.answer(theta, learner))


def performative_gradient(
    theta: Floats, learner: Learner, population: PerformativePopulation, difference: float = 1e-5
) -> Floats:
    r"""Return :math:`\nabla PR(\theta)`: its own part exactly, the people's by differences."""
    # The second part takes 2 p responses of the population; where people jump (a hard decision), it
    # is the slope of the risk smoothed over `difference`.
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
        How far the model is moved to see how people would respond; each round needs
        2 p such responses, so this is for simulations.
    """

    step: float = 0.1
    difference: float = 1e-5
    name: ClassVar[str] = "performative_descent"

    def __post_init__(self) -> None:
        positive("step", self.step)
        positive("difference", self.difference)

    def next(self, now: DeployedModel) -> Floats:
        """Return the model after one step."""
        slope = performative_gradient(now.theta, now.learner, now.population, self.difference)
        return now.theta - self.step * slope


@dataclass(frozen=True)
class DerivativeFree(Update):
    """Descent that only sees the risks of deployed models (two-point estimates)."""

    step: float = 0.1
    probe: float = 0.05  # how far models are moved to try them, in (0, 1)
    directions: int = 10  # random directions a round; each deploys two models
    radius: float = 100.0  # models stay in a ball of this radius around 0
    seed: int = 0
    name: ClassVar[str] = "derivative_free"

    def __post_init__(self) -> None:
        positive("step", self.step)
        if not 0.0 < self.probe < 1.0 or self.directions < 1 or not self.radius > 0.0:
            raise ParameterError(
                "derivative-free descent needs probe in (0, 1), directions >= 1 and radius > 0; "
                f"got {self.probe}, {self.directions} and {self.radius}"
            )

    def next(self, now: DeployedModel) -> Floats:
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


def positive(name: str, value: float) -> None:
    """Refuse a setting that is not a positive number."""
    if not (np.isfinite(value) and value > 0.0):
        raise ParameterError(f"{name} is a number > 0, got {value!r}")


def named_update(name: str) -> Update:
    """Return an update by name, with its default settings."""
    kinds: tuple[type[Update], ...] = (
        RiskMinimisation, GradientDescent, ProximalRiskMinimisation, PerformativeDescent,
        DerivativeFree,
    )  # fmt: skip
    known = {kind.name: kind for kind in kinds}
    if name not in known:
        raise UnknownNameError(f"no update is called {name!r}; {nearest(name, known)}")
    return known[name]()
