"""Train, validation, calibration and test rows.

Every row draws its place from its id and the seed alone, so the order of the
file does not matter. Rows with the same feature values stay together, and each
class is divided in the same proportions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.randomness import seed_of

Hashes = NDArray[np.uint64]


def split_table(
    table: pd.DataFrame,
    schema: Schema,
    fractions: Mapping[str, float],
    seed: int,
    balance: bool = False,
    max_rows: int | None = None,
    min_per_class: int = 2,
) -> dict[str, pd.DataFrame]:
    """Divide a typed table into named splits.

    Parameters
    ----------
    table
        A typed table.
    schema
        Names the features by which rows count as duplicates of each other.
    fractions
        Share of the rows per split, positive, summing to 1.
    seed
        Seed of the run.
    balance
        Draw as many rows of the larger class as the smaller one has.
    max_rows
        Draw at most this many rows, each class in its proportion.
    min_per_class
        Rows of each class every split must hold.

    Returns
    -------
    dict
        One table per split, rows in the order of ``table``. Together they hold
        each drawn row once. Each class meets its shares up to one row, unless large
        groups of duplicates stand in the way.

    Raises
    ------
    ParameterError
        If the fractions or counts make no sense.
    NotEnoughRowsError
        If a split would hold too few rows of a class; the message has the numbers.
    """
    keys = row_keys(table, schema, seed)
    place = places(keys, fractions, balance, max_rows, min_per_class)
    return {
        name: table[place == position].reset_index(drop=True)
        for position, name in enumerate(fractions)
    }


@dataclass(frozen=True)
class RowKeys:
    """All of a table that decides where its rows go, 25 bytes a row."""

    # Pseudo-random numbers of id and seed: the order in which rows are drawn and placed.
    draw: Hashes
    place: Hashes
    # Equal rows share a hash; a clash would only keep two different rows together.
    features: Hashes
    favourable: Mask

    def __len__(self) -> int:
        return len(self.favourable)

    def rows(self, chosen: Mask) -> RowKeys:
        """Return the keys of some rows."""
        return RowKeys(*(getattr(self, field.name)[chosen] for field in fields(self)))


def row_keys(table: pd.DataFrame, schema: Schema, seed: int) -> RowKeys:
    """Return the keys of a typed table, or of a part of one."""
    return RowKeys(
        draw=_id_hashes(table, seed, "rows drawn"),
        place=_id_hashes(table, seed, "split"),
        features=feature_hashes(table, schema),
        favourable=table[LABEL].to_numpy() == 1,
    )


def feature_hashes(table: pd.DataFrame, schema: Schema) -> Hashes:
    """Return a 64-bit hash of every row's feature values; equal rows share it."""
    features = table[[feature.name for feature in schema.features]]
    return pd.util.hash_pandas_object(features, index=False).to_numpy().astype(np.uint64)


def places(
    keys: RowKeys,
    fractions: Mapping[str, float],
    balance: bool = False,
    max_rows: int | None = None,
    min_per_class: int = 2,
) -> NDArray[np.int8]:
    """Return each row's split by position, or -1 if it is not drawn; see `split_table`."""
    _check_fractions(fractions)
    _check_count(min_per_class, "min_per_class", least=1)
    drawn = _drawn_rows(keys, balance=balance, max_rows=max_rows)
    place = np.full(len(keys), -1, dtype=np.int8)
    place[drawn] = _places(keys if drawn.all() else keys.rows(drawn), list(fractions.values()))
    _check_classes(place, keys.favourable, list(fractions), min_per_class)
    return place


