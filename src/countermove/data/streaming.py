"""Ingest a part at a time: the same splits as in one piece, in bounded memory.

The rows are read twice: once to note what decides where each goes (17 bytes a
row, 8 more per column that groups or dates them), once to put them there. Means
and scales are merged over the training parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.cleaning import clean
from countermove.data.partitions import Partitions
from countermove.data.relations import Tails
from countermove.data.rows import feature_matrix, standardised_table
from countermove.data.schema import ROW_ID, Schema
from countermove.data.splits import Place, RowKeys, places, repeated, row_keys
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, shown

MOST_REPORTED = 5
"""Parts with problems that one error reports."""


def typed_parts(raw: Partitions, schema: Schema) -> Iterator[pd.DataFrame]:
    """Yield the typed rows of every part, or one error with the problems of up to five parts."""
    first, kept, problems, rows = 0, 0, [], []
    for file, part in raw.named():
        try:
            typed = clean(part, schema, part_from=kept)
        except DataError as error:
            problems.append(f"{file.name}, rows from {first}: {error}")
            rows += [first + row for row in error.rows]
            if len(problems) == MOST_REPORTED:
                break
        else:
            kept += len(typed)
            if not problems:
                yield typed
        first += len(part)
    if problems:
        raise DataError("\n".join(problems), rows=rows)


def place_rows(
    raw: Partitions,
    schema: Schema,
    fractions: Mapping[str, float],
    seed: int,
    balance: bool = False,
    max_rows: int | None = None,
) -> Place:
    """Return the split of every row, as `split_table` would choose it for the whole table."""
    keys = RowKeys.joined(row_keys(part, schema, seed) for part in typed_parts(raw, schema))
    _check_ids(keys, raw, schema)
    return places(keys, fractions, seed, balance, max_rows)


def split_parts(
    raw: Partitions, schema: Schema, place: Place, names: Iterable[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the typed rows of every part, split by split."""
    first, splits = 0, list(names)
    for part in typed_parts(raw, schema):
        here = place[first : first + len(part)]
        if len(here) < len(part):
            raise _changed(first + len(part), len(place))
        first += len(part)
        for position, name in enumerate(splits):
            yield name, part[here == position].reset_index(drop=True)
    if first < len(place):
        raise _changed(first, len(place))


def _changed(found: int, placed: int) -> DataError:
    return DataError(
        f"{found} rows were read where {placed} had been placed; the table changed in between: "
        "run the ingest again"
    )


def fit_standardiser(train: Partitions, schema: Schema, divide_by_root_d: bool) -> Standardiser:
    """Return means, scales and usual ranges of the training rows, merged part by part."""
    moments: Moments | None = None
    tails: Tails | None = None
    for part in train:
        X = feature_matrix(part, schema)
        moments = Moments.of(X) if moments is None else moments.merged(Moments.of(X))
        tails = Tails.of(X) if tails is None else tails.merged(Tails.of(X))
    if moments is None or tails is None:
        raise DataError("there are no training rows to standardise by")
    fitted = moments.standardiser(schema.feature_names, divide_by_root_d)
    return replace(fitted, ranges=tails.ranges(schema))


def standardised_parts(
    splits: Mapping[str, Partitions], schema: Schema, standardiser: Standardiser
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of every split in standardised units."""
    for name, parts in splits.items():
        for part in parts:
            yield name, standardised_table(part, schema, standardiser)


@dataclass(frozen=True)
class Moments:
    """Count, mean, summed squared deviations and range per column; they merge."""

    n: int
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, X: Floats) -> Moments:
        """Return the moments of some rows."""
        mean = X.mean(axis=0)
        squares = np.square(X - mean).sum(axis=0)
        return cls(len(X), mean, squares, X.min(axis=0), X.max(axis=0))

    def merged(self, other: Moments) -> Moments:
        r"""Return the moments of both: the means' distance adds :math:`d^2 n m/(n+m)`."""
        n, distance = self.n + other.n, other.mean - self.mean
        mean = self.mean + distance * (other.n / n)
        squares = self.squares + other.squares + np.square(distance) * (self.n * other.n / n)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Moments(n, mean, squares, low, high)

    def standardiser(self, names: tuple[str, ...], divide_by_root_d: bool) -> Standardiser:
        """Return the standardiser; refuses columns that do not vary or are too large."""
        # Rounding can leave a column of equal values a spread of its own.
        spread = np.where(self.low == self.high, 0.0, np.sqrt(self.squares / self.n))
        return Standardiser.from_moments(self.mean, spread, names, self.n, divide_by_root_d)


def _check_ids(keys: RowKeys, raw: Partitions, schema: Schema) -> None:
    """Refuse an id that occurs twice; equal hashes raise the suspicion, the ids decide."""
    suspects = np.flatnonzero(repeated(keys.place))
    if schema.id is None or not len(suspects):
        return
    ids = pd.Series(_ids_at(suspects, raw, schema))
    twice = ids.duplicated(keep=False).to_numpy()
    if twice.any():
        rows = suspects[twice]
        listed = shown(dict.fromkeys(repr(word) for word in ids[twice]))
        raise DataError(
            f"table {schema.name!r}: duplicated ids {listed} in rows {shown(rows)}; each row needs "
            "its own",
            rows=rows,
        )


def _ids_at(rows: NDArray[np.int64], raw: Partitions, schema: Schema) -> list[str]:
    found: list[str] = []
    first = 0
    for part in typed_parts(raw, schema):
        here = rows[(rows >= first) & (rows < first + len(part))] - first
        found += part[ROW_ID].iloc[here].tolist()
        first += len(part)
    return found
