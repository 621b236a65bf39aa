"""Train, validation, calibration and test rows.

Every row draws its place from its id and the seed alone: neither its values nor
the order of the file matter, and each class is divided in the same proportions.
Rows stay together only where the schema declares an id that groups them
(``group_by``); with a time column (``time``) earlier rows are trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.parsing import texts
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.randomness import seed_of

Hashes = NDArray[np.uint64]
Place = NDArray[np.int8]


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
        Names the columns that group rows (``group_by``) and order them in time
        (``time``), where it does.
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
        One table per split, rows in the order of ``table``; together they hold each drawn
        row once.

        *By row* (neither column declared): each class is ordered by a hash of row id and
        seed and cut at the shares, so that it meets them up to one row. Equal rows are
        placed like any others. Each of m rows more of a class moves at most one of its
        earlier rows across a cut, and none of the other class.

        *By group*: groups whose rows are all favourable, all not, or both are ordered by a
        hash of the group's id and cut likewise, whole; a group is in a split with a
        probability of that split's share, however large it is.

        *By time*: the splits follow each other in time, in the order of ``fractions``. Rows of
        one time stay together, a group counts at its last time, and classes have the
        proportions they had at the time.

    Raises
    ------
    ParameterError
        If the fractions or counts make no sense.
    DataError
        If a declared column is absent or empty somewhere.
    NotEnoughRowsError
        If a split would hold too few rows of a class; the message has the numbers.
    """
    keys = row_keys(table, schema, seed)
    place = places(keys, fractions, seed, balance, max_rows, min_per_class)
    return {
        name: table[place == position].reset_index(drop=True)
        for position, name in enumerate(fractions)
    }


@dataclass(frozen=True)
class RowKeys:
    """All of a table that decides where its rows go: 17 bytes a row, 8 more per declared column."""

    # Pseudo-random numbers of id and seed: the order in which rows are drawn and placed.
    draw: Hashes
    place: Hashes
    favourable: Mask
    # A pseudo-random number of the group's id and the seed; a clash would only join two groups.
    group: Hashes | None = None
    # Numbers, or microseconds since 1970.
    time: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.favourable)

    def rows(self, chosen: Mask) -> RowKeys:
        """Return the keys of some rows."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value[chosen] for name, value in given.items()})

    @classmethod
    def joined(cls, parts: Iterable[RowKeys]) -> RowKeys:
        """Return the keys of a table from those of its parts."""
        names = [field.name for field in fields(cls)]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for part in parts:
            for name in names:
                columns[name].append(getattr(part, name))
        kinds = {times.dtype.kind for times in columns["time"] if times is not None}
        if len(kinds) > 1:
            raise DataError("the time column holds numbers in some parts and dates in others")
        # Joined one by one, so that no more than one of them is held twice.
        return cls(**{name: _joined(columns.pop(name)) for name in names})


def _joined(values: list[Any]) -> Any:
    return None if values[0] is None else np.concatenate(values)


def row_keys(table: pd.DataFrame, schema: Schema, seed: int) -> RowKeys:
    """Return the keys of a typed table, or of a part of one."""
    absent = [name for name in schema.split_columns if name not in table]
    if absent:
        raise DataError(
            f"table {schema.name!r} lacks {absent[0]!r}, by which its schema splits the rows; "
            "clean the raw table again"
        )
    ids = table[ROW_ID].to_numpy(dtype=object)
    return RowKeys(
        draw=_hashes(ids, seed, "rows drawn"),
        place=_hashes(ids, seed, "split"),
        favourable=table[LABEL].to_numpy() == 1,
        group=None if schema.group_by is None else _groups(table[schema.group_by], seed),
        time=None if schema.time is None else _times(table[schema.time]),
    )


def _hashes(words: NDArray[np.object_], seed: int, stage: str) -> Hashes:
    """Return a pseudo-random number per word that depends on it, the seed and the stage."""
    key = f"{seed_of(seed, stage):016x}"
    return pd.util.hash_array(words, hash_key=key, categorize=False)


def _groups(values: pd.Series, seed: int) -> Hashes:
    words = texts(values)
    _refuse_empty(words, "group_by")
    return _hashes(words.to_numpy(dtype=object), seed, "groups")


def _times(values: pd.Series) -> NDArray[Any]:
    """Return numbers, or the microseconds of dates: exact, where a float would round them."""
    _refuse_empty(values, "time")
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return np.asarray(values.dt.as_unit("us").astype("int64"))
    return values.to_numpy(np.float64)


def _refuse_empty(values: pd.Series, role: str) -> None:
    rows = np.flatnonzero(values.isna().to_numpy(np.bool_))
    if rows.size:
        raise DataError(
            f"column {values.name!r}, named under `{role}:`, is empty in rows {shown(rows)}; "
            "every row needs a value to be placed by",
            rows=rows,
        )


def places(
    keys: RowKeys,
    fractions: Mapping[str, float],
    seed: int,
    balance: bool = False,
    max_rows: int | None = None,
    min_per_class: int = 2,
) -> Place:
    """Return each row's split by position, or -1 if it is not drawn; see `split_table`."""
    _check_fractions(fractions)
    _check_count(min_per_class, "min_per_class", least=1)
    drawn = _drawn_rows(keys, balance=balance, max_rows=max_rows)
    place = np.full(len(keys), -1, dtype=np.int8)
    used = keys if drawn.all() else keys.rows(drawn)
    place[drawn] = _places(used, list(fractions.values()), seed)
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


