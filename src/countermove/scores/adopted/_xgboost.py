"""XGBoost's JSON, read without the library.

Values and thresholds are float32; ``value < threshold`` goes left.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from countermove.errors import ModelFileError
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.trees import largest_double

MOST_CODES = 2**16
"""Categories of a column."""


def read_model(said: dict[str, Any], most_columns: int) -> tuple[ParsedTrees, list[str]]:
    """Return the trees and the columns' names of a model that reads at most so many columns.

    What the file says twice must agree: counts of trees, nodes and columns, parents and children.
    """
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
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    n = int(learner["learner_model_param"]["num_feature"])
    if not 0 < n <= most_columns:
        raise ModelFileError(
            f"the XGBoost model reads {n} columns, the background has {most_columns}; give the "
            "rows the model was trained on"
        )
    base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
    sure = objective != "binary:logitraw"
    if not (0.0 < base < 1.0 if sure else np.isfinite(base)):
        raise _damaged(f"its base_score is {base}")
    parsed = ParsedTrees(offset=float(np.log(base) - np.log1p(-base)) if sure else base)
    _add_trees(parsed, learner, model, booster.get("weight_drop"))
    names = [str(name) for name in learner.get("feature_names") or [f"f{j}" for j in range(n)]]
    if len(names) != n or len(set(names)) < n:
        raise _damaged(f"it names {len(set(names))} columns and reads {n}")
    return parsed, names


def _add_trees(
    parsed: ParsedTrees, learner: dict[str, Any], model: dict[str, Any], weights: Any
) -> None:
    """Add the trees that predict, each with its weight, after holding all against the counts."""
    n = int(learner["learner_model_param"]["num_feature"])
    trees = model["trees"]
    count = int(model["gbtree_model_param"]["num_trees"])
    if not count == len(trees) == len(model["tree_info"]) or not trees:
        raise _damaged(f"it says num_trees={count} and holds {len(trees)}")
    drops = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if drops.shape != (count,) or not np.isfinite(drops).all():
        raise _damaged(f"weight_drop should hold {count} finite numbers")
    used = _used(learner, model)
    for at, tree in enumerate(trees):
        if int(tree["id"]) != at or int(tree["tree_param"]["num_feature"]) != n:
            raise _damaged(f"tree {at} is numbered {tree['id']}, or reads other columns")
        if at < used:
            _add(parsed, tree, float(drops[at]), f"tree {at}")


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(
        f"the XGBoost model is damaged: {what}; copy the file again, or save the model again"
    )


def _used(learner: dict[str, Any], model: dict[str, Any]) -> int:
    """Return how many trees predict: where training stopped early, those up to the best one."""
    best = learner.get("attributes", {}).get("best_iteration")
    ends, count = model.get("iteration_indptr"), len(model["trees"])
    if ends is not None and (
        ends[0] != 0 or ends[-1] != count or any(b <= a for a, b in pairwise(ends))
    ):
        raise _damaged(f"iteration_indptr does not rise from 0 to {count}")
    if best is None or ends is None:
        return count
    if not 0 <= int(best) < len(ends) - 1:
        raise _damaged(f"its best_iteration is {best} of {len(ends) - 1}")
    return int(ends[int(best) + 1])


def _add(parsed: ParsedTrees, tree: dict[str, Any], weight: float, where: str) -> None:
    """Add one tree after holding its arrays against each other."""
    left, right, parents, feature, default = (
        _whole_numbers(tree, key, where)
        for key in ("left_children", "right_children", "parents", "split_indices", "default_left")
    )
    split = np.asarray(tree["split_conditions"], np.float32).astype(np.float64)
    if split.shape != left.shape or not np.isfinite(split).all():
        raise _damaged(f"{where} should hold {len(left)} finite numbers under 'split_conditions'")
    if not np.isin(default, (0, 1)).all():
        raise _damaged(f"default_left of {where} holds other values than 0 and 1")
    _check_tree(tree, left, right, parents, where)
    if not (feature[left >= 0] < int(tree["tree_param"]["num_feature"])).all():
        raise _damaged(f"{where} splits a column that the model does not read")
    codes, missing = _categories(tree, left, where), default.astype(bool)
    for node in codes:
        # XGBoost sends the categories of a set to the right.
        left[node], right[node], missing[node] = right[node], left[node], not missing[node]
    parsed.add(
        feature,
        largest_double(split, strict=True),
        left,
        right,
        missing,
        np.where(left < 0, weight * split, 0.0),
        codes,
    )


def _whole_numbers(tree: dict[str, Any], key: str, where: str) -> np.ndarray:
    """Return an array of a tree: one whole number per node."""
    numbers, n = np.asarray(tree[key]), int(tree["tree_param"]["num_nodes"])
    if numbers.shape != (n,) or numbers.dtype.kind not in "iub" or numbers.min() < -1:
        raise _damaged(f"{where} should hold {n} whole numbers under {key!r}")
    return numbers.astype(np.int64)


def _check_tree(
    tree: dict[str, Any], left: np.ndarray, right: np.ndarray, parents: np.ndarray, where: str
) -> None:
    """Refuse nodes that are no tree: all but the root and deleted ones hang below their parent."""
    inner = np.flatnonzero(left >= 0)
    children = np.concatenate([left[inner], right[inner]])
    deleted = int(tree["tree_param"].get("num_deleted", 0))
    if not (
        np.array_equal(left >= 0, right >= 0)
        and (children < len(left)).all()
        and len(set(children.tolist())) == len(children) == len(left) - 1 - deleted
        and (parents[children] == np.concatenate([inner, inner])).all()
        and (children > np.concatenate([inner, inner])).all()
    ):
        raise _damaged(f"the nodes of {where} are no tree: parents and children differ")


def _categories(tree: dict[str, Any], left: np.ndarray, where: str) -> dict[int, tuple[int, ...]]:
    """Return the codes of each node that asks for a set of them."""
    nodes, starts, sizes, held = (
        np.asarray(tree.get(f"categories{key}", []), np.int64)
        for key in ("_nodes", "_segments", "_sizes", "")
    )
    asks = np.asarray(tree.get("split_type", np.zeros(len(left))), np.int64)
    ends = np.cumsum(sizes)
    if not (
        asks.shape == left.shape
        and np.array_equal(nodes, np.flatnonzero((asks == 1) & (left >= 0)))
        and np.array_equal(starts, ends - sizes)
        and ends[-1:].sum() == len(held)
        and ((held >= 0) & (held < MOST_CODES)).all()
    ):
        raise _damaged(f"the categories of {where} are not those its nodes ask for")
    sets = [tuple(part.tolist()) for part in np.split(held, ends[:-1])]
    return dict(zip(nodes.tolist(), sets, strict=False))
