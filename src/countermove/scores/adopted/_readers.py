"""Who reads which model: labels, columns and the parsed rule of everything that can be adopted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError, shown
from countermove.scores._links import Link
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._features import Feature, MixedFeature, NumberFeature
from countermove.scores.adopted._folded import FoldedScore
from countermove.scores.adopted._model import Probabilities
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.adopted._pipelines import NotFoldedError, unfold
from countermove.scores.base import RescaledScore, Score
from countermove.scores.linear import LinearScore
from countermove.scores.opaque import ModuleScore, OpaqueScore
from countermove.scores.trees import TreeEnsemble, TreeScore


@dataclass(frozen=True)
class AdoptedBody:
    """What a reader made of a model."""

    columns: TableColumns
    classes: NDArray[Any]
    favourable: Any
    source: str
    own: Probabilities | None
    exactness: str
    scores: Callable[[Standardiser], tuple[Score, Score]]  # of original and standardised rows


@dataclass(frozen=True)
class Labels:
    """Both labels, the favourable one and its place."""

    classes: NDArray[Any]
    favourable: Any
    place: int

    @classmethod
    def of(cls, classes: Any, favourable: Any) -> Labels:
        """Return the labels of a model, refused unless there are two and one is the favourable."""
        found = np.asarray(classes)
        if len(found) != 2:
            raise ParameterError(
                f"the model tells {len(found)} classes apart ({shown(found.tolist())}); a rule "
                "decides between two. Train it on the favourable label against the rest"
            )
        if favourable is None:
            return cls(found, found[1], 1)
        named = [str(label) for label in found.tolist()]  # settings know labels as text
        if str(favourable) not in named:
            raise ParameterError(
                f"favourable={favourable!r} is none of the model's labels {shown(found.tolist())}"
            )
        place = named.index(str(favourable))
        return cls(found, found[place], place)


def names_of(known: Any, background: Any, columns: Any, n: int) -> tuple[tuple[str, ...], bool]:
    """Return the columns' names, and whether the model was fitted on them."""
    held = getattr(background, "columns", None)
    found = columns if columns is not None else known if known is not None else held
    names = [f"x{j}" for j in range(n)] if found is None else [str(name) for name in found]
    if len(names) != n:
        raise ParameterError(
            f"the model reads {n} columns, but {len(names)} are named: {shown(map(repr, names))}"
        )
    return tuple(names), known is not None


def tree_body(
    parsed: ParsedTrees,
    features: list[Feature],
    columns: TableColumns,
    labels: Labels,
    source: str,
    own: Probabilities | None,
) -> AdoptedBody:
    """Return a body of trees over the columns of people."""
    ensemble = parsed.of_columns(features, len(columns.matrix_names))

    def scores(unit: Standardiser) -> tuple[Score, Score]:
        return tree_scores(ensemble, parsed.link, unit)

    return AdoptedBody(columns, labels.classes, labels.favourable, source, own, "trees", scores)


def linear_body(
    weights: Floats,
    intercept: float,
    features: list[Feature],
    columns: TableColumns,
    labels: Labels,
    source: str,
    own: Probabilities | None,
) -> AdoptedBody:
    """Return an affine body, preprocessing folded into its weights."""
    slope, constant = np.zeros(len(columns.matrix_names)), float(intercept)
    for weight, made in zip(weights, features, strict=True):
        part, shift = made.affine(len(slope))
        slope += weight * part
        constant += weight * shift

    def scores(unit: Standardiser) -> tuple[Score, Score]:
        return linear_scores(slope, constant, unit)

    return AdoptedBody(columns, labels.classes, labels.favourable, source, own, "affine", scores)


def affine_features(features: list[Feature], n_columns: int) -> tuple[Floats, Floats]:
    """Return what a model reads as a matrix and a shift of people's columns."""
    parts = [made.affine(n_columns) for made in features]
    matrix = np.array([slope for slope, _ in parts]).reshape(len(parts), n_columns)
    return matrix, np.array([shift for _, shift in parts])


