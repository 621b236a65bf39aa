"""The published tables themselves, cleaned column by column as when the digests were taken.

A digest is `table_hash` of one typed column; after a deliberate change of cleaning the
failed assertion shows the new one. Wheels are kept in the folder that
COUNTERMOVE_CACHE names, else in the project's; a table that is neither there nor
to be had is skipped.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.fetch import PUBLISHED, fetch
from countermove.data.fetch.publications import FICO_GROUPS
from countermove.data.fetch.wheels import member_content, wheel_in_cache
from countermove.data.recipes import USUAL_DEPENDENTS, USUAL_INCOME
from countermove.data.relations import relation_report
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw, table_hash
from countermove.errors import SourceUnreachableError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "conf" / "base" / "schemas"
CACHE = Path(os.environ.get("COUNTERMOVE_CACHE") or ROOT / ".cache" / "wheels")
DIGESTS = json.loads((Path(__file__).parent / "digests.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


def raw_of(name: str, folder: Path) -> pd.DataFrame:
    try:
        fetch(name, folder, CACHE)
    except SourceUnreachableError as error:
        pytest.skip(f"{name} is not in {CACHE} and cannot be fetched: {error}")
    return read_raw(name, folder, load_schema(name, SCHEMAS))


def typed_of(name: str, folder: Path) -> pd.DataFrame:
    return clean(raw_of(name, folder), load_schema(name, SCHEMAS))


def test_every_published_table_has_digests() -> None:
    assert set(DIGESTS) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_column_is_cleaned_as_on_record(name: str, folder: Path) -> None:
    table = typed_of(name, folder)
    facts = PUBLISHED[name].facts
    assert len(table) == facts.rows
    assert (table["label"] == 1).mean() == pytest.approx(facts.favourable, abs=5e-5)
    pixels = [column for column in table if column.startswith("pixel_")]
    found = {c: table_hash(table[[c]]) for c in table.columns.difference(pixels)}
    if pixels:
        found["pixel_*"] = table_hash(table[pixels])
    assert found == DIGESTS[name]


def test_compas_has_the_groups_propublica_counted(folder: Path) -> None:
    """Counts of ProPublica's own analysis of these 6,172 people."""
    race = typed_of("compas", folder)["race"].value_counts()
    assert race["African-American"] == 3_175
    assert race["Caucasian"] == 2_103
    assert race["Hispanic"] == 509


def test_what_is_filled_in_is_the_median_of_what_is_known(folder: Path) -> None:
    raw = raw_of("give-me-some-credit", folder)
    income = pd.to_numeric(raw["MonthlyIncome"], errors="coerce")
    dependents = pd.to_numeric(raw["NumberOfDependents"], errors="coerce")
    assert int(income.isna().sum() + dependents.isna().sum()) == 33_655
    assert income.median() == USUAL_INCOME
    assert dependents.median() == USUAL_DEPENDENTS
    # Whoever did not say how many depend on them did not say their income either.
    assert income[dependents.isna()].isna().all()


def test_fico_people_repay_as_the_report_says(folder: Path) -> None:
    """The share without default per group is the sum over scores of share times performance."""
    people = typed_of("fico", folder)
    shares = (people["label"] == 1).groupby(people["race"]).mean()
    source = PUBLISHED["fico"]
    archive = wheel_in_cache(source.wheel, CACHE)
    cdf, failed = (
        pd.read_csv(io.BytesIO(member_content(archive, member)), index_col=0) / 100
        for member in source.members
    )
    expected = (cdf.diff().fillna(cdf.iloc[[0]]) * (1 - failed)).sum()
    for column, race in FICO_GROUPS.items():
        share = expected[column]
        assert abs(shares[race] - share) < 4 * (share * (1 - share) / 750) ** 0.5


def test_fraud_is_the_table_of_the_serm_experiments(folder: Path) -> None:
    """Each column of their 492 frauds is ours, moved and scaled."""
    parity = os.environ.get("COUNTERMOVE_PARITY_DATA")
    if not parity or not (Path(parity) / "serm" / "fraud.npz").is_file():
        pytest.skip("COUNTERMOVE_PARITY_DATA names no folder with serm/fraud.npz")
    theirs = np.load(Path(parity) / "serm" / "fraud.npz")
    scaled = theirs["X0"][theirs["y0"] == -1]
    table = typed_of("fraud", folder)
    frauds = table.loc[table["label"] == -1]
    assert len(frauds) == len(scaled) == 492
    columns = ["Amount", *(f"V{number}" for number in range(1, 29))]
    for position, column in enumerate(columns):
        pair = np.sort(scaled[:, position]), np.sort(frauds[column].to_numpy())
        assert np.corrcoef(*pair)[0, 1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["adult", "compas", "give-me-some-credit"])
def test_no_row_breaks_a_relation_that_the_schema_ships(name: str, folder: Path) -> None:
    schema, raw = load_schema(name, SCHEMAS), raw_of(name, folder)
    report = relation_report(raw, clean(raw, schema), schema)
    assert report.problems == report.warnings == ()
    assert all(relation.because for relation in schema.relations)
