"""Ingest a part at a time: the same splits as in one piece, in bounded memory.

The rows are read twice: once to note what decides where each goes and which are equal (25
bytes a row, 8 more per column that groups or dates them), once to put them there. Means and
scales are merged over the training parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from countermove._types import Floats, Index, Mask
from countermove.data.checks import repeated_id_problems
from countermove.data.cleaning import clean_rows, superfluous
from countermove.data.doubts import equal_rows, feature_hashes
from countermove.data.missing import fill_columns, filled_in, fitted_fill, never_missing
from countermove.data.partitions import Partitions
from countermove.data.quarantine import (
    ROW,
    Cleaned,
    check_share,
    joined,
    listed_cells,
    nothing_wrong,
)
from countermove.data.relations import Tails
from countermove.data.rows import coded_features, feature_matrix, standardised_table
from countermove.data.schema import ROW_ID, Schema
from countermove.data.splits import Hashes, Place, RowKeys, places, repeated, row_keys
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, shown

MOST_REPORTED = 5
"""Parts with problems that one error reports."""

MOST_LISTED = 5_000_000
"""Rows set aside that are held while a table is read; with more, reading stops."""


@dataclass(frozen=True)
class PlacedRows:
    """The split of every row of a table in parts, -1 for those not used, and the quarantine."""

    place: Place
    quarantine: pd.DataFrame
    labels: tuple[str, ...]  # both values of the outcome, the favourable one first
    alike: tuple[int, int]  # rows with another row's features, and those that differ in outcome
    late: Mapping[str, int]  # by feature, dates after the outcome

    @property
    def n_lines(self) -> int:
        """How many rows, and lines that are none, were read."""
        return len(self.place) + int(self.quarantine[ROW].isna().sum())


def cleaned_parts(raw: Partitions, schema: Schema) -> Iterator[Cleaned]:
    """Yield every part as it is read, or one error with the problems of up to five parts."""
    first, numbered, problems, rows = 0, 0, [], []
    for file, part in raw.raw():
        try:
            read = clean_rows(part, schema, part_from=numbered)
        except DataError as error:
            problems.append(f"{file.name}, rows from {first}: {error}")
            rows += [first + row for row in error.rows]
            if len(problems) == MOST_REPORTED:
                break
        else:
            numbered += read.n_rows
            if not problems:
                yield read
        first += len(part.frame)
    if problems:
        raise DataError("\n".join(problems), rows=rows)


def place_rows(
    raw: Partitions,
    schema: Schema,
    fractions: Mapping[str, float],
    seed: int,
    balance: bool = False,
    max_rows: int | None = None,
) -> PlacedRows:
    """Return the split of every row, as `split_table` would choose it for the whole table."""
    wrong: list[pd.DataFrame] = []
    used: list[Mask] = []
    labels: dict[str, None] = {}
    features: list[Hashes] = []
    late: Counter[str] = Counter()

    def keys_of_parts() -> Iterator[RowKeys]:
        held = 0
        for read in cleaned_parts(raw, schema):
            wrong.append(read.quarantine)
            labels.update(dict.fromkeys(read.labels))
            held += len(read.quarantine)
            if held > MOST_LISTED:
                _check_share(joined(wrong), sum(map(len, used)) + read.n_rows, schema)
                raise DataError(f"table {schema.name!r}: more than {MOST_LISTED} wrong cells")
            kept = np.zeros(read.n_rows, dtype=np.bool_)
            kept[read.kept] = True
            used.append(kept)
            features.append(feature_hashes(read.table, schema))
            late.update(read.late)
            yield row_keys(read.table, schema, seed)

    keys = RowKeys.joined(keys_of_parts())
    usable = np.concatenate(used)
    if len(labels) > 2:
        listed = shown(map(repr, sorted(labels)))
        raise DataError(
            f"table {schema.name!r}: the label {schema.label.column!r} has {len(labels)} values, "
            f"{listed}; expected two: name both (`unfavourable:`), and others are set aside"
        )
    repeats = _repeated_ids(keys, raw, schema)
    quarantine = joined([*wrong, repeats])
    kept = ~np.isin(np.flatnonzero(usable), repeats[ROW])
    alike = equal_rows(np.concatenate(features)[kept], keys.favourable[kept])
    place = np.full(len(usable), -1, dtype=np.int8)
    placed = PlacedRows(place, quarantine, tuple(labels), alike, late)
    _check_share(quarantine, placed.n_lines, schema)
    if len(repeats):
        keys = keys.rows(kept)
        usable[repeats[ROW].to_numpy(np.intp)] = False
    place[usable] = places(keys, fractions, seed, balance, max_rows)
    return placed


def _check_share(quarantine: pd.DataFrame, n_rows: int, schema: Schema) -> None:
    check_share(f"table {schema.name!r}", quarantine, n_rows, schema.quarantine)


def split_parts(
    raw: Partitions, schema: Schema, place: Place, names: Iterable[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the typed rows of every part, split by split."""
    first, splits = 0, list(names)
    for read in cleaned_parts(raw, schema):
        here = place[first : first + read.n_rows]
        if len(here) < read.n_rows:
            raise _changed(first + read.n_rows, len(place))
        first += read.n_rows
        chosen = here[read.kept]
        for position, name in enumerate(splits):
            yield name, read.table[chosen == position].reset_index(drop=True)
    if first < len(place):
        raise _changed(first, len(place))