def score_body(
    model: Any, features: list[Feature], columns: TableColumns, labels: Labels, own: Probabilities
) -> AdoptedBody:
    """Return the body of a classifier of this package, behind affine preprocessing."""
    score: Score = model.score_
    sign = 1.0 if labels.favourable == model.favourable_ else -1.0
    factor, source = sign * float(model.probability_slope_), type(model).__name__
    if isinstance(score, LinearScore):
        weight = factor * score.weight.detach().numpy()
        rule = (weight, factor * score.bias.item(), features, columns, labels, source, own)
        return linear_body(*rule)
    matrix, shift = affine_features(features, len(columns.matrix_names))
    if score.differentiable:
        outside: Score = FoldedScore(score, matrix, shift, factor)
    elif sign > 0.0 and np.array_equal(matrix, np.eye(score.n_features)) and not shift.any():
        outside = score.at_threshold(0.5)  # a copy
    else:
        raise NotFoldedError(f"a {score.kind} score behind other steps or of the other label")
    kind = "trees" if isinstance(score, TreeScore) else "gradient"
    exactness = "affine" if outside.slope() is not None else kind

    def scores(unit: Standardiser) -> tuple[Score, Score]:
        return outside, outside.before_standardising(-unit.mean / unit.scale, 1.0 / unit.scale)

    return AdoptedBody(columns, labels.classes, labels.favourable, source, own, exactness, scores)


def tree_scores(ensemble: TreeEnsemble, link: Link, unit: Standardiser) -> tuple[Score, Score]:
    """Return trees as a score of rows in original units, and of standardised ones."""
    return TreeScore(ensemble, link=link), TreeScore(ensemble, unit.mean, unit.scale, link)


def linear_scores(slope: Floats, intercept: float, unit: Standardiser) -> tuple[Score, Score]:
    """Return a linear rule as a score of rows in original units, and of standardised ones."""
    inside = _linear(slope * unit.scale, intercept + float(slope @ unit.mean))
    return _linear(slope, intercept), inside


def _linear(weights: Floats, intercept: float) -> LinearScore:
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(weights))
        score.bias.fill_(intercept)
    return score.requires_grad_(False)


def black_box(
    own: Probabilities, columns: TableColumns, labels: Labels, source: str
) -> AdoptedBody:
    """Return a body that is only asked."""

    def function(rows: Floats) -> Floats:
        return own(columns.decode(rows))

    def scores(unit: Standardiser) -> tuple[Score, Score]:
        plain = np.zeros(unit.n_features), np.ones(unit.n_features)
        return OpaqueScore(function, *plain), OpaqueScore(function, unit.mean, unit.scale)

    return AdoptedBody(columns, labels.classes, labels.favourable, source, own, "black_box", scores)


def plain(n: int) -> list[Feature]:
    """Return the features of a model that reads people's columns as they are."""
    return [NumberFeature(j) for j in range(n)]


def body_of(model: Any, background: Any, favourable: Any, columns: Any, output: str) -> AdoptedBody:
    """Return what is made of a model, by the first reader that knows it."""
    module = type(model).__module__.split(".")[0]
    if module in ("lightgbm", "xgboost"):
        from countermove.scores.adopted import _boosters

        return _boosters.of_object(module, model, background, favourable, columns)
    if module == "onnxruntime":
        return _of_session(model, background, favourable, columns)
    if isinstance(model, torch.nn.Module):
        return _of_module(model, background, favourable, columns, output)
    if hasattr(model, "classes_"):
        return _of_sklearn(model, background, favourable, columns)
    if hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{type(model).__name__} predicts a number, not the probability of a label; a rule "
            "needs a classifier (for a regression, publish the event that it exceeds an amount)"
        )
    if callable(model):
        return _of_function(model, background, favourable, columns)
    raise ParameterError(
        f"cannot adopt {type(model).__name__}: give a fitted scikit-learn classifier or Pipeline, "
        "a LightGBM, XGBoost or CatBoost model, an onnxruntime session, a torch module, a "
        "function from rows to probabilities, or the path of a model file"
    )


