"""scikit-learn's trees: single, forests, boosted, and boosted on histograms.

The first three compare in float32 with thresholds in double precision, the last in doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.scores._links import Link
from countermove.scores.adopted._features import NumberFeature
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.trees import TreeEnsemble, largest_double


def trees_of(model: Any, place: int) -> ParsedTrees | None:
    """Return the trees of an estimator for the class at ``place``; None of anything else."""
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.tree import DecisionTreeClassifier

    if isinstance(model, DecisionTreeClassifier):
        return _forest([model], place)
    if isinstance(model, RandomForestClassifier | ExtraTreesClassifier):
        return _forest(model.estimators_, place)
    if isinstance(model, GradientBoostingClassifier):
        return _boosted(model, 1.0 if place == 1 else -1.0)
    if isinstance(model, HistGradientBoostingClassifier):
        return _histograms(model, 1.0 if place == 1 else -1.0)
    return None


def _forest(estimators: list[Any], place: int) -> ParsedTrees:
    """Return trees whose leaves are probabilities, to be averaged."""
    parsed = ParsedTrees(link=Link("probability", a=float(len(estimators))))
    for estimator in estimators:
        tree = estimator.tree_
        counts = tree.value[:, 0, :]
        _add_tree(parsed, tree, counts[:, place] / counts.sum(axis=1))
    return parsed


def _add_tree(parsed: ParsedTrees, tree: Any, value: Floats) -> None:
    parsed.add(
        tree.feature,
        largest_double(tree.threshold),
        tree.children_left,
        tree.children_right,
        tree.missing_go_to_left.astype(bool),
        value,
    )


def _boosted(model: Any, sign: float) -> ParsedTrees:
    if model.init_ == "zero":
        start = 0.0
    elif type(model.init_).__name__ == "DummyClassifier" and model.init_.strategy == "prior":
        start = float(
            model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))[0, 0]
        )
    else:
        raise ParameterError(
            f"the boosted trees start from a model of their own ({model.init_!r}), so they are no "
            "sum of trees; adopt(model.predict_proba, ...) takes it as a black box"
        )
    # The exponential loss halves the log-odds.
    link = Link("sigmoid", a=-2.0) if model.loss == "exponential" else Link()
    parsed = ParsedTrees(offset=sign * start, link=link)
    for estimator in model.estimators_[:, 0]:
        tree = estimator.tree_
        _add_tree(parsed, tree, sign * model.learning_rate * tree.value[:, 0, 0])
    return parsed


def boosted_ensemble(models: Sequence[Any], n_columns: int) -> TreeEnsemble:
    """Return the sum of models boosted on histograms of plain numbers, one after the other."""
    parsed = ParsedTrees()
    for model in models:
        _histograms(model, 1.0, parsed)
    return parsed.of_columns([NumberFeature(j) for j in range(n_columns)], n_columns)


def _histograms(model: Any, sign: float, parsed: ParsedTrees | None = None) -> ParsedTrees:
    parsed = ParsedTrees() if parsed is None else parsed
    parsed.offset += sign * float(np.ravel(model._baseline_prediction)[0])
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        codes = {
            int(node): _codes(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
        }
        for node in codes:  # what training never saw goes where missing values go
            if nodes["missing_go_to_left"][node]:
                known = _known_codes(model, int(nodes["feature_idx"][node]))
                codes[node] += tuple(code for code in range(256) if code not in known)
        parsed.add(
            nodes["feature_idx"].astype(np.int64),
            nodes["num_threshold"],
            np.where(leaf, -1, nodes["left"].astype(np.int64)),
            np.where(leaf, -1, nodes["right"].astype(np.int64)),
            nodes["missing_go_to_left"].astype(bool),
            sign * nodes["value"],
            codes,
        )
    return parsed


def _known_codes(model: Any, feature: int) -> set[int]:
    """Return the codes of a column of categories that training saw."""
    categories = model._bin_mapper.bin_thresholds_[feature]
    return {int(code) for code in categories}


def _codes(words: Any) -> tuple[int, ...]:
    bits = (int(word) >> bit & 1 for word in words for bit in range(32))
    return tuple(code for code, bit in enumerate(bits) if bit)
