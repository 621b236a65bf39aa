"""LightGBM's text format, read without the library.

``x <= threshold`` in doubles goes left; a node's decision type says how NaN and categories go.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from countermove.errors import ModelFileError
from countermove.scores._links import Link
from countermove.scores.adopted._parsed import ParsedTrees

CATEGORICAL, DEFAULT_LEFT = 1, 2
NO_MISSING, ZERO, NAN = 0, 1, 2


def read_text(text: str) -> tuple[ParsedTrees, list[str], list[list[Any]]]:
    """Return the trees, the columns' names, and the categories of pandas columns."""
    parts = text.split("\nTree=")
    head = _entries(parts[0])
    link = _link(head)
    parsed = ParsedTrees(link=link)
    for part in parts[1:]:
        _add(parsed, _entries(part.split("\nend of trees")[0]))
    if "average_output" in parts[0].splitlines():
        if link.kind != "log_odds":
            raise ModelFileError("a LightGBM forest of an objective other than binary is not read")
        parsed.value = [value / len(parsed.root) for value in parsed.value]
    names = head.get("feature_names", "").split()
    return parsed, names, _pandas_categories(text)


def _entries(part: str) -> dict[str, str]:
    lines = (line.split("=", 1) for line in part.splitlines() if "=" in line)
    return dict(lines)


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


def _pandas_categories(text: str) -> list[list[Any]]:
    for line in reversed(text.splitlines()):
        if line.startswith("pandas_categorical:"):
            found = json.loads(line.removeprefix("pandas_categorical:"))
            return found or []
    return []


def _numbers(entries: dict[str, str], key: str, kind: type) -> np.ndarray:
    return np.array(entries.get(key, "").split(), kind)


def _add(parsed: ParsedTrees, entries: dict[str, str]) -> None:
    """Add one tree: inner nodes first, then its leaves."""
    if entries.get("is_linear", "0") == "1":
        raise ModelFileError("LightGBM trees with linear leaves (linear_tree) are not read")
    values = _numbers(entries, "leaf_value", float)
    inner = int(entries["num_leaves"]) - 1
    if inner == 0:
        parsed.add([0], [0.0], [-1], [-1], [False], values[:1])
        return
    kinds = _numbers(entries, "decision_type", int)
    split = _numbers(entries, "threshold", float)
    feature = _numbers(entries, "split_feature", int)
    missing, codes = np.zeros(inner, bool), dict[int, tuple[int, ...]]()
    bounds, words = (_numbers(entries, f"cat_{name}", int) for name in ("boundaries", "threshold"))
    for node in range(inner):
        if kinds[node] & CATEGORICAL:
            at = int(split[node])
            codes[node] = _codes(words[bounds[at] : bounds[at + 1]])
            continue
        how = (kinds[node] >> 2) & 3
        if how == ZERO:
            raise ModelFileError(
                "LightGBM trees that take zeros for missing values (zero_as_missing) are not read"
            )
        # Without a place of its own a missing value counts as zero.
        missing[node] = bool(kinds[node] & DEFAULT_LEFT) if how == NAN else split[node] >= 0.0
    left, right = (
        _children(_numbers(entries, name, int), inner) for name in ("left_child", "right_child")
    )
    leaves = len(values)
    parsed.add(
        np.append(feature, np.zeros(leaves, int)),
        np.append(split, np.zeros(leaves)),
        np.append(left, np.full(leaves, -1)),
        np.append(right, np.full(leaves, -1)),
        np.append(missing, np.zeros(leaves, bool)),
        np.append(np.zeros(inner), values),
        codes,
    )


def _children(child: np.ndarray, inner: int) -> np.ndarray:
    """Return positions: a negative child is the leaf of its bits turned over."""
    return np.where(child < 0, inner + ~child, child)


def _codes(words: np.ndarray) -> tuple[int, ...]:
    bits = (int(word) >> bit & 1 for word in words for bit in range(32))
    return tuple(code for code, bit in enumerate(bits) if bit)
