"""Tables of several classes (iris, digits, mnist-5k): any of them against the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from countermove.data.checks import raise_all, rows_problem
from countermove.data.parsing import texts
from countermove.data.recipes._cells import whole_numbers

SMALL_SIDE = 8
"""Pixels along an edge of a small digit."""

SPECIES = ("setosa", "versicolor", "virginica")
IRIS_COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")
DIGITS_COLUMNS = (
    *(f"pixel_{row}_{col}" for row in range(SMALL_SIDE) for col in range(SMALL_SIDE)),
    "digit",
)


def iris(raw: pd.DataFrame, name: str = "iris") -> pd.DataFrame:
    """Return the four lengths in cm, the species, and ``is_<species>``, each a possible label."""
    species = texts(raw["species"])
    strange = (~species.isin(SPECIES)).to_numpy(np.bool_)
    raise_all(rows_problem("column 'species': not one of the three", strange), name)
    answers = {f"is_{kind}": (species == kind).astype(np.int64) for kind in SPECIES}
    return raw[list(IRIS_COLUMNS)].assign(**answers)


def digits(raw: pd.DataFrame, name: str = "digits") -> pd.DataFrame:
    """Return the pixels, the digit, and ``is_0`` … ``is_9``, each a possible label.

    64 pixels, 0 white to 16 black; row, then column, from the upper left.
    """
    return _with_answers(raw, DIGITS_COLUMNS, name)


SIDE = 28
"""Pixels along an edge of an image."""

PIXELS = tuple(f"pixel_{row}_{column}" for row in range(SIDE) for column in range(SIDE))
MNIST_COLUMNS = (*PIXELS, "digit")


def mnist(raw: pd.DataFrame, name: str = "mnist-5k") -> pd.DataFrame:
    """Return the pixels, the digit, and ``is_0`` … ``is_9``, each a possible label.

    784 pixels, 0 white to 255 black; row, then column, from the upper left.
    """
    return _with_answers(raw, MNIST_COLUMNS, name)


def _with_answers(raw: pd.DataFrame, columns: Sequence[str], name: str) -> pd.DataFrame:
    """Return some columns of images of digits and ``is_0`` … ``is_9``; refuse other digits."""
    digit = whole_numbers(raw, ("digit",), name)["digit"]
    strange = (digit < 0) | (digit > 9)
    raise_all(rows_problem("column 'digit': not one of 0 to 9", strange, digit), name)
    answers = pd.DataFrame({f"is_{d}": (digit == d).astype(np.int64) for d in range(10)})
    return pd.concat([raw[list(columns)], answers], axis=1)
