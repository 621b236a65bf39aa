"""An adopted model as the chain holds a rule: a score of the table's standardised rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.rows import feature_matrix
from countermove.data.schema import LABEL, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ModelFileError, ParameterError, shown
from countermove.scores.adopted._adopt import adopt
from countermove.scores.adopted._model import AdoptedModel
from countermove.scores.adopted._readers import linear_scores
from countermove.scores.adopted._storage import load_adopted
from countermove.scores.base import Score, values
from countermove.scores.linear import LinearScore
from countermove.scores.storage import PublishedModel, schema_facts
from countermove.scores.trees import TreeScore

_WAY_OUT = "Name the model's columns as the schema does, in the model's order, under audit.columns"
WRONG_WAY = 0.5
"""An area under the curve below this on the training rows: the model predicts the other label."""


def model_table(table: pd.DataFrame, schema: Schema, standardiser: Standardiser) -> pd.DataFrame:
    """Return typed rows as a model of the schema's columns reads them.

    Numbers as they are, ordered categories by their position, other categories in words, and
    beside them the one-hot columns of the chain's own matrix; what is missing is filled in.
    """
    X = standardiser.inverse(standardiser.transform(feature_matrix(table, schema)))
    frame = pd.DataFrame(X, columns=list(schema.feature_names))
    for feature in schema.features:
        if feature.kind == "onehot":
            own = [f"{feature.name}={category}" for category in feature.categories]
            bits = frame[own].to_numpy() > 0.5
            words = np.array([*feature.categories, None], object)
            frame[feature.name] = words[np.where(bits.any(axis=1), bits.argmax(axis=1), -1)]
    return frame


def adopt_file(
    path: Path,
    table: pd.DataFrame,
    schema: Schema,
    standardiser: Standardiser,
    seed: int,
    favourable: Any = None,
    columns: Sequence[str] | None = None,
    threshold: float = 0.5,
) -> PublishedModel:
    """Return the model of a file as a rule of the chain.

    Parameters
    ----------
    path
        See `adopt`, or a folder that `save` made; so are ``favourable`` and ``columns``.
    table
        The training rows, typed.
    schema, standardiser
        Of the chain: the model must read columns of the schema, and what is missing is filled in
        as the schema says before the model reads it.
    seed
        Of the run.
    threshold
        The probability from which the model approves.
    """
    if path.is_dir():
        model, digest = _stored(path, favourable, columns)
    else:
        frame = model_table(table, schema, standardiser)
        try:
            model = adopt(path, frame, favourable, columns)
        except DataError as error:
            raise ModelFileError(f"{path}: {error}. {_WAY_OUT}") from error
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    score = _score(model, _places(model, schema), standardiser)
    X = standardiser.transform(feature_matrix(table, schema))
    _check_order(values(score, X), table[LABEL].to_numpy(np.float64), model)
    about = {
        "rows": {"train": len(table)},
        "seed": seed,
        "training_range": {"low": X.min(axis=0).tolist(), "high": X.max(axis=0).tolist()},
        "adopted": {
            "file": path.name,
            "sha256": digest,
            "source": model.source,
            "read_as": model.exactness,
        },
    } | schema_facts(schema)
    return PublishedModel(score, standardiser, schema.digest(), about, threshold)


def _stored(path: Path, favourable: Any, columns: Any) -> tuple[AdoptedModel, str]:
    """Return a model that `save` stored, and its SHA-256."""
    if favourable is not None or columns is not None:
        raise ParameterError(
            f"{path} is an adopted model, stored with its columns and the label people want: leave "
            "audit.columns and audit.favourable empty"
        )
    return load_adopted(path)


def _places(model: AdoptedModel, schema: Schema) -> list[int]:
    """Return where the chain's matrix has the model's columns; both are named if they differ."""
    own = {name: j for j, name in enumerate(schema.feature_names)}
    lacking = [name for name in model.columns.matrix_names if name not in own]
    if lacking:
        raise ModelFileError(
            f"the model reads {shown(map(repr, model.columns.matrix_names))}, the schema "
            f"{schema.name!r} has {shown(map(repr, own))}: it lacks {shown(map(repr, lacking))}. "
            f"{_WAY_OUT}, and declare categories that the model tells apart as `kind: onehot`"
        )
    return [own[name] for name in model.columns.matrix_names]


def _score(model: AdoptedModel, places: list[int], unit: Standardiser) -> Score:
    """Return the model's score of standardised rows of the chain."""
    score = model.score_
    if isinstance(score, TreeScore):
        return score.of_columns(places, unit.mean, unit.scale)
    assert isinstance(score, LinearScore)  # files hold trees and linear rules
    slope = np.zeros(unit.n_features)
    slope[places] = score.weight.detach().numpy()
    return linear_scores(slope, float(score.bias), unit)[1]


def _check_order(scores: Floats, y: Floats, model: AdoptedModel) -> None:
    """Refuse a model that gives people with the favourable label the lower probabilities."""
    from sklearn.metrics import roc_auc_score

    area = float(roc_auc_score(y > 0, scores))
    if area < WRONG_WAY:
        raise ModelFileError(
            f"the model predicts the wrong way round: of two training people with either label it "
            f"gives the one with the favourable label the higher probability {area:.0%} of the "
            f"time. Its labels are {shown(map(repr, model.classes_.tolist()))}, taken as "
            f"favourable was {model.favourable_!r}; name the other one under audit.favourable"
        )