def _places(keys: RowKeys, fractions: list[float], seed: int) -> Place:
    """Return the position of the split of each row."""
    shares = np.asarray(fractions, dtype=np.float64)
    if keys.time is not None:
        return _in_time(keys.time, keys.group, shares)
    if keys.group is not None:
        turn = seed_of(seed, "groups turned") / 2.0**63
        return _by_group(keys.group, keys.favourable, shares, turn)
    place = np.zeros(len(keys), dtype=np.int8)
    for sign in (False, True):
        members = np.flatnonzero(keys.favourable == sign)
        order = members[np.argsort(keys.place[members], kind="stable")]
        for position, (start, stop) in enumerate(pairwise(_ends(len(order), shares))):
            place[order[start:stop]] = position
    return place


def _by_group(groups: Hashes, favourable: Mask, shares: Floats, turn: float) -> Place:
    """Return the split of each row when groups stay whole, each kind of group in proportion."""
    # Sorted by hash, which is the order in which groups are placed.
    names, members = np.unique(groups, return_inverse=True)
    sizes = np.bincount(members)
    good = np.bincount(members, weights=favourable)
    place = np.zeros(len(names), dtype=np.int8)
    for kind in (good == 0, good == sizes, (good > 0) & (good < sizes)):
        place[kind] = _cut(sizes[kind], shares, turn)
    return place[members]


def _in_time(times: NDArray[Any], groups: Hashes | None, shares: Floats) -> Place:
    """Return the split of each row, the splits one after the other in time."""
    moments, when = np.unique(times, return_inverse=True)
    if groups is not None:
        names, members = np.unique(groups, return_inverse=True)
        last = np.zeros(len(names), dtype=when.dtype)
        np.maximum.at(last, members, when)
        when = last[members]
    return _cut(np.bincount(when, minlength=len(moments)), shares)[when]


def repeated(hashes: Hashes) -> Mask:
    """Return which values occur more than once."""
    ordered = np.sort(hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return np.isin(hashes, twice, kind="sort") if len(twice) else np.zeros(len(hashes), np.bool_)


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


def _cut(sizes: NDArray[np.intp], shares: Floats, turn: float = 0.0) -> Place:
    """Put the sizes one after the other and return in which share the middle of each falls."""
    # On a circle that is turned at random every middle is uniform, so that no size is favoured;
    # on a line that of a large group could never come near the ends.
    if not sizes.sum():
        return np.zeros(len(sizes), dtype=np.int8)
    ends = np.cumsum(sizes)
    middles = ((ends - sizes / 2) / ends[-1] + turn) % 1.0
    cuts = np.cumsum(shares)[:-1] / shares.sum()
    place: Place = np.searchsorted(cuts, middles, side="right").astype(np.int8)
    return place


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


def _check_classes(place: Place, favourable: Mask, names: list[str], least: int) -> None:
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
