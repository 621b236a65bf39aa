"""Columns of an Arrow table as the matrix that kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from countermove.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def matrix_of(rows: pa.Table, columns: Sequence[str]) -> NDArray[np.float64]:
    """Return columns as one C-ordered matrix; cells without a value are named."""
    X = np.empty((len(rows), len(columns)))
    for j, name in enumerate(columns):
        column = rows[name]
        if column.null_count:
            empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            raise DataError(f"column {name!r} has cells without a value", rows=empty)
        X[:, j] = column.to_numpy()
    return X
