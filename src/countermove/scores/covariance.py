r"""How far a linear rule would move if it were fitted again to as many other rows.

Of :math:`s(x) = w \cdot x + b`, the covariance of :math:`(w, b)` by the sandwich of the logistic
loss at the rule's own training rows:

.. math:: \Sigma = I^{-1} M I^{-1},\quad I = \sum_i p_i(1-p_i) h_i h_i^\top + \text{ridge},\quad
          M = \sum_i g_i g_i^\top,\; g_i = \frac{y_i - p_i}{1 - q_i} h_i,\; h_i = (x_i, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError
from countermove.randomness import generator
from countermove.scores.base import Score, values
from countermove.scores.linear import LinearScore

RIDGE = 1e-9
"""Of the information matrix, as a share of its mean diagonal: collinear columns stay finite."""
STEPS = 50
"""Newton steps of the two numbers that put a score on the scale of log-odds; five are usual."""
LARGEST_PULL = 0.9
"""Of a row on its own fitted value: beyond it the correction would be all there is."""
FEWEST = 3
"""Refits below which a deviation over them says nothing."""
SURE = 25.0
"""Log-odds per standard deviation of the scores beyond which rows are separated."""


@dataclass(frozen=True)
class RuleCovariance:
    """The covariance of a linear rule's weights and intercept, in standardised units.

    Parameters
    ----------
    matrix
        Of weights and intercept, shape (d + 1, d + 1).
    cut_variance
        Variance that choosing the cut adds to it: the intercept settled by hard decisions, the
        threshold chosen on calibration rows.
    rows
        How many rows the rule was fitted to; the covariance is that of another fit to as many.
    cut_bias
        By how much refits of this rule settle a stricter cut on average: what people reach is
        convex in the weights, so noise in them raises it.
    """

    matrix: Floats
    cut_variance: float
    rows: int
    cut_bias: float = 0.0

    def __post_init__(self) -> None:
        d = self.matrix.shape[0]
        if self.matrix.shape != (d, d) or not np.isfinite(self.matrix).all():
            raise DataError(
                f"a covariance is a square matrix of finite numbers, got shape {self.matrix.shape}"
            )

    @property
    def n_features(self) -> int:
        """Number of features of the rule."""
        return len(self.matrix) - 1

    def score_variance(self, X: Floats) -> Floats:
        r"""Return :math:`h^\top\Sigma h` plus the variance of the cut at each row, shape (n,)."""
        h = np.column_stack([X, np.ones(len(X))])
        spread: Floats = ((h @ self.matrix) * h).sum(axis=1) + self.cut_variance
        return np.maximum(spread, 0.0)

    def effect_variance(self, action: Floats) -> Floats:
        r"""Return the variance of :math:`w \cdot \delta` at each row of actions, shape (n,)."""
        spread: Floats = ((action @ self.matrix[:-1, :-1]) * action).sum(axis=1)
        return np.maximum(spread, 0.0)

    def foreseen(self, score: Score, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Return what refits take off the score of each row after a move, and its deviation.

        Both fits, the present and the next, miss the rule of the whole population.
        """
        loss = self.optimism(_weights(score), after - before) + self.cut_bias
        return loss, np.sqrt(2.0 * self.score_variance(after))

    def gain_and_error(self, score: Score, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Return what each move gains, and the standard error of that."""
        move = after - before
        return move @ _weights(score), np.sqrt(self.effect_variance(move))

    def with_cut(self, variance: float) -> RuleCovariance:
        """Return the covariance of a rule whose cut was chosen with this variance."""
        return replace(self, cut_variance=self.cut_variance + variance)

    def draws(self, point: Floats, n: int) -> Floats:
        """Return weights and intercept of ``n`` other fits, normal around ``point``, (n, d + 1)."""
        values, vectors = np.linalg.eigh(self.matrix)
        noise = generator(0, "refits").normal(size=(n, len(point)))
        drawn: Floats = point + (noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return drawn

    def optimism(self, weight: Floats, action: Floats) -> Floats:
        r"""Return by how much the fit that chose each action overstates its gain, shape (n,).

        The cheapest action leans on the weights that this fit happened to overstate: with
        :math:`\delta_j \propto w_j / c_j` scaled to a given gain,

        .. math:: E[(w - w_0)\cdot\delta] \approx
                  \operatorname{tr}(\Sigma\,\partial\delta/\partial w)
                  = \sum_j \Sigma_{jj}\frac{\delta_j}{w_j}
                  - 2\,\frac{\delta^\top\Sigma\delta}{w\cdot\delta}

        Parameters
        ----------
        weight
            Of the rule, shape (d,).
        action
            Shape (n, d).
        """
        leans = np.divide(action, weight, out=np.zeros_like(action), where=weight != 0.0)
        first = np.maximum(leans, 0.0) @ np.diag(self.matrix)[:-1]
        gain = action @ weight
        spread = self.effect_variance(action)
        second = np.divide(2.0 * spread, gain, out=np.zeros_like(gain), where=gain > 0.0)
        return np.maximum(first - second, 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return what stands beside the matrix in a model's description."""
        return {"cut_variance": self.cut_variance, "cut_bias": self.cut_bias, "rows": self.rows}

    @classmethod
    def from_json(cls, matrix: Floats, said: Mapping[str, Any]) -> RuleCovariance:
        """Return the covariance of a stored matrix."""
        return cls(matrix, float(said["cut_variance"]), int(said["rows"]), float(said["cut_bias"]))


@dataclass(frozen=True)
class BootstrapRefits:
    """The same score fitted again to rows drawn with replacement: what another fit may be.

    Parameters
    ----------
    scores
        The refits, of standardised rows; at least three.
    rows
        How many rows each was fitted to.
    cut_variance
        Variance that choosing the threshold on calibration rows adds.
    """

    scores: tuple[Score, ...]
    rows: int
    cut_variance: float = 0.0

    def __post_init__(self) -> None:
        widths = {score.n_features for score in self.scores}
        if len(self.scores) < FEWEST or len(widths) != 1:
            raise DataError(
                f"a deviation over refits needs at least {FEWEST} of them, all of the same "
                f"features; got {len(self.scores)} of {sorted(widths)} features"
            )

    @property
    def n_features(self) -> int:
        """Number of features of the rule."""
        return self.scores[0].n_features

    def foreseen(self, score: Score, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Return what refits take off the score of each row after a move, and its deviation.

        The refits scatter around the present fit as it does around the population's rule, and
        the next fit misses that rule too: twice the variance. An action that leans on what only
        this fit sees is known by the refits' mean.
        """
        found = self._values(after)
        loss = np.maximum(values(score, after) - found.mean(axis=0), 0.0)
        return loss, np.sqrt(2.0 * (found.var(axis=0, ddof=1) + self.cut_variance))

    def gain_and_error(self, score: Score, before: Floats, after: Floats) -> tuple[Floats, Floats]:
        """Return what each move gains, and the standard error of that."""
        gains = self._values(after) - self._values(before)
        return values(score, after) - values(score, before), gains.std(axis=0, ddof=1)

    def with_cut(self, variance: float) -> BootstrapRefits:
        """Return the refits of a rule whose cut was chosen with this variance."""
        return replace(self, cut_variance=self.cut_variance + variance)

    def _values(self, X: Floats) -> Floats:
        return np.stack([values(score, X) for score in self.scores])


Refits = RuleCovariance | BootstrapRefits
"""What a model knows of its next fit."""


def _weights(score: Score) -> Floats:
    """Return the weights of a score with a covariance, which is linear."""
    slope = score.slope()
    assert slope is not None
    weights: Floats = slope.detach().numpy()
    return weights


def covariance_of(
    score: Score, X: Floats, y: Floats, reach: Floats | None = None, rows: int | None = None
) -> RuleCovariance | None:
    """Return the covariance of a linear rule fitted to these rows; None of any other score.

    Parameters
    ----------
    score
        The rule; its scale and its intercept need not be those of log-odds.
    X, y
        Its training rows and their labels in {-1, +1}, times how often each row counts.
    reach
        How far the last to be approved move, shape (d,): the intercept of a rule that expects
        a response is lowered by what this move gains, so it follows the weights. None: no move.
    rows
        How many rows it was fitted to, where ``X`` is a sample of them.
    """
    if not isinstance(score, LinearScore):
        return None
    scores, favoured, size = values(score, X), (y > 0).astype(np.float64), np.abs(y)
    scale = _log_odds(scores, favoured, size)
    if scale is None:
        return None
    slope, shift = scale
    weight = score.weight.detach().numpy().astype(np.float64)
    free = np.append(weight != 0.0, True)  # what the rule leaves out stays out when it is refitted
    h = np.column_stack([X, np.ones(len(X))])[:, free]
    p = 1.0 / (1.0 + np.exp(-(slope * scores + shift)))
    information = (h * (size * p * (1.0 - p))[:, None]).T @ h
    information += RIDGE * np.trace(information) / len(information) * np.eye(len(information))
    inverse = np.linalg.pinv(information, hermitian=True)
    # A row that pulls the fit towards itself hides its own residual (HC3).
    pull = np.minimum(p * (1.0 - p) * ((h @ inverse) * h).sum(axis=1), LARGEST_PULL)
    gradients = h * ((favoured - p) / (1.0 - pull))[:, None]
    gradients -= np.average(gradients, axis=0, weights=size)
    gradients *= np.sqrt(size)[:, None]
    covariance = np.zeros((len(free), len(free)))
    covariance[np.ix_(free, free)] = inverse @ (gradients.T @ gradients) @ inverse
    if reach is not None:
        change = np.eye(len(free))
        change[-1, :-1] = -reach
        covariance = change @ covariance @ change.T
    covariance = 0.5 * (covariance + covariance.T) / slope**2
    n = round(size.sum()) if rows is None else rows
    return RuleCovariance(covariance * (float(size.sum()) / n), 0.0, n)


def _log_odds(scores: Floats, favoured: Floats, size: Floats) -> tuple[float, float] | None:
    """Return slope and shift that make scores log-odds; None where they do not rise with them."""
    centre = float(np.average(scores, weights=size))
    spread = float(np.sqrt(np.average((scores - centre) ** 2, weights=size)))
    if spread == 0.0:
        return None
    unit = np.column_stack([(scores - centre) / spread, np.ones(len(scores))])
    point = np.zeros(2)
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-(unit @ point)))
        curvature = (unit * (size * p * (1.0 - p))[:, None]).T @ unit
        curvature += 1e-9 * size.sum() * np.eye(2)
        step = np.linalg.solve(curvature, unit.T @ (size * (favoured - p)))
        point = point + np.clip(step, -2.0, 2.0)
        if abs(step).max() < 1e-10:
            break
    if not 0.0 < point[0] < SURE:
        return None
    slope = float(point[0]) / spread
    return slope, float(point[1]) - slope * centre
