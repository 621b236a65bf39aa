"""A model of P(Y | X): what happens to a label when its person moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.certificates import Assumption
from countermove.errors import DataError, NotEnoughRowsError, shown
from countermove.randomness import generator

Chances = Callable[[Floats], Any]
"""From features (n, d) to the probabilities of label +1, (n,)."""

GROUPS = 10


def fit_chances(X: Floats, y: Floats) -> Chances:
    """Fit a logistic regression of the label; use other rows than those it will judge."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(y)) < 2:
        raise NotEnoughRowsError("a model of P(Y | X) needs rows of both labels, got one")
    fitted = LogisticRegression(max_iter=1000).fit(X, y > 0.0)

    def chances(rows: Floats) -> Floats:
        result: Floats = fitted.predict_proba(rows)[:, 1]
        return result

    return chances


def chances_at(chances: Chances, X: Floats) -> Floats:
    """Return the probabilities after checking that they are some."""
    found = np.asarray(chances(X), dtype=np.float64)
    if found.shape != (len(X),):
        raise DataError(f"chances gave shape {found.shape}; expected one per person, ({len(X)},)")
    rows = np.flatnonzero(~((found >= 0.0) & (found <= 1.0)))
    if rows.size:
        listed = shown(f"{row} ({found[row]:g})" for row in rows)
        raise DataError(f"chances must lie in [0, 1], not so in rows {listed}", rows=rows)
    return found


def calibration(chances: Chances, X: Floats, y: Floats, level: float = 0.01) -> Assumption:
    r"""Test whether the model's chances are those of the rows (Hosmer and Lemeshow).

    Ten groups by rising chance; with observed and expected numbers of label +1,

    .. math:: \sum_g (O_g - E_g)^2 / \sum_{i \in g} p_i (1 - p_i) \sim \chi^2_{10} .

    Parameters
    ----------
    level
        Probability of refuting a right model.
    """
    from scipy.stats import chi2

    p = chances_at(chances, X)
    total = 0.0
    for group in np.array_split(np.argsort(p, kind="stable"), min(GROUPS, len(p))):
        spread = float(np.sum(p[group] * (1.0 - p[group])))
        total += (float(np.sum(y[group] > 0)) - float(p[group].sum())) ** 2 / max(spread, 1e-12)
    value = float(chi2.sf(total, min(GROUPS, len(p))))
    return Assumption(
        "the model of P(Y | X) gives the true chances",
        supported=value >= level,
        evidence=f"calibration of {len(p):,} people before they move: p = {value:.3g}",
    )


def followed_labels(before: Floats, after: Floats, y: Floats, seed: int) -> Floats:
    r"""Draw the labels of people whose chances have changed, with common random numbers.

    Everybody has a luck :math:`u`, uniform given the features and consistent with the label
    they have: below :math:`P(+1 \mid x)` iff it is +1. The new label is +1 iff :math:`u` is
    below the new chance. Whoever does not move keeps the label; a better chance never
    costs it; and all rules meet the same luck.
    """
    luck = generator(seed, "labels that follow").random(len(y))
    u = np.where(y > 0.0, luck * before, before + luck * (1.0 - before))
    moved = np.where(u < after, 1.0, -1.0)
    return np.where(after == before, y, moved)


def expected_chances(before: Floats, after: Floats, y: Floats) -> Floats:
    """Return the probability of label +1 after the move, given the label before."""
    kept = np.minimum(1.0, np.divide(after, before, out=np.ones_like(after), where=before > 0.0))
    rest = 1.0 - before
    won = np.divide(after - before, rest, out=np.zeros_like(after), where=rest > 0.0)
    return np.where(y > 0.0, kept, np.maximum(0.0, won))
