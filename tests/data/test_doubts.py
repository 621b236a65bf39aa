"""Warnings worth having: each is given where it should be, and not where nothing is wrong."""

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.doubts import association, auc, doubts
from countermove.data.schema import Schema
from countermove.data.splits import split_table

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
    assert any("7 date(s) lie after '2024-01-01'" in warning for warning in warnings)


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
