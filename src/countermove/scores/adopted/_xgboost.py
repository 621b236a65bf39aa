"""XGBoost's JSON and UBJSON, read without the library.

Values and thresholds are float32; ``value < threshold`` goes left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from countermove.errors import ModelFileError
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.trees import largest_double


def read_model(said: dict[str, Any]) -> tuple[ParsedTrees, list[str]]:
    """Return the trees and the columns' names of a model."""
    learner = said["learner"]
    objective = learner["objective"]["name"]
    if objective not in ("binary:logistic", "binary:logitraw", "reg:logistic"):
        raise ModelFileError(
            f"the XGBoost model's objective is {objective!r}; a rule that decides between two "
            "labels has binary:logistic"
        )
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise ModelFileError(
            f"XGBoost's booster {booster['name']!r} is not read; gbtree and dart are"
        )
    weights = booster.get("weight_drop")
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
    parsed = ParsedTrees(
        offset=float(np.log(base) - np.log1p(-base)) if objective != "binary:logitraw" else base
    )
    trees = model["trees"][: _used(learner, model)]
    for at, tree in enumerate(trees):
        _add(parsed, tree, 1.0 if weights is None else float(weights[at]))
    n = int(learner["learner_model_param"]["num_feature"])
    names = list(learner.get("feature_names") or [f"f{j}" for j in range(n)])
    return parsed, names


def _used(learner: dict[str, Any], model: dict[str, Any]) -> int:
    """Return how many trees predict: where training stopped early, those up to the best one."""
    best = learner.get("attributes", {}).get("best_iteration")
    ends = model.get("iteration_indptr")
    if best is None or ends is None:
        return len(model["trees"])
    return int(ends[int(best) + 1])


def _add(parsed: ParsedTrees, tree: dict[str, Any], weight: float) -> None:
    left = np.asarray(tree["left_children"], np.int64)
    split = np.asarray(tree["split_conditions"], np.float32).astype(np.float64)
    codes = _categories(tree)
    for node in codes:
        # XGBoost sends the categories of a set to the right.
        tree["left_children"][node], tree["right_children"][node] = (
            tree["right_children"][node],
            tree["left_children"][node],
        )
    missing = np.asarray(tree["default_left"], bool).copy()
    missing[list(codes)] = ~missing[list(codes)]
    parsed.add(
        np.asarray(tree["split_indices"], np.int64),
        largest_double(split, strict=True),
        np.asarray(tree["left_children"], np.int64),
        np.asarray(tree["right_children"], np.int64),
        missing,
        np.where(left < 0, weight * split, 0.0),
        codes,
    )


def _categories(tree: dict[str, Any]) -> dict[int, tuple[int, ...]]:
    found = {}
    parts = zip(
        tree.get("categories_nodes", []),
        tree.get("categories_segments", []),
        tree.get("categories_sizes", []),
        strict=True,
    )
    for node, start, size in parts:
        found[int(node)] = tuple(int(code) for code in tree["categories"][start : start + size])
    return found
