"""Where people stood before they responded to the deployed rule.

A table that arrives after a deployment shows people where they moved to. Trained
on as it is, a strategic rule would count on the same moves twice. So everyone's move
is undone: it is taken to be that of the person of the reference who would now stand nearest.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.errors import NotEnoughRowsError
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.base import values

TINY = 1e-12
MARGIN_WEIGHT = 10.0
"""How much more the distance from the boundary counts than one along it: people who moved just
over the boundary are then matched with people who did, and the others with the others."""


class UndoResponse:
    """Puts observed people where they are likely to have stood before they responded to a rule."""

    # With r_j a person of the reference (a standardised table of people who had no rule to
    # respond to), r_j' where the response sends them, x_i' an observed person of the same label
    # and m the signed distance from the decision boundary:
    #   x_i = x_i' - (r_j(i)' - r_j(i)),
    #   j(i) = argmin_j |x_i' - r_j'|^2 + M^2 (m(x_i') - m(r_j'))^2
    # Exact when the population has not changed and is as dense as the reference; an
    # approximation otherwise, so nothing is certified on these rows.

    def __init__(
        self, reference: pd.DataFrame, schema: Schema, score: Score, response: Response
    ) -> None:
        from sklearn.neighbors import NearestNeighbors

        self._schema, self._score = schema, score
        known = rows_of(reference, schema)
        # Of several plausible kinds of people, the first is taken for what they did.
        people = members_of(response)[0].with_windows(known.X, known.windows)
        there = people.respond(score, known.X, on_failure="mask").x_new
        slope = score.slope()
        self._norm = 1.0 if slope is None else max(float(slope.detach().norm()), TINY)
        self._donors = {
            float(label): (
                NearestNeighbors(n_neighbors=1, algorithm="brute").fit(
                    self._places(there[known.y == label])
                ),
                (there - known.X)[known.y == label],
            )
            for label in np.unique(known.y)
        }

    def __call__(self, observed: pd.DataFrame) -> pd.DataFrame:
        """Return a standardised table with the moves of its people undone."""
        seen = rows_of(observed, self._schema)
        X = seen.X.copy()
        for label in np.unique(seen.y):
            if label not in self._donors:
                raise NotEnoughRowsError(f"the reference has nobody with label {label:+.0f}")
            search, moves = self._donors[label]
            people = seen.y == label
            nearest = search.kneighbors(self._places(seen.X[people]), return_distance=False)
            X[people] -= moves[nearest[:, 0]]
        return observed.assign(**dict(zip(self._schema.feature_names, X.T, strict=True)))

    def _places(self, X: Floats) -> Floats:
        """Return the features with the weighted distance from the boundary beside them."""
        return np.column_stack([X, MARGIN_WEIGHT * values(self._score, X) / self._norm])
