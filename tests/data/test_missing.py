"""Cells without a value: what stands in for them, and who knows."""

import json

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean, clean_rows
from countermove.data.missing import lower_medians
from countermove.data.partitions import Partitions, write_parts
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import SUPPLY_PRICE, Schema
from countermove.data.standardise import Standardiser
from countermove.data.streaming import fit_standardiser as fit_parts
from countermove.errors import SchemaError

FEATURES = {
    "income": {"kind": "numeric", "change": "up", "min": 0, "missing": "median"},
    "loans": {"kind": "integer", "change": "down", "missing": 2},
    "rating": {"kind": "ordered", "categories": ["a", "b", "c", "d"], "missing": "median"},
    "owner": {"kind": "binary", "categories": ["no", "yes"], "missing": "mode"},
    "job": {"kind": "onehot", "categories": ["clerk", "nurse", "cook"], "missing": "own level"},
    "town": {"kind": "onehot", "categories": ["x", "y"], "missing": "mode"},
}
EMPTY = {"income": 3, "loans": 4, "rating": 5, "owner": 6, "job": 7, "town": 8}


def described(**changes):
    features = {name: entry | changes.get(name, {}) for name, entry in FEATURES.items()}
    label = {"column": "paid", "favourable": "yes"}
    return Schema.from_mapping("loans", {"label": label, "features": features})


def people(n=400, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": random.normal(2000, 300, n).round(2).astype(str),
            "loans": random.integers(0, 6, n).astype(str),
            "rating": random.choice(list("abcd"), n, p=[0.1, 0.5, 0.2, 0.2]),
            "owner": random.choice(["no", "yes"], n, p=[0.3, 0.7]),
            "job": random.choice(["clerk", "nurse", "cook"], n),
            "town": random.choice(["x", "y"], n, p=[0.2, 0.8]),
            "paid": random.choice(["yes", "no"], n),
        }
    )


def with_gaps(raw, every=10):
    holey = raw.copy()
    for k, name in enumerate(EMPTY):
        holey.loc[EMPTY[name] :: every + k, name] = ""
    return holey


def test_without_a_policy_rows_with_a_missing_cell_are_set_aside():
    raw = people()
    raw.loc[3, "income"] = ""
    read = clean_rows(raw, described(income={"missing": "refuse"}))
    assert read.quarantine[["row", "column", "expected"]].to_numpy().tolist() == [
        [3, "income", "a value"]
    ]
    assert clean_rows(raw, described()).quarantine.empty


def test_every_policy_fills_from_the_training_rows_and_marks_the_cell():
    schema, raw = described(), with_gaps(people())
    table = clean(raw, schema)
    unit = fit_standardiser(table, schema, divide_by_root_d=False)
    X = unit.inverse(rows_of(standardised_table(table, schema, unit), schema).X)
    place = {name: j for j, name in enumerate(schema.feature_names)}
    there = table["income"].dropna().sort_values().to_numpy()
    expected = {
        "income": there[(len(there) - 1) // 2],
        "loans": 2,
        "rating": 1,
        "owner": 1,
        "town=y": 1,
        "town=x": 0,
        "job=clerk": 0,
    }
    for name, value in expected.items():
        source = name.partition("=")[0]
        assert X[EMPTY[source], place[name]] == pytest.approx(value), name
    for name, row in EMPTY.items():
        marked = X[:, place[f"{name}=missing"]]
        assert marked == pytest.approx(table[name].isna().astype(float))
        assert marked[row] == pytest.approx(1.0)
    job = [place[f"job={level}"] for level in ("clerk", "nurse", "cook", "missing")]
    assert X[:, job].sum(axis=1) == pytest.approx(1.0)


def test_parts_give_the_same_fill_to_the_last_digit(tmp_path):
    schema = described()
    table = clean(with_gaps(people(5000)), schema)
    whole = fit_standardiser(table, schema, divide_by_root_d=False)
    pieces = [("train", table.iloc[k : k + 700]) for k in range(0, 5000, 700)]
    write_parts(pieces, tmp_path / "parts")
    files = tuple(sorted((tmp_path / "parts" / "train").glob("*.parquet")))
    parts = fit_parts(Partitions(files, 300), schema, divide_by_root_d=False)
    np.testing.assert_array_equal(parts.fill, whole.fill)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.scale, whole.scale, rtol=1e-12)


