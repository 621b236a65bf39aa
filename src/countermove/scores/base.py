"""What every score offers: a value per person and, where it has one, a slope.

A response needs two things of a score: its value at ``X`` and the direction in
which it grows when a person moves. Scores that are affine in the movable
features have one such direction for everybody, the ``slope``.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from countermove.errors import ParameterError


class Score(nn.Module, ABC):
    r"""A real-valued score :math:`s(x)`; :math:`s(x) \ge 0` is the favourable decision.

    ``probability(x) = sigmoid(s(x))``. All parameters are float64.
    """

    kind: ClassVar[str]
    bias: nn.Parameter
    fixed: Sequence[int] = ()
    """Positions of the features a slope holds fixed: the score need not be affine in them."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features the score reads."""

    @abstractmethod
    def forward(self, X: Tensor) -> Tensor:
        """Return the scores, shape (n,), of the rows of ``X``, shape (n, n_features)."""

    @abstractmethod
    def slope(self) -> Tensor | None:
        r"""Return :math:`\nabla_x s`, shape (n_features,), over the features that can move.

        Zero on features the score holds fixed; None when the score is not
        affine in what can move.
        """

    def gradient(self, X: Tensor) -> Tensor:
        r"""Return :math:`\nabla_x s` at every row, shape (n, n_features), as a constant.

        It is that of the score as it decides: training noise is off.
        """
        return self.value_and_gradient(X)[1]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return score and gradient at every row, shapes (n,) and (n, d), both as constants."""
        with deciding(self), torch.enable_grad():
            at = X.detach().requires_grad_()
            value = self(at)
            (gradient,) = torch.autograd.grad(value.sum(), at)
        return value.detach(), gradient

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the JSON-ready arguments that rebuild the score without its weights."""

    def noise_from(self, generator: torch.Generator | None) -> None:
        """Draw the noise of training (dropout) from ``generator``; most scores have none."""

    def at_threshold(self, probability: float, slope: float = 1.0) -> Self:
        r"""Return the rule "probability of at least ``probability``" as a score.

        .. math:: s(x) - \frac1a \log\frac{p}{1-p} \ge 0 \iff \sigma(a\,s(x)) \ge p

        Parameters
        ----------
        probability
            :math:`p`, strictly between 0 and 1.
        slope
            :math:`a`, positive: log-odds per unit of score, 1 for scores trained as
            log-odds (see `countermove.scores.probability`).
        """
        if not 0.0 < probability < 1.0:
            raise ParameterError(
                f"a probability threshold lies strictly between 0 and 1, got {probability!r}"
            )
        shifted = copy.deepcopy(self)
        with torch.no_grad():
            shifted.bias.sub_(math.log(probability / (1.0 - probability)) / slope)
        return shifted


@contextmanager
def deciding(score: Score) -> Iterator[Score]:
    """Hold a score as it decides, its training noise off, and put it back afterwards."""
    noisy = score.training
    score.eval()
    try:
        yield score
    finally:
        score.train(noisy)