def _own(model: Any, place: int) -> Probabilities:
    def probabilities(table: Any) -> Floats:
        found: Floats = np.asarray(model.predict_proba(table), np.float64)[:, place]
        return found

    return probabilities


def _of_sklearn(model: Any, background: Any, favourable: Any, columns: Any) -> AdoptedBody:
    if favourable is None:  # a classifier of this package knows the label people want
        favourable = getattr(_last_step(model), "favourable_", None)
    labels = Labels.of(model.classes_, favourable)
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{type(model).__name__} gives no probabilities; wrap it in CalibratedClassifierCV"
        )
    known = getattr(model, "feature_names_in_", None)
    names, named = names_of(known, background, columns, int(model.n_features_in_))
    source, own = type(_last_step(model)).__name__, _own(model, labels.place)
    link: Callable[[Link], Link] | None = None
    inner = model
    try:
        if type(model).__name__ == "CalibratedClassifierCV":
            inner, link = _calibrated(model)
        end, table, features = unfold(inner, names, named)
        body = _of_estimator(end, table, features, labels, source, own, link)
    except NotFoldedError as error:
        warnings.warn(
            f"{source} is adopted as a black box: {error} is not followed step by step, so that "
            "crossings are searched for and never proven",
            UserWarning,
            stacklevel=4,
        )
        return black_box(own, _guessed_columns(names, named, background), labels, source)
    return body


def _last_step(model: Any) -> Any:
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return model


def _of_estimator(
    model: Any,
    columns: TableColumns,
    features: list[Feature],
    labels: Labels,
    source: str,
    own: Probabilities,
    link: Callable[[Link], Link] | None,
) -> AdoptedBody:
    """Return the body of an estimator whose preprocessing has been followed."""
    from countermove.scores.adopted._sklearn import trees_of

    if link is None and isinstance(getattr(model, "score_", None), Score):
        return score_body(model, features, columns, labels, own)
    if type(model).__name__ == "LGBMClassifier":
        from countermove.scores.adopted._boosters import lightgbm_trees

        parsed: ParsedTrees | None = lightgbm_trees(model, labels.place)[0]
    else:
        parsed = trees_of(model, labels.place)
    if parsed is not None:
        if link is not None:
            if labels.place == 0:
                raise NotFoldedError("a calibrator of the other label")
            parsed = replace(parsed, link=link(parsed.link))
        if any(isinstance(made, MixedFeature) for made in features):
            raise NotFoldedError("a mix of columns before trees")
        return tree_body(parsed, features, columns, labels, source, own)
    weights = getattr(model, "coef_", None)
    if weights is not None and np.shape(weights) == (1, len(features)):
        sign = 1.0 if labels.place == 1 else -1.0
        factor, shift = (1.0, 0.0)
        if link is not None:
            made = link(Link())
            if made.kind != "sigmoid":
                raise NotFoldedError("an isotonic calibrator of a linear rule")
            factor, shift = -made.a, -made.b
        slope = sign * factor * np.asarray(weights, np.float64)[0]
        constant = sign * (factor * float(np.ravel(model.intercept_)[0]) + shift)
        return linear_body(slope, constant, features, columns, labels, source, own)
    raise NotFoldedError(type(model).__name__)


def _calibrated(model: Any) -> tuple[Any, Callable[[Link], Link]]:
    """Return the estimator under a single calibrator, and the calibrator as a link."""
    if len(model.calibrated_classifiers_) != 1:
        raise NotFoldedError(
            f"an average of {len(model.calibrated_classifiers_)} calibrated models (ensemble=False "
            "gives one)"
        )
    one = model.calibrated_classifiers_[0]
    calibrator = one.calibrators[0]
    inner = one.estimator
    while type(inner).__name__ == "FrozenEstimator":
        inner = inner.estimator

    def link(before: Link) -> Link:
        scale = before.a if before.kind == "probability" else 1.0
        if before.kind == "sigmoid":
            raise NotFoldedError("a calibrator on another")
        if hasattr(calibrator, "a_"):
            return Link("sigmoid", float(calibrator.a_), float(calibrator.b_), scale=scale)
        x, y = calibrator.X_thresholds_, calibrator.y_thresholds_
        return Link("isotonic", x=tuple(x.tolist()), y=tuple(y.tolist()), scale=scale)

    return inner, link


