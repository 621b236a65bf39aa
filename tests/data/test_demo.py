"""Example files: every README command finds its table, and no file of a user is lost."""

from __future__ import annotations

import pandas as pd
import pytest

from countermove.data.demo import APPLICANTS, MONTHS, lay_out_demo
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.errors import DataError

from ..conftest import ROOT

SCHEMAS = ROOT / "conf" / "base" / "schemas"


@pytest.fixture
def credit(tmp_path):
    return lay_out_demo(load_schema("credit", SCHEMAS), tmp_path)


def read(path):
    return pd.read_csv(path, dtype=str)


def test_the_parts_are_the_table(credit, tmp_path):
    parts = [read(path) for path in sorted((tmp_path / "credit").iterdir())]
    assert len(parts) == 5
    whole = pd.concat(parts, ignore_index=True)
    assert whole.equals(read_embedded("credit").reset_index(drop=True))


def test_applicants_and_months_are_new_people(credit, tmp_path):
    known = set(read_embedded("credit")["ID"])
    batches = [tmp_path / "applicants" / "credit" / f"{APPLICANTS}.csv"]
    batches += [tmp_path / "batches" / "credit" / f"{month}.csv" for month in MONTHS]
    seen = [set(read(path)["ID"]) for path in batches]
    assert all(len(ids) == 400 for ids in seen)
    assert not known.intersection(*seen)
    assert len(set.union(*seen)) == 1200


def test_twice_is_as_good_as_once(credit, tmp_path):
    assert lay_out_demo(load_schema("credit", SCHEMAS), tmp_path) == credit


def test_a_file_of_the_user_is_never_replaced(tmp_path):
    mine = tmp_path / "my.csv"
    mine.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"my\.csv holds something else"):
        lay_out_demo(load_schema("tiny", SCHEMAS), tmp_path)
    assert mine.read_text() == "a,b\n1,2\n"
    assert list(tmp_path.iterdir()) == [mine]


def test_a_table_that_the_package_does_not_carry_has_no_demo(tmp_path):
    with pytest.raises(DataError, match="does not come with the package"):
        lay_out_demo(load_schema("adult", SCHEMAS), tmp_path)
