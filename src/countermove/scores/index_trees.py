r"""Boosted trees of an index of what people can change and of everything else.

The trees never fall in the index, so that each person's rule is "an index of at least …", with a
threshold that their immutable columns set. As a score of what moves it is affine: people's
response, recourse and promises are those of an affine score, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.scores.base import Score
from countermove.scores.trees import OF_NODES, TreeEnsemble, raw_scores


class IndexTreesScore(Score):
    r""":math:`s(x) = w \cdot x_{movable} - \tau(x_{fixed}) + b`, with :math:`\tau` from trees.

    .. math:: \tau(x_{fixed}) = \min\{u : T(u, x_{fixed}) \ge \text{level}\}

    Parameters
    ----------
    n_features
        Number of features in all.
    movable, weight
        Positions of the features people can change, and what each adds to the index.
    ensemble
        :math:`T`, log-odds: trees of the index (their first column) and the other features, in
        order; no tree falls in the index.
    level
        The log-odds asked for.
    seen
        Lowest and highest index of training. Beyond it the log-odds go on as those of the
        logistic regression that gave the index, by one per unit, so that every threshold is
        finite.
    """

    kind: ClassVar[str] = "index_trees"

    def __init__(
        self,
        n_features: int,
        movable: Sequence[int],
        weight: Floats | Sequence[float],
        ensemble: TreeEnsemble,
        level: float,
        seen: tuple[float, float],
    ) -> None:
        super().__init__()
        self.movable = [int(position) for position in movable]
        self.fixed = [j for j in range(n_features) if j not in self.movable]
        if ensemble.n_features != 1 + len(self.fixed) or ensemble.codes_left:
            raise ParameterError(
                f"trees of the index and {len(self.fixed)} other features compare numbers in "
                f"{1 + len(self.fixed)} columns, got {ensemble.n_features}"
            )
        self.ensemble, self.level = ensemble, float(level)
        self.seen = (float(seen[0]), float(seen[1]))
        self.weight = nn.Parameter(
            torch.tensor(np.asarray(weight), dtype=torch.float64), requires_grad=False
        )
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)
        for name in OF_NODES:
            held = np.ascontiguousarray(getattr(ensemble, name))
            self.register_buffer(f"trees_{name}", torch.from_numpy(held))
        self._arrays = ensemble.arrays(np.zeros(ensemble.n_features), np.ones(ensemble.n_features))
        of_index = (ensemble.left >= 0) & (ensemble.feature == 0)
        self._splits = np.unique(ensemble.split[of_index])

    @classmethod
    def rebuilt(cls, arguments: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Self:
        """Return the score of stored trees."""
        nodes = {name: weights[f"trees_{name}"].numpy() for name in OF_NODES}
        said = dict(arguments)
        ensemble = TreeEnsemble.from_json(said.pop("trees"), nodes)
        score = cls(ensemble=ensemble, weight=weights["weight"].numpy(), **said)
        score.load_state_dict(dict(weights))
        return score

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same trees with an intercept of their own."""
        other = type(self)(
            self.n_features, self.movable, self.weight.numpy(), self.ensemble, self.level, self.seen
        )
        other.bias.data.copy_(self.bias.data)
        other.train(self.training)
        return other

    @property
    def n_features(self) -> int:
        """Number of features the score reads."""
        return len(self.movable) + len(self.fixed)

    def forward(self, X: Tensor) -> Tensor:
        """Return how far everybody's index is beyond their threshold."""
        threshold = torch.from_numpy(self.thresholds(X[:, self.fixed].detach().numpy()))
        return X[:, self.movable] @ self.weight + self.bias - threshold

    def slope(self) -> Tensor:
        """Return the weights of the index, zero on the other features."""
        slope = self.weight.new_zeros(self.n_features)
        slope[self.movable] = self.weight.detach()
        return slope

    def log_odds(self, index: Floats, fixed: Floats) -> Floats:
        """Return what the trees say, shape (n,), of indices (n,) and the other features."""
        out, low, high = np.empty(len(index)), *self.seen
        rows = np.column_stack([index, fixed])
        raw_scores(self._arrays, self.ensemble.offset, np.ascontiguousarray(rows), out)
        return out + np.maximum(index - high, 0.0) + np.minimum(index - low, 0.0)

    def thresholds(self, fixed: Floats) -> Floats:
        """Return the least index with log-odds of at least the level, shape (n,)."""
        n, (low, high) = len(fixed), self.seen
        # Within a cell between two splits the trees are constant: the lowest cell is sought.
        ends = np.append(self._splits, high)
        starts = np.append(low, np.nextafter(self._splits, np.inf))
        first, last = np.zeros(n, np.intp), np.full(n, len(ends), np.intp)
        while (first < last).any():
            middle = (first + last) // 2
            at = np.minimum(middle, len(ends) - 1)
            reached = self.log_odds(ends[at], fixed) >= self.level
            open_ = first < last
            last = np.where(open_ & reached, middle, last)
            first = np.where(open_ & ~reached, middle + 1, first)
        found = starts[np.minimum(first, len(starts) - 1)]
        below, above = first == 0, first == len(ends)
        at_low = self.log_odds(np.full(n, low), fixed) - self.level
        at_high = self.log_odds(np.full(n, high), fixed) - self.level
        found = np.where(below, low - np.maximum(at_low, 0.0), found)
        return np.where(above, high - np.minimum(at_high, 0.0), found)

    def describe(self) -> dict[str, Any]:
        """Return what rebuilds the score, its numbers apart."""
        return {
            "n_features": self.n_features,
            "movable": self.movable,
            "trees": self.ensemble.to_json(),
            "level": self.level,
            "seen": list(self.seen),
        }
