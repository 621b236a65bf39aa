"""Splits: a partition, stratified, twins together, the same for the same ids and seed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.errors import NotEnoughRowsError, ParameterError

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


def ids(splits: dict[str, pd.DataFrame]) -> dict[str, set[str]]:
    return {name: set(split["row_id"]) for name, split in splits.items()}


def test_shares_and_classes_are_met_up_to_a_row() -> None:
    table = people(1000)
    for name, split in split_table(table, SCHEMA, FRACTIONS, seed=1).items():
        for sign in (1, -1):
            wanted = FRACTIONS[name] * (table["label"] == sign).sum()
            assert abs((split["label"] == sign).sum() - wanted) <= 1


def test_shares_are_met_among_many_duplicates() -> None:
    table = people(20_000, distinct=3_000)
    for name, split in split_table(table, SCHEMA, FRACTIONS, seed=1).items():
        assert len(split) == pytest.approx(FRACTIONS[name] * len(table), rel=0.03)
        assert (split["label"] == 1).mean() == pytest.approx(0.3, abs=0.05)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from([-1, 1])), min_size=60, max_size=120),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_splits_are_a_partition_and_twins_stay_together(
    rows: list[tuple[int, int]], seed: int, halves: bool
) -> None:
    table = table_of([a for a, _ in rows], [label for _, label in rows])
    fractions = {"a": 0.5, "b": 0.5} if halves else {"a": 0.5, "b": 0.3, "c": 0.2}
    try:
        splits = split_table(table, SCHEMA, fractions, seed, min_per_class=1)
    except NotEnoughRowsError:
        assume(False)
    together = pd.concat(list(splits.values()))
    assert sorted(together["row_id"]) == sorted(table["row_id"])
    values = [set(split["a"]) for split in splits.values()]
    assert sum(len(found) for found in values) == len(set.union(*values))
    again = together.set_index("row_id").loc[table["row_id"]].reset_index()
    pd.testing.assert_frame_equal(again, table)


def test_the_same_seed_gives_the_same_split_and_another_a_different_one() -> None:
    table = people(300)
    first = ids(split_table(table, SCHEMA, FRACTIONS, seed=3))
    assert ids(split_table(table, SCHEMA, FRACTIONS, seed=3)) == first
    assert ids(split_table(table, SCHEMA, FRACTIONS, seed=4)) != first


@pytest.mark.parametrize("options", [{}, {"balance": True}, {"max_rows": 200}])
def test_the_order_of_the_file_does_not_matter(options: dict[str, Any]) -> None:
    table = people(500, distinct=300)
    shuffled = table.sample(frac=1, random_state=0)
    first = ids(split_table(table, SCHEMA, FRACTIONS, 3, **options))
    assert ids(split_table(shuffled, SCHEMA, FRACTIONS, 3, **options)) == first


def test_rows_keep_the_order_of_the_table() -> None:
    for split in split_table(people(300), SCHEMA, FRACTIONS, seed=3).values():
        numbers = split["row_id"].str.removeprefix("r").astype(int)
        assert numbers.is_monotonic_increasing
        assert isinstance(split.index, pd.RangeIndex)


def test_negative_zero_is_a_twin_of_zero_after_cleaning() -> None:
    from countermove.data.cleaning import clean

    raw = pd.DataFrame({"a": ["0", "-0.0", "5"], "b": ["low", "low", "high"], "y": [1, 0, 1]})
    table = clean(raw, SCHEMA)
    assert not np.signbit(table["a"]).any()


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


def test_twins_only_cannot_be_split() -> None:
    with pytest.raises(NotEnoughRowsError):
        split_table(table_of([1] * 100, [1, -1] * 50), SCHEMA, FRACTIONS, seed=1)


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