def _drawn_rows(keys: RowKeys, balance: bool = False, max_rows: int | None = None) -> Mask:
    """Return which rows a run uses; see `split_table`."""
    if max_rows is not None:
        _check_count(max_rows, "max_rows", least=2)
    counts = np.array([np.sum(~keys.favourable), np.sum(keys.favourable)])
    wanted = np.full(2, counts.min()) if balance else counts
    total = int(wanted.sum())
    if max_rows is not None and total > max_rows:
        # The smaller class is rounded up, so that a cap never wipes it out.
        small = int(wanted.argmin())
        share = math.ceil(max_rows * wanted[small] / total)
        wanted = np.full(2, max_rows - share)
        wanted[small] = share
        if balance:
            wanted = np.full(2, max_rows // 2)
    if np.array_equal(wanted, counts):
        return np.ones(len(keys), dtype=np.bool_)
    keep = np.zeros(len(keys), dtype=np.bool_)
    for code, count in enumerate(wanted):
        members = np.flatnonzero(keys.favourable == bool(code))
        keep[members[np.argsort(keys.draw[members], kind="stable")[:count]]] = True
    return keep


def _id_hashes(table: pd.DataFrame, seed: int, stage: str) -> Hashes:
    """Return a pseudo-random number per row that depends on its id, the seed and the stage."""
    key = f"{seed_of(seed, stage):016x}"
    ids = table[ROW_ID].to_numpy(dtype=object)
    return pd.util.hash_array(ids, hash_key=key, categorize=False)


def _places(keys: RowKeys, fractions: list[float]) -> NDArray[np.int8]:
    """Return the position of the split of each row."""
    together = repeated(keys.features)
    shares = np.asarray(fractions, dtype=np.float64)
    place = np.zeros(len(keys), dtype=np.int8)
    place[together] = _place_groups(keys.features[together], keys.place[together], shares)
    # Single rows then make up what each class still lacks in each split.
    for sign in (False, True):
        members = keys.favourable == sign
        placed = np.bincount(place[members & together], minlength=len(shares))
        lacking = np.maximum(shares * members.sum() - placed, 0.0)
        single = np.flatnonzero(members & ~together)
        order = single[np.argsort(keys.place[single], kind="stable")]
        for position, (start, stop) in enumerate(pairwise(_ends(len(order), lacking))):
            place[order[start:stop]] = position
    return place


def repeated(hashes: Hashes) -> Mask:
    """Return which values occur more than once."""
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return np.isin(hashes, twice, kind="sort") if len(twice) else np.zeros(len(hashes), np.bool_)


def _place_groups(groups: Hashes, ranks: Hashes, shares: Floats) -> NDArray[np.int64]:
    """Return the split of each row when groups stay whole; a group draws its smallest rank."""
    names, members = np.unique(groups, return_inverse=True)
    draws = np.full(len(names), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(draws, members, ranks)
    order = np.argsort(draws, kind="stable")
    place = np.zeros(len(names), dtype=np.int64)
    place[order] = _cut(np.bincount(members).astype(np.float64)[order], shares)
    return place[members]


def _ends(n: int, shares: Floats) -> list[int]:
    """Return where the shares of n rows begin and end: what `_cut` says of n sizes of one."""
    if not n:
        return [0] * (len(shares) + 1)
    cuts = np.cumsum(shares)[:-1] / shares.sum()
    ends = []
    for cut in cuts.tolist():
        # The first row whose middle lies beyond the cut, found near where it must be.
        row = max(int(cut * n) - 1, 0)
        while row < n and (row + 0.5) / n < cut:
            row += 1
        ends.append(row)
    return [0, *ends, n]


def _cut(sizes: Floats, shares: Floats) -> NDArray[np.int64]:
    """Put the sizes one after the other and return in which share the middle of each falls."""
    if not sizes.size:
        return np.zeros(0, dtype=np.int64)
    ends = np.cumsum(sizes)
    middles = (ends - sizes / 2) / ends[-1]
    cuts = np.cumsum(shares)[:-1] / shares.sum()
    return np.asarray(np.searchsorted(cuts, middles, side="right"), dtype=np.int64)


def _check_fractions(fractions: Mapping[str, float]) -> None:
    if not fractions:
        raise ParameterError("no fractions given; expected a share per split, summing to 1")
    for name, share in fractions.items():
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share <= 1:
            raise ParameterError(f"fraction of {name!r} is {share!r}; expected a share in (0, 1]")
    total = math.fsum(fractions.values())
    if abs(total - 1) > 1e-9:
        listed = ", ".join(f"{name} {share:g}" for name, share in fractions.items())
        raise ParameterError(f"fractions must sum to 1, but {listed} sum to {total:g}")


def _check_count(count: int, name: str, least: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        raise ParameterError(f"{name} is {count!r}; expected a whole number of at least {least}")


def _check_classes(place: NDArray[np.int8], favourable: Mask, names: list[str], least: int) -> None:
    """Refuse a division in which some split lacks rows of some class."""
    counts = {
        name: {sign: int(np.sum((place == k) & (favourable == sign))) for sign in (True, False)}
        for k, name in enumerate(names)
    }
    if min(min(count.values()) for count in counts.values()) < least:
        listed = "; ".join(
            f"{name}: {count[True]} favourable, {count[False]} not"
            for name, count in counts.items()
        )
        raise NotEnoughRowsError(
            f"too few rows for the split: {int(np.sum(place >= 0))} rows give {listed}; every "
            f"split needs at least {least} of each class. Bring more rows, or change the fractions"
        )
