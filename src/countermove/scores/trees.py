"""Sums of decision trees: parsed once, evaluated in the model's own order.

Every split is brought to "at most a double goes left", whatever the library compares in (float32,
strictly, after scaling), so that each row falls into the leaf it falls into in the model itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import ModelFileError
from countermove.scores._links import Link
from countermove.scores.base import Score, rise_over_unit

Integers = NDArray[np.int64]
NUMBER = -1
"""Of a node that compares a number; others ask whether a code is in a set."""
OF_NODES = ("feature", "split", "left", "right", "missing_left", "value", "root")
"""The arrays of a `TreeEnsemble`, as they are stored."""
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
CLEAR = 1e-9
"""Standard deviations between 0 and a split at 0."""


def jit(function: Any) -> Any:
    """Compile a row kernel, as `countermove.response` does."""
    return numba.njit(cache=True, error_model="numpy", nogil=True)(function)


class TreeArrays(NamedTuple):
    """Trees as the kernels read them; a node whose left child is -1 is a leaf."""

    feature: Integers  # (nodes,) the column compared, or the coded thing asked about
    split: Floats  # (nodes,) at most this goes left
    left: Integers
    right: Integers
    missing_left: NDArray[np.bool_]
    words: Integers  # (nodes,) first word of the codes that go left; NUMBER where none
    value: Floats  # (nodes,) of a leaf
    root: Integers  # (trees,)
    sets: NDArray[np.uint64]  # the words: bit c % 64 of word c // 64 is code c
    n_words: Integers  # (nodes,)
    coded: Integers  # (things, width) columns of each coded thing, padded with -1
    mean: Floats  # (d,) rows are (x - mean) / scale
    scale: Floats


@jit
def code_of(trees, thing, row):  # type: ignore[no-untyped-def]
    """Return a thing's code: which of its columns is on, or the value of its one column; or -1."""
    if trees.coded.shape[1] == 1 or trees.coded[thing, 1] < 0:
        j = trees.coded[thing, 0]
        x = row[j] * trees.scale[j] + trees.mean[j]
        if np.isnan(x) or x <= -1.0 + 1e-9 or x > 2e9:
            return -1
        return int(np.floor(x + 1e-9))
    for k in range(trees.coded.shape[1]):
        j = trees.coded[thing, k]
        if j >= 0 and row[j] * trees.scale[j] + trees.mean[j] > 0.5:
            return k
    return -1


