"""In parts or in one piece: the same rows in the same splits, in the same units."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean, clean_rows
from countermove.data.partitions import Partitions, raw_partitions, read_parts, write_parts
from countermove.data.recipes import apply_recipe
from countermove.data.rows import fit_standardiser as fit_whole
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.data.splits import split_table
from countermove.data.streaming import (
    Moments,
    cleaned_parts,
    fit_standardiser,
    place_rows,
    split_parts,
    standardised_parts,
)
from countermove.errors import DataError, ParameterError

ROOT = Path(__file__).parents[2]
SHARES = {"train": 0.5, "validation": 0.15, "calibration": 0.15, "test": 0.2}


@pytest.fixture(scope="module")
def german() -> tuple[pd.DataFrame, Schema]:
    return read_embedded("german"), load_schema("german", ROOT / "conf" / "base" / "schemas")


def cut(raw: pd.DataFrame, folder: Path, n_files: int) -> Partitions:
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(raw)), n_files)):
        raw.iloc[rows].to_parquet(folder / f"{k:03d}.parquet", index=False)
    return raw_partitions(folder.name, folder.parent, rows_per_part=250)


FILES, DRAWS = (1, 3, 6), ({}, {"balance": True}, {"max_rows": 301})
ROLES = ({"group_by": "house"}, {"time": "day"}, {"group_by": "house", "time": "day"})


def grid(first, second):
    """Every pair; those off the diagonal, which show each value once more, are slow."""
    return [
        pytest.param(one, other, marks=() if i == j else pytest.mark.slow)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]


@pytest.mark.parametrize(("n_files", "draw"), grid(FILES, DRAWS))
def test_splits_are_those_of_the_whole_table(german, tmp_path, n_files, draw):
    raw, schema = german
    parts = cut(raw, tmp_path / "german", n_files)
    place = place_rows(parts, schema, SHARES, 3, **draw).place
    write_parts(split_parts(parts, schema, place, SHARES), tmp_path / "out")
    found = read_parts(tmp_path / "out")
    expected = split_table(clean(raw, schema), schema, SHARES, 3, **draw)
    assert set(found) == set(expected)
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name].read(), table, check_dtype=False)


@pytest.mark.parametrize(("roles", "draw"), grid(ROLES, DRAWS))
def test_groups_and_times_are_those_of_the_whole_table(german, tmp_path, roles, draw):
    raw, schema = german
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, len(raw)), unit="D")
    raw = raw.assign(
        house=(200 * rng.random(len(raw)) ** 2).astype(int), day=days.strftime("%Y-%m-%d")
    )
    kept = [*schema.raw_columns, *roles.values()]
    named = apply_recipe(raw, schema).assign(**{name: raw[name] for name in roles.values()})
    schema = replace(schema, cleaning=None, **roles)
    parts = cut(named[kept], tmp_path / "german", 3)
    place = place_rows(parts, schema, SHARES, 3, **draw).place
    write_parts(split_parts(parts, schema, place, SHARES), tmp_path / "out")
    found = read_parts(tmp_path / "out")
    expected = split_table(clean(named[kept], schema), schema, SHARES, 3, **draw)
    for name, table in expected.items():
        pd.testing.assert_frame_equal(found[name].read(), table, check_dtype=False)


def test_times_of_two_kinds_in_two_parts_are_refused(tmp_path):
    raw = pd.DataFrame({"x": np.arange(40.0), "y": [0, 1] * 20, "day": ["2024-01-05"] * 40})
    raw.loc[20:, "day"] = "2024"
    described = {"label": {"column": "y", "favourable": 1}, "features": {"x": {"kind": "numeric"}}}
    schema = Schema.from_mapping("days", described | {"time": "day"})
    with pytest.raises(DataError, match="numbers in some parts and dates in others"):
        place_rows(cut(raw, tmp_path / "days", 2), schema, SHARES, 0)


def test_units_are_those_of_the_whole_table_up_to_rounding(german, tmp_path):
    raw, schema = german
    parts = cut(raw, tmp_path / "german", 5)
    place = place_rows(parts, schema, SHARES, 0).place
    write_parts(split_parts(parts, schema, place, SHARES), tmp_path / "out")
    found = read_parts(tmp_path / "out")
    unit = fit_standardiser(found["train"], schema, divide_by_root_d=True)
    whole = fit_whole(found["train"].read(), schema, divide_by_root_d=True)
    assert np.allclose(unit.mean, whole.mean, rtol=1e-12)
    assert np.allclose(unit.scale, whole.scale, rtol=1e-12)
    train = pd.concat(part for name, part in standardised_parts(found, schema, unit))
    assert len(train) == len(raw)


def test_moments_merge_without_losing_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) + np.array([0.0, 1e6, -1e-3])
    merged = Moments.of(X[:7]).merged(Moments.of(X[7:320])).merged(Moments.of(X[320:]))
    assert np.allclose(merged.mean, X.mean(axis=0), rtol=1e-14)
    assert np.allclose(np.sqrt(merged.squares / merged.n), X.std(axis=0), rtol=1e-9)


def test_a_constant_column_is_seen_across_parts():
    X = np.full((9, 1), 0.1)
    merged = Moments.of(X[:2]).merged(Moments.of(X[2:]))
    with pytest.raises(DataError, match="not vary over the 9 training rows"):
        merged.standardiser(("a",), divide_by_root_d=False)


def test_a_part_may_hold_one_class_only(german, tmp_path):
    raw, schema = german
    ordered = raw.sort_values("credit_risk").reset_index(drop=True)
    parts = cut(ordered, tmp_path / "german", 5)
    assert sum(len(part.table) for part in cleaned_parts(parts, schema)) == len(raw)


def test_wrong_rows_of_several_parts_are_set_aside_with_their_numbers(german, tmp_path):
    raw, schema = german
    broken = raw.copy()
    broken.loc[[5, 777], "credit_amount"] = "much"
    parts = cut(broken, tmp_path / "german", 5)
    placed = place_rows(parts, schema, SHARES, 0)
    assert placed.quarantine["row"].tolist() == [5, 777]
    assert placed.quarantine["found"].tolist() == ["much", "much"]
    assert placed.place[[5, 777]].tolist() == [-1, -1]
    # The others are placed as if the two rows had never been in the file.
    whole = split_table(clean_rows(broken, schema).table, schema, SHARES, 0)
    written = dict.fromkeys(SHARES, 0)
    for name, part in split_parts(parts, schema, placed.place, SHARES):
        written[name] += len(part)
        assert set(part["row_id"]) <= set(whole[name]["row_id"])
    assert written == {name: len(part) for name, part in whole.items()}


def test_parts_with_too_many_wrong_rows_are_refused_with_the_reasons(german, tmp_path):
    raw, schema = german
    broken = raw.copy()
    broken.loc[:60, "credit_amount"] = "much"
    with pytest.raises(DataError, match=r"61 of 1000 rows \(6.1%\)(?s:.)*61 × column") as caught:
        place_rows(cut(broken, tmp_path / "german", 5), schema, SHARES, 0)
    assert list(caught.value.rows) == list(range(61))


def test_parts_that_lack_a_column_are_reported_together(german, tmp_path):
    raw, schema = german
    parts = cut(raw.drop(columns="credit_amount"), tmp_path / "german", 5)
    with pytest.raises(DataError, match=r"000\.parquet(?s:.)*002\.parquet"):
        place_rows(parts, schema, SHARES, 0)


@pytest.mark.parametrize(("same", "gone"), [(False, [2, 33]), (True, [33])])
def test_an_id_in_two_parts_is_set_aside(tmp_path, same, gone):
    raw = pd.DataFrame(
        {"who": [f"p{k}" for k in range(40)], "x": np.arange(40.0), "y": [0, 1] * 20}
    )
    raw.loc[33] = raw.loc[2] if same else ["p2", 33.0, 1]
    features = {"x": {"kind": "numeric", "change": "both"}}
    mapping = {"id": "who", "label": {"column": "y", "favourable": 1}, "features": features}
    schema = Schema.from_mapping("ids", mapping | {"quarantine": 0.1})
    parts = cut(raw, tmp_path / "ids", 4)
    placed = place_rows(parts, schema, SHARES, 0)
    assert placed.quarantine["row"].tolist() == gone
    assert placed.quarantine["row_id"].tolist() == ["p2"] * len(gone)
    assert clean_rows(raw, schema).quarantine["row"].tolist() == gone
    strict = Schema.from_mapping("ids", mapping | {"quarantine": 0.02})
    with pytest.raises(DataError, match=r"more than the 2\.0% that may be set aside"):
        place_rows(parts, strict, SHARES, 0)


@pytest.mark.parametrize("seed", range(6))
def test_repeated_ids_written_differently_are_judged_alike_in_parts_and_in_one_piece(
    tmp_path, seed
):
    rng = np.random.default_rng(seed)
    spell = (str, "{}.0".format, " {}".format, "{}.00 ".format)
    n, people = 240, 90
    who = rng.integers(0, people, n)
    where = rng.choice(["north", "south"], people)
    written = {
        "who": [f"p{k}" for k in who],
        "x": [spell[rng.integers(4)](k) for k in who],
        "where": [spell[2 * rng.integers(2)](where[k]) for k in who],
        "y": [spell[rng.integers(2)](k % 2) for k in who],
    }
    raw = pd.DataFrame(written, dtype="str")
    # Some of the rows differ in more than their spelling, and some cannot be read at all.
    raw.loc[rng.integers(0, n, 20), "x"] = "3.5"
    raw.loc[rng.integers(0, n, 20), "x"] = "much"
    features = {
        "x": {"kind": "numeric", "change": "both"},
        "where": {"kind": "onehot", "categories": ["north", "south"]},
    }
    mapping = {"id": "who", "label": {"column": "y", "favourable": 1}, "features": features}
    schema = Schema.from_mapping("ids", mapping | {"quarantine": 0.95})
    parts = cut(raw, tmp_path / "ids", 4)
    placed, whole = place_rows(parts, schema, SHARES, 0), clean_rows(raw, schema)
    listed = ["row", "column", "expected", "row_id"]
    in_parts, in_one = (
        set(map(tuple, each.quarantine[listed].to_numpy())) for each in (placed, whole)
    )
    assert in_parts == in_one
    assert np.flatnonzero(placed.place >= 0).tolist() == whole.kept.tolist()
    assert len(whole.kept) > 20
    write_parts(split_parts(parts, schema, placed.place, SHARES), tmp_path / "out")
    found = read_parts(tmp_path / "out")
    for name, table in split_table(whole.table, schema, SHARES, 0).items():
        pd.testing.assert_frame_equal(found[name].read(), table, check_dtype=False)


def test_a_table_that_grew_in_between_is_refused(german, tmp_path):
    raw, schema = german
    parts = cut(raw, tmp_path / "german", 3)
    place = place_rows(parts, schema, SHARES, 0).place
    for other in (place[:-1], np.append(place, place[0])):
        with pytest.raises(DataError, match="changed in between"):
            list(split_parts(parts, schema, other, SHARES))


def test_an_interrupted_write_leaves_the_previous_parts(tmp_path):
    rows = pd.DataFrame({"x": [1.0, 2.0]})
    write_parts([("train", rows)], tmp_path / "parts")

    def broken():
        yield "train", rows * 10
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_parts(broken(), tmp_path / "parts")
    assert read_parts(tmp_path / "parts")["train"].read()["x"].tolist() == [1.0, 2.0]
    # Killed between the two renames: the next reader brings the previous folder back.
    (tmp_path / "parts").rename(tmp_path / ".parts.previous")
    assert read_parts(tmp_path / "parts")["train"].read()["x"].tolist() == [1.0, 2.0]


def test_csv_files_are_parts_too(german, tmp_path):
    raw, schema = german
    (tmp_path / "german").mkdir()
    raw.iloc[:600].to_csv(tmp_path / "german" / "a.csv", index=False)
    raw.iloc[600:].to_csv(tmp_path / "german" / "b.csv", index=False)
    parts = raw_partitions("german", tmp_path, rows_per_part=250)
    typed = pd.concat([part.table for part in cleaned_parts(parts, schema)], ignore_index=True)
    pd.testing.assert_frame_equal(typed, clean(raw, schema))


def test_missing_and_double_tables_are_named(tmp_path):
    with pytest.raises(DataError, match="missing table: 'big'"):
        raw_partitions("big", tmp_path, 10)
    (tmp_path / "big").mkdir()
    with pytest.raises(DataError, match="holds no"):
        raw_partitions("big", tmp_path, 10)
    (tmp_path / "big.csv").write_text("x\n1\n")
    with pytest.raises(DataError, match="two tables for 'big'"):
        raw_partitions("big", tmp_path, 10)
    with pytest.raises(ParameterError, match="rows_per_part"):
        Partitions((tmp_path / "big.csv",), 0)


def test_the_pipeline_leaves_parts_per_split(project, german):
    raw, _ = german
    cut(raw, project.path / "data" / "01_raw" / "german", 5)
    outcome = project.run("--pipeline=ingest_parts", "--params", "dataset=german")
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "05_model_input" / "german" / "parts"
    assert sorted(path.name for path in folder.iterdir()) == sorted(SHARES)
    assert sum(len(part) for split in read_parts(folder).values() for part in split) == len(raw)
