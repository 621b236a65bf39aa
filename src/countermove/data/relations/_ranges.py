"""The values that advice may lead to: those people have, not those a score would like.

Amounts stay within the 1st and the 99th percentile of the training rows and categories within
the levels seen there, unless the schema says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.schema import ValueRange
from countermove.errors import DataError, ParameterError

if TYPE_CHECKING:
    from countermove.data.schema import Feature, Schema

SHARE = 0.01
"""Share of the training rows on either side whose amounts are unusual: nobody is sent there."""
KEPT = 20_000
"""Values kept per column and side; of more than two million rows the range is wider."""


@dataclass(frozen=True, eq=False)
class ObservedRanges:
    r"""Least and greatest value per model column, in original coded units.

    A person at :math:`x` may be led to :math:`[\min(l, x), \max(h, x)]`: whoever stands outside
    may stay or move inward.

    Parameters
    ----------
    low, high
        :math:`l \le h`, shape (d,); infinite where neither rows nor schema bound the column.
    names
        The d model columns.
    """

    low: Floats
    high: Floats
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for field in ("low", "high"):
            values = np.array(getattr(self, field), dtype=np.float64)
            if values.shape != (len(self.names),) or np.isnan(values).any():
                raise ParameterError(f"{field} must hold {len(self.names)} numbers")
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        if (self.low > self.high).any():
            raise ParameterError("a range ends below its beginning")

    def box(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest value each of n people may be led to, shape (n, d)."""
        return np.minimum(self.low, X), np.maximum(self.high, X)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, ``None`` for unbounded; floats survive JSON exactly."""
        sides = {"low": self.low, "high": self.high}
        listed = {
            side: [float(v) if np.isfinite(v) else None for v in values]
            for side, values in sides.items()
        }
        return {**listed, "names": list(self.names)}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> ObservedRanges:
        """Return what :meth:`to_json` described."""
        low = [-np.inf if value is None else value for value in description["low"]]
        high = [np.inf if value is None else value for value in description["high"]]
        return cls(np.array(low), np.array(high), tuple(description["names"]))


def observed_ranges(table: pd.DataFrame, schema: Schema) -> ObservedRanges:
    """Return the ranges of a schema's model columns from training rows.

    Per feature, by its ``range:``, always within ``min`` and ``max``: ``observed``, from the 1st
    to the 99th percentile of the rows (values that occur), of categories those that occur;
    ``declared``, what ``min``, ``max`` and ``categories`` allow; ``{low:, high:}``, these, a side
    left out being observed.

    Parameters
    ----------
    table
        The typed training rows, and no others.
    schema
        What the columns mean.

    Raises
    ------
    DataError
        If there are no rows.
    """
    from countermove.data.missing import filled_in, fitted_fill
    from countermove.data.rows import coded_features

    if table.empty:
        raise DataError(f"table {schema.name!r} has no rows to take ranges from")
    X = coded_features(table, schema)
    return Tails.of(filled_in(X, fitted_fill(schema, [X]))).ranges(schema)


@dataclass(frozen=True, eq=False)
class Tails:
    """How many rows there were, and the least and greatest values of each column; they merge."""

    n: int
    least: Floats  # (k, d), rising
    greatest: Floats

    @classmethod
    def of(cls, X: Floats) -> Tails:
        """Return the tails of some rows."""
        return cls(len(X), *_ends(X))

    def merged(self, other: Tails) -> Tails:
        """Return the tails of both."""
        low, _ = _ends(np.vstack([self.least, other.least]))
        _, high = _ends(np.vstack([self.greatest, other.greatest]))
        return Tails(self.n + other.n, low, high)

    def ranges(self, schema: Schema) -> ObservedRanges:
        """Return the ranges a schema asks for."""
        columns = schema.model_features()
        features = {feature.name: feature for feature in schema.features}
        low, high = np.empty(len(columns)), np.empty(len(columns))
        for place, column in enumerate(columns):
            chosen = (
                (0.0, 1.0) if column.indicator else self._chosen(features[column.source], place)
            )
            low[place] = np.clip(chosen[0], column.min, column.max)
            high[place] = np.clip(chosen[1], column.min, column.max)
        return ObservedRanges(low, high, schema.feature_names)

    def _chosen(self, feature: Feature, place: int) -> tuple[float, float]:
        """Return the range one feature asks for, before its bounds."""
        wanted = feature.range or ValueRange()
        if wanted.declared:
            return -np.inf, np.inf
        outside = 0
        if feature.kind in ("numeric", "integer"):
            outside = min(int(SHARE * (self.n - 1)), len(self.least) - 1)
        low, high = float(self.least[outside, place]), float(self.greatest[-1 - outside, place])
        low = low if wanted.low is None else wanted.low
        high = high if wanted.high is None else wanted.high
        return low, max(low, high)


def _ends(X: Floats) -> tuple[Floats, Floats]:
    """Return the least and the greatest values per column, as many as are kept, rising."""
    ordered = np.sort(X, axis=0)
    return ordered[:KEPT], ordered[-KEPT:]
