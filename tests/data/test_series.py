"""A table of several rows per entity becomes one row per entity, whatever the order of its rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countermove.data.checks import check_table
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.series import stacked_histories
from countermove.data.splits import split_table
from countermove.errors import DataError, ParameterError

Distress = Callable[[int, int], pd.DataFrame]

FIRMS: dict[str, Any] = {
    "series": {"entity": "firm", "time": "year"},
    "label": {"column": "health", "at_least": 0},
    "features": {
        "cash": {"kind": "numeric", "change": "up"},
        "size": {"kind": "ordered", "change": "both", "categories": ["small", "large"]},
        "home": {"kind": "binary", "group": "seat"},
        "abroad": {"kind": "binary", "group": "seat"},
    },
    "sensitive": ["sector"],
}


def firms(**series: Any) -> Schema:
    return Schema.from_mapping("firms", FIRMS | {"series": FIRMS["series"] | series})


@pytest.fixture
def raw() -> pd.DataFrame:
    """Three firms of 3, 2 and 1 years, and the last row of each named in cash."""
    return pd.DataFrame(
        {
            "firm": ["a", "a", "a", "b", "b", "c"],
            "year": ["2001", "2002", "2003", "2001", "2003", "2002"],
            "cash": ["1", "2", "3", "10", "30", "200"],
            "size": ["small", "large", "large", "large", "small", "large"],
            "home": ["1", "1", "0", "1", "0", "1"],
            "abroad": ["0", "0", "1", "0", "1", "0"],
            "sector": ["x", "x", "x", "y", "y", "x"],
            "health": ["", "5", "-1", "7", "0", "2"],
        },
        dtype="str",
    )


def test_the_last_step_stands_for_the_entity(raw: pd.DataFrame) -> None:
    table = clean(raw, firms())
    assert table["row_id"].tolist() == ["a", "b", "c"]
    assert table["cash"].tolist() == [3.0, 30.0, 200.0]
    # The outcome of earlier steps is not asked for; zero is still at least 0.
    assert table["label"].tolist() == [-1, 1, 1]
    check_table(table, firms())


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_does_not_matter(raw: pd.DataFrame, seed: int) -> None:
    schema = firms(steps=2, shorter="repeat_first", earlier=["cash"])
    shuffled = raw.sample(frac=1, random_state=seed)
    expected = clean(raw, schema).sort_values("row_id", ignore_index=True)
    found = clean(shuffled, schema).sort_values("row_id", ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


def test_earlier_steps_become_columns_that_nobody_can_change(raw: pd.DataFrame) -> None:
    schema = firms(steps=2)
    raw.loc[[1, 4], ["home", "abroad"]] = ["0", "1"], ["1", "0"]
    raw.loc[1, "size"] = "small"
    table = clean(raw, schema)
    assert table["row_id"].tolist() == ["a", "b"]
    assert table["cash_t-1"].tolist() == [2.0, 10.0]
    assert table["size_t-1"].tolist() == ["small", "large"]
    by_name = {column.name: column for column in schema.model_features()}
    assert {by_name[name].change for name in by_name if "_t-1" in name} == {"immutable"}
    assert (by_name["home_t-1"].group, by_name["home"].group) == ("seat_t-1", "seat")
    assert by_name["cash"].change == "up"


def test_short_histories_may_repeat_their_first_step(raw: pd.DataFrame) -> None:
    table = clean(raw, firms(steps=3, shorter="repeat_first", earlier=["cash"]))
    assert table["cash_t-2"].tolist() == [1.0, 10.0, 200.0]
    assert table["cash_t-1"].tolist() == [2.0, 10.0, 200.0]


def test_a_history_that_never_varies_is_left_out_by_name(raw: pd.DataFrame) -> None:
    steps = {"steps": 3, "shorter": "repeat_first"}
    with pytest.raises(
        DataError, match=r"'home_t-2': constant.* leave it out of `series.earlier:`"
    ):
        clean(raw, firms(**steps))
    assert "home_t-2" not in clean(raw, firms(**steps, earlier=["cash"]))


def test_histories_longer_than_any_are_refused(raw: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="no 'firm' has 4 steps; the longest has 3"):
        clean(raw, firms(steps=4))


@pytest.mark.parametrize(
    ("rows", "column", "cell", "expected"),
    [
        ((1,), "firm", "", "column 'firm': missing value"),
        ((1,), "year", "", "column 'year': missing value"),
        ((1,), "year", "then", "column 'year': neither a number nor a date"),
        ((0, 2), "year", "2003", r"two rows for one 'firm' and 'year' \(a at 2003\)"),
        ((0,), "cash", "lots", "column 'cash': not a number"),
        ((0,), "home", "0", "group 'seat': not exactly one of 'home', 'abroad' is 1"),
        ((2,), "health", "", "column 'health': missing value"),
        ((5,), "health", "ill", "the label 'health': not a number"),
    ],
)
def test_problems_name_the_rows_of_the_file(
    raw: pd.DataFrame, rows: tuple[int, ...], column: str, cell: str, expected: str
) -> None:
    raw.loc[list(rows), column] = cell
    with pytest.raises(DataError, match=expected) as caught:
        clean(raw, firms())
    assert set(rows) <= set(caught.value.rows)


@pytest.mark.parametrize(
    "times",
    [
        ["2001-05-01", "2001-05-02", "2001-06-01", "2000-01-01", "2003-01-01", "2002-02-02"],
        pd.to_datetime(["2001-05-01", "2001-05-02", "2001-06-01"] * 2).tolist(),
        [1, 2, 3, 1.5, 2.5, 9],
        ["9", "10", "11", "9", "10", "1"],
    ],
)
def test_times_are_numbers_or_dates(raw: pd.DataFrame, times: list[Any]) -> None:
    assert clean(raw.assign(year=times), firms())["cash"].tolist() == [3.0, 30.0, 200.0]


def test_a_threshold_must_divide_the_outcomes(raw: pd.DataFrame) -> None:
    content = FIRMS | {"label": {"column": "health", "at_most": 100}}
    with pytest.raises(DataError, match="every row has at most 100; expected both outcomes"):
        clean(raw, Schema.from_mapping("firms", content))


def test_the_distress_schema_fits_the_published_layout(schemas: Path, distress: Distress) -> None:
    schema = load_schema("distress", schemas)
    raw = distress(60, 0)
    table = clean(raw.astype("str"), schema)
    last = raw.sort_values("Time").groupby("Company").tail(1).set_index("Company")
    assert len(table) == 60
    assert len(schema.feature_names) == 82
    assert "x80" not in table
    companies = table["row_id"].astype(int)
    np.testing.assert_array_equal(table["x7"], last.loc[companies, "x7"])
    distressed = last.loc[companies, "Financial Distress"].to_numpy() < -0.5
    np.testing.assert_array_equal(table["label"] == -1, distressed)


def test_a_company_is_never_divided_between_splits(schemas: Path, distress: Distress) -> None:
    schema = load_schema("distress", schemas)
    table = clean(distress(120, 1), schema)
    shares = {"train": 0.5, "validation": 0.15, "calibration": 0.15, "test": 0.2}
    parts = split_table(table, schema, shares, seed=0)
    companies = pd.concat([part["row_id"] for part in parts.values()])
    assert companies.is_unique
    assert set(companies) == set(table["row_id"])


def test_the_spam_schema_fits_the_published_layout(schemas: Path) -> None:
    schema = load_schema("spam", schemas)
    rng = np.random.default_rng(0)
    raw = pd.DataFrame(rng.normal(size=(40, 15)), columns=list(schema.feature_names))
    raw["class1"] = np.where(rng.random(40) < 0.5, "spam", "notspam")
    table = clean(raw, schema)
    np.testing.assert_array_equal(table["label"] == 1, raw["class1"] == "notspam")


def parity(name: str) -> Any:
    folder = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not folder:
        pytest.skip("COUNTERMOVE_PARITY_DATA does not say where the parity tables are")
    return np.load(Path(folder) / "serm" / f"{name}.npz")


@pytest.fixture(scope="module")
def published() -> pd.DataFrame:
    """The SERM paper's company histories, laid out again as the public table is."""
    stored = parity("distress_series")
    X, lengths = stored["X"], stored["lengths"]
    parts = []
    for company, (steps, length) in enumerate(zip(X, lengths, strict=True)):
        part = pd.DataFrame(steps[14 - length :], columns=[f"f{j}" for j in range(82)])
        parts.append(part.assign(Company=company, Time=range(1, length + 1)))
    table = pd.concat(parts, ignore_index=True)
    table.columns = [f"x{int(c[1:]) + 1 + (int(c[1:]) >= 79)}" if c[0] == "f" else c for c in table]
    table["Financial Distress"] = np.repeat(np.where(stored["y"] == 1, 0.3, -0.7), lengths)
    return table.assign(x80=1).sample(frac=1, random_state=0)


