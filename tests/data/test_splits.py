"""Splits: a partition by id, group or time, the same for the same ids and seed."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.errors import DataError, NotEnoughRowsError, ParameterError

FRACTIONS = {"train": 0.6, "validation": 0.1, "calibration": 0.1, "test": 0.2}
SCHEMA = Schema.from_mapping(
    "two",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {
            "a": {"kind": "numeric"},
            "b": {"kind": "ordered", "categories": ["low", "high"]},
        },
    },
)
GROUPED = replace(SCHEMA, group_by="house")
TIMED = replace(SCHEMA, time="day")
BOTH = replace(SCHEMA, group_by="house", time="day")


def table_of(a: Any, label: Any) -> pd.DataFrame:
    n = len(a)
    return pd.DataFrame(
        {
            "row_id": pd.Series([f"r{row}" for row in range(n)], dtype="str"),
            "a": np.asarray(a, dtype=np.float64),
            "b": pd.Series(np.where(np.asarray(a) > 3, "high", "low"), dtype="str"),
            "label": np.asarray(label, dtype=np.int64),
        }
    )


def people(n: int, favourable: float = 0.3, distinct: int | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    a = rng.integers(0, distinct, n) if distinct else rng.standard_normal(n)
    return table_of(a, np.where(rng.random(n) < favourable, 1, -1))


def households(n: int, groups: int, days: int = 40) -> pd.DataFrame:
    """Return people of households of very different sizes, and the day each came."""
    rng = np.random.default_rng(n)
    house = (groups * rng.random(n) ** 2).astype(int)
    return people(n).assign(
        house=pd.Series([f"h{number}" for number in house], dtype="str"),
        day=rng.integers(0, days, n).astype(np.float64),
    )


def ids(splits: dict[str, pd.DataFrame]) -> dict[str, set[str]]:
    return {name: set(split["row_id"]) for name, split in splits.items()}


def test_shares_and_classes_are_met_up_to_a_row() -> None:
    table = people(1000)
    for name, split in split_table(table, SCHEMA, FRACTIONS, seed=1).items():
        for sign in (1, -1):
            wanted = FRACTIONS[name] * (table["label"] == sign).sum()
            assert abs((split["label"] == sign).sum() - wanted) <= 1


ROWS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from([-1, 1])), min_size=40, max_size=120)
SEEDS = st.integers(0, 2**32)
SHARES = st.sampled_from([{"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}])


@settings(max_examples=80, deadline=None)
@given(ROWS, SEEDS, SHARES)
def test_rows_are_placed_by_id_alone(
    rows: list[tuple[int, int]], seed: int, fractions: dict[str, float]
) -> None:
    """A partition whose classes meet their shares up to a row, whatever the rows hold."""
    table = table_of([a for a, _ in rows], [label for _, label in rows])
    assume(6 * min(np.sum(table["label"] == sign) for sign in (1, -1)) > len(table))
    splits = split_table(table, SCHEMA, fractions, seed, min_per_class=1)
    together = pd.concat(list(splits.values()))
    again = together.set_index("row_id").loc[table["row_id"]].reset_index()
    pd.testing.assert_frame_equal(again, table)
    for name, split in splits.items():
        for sign in (1, -1):
            wanted = fractions[name] * np.sum(table["label"] == sign)
            assert abs(np.sum(split["label"] == sign) - wanted) <= 1
    other = table.assign(a=0.0, b="low")
    assert ids(split_table(other, SCHEMA, fractions, seed, min_per_class=1)) == ids(splits)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=12), SEEDS, SHARES)
def test_rows_that_come_later_move_no_more_than_they_must(
    rows: list[tuple[int, int]], added: list[int], seed: int, fractions: dict[str, float]
) -> None:
    """Each row more moves at most one earlier row of its class across a cut, none of the other."""
    labels = [label for _, label in rows]
    assume(6 * min(labels.count(sign) for sign in (1, -1)) > len(labels))
    before = split_table(table_of(labels, labels), SCHEMA, fractions, seed, min_per_class=1)
    more = labels + added
    after = split_table(table_of(more, more), SCHEMA, fractions, seed, min_per_class=1)
    for sign in (1, -1):
        known = {f"r{row}" for row, label in enumerate(labels) if label == sign}
        first, then = set(), set()
        for name in fractions:
            first |= ids(before)[name] & known
            then |= ids(after)[name] & known
            assert first <= then or then <= first
            assert len(first ^ then) <= added.count(sign)


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ({}, "16ee88ae07afbda6"),
        ({"balance": True}, "eb208525ab31f4ba"),
        ({"max_rows": 200}, "5d27dfc0ac4149a3"),
    ],
)
def test_rows_without_equals_stay_where_registries_froze_them(
    options: dict[str, Any], digest: str
) -> None:
    """Digests of the release that kept equal rows together: hold-outs without them stand."""
    parts = split_table(people(500), SCHEMA, FRACTIONS, 3, **options)
    text = "|".join(",".join(part["row_id"]) for part in parts.values())
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 9), st.sampled_from([-1, 1])),
        min_size=40,
        max_size=120,
    ),
    SEEDS,
    SHARES,
    st.randoms(use_true_random=False),
    st.sampled_from([SCHEMA, GROUPED, TIMED, BOTH]),
)
def test_groups_and_times_stay_whole_in_any_order_of_the_file(
    rows: list[tuple[int, int, int]],
    seed: int,
    fractions: dict[str, float],
    random: Any,
    schema: Schema,
) -> None:
    table = table_of(range(len(rows)), [label for *_, label in rows]).assign(
        house=pd.Series([f"h{house}" for house, *_ in rows], dtype="str"),
        day=np.array([day for _, day, _ in rows], dtype=np.float64),
    )
    try:
        splits = split_table(table, schema, fractions, seed, min_per_class=1)
    except NotEnoughRowsError:
        assume(False)
    order = list(range(len(table)))
    random.shuffle(order)
    assert ids(split_table(table.iloc[order], schema, fractions, seed, min_per_class=1)) == ids(
        splits
    )
    assert sum(map(len, splits.values())) == len(table)
    if schema.group_by is not None:
        houses = [set(split["house"]) for split in splits.values()]
        assert sum(map(len, houses)) == len(set.union(*houses))
    if schema.time is not None:
        last = table.groupby("house")["day"].max() if schema.group_by else None
        counted = [s["day"] if last is None else s["house"].map(last) for s in splits.values()]
        for earlier, later in pairwise(counted):
            assert earlier.max() < later.min()


def test_groups_meet_the_shares_up_to_their_size() -> None:
    table = households(4_000, 600)
    largest = table.groupby("house").size().max()
    for name, split in split_table(table, GROUPED, FRACTIONS, seed=1).items():
        assert abs(len(split) - FRACTIONS[name] * len(table)) <= 3 * largest
        assert (split["label"] == 1).mean() == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("size", [1, 40, 100])
def test_a_group_falls_into_a_split_as_often_as_its_share_says(size: int) -> None:
    """Whether it is one row or a sixth of the table: none is favoured."""
    n, draws = 600, 300
    houses = ["large"] * size + [f"h{row // 3}" for row in range(n - size)]
    table = table_of(range(n), [1, -1] * (n // 2)).assign(house=pd.Series(houses, dtype="str"))
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    found = dict.fromkeys(shares, 0)
    for seed in range(draws):
        splits = split_table(table, GROUPED, shares, seed, min_per_class=1)
        found[next(name for name, split in splits.items() if "r0" in set(split["row_id"]))] += 1
    for name, share in shares.items():
        assert binomtest(found[name], draws, share).pvalue > 1e-3


def test_time_splits_follow_each_other_and_meet_the_shares_up_to_a_tie() -> None:
    table = households(2_000, 500, days=200)
    splits = split_table(table, TIMED, FRACTIONS, seed=1)
    largest = table.groupby("day").size().max()
    for name, split in splits.items():
        assert abs(len(split) - FRACTIONS[name] * len(table)) <= largest
    assert ids(splits) == ids(split_table(table, TIMED, FRACTIONS, seed=2))  # no chance in it


def test_dates_are_times_and_nobody_is_trained_on_after_the_cut() -> None:
    table = households(2_000, 900, days=300)
    dates = pd.to_datetime("2024-01-01", utc=True) + pd.to_timedelta(table["day"], unit="D")
    dated = table.assign(day=dates.dt.as_unit("us"))
    for schema in (TIMED, BOTH):
        parts = split_table(dated, schema, FRACTIONS, seed=1)
        assert ids(parts) == ids(split_table(table, schema, FRACTIONS, seed=1))
        cut = parts["train"]["day"].max()
        last = (
            parts["test"].groupby("house")["day"].max() if schema is BOTH else parts["test"]["day"]
        )
        assert (last > cut).all()


@pytest.mark.parametrize(
    ("schema", "change", "says"),
    [
        (GROUPED, lambda t: t.drop(columns="house"), "lacks 'house', by which its schema splits"),
        (TIMED, lambda t: t.drop(columns="day"), "lacks 'day'"),
        (GROUPED, lambda t: t.assign(house=t["house"].mask(t.index == 3)), "`group_by:`.*rows 3"),
        (GROUPED, lambda t: t.assign(house=t["house"].mask(t.index == 3, " ")), "empty in rows 3"),
        (TIMED, lambda t: t.assign(day=t["day"].mask(t.index == 5)), "`time:`.*rows 5"),
    ],
)
def test_rows_without_a_group_or_a_time_are_named(schema: Schema, change: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        split_table(change(households(300, 100)), schema, FRACTIONS, seed=1)


def test_one_group_cannot_be_split() -> None:
    table = table_of(range(100), [1, -1] * 50).assign(house="all", day=7.0)
    for schema in (GROUPED, TIMED):
        with pytest.raises(NotEnoughRowsError):
            split_table(table, schema, FRACTIONS, seed=1)


def test_the_same_seed_gives_the_same_split_and_another_a_different_one() -> None:
    for table, schema in ((people(300), SCHEMA), (households(300, 90), GROUPED)):
        first = ids(split_table(table, schema, FRACTIONS, seed=3))
        assert ids(split_table(table, schema, FRACTIONS, seed=3)) == first
        assert ids(split_table(table, schema, FRACTIONS, seed=4)) != first


@pytest.mark.parametrize("options", [{}, {"balance": True}, {"max_rows": 200}])
@pytest.mark.parametrize("schema", [SCHEMA, GROUPED, TIMED, BOTH])
def test_the_order_of_the_file_does_not_matter(schema: Schema, options: dict[str, Any]) -> None:
    table = households(500, 150)
    shuffled = table.sample(frac=1, random_state=0)
    first = ids(split_table(table, schema, FRACTIONS, 3, **options))
    assert ids(split_table(shuffled, schema, FRACTIONS, 3, **options)) == first


def test_rows_keep_the_order_of_the_table() -> None:
    for split in split_table(people(300), SCHEMA, FRACTIONS, seed=3).values():
        numbers = split["row_id"].str.removeprefix("r").astype(int)
        assert numbers.is_monotonic_increasing
        assert isinstance(split.index, pd.RangeIndex)


def test_balance_draws_as_many_of_each_class() -> None:
    table = people(1000, favourable=0.2)
    splits = split_table(table, SCHEMA, FRACTIONS, seed=1, balance=True)
    drawn = pd.concat(list(splits.values()))
    assert (drawn["label"] == 1).sum() == (drawn["label"] == -1).sum()
    assert (drawn["label"] == 1).sum() == (table["label"] == 1).sum()
    for split in splits.values():
        assert abs(split["label"].sum()) <= 2


def test_max_rows_caps_and_keeps_the_proportions() -> None:
    table = people(1000, favourable=0.2)
    splits = split_table(table, SCHEMA, FRACTIONS, seed=1, max_rows=300)
    drawn = pd.concat(list(splits.values()))
    assert len(drawn) == 300
    assert (drawn["label"] == 1).mean() == pytest.approx((table["label"] == 1).mean(), abs=0.005)


def test_balance_and_max_rows_go_together() -> None:
    splits = split_table(people(1000), SCHEMA, FRACTIONS, seed=1, balance=True, max_rows=301)
    drawn = pd.concat(list(splits.values()))
    assert (drawn["label"] == 1).sum() == (drawn["label"] == -1).sum() == 150


def test_a_cap_above_the_size_changes_nothing() -> None:
    table = people(300)
    capped = ids(split_table(table, SCHEMA, FRACTIONS, 1, max_rows=10_000))
    assert capped == ids(split_table(table, SCHEMA, FRACTIONS, 1))


def test_too_few_rows_are_refused_with_the_numbers() -> None:
    with pytest.raises(NotEnoughRowsError, match=r"8 rows give train: .* at least 2 of each class"):
        split_table(table_of(range(8), [1, -1] * 4), SCHEMA, FRACTIONS, seed=1)


def test_too_few_rows_of_one_class_are_refused() -> None:
    label = [1] * 300 + [-1] * 3
    with pytest.raises(NotEnoughRowsError, match="validation: 30 favourable, 0 not"):
        split_table(table_of(range(303), label), SCHEMA, FRACTIONS, seed=1)


def test_equal_rows_are_split_like_any_others() -> None:
    parts = split_table(table_of([1] * 100, [1, -1] * 50), SCHEMA, FRACTIONS, seed=1)
    assert [len(part) for part in parts.values()] == [60, 10, 10, 20]


@pytest.mark.parametrize(
    "fractions",
    [
        {},
        {"train": 0.5, "test": 0.4},
        {"train": 1.5, "test": -0.5},
        {"train": 1.0, "test": 0.0},
        {"train": float("nan"), "test": 0.5},
        {"train": "0.5", "test": 0.5},
        {"train": True},
    ],
)
def test_fractions_that_make_no_sense_are_refused(fractions: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="fraction"):
        split_table(people(100), SCHEMA, fractions, seed=1)


@pytest.mark.parametrize("options", [{"max_rows": 0}, {"max_rows": 2.5}, {"min_per_class": 0}])
def test_counts_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="expected a whole number of at least"):
        split_table(people(100), SCHEMA, FRACTIONS, 1, **options)


@pytest.mark.slow
def test_a_million_rows_take_seconds() -> None:
    table = people(1_000_000)
    start = time.perf_counter()
    split_table(table, SCHEMA, FRACTIONS, seed=1)
    assert time.perf_counter() - start < 10
