"""Warnings worth having: each is given where it should be, and not where nothing is wrong."""

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean, clean_rows
from countermove.data.doubts import (
    association,
    auc,
    doubts,
    equal_rows,
    feature_hashes,
    protected_features,
)
from countermove.data.partitions import Partitions
from countermove.data.report import SplitPlan, report_on
from countermove.data.schema import Schema
from countermove.data.splits import split_table
from countermove.data.streaming import place_rows
from countermove.errors import SchemaError

SHARES = {"train": 0.6, "test": 0.4}


def found(table, *, features=None, **more):
    features = features or {}
    numeric = [name for name in table if name not in ("paid", "when", "group")]
    mapping = {
        "label": {"column": "paid", "favourable": 1},
        "features": {
            name: {"kind": "numeric", "change": "both"} | features.get(name, {}) for name in numeric
        },
    }
    schema = Schema.from_mapping("loans", mapping | more)
    typed = clean(table, schema)
    return list(doubts(typed, schema, split_table(typed, schema, SHARES, 0)))


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    n = 2000
    return pd.DataFrame(
        {
            "income": random.normal(size=n),
            "savings": random.normal(size=n),
            "paid": random.integers(0, 2, n),
        }
    )


def test_an_ordinary_table_draws_no_warning(table):
    assert found(table) == []


def test_a_column_that_tells_the_outcomes_apart_is_a_leak(table):
    random = np.random.default_rng(1)
    table["fee"] = table["paid"] * 3.0 + random.normal(size=len(table))
    (warning,) = found(table)
    assert "'fee' alone tells the outcomes apart with an AUC of 0.9" in warning
    table["fee"] = table["paid"] * 1.0 + random.normal(size=len(table))
    assert found(table) == []


def test_words_are_judged_on_rows_that_they_were_not_learned_from():
    random = np.random.default_rng(2)
    good = random.integers(0, 2, 4000) == 1
    assert auc(pd.Series(random.choice([f"w{k}" for k in range(800)], 4000)), good) < 0.6
    told = np.where(random.random(4000) < 0.98, good, ~good)
    assert auc(pd.Series(np.where(told, "x", "y")), good) > 0.95


def test_a_column_filled_for_one_outcome_only_is_a_leak(table):
    table["recovered"] = np.where(table["paid"] == 1, np.nan, table["income"] ** 2)
    table.loc[table.index % 2 == 0, "recovered"] = np.nan
    (warning,) = found(table, features={"recovered": {"missing": "median"}})
    assert "'recovered' is filled for one outcome only" in warning


def test_dates_after_the_moment_up_to_which_is_counted_are_named(table):
    table["closed"] = np.where(table.index < 7, "2024-03-01", "2023-01-01")
    reading = {"date": "iso", "as": "days", "until": "2024-01-01"}
    warnings = found(table, features={"closed": {"read": reading}})
    assert any("7 of 2000 date(s) lie after '2024-01-01'" in warning for warning in warnings)


READINGS = {
    "month": {"read": {"date": "%d.%m.%Y", "as": "month"}},
    "age": {"read": {"date": "%d.%m.%Y", "as": "age", "until": "2025-12-31"}},
    "until another column": {"read": {"date": "%d.%m.%Y", "as": "days", "until": "applied"}},
}


