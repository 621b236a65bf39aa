"""What a draft says of cells as people write them: decided on the whole column, or asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from tests.data.test_files import workbook

from countermove.data.cleaning import clean
from countermove.data.doubts import suspected_codes
from countermove.data.drafting import draft_file, draft_schema, find_layout
from countermove.data.files import FileFormat, read_table
from countermove.data.guesses import guess_column, guess_dates, number_ways

N = 60


def entry(*cells: str) -> dict[str, Any]:
    return guess_column(pd.Series(list(cells) * 20)).entry


@pytest.mark.parametrize(
    ("cells", "unit", "read"),
    [
        (["$51,501.84", "$1,200.00", "$950.10"], "$", {"thousands": ",", "units": ["$"]}),
        (["1.234,5 €", "EUR 2", "0,5 €"], "€",
         {"decimal": ",", "thousands": ".", "units": ["€", "EUR"]}),
        (["CHF 12'345.60", "CHF 1.20", "3.5"], "CHF", {"thousands": "'", "units": ["CHF"]}),
        (["1 234,5", "2\u00a0345\u202f678", "12"], None, {"decimal": ",", "thousands": " "}),
        (["28.2%", "3.5%", "1 %"], "%", {"units": ["%"]}),
        (["(1,234.5)", "12.1", "3.0"], None, {"thousands": ","}),
        (["12 months", "1 month", "6 months"], "months", {"units": ["months", "month"]}),
        (["12 months", "1 year", "7 months"], "months",
         {"units": {"months": 1, "year": 12}}),
        (["1.5", "2.5", "3.5"], None, None),
        (["0.123", "1.234", "12.345"], None, None),
    ],
)  # fmt: skip
def test_marks_and_units_are_decided_on_the_whole_column(
    cells: list[str], unit: str | None, read: dict[str, Any] | None
) -> None:
    found = entry(*cells)
    assert found["kind"] in ("numeric", "integer")
    assert found.get("unit") == unit
    assert found.get("read") == read


@pytest.mark.parametrize(
    ("cells", "said", "reads"),
    [
        (["1.234", "2.500", "950"], "is '1.234' 1.234 or 1234?",
         [None, {"decimal": ",", "thousands": "."}]),
        (["24,830", "1,234", "950"], "is '24,830' 24.83 or 24830?",
         [{"decimal": ","}, {"thousands": ","}]),
    ],
)  # fmt: skip
def test_marks_that_can_be_read_both_ways_are_asked_about(
    cells: list[str], said: str, reads: list[Any]
) -> None:
    guess = guess_column(pd.Series(cells * 20))
    assert guess.entry == {}
    assert said in guess.reasons[0]
    assert [choice.get("read") for choice in guess.choices] == reads


@pytest.mark.parametrize(
    "cells",
    [["A11", "A12", "A13"], ["1A", "2B", "3C"], ["18-25", "26-40", "41+"], ["1st", "2nd", "3rd"],
     ["north", "south", "east"], ["03.10.2010", "4.5.1999", "1.1.2000"]],
)  # fmt: skip
def test_codes_and_bands_are_no_numbers(cells: list[str]) -> None:
    assert number_ways(pd.Series(cells * 5))[0] == ()


def test_two_currencies_in_one_column_are_not_added_up() -> None:
    guess = guess_column(pd.Series(["$5", "€6", "$7"] * 20))
    assert guess.entry == {}
    assert guess.reasons == ("amounts in several currencies, '$' (40), '€' (20): convert them",)


@pytest.mark.parametrize(
    ("written", "form", "said"),
    [
        ("%d.%m.%Y", "%d.%m.%Y", "day first"),
        ("%m/%d/%Y", "%m/%d/%Y", "month first"),
        ("%d-%m-%y %H:%M", "%d-%m-%y %H:%M", "years have two digits"),
        ("%Y-%m-%d", "iso", ""),
        ("%Y-%m-%dT%H:%M:%S", "iso", ""),
        ("%d %b %Y", "%d %b %Y", ""),
        ("%B %d, %Y", "%B %d, %Y", ""),
    ],
)
def test_a_date_format_is_decided_on_the_whole_column(written: str, form: str, said: str) -> None:
    days = pd.Series(pd.date_range("1999-01-03", periods=N, freq="9D"))
    found = guess_dates(days.dt.strftime(written))
    assert found is not None
    assert [way.formats for way in found.dates] == [(form,)]
    assert said in "; ".join(found.reasons)
    pd.testing.assert_series_equal(
        found.dates[0].dates(days.dt.strftime(written))[0].dt.normalize(),
        days.dt.as_unit("us"),
        check_names=False,
    )


def test_days_and_months_that_may_be_swapped_are_asked_about() -> None:
    found = guess_dates(pd.Series(["01/02/2024", "03/04/2024", "12/12/2023"]))
    assert found is not None
    assert {way.formats for way in found.dates} == {("%d/%m/%Y",), ("%m/%d/%Y",)}


def test_one_day_that_leaves_no_doubt_decides_for_the_column() -> None:
    cells = pd.Series(["01/02/2024", "03/04/2024"] * 50 + ["13/04/2024"])
    found = guess_dates(cells)
    assert found is not None
    assert [way.formats for way in found.dates] == [("%d/%m/%Y",)]
    assert found.dates[0].dates(cells)[0][0] == pd.Timestamp("2024-02-01")


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*range(1, 50), -9, -9], {-9.0: 2}),
        ([*range(18, 90), 999, 999, 999], {999.0: 3}),
        ([*range(18, 90), 99], {}),
        ([*range(900, 1100)], {}),
        ([-9, -8, -7, -20, -30], {}),
    ],
)
def test_numbers_that_stand_for_no_value_are_pointed_out(
    values: list[int], codes: dict[float, int]
) -> None:
    assert suspected_codes(np.array(values, dtype=float)) == codes
    said = "; ".join(guess_column(pd.Series(values)).reasons)
    for code, rows in codes.items():
        assert f"{code:g} in {rows} row(s): no value?" in said
    assert bool(codes) == ("no value?" in said)


def test_dates_that_stand_for_no_value_are_pointed_out() -> None:
    found = guess_dates(pd.Series(["31.12.9999", "03.04.2024", "15.06.2024"] * 3))
    assert found is not None
    assert any("9999-12-31 in 3 row(s)" in why for why in found.reasons)


def test_spellings_are_joined_and_said() -> None:
    guess = guess_column(pd.Series(["North", "north", " SOUTH", "south", "East", "e\u0061st"] * 20))
    assert guess.entry["categories"] in (["East", "North", "south"], ["east", "north", "south"])
    assert guess.entry["read"] == {"fold": True}
    assert any("'North' = 'north'" in why for why in guess.reasons)


def test_answers_in_several_spellings_are_one_binary_column() -> None:
    cells = pd.Series(["yes", "Y", "no", "N", "1", "0"] * 10)
    guess = guess_column(cells)
    assert guess.entry["kind"] == "binary"
    assert guess.entry["categories"] == ["no", "yes"]
    label = draft_schema(pd.DataFrame({"a": list("1234") * 15, "paid": cells}), "x").schema.label
    assert (label.favourable, label.unfavourable) == ("yes", "no")


def test_rare_levels_are_pooled_and_long_tails_are_free_text() -> None:
    town = ["a"] * 300 + ["b"] * 200 + [f"t{n}" for n in range(40)]
    guess = guess_column(pd.Series(town))
    assert guess.entry["categories"] == ["a", "b", "other"]
    assert guess.entry["read"] == {"fold": True, "pooled": "other"}
    assert "40 rare levels" in guess.reasons[0]
    tail = guess_column(pd.Series(["a"] * 30 + [f"t{n % 60}" for n in range(150)]))
    assert tail.entry == {}
    assert "free text" in tail.reasons[0]


def messy(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    applied = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    return pd.DataFrame(
        {
            "": range(n),
            "amount": [f"{v:,.2f} €".translate(str.maketrans(",.", ".,"))
                       for v in rng.uniform(10, 90_000, n)],
            "open since": (applied - pd.to_timedelta(rng.integers(1, 900, n), unit="D")).strftime(
                "%d.%m.%Y"
            ),
            "born": pd.date_range("1960-01-01", periods=n, freq="20D").strftime("%d.%m.%Y"),
            "applied on": applied.strftime("%d.%m.%Y"),
            "amount ": rng.integers(1, 5, n),
            "Ausgang": rng.choice(["Ja", "nein", "NEIN", "ja"], n),
        }
    )  # fmt: skip


def test_a_draft_of_a_messy_file_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    text = "Auszug\n\n" + messy().to_csv(index=False, sep=";") + "zu;wenig\n"
    path.write_bytes(text.encode("cp1252"))
    draft = draft_file(path, "messy", label="Ausgang", favourable="ja")
    content = yaml.safe_load(draft.text)
    assert content["file"]["encoding"] == "cp1252"
    assert content["file"]["header"] == 3
    assert content["read"] == {"applied on": {"date": "%d.%m.%Y"}}
    assert content["features"]["open since"]["read"] == {
        "date": "%d.%m.%Y", "as": "days", "until": "applied on"
    }  # fmt: skip
    assert content["ignore"] == ["column_1", "born"]
    assert "age: {kind: integer" in draft.text
    assert "1 line(s) are no rows and go into quarantine, the first one line 404" in draft.text
    typed = clean(read_table(path, draft.schema.file).frame, draft.schema)
    assert typed["open since"].between(1, 900).all()
    assert set(typed["label"]) == {-1, 1}


def test_the_largest_sheet_is_drafted(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Report"], ["a", "paid"], *([n % 7, n % 2] for n in range(40))]
    path = workbook(tmp_path / "x.xlsx", Notes=[["read me"]], Data=rows)
    found = find_layout(path)
    assert found.layout == FileFormat(header=2, sheet="Data")
    assert "'Notes'" in found.questions[0]
    draft = draft_file(path, "x")
    clean(read_table(path, draft.schema.file).frame, draft.schema)


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        ("a,b\n1,2\n", FileFormat()),
        ("a;b\n1,5;2\n3,5;4\n", FileFormat(delimiter=";")),
        ("a|b\n1,5|2\n", FileFormat(delimiter="|")),
        ("a\tb\n1;2\t3\n", FileFormat(delimiter="\t")),
        ("x,x,\n1,2,3\n", FileFormat(rename=True)),
        ("Report, May\n\nn,a,b\n1,2,3\n4,5,6\n", FileFormat(header=3)),
    ],
)
def test_a_layout_is_found(tmp_path: Path, content: str, layout: FileFormat) -> None:
    path = tmp_path / "x.csv"
    path.write_text(content, encoding="utf-8")
    assert find_layout(path).layout == layout


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig"])
def test_an_encoding_is_found_and_asked_about(tmp_path: Path, encoding: str) -> None:
    words = ["Müller", "Köln", "Gießen"]
    text = "name,town\n" + "".join(f"{w},{v}\n" for w in words for v in words)
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(encoding))
    found = find_layout(path)
    assert set(read_table(path, found.layout).frame["name"]) == set(words)
    marked = encoding in ("utf-16", "utf-8-sig")
    assert bool(found.questions) != marked
