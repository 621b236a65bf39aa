"""People as a learner meets them: rows, labels, and how much each row counts.

A mixture of populations is a crowd too: the rows of all of them, each counting
with its population's share. Nothing is drawn, so mixtures are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown

SLACK = 1e-9
"""Shares may miss the sum of one by rounding alone."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Rows a learner is fitted to.

    Parameters
    ----------
    X
        Features, shape (n, d).
    y
        Labels, shape (n,): what the learner predicts (for a logistic learner the share of
        favourable outcomes, in [0, 1]).
    weight
        How much each row counts, not negative, adding up to 1, shape (n,); None counts all alike.
    """

    X: Floats
    y: Floats
    weight: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("X", "y", "weight"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.ascontiguousarray(value, dtype=np.float64))
        if self.X.ndim != 2 or not len(self.X):
            raise NotEnoughRowsError(f"people are rows of shape (n, d), n >= 1; got {self.X.shape}")
        for name in ("y", "weight"):
            value = getattr(self, name)
            if value is not None and value.shape != (len(self.X),):
                raise DataError(f"{name} has shape {value.shape}; expected ({len(self.X)},)")
        _refuse_infinite(self.X, "features")
        _refuse_infinite(self.y, "labels")
        if self.weight is not None:
            _check_weight(self.weight)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def mass(self) -> Floats:
        """What each row counts, adding up to 1, shape (n,)."""
        return np.full(self.n, 1.0 / self.n) if self.weight is None else self.weight

    def mean(self, values: Any) -> Any:
        """Return the average over people of values whose first axis is the row."""
        return self.mass @ np.asarray(values, dtype=np.float64)

    def moved(self, X: Floats | None = None, y: Floats | None = None) -> Crowd:
        """Return the same people elsewhere, or with other labels."""
        return replace(self, X=self.X if X is None else X, y=self.y if y is None else y)

    def of_rows(self, rows: NDArray[np.intp] | Mask) -> Crowd:
        """Return some of the people, counting as they did relative to each other."""
        mass = self.mass[rows]
        total = float(mass.sum())
        if not total > 0.0:
            raise NotEnoughRowsError("none of the people chosen counts; choose at least one row")
        return Crowd(self.X[rows], self.y[rows], mass / total)


def mixture(crowds: Sequence[Crowd], shares: Sequence[float]) -> Crowd:
    r"""Return :math:`\sum_j \alpha_j D_j`: all rows, each counting with its crowd's share."""
    alpha = checked_shares(shares, len(crowds))
    kept = [(crowd, share) for crowd, share in zip(crowds, alpha, strict=True) if share > 0.0]
    if len(kept) == 1:
        return kept[0][0]
    return Crowd(
        np.concatenate([crowd.X for crowd, _ in kept]),
        np.concatenate([crowd.y for crowd, _ in kept]),
        np.concatenate([share * crowd.mass for crowd, share in kept]),
    )


def checked_shares(shares: Sequence[float], n: int | None = None) -> Floats:
    """Return the shares of a mixture after checking that they are shares and add up to one."""
    alpha = np.asarray(shares, dtype=np.float64)
    if alpha.ndim != 1 or not len(alpha) or (n is not None and len(alpha) != n):
        wanted = "at least one share" if n is None else f"{n} shares"
        raise ParameterError(f"a mixture needs {wanted}, got {list(np.ravel(alpha))}")
    if not np.isfinite(alpha).all() or (alpha < 0.0).any():
        raise ParameterError(f"the shares of a mixture lie in [0, 1], got {alpha.tolist()}")
    total = float(alpha.sum())
    if abs(total - 1.0) > SLACK:
        raise ParameterError(
            f"the shares of a mixture add up to 1, got {alpha.tolist()} with sum {total:.6g}; "
            f"divide each by {total:.6g} if only their proportions were meant"
        )
    return alpha / total


def _refuse_infinite(values: Floats, what: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # One sum shows whether all are finite.
            return
    finite = np.isfinite(values) if values.ndim == 1 else np.isfinite(values).all(axis=1)
    if not finite.all():
        rows = np.flatnonzero(~finite)
        raise DataError(f"{what} must be finite, not so in rows {shown(rows)}", rows=rows)


def _check_weight(weight: Floats) -> None:
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if wrong.size:
        raise DataError(f"weights are not negative; not so in rows {shown(wrong)}", rows=wrong)
    if abs(float(weight.sum()) - 1.0) > SLACK:
        raise DataError(f"the weights of all rows add up to 1, got {float(weight.sum()):.6g}")
