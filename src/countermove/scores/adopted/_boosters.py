"""LightGBM and XGBoost: fitted objects, and files read without their libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import CountermoveError, ModelFileError
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._features import CodeFeature, Feature, NumberFeature
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.adopted._readers import AdoptedBody, Labels, names_of, plain, tree_body


def of_object(
    module: str, model: Any, background: Any, favourable: Any, columns: Any
) -> AdoptedBody:
    """Return the body of a fitted object, written to its own text and read from it."""
    labels = Labels.of(getattr(model, "classes_", np.array([0, 1])), favourable)
    if module == "lightgbm":
        parsed, names, categories = lightgbm_trees(model, labels.place)
    else:
        from countermove.scores.adopted._xgboost import read_model

        booster = model.get_booster() if hasattr(model, "get_booster") else model
        said = json.loads(bytes(booster.save_raw("json")))
        parsed, names = read_model(said, _width(background))
        parsed, categories = _turned(parsed, labels.place), []
    own = (
        None
        if module == "xgboost" and not hasattr(model, "predict_proba")
        else _own(model, labels.place)
    )
    return _body(parsed, names, categories, background, columns, labels, type(model).__name__, own)


def of_file(path: Path, background: Any, favourable: Any, columns: Any) -> AdoptedBody | None:
    """Return the body of a booster's file; None of a file that is none of theirs."""
    labels = Labels.of(np.array([0, 1]), favourable)
    content = path.read_bytes()
    try:
        found = _parsed_file(content, _width(background))
    except CountermoveError:
        raise
    except Exception as error:
        # A damaged file can hold anything anywhere.
        raise ModelFileError(
            f"{path} is damaged or no model: {type(error).__name__}: {str(error)[:200]}; copy the "
            "file again, or save the model again"
        ) from error
    if found is None:
        return None
    parsed, names, categories, source = found
    parsed = _turned(parsed, labels.place)
    return _body(parsed, names, categories, background, columns, labels, source, None)


def _parsed_file(
    content: bytes, width: int
) -> tuple[ParsedTrees, list[str], list[list[Any]], str] | None:
    """Return the trees, columns and categories of a file, and what it is."""
    if content.startswith(b"tree\n"):
        from countermove.scores.adopted._lightgbm import read_text

        # Not by LightGBM itself: damaged texts end its process.
        return *read_text(content.decode()), "LightGBM text file"
    if content[:1] != b"{":
        return None
    said = json.loads(content)
    if "features_info" in said:
        raise ModelFileError(
            "CatBoost's JSON is read by CatBoost itself: pass the fitted CatBoostClassifier to "
            "adopt()"
        )
    if "learner" in said:
        from countermove.scores.adopted._xgboost import read_model

        return *read_model(said, width), [], "XGBoost file"
    return None


def _width(background: Any) -> int:
    """Return how many columns the background has."""
    return int(np.shape(background)[1])


def lightgbm_trees(model: Any, place: int) -> tuple[ParsedTrees, list[str], list[list[Any]]]:
    """Return the trees, columns and pandas categories of a LightGBM model."""
    from countermove.scores.adopted._lightgbm import read_text

    booster = getattr(model, "booster_", model)
    parsed, names, categories = read_text(booster.model_to_string())
    return _turned(parsed, place), names, categories


def _turned(parsed: ParsedTrees, place: int) -> ParsedTrees:
    return parsed if place == 1 else parsed.turned()


def _own(model: Any, place: int) -> Any:
    def probabilities(table: Any) -> Floats:
        if hasattr(model, "predict_proba"):
            found: Floats = np.asarray(model.predict_proba(table), np.float64)[:, place]
            return found
        one = np.asarray(model.predict(table), np.float64)
        return one if place == 1 else 1.0 - one

    return probabilities


def _body(
    parsed: ParsedTrees,
    names: list[str],
    categories: list[list[Any]],
    background: Any,
    columns: Any,
    labels: Labels,
    source: str,
    own: Any,
) -> AdoptedBody:
    """Return the body of a booster; columns that pandas holds as categories become one-hot."""
    n = len(names)
    made_up = names == [f"Column_{j}" for j in range(n)] or names == [f"f{j}" for j in range(n)]
    made_up |= names == [str(j) for j in range(n)]
    known, named = names_of(None if made_up else names, background, columns, n)
    if not categories:
        return tree_body(parsed, plain(n), TableColumns(known, named=named), labels, source, own)
    held = [name for name in known if str(getattr(background[name], "dtype", "")) == "category"]
    if len(held) != len(categories):
        raise ModelFileError(
            f"the model has {len(categories)} columns of categories, the background {len(held)}; "
            "give it with the dtypes the model was trained on"
        )
    by_name = {name: tuple(values) for name, values in zip(held, categories, strict=True)}
    table = TableColumns(known, by_name, open_categories=frozenset(held), named=named)
    features: list[Feature] = []
    for name in known:
        places = table.places(name)
        if name in by_name:
            codes = np.arange(len(places), dtype=np.float64)
            features.append(CodeFeature(places, codes, np.array([np.nan])))
        else:
            features.append(NumberFeature(places[0]))
    return tree_body(parsed, features, table, labels, source, _as_categories(own, by_name))


def _as_categories(own: Any, categories: dict[str, tuple[Any, ...]]) -> Any:
    """Return a function that gives the model its categories back as pandas holds them."""
    if own is None:
        return None
    import pandas as pd

    def probabilities(table: Any) -> Floats:
        typed = {
            name: pd.Categorical(table[name], list(known)) for name, known in categories.items()
        }
        found: Floats = own(table.assign(**typed))
        return found

    return probabilities
