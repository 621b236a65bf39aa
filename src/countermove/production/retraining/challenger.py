r"""A challenger: the rows it learns from, and its training from the champion's weights.

Rows that arrive after a deployment show people where they moved to. Trained on as they are, a
strategic rule would count on the same moves twice. So everyone's move is undone: it is taken to be
that of the person of the reference who would now stand nearest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.rows import rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import NotEnoughRowsError
from countermove.learning.regularisers import Regulariser
from countermove.learning.rule_training import train_published
from countermove.production.registry import Registry
from countermove.production.retraining.batches import RULE, SEEN
from countermove.production.retraining.labelled_batch import BATCH
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores import LinearScore, Score
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel

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


LEARNED_FROM = ("train", "validation", "calibration")


def challenger_rows(
    registry: Registry,
    base: Sequence[pd.DataFrame],
    batches: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    fractions: Mapping[str, float],
    seed: int,
) -> tuple[pd.DataFrame, ...]:
    """Return train, validation and calibration rows: the base's with the batches' beside them."""
    # Each batch is divided like the base (what would be its hold-out is trained on), always in
    # the same way, so that no row ever changes sides. The response of people who responded to a
    # deployed rule is undone. That is an approximation, so nobody of them is calibrated on.
    parts = {name: [table] for name, table in zip(LEARNED_FROM, base, strict=True)}
    versions = {batch[RULE] for batch in facts.values() if batch[RULE] is not None}
    rules = {version: registry.load(version).model.rule for version in versions}
    undo: dict[str, UndoResponse] = {}
    first = SEEN if SEEN in batches else BATCH  # The rule of the time when people stood there.
    for name, typed in batches.groupby(first, sort=False) if len(batches) else ():
        version = facts[str(name)][RULE]
        if version is not None and version not in undo:
            undo[version] = UndoResponse(base[0], schema, rules[version], response)
        for part, rows in _divided(typed.drop(columns=BATCH), schema, fractions, seed).items():
            table = standardised_table(rows, schema, standardiser)
            if version is not None:
                table = undo[version](table)
                part = "train" if part == "calibration" else part
            parts[part].append(table)
    return tuple(pd.concat(parts[name], ignore_index=True) for name in LEARNED_FROM)


def _divided(
    typed: pd.DataFrame, schema: Schema, fractions: Mapping[str, float], seed: int
) -> dict[str, pd.DataFrame]:
    shares = {name: fractions[name] for name in LEARNED_FROM}
    shares["train"] += 1.0 - sum(shares.values())
    try:
        return split_table(typed, schema, shares, seed)
    except NotEnoughRowsError:
        return {"train": typed}


def train_challenger(
    rows: Mapping[str, pd.DataFrame],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    training: Mapping[str, Any],
    champion: Score | None,
    seed: int,
    regulariser: Regulariser | None = None,
) -> PublishedModel:
    """Train strategically, from the champion's weights where there is one of the same kind."""
    given = training.get("score")
    fresh = LinearScore(len(schema.feature_names)) if given is None else given
    warm: dict[str, Any] = {}
    if champion is not None and _shape(fresh) == _shape(champion):
        warm = {"score": champion, "start": "given"}
    trained = train_published(
        rows["train"],
        rows["validation"],
        schema,
        standardiser,
        response,
        dict(training) | warm,
        seed,
        regulariser,
    )
    return trained.model


def _shape(score: Score) -> tuple[str, dict[str, Any]]:
    return score.kind, score.describe()
