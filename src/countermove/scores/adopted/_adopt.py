"""`adopt`: from a fitted model to a rule people respond to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, ParameterError, shown
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._files import of_file
from countermove.scores.adopted._model import AdoptedModel
from countermove.scores.adopted._readers import body_of


def adopt(
    model: Any,
    background: Any,
    favourable: Any = None,
    columns: Any = None,
    output: str = "log_odds",
) -> AdoptedModel:
    """Return a fitted model as a rule that people respond to.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from countermove import ActionSet, adopt, recommend
    >>> model = adopt(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), background=X)
    >>> advice = recommend(model, X, actions=ActionSet(**model.allowed(immutable=["x1"])))
    >>> bool(advice.proven_cheapest.any())
    True

    Parameters
    ----------
    model
        A fitted scikit-learn classifier or Pipeline, a LightGBM, XGBoost or CatBoost model, an
        onnxruntime session, a torch module, a function from rows to probabilities, or the path of
        a file of LightGBM (text) or XGBoost (JSON).
    background
        Rows as the model reads them, in original units: their standard deviations are what a
        cost of 1 buys, and what is missing among them may be missing later.
    favourable
        The label people want; the second of the model's labels by default.
    columns
        Names of the columns, where neither the model nor the background knows them.
    output
        What a torch module returns: ``log_odds`` or ``probability``.

    Returns
    -------
    AdoptedModel
        Its probabilities are those of the model to 1e-6, checked on the background. Trees and
        linear models, preprocessing folded in, are exact; others are searched (``exactness``).
    """
    if isinstance(model, str | Path):
        body = of_file(Path(model), background, favourable, columns)
    else:
        body = body_of(model, background, favourable, columns, output)
    rows = body.columns.encode(background)
    if not len(rows):
        raise DataError("the background has no rows; give the rows the model was trained on")
    missing = np.isnan(rows)
    standardiser = _units(rows, missing, body.columns)
    score, inside = body.scores(standardiser)
    adopted = AdoptedModel(
        score,
        inside,
        standardiser,
        body.columns,
        body.classes,
        body.favourable,
        body.exactness,
        body.source,
        body.own,
        np.asarray(missing.any(axis=0)),
    )
    _check_agrees(adopted, rows)
    return adopted


def _units(rows: Floats, missing: NDArray[np.bool_], columns: TableColumns) -> Standardiser:
    """Return mean and standard deviation of what is not missing."""
    empty = np.flatnonzero(missing.all(axis=0))
    if empty.size:
        names = [columns.matrix_names[j] for j in empty]
        raise DataError(
            f"the columns {shown(map(repr, names))} of the background are missing in every row, so "
            "there is no standard deviation to measure costs by"
        )
    filled = np.where(missing, np.nanmean(rows, axis=0), rows)
    return Standardiser.fit(filled, columns.matrix_names, keep_constant=True)


def _check_agrees(adopted: AdoptedModel, rows: Floats) -> None:
    """Refuse a model whose own probabilities are not those of its copy."""
    if adopted.own is None or adopted.exactness == "black_box":
        return
    from scipy.special import expit

    from countermove.scores.base import values

    some = rows[:: max(1, len(rows) // 500)]
    copied, own = expit(values(adopted.score_, some)), adopted.probability(some)
    worst = float(np.abs(copied - own).max())
    if not worst <= 1e-6:
        raise ParameterError(
            f"the copy of {adopted.source} gives probabilities that differ from its own by up to "
            f"{worst:.2g}; adopt(model.predict_proba, ...) takes it as a black box"
        )
