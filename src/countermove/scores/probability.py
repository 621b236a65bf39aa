r"""Probabilities for scores that were not trained as log-odds.

A hinge score has a sign but no scale. One factor gives it one: with
:math:`p = \sigma(a\,s)`, :math:`a > 0`, the order of people and the decision
:math:`s \ge 0 \iff p \ge 1/2` stay as they are.
"""

from __future__ import annotations

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, NotEnoughRowsError, shown

SLOPES = (1e-3, 1e3)
"""Range of the slope in units of one over the scores' root mean square: p of anyone typical
lies between a coin toss and certainty to double precision."""


def fit_slope(scores: Floats, y: Floats) -> float:
    r"""Return Platt's slope through the decision boundary.

    .. math:: \min_{a > 0} -\sum_i t_i \log \sigma(a s_i) + (1 - t_i) \log \sigma(-a s_i)

    with Platt's targets :math:`t = (n_+ + 1)/(n_+ + 2)` for the favourable and
    :math:`1/(n_- + 2)` for the others, which keep :math:`a` finite when the score
    separates the classes. The problem is convex in :math:`a`.

    Parameters
    ----------
    scores
        Scores of people who were not trained on, as the rule judges them (after
        their response, where the rule was trained for one), shape (n,).
    y
        Their labels in {-1, +1}.
    """
    from scipy.optimize import minimize_scalar

    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(f"the scores of rows {shown(bad)} are not finite", rows=bad)
    if not len(scores):
        raise NotEnoughRowsError("a probability scale needs at least one labelled row, got none")
    favoured = y > 0
    targets = np.where(
        favoured,
        (favoured.sum() + 1.0) / (favoured.sum() + 2.0),
        1.0 / ((~favoured).sum() + 2.0),
    )
    size = float(np.sqrt(np.mean(scores**2)))
    if size == 0.0:
        return 1.0

    def loss(log_slope: float) -> float:
        odds = np.exp(log_slope) * scores
        return float(np.mean(np.logaddexp(0.0, odds) - targets * odds))

    low, high = (float(np.log(edge / size)) for edge in SLOPES)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    return float(np.exp(found.x))


def probability(scores: Floats, slope: float = 1.0) -> Floats:
    r"""Return :math:`\sigma(a\,s)`."""
    from scipy.special import expit

    result: Floats = expit(slope * scores)
    return result
