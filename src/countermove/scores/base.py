"""What every score offers: its values, its slope where it has one, and probabilities.

A response needs two things of a score: its value at ``X`` and the direction in
which it grows when a person moves. Scores that are affine in the movable
features have one such direction for everybody, the ``slope``.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown


class Score(nn.Module, ABC):
    r"""A real-valued score :math:`s(x)`; :math:`s(x) \ge 0` is the favourable decision.

    ``probability(x) = sigmoid(s(x))``. All parameters are float64.
    """

    kind: ClassVar[str]
    bias: nn.Parameter
    differentiable: ClassVar[bool] = True
    """Whether it has a gradient that responses can climb."""
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

    def linear_columns(self) -> Sequence[int] | None:
        """Return the columns whose weights are, with the intercept, all that training changes.

        None where something else is trained too: such a score is not linear in its parameters.
        """
        return None

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

    @classmethod
    def rebuilt(cls, arguments: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """Return the score of what `describe` returned and of its ``state_dict``."""
        score = cls(**arguments)
        score.load_state_dict(dict(weights))
        return score

    def before_standardising(self, mean: Floats, scale: Floats) -> Score:
        """Return the same rule as a score of the rows ``x`` of which this one reads z.

        Parameters
        ----------
        mean, scale
            Of the rows, shape (n_features,): ``z = (x - mean) / scale``.
        """
        return RescaledScore(self, mean, scale)

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
            log-odds (see `countermove.scores.base`).
        """
        if not 0.0 < probability < 1.0:
            raise ParameterError(
                f"a probability threshold lies strictly between 0 and 1, got {probability!r}"
            )
        shifted = copy.deepcopy(self)
        with torch.no_grad():
            shifted.bias.sub_(math.log(probability / (1.0 - probability)) / slope)
        return shifted


class RescaledScore(Score):
    """A score of standardised rows, ``(x - mean) / scale``, that reads ``x``."""

    kind: ClassVar[str] = "rescaled"
    mean: Tensor
    scale: Tensor

    def __init__(self, inner: Score, mean: Floats, scale: Floats) -> None:
        super().__init__()
        self.inner, self.fixed = inner, inner.fixed
        self.register_buffer("mean", torch.from_numpy(np.array(mean, dtype=np.float64)))
        self.register_buffer("scale", torch.from_numpy(np.array(scale, dtype=np.float64)))
        self.train(inner.training)

    @property
    def bias(self) -> nn.Parameter:  # type: ignore[override]
        """The intercept of the inner score."""
        return self.inner.bias

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return self.inner.n_features

    def forward(self, X: Tensor) -> Tensor:
        """Return the inner score of the standardised rows."""
        value: Tensor = self.inner((X - self.mean) / self.scale)
        return value

    def slope(self) -> Tensor | None:
        """Return the inner slope per unit of the columns."""
        slope = self.inner.slope()
        return None if slope is None else slope / self.scale

    def describe(self) -> dict[str, Any]:
        """Refuse: what is stored is the inner score, with the standardiser beside it."""
        raise ParameterError(
            "this score standardises rows before another reads them, and is not stored itself: "
            "store the classifier's standardised_score_ beside its standardiser_"
        )


@contextmanager
def deciding(score: Score) -> Iterator[Score]:
    """Hold a score as it decides, its training noise off, and put it back afterwards."""
    noisy = score.training
    score.eval()
    try:
        yield score
    finally:
        score.train(noisy)


SLICE = 2_048
"""Rows per evaluation: the activations of a 100-wide network then stay in the cache."""


def score_of(model: Any) -> Score:
    """Return the score that decides: itself, a fitted classifier's, or a stored model's rule."""
    held = (getattr(model, name, None) for name in ("score_", "rule", "score"))
    for candidate in (model, *held):
        if isinstance(candidate, Score):
            return candidate
    raise ParameterError(
        f"{type(model).__name__} holds no score; give a Score, a fitted classifier (call fit "
        "first) or a stored model"
    )


def values(score: Score, X: Floats) -> Floats:
    """Return the score of every row of ``X``, shape (n,)."""
    result = np.empty(len(X))
    with deciding(score), torch.no_grad():
        for start in range(0, len(X), SLICE):
            part = torch.from_numpy(np.array(X[start : start + SLICE]))
            result[start : start + SLICE] = score(part).numpy()
    return result


def rise_over_unit(score: Score, X: Tensor, columns: Sequence[int]) -> Tensor:
    """Return the score's rise over one unit around each row, for want of a gradient, (n, d)."""
    rise = torch.zeros_like(X)
    with torch.no_grad():
        for j in columns:
            there, here = X.clone(), X.clone()
            there[:, j] += 0.5
            here[:, j] -= 0.5
            rise[:, j] = score(there) - score(here)
    return rise


SLOPES = (1e-3, 1e3)
"""Range of the slope in units of one over the scores' root mean square: p of anyone typical
lies between a coin toss and certainty to double precision."""


def fit_slope(scores: Floats, y: Floats) -> float:
    """Return Platt's slope a > 0 through the decision boundary; sizes of labels are weights."""
    # Logistic loss of a * s against Platt's targets, (n_+ + 1)/(n_+ + 2) and 1/(n_- + 2), which
    # keep a finite when the score separates the classes; convex in a. The people were not trained
    # on, and their scores are as the rule judges them (after their response, where it was trained
    # for one).
    from scipy.optimize import minimize_scalar

    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(f"the scores of rows {shown(bad)} are not finite", rows=bad)
    if not len(scores):
        raise NotEnoughRowsError("a probability scale needs at least one labelled row, got none")
    favoured, counts = y > 0, np.abs(y)
    rising, falling = counts[favoured].sum(), counts[~favoured].sum()
    targets = np.where(favoured, (rising + 1.0) / (rising + 2.0), 1.0 / (falling + 2.0))
    size = float(np.sqrt(np.average(scores**2, weights=counts)))
    if size == 0.0:
        return 1.0

    def loss(log_slope: float) -> float:
        odds = np.exp(log_slope) * scores
        return float(np.average(np.logaddexp(0.0, odds) - targets * odds, weights=counts))

    low, high = (float(np.log(edge / size)) for edge in SLOPES)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


def probability(scores: Floats, slope: float = 1.0) -> Floats:
    r"""Return :math:`\sigma(a\,s)`."""
    from scipy.special import expit

    result: Floats = expit(slope * scores)
    return result
