r"""Populations: the crowd that a deployed model meets, :math:`D(\theta)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Mask
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import DataError
from countermove.response.base import Response


class Population(ABC):
    """People who may answer the model a learner deploys."""

    base: Crowd
    """Who they are while no model is deployed."""

    @abstractmethod
    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return the crowd once everybody has answered the learner's model ``theta``."""

    @property
    def first_level(self) -> Population:
        """The same people if each took the deployed model as it is: these, unless it says so."""
        return self

    def promised_rate(self, first: float) -> float:
        """Return the contraction per round, given that of `first_level`."""
        return first


@dataclass(frozen=True, eq=False)
class RespondingPopulation(Population):
    """Everybody, or some of them, answers the deployed model with one response; labels are kept.

    Parameters
    ----------
    base
        Who they are while no model is deployed.
    response
        How a person answers a score.
    who
        Who answers at all, shape (n,); None means everybody.
    """

    base: Crowd
    response: Response
    who: Mask | None = None

    def __post_init__(self) -> None:
        if self.who is not None and np.shape(self.who) != (self.base.n,):
            raise DataError(
                f"who answers is one truth value per person, shape ({self.base.n},); "
                f"got {np.shape(self.who)}"
            )

    def answer(self, theta: Floats, learner: Learner) -> Crowd:
        """Return everybody where the response takes them."""
        score = learner.score(theta)
        if self.who is None:
            return self.base.moved(self.response.respond(score, self.base.X).x_new)
        rows = np.flatnonzero(self.who)
        X = self.base.X.copy()
        X[rows] = self.response.of_rows(rows).respond(score, self.base.X[rows]).x_new
        return self.base.moved(X)
