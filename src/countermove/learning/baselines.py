r"""What every strategic method is measured against.

Blind training is ``StrategicClassifier(response="none")`` and the benchmark is
its accuracy while nobody moves; here are the rules that need no training:
the shifted blind rule, the bias search, and Hardt et al.'s threshold.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch

from countermove._types import Floats
from countermove.errors import DataError, ParameterError
from countermove.learning.intercept import best_cut, best_shift, shift_intercept
from countermove.people import LinearCost
from countermove.response.base import GAIN, Response
from countermove.scores import LinearScore, Score

AnyScore = TypeVar("AnyScore", bound=Score)


def shifted_blind(score: AnyScore, response: Response, X: Floats) -> AnyScore:
    r"""Raise the threshold by what people can reach.

    .. math:: s'(x) = s(x) - r, \qquad r = \operatorname{median}_i
              \bigl(s^{after}(x_i) - s(x_i)\bigr)

    Guarantee: for a linear score, a quadratic cost without bounds and the best
    response, everybody's reach is the same (:math:`\sqrt{2/t}\,\|w\|` for cost
    :math:`t\|\cdot\|^2`), and the decisions after response equal the blind
    decisions with nobody moving: the benchmark is restored exactly.

    Parameters
    ----------
    score
        The blind score.
    response
        Best responders; reach is the gain their training signal adds to the score.
    X
        People whose median reach is used where reach differs, shape (n, d).
    """
    rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64))
    shifted = copy.deepcopy(score)
    with torch.no_grad():
        reach = response.scores_after(score, rows) - score(rows)
        shifted.bias.sub_(reach.median())
    return shifted


def bias_search(
    score: AnyScore, responses: Response | Sequence[Response], X: Floats, y: Floats
) -> AnyScore:
    """Keep the direction, choose the intercept: best on ``X, y`` after (the worst) response."""
    members = (responses,) if isinstance(responses, Response) else tuple(responses)
    return shift_intercept(score, best_shift(score, members, X, y).shift)


def hardt_threshold(cost: LinearCost, X: Floats, y: Floats) -> LinearScore:
    r"""Hardt et al.'s algorithm for the separable cost :math:`\max(0, v\cdot(x'-x))`.

    People gain 2 by crossing, so under the rule :math:`v\cdot x \ge \theta` exactly
    those with :math:`v\cdot x \ge \theta - 2` end up accepted. The rule returned has

    .. math:: \theta^* = 2 + \arg\min_\kappa \frac1n \sum_i
              \mathbf 1\{ y_i \ne \operatorname{sign}(v\cdot x_i - \kappa) \}

    found exactly by sorting. Any other direction could be crossed for free, so
    no rule does better against this cost on the sample.

    Parameters
    ----------
    cost
        The linear cost, its price factor inside ``direction``.
    X, y
        People, shape (n, d), and labels in {-1, +1}.

    References
    ----------
    Hardt, Megiddo, Papadimitriou, Wootters, "Strategic classification", ITCS 2016,
    Algorithm 1 and Theorem 2.
    """
    direction = cost.direction.detach().numpy()
    if X.shape[1] != len(direction):
        raise DataError(f"the cost prices {len(direction)} features, people have {X.shape[1]}")
    if not np.any(direction):
        raise ParameterError("a linear cost of zero makes every move free: no rule can hold")
    cut = best_cut([[(1.0, -(X @ direction))]], y)
    score = LinearScore(len(direction))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(direction))
        score.bias.fill_(cut.shift - GAIN)
    return score
