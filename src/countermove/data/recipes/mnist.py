"""Handwritten digits: any of the ten against the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from countermove.data.checks import raise_all, rows_problem
from countermove.data.recipes.cells import whole_numbers

SIDE = 28
"""Pixels along an edge of an image."""

PIXELS = tuple(f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE))
MNIST_COLUMNS = (*PIXELS, "digit")


def mnist(raw: pd.DataFrame, name: str = "mnist-5k") -> pd.DataFrame:
    """Return the pixels, the digit, and ``is_0`` … ``is_9``, each a possible label.

    Parameters
    ----------
    raw
        784 pixels (0 white to 255 black; row, then column, from the upper left) and the digit.
    name
        Dataset named in errors.
    """
    return with_answers(raw, MNIST_COLUMNS, name)


def with_answers(raw: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return some columns of images of digits and ``is_0`` … ``is_9``; refuse other digits."""
    digit = whole_numbers(raw, ("digit",), name)["digit"]
    strange = (digit < 0) | (digit > 9)
    raise_all(rows_problem("column 'digit': not one of 0 to 9", strange, digit), name)
    answers = pd.DataFrame({f"is_{d}": (digit == d).astype(np.int64) for d in range(10)})
    return pd.concat([raw[list(columns)], answers], axis=1)
