"""Where people stood before they answered the deployed rule.

A table that arrives after a deployment shows people where they moved to. Trained
on as it is, a strategic rule would count on the same moves twice. So everyone is
set back by the move of the person of the reference who would now stand nearest.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.errors import NotEnoughRowsError
from countermove.response import Response
from countermove.response.robust import members_of
from countermove.scores import Score
from countermove.scores.reading import values

Floats = NDArray[np.float64]

TINY = 1e-12
MARGIN_WEIGHT = 10.0
"""How much more the distance from the boundary counts than one along it: people who moved just
over the boundary are then matched with people who did, and the others with the others."""


def set_back(
    observed: pd.DataFrame,
    reference: pd.DataFrame,
    schema: Schema,
    score: Score,
    response: Response,
) -> pd.DataFrame:
    r"""Return observed people where they are likely to have stood before.

    With :math:`r_j` a person of the reference, :math:`r_j'` where the response sends them and
    :math:`x'_i` an observed person of the same label,

    .. math:: x_i = x'_i - (r'_{j(i)} - r_{j(i)}), \quad
        j(i) = \arg\min_j \|x'_i - r'_j\|^2 + M^2 (m(x'_i) - m(r'_j))^2

    where m is the signed distance from the boundary. Exact when the population has not
    changed and is as dense as the reference; an approximation otherwise, so that nothing is
    certified on rows that were set back.

    Parameters
    ----------
    observed, reference
        Standardised tables: after the answer, and of people who had nothing to answer to.
    schema
        What the columns mean.
    score, response
        The deployed rule, and how people are assumed to have answered it.
    """
    from scipy.spatial import KDTree

    seen, known = rows_of(observed, schema), rows_of(reference, schema)
    # Of several plausible kinds of people, the first is taken for what they did.
    moved = members_of(response)[0].respond(score, known.X, on_failure="mask").x_new
    slope = score.slope()
    norm = 1.0 if slope is None else max(float(slope.detach().norm()), TINY)
    X = seen.X.copy()
    for label in np.unique(seen.y):
        donors, people = known.y == label, seen.y == label
        if not donors.any():
            raise NotEnoughRowsError(f"the reference has nobody with label {label:+.0f}")
        tree = KDTree(_places(score, moved[donors], norm))
        _, nearest = tree.query(_places(score, seen.X[people], norm))
        X[people] -= (moved[donors] - known.X[donors])[nearest]
    return observed.assign(**dict(zip(schema.feature_names, X.T, strict=True)))


def _places(score: Score, X: Floats, norm: float) -> Floats:
    """Return the features with the weighted distance from the boundary beside them."""
    margin = MARGIN_WEIGHT * values(score, X) / norm
    return np.column_stack([X, margin])