def _changed(found: int, placed: int) -> DataError:
    return DataError(
        f"{found} rows were read where {placed} had been placed; the table changed in between: "
        "run the ingest again"
    )


def fit_standardiser(train: Partitions, schema: Schema, divide_by_root_d: bool) -> Standardiser:
    """Return means, scales, fills and usual ranges of the training rows, merged part by part."""
    moments: Moments | None = None
    tails: Tails | None = None
    fill = fitted_fill(schema, _DesignParts(train, schema))
    for part in train:
        X = filled_in(feature_matrix(part, schema), fill)
        moments = Moments.of(X) if moments is None else moments.merged(Moments.of(X))
        tails = Tails.of(X) if tails is None else tails.merged(Tails.of(X))
    if moments is None or tails is None:
        raise DataError("there are no training rows to standardise by")
    keep = never_missing(schema, fill)
    fitted = moments.standardiser(schema.feature_names, divide_by_root_d, keep)
    return replace(fitted, ranges=tails.ranges(schema), fill=fill)


@dataclass(frozen=True)
class _DesignParts:
    """The design matrix of rows in parts, built again each time; columns not needed are NaN."""

    rows: Partitions
    schema: Schema

    def __iter__(self) -> Iterator[Floats]:
        found = fill_columns(self.schema)
        places = [place for each in found for place in (*each.columns, each.indicator)]
        only = replace(self.schema, features=tuple(each.feature for each in found))
        for part in self.rows.columns([each.feature.name for each in found]):
            X = np.full((len(part), len(self.schema.feature_names)), np.nan)
            X[:, places] = coded_features(part, only)
            yield X


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

    def standardiser(
        self, names: tuple[str, ...], divide_by_root_d: bool, keep_constant: Mask | bool = False
    ) -> Standardiser:
        """Return the standardiser; refuses columns that do not vary or are too large."""
        # Rounding can leave a column of equal values a spread of its own.
        spread = np.where(self.low == self.high, 0.0, np.sqrt(self.squares / self.n))
        spread = np.where((spread == 0.0) & keep_constant, 1.0, spread)
        return Standardiser.from_moments(self.mean, spread, names, self.n, divide_by_root_d)


def _repeated_ids(keys: RowKeys, raw: Partitions, schema: Schema) -> pd.DataFrame:
    """Return the quarantine of ids that occur twice: equal hashes raise the suspicion."""
    suspects = np.flatnonzero(repeated(keys.place))
    if schema.id is None or not len(suspects):
        return nothing_wrong()
    found, rows = _typed_at(suspects, raw, schema)
    ids = found[[ROW_ID]].set_axis([schema.id], axis=1)
    problems = repeated_id_problems(ids[schema.id], superfluous(found))
    return listed_cells(problems, ids, found[ROW_ID], rows)


def _typed_at(chosen: Index, raw: Partitions, schema: Schema) -> tuple[pd.DataFrame, Index]:
    """Return typed rows by their position among the usable ones, and the numbers they have."""
    found, numbers, first, numbered = [], [], 0, 0
    for read in cleaned_parts(raw, schema):
        here = chosen[(chosen >= first) & (chosen < first + len(read.table))] - first
        found.append(read.table.iloc[here])
        numbers.append(numbered + read.kept[here])
        first, numbered = first + len(read.table), numbered + read.n_rows
    return pd.concat(found, ignore_index=True), np.concatenate(numbers)
