"""The rows of a challenger, its training from the champion's weights, and its promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from countermove.data.rows import standardised_table
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.standardise import Standardiser
from countermove.errors import NotEnoughRowsError
from countermove.learning.regularisers import Regulariser
from countermove.learning.rule_training import train_published
from countermove.production.retraining.batches import BATCH
from countermove.production.retraining.set_back import SetBack
from countermove.response import Response
from countermove.scores import LinearScore, Score
from countermove.scores.storage import PublishedModel

LEARNED_FROM = ("train", "validation", "calibration")


@dataclass(frozen=True)
class Deployed:
    """The rule people answered when a batch came in; None: there was none to answer."""

    score: Score | None


def challenger_rows(
    base: Mapping[str, pd.DataFrame],
    batches: pd.DataFrame,
    deployed: Mapping[str, Deployed],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    fractions: Mapping[str, float],
    seed: int,
) -> dict[str, pd.DataFrame]:
    """Return train, validation and calibration rows: the base's with the batches' beside them.

    Each batch is divided like the base (what would be its hold-out is trained on), always in
    the same way, so that no row ever changes sides. People who answered a rule are set back
    (see `SetBack`), and none of them is calibrated on: they are an approximation.

    Parameters
    ----------
    base
        Standardised splits of the base table.
    batches
        Typed rows with their batch.
    deployed
        What the people of each batch had answered.
    schema, standardiser, response
        What the columns mean, the units, and how people answer.
    fractions, seed
        Of the division.
    """
    parts = {name: [base[name]] for name in LEARNED_FROM}
    setters: dict[int, SetBack] = {}
    for name, typed in batches.groupby(BATCH, sort=False) if len(batches) else ():
        rule = deployed[str(name)].score
        if rule is not None and id(rule) not in setters:
            setters[id(rule)] = SetBack(base["train"], schema, rule, response)
        for part, rows in _divided(typed.drop(columns=BATCH), schema, fractions, seed).items():
            table = standardised_table(rows, schema, standardiser)
            if rule is not None:
                table = setters[id(rule)](table)
                part = "train" if part == "calibration" else part
            parts[part].append(table)
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


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
    """Train strategically, from the champion's weights where there is one of the same kind.

    A cold start begins as training always does, by a blind rule whose intercept is moved to
    where it is best after response.
    """
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
