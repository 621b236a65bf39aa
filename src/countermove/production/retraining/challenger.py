"""A challenger: the rows it learns from, and its training from the champion's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from countermove.data.rows import standardised_table
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import NotEnoughRowsError
from countermove.learning.regularisers import Regulariser
from countermove.learning.rule_training import train_published
from countermove.production.registry import Registry
from countermove.production.retraining.batches import RULE, SEEN
from countermove.production.retraining.labelled_batch import BATCH
from countermove.production.retraining.undo_response import UndoResponse
from countermove.response import Response
from countermove.scores import LinearScore, Score
from countermove.scores.storage import PublishedModel

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
