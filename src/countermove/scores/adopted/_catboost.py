"""CatBoost's JSON, read without the library: oblivious trees over numbers.

A whole level asks one question, ``value > border`` in float32; the first is the lowest bit of the
leaf's place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from countermove.errors import ModelFileError
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.trees import largest_double


def read_model(said: dict[str, Any]) -> tuple[ParsedTrees, list[str]]:
    """Return the trees and the columns' names of a model."""
    if "oblivious_trees" not in said:
        raise ModelFileError(
            "the CatBoost model's trees are not symmetric (grow_policy); only SymmetricTree is read"
        )
    info = said["features_info"]
    if info.get("categorical_features") or info.get("text_features"):
        raise ModelFileError(
            "the CatBoost model reads categories or texts by statistics of its training labels, "
            "which are not read; adopt(model.predict_proba, ...) takes it as a black box"
        )
    scale, bias = said.get("scale_and_bias", [1.0, [0.0]])
    bias = bias[0] if isinstance(bias, list) else bias
    features = {int(one["feature_index"]): one for one in info["float_features"]}
    parsed = ParsedTrees(offset=float(bias))
    for tree in said["oblivious_trees"]:
        if len(tree["leaf_values"]) != 2 ** len(tree["splits"] or []):
            raise ModelFileError("the CatBoost model tells more than two classes apart")
        _add(parsed, tree, features, float(scale))
    names = [""] * len(features)
    for one in features.values():
        at = int(one["flat_feature_index"])
        names[at] = str(one.get("feature_id") or one.get("feature_name") or at)
    return parsed, names


def _add(
    parsed: ParsedTrees, tree: dict[str, Any], features: dict[int, dict[str, Any]], scale: float
) -> None:
    """Add an oblivious tree as the full tree it stands for, from the last question down."""
    splits = tree["splits"] or []
    depth = len(splits)
    feature, left, right = list[int](), list[int](), list[int]()
    split, missing, value = list[float](), list[bool](), list[float]()
    values = np.asarray(tree["leaf_values"], np.float64)

    def grow(level: int, place: int) -> int:
        node = len(feature)
        feature.append(0)
        split.append(0.0)
        left.append(-1)
        right.append(-1)
        missing.append(False)
        value.append(0.0)
        if level < 0:
            value[node] = scale * float(values[place])
            return node
        question = splits[level]
        if question.get("split_type", "FloatFeature") != "FloatFeature":
            raise ModelFileError(f"CatBoost splits of type {question['split_type']!r} are not read")
        about = features[int(question["float_feature_index"])]
        feature[node] = int(about["flat_feature_index"])
        split[node] = float(largest_double(np.array([np.float32(question["border"])]))[0])
        missing[node] = about.get("nan_value_treatment", "AsIs") != "AsTrue"
        left[node] = grow(level - 1, place)
        right[node] = grow(level - 1, place | 1 << level)
        return node

    grow(depth - 1, 0)
    parsed.add(feature, split, left, right, missing, value)