@pytest.fixture
def dated(table):
    """A table whose first 300 rows hold a date after the day of the outcome, 100 on that day."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(table)) % 300, unit="D")
    apart = np.select([table.index < 300, table.index < 400], [2, 0], -30)
    closed = days + pd.to_timedelta(apart, unit="D")
    extra = {"decided": days.strftime("%Y-%m-%d 09:30"), "closed": closed.strftime("%d.%m.%Y")}
    return table.assign(**extra, applied=(days - pd.Timedelta(days=90)).strftime("%Y-%m-%d"))


def schema_of_dates(kind, **more):
    entries = {"income": {}, "savings": {}, "closed": READINGS[kind]}
    features = {name: {"kind": "numeric", "change": "both"} | e for name, e in entries.items()}
    label = {"column": "paid", "favourable": 1} | more.pop("label", {})
    return Schema.from_mapping("loans", {"label": label, "features": features} | more)


@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize("key", ["label.date", "time"])
def test_dates_after_the_outcome_are_named_whatever_becomes_of_them(dated, kind, key):
    unread = [] if kind == "until another column" else ["applied"]
    named = {"label": {"date": "decided"}} if key == "label.date" else {"time": "decided"}
    named |= {"read": {"applied": {"date": "iso"}}} if not unread else {"ignore": unread}
    schema = schema_of_dates(kind, **named)
    read = clean_rows(dated, schema)
    assert read.late == {"closed": 300}
    said = [w for w in doubts(read.table, schema, late=read.late) if "'closed'" in w]
    assert said[0].startswith("column 'closed': 300 of 2000 date(s) lie after 'decided'; was it")
    assert sum("lie after" in warning for warning in said) == 1
    report = report_on(dated, schema, SplitPlan(SHARES))
    assert any("300 of 2000 date(s) lie after 'decided'" in text for text in report.warnings)


def test_without_a_day_of_the_outcome_or_with_numbers_for_it_nothing_is_compared(dated):
    plain = schema_of_dates("month", ignore=["decided", "applied"])
    assert clean_rows(dated, plain).late == {}
    numbered = dated.assign(decided=np.arange(len(dated)) + 2000)
    ordered = schema_of_dates("month", time="decided", ignore=["applied"])
    assert clean_rows(numbered, ordered).late == {}
    absent = schema_of_dates("month", label={"date": "decidde"}, ignore=["decided", "applied"])
    report = report_on(dated, absent, SplitPlan(SHARES))
    assert any("label.date names 'decidde', which the table does not" in w for w in report.warnings)


def test_parts_count_equal_rows_and_late_dates_as_the_whole_table_does(dated, tmp_path):
    schema = schema_of_dates("age", label={"date": "decided"}, ignore=["applied"])
    dated.loc[5:9, ["income", "savings", "closed"]] = [0.5, 0.25, "01.03.2023"]
    dated.loc[5:9, "paid"] = [1, 1, 0, 1, 1]
    dated.loc[20:21, ["income", "savings", "closed"]] = [0.75, 0.25, "01.03.2023"]
    dated.loc[20:21, "paid"] = 1
    whole = clean_rows(dated, schema)
    found = equal_rows(feature_hashes(whole.table, schema), (whole.table["label"] == 1).to_numpy())
    assert found == (7, 5)
    dated.to_csv(tmp_path / "loans.csv", index=False)
    placed = place_rows(Partitions((tmp_path / "loans.csv",), 300), schema, SHARES, 0)
    assert placed.alike == found
    assert placed.late == whole.late == {"closed": 293}


def test_the_day_of_the_outcome_is_no_part_of_what_a_rule_reads(dated):
    with_it = schema_of_dates("month", label={"date": "decided"}, ignore=["applied"])
    assert with_it.digest() == schema_of_dates("month", ignore=["applied"]).digest()
    assert Schema.from_mapping("loans", with_it.to_mapping()) == with_it
    with pytest.raises(SchemaError, match=r"label\.date: is 'applied', which is the label, the id"):
        schema_of_dates("month", label={"date": "applied"}, ignore=["applied"])


@pytest.mark.parametrize(
    "name", ["WHITE", "MALE", "Geschlecht", "sexe", "edad", "nazionalità", "płeć", "race_code"]
)
def test_protected_groups_are_known_by_name_in_several_languages(table, name):
    table[name] = np.random.default_rng(3).integers(0, 2, len(table))
    (warning,) = found(table)
    assert f"{name!r}: by the name a protected group" in warning
    assert found(table.rename(columns={name: "tenure"})) == []


def test_a_feature_that_a_sensitive_column_explains_is_a_proxy(table):
    random = np.random.default_rng(4)
    table["group"] = random.choice(["a", "b"], len(table))
    table["district"] = (table["group"] == "a") * 5.0 + random.normal(size=len(table))
    (warning,) = found(table, sensitive=["group"])
    assert "'district' stands in for the sensitive 'group' (association 0.9" in warning
    words = pd.Series(np.where(table["group"] == "a", "x", "y"))
    assert association(words, table["group"]) == pytest.approx(1.0)
    assert association(table["income"], table["group"]) < 0.1


def test_protected_features_are_declared_named_or_stand_in(table):
    random = np.random.default_rng(4)
    table["group"] = random.choice(["a", "b"], len(table))
    table["district"] = (table["group"] == "a") * 5.0 + random.normal(size=len(table))
    table["MALE"] = random.integers(0, 2, len(table))
    features = ("income", "savings", "district", "MALE")
    mapping = {
        "label": {"column": "paid", "favourable": 1},
        "features": {name: {"kind": "numeric", "change": "both"} for name in features},
    }
    schema = Schema.from_mapping("loans", mapping | {"sensitive": ["group"]})
    found = protected_features(table, schema)
    assert found.keys() == {"district", "MALE"}
    assert found["MALE"] == {}
    assert found["district"]["group"] > 0.9
    declared = Schema.from_mapping("loans", mapping | {"sensitive": ["income"]})
    assert protected_features(table, declared) == {"income": {"income": 1.0}, "MALE": {}}


def test_copies_and_row_numbers_are_named(table):
    table["wage"] = 12.0 * table["income"] + 3.0
    table["number"] = np.random.default_rng(5).permutation(len(table))
    warnings = found(table)
    assert any("'income' and 'wage' say the same" in warning for warning in warnings)
    assert any("'number' is different in every row" in warning for warning in warnings)


def test_what_differs_between_splits_and_months_is_said(table):
    table["when"] = pd.date_range("2024-01-01", periods=len(table), freq="3h").astype(str)
    table["income"] += np.linspace(0, 3, len(table))
    warnings = found(table, time="when")
    assert any("'income' differ(s) between the rows of train and of test" in w for w in warnings)
    assert any("'income' differ(s) between 2024-01 and 2024-09" in w for w in warnings)
    assert not any("'savings'" in w for w in warnings)


def test_a_shuffled_outcome_hardly_ever_warns():
    random = np.random.default_rng(6)
    warned = 0
    for _ in range(60):
        n = int(random.integers(60, 400))
        columns = {f"c{k}": random.normal(size=n) for k in range(6)}
        columns |= {"level": random.integers(0, 3, n), "paid": random.integers(0, 2, n)}
        warned += bool(found(pd.DataFrame(columns)))
    assert warned == 0
