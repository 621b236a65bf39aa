"""Parsed trees as the readers of each library hand them over, before columns are people's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from countermove._types import Floats
from countermove.scores._links import Link
from countermove.scores.adopted._features import (
    CodeFeature,
    Feature,
    MixedFeature,
    NumberFeature,
)
from countermove.scores.trees import Integers, TreeEnsemble


@dataclass
class ParsedTrees:
    """Trees of the columns the model itself reads; ``x <= split`` goes left, as doubles."""

    offset: float = 0.0
    link: Link = field(default_factory=Link)
    feature: list[Integers] = field(default_factory=list)
    split: list[Floats] = field(default_factory=list)
    left: list[Integers] = field(default_factory=list)
    right: list[Integers] = field(default_factory=list)
    missing_left: list[np.ndarray] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    codes_left: dict[int, tuple[int, ...]] = field(default_factory=dict)
    root: list[int] = field(default_factory=list)
    n_nodes: int = 0

    def add(
        self,
        feature: Sequence[int] | Integers,
        split: Sequence[float] | Floats,
        left: Sequence[int] | Integers,
        right: Sequence[int] | Integers,
        missing_left: Sequence[bool] | np.ndarray,
        value: Sequence[float] | Floats,
        codes_left: dict[int, tuple[int, ...]] | None = None,
    ) -> None:
        """Add one tree; children are positions in it, -1 below a leaf."""
        at = self.n_nodes
        down = np.asarray(left, np.int64)
        self.root.append(at)
        self.feature.append(np.where(down < 0, 0, np.asarray(feature, np.int64)))
        self.split.append(np.where(down < 0, 0.0, np.asarray(split, np.float64)))
        self.left.append(np.where(down < 0, -1, down + at))
        self.right.append(np.where(down < 0, -1, np.asarray(right, np.int64) + at))
        self.missing_left.append(np.asarray(missing_left, bool))
        self.value.append(np.where(down < 0, np.asarray(value, np.float64), 0.0))
        for node, codes in (codes_left or {}).items():
            self.codes_left[node + at] = codes
        self.n_nodes += len(down)

    def turned(self) -> ParsedTrees:
        """Return the trees of the other label: log-odds with their sign turned."""
        return replace(self, offset=-self.offset, value=[-value for value in self.value])

    def of_columns(self, features: Sequence[Feature], n_columns: int) -> TreeEnsemble:
        """Return the trees of people's own columns, given what each model column is made of."""
        feature, split, left, right, missing = (
            np.concatenate(part)
            for part in (self.feature, self.split, self.left, self.right, self.missing_left)
        )
        codes, coded = dict(self.codes_left), list[tuple[int, ...]]()
        for node in np.flatnonzero(left >= 0).tolist():
            made = features[int(feature[node])]
            if isinstance(made, NumberFeature) and node not in self.codes_left:
                feature[node] = made.column
                split[node] = made.largest(float(split[node]))
                if not made.rising:
                    left[node], right[node] = right[node], left[node]
                    missing[node] = not missing[node]
                continue
            assert not isinstance(made, MixedFeature)  # no node splits on a mix
            columns = (made.column,) if isinstance(made, NumberFeature) else made.columns
            if columns not in coded:
                coded.append(columns)
            feature[node] = coded.index(columns)
            if isinstance(made, CodeFeature):
                goes = self._left(node, float(split[node]), made.values)
                codes[node] = tuple(np.flatnonzero(goes).tolist())
                if not np.isnan(made.otherwise[0]):
                    missing[node] = bool(self._left(node, float(split[node]), made.otherwise)[0])
        return TreeEnsemble(
            n_columns, feature, split, left, right, missing, np.concatenate(self.value),
            np.array(self.root, np.int64), codes, tuple(coded), self.offset,
        )  # fmt: skip

    def _left(self, node: int, split: float, values: Floats) -> np.ndarray:
        """Return which values a node sends to the left."""
        if node in self.codes_left:
            return np.isin(values, self.codes_left[node])
        return np.asarray(values <= split)