def test_medians_of_parts_are_those_of_all_values():
    random = np.random.default_rng(3)
    X = np.column_stack([random.normal(size=999), random.integers(-3, 4, 999), -random.random(999)])
    X[random.random(X.shape) < 0.2] = np.nan
    parts = np.array_split(X, 7)
    for k, found in enumerate(lower_medians(parts, [0, 1, 2])):
        values = np.sort(X[~np.isnan(X[:, k]), k])
        assert found == values[(len(values) - 1) // 2]


def test_a_cell_that_no_training_row_lacked_counts_as_the_usual_value_alone():
    schema = described()
    unit = fit_standardiser(clean(people(), schema), schema, divide_by_root_d=False)
    later = people(50, seed=1)
    later.loc[0, ["income", "job"]] = ""
    X = unit.transform(unit.inverse(unit.transform(np.zeros((1, unit.n_features)))))
    assert np.isfinite(X).all()
    frame = standardised_table(clean(later, schema), schema, unit)
    place = {name: j for j, name in enumerate(schema.feature_names)}
    row = unit.inverse(rows_of(frame, schema).X)[0]
    assert row[place["income=missing"]] == 0.0
    assert row[place["job=missing"]] == 0.0
    assert row[[place[f"job={level}"] for level in ("clerk", "nurse", "cook")]].sum() == (
        pytest.approx(1.0)
    )


def test_the_standardiser_carries_the_fill_and_those_of_earlier_releases_load():
    schema = described()
    unit = fit_standardiser(clean(with_gaps(people()), schema), schema, divide_by_root_d=False)
    text = json.dumps(unit.to_json(), allow_nan=False)
    assert Standardiser.from_json(json.loads(text)) == unit
    old = {key: value for key, value in unit.to_json().items() if key != "fill"}
    assert Standardiser.from_json(old).fill is None
    assert "fill" not in Standardiser.from_json(old).to_json()


def test_indicator_columns_are_features_that_nobody_can_change():
    found = {c.name: c for c in described().model_features() if c.indicator}
    assert list(found) == [f"{name}=missing" for name in FEATURES]
    assert {c.change for c in found.values()} == {"immutable"}
    assert found["job=missing"].group == "job"
    assert found["town=missing"].group is None
    supplied = described(income={"supply": 0.4}, job={"supply": True}, town={"supply": True})
    told = {c.source for c in supplied.model_features() if c.indicator and c.change == "down"}
    assert told == {"income", "town"}  # nobody can enter a category of an immutable own level


def test_what_supplying_costs_is_kept():
    plain, priced = described(income={"supply": True}), described(income={"supply": 0.4})
    assert plain.feature("income").missing.price == SUPPLY_PRICE
    assert priced.feature("income").missing.price == 0.4
    for schema in (plain, priced):
        assert Schema.from_mapping("loans", schema.to_mapping()) == schema


def test_the_policy_is_part_of_what_a_model_reads_and_supplying_is_not():
    schema = described()
    assert described(income={"missing": 0}).digest() != schema.digest()
    assert described(income={"supply": True}).digest() == schema.digest()
    assert Schema.from_mapping("loans", schema.to_mapping()) == schema


@pytest.mark.parametrize(
    ("column", "entry", "said"),
    [
        ("income", {"missing": "mode"}, "takes one of refuse, median, or a value"),
        ("income", {"missing": -5}, "outside min and max"),
        ("loans", {"missing": 1.5}, "whole numbers"),
        ("owner", {"missing": "perhaps"}, "no category of the column"),
        ("owner", {"missing": "own level"}, "takes one of refuse, mode"),
        ("income", {"supply": "often"}, "features.income.supply: must be true, false or what it"),
        ("income", {"supply": 0}, r"must be true, false or what it costs .* not 0"),
        ("income", {"supply": -1.5}, "must be true, false or what it costs"),
        ("income", {"supply": {"cost": 1}}, "must be true, false or what it costs"),
        ("income", {"missing": "refuse", "supply": True}, "rows without a value are set aside"),
        ("job", {"categories": ["missing", "nurse"]}, "is a category already"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(column, entry, said):
    with pytest.raises(SchemaError, match=said):
        described(**{column: entry})
