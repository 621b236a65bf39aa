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

PERCENTILES = (0.01, 0.99)
"""Beyond these shares of the training rows an amount is unusual, and nobody is sent there."""


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
    from countermove.data.rows import coded_features

    if table.empty:
        raise DataError(f"table {schema.name!r} has no rows to take ranges from")
    X, columns = coded_features(table, schema), schema.model_features()
    features = {feature.name: feature for feature in schema.features}
    low, high = np.empty(len(columns)), np.empty(len(columns))
    for place, column in enumerate(columns):
        chosen = _chosen(features[column.source], X[:, place])
        low[place] = np.clip(chosen[0], column.min, column.max)
        high[place] = np.clip(chosen[1], column.min, column.max)
    return ObservedRanges(low, high, schema.feature_names)


def _chosen(feature: Feature, values: Floats) -> tuple[float, float]:
    """Return the range one feature asks for, before its bounds."""
    wanted = feature.range or ValueRange()
    if wanted.declared:
        return -np.inf, np.inf
    if feature.kind in ("numeric", "integer"):
        low = float(np.quantile(values, PERCENTILES[0], method="lower"))
        high = float(np.quantile(values, PERCENTILES[1], method="higher"))
    else:
        low, high = float(values.min()), float(values.max())
    low = low if wanted.low is None else wanted.low
    high = high if wanted.high is None else wanted.high
    return low, max(low, high)