@jit
def in_set(trees, node, code):  # type: ignore[no-untyped-def]
    """Return whether a node sends a code to the left."""
    if code < 0 or code >= 64 * trees.n_words[node]:
        return False
    word = trees.sets[trees.words[node] + code // 64]
    return (word >> np.uint64(code % 64)) & np.uint64(1) == np.uint64(1)


@jit
def leaf_of(trees, tree, row):  # type: ignore[no-untyped-def]
    """Return the leaf of one tree into which a row falls."""
    node = trees.root[tree]
    while trees.left[node] >= 0:
        if trees.words[node] >= 0:
            code = code_of(trees, trees.feature[node], row)
            goes = trees.missing_left[node] if code < 0 else in_set(trees, node, code)
        else:
            x = row[trees.feature[node]]
            goes = trees.missing_left[node] if np.isnan(x) else x <= trees.split[node]
        node = trees.left[node] if goes else trees.right[node]
    return node


@jit
def raw_scores(trees, offset, X, out):  # type: ignore[no-untyped-def]
    """Write the sum of everybody's leaves, in the order of the trees."""
    for i in range(X.shape[0]):
        total = offset
        for tree in range(trees.root.size):
            total += trees.value[leaf_of(trees, tree, X[i])]
        out[i] = total


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """Trees of the columns people move in, in original units.

    Parameters
    ----------
    feature, split, left, right, missing_left, value
        One entry per node. ``x <= split`` goes left; a leaf has ``left`` and ``right`` -1.
    root
        The first node of every tree, in the order in which the model adds them up.
    codes_left
        By node: the codes that go left, where a node asks for a set. ``feature`` is then the
        position in ``coded``.
    coded
        The columns of each thing that has a code: one column of codes, or a one-hot group.
    offset
        What the sum starts with.
    """

    n_features: int
    feature: Integers
    split: Floats
    left: Integers
    right: Integers
    missing_left: NDArray[np.bool_]
    value: Floats
    root: Integers
    codes_left: dict[int, tuple[int, ...]]
    coded: tuple[tuple[int, ...], ...] = ()
    offset: float = 0.0

    @property
    def n_trees(self) -> int:
        """How many trees are added up."""
        return len(self.root)

    @property
    def n_leaves(self) -> Integers:
        """Leaves per tree; nodes of a tree lie together."""
        ends = np.append(self.root[1:], len(self.left))
        found = [int((self.left[a:b] < 0).sum()) for a, b in zip(self.root, ends, strict=True)]
        return np.array(found, np.int64)

    def arrays(self, mean: Floats, scale: Floats) -> TreeArrays:
        """Return the trees of rows ``(x - mean) / scale``."""
        # Who is at most the split before standardising is so afterwards: the map is monotone, and
        # what rounding takes is granted. Splits at 0, such as LightGBM's at -1e-35 and 1e-35, keep
        # clear of it: whoever is 0, or moves there, is on the side they were on.
        plain = np.array([k not in self.codes_left for k in range(len(self.left))])
        column = np.where(plain & (self.left >= 0), self.feature, 0)
        m, s = mean[column], scale[column]
        split = (self.split - m) / s
        moved = (m != 0.0) | (s != 1.0)
        at_zero = np.abs(self.split) < ROUNDING * s
        clear = np.where(self.split < 0.0, -CLEAR, CLEAR) * (1.0 + np.abs(m) / s)
        granted = ROUNDING * (np.abs(self.split) + np.abs(m)) / s
        split = split + np.where(moved, np.where(at_zero, clear, granted), 0.0)
        words, counts, bits = self._words()
        width = max([1, *map(len, self.coded)])
        coded = np.full((len(self.coded), width), -1, np.int64)
        for at, columns in enumerate(self.coded):
            coded[at, : len(columns)] = columns
        return TreeArrays(
            self.feature, split, self.left, self.right, self.missing_left, words, self.value,
            self.root, bits, counts, coded, np.asarray(mean), np.asarray(scale),
        )  # fmt: skip

    def _words(self) -> tuple[Integers, Integers, NDArray[np.uint64]]:
        words = np.full(len(self.left), NUMBER, np.int64)
        counts = np.zeros(len(self.left), np.int64)
        bits: list[int] = []
        for node, codes in sorted(self.codes_left.items()):
            n = max(codes, default=0) // 64 + 1
            words[node], counts[node] = len(bits), n
            part = [0] * n
            for code in codes:
                part[code // 64] |= 1 << (code % 64)
            bits += part
        return words, counts, np.array(bits or [0], np.uint64)

    def renumbered(self, columns: Sequence[int], n_features: int) -> TreeEnsemble:
        """Return the trees of a wider table, in which column j stands at ``columns[j]``."""
        place = np.asarray(columns, np.int64)
        asks = np.isin(np.arange(len(self.left)), list(self.codes_left))
        feature = np.where(asks, self.feature, place[np.where(asks, 0, self.feature)])
        coded = tuple(tuple(place[list(thing)].tolist()) for thing in self.coded)
        return replace(self, n_features=n_features, feature=feature, coded=coded)

    def to_json(self) -> dict[str, Any]:
        """Return what the arrays ``OF_NODES`` do not say."""
        return {
            "n_features": self.n_features,
            "codes_left": {str(node): list(codes) for node, codes in self.codes_left.items()},
            "coded": [list(columns) for columns in self.coded],
            "offset": self.offset,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], nodes: Mapping[str, Any]) -> TreeEnsemble:
        """Return the trees of stored arrays and of what `to_json` said of them; refuse no trees."""
        ensemble = cls(
            said["n_features"],
            **{name: nodes[name] for name in OF_NODES},
            codes_left={int(node): tuple(codes) for node, codes in said["codes_left"].items()},
            coded=tuple(tuple(columns) for columns in said["coded"]),
            offset=said["offset"],
        )
        wrong = ensemble._faults()
        if wrong:
            raise ModelFileError(
                f"the stored trees are damaged: {'; '.join(wrong)}; restore the files or use "
                "another version"
            )
        return ensemble

    def _faults(self) -> list[str]:
        """Return what keeps the arrays from being trees whose every path ends in a number."""
        n = len(self.left)
        per_node = (self.feature, self.split, self.left, self.right, self.missing_left, self.value)
        if any(len(each) != n for each in per_node) or not len(self.root):
            return ["the arrays of their nodes have different lengths, or there is no tree"]
        inner = (self.left >= 0) | (self.right >= 0)
        asks = np.isin(np.arange(n), list(self.codes_left))
        children = np.concatenate([self.left[inner], self.right[inner]])
        both = np.concatenate([children, self.root])
        inside = bool(((both >= 0) & (both < n)).all())
        # Who has one parent, or is a root, lies on one path: no walk comes back to a node.
        known = np.where(asks, len(self.coded), self.n_features)
        columns = [column for thing in self.coded for column in thing]
        checks = {
            "a node has no child, two parents, or a child that is not stored": inside
            and bool((np.bincount(both, minlength=n) <= 1).all()),
            "a node asks for a column that there is not": bool(
                ((self.feature >= 0) & (self.feature < known))[inner].all()
            )
            and all(0 <= column < self.n_features for column in columns),
            "a node compares with no number": not np.isnan(self.split[inner & ~asks]).any(),
            "a leaf, or what the sum begins with, is no finite number": bool(
                np.isfinite(self.value[~inner]).all() and np.isfinite(self.offset)
            ),
        }
        return [fault for fault, right in checks.items() if not right]

    def used(self) -> NDArray[np.bool_]:
        """Return which columns some split reads, shape (d,)."""
        mask = np.zeros(self.n_features, bool)
        for node in np.flatnonzero(self.left >= 0).tolist():
            at = int(self.feature[node])
            mask[list(self.coded[at]) if node in self.codes_left else at] = True
        return mask


def largest_double(threshold: Floats, strict: bool = False) -> Floats:
    """Return the largest doubles that, rounded to float32, are at most (or below) a threshold."""
    found = np.asarray(threshold, np.float64)
    with np.errstate(over="ignore"):
        single = found.astype(np.float32)
        below = np.nextafter(single, np.float32(-np.inf))
        single = np.where((single > found) | (strict & (single == found)), below, single)
        above = np.nextafter(single, np.float32(np.inf))
    middle = 0.5 * (single.astype(np.float64) + above.astype(np.float64))
    # The middle itself is rounded to the even of its neighbours.
    with np.errstate(over="ignore"):
        nearer = middle.astype(np.float32) == single
    result: Floats = np.where(nearer, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(found) & np.isfinite(above) & np.isfinite(single), result, found)


class TreeScore(Score):
    r"""A sum of trees, brought to log-odds by a monotone link; it reads rows ``(x - m) / s``.

    Parameters
    ----------
    ensemble
        The trees, in original units.
    mean, scale
        Of the rows that are read; zeros and ones where they are in original units.
    link
        From the sum to log-odds.
    """

    kind: ClassVar[str] = "trees"
    differentiable: ClassVar[bool] = False

    def __init__(
        self,
        ensemble: TreeEnsemble,
        mean: Floats | Sequence[float] | None = None,
        scale: Floats | Sequence[float] | None = None,
        link: Link | None = None,
    ) -> None:
        super().__init__()
        d = ensemble.n_features
        self.ensemble = ensemble
        self.link = Link() if link is None else link
        self.mean = np.zeros(d) if mean is None else np.array(mean, np.float64)
        self.scale = np.ones(d) if scale is None else np.array(scale, np.float64)
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)
        self.arrays = ensemble.arrays(self.mean, self.scale)
        for name in OF_NODES:
            held = np.ascontiguousarray(getattr(ensemble, name))
            self.register_buffer(f"trees_{name}", torch.from_numpy(held))

    @classmethod
    def rebuilt(cls, arguments: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """Return the score of stored trees."""
        nodes = {name: weights[f"trees_{name}"].numpy() for name in OF_NODES}
        ensemble = TreeEnsemble.from_json(arguments["trees"], nodes)
        link = Link.from_json(arguments["link"])
        score = cls(ensemble, arguments["mean"], arguments["scale"], link)
        score.load_state_dict(dict(weights))
        return score

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same trees with an intercept of their own."""
        other = type(self)(self.ensemble, self.mean, self.scale, self.link)
        other.bias.data.copy_(self.bias.data)
        other.train(self.training)
        return other

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return self.ensemble.n_features

    def raw(self, X: Floats) -> Floats:
        """Return the sum of everybody's leaves, shape (n,), as the model adds them up."""
        out = np.empty(len(X))
        raw_scores(self.arrays, self.ensemble.offset, np.ascontiguousarray(X, np.float64), out)
        return out

    def raw_target(self, score: float) -> float:
        """Return the least sum of leaves with at least this score."""
        return self.link.least_raw(score - float(self.bias))

    def of_raw(self, raw: Floats) -> Floats:
        """Return the scores of sums of leaves."""
        return self.link.log_odds(raw) + float(self.bias)

    def forward(self, X: Tensor) -> Tensor:
        """Return the scores of the rows of ``X``; they have no gradient."""
        return torch.from_numpy(self.of_raw(self.raw(X.detach().numpy())))

    def slope(self) -> None:
        """Return None: trees are not affine in anything."""

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the score and, for want of a gradient, its rise over one unit around the row."""
        columns = np.flatnonzero(self.ensemble.used()).tolist()
        return self(X), rise_over_unit(self, X.detach(), columns)

    def of_columns(self, columns: Sequence[int], mean: Floats, scale: Floats) -> TreeScore:
        """Return the score of the standardised rows of a wider table.

        Parameters
        ----------
        columns
            Where the table has the columns that this score reads in original units.
        mean, scale
            Of the table's columns.
        """
        wide = self.ensemble.renumbered(columns, len(mean))
        return TreeScore(wide, mean, scale, self.link)

    def before_standardising(self, mean: Floats, scale: Floats) -> TreeScore:
        """Return the same trees as a score of the rows ``x`` of which this one reads z."""
        unit = self.scale / scale
        other = TreeScore(self.ensemble, self.mean - mean * unit, unit, self.link)
        other.bias.data.copy_(self.bias.data)
        return other

    def describe(self) -> dict[str, Any]:
        """Return what rebuilds the score, its nodes apart."""
        return {
            "trees": self.ensemble.to_json(),
            "link": self.link.to_json(),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }
