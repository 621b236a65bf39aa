"""scikit-learn's preprocessing, folded into people's own columns.

Scaling, one-hot and ordinal encoding, imputation, selection, principal components and their
combinations by column are followed step by step; any other transformer makes the model a black box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._features import (
    CodeFeature,
    Feature,
    MixedFeature,
    NumberFeature,
)


class NotFoldedError(Exception):
    """A transformer whose steps are not followed; its name is the message."""


@dataclass
class _Raw:
    """A column of the table as it comes: what it becomes is not known yet."""

    name: str
    fill: Any = None  # what an imputer puts in the place of a missing value


@dataclass
class Unfolding:
    """The table's columns while transformers are followed through."""

    names: tuple[str, ...]
    categories: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    fill: dict[str, float] = field(default_factory=dict)
    open_categories: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    only_checked: bool = False  # functions among the transformers change nothing


@dataclass(frozen=True)
class _Number:
    """A number of the table, and the steps that follow."""

    name: str
    steps: tuple[tuple[Callable[[Floats], Floats], float, float], ...] = ()


@dataclass(frozen=True)
class _Code:
    """A number for every category of one of the table's columns."""

    name: str
    values: Floats
    otherwise: Floats


@dataclass(frozen=True)
class _Mixed:
    """A weighted sum of other parts."""

    parts: tuple[Part, ...]
    weights: Floats
    shift: float


Part = _Raw | _Number | _Code | _Mixed


def unfold(
    model: Any, names: tuple[str, ...], named: bool
) -> tuple[Any, TableColumns, list[Feature]]:
    """Return the estimator at the end of a pipeline, the table, and what the estimator reads.

    Raises
    ------
    NotFoldedError
        With the name of a transformer that is not followed.
    """
    state = Unfolding(names)
    parts: list[Part] = [_Raw(name) for name in names]
    while hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            parts = _transformed(state, step, parts)
        model = model.steps[-1][1]
    inner = getattr(model, "_preprocessor", None)  # of histograms with categories
    if inner is not None:
        state.only_checked = True
        parts = _transformed(state, inner, parts)
    parts = [_as_number(state, part) if isinstance(part, _Raw) else part for part in parts]
    if state.numbers & set(state.categories):
        raise NotFoldedError("a column read both as a number and as categories")
    columns = TableColumns(
        names, dict(state.categories), dict(state.fill), frozenset(state.open_categories), named
    )
    return model, columns, [_feature(columns, part) for part in parts]


def _feature(columns: TableColumns, part: Part) -> Feature:
    if isinstance(part, _Mixed):
        n = len(columns.matrix_names)
        made = [_feature(columns, inner).affine(n) for inner in part.parts]
        slopes, shifts = np.array([slope for slope, _ in made]), np.array([s for _, s in made])
        return MixedFeature(part.weights @ slopes, part.shift + float(part.weights @ shifts))
    places = columns.places(part.name)
    if isinstance(part, _Code):
        return CodeFeature(places, part.values, part.otherwise)
    found = NumberFeature(places[0])
    for step in part.steps if isinstance(part, _Number) else ():
        found = found.then(*step)
    return found


def _as_number(state: Unfolding, part: _Raw) -> _Number:
    state.numbers.add(part.name)
    if part.fill is not None:
        known = state.fill.setdefault(part.name, float(part.fill))
        if known != float(part.fill):
            raise NotFoldedError(f"two imputers of column {part.name!r}")
    return _Number(part.name)


def _transformed(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    """Return the columns after one transformer."""
    if step is None or step == "passthrough":
        return parts
    if step == "drop":
        return []
    name = type(step).__name__
    if name in _SCALERS:
        moves = zip(parts, _SCALERS[name](step), strict=True)
        return [_scaled(state, part, *move) for part, move in moves]
    if name in _MIXERS:
        inside = tuple(_as_number(state, one) if isinstance(one, _Raw) else one for one in parts)
        matrix, shift = _MIXERS[name](step)
        return [_Mixed(inside, row, float(s)) for row, s in zip(matrix, shift, strict=True)]
    if name in _FOLLOWED:
        return _FOLLOWED[name](state, step, parts)
    if hasattr(step, "get_support"):
        return [parts[j] for j in np.flatnonzero(step.get_support())]
    raise NotFoldedError(name)


def _in_turn(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    for _, inner in step.steps:
        parts = _transformed(state, inner, parts)
    return parts


def _side_by_side(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    if step.transformer_weights:
        raise NotFoldedError("FeatureUnion with weights")
    return [
        part for _, inner in step.transformer_list for part in _transformed(state, inner, parts)
    ]


def _checked(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    if step.func is not None and not state.only_checked:
        raise NotFoldedError("FunctionTransformer")
    return parts


def _imputed(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    if step.add_indicator:
        raise NotFoldedError("SimpleImputer(add_indicator=True)")
    return [_filled(part, value) for part, value in zip(parts, step.statistics_, strict=True)]


def _by_column(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    found: list[Part] = []
    for name, inner, chosen in step.transformers_:
        places = step._transformer_to_input_indices.get(name)
        if places is None:
            raise NotFoldedError(f"ColumnTransformer of {chosen!r}")
        found += _transformed(state, inner, [parts[j] for j in places]) if len(places) else []
    return found


def _standard(step: Any) -> list[tuple[Any, float, float]]:
    mean = step.mean_ if step.with_mean else np.zeros(step.n_features_in_)
    return [_centred(m, s) for m, s in zip(mean, _scales(step), strict=True)]


def _robust(step: Any) -> list[tuple[Any, float, float]]:
    centre = step.center_ if step.with_centering else np.zeros(step.n_features_in_)
    return [_centred(m, s) for m, s in zip(centre, _scales(step), strict=True)]


def _largest(step: Any) -> list[tuple[Any, float, float]]:
    return [_centred(0.0, s) for s in step.scale_]


def _ranged(step: Any) -> list[tuple[Any, float, float]]:
    if step.clip:
        raise NotFoldedError("MinMaxScaler(clip=True)")
    return [
        (lambda x, f=f, m=m: x * f + m, float(f), float(m))
        for f, m in zip(step.scale_, step.min_, strict=True)
    ]


def _scales(step: Any) -> Floats:
    return np.ones(step.n_features_in_) if step.scale_ is None else np.asarray(step.scale_)


def _centred(mean: float, scale: float) -> tuple[Any, float, float]:
    return (lambda x: (x - mean) / scale, 1.0 / float(scale), -float(mean) / float(scale))


_SCALERS = {
    "StandardScaler": _standard,
    "RobustScaler": _robust,
    "MaxAbsScaler": _largest,
    "MinMaxScaler": _ranged,
}


def _components(step: Any) -> tuple[Floats, Floats]:
    matrix = np.asarray(step.components_, np.float64)
    if step.whiten:
        least = np.finfo(step.explained_variance_.dtype).eps
        matrix = matrix / np.sqrt(np.maximum(step.explained_variance_, least))[:, None]
    mean = np.zeros(matrix.shape[1]) if step.mean_ is None else step.mean_
    return matrix, -matrix @ mean


def _singular(step: Any) -> tuple[Floats, Floats]:
    return np.asarray(step.components_, np.float64), np.zeros(len(step.components_))


_MIXERS = {"PCA": _components, "IncrementalPCA": _components, "TruncatedSVD": _singular}


def _scaled(state: Unfolding, part: Part, step: Any, factor: float, shift: float) -> Part:
    if isinstance(part, _Raw):
        part = _as_number(state, part)
    if isinstance(part, _Code):
        return _Code(part.name, step(part.values), step(part.otherwise))
    if isinstance(part, _Mixed):
        return _Mixed(part.parts, factor * part.weights, factor * part.shift + shift)
    return _Number(part.name, (*part.steps, (step, factor, shift)))


def _filled(part: Part, value: Any) -> Part:
    if not isinstance(part, _Raw):
        raise NotFoldedError("an imputer after another transformer")
    return _Raw(part.name, value)


def _known(state: Unfolding, part: Part, values: Any, open_: bool) -> str:
    """Note the categories of a column."""
    if not isinstance(part, _Raw):
        raise NotFoldedError("an encoder after a scaler")
    found = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if state.categories.setdefault(part.name, found) != found:
        raise NotFoldedError(f"two encoders of column {part.name!r}")
    if part.fill is not None:
        raise NotFoldedError("an imputer of categories")
    if open_:
        state.open_categories.add(part.name)
    return part.name


def _one_hot(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    if getattr(step, "_infrequent_enabled", False):
        raise NotFoldedError("OneHotEncoder with infrequent categories")
    found: list[Part] = []
    dropped = step.drop_idx_ if step.drop_idx_ is not None else [None] * len(parts)
    for part, values, left_out in zip(parts, step.categories_, dropped, strict=True):
        name = _known(state, part, values, step.handle_unknown == "ignore")
        found += [
            _Code(name, np.eye(len(values))[k], np.zeros(1))
            for k in range(len(values))
            if k != left_out
        ]
    return found


def _ordinal(state: Unfolding, step: Any, parts: list[Part]) -> list[Part]:
    if getattr(step, "_infrequent_enabled", False):
        raise NotFoldedError("OrdinalEncoder with infrequent categories")
    found: list[Part] = []
    takes = step.handle_unknown == "use_encoded_value"
    unknown = float(step.unknown_value) if takes else np.nan
    for part, values in zip(parts, step.categories_, strict=True):
        name = _known(state, part, values, takes)
        codes = np.arange(len(values), dtype=np.float64)
        missing = [
            value is None or (isinstance(value, float) and np.isnan(value)) for value in values
        ]
        codes[np.array(missing)] = step.encoded_missing_value
        found.append(_Code(name, codes, np.array([unknown])))
    return found


_FOLLOWED = {
    "Pipeline": _in_turn,
    "ColumnTransformer": _by_column,
    "FeatureUnion": _side_by_side,
    "FunctionTransformer": _checked,
    "SimpleImputer": _imputed,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
}