def test_last_steps_equal_the_papers_table(published: pd.DataFrame, schemas: Path) -> None:
    """Standardised over the last steps and divided by the root of d, as published."""
    schema, stored = load_schema("distress", schemas), parity("distress")
    table = clean(published, schema)
    units = fit_standardiser(table, schema, divide_by_root_d=True)
    found = standardised_table(table, schema, units)
    X = found[list(schema.feature_names)].to_numpy()
    rows = [np.column_stack([y, Z]) for y, Z in ((found["label"], X), (stored["y0"], stored["X0"]))]
    ours, theirs = (part[np.lexsort(part.round(8).T)] for part in rows)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


LONG, SHORT = np.arange(6.0).reshape(3, 2), np.array([[7.0, 8.0]])


def test_unequal_lengths_need_a_rule():
    with pytest.raises(DataError, match="fewer than 3 steps") as caught:
        stacked_histories([LONG, SHORT, LONG, SHORT])
    assert caught.value.rows == (1, 3)


@pytest.mark.parametrize(("rule", "first"), [("zeros", [0.0, 0.0]), ("repeat_first", [7.0, 8.0])])
def test_the_last_step_stays_the_last(rule, first):
    stacked = stacked_histories([LONG, SHORT], shorter=rule)
    assert np.array_equal(stacked[0], LONG)
    assert stacked[1].tolist() == [first, first, [7.0, 8.0]]


def test_fewer_steps_keep_the_latest():
    assert np.array_equal(stacked_histories([LONG, SHORT], steps=1)[:, 0], [[4.0, 5.0], [7.0, 8.0]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no histories"),
        ([LONG, np.zeros(3)], r"shape \(steps, features\)"),
        ([LONG, np.zeros((0, 2))], "at least one step"),
        ([LONG, np.zeros((2, 3))], "2 features per step"),
    ],
)
def test_what_is_no_history_is_refused(given, words):
    with pytest.raises(DataError, match=words):
        stacked_histories(given)


def test_no_steps_are_refused():
    with pytest.raises(ParameterError, match="whole number"):
        stacked_histories([LONG], steps=0)


def test_the_last_step_of_a_series_has_a_time_to_be_split_by(raw: pd.DataFrame) -> None:
    schema = Schema.from_mapping("firms", FIRMS | {"time": "year", "group_by": "sector"})
    table = clean(raw, schema)
    last = raw.assign(year=raw["year"].astype(float)).groupby("firm")["year"].max()
    assert table.set_index("row_id")["year"].to_dict() == last.to_dict()
    check_table(table, schema)