def _guessed_columns(names: tuple[str, ...], named: bool, background: Any) -> TableColumns:
    """Return a black box's table: what is no number in the background are categories."""
    import pandas as pd

    held = background
    if not isinstance(held, pd.DataFrame):
        given = getattr(held, "columns", None)  # of another library's frame
        held = pd.DataFrame(np.asarray(held), columns=names if given is None else list(given))
    categories = {}
    for at, name in enumerate(names):
        column = held[name] if name in held.columns else held.iloc[:, at]
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            numbers = pd.to_numeric(column, errors="coerce")
            if (
                isinstance(column.dtype, pd.CategoricalDtype)
                or numbers.notna().sum() < column.notna().sum()
            ):
                categories[name] = tuple(sorted(column.dropna().unique().tolist(), key=str))
    return TableColumns(names, categories, named=named)


def _of_module(
    model: torch.nn.Module, background: Any, favourable: Any, columns: Any, output: str
) -> AdoptedBody:
    labels = Labels.of(np.array([0, 1]), favourable)
    if output not in ("log_odds", "probability"):
        raise ParameterError(f"output is 'log_odds' or 'probability', got {output!r}")
    n = np.shape(background)[1]
    names, _ = names_of(None, background, columns, n)
    sign = 1.0 if labels.place == 1 else -1.0
    score = ModuleScore(model, n, sign, output == "probability")

    def scores(unit: Standardiser) -> tuple[Score, Score]:
        return score, RescaledScore(score, -unit.mean / unit.scale, 1.0 / unit.scale)

    return AdoptedBody(
        TableColumns(names), labels.classes, labels.favourable, type(model).__name__, None,
        "gradient", scores,
    )  # fmt: skip


def _of_function(model: Any, background: Any, favourable: Any, columns: Any) -> AdoptedBody:
    labels = Labels.of(np.array([0, 1]), favourable)
    n = np.shape(background)[1]
    names, _ = names_of(None, background, columns, n)
    named = hasattr(background, "columns")

    def own(table: Any) -> Floats:
        found = np.asarray(model(table), np.float64)
        found = found[:, 1] if found.ndim == 2 and found.shape[1] == 2 else np.ravel(found)
        if len(found) != len(table) or not ((found >= 0.0) & (found <= 1.0)).all():
            raise ParameterError(
                f"the function gave an array of shape {found.shape}; expected the probability of "
                "the favourable label of every row, in [0, 1], or both labels' in two columns"
            )
        return found if labels.place == 1 else 1.0 - found

    name = getattr(model, "__name__", type(model).__name__)
    return black_box(own, _guessed_columns(names, named, background), labels, name)


def _of_session(session: Any, background: Any, favourable: Any, columns: Any) -> AdoptedBody:
    """Return an ONNX graph, which computes in float32, as a black box."""
    labels = Labels.of(np.array([0, 1]), favourable)
    n = np.shape(background)[1] if columns is None else len(columns)
    names, _ = names_of(None, background, columns, n)
    given = session.get_inputs()[0].name

    def own(table: Any) -> Floats:
        found = session.run(None, {given: np.asarray(table, np.float32)})[-1]
        if isinstance(found, list):  # a mapping from label to probability per row
            found = [list(row.values()) for row in found]
        both = np.asarray(found, np.float64).reshape(len(table), -1)
        one: Floats = both[:, -1]
        return one if labels.place == 1 else 1.0 - one

    return black_box(own, TableColumns(names), labels, "ONNX graph")
