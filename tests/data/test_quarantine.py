"""Wrong rows are set aside and listed; a table is refused only when too many are."""

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean, clean_rows
from countermove.data.files import read_table
from countermove.data.partitions import raw_partitions
from countermove.data.quarantine import set_aside
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.data.streaming import place_rows
from countermove.errors import DataError, SchemaError

FEATURES = {
    "income": {"kind": "numeric", "min": 0, "unit": "EUR"},
    "children": {"kind": "integer"},
    "job": {"kind": "onehot", "categories": ["clerk", "nurse"]},
}
SHARES = {"train": 0.5, "test": 0.5}
LABEL = {"column": "paid", "favourable": "yes"}


def described(**more):
    return Schema.from_mapping("loans", {"label": LABEL, "features": FEATURES} | more)


def people(n=100):
    return pd.DataFrame(
        {
            "income": [str(1000 + k) for k in range(n)],
            "children": [str(k % 3) for k in range(n)],
            "job": ["clerk", "nurse"] * (n // 2),
            "paid": ["yes", "no", "no", "yes"] * (n // 4),
        }
    )


def test_each_wrong_cell_is_one_line_with_what_was_found_and_expected():
    raw = people()
    raw.loc[3, "income"] = "much"
    raw.loc[7, "income"] = "-5"
    raw.loc[7, "job"] = "nurze"
    raw.loc[9, "children"] = ""
    read = clean_rows(raw, described())
    lines = read.quarantine.drop(columns="row_id").to_numpy().tolist()
    assert lines == [
        [3, "income", "much", "a number"],
        [7, "income", "-5", "at least 0 EUR"],
        [7, "job", "nurze", "one of 'clerk', 'nurse'"],
        [9, "children", "", "a value"],
    ]
    assert read.quarantine["row_id"].tolist() == ["r3", "r7", "r7", "r9"]
    rest = raw.drop(index=[3, 7, 9])
    pd.testing.assert_frame_equal(
        read.table.drop(columns="row_id"), clean(rest, described()).drop(columns="row_id")
    )
    # Without an id, a row is named by its number in the file, whoever was set aside before it.
    assert read.table["row_id"].tolist() == [f"r{row}" for row in rest.index]
    assert read.kept.tolist() == rest.index.tolist()


def test_a_sound_table_reads_the_same_either_way():
    read = clean_rows(people(), described())
    pd.testing.assert_frame_equal(read.table, clean(people(), described()))
    assert read.quarantine.empty


def test_more_wrong_rows_than_the_schema_allows_refuse_the_table_with_the_reasons():
    raw = people()
    raw.loc[:5, "income"] = "much"
    raw.loc[0, "job"] = "nurze"
    with pytest.raises(DataError, match=r"6 of 100 rows \(6.0%\)") as caught:
        clean_rows(raw, described())
    assert "6 × column 'income': expected a number, found 'much'" in str(caught.value)
    assert list(caught.value.rows) == list(range(6))
    assert len(clean_rows(raw, described(quarantine=0.06)).table) == 94
    with pytest.raises(DataError):
        clean_rows(raw, described(quarantine=0))


@pytest.mark.parametrize("share", [-0.1, 1, 5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(SchemaError, match="quarantine"):
        described(quarantine=share)


def test_the_share_is_no_part_of_what_a_model_reads():
    assert described(quarantine=0.2).digest() == described().digest()
    mapping = described(quarantine=0.2).to_mapping()
    assert Schema.from_mapping("loans", mapping).quarantine == 0.2
    assert "quarantine" not in described().to_mapping()


def test_a_table_that_lacks_a_column_is_refused_whole():
    raw = people()
    raw.loc[3, "income"] = "much"
    with pytest.raises(DataError, match=r"missing columns: 'job'(?s:.)*not a number"):
        clean_rows(raw.drop(columns="job"), described())


def test_a_constant_column_is_seen_once_wrong_rows_are_gone():
    raw = people()
    raw["children"] = "0"
    raw.loc[3, "children"] = "x"
    with pytest.raises(DataError, match="constant feature"):
        clean_rows(raw, described())


def test_of_equal_rows_with_one_id_the_first_is_kept_and_of_others_none():
    raw = people().assign(who=[f"p{k}" for k in range(100)])
    raw.loc[50] = raw.loc[10]
    raw.loc[60, "who"] = "p20"
    raw.loc[70, "who"] = ""
    read = clean_rows(raw, described(id="who"))
    assert read.quarantine["row"].tolist() == [20, 50, 60, 70]
    assert read.quarantine["expected"].tolist()[:3] == ["an id that no other row has"] * 3
    assert read.table["row_id"].tolist().count("p10") == 1


def test_a_recipe_reads_the_rows_that_it_can(schemas):
    raw, schema = read_embedded("german"), load_schema("german", schemas)
    broken = raw.copy()
    column = "credit_amount"
    broken.loc[[4, 44], column] = "long"
    read = clean_rows(broken, schema)
    assert sorted(set(read.quarantine["row"])) == [4, 44]
    whole = clean(raw, schema)
    keep = np.setdiff1d(np.arange(len(raw)), [4, 44])
    pd.testing.assert_frame_equal(read.table, whole.iloc[keep].reset_index(drop=True))


def test_an_entity_with_a_wrong_step_is_set_aside_whole():
    rng = np.random.default_rng(0)
    raw = pd.DataFrame(
        {
            "firm": np.repeat([f"f{k}" for k in range(50)], 3),
            "year": np.tile(["2020", "2021", "2022"], 50),
            "sales": rng.normal(size=150).round(3).astype(str),
            "paid": np.tile(["no", "no", "yes"], 25).tolist() + ["no"] * 75,
        }
    )
    schema = Schema.from_mapping(
        "firms",
        {
            "label": LABEL,
            "features": {"sales": {"kind": "numeric"}},
            "series": {"entity": "firm", "time": "year", "steps": 2},
        },
    )
    raw.loc[4, "sales"] = "lots"
    read = clean_rows(raw, schema)
    assert read.quarantine["row"].tolist() == [4]
    assert "f1" not in set(read.table["row_id"])
    assert len(read.table) == 49


def test_lines_that_are_no_rows_are_listed_and_counted(tmp_path):
    lines = people().to_csv(index=False).splitlines()
    lines.insert(11, "1,2")
    (tmp_path / "loans.csv").write_text("\n".join(lines))
    raw = read_table(tmp_path / "loans.csv")
    read = clean_rows(raw, described())
    assert len(read.table) == 100
    (line,) = read.quarantine.to_dict("records")
    assert read.quarantine["row"].isna().all()
    assert line["found"].startswith("line 12: ")
    assert set_aside(read.quarantine) == 1
    with pytest.raises(DataError, match=r"1 of 101 rows \(1\.0%\) cannot be used"):
        clean_rows(raw, described(quarantine=0.005))
    parts = place_rows(raw_partitions("loans", tmp_path, 30), described(), SHARES, 0)
    assert set_aside(parts.quarantine) == 1
    assert parts.n_lines == 101


def test_both_values_of_the_outcome_are_kept_and_a_third_one_is_no_unfavourable_one(tmp_path):
    raw = people()
    assert clean_rows(raw, described()).labels == ("yes", "no")
    raw.loc[70, "paid"] = "nope"
    with pytest.raises(DataError, match="has 3 values"):
        clean_rows(raw, described())
    raw.to_parquet(tmp_path / "loans.parquet")
    raw.loc[60:, "paid"] = raw.loc[60:, "paid"].replace("no", "nope")
    raw.to_parquet(tmp_path / "loans.parquet")
    with pytest.raises(DataError, match="has 3 values"):
        place_rows(raw_partitions("loans", tmp_path, 20), described(), SHARES, 0)
    both = described(label={**LABEL, "unfavourable": "no"}, quarantine=0.3)
    read = clean_rows(raw, both)
    assert set(read.quarantine["found"]) == {"nope"}
    assert set(read.quarantine["expected"]) == {"'yes' or 'no'"}
    placed = place_rows(raw_partitions("loans", tmp_path, 20), both, SHARES, 0)
    assert placed.quarantine["row"].tolist() == read.quarantine["row"].tolist()


def counted(missing="refuse"):
    """Return a schema with days from `hired` to `applied`, which people may lack."""
    reading = {"from": "hired", "date": "%d.%m.%Y", "as": "days", "until": "applied"}
    tenure = {"kind": "numeric", "change": "immutable", "read": reading, "missing": missing}
    return described(features=FEATURES | {"tenure": tenure}, quarantine=0.5)


@pytest.mark.parametrize("missing", ["refuse", "median"])
def test_a_moment_that_cannot_be_read_is_a_wrong_cell_and_no_missing_date(missing):
    n = 100
    raw = people().assign(hired=[f"{k % 28 + 1:02d}.01.2020" for k in range(n)])
    raw["applied"] = "01.03.2024"
    raw.loc[[3, 4], "applied"] = "soon"
    raw.loc[5, "applied"] = ""
    raw.loc[6, "hired"] = "long ago"
    raw.loc[4, "hired"] = ""
    read = clean_rows(raw, counted(missing))
    lines = read.quarantine.drop(columns="row_id").to_numpy().tolist()
    moment = [[3, "applied", "soon"], [4, "applied", "soon"], [5, "applied", ""]]
    wrong = [line[:3] for line in lines if line[3] == "a date"]
    assert wrong == [*moment, [6, "tenure", "long ago"]]
    gone = [line[:2] for line in lines if line[3] == "a value"]
    assert gone == ([[4, "tenure"]] if missing == "refuse" else [])
    assert not read.table["tenure"].isna().any()


def test_whoever_lacks_both_date_and_moment_lacks_the_date():
    raw = people().assign(hired=[f"{k % 28 + 1:02d}.01.2020" for k in range(100)])
    raw["applied"] = "01.03.2024"
    raw.loc[2, ["hired", "applied"]] = ""
    read = clean_rows(raw, counted("median"))
    assert read.quarantine.empty
    assert np.flatnonzero(read.table["tenure"].isna()).tolist() == [2]


def test_a_moment_that_is_a_feature_too_is_read_as_that_feature_is():
    raw = people().assign(hired=[f"{k % 28 + 1:02d}.01.2020" for k in range(100)])
    raw["applied"] = [f"2024-{k % 12 + 1:02d}-01" for k in range(100)]
    month = {"kind": "integer", "change": "immutable", "read": {"date": "iso", "as": "month"}}
    schema = counted()
    features = schema.to_mapping()["features"] | {"applied": month}
    read = clean_rows(raw, described(features=features))
    assert read.quarantine.empty
    assert read.table["tenure"].min() > 365


@pytest.mark.parametrize("mark", ["\x00", "\x07", "\n", "\x1b[2J", "\x7f", "\x85", "\u2028"])
def test_an_id_with_control_characters_is_set_aside_and_spelled_out(mark):
    raw = people().assign(person=[f"p{k}" for k in range(100)])
    raw.loc[3, "person"] = f"p{mark}3"
    read = clean_rows(raw, described(id="person"))
    assert read.quarantine[["row", "column", "expected"]].to_numpy().tolist() == [
        [3, "person", "an id without control characters"]
    ]
    (found,), (who,) = read.quarantine["found"], read.quarantine["row_id"]
    assert found == who == f"p{mark}3".encode("unicode_escape").decode()
    assert len(read.table) == 99
    with pytest.raises(DataError, match=r"control characters, in 1 row\(s\): 3"):
        clean(raw, described(id="person"))


def test_an_entity_with_control_characters_is_refused():
    features = {"income": FEATURES["income"]}
    series = {"entity": "firm", "time": "year", "steps": 1}
    raw = people().assign(firm=[f"f{k // 2}" for k in range(100)], year=[k % 2 for k in range(100)])
    raw.loc[[0, 1], "firm"] = "f\x000"
    schema = described(features=features, series=series, ignore=["children", "job"])
    read = clean_rows(raw, schema)
    assert set(read.quarantine["row"]) == {0, 1}
    assert len(read.table) == 49
