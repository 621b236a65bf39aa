"""Small tables that scikit-learn carries, read where it keeps them: iris and digits.

What they hold is known by a SHA-256 of their cells, so that another release of
scikit-learn cannot change a result unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from countermove.data.recipes.classes import DIGITS_COLUMNS, IRIS_COLUMNS
from countermove.errors import DataError


def _iris() -> pd.DataFrame:
    from sklearn.datasets import load_iris

    found = load_iris()
    table = pd.DataFrame(found.data, columns=list(IRIS_COLUMNS[:-1]))
    return table.assign(species=[str(found.target_names[code]) for code in found.target])


def _digits() -> pd.DataFrame:
    from sklearn.datasets import load_digits

    found = load_digits()
    table = pd.DataFrame(found.data.astype("int64"), columns=list(DIGITS_COLUMNS[:-1]))
    return table.assign(digit=found.target.astype("int64"))


BUNDLED: Mapping[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "iris": (_iris, "3201274c36c47980cb2a00be075491cb34ec24e1d1d3d01b1b8e3292336a64ad"),
    "digits": (_digits, "066e3b8934cd4ae1bab4de7dca55ac6ba32395864bbb7a31eb0fd2b224d92927"),
}
"""How each table is read, and the SHA-256 of its cells."""


def read_bundled(name: str) -> pd.DataFrame:
    """Read a table that scikit-learn carries.

    Raises
    ------
    DataError
        If the installed scikit-learn carries another table than the one on record.
    """
    from countermove.data.sources import table_hash

    read, expected = BUNDLED[name]
    table = read()
    found = table_hash(table)
    if found != expected:
        raise DataError(
            f"the {name!r} table of the installed scikit-learn is not the one on record: SHA-256 "
            f"{found}, expected {expected}; install the pinned scikit-learn"
        )
    return table
