"""LightGBM's text format, read without the library.

``x <= threshold`` in doubles goes left; a node's decision type says how NaN and categories go.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from countermove.errors import ModelFileError, shown
from countermove.scores._links import Link
from countermove.scores.adopted._parsed import ParsedTrees

CATEGORICAL, DEFAULT_LEFT = 1, 2
NO_MISSING, ZERO, NAN = 0, 1, 2


def read_text(text: str) -> tuple[ParsedTrees, list[str], list[list[Any]]]:
    """Return the trees, the columns' names, and the categories of pandas columns.

    What the file says twice must agree: sizes and counts, names, end marks, settings.
    """
    head, trees, tail = _parts(text)
    names = head["feature_names"].split()
    link = _link(head)
    _check_head(head, names, tail)
    parsed = ParsedTrees(link=link)
    for at, part in enumerate(trees):
        _add(parsed, _entries(part, f"tree {at}"), len(names), f"tree {at}")
    if "average_output" in head:
        if link.kind != "log_odds":
            raise ModelFileError("a LightGBM forest of an objective other than binary is not read")
        parsed.value = [value / len(parsed.root) for value in parsed.value]
    return parsed, names, _pandas_categories(tail)


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(
        f"the LightGBM text is damaged: {what}; copy the file again, or save the model again"
    )


def _parts(text: str) -> tuple[dict[str, str], list[str], str]:
    """Return the header, the text of each tree, and what follows them."""
    first, end = text.find("\nTree=0\n") + 1, text.find("\nend of trees\n") + 1
    if not 0 < first < end or "\nend of parameters\n" not in text[end:]:
        raise _damaged(
            "it lacks its first tree, or one of its lines `end of trees` and `end of parameters`"
        )
    head = _entries(text[:first], "the header")
    lacking = [key for key in ("feature_names", "max_feature_idx", "tree_sizes") if key not in head]
    if lacking:
        raise _damaged(f"the header lacks {shown(lacking)}")
    ends = np.cumsum([first, *(int(size) for size in head["tree_sizes"].split())]).tolist()
    trees = [text[start:stop] for start, stop in pairwise(ends)]
    if ends[-1] != end or not all(
        part.startswith(f"Tree={at}\n") and part.endswith("\n\n") for at, part in enumerate(trees)
    ):
        raise _damaged("its trees are not of the number and the sizes that its header says")
    return head, trees, text[end:]


def _entries(part: str, where: str) -> dict[str, str]:
    """Return the lines ``key=value``; a line without a value stands for itself."""
    found: dict[str, str] = {}
    for line in part.splitlines():
        key, _, value = line.partition("=")
        if key and key in found:
            raise _damaged(f"{where} says {key!r} twice")
        found[key] = value
    return found


def _check_head(head: dict[str, str], names: list[str], tail: str) -> None:
    """Hold the header against itself and against the settings behind the trees."""
    if len(names) != int(head["max_feature_idx"]) + 1 or len(set(names)) < len(names):
        raise _damaged(
            f"it names {len(set(names))} columns and reads {int(head['max_feature_idx']) + 1}"
        )
    lines = (line.strip("[]").partition(": ") for line in tail.splitlines() if line[:1] == "[")
    settings = {key: value for key, _, value in lines}
    objective, *words = head.get("objective", "").split() or [""]
    factors = [word.removeprefix("sigmoid:") for word in words if word.startswith("sigmoid:")]
    said = [objective, "average_output" in head, [float(factor) for factor in factors]]
    meant = [settings.get("objective", objective), settings.get("boosting") == "rf"]
    meant += [[float(settings.get("sigmoid", "1"))] if objective == "binary" else said[2]]
    if said != meant or head.get("num_tree_per_iteration", "1") != "1":
        raise _damaged("its header (objective, average_output) and its parameters differ")


def _link(head: dict[str, str]) -> Link:
    classes = int(head.get("num_class", "1"))
    objective = head.get("objective", "").split()
    if classes > 1:
        raise ModelFileError(
            f"the LightGBM model tells {classes} classes apart; a rule decides between two. Train "
            "it on the favourable label against the rest"
        )
    name = objective[0] if objective else "none"
    if name not in ("binary", "cross_entropy", "xentropy"):
        raise ModelFileError(
            f"the LightGBM model's objective is {name!r}, which gives no probability of a class; "
            "a classifier has objective=binary"
        )
    factor = 1.0
    for word in objective[1:]:
        if word.startswith("sigmoid:"):
            factor = float(word.removeprefix("sigmoid:"))
    return Link() if factor == 1.0 else Link("sigmoid", a=-factor)


def _pandas_categories(tail: str) -> list[list[Any]]:
    for line in reversed(tail.splitlines()):
        if line.startswith("pandas_categorical:"):
            found = json.loads(line.removeprefix("pandas_categorical:")) or []
            if not (isinstance(found, list) and all(isinstance(each, list) for each in found)):
                raise _damaged("its line pandas_categorical holds no lists")
            return found
    return []


def _numbers(entries: dict[str, str], key: str, kind: type, n: int, where: str) -> np.ndarray:
    """Return the numbers of a line: as many as there should be, all of them finite."""
    numbers: np.ndarray = np.array(entries.get(key, "").split(), kind)
    if len(numbers) != n or not np.isfinite(numbers).all():
        raise _damaged(f"{where} should hold {n} finite numbers under {key!r}")
    return numbers


def _add(parsed: ParsedTrees, entries: dict[str, str], n_columns: int, where: str) -> None:
    """Add one tree: inner nodes first, then its leaves."""
    if entries.get("is_linear", "0") == "1":
        raise ModelFileError("LightGBM trees with linear leaves (linear_tree) are not read")
    leaves = int(entries["num_leaves"])
    inner = leaves - 1
    values = _numbers(entries, "leaf_value", float, leaves, where)
    if inner == 0:
        parsed.add([0], [0.0], [-1], [-1], [False], values)
        return
    kinds, feature, left, right = (
        _numbers(entries, name, int, inner, where)
        for name in ("decision_type", "split_feature", "left_child", "right_child")
    )
    split = _numbers(entries, "threshold", float, inner, where)
    left, right = _children(left, inner), _children(right, inner)
    # Every node and leaf but the root hangs below one node, which stands before it.
    below = np.arange(inner) < np.minimum(left, right)
    whole = np.array_equal(np.sort([*left, *right]), np.arange(1, inner + leaves))
    if not (whole and below.all() and ((feature >= 0) & (feature < n_columns)).all()):
        raise _damaged(f"the nodes of {where} are no tree of {leaves} leaves and known columns")
    missing, codes = np.zeros(inner, bool), _code_sets(entries, kinds, split, where)
    for node in range(inner):
        if node in codes:
            continue
        how = (kinds[node] >> 2) & 3
        if how == ZERO:
            raise ModelFileError(
                "LightGBM trees that take zeros for missing values (zero_as_missing) are not read"
            )
        # Without a place of its own a missing value counts as zero.
        missing[node] = bool(kinds[node] & DEFAULT_LEFT) if how == NAN else split[node] >= 0.0
    parsed.add(
        np.append(feature, np.zeros(leaves, int)),
        np.append(split, np.zeros(leaves)),
        np.append(left, np.full(leaves, -1)),
        np.append(right, np.full(leaves, -1)),
        np.append(missing, np.zeros(leaves, bool)),
        np.append(np.zeros(inner), values),
        codes,
    )


def _code_sets(
    entries: dict[str, str], kinds: np.ndarray, split: np.ndarray, where: str
) -> dict[int, tuple[int, ...]]:
    """Return the codes that go left, by node that asks for a set of them."""
    nodes = np.flatnonzero(kinds & CATEGORICAL)
    n_sets = int(entries["num_cat"])
    if n_sets != len(nodes) or not np.array_equal(np.sort(split[nodes]), np.arange(n_sets)):
        raise _damaged(f"{where} says num_cat={n_sets} and asks {len(nodes)} times for codes")
    if not n_sets:
        return {}
    bounds = _numbers(entries, "cat_boundaries", int, n_sets + 1, where)
    words = _numbers(entries, "cat_threshold", int, int(bounds[-1]), where)
    if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise _damaged(f"the cat_boundaries of {where} do not rise from 0")
    sets = [_codes(words[start:stop]) for start, stop in pairwise(bounds.tolist())]
    return {int(node): sets[int(split[node])] for node in nodes}


def _children(child: np.ndarray, inner: int) -> np.ndarray:
    """Return positions: a negative child is the leaf of its bits turned over."""
    return np.where(child < 0, inner + ~child, child)


def _codes(words: np.ndarray) -> tuple[int, ...]:
    bits = (int(word) >> bit & 1 for word in words for bit in range(32))
    return tuple(code for code, bit in enumerate(bits) if bit)
