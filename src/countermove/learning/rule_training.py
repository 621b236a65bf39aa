"""From standardised splits, in memory or in parts, to a model that can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.partitions import Partitions
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.execution import Mapper
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.least_regret import RegretSelection
from countermove.learning.regularisers import Regulariser, described
from countermove.response import Response
from countermove.scores.storage import PublishedModel, schema_facts
from countermove.training.history import History
from countermove.training.streamed import PartRows


@dataclass(frozen=True)
class Trained:
    """A model ready to be stored, and how its training went."""

    model: PublishedModel
    history: History


def train_published(
    train: pd.DataFrame,
    validation: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    training: Mapping[str, Any],
    seed: int,
    regulariser: Regulariser | None = None,
) -> Trained:
    """Train a score on one split, stopped by another."""
    learn, judge = rows_of(train, schema), rows_of(validation, schema)
    months = pd.concat([learn.windows, judge.windows], ignore_index=True)
    response = response.with_windows(np.vstack([learn.X, judge.X]), months)
    classifier = StrategicClassifier(
        response=response,
        regulariser=regulariser,
        random_state=seed,
        standardise=False,
        **training,
    )
    clusters = None
    if learn.clusters is not None and judge.clusters is not None:
        clusters = np.append(learn.clusters, judge.clusters)
    held = judge.X, judge.y
    classifier.fit(learn.X, learn.y, validation=held, clusters=clusters, progress=True)
    rows = {"train": len(learn.y), "validation": len(judge.y)}
    span = learn.X.min(axis=0), learn.X.max(axis=0)
    model = published_model(classifier, schema, standardiser, training, rows, span)
    return Trained(model, classifier.history_)


def published_model(
    classifier: StrategicClassifier,
    schema: Schema,
    standardiser: Standardiser,
    training: Mapping[str, Any],
    rows: Mapping[str, int],
    span: tuple[Floats, Floats],  # least and largest value of each training column
) -> PublishedModel:
    """Return a trained rule as it is stored, with what it was trained on and for."""
    best = classifier.history_.best
    return PublishedModel(
        score=classifier.score_,
        standardiser=standardiser,
        schema_digest=schema.digest(),
        about={
            "probability_slope": classifier.probability_slope_,
            "response": classifier.response.describe(),
            "regulariser": described(classifier.regulariser),
            "training": {
                key: asdict(value) if isinstance(value, RegretSelection) else value
                for key, value in training.items()
                if key != "score"
            },
            "seed": classifier.random_state,
            "rows": dict(rows),
            "training_range": {"low": span[0].tolist(), "high": span[1].tolist()},
            "best_epoch": best.epoch,
            "optimiser": classifier.history_.method,
            "converged": classifier.history_.converged,
            "ended": classifier.history_.ended,
            "choice": None if classifier.choice_ is None else classifier.choice_.to_json(),
            "validation_accuracy": best.validation_accuracy,
        }
        | schema_facts(schema),
        covariance=classifier.covariance_,
        refits=classifier.refits_,
    )


def train_parts(
    parts: Mapping[str, Partitions],
    schema: Schema,
    standardiser: Standardiser,
    response: Response,
    training: Mapping[str, Any],
    seed: int,
    regulariser: Regulariser | None = None,
    mapper: Mapper | None = None,
) -> PublishedModel:
    """Train a score on the parts of ``train``, stopped by those of ``validation``."""
    names = tuple(schema.feature_names)
    possible = response.actions.possible
    months = schema.carried_windows if possible is not None and possible.in_responses else ()
    rows = {
        name: PartRows(parts[name], names, windows=tuple(months))
        for name in ("train", "validation")
    }
    classifier = StrategicClassifier(
        response=response,
        regulariser=regulariser,
        random_state=seed,
        standardise=False,
        **training,
    )
    classifier.fit_parts(rows["train"], rows["validation"], mapper=mapper, progress=True)
    counts = {name: table.n for name, table in rows.items()}
    return published_model(classifier, schema, standardiser, training, counts, rows["train"].span())
